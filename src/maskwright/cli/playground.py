"""`maskwright playground`: a local page that shows what a grammar allows."""

from __future__ import annotations

import os
import signal
import sys
import threading
import webbrowser
from typing import TYPE_CHECKING, Annotated

from maskwright.analysis.errors import MaskwrightError
from maskwright.cli.command import command

if TYPE_CHECKING:
    from maskwright.playground.server import PlaygroundServer

_EPILOG = """Example: maskwright playground --tokenizer tokenizer.json

Ctrl-C ends it, with exit code 0."""

MEMORY = 6 << 30
"""The most bytes of memory that a worker may ask for, where that can be limited."""


@command(epilog=_EPILOG)
def playground(
    *,
    tokenizer: str = "python-tiny",
    port: Annotated[int, {"min": 0, "max": 65535}] = 0,
    host: str = "127.0.0.1",
    seconds: Annotated[float, {"min": 1, "max": 3600}] = 30.0,
    no_browser: bool = False,
) -> None:
    """Serve a page on this machine to try a grammar, a schema or a pattern: its masks, endings and findings.

    tokenizer -t T : A built-in name, or a path to a tokenizer's file or folder.
    port N : 0 for any that is free.
    host H : The address to listen at. Others than loopback let other machines in.
    seconds S : The most CPU seconds that an answer may take.
    no_browser : Open no browser; the address is printed.
    """
    from maskwright.maskstore.vocabulary import load_vocabulary
    from maskwright.playground.server import AnswerPool, PlaygroundServer

    load_vocabulary(tokenizer)  # what is wrong with it is said now
    pool = AnswerPool(tokenizer, seconds, MEMORY)
    try:
        try:
            server = PlaygroundServer(pool, host, port)
        except (OSError, UnicodeError, OverflowError) as error:
            said = getattr(error, "strerror", None) or str(error)
            raise MaskwrightError(
                f"the playground cannot listen at {host}, port {port}: {said}; name another --port or --host"
            ) from None
        _serve(server, no_browser)
    finally:
        pool.close()


def _serve(server: PlaygroundServer, no_browser: bool) -> None:
    """Serve until Ctrl-C or a signal to end; then end the process."""
    is_over = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: is_over.set())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        others = "" if server.is_local else "Other machines can reach it, without a password.\n"
        sys.stdout.write(f"The playground is at {server.url}\n{others}Ctrl-C ends it.\n")
        sys.stdout.flush()
        if not no_browser:
            threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()
        while not is_over.wait(0.2):
            pass
    except KeyboardInterrupt:
        pass
    server.pool.close()
    server.server_close()
    # threads that still answer are not waited for
    sys.stderr.write("\nthe playground has ended\n")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
