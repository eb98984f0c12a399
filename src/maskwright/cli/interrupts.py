"""Ctrl-C, obeyed where it does no harm.

Python raises KeyboardInterrupt wherever the main thread happens to be. In a function that C code has called there is nobody to pass it on
to: it is printed and swallowed, or what was called for is missing later. Between the C functions of a library it can lose track of
who owns what, which ends in a crash. Numba loads compiled code through such places, in each command's first second.

So the interrupted stack is looked at first. While one of its frames must not be left, the signal is only noted, and the stack is looked at
again a few milliseconds later. All else is interrupted at once: Numba's compilation is Python for the most part, and each of LLVM's
steps is short, so that Ctrl-C is obeyed within a second. Whoever presses it again while it is only noted leaves at once.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from contextlib import suppress
from types import FrameType

AGAIN = 0.003
"""Seconds until a stack is looked at again."""

_MODULES = ("llvmlite.binding", "numba.core.codegen")
"""LLVM's objects, and the callbacks and libraries that Numba makes of them; modules inside them too."""
_FUNCTIONS = (
    "__del__",  # where Python calls it, nobody catches
    "_get_module_lock.<locals>.cb",  # importlib's, called as a lock goes
    "ExtensionFileLoader.create_module",  # C code that starts may import Python modules, and replaces their errors
    "ExtensionFileLoader.exec_module",
    "WeakSet.__init__.<locals>._remove",
    "WeakKeyDictionary.__init__.<locals>.remove",
    "WeakValueDictionary.__init__.<locals>.remove",
    "finalize.__call__",
)


def must_not_be_left(frame: FrameType | None) -> bool:
    """Whether an exception must not begin in a frame: C code called it or one that it returns to, or an object changes hands there."""
    while frame is not None:
        name = frame.f_globals.get("__name__") or ""
        if name.startswith(_MODULES) or frame.f_code.co_qualname in _FUNCTIONS:
            return True
        frame = frame.f_back
    return False


class Interrupts:
    """Handles SIGINT, and SIGALRM, which it sends to itself, in the process that made it; children have Python's own behaviour."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._is_noted = False
        self._has_ended = False

    def install(self) -> None:
        """Obey Ctrl-C from now on, unless whoever started the process had it ignored, or has another use for these signals."""
        if not hasattr(signal, "setitimer") or signal.getsignal(signal.SIGALRM) != signal.SIG_DFL:
            return
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGALRM, self)
            signal.signal(signal.SIGINT, self)
            atexit.register(self._ignore)

    def end(self) -> None:
        """The command has ended: there is nothing to interrupt any more. Should leaving take long, Ctrl-C twice still helps."""
        self._has_ended = True
        # CPython remembers a KeyboardInterrupt that left the text of an `exec`, though it was caught, and under `python -m` ends itself by
        # SIGINT in place of the exit code; the next `exec` makes it forget
        exec("")

    def _ignore(self) -> None:
        if os.getpid() == self._process:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:
            raise KeyboardInterrupt
        if number == signal.SIGINT:
            if self._is_noted:
                leave()
            self._is_noted = True
        if not self._is_noted or self._has_ended:
            return
        if must_not_be_left(frame):
            signal.setitimer(signal.ITIMER_REAL, AGAIN)
            return
        self._is_noted = False
        raise KeyboardInterrupt


def leave() -> None:
    """End the process with what it had to say, and without cleaning up."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(130)
