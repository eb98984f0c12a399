"""The command line, `maskwright COMMAND`; each command has a module here.

Commands: analyze, audit, complete, explain, export, info, learn, lint, list, playground,
serve-check, validate, verify, warm-up.

Exit codes: 0 success; 1 a check failed; 2 wrong usage or bad input, and nothing was written; 130
interrupted; 141 the reader of standard output has closed the pipe, which is no error.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import warnings
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
    """The application with all its commands.

    The imports take a while. They are inside a function so that `main` can handle Ctrl-C meanwhile.
    """
    from maskwright.cli import (  # noqa: F401
        analyze,
        audit,
        complete,
        explain,
        export,
        info,
        learn,
        lint,
        list_names,
        playground,
        serve_check,
        validate,
        verify,
        warm_up,
    )
    from maskwright.cli.command import app

    return app


def main() -> None:
    """Run the command line and end the process with its exit code; the console script."""
    interrupts = Interrupts()
    interrupts.install()
    try:
        _run()
    except KeyboardInterrupt:  # inside a command, `command` handles it
        with suppress(OSError, AttributeError):
            sys.stderr.write("interrupted; nothing was written\n")
        _leave(130)
    finally:
        interrupts.end()


def _run() -> None:
    try:
        app = _application()
    except ModuleNotFoundError as error:
        if error.name not in ("rich", "typer"):
            raise
        _fail(f"the commands need {error.name}, which is not installed: pip install 'maskwright[cli]'")
    if sys.stdout is None:  # the caller has closed it
        _fail("standard output is closed")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A character that the stream cannot encode must not end the command. Even UTF-8 lacks
            # the surrogates that stand for bytes of file names that are not UTF-8.
            stream.reconfigure(errors="backslashreplace")
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # typer and click raise it so
            _leave(141)
        raise
    except BrokenPipeError:
        _leave(141)
    except OSError as error:
        if error.filename is None and _is_nowhere():
            _fail("the working directory is not there any more; change to another one")
        if error.filename is not None or error.errno not in _OF_OUTPUT:
            raise
        _fail(f"standard output cannot be written: {error.strerror}")
    except MemoryError:
        _fail("there is not enough memory")
    except SystemError as error:
        # Python's own code may fail so where it gets no memory, and forget to say it
        if "without setting an exception" not in str(error):
            raise
        _fail("there is not enough memory")


def _is_nowhere() -> bool:
    """Whether the working directory is gone, which many packages ask for as they are imported."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


_OF_OUTPUT = (errno.ENOSPC, errno.EIO, errno.EBADF, errno.EFBIG, errno.EDQUOT)
"""Error numbers of a write to standard output that failed."""


def _fail(message: str) -> NoReturn:
    with suppress(OSError, AttributeError):
        sys.stderr.write(f"error: {message}\n")
        sys.stderr.flush()
    _leave(2)


def _leave(code: int) -> NoReturn:
    """End the process and discard the output that is still buffered.

    Otherwise Python would try to write it once more at exit, and print an error.
    """
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)
