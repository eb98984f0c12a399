"""The command line: `maskwright analyze | audit | complete | explain | export | info | lint | list | validate`.

Exit codes: 0 fine, 1 a check failed, 2 usage or bad input (nothing is written), 130 interrupted,
141 nobody reads the output any more (a closed pipe, which is no error).
"""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from maskwright.cli.interrupts import Interrupts

if TYPE_CHECKING:
    import typer


def __getattr__(name: str) -> Any:
    if name == "app":
        return _application()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _application() -> typer.Typer:
    """The application with all its commands. To import them takes a while, in which Ctrl-C is to be obeyed too."""
    from maskwright.cli import analyze, audit, complete, explain, export, info, lint, list_names, validate  # noqa: F401
    from maskwright.cli.common import app

    return app


def main() -> None:
    """The console script."""
    interrupts = Interrupts()
    interrupts.install()
    try:
        _run()
    except KeyboardInterrupt:  # outside the commands
        with suppress(OSError, AttributeError):
            sys.stderr.write("interrupted; nothing was written\n")
        _leave(130)
    finally:
        interrupts.end()


def _run() -> None:
    app = _application()
    if sys.stdout is None:  # closed by who called
        _fail("standard output is closed")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # a character that it has not is no reason to fail; UTF-8 has not what stands for the bytes of odd names
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # as the libraries below end for one
            _leave(141)
        raise
    except BrokenPipeError:
        _leave(141)
    except OSError as error:
        if error.filename is not None or error.errno not in _OF_OUTPUT:
            raise
        _fail(f"standard output cannot be written: {error.strerror}")


_OF_OUTPUT = (errno.ENOSPC, errno.EIO, errno.EBADF, errno.EFBIG, errno.EDQUOT)


def _fail(message: str) -> NoReturn:
    with suppress(OSError, AttributeError):
        sys.stderr.write(f"error: {message}\n")
        sys.stderr.flush()
    _leave(2)


def _leave(code: int) -> NoReturn:
    """End the process with what could not be written thrown away, or Python would try once more and complain."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)
