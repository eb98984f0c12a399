"""Handles Ctrl-C: raises KeyboardInterrupt only where it does no harm.

Python raises KeyboardInterrupt wherever the main thread happens to be. In a callback, which C code
has called, the exception cannot propagate. It is printed and dropped, or the result of the callback
is missing later. Between two calls into a C library it can leave the ownership of an object
unclear, and the process crashes. Numba runs such code when it loads compiled functions, in the
first second of each command.

So the handler looks at the interrupted stack first. While the stack has a frame that an exception
must not leave, the handler only notes the signal, and looks again a few milliseconds later.
Everything else is interrupted at once. Numba's compilation is mostly Python, and each step of LLVM
is short, so Ctrl-C takes effect within a second. A second Ctrl-C while the first is only noted ends
the process at once.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from contextlib import suppress
from types import FrameType

AGAIN = 0.003
"""Seconds until the handler looks at the stack again."""

_MODULES = ("llvmlite.binding", "numba.core.codegen", "numpy._core._internal", "numpy.core._internal")
"""Modules, with submodules, of LLVM's objects, of Numba's callbacks and libraries for them, and of what
NumPy's C code calls: it turns whatever is raised there into an error of its own."""
_FUNCTIONS = (
    "__del__",  # an exception cannot propagate from here
    "_get_module_lock.<locals>.cb",  # of importlib, called when a lock is freed
    # an extension module may import Python modules when it starts, and replaces their exceptions
    "ExtensionFileLoader.create_module",
    "ExtensionFileLoader.exec_module",
    "WeakSet.__init__.<locals>._remove",
    "WeakKeyDictionary.__init__.<locals>.remove",
    "WeakValueDictionary.__init__.<locals>.remove",
    "finalize.__call__",
)
"""Qualified names of functions in which an exception would be lost; most are called by C code."""


def must_not_be_left(frame: FrameType | None) -> bool:
    """Whether a KeyboardInterrupt raised in a frame could be lost or could crash the process.

    True if the frame or one of its callers is in `_MODULES` or `_FUNCTIONS`: C code has called it,
    or the ownership of an object changes there.
    """
    while frame is not None:
        name = frame.f_globals.get("__name__") or ""
        if name.startswith(_MODULES) or frame.f_code.co_qualname in _FUNCTIONS:
            return True
        frame = frame.f_back
    return False


class Interrupts:
    """The handler of SIGINT, and of the SIGALRM by which it calls itself again.

    It works in the process that created it. In a child process, which inherits it, it raises
    KeyboardInterrupt at once, as Python does.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._is_noted = False
        self._has_ended = False

    def install(self) -> None:
        """Handle Ctrl-C from now on.

        Does nothing if the process was started with SIGINT ignored, if either signal already has
        another handler, or if the platform has no `signal.setitimer`.
        """
        if not hasattr(signal, "setitimer") or signal.getsignal(signal.SIGALRM) != signal.SIG_DFL:
            return
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGALRM, self)
            signal.signal(signal.SIGINT, self)
            atexit.register(self._ignore)

    def end(self) -> None:
        """Stop raising KeyboardInterrupt, because the command has ended.

        If the exit takes long, a second Ctrl-C still ends the process.
        """
        self._has_ended = True
        # CPython remembers a KeyboardInterrupt that has left the code of an `exec`, even if it was
        # caught later. Under `python -m` it would then end the process by SIGINT instead of the
        # exit code. The next `exec` clears this state.
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
    """End the process with exit code 130 at once: flush the output, run no cleanup."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(130)
