"""What the tests of both engines' quick calls share."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import maskwright as mw


def outcome(call: Callable[..., Any], *arguments: Any) -> str:
    """The error of a call, or "" """
    try:
        call(*arguments)
    except mw.MaskwrightError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def rounds_meanwhile(call: Callable[[], Any]) -> int:
    """How often another thread goes round while 2,000 calls are made one after the other."""
    rounds, end = [0], threading.Event()

    def go_on() -> None:
        while not end.is_set():
            rounds[0] += 1

    before = sys.getswitchinterval()
    sys.setswitchinterval(0.3)  # the calls take a millisecond together
    thread = threading.Thread(target=go_on)
    try:
        thread.start()
        n = rounds[0]
        for _ in range(2_000):
            call()
        return rounds[0] - n
    finally:
        sys.setswitchinterval(before)
        end.set()
        thread.join()
