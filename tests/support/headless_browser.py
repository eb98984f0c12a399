"""A headless Chromium, told what to do over a pipe (the DevTools protocol), for the tests of the playground."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def chromium() -> str | None:
    """The path of a Chromium; None where there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """A page in a browser."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._out, self._in = to_browser, from_browser
        self._number, self._rest = 0, b""
        self.events: list[dict[str, Any]] = []
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + 300  # a busy machine loads a model for more than a minute
        while True:
            found = self._receive(end)
            if found.get("id") == self._number:
                assert "error" not in found, found
                return dict(found["result"])
            self.events.append(found)

    def _receive(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready = select.select([self._in], [], [], max(0.0, end - time.monotonic()))[0]
            assert ready, "the browser does not answer"
            data = os.read(self._in, 1 << 16)
            assert data, "the browser has ended"
            self._rest += data
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))

    def end(self) -> None:
        """End the browser, so that it leaves nothing half-written in its folder."""
        self._session = None
        self.call("Browser.close")

    def size(self, width: int, height: int, is_dark: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = "dark" if is_dark else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)

    def value(self, expression: str) -> Any:
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, expression: str, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not self.value(f"!!({expression})"):
            assert time.monotonic() < end, f"{expression} did not become true"
            time.sleep(0.05)

    def press(self, key: str, code: int = 0) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def shoot(self, path: Path) -> None:
        data = self.call("Page.captureScreenshot", format="png", optimizeForSpeed=False)["data"]
        path.write_bytes(base64.b64decode(data))

    def complaints(self) -> list[str]:
        """Errors that the page met: of scripts, of the policy, of requests to elsewhere."""
        self.value("1")
        found = []
        for event in self.events:
            method, said = event.get("method", ""), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(str(said["exceptionDetails"]))
            if method == "Log.entryAdded" and said["entry"]["level"] == "error" and "422" not in said["entry"]["text"]:
                found.append(said["entry"]["text"])
            if method == "Network.requestWillBeSent":
                url = said["request"]["url"]
                if not url.startswith(("http://127.0.0.1:", "data:", "about:")):
                    found.append(f"asked for {url}")
        return found


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser that ends with the context. folder : for its profile."""
    found = chromium()
    assert found is not None
    their_in, our_out = os.pipe()
    our_in, their_out = os.pipe()
    # Chromium reads from 3 and writes to 4; higher numbers, so that none is overwritten before it is used
    high_in, high_out = (fcntl.fcntl(each, fcntl.F_DUPFD, 100) for each in (their_in, their_out))

    def connect() -> None:
        os.dup2(high_in, 3)
        os.dup2(high_out, 4)

    options = [
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
        f"--user-data-dir={folder}", "about:blank",
    ]  # fmt: skip
    process = subprocess.Popen(
        [found, *options], pass_fds=(3, 4), preexec_fn=connect, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    for each in (their_in, their_out, high_in, high_out):
        os.close(each)
    try:
        made = Browser(our_out, our_in)
        yield made
        made.end()
        process.wait(20)
    finally:
        process.kill()
        process.wait()
        os.close(our_out)
        os.close(our_in)
