"""An audited engine as seen from here: a process that is asked for masks, and how it may fail."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import MaskwrightError, MissingExtraError, UnknownNameError
from maskwright.audit import host
from maskwright.audit.engines import ENGINES, EngineGrammar
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.validation.references import Child

EXCEPTION, CRASH, TIMEOUT = "exception", "crash", "no answer in time"
"""Kinds of failure of an engine."""

MOST_RESTARTS = 5
"""Crashes and time-outs after which an audit ends."""
COMPILE_FACTOR = 10
"""How many times as long as a call a grammar may take."""
_SAID = 2000
"""Bytes that are read from the end of what an engine printed."""
_CALLABLE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


class EngineFailed(Exception):
    """The engine raised an exception, died or did not answer.

    kind : EXCEPTION, CRASH or TIMEOUT.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def check_engine(engine: str) -> None:
    """Check the name of an engine.

    Raises: UnknownNameError if it is neither a known engine nor `module:function`.
    """
    if engine not in ENGINES and not _CALLABLE.fullmatch(engine):
        raise UnknownNameError(
            f"no engine is named {engine[:80]!r}: expected {', '.join(ENGINES)}, or a function of your own as module:function"
        )


class RemoteEngine:
    """One engine with one grammar, which reads one text at a time.

    After CRASH and TIMEOUT the next `reset` starts a new process. Use it as a context manager, or
    call `close`.

    engine : a name of `ENGINES`, or `module:function`.
    grammar : in Lark's language and perhaps in the engine's.
    vocabulary : the tokens.
    encode : bytes -> the tokenizer's tokens.
    path : the tokenizer's file, or "".
    python : the interpreter that has the engine; None for this one.
    timeout : seconds that a call may take.
    facts : what the engine says of itself: version, python, seconds of its start.
    gave_up : why no more is asked for, after many crashes and time-outs; or "".

    Raises: UnknownNameError if the engine is not known; MissingExtraError if a package is missing;
        MaskwrightError if the engine cannot be started with the grammar. `reset`, `fill` and
        `advance` raise EngineFailed if the engine fails.
    """

    def __init__(
        self,
        engine: str,
        grammar: EngineGrammar,
        vocabulary: Vocabulary,
        encode: Callable[[bytes], list[int]],
        *,
        path: str = "",
        python: str | None = None,
        timeout: float = 60.0,
    ) -> None:
        check_engine(engine)
        self.engine, self.timeout = engine, timeout
        self.python = python or sys.executable
        self._encode = encode
        has_own = engine not in ENGINES or grammar.own is not None
        self._advice = "" if has_own else "; it can be given a grammar in its own language (--engine-grammar)"
        tokens, special, eos = [*vocabulary.tokens], dict(vocabulary.special), [*vocabulary.eos]
        self._setup = engine, tuple(grammar), (vocabulary.name, tokens, special, eos, path)
        self._child: Child | None = None
        self._log: Any = None
        self.gave_up, self._n_lost = "", 0
        self.facts = self._start()

    def __enter__(self) -> RemoteEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def reset(self) -> None:
        """Go back to the start of the text. Starts the process if it has ended."""
        if self._child is None:
            self._start()
        self._ask("reset")

    def fill(self) -> tuple[npt.NDArray[np.uint32], int]:
        """The mask after the text so far, (ceil(V / 32),) uint32, and the nanoseconds it took."""
        nanoseconds, words = self._ask("fill")
        return np.frombuffer(words, np.dtype("<u4")), nanoseconds

    def advance(self, tokens: Sequence[int]) -> int:
        """Add tokens to the text until one is refused. Returns how many were taken."""
        return int(self._ask("advance", list(tokens))) if tokens else 0

    def close(self) -> None:
        """End the process."""
        child, self._child = self._child, None
        if child is not None:
            child.end()
            self._log.close()

    # --- the process ---

    def _start(self) -> dict[str, Any]:
        """Start the process and the engine. Returns what the engine says of itself."""
        self.close()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes it
        try:
            self._child = Child([self.python, str(Path(host.__file__))], self._log)
        except OSError as error:
            raise MaskwrightError(
                f"the Python {self.python} cannot be run: {error.strerror}; name one that has the engine (--python)"
            ) from None
        limit = COMPILE_FACTOR * self.timeout
        with contextlib.ExitStack() as failing:
            failing.callback(self.close)
            try:
                greeting = self._exchange(None, limit)
                if greeting != host.GREETING:
                    raise EngineFailed(CRASH, f"it answered {greeting!r}")
            except EngineFailed as error:
                raise MaskwrightError(
                    f"{self.python} does not run as a Python of version 3.9 or later ({error}); name one (--python)"
                ) from None
            try:
                facts: dict[str, Any] = self._ask("start", *self._setup, limit=limit)
            except EngineFailed as error:
                raise MaskwrightError(
                    f"engine {self.engine} cannot be started with this grammar: {error}{self._advice}"
                ) from None
            failing.pop_all()
        return facts

    def _ask(self, operation: str, *arguments: Any, limit: float | None = None) -> Any:
        """Send a request and return the answer. limit : seconds, by default `timeout`."""
        request: Any = (operation, *arguments)
        while True:
            status, value = self._exchange(request, self.timeout if limit is None else limit)
            if status != host.ENCODE:
                break
            request = self._encode(value)
        if status == host.MISSING:
            why, package = value
            raise MissingExtraError(
                f"engine {self.engine} needs the package {package.split()[0]}, which {self.python} does not have "
                f"({why}): {self.python} -m pip install numpy {package}; or name a Python that has it (--python)"
            )
        if status == host.UNSUPPORTED:
            raise MaskwrightError(f"engine {self.engine} cannot be run: {value}{self._advice}")
        if status == host.FAILED:
            raise EngineFailed(EXCEPTION, value)
        return value

    def _exchange(self, request: Any, limit: float) -> Any:
        """Say something to the process, or nothing, and hear what it says. limit : seconds."""
        if self._child is None:
            raise EngineFailed(CRASH, "its process has ended")
        try:
            if request is not None:
                self._child.send(request)
            return self._child.receive(limit)
        except TimeoutError:
            self._lose(TIMEOUT, f"no answer within {limit:g} s")
        except EOFError:
            code = self._child.end(1)
            how = f"exit code {code}"
            if code < 0:
                known = {each.value: each.name for each in signal.Signals}
                how = f"signal {known.get(-code, -code)}"
            said = self._last_line()
            self._lose(CRASH, f"its process ended ({how}){': ' * bool(said)}{said}")

    def _lose(self, kind: str, message: str) -> NoReturn:
        """Give the process up. Raises: EngineFailed."""
        self.close()
        self._n_lost += 1
        if self._n_lost >= MOST_RESTARTS:
            self.gave_up = f"the engine had to be started again {self._n_lost} times"
        raise EngineFailed(kind, message)

    def _last_line(self) -> str:
        """The last line that the process printed to standard error, or ""."""
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - _SAID))
        lines = self._log.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1].strip() if lines else ""
