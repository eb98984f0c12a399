"""What other parsers say of a text, each in a child process: accepted, refused, over a limit of theirs, crashed or hung."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import selectors
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, Protocol

from maskwright.analysis.errors import MaskwrightError

PYTHON_VERSIONS = {"python": (3, 13)}
"""Grammar -> the version of Python whose texts it takes."""

Answer = Literal["accepted", "refused", "limit", "crashed", "hung"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """limit : the parser gave up for a limit of its own that says nothing about the text. message : its own words."""

    answer: Answer
    message: str = ""

    @property
    def cause(self) -> str:
        """The message without names and numbers, so that refusals can be counted by it.

        >>> Verdict("refused", "SyntaxError: invalid syntax (line 3)").cause
        'SyntaxError: invalid syntax (line N)'
        """
        line = self.message.strip().splitlines()[-1] if self.message.strip() else self.answer
        line = re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`", "'...'", line)
        return re.sub(r"\d+", "N", line)[:160]


class Reference(Protocol):
    """A parser that is not ours."""

    name: str

    def judge(self, text: str) -> Verdict: ...

    def close(self) -> None: ...


# A parser that never ends: it answers each text by one line of JSON. Limits are those that CPython has beside its grammar.
_SERVER = """
import ast, json, sys, warnings
warnings.simplefilter("ignore")
LIMITS = ("too many nested parentheses", "too many levels of indentation", "Exceeds the limit", "too complex",
          "parser stack overflow", "too many statically nested blocks", "maximum recursion depth", "too many nested f-strings")
def answer(kind, text):
    try:
        ast.parse(text) if kind == "python" else json.loads(text)
    except (MemoryError, RecursionError) as error:
        return "limit", f"{type(error).__name__}: {error}"
    except (SyntaxError, ValueError) as error:
        message = getattr(error, "msg", None) or str(error)
        line = getattr(error, "lineno", None)
        where = f" (line {line})" if line else ""
        kind = "limit" if any(limit in str(message) for limit in LIMITS) else "refused"
        return kind, f"{type(error).__name__}: {message}{where}"
    return "accepted", ""
kind = sys.argv[1]
source, sink = sys.stdin.buffer, sys.stdout.buffer
while (head := source.readline()):
    text = source.read(int(head)).decode("utf-8", "surrogatepass")
    sink.write(json.dumps(answer(kind, text)).encode() + b"\\n")
    sink.flush()
"""


class ChildReference:
    """CPython's own parser ("python", or "python:EXECUTABLE" for another version than this process has) or `json.loads` ("json"), in one
    child that is started again after a crash or a hang.

    `json.loads` takes NaN and Infinity, which JSON has not; what the grammar must not take, `--check negative` says.
    """

    def __init__(self, name: str, seconds: float) -> None:
        self.name = name
        self.seconds = seconds
        self._kind, _, executable = name.partition(":")
        self._executable = executable or sys.executable
        if shutil.which(self._executable) is None:
            raise MaskwrightError(
                f"the reference {name!r} names no program: {self._executable!r} is not there, or not executable"
            )
        self._child: subprocess.Popen[bytes] | None = None

    def judge(self, text: str) -> Verdict:
        data = text.encode("utf-8", "surrogatepass")
        child = self._started()
        assert child.stdin is not None and child.stdout is not None
        try:
            child.stdin.write(b"%d\n" % len(data) + data)
            child.stdin.flush()
            line = _read_line(child.stdout, self.seconds)
        except (BrokenPipeError, ConnectionError):
            line = b""
        if line is None:
            self.close()
            return Verdict("hung", f"no answer within {self.seconds:g} s")
        if not line:
            code = child.wait()
            self.close()
            return Verdict("crashed", f"exit code {code}")
        answer, message = json.loads(line)
        return Verdict(answer, message)

    def close(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.wait()
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None or self._child.poll() is not None:
            self.close()
            self._child = subprocess.Popen(
                [self._executable, "-I", "-c", _SERVER, self._kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        return self._child


class CommandReference:
    """A command that reads the text on standard input, or from the file whose name stands for `{}`; exit code 0 takes the text.

    Killed by a signal is a crash; any other exit code is a refusal, its message the last line of what the command wrote.
    """

    def __init__(self, command: str, seconds: float) -> None:
        self.name = command
        self.seconds = seconds
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise MaskwrightError(f"the reference command {command!r} cannot be read: {error}") from None
        if not self._words:
            raise MaskwrightError("the reference command is empty; expected python, json, none or a command")

    def judge(self, text: str) -> Verdict:
        data = text.encode("utf-8", "surrogatepass")
        if not any("{}" in word for word in self._words):
            return self._run(self._words, data)
        handle, name = tempfile.mkstemp(prefix="maskwright-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            return self._run([word.replace("{}", name) for word in self._words], b"")
        finally:
            Path(name).unlink(missing_ok=True)

    def _run(self, words: list[str], data: bytes) -> Verdict:
        try:
            done = subprocess.run(
                words, input=data, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=self.seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return Verdict("hung", f"no answer within {self.seconds:g} s")
        except OSError as error:
            raise MaskwrightError(
                f"the reference command {self.name!r} cannot be run: {error.strerror}; expected python, json, none or a command"
            ) from None
        message = done.stdout.decode("utf-8", "replace").strip()
        if done.returncode == 0:
            return Verdict("accepted")
        if done.returncode < 0 or done.returncode > 128:
            return Verdict("crashed", f"exit code {done.returncode}")
        return Verdict("refused", message[-500:] or f"exit code {done.returncode}")

    def close(self) -> None:
        return None


def make_reference(name: str, seconds: float = 10.0) -> Reference | None:
    """The parser of a name: "python", "python:EXECUTABLE", "json", "none", or a command.

    Raises MaskwrightError for one that cannot be run.
    """
    if seconds <= 0:
        raise MaskwrightError(f"the reference's time limit is {seconds:g} s; expected more than 0")
    if name == "none":
        return None
    if name in ("python", "json") or name.startswith("python:"):
        return ChildReference(name, seconds)
    return CommandReference(name, seconds)


def reference_for(grammar: str) -> str:
    """The reference for a grammar's texts by its name: its language's own parser where there is one at hand, else "none".

    For a grammar of one version of Python that is this process's Python, or else one on the PATH, that is not older; where there is none
    it is "python" still: `is_too_old` says so.
    """
    stem = grammar.lower()
    name = next((name for name in ("python", "json") if stem.startswith(name)), "none")
    if is_too_old(name, grammar) and (found := _newer_python(PYTHON_VERSIONS[grammar])) is not None:
        return f"python:{found}"
    return name


def is_too_old(reference: str, grammar: str) -> bool:
    """Whether a reference is this process's Python and older than the grammar's: what it refuses may be right."""
    return reference == "python" and sys.version_info[:2] < PYTHON_VERSIONS.get(grammar, (0, 0))


def version_note(grammar: str) -> str:
    """Why this process's Python cannot judge a grammar's texts."""
    ours, its = (".".join(map(str, version[:2])) for version in (sys.version_info, PYTHON_VERSIONS[grammar]))
    return f"the grammar is Python {its}'s and this is Python {ours}: name a newer one (--reference python:EXECUTABLE)"


@functools.cache
def _newer_python(version: tuple[int, int]) -> str | None:
    """A Python on the PATH that is at least of a version, and runs."""
    for minor in range(version[1], version[1] + 6):
        found = shutil.which(f"python{version[0]}.{minor}")
        if found is None:
            continue
        command = [found, "-I", "-c", "import sys; print(*sys.version_info[:2])"]
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
            if done.returncode == 0 and done.stdout.split() == [str(version[0]), str(minor)]:
                return found
    return None


def _read_line(pipe: IO[bytes], seconds: float) -> bytes | None:
    """A line from a child: b"" at its end, None if it does not come in time."""
    until = time.monotonic() + seconds
    found = b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while not found.endswith(b"\n"):
            if not selector.select(max(0.0, until - time.monotonic())):
                return None
            more = os.read(pipe.fileno(), 1 << 16)
            if not more:
                return b""
            found += more
    return found
