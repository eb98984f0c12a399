"""Asks other parsers about a text. In: a text. Out: a verdict.

Each parser runs in a child process, so that it may crash or hang. A verdict is: accepted, refused,
over a limit of the parser, crashed or hung.
"""

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
"""Name of a grammar -> the version of Python whose texts it accepts."""

Answer = Literal["accepted", "refused", "limit", "crashed", "hung"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a parser says of a text.

    answer : "accepted", "refused", "limit", "crashed" or "hung". "limit" means that the parser gave
        up because of a limit of its own, which says nothing about the text.
    message : the parser's own words.
    """

    answer: Answer
    message: str = ""

    @property
    def cause(self) -> str:
        """The message's last line without quoted texts and numbers, for counting refusals by it.

        The answer, if there is no message.

        >>> Judgement("refused", "SyntaxError: invalid syntax (line 3)").cause
        'SyntaxError: invalid syntax (line N)'
        """
        line = self.message.strip().splitlines()[-1] if self.message.strip() else self.answer
        line = re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`", "'...'", line)
        return re.sub(r"\d+", "N", line)[:160]


class Reference(Protocol):
    """A parser that is independent of this project. name : as given to `make_reference`."""

    name: str

    def judge(self, text: str) -> Judgement:
        """The parser's verdict on a text."""
        ...

    def close(self) -> None:
        """End the parser's process, if it has one."""
        ...


# The program of a child: it answers each text by one line of JSON until its input ends. LIMITS are
# parts of messages about limits that CPython has in addition to its grammar.
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
    """CPython's parser, or `json.loads`, in a child process.

    The child is started again after a crash or a hang. `json.loads` accepts NaN and Infinity, which
    are not JSON; the check "negative" can test that a grammar refuses them.

    name : "python" for this process's version of Python, "python:EXECUTABLE" for another one, or
        "json".
    seconds : time that the child has for a text.

    Raises: MaskwrightError if there is no such executable.
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

    def judge(self, text: str) -> Judgement:
        """The parser's verdict; "hung" or "crashed" if the child gives none."""
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
            return Judgement("hung", f"no answer within {self.seconds:g} s")
        if not line:
            code = child.wait()
            self.close()
            return Judgement("crashed", f"exit code {code}")
        answer, message = json.loads(line)
        return Judgement(answer, message)

    def close(self) -> None:
        """Kill the child. The next `judge` starts another one."""
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
    """A command that reads a text and accepts it by exit code 0.

    It reads the text from standard input or, if its words have `{}`, from the file whose name
    replaces that. A death by a signal, or an exit code above 128, is a crash. Any other exit code
    is a refusal; its message is the end of what the command wrote, at most 500 characters.

    command : the words of the command, quoted as for a shell.
    seconds : time that the command has for a text.

    Raises: MaskwrightError if the command is empty or its quotes are not closed.
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

    def judge(self, text: str) -> Judgement:
        """The verdict on a text. Raises: MaskwrightError if the command cannot be run."""
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

    def _run(self, words: list[str], data: bytes) -> Judgement:
        try:
            done = subprocess.run(
                words, input=data, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=self.seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return Judgement("hung", f"no answer within {self.seconds:g} s")
        except OSError as error:
            raise MaskwrightError(
                f"the reference command {self.name!r} cannot be run: {error.strerror}; expected python, json, none or a command"
            ) from None
        message = done.stdout.decode("utf-8", "replace").strip()
        if done.returncode == 0:
            return Judgement("accepted")
        if done.returncode < 0 or done.returncode > 128:
            return Judgement("crashed", f"exit code {done.returncode}")
        return Judgement("refused", message[-500:] or f"exit code {done.returncode}")

    def close(self) -> None:
        """Nothing to do: each text has a process of its own."""
        return None


def make_reference(name: str, seconds: float = 10.0) -> Reference | None:
    """The reference parser of a name; None for "none".

    name : "python", "python:EXECUTABLE", "json", "none", or a command.
    seconds : time that the parser has for a text, more than 0.

    Raises: MaskwrightError if `seconds` is not positive, if there is no such executable, or if the
        command is empty or its quotes are not closed.
    """
    if seconds <= 0:
        raise MaskwrightError(f"the reference's time limit is {seconds:g} s; expected more than 0")
    if name == "none":
        return None
    if name in ("python", "json") or name.startswith("python:"):
        return ChildReference(name, seconds)
    return CommandReference(name, seconds)


def reference_for(grammar: str) -> str:
    """The name of the reference parser for a grammar's texts: "python", "json" or "none".

    For a grammar of a certain version of Python (`PYTHON_VERSIONS`) it is this process's Python or,
    if that is older, "python:EXECUTABLE" for one on the PATH that is not. If there is none either,
    it is "python" all the same; `is_too_old` tells.

    grammar : the grammar's name.
    """
    stem = grammar.lower()
    name = next((name for name in ("python", "json") if stem.startswith(name)), "none")
    if is_too_old(name, grammar) and (found := _newer_python(PYTHON_VERSIONS[grammar])) is not None:
        return f"python:{found}"
    return name


def is_too_old(reference: str, grammar: str) -> bool:
    """Whether a reference is this process's Python, and older than the grammar's version of Python.

    It may refuse texts that are legal then.
    """
    return reference == "python" and sys.version_info[:2] < PYTHON_VERSIONS.get(grammar, (0, 0))


def version_note(grammar: str) -> str:
    """A message that says why this process's Python cannot judge a grammar's texts.

    grammar : a key of `PYTHON_VERSIONS`.
    """
    ours, its = (".".join(map(str, version[:2])) for version in (sys.version_info, PYTHON_VERSIONS[grammar]))
    return f"the grammar is Python {its}'s and this is Python {ours}: name a newer one (--reference python:EXECUTABLE)"


@functools.cache
def _newer_python(version: tuple[int, int]) -> str | None:
    """A Python on the PATH that runs and is not older than a version, (major, minor); or None."""
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
    """A line from a child; b"" if its output has ended, None if no line comes in time."""
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
