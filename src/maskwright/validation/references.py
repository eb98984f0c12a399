"""Asks other parsers about a text. In: a text. Out: a verdict.

Each parser runs in a child process, so that it may crash or hang. A verdict is: accepted, refused,
over a limit of the parser, crashed or hung.
"""

from __future__ import annotations

import contextlib
import functools
import glob
import os
import pickle
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from multiprocessing.connection import Pipe
from typing import Any, Literal, TypeAlias

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.grammar.grammar import Grammar


class Child:
    """A process whose program answers over a connection. It may crash or hang.

    command : the program and its arguments. One more is the number of a file, which it opens by
        `multiprocessing.connection.Connection`. What comes over it is pickled.
    said : the file for what it prints; None for nowhere.

    Raises: OSError if it cannot be run.
    """

    def __init__(self, command: list[str], said: Any = subprocess.DEVNULL) -> None:
        self._connection, theirs = Pipe()
        with theirs:
            # A session of its own: Ctrl-C reaches only this process, which then ends the other one.
            self.process = subprocess.Popen(
                [*command, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )

    def send(self, message: Any) -> None:
        """Send a message. Raises: EOFError if it has ended."""
        try:
            self._connection.send_bytes(pickle.dumps(message, protocol=4))  # any Python 3 reads that
        except OSError:
            raise EOFError from None

    def receive(self, seconds: float) -> Any:
        """The next message of the program.

        Raises: TimeoutError if none comes in time; EOFError if it has ended.
        """
        if not self._connection.poll(seconds):
            raise TimeoutError
        try:
            return self._connection.recv()
        except OSError:
            raise EOFError from None

    def end(self, seconds: float = 0.0) -> int:
        """End it, whatever it does; returns its exit code.

        seconds : how long it may take to end by itself.
        """
        self._connection.close()
        with suppress(subprocess.TimeoutExpired):
            return self.process.wait(seconds)
        self.process.kill()
        return self.process.wait()


PYTHON_VERSIONS = {"python": (3, 13)}
"""Name of a grammar -> the version of Python whose texts it accepts."""

OLDER = "older-python"
"""Name of the reference that is this process's Python, where the grammar is a newer version's."""

Answer = Literal["accepted", "refused", "limit", "crashed", "hung", "not judged"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a parser, or another judge, says of a text.

    answer : "accepted", "refused", "limit", "crashed", "hung" or "not judged". "limit" means that
        the parser gave up because of a limit of its own, which says nothing about the text; "not
        judged", that it refused the text, but reads an older version of the language.
    message : the parser's own words.
    by : who judged, where that depends on the text.
    keyword : of a schema, the keyword that refuses, if one does.
    """

    answer: Answer
    message: str = ""
    by: str = ""
    keyword: str = ""


def cause_of(message: str) -> str:
    """A message's last line without quoted texts and numbers, for counting refusals by it.

    >>> cause_of("SyntaxError: invalid syntax (line 3)")
    'SyntaxError: invalid syntax (line N)'
    """
    line = message.strip().splitlines()[-1] if message.strip() else "refused"
    line = re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`", "'...'", line)
    return re.sub(r"\d+", "N", line)[:160]


# The program of a child: it answers each text by JSON until nobody asks any more. LIMITS are parts
# of messages about limits that CPython has in addition to its grammar.
_SERVER = """
import ast, functools, json, sys, warnings
from multiprocessing.connection import Connection
warnings.simplefilter("ignore")
LIMITS = ("too many nested parentheses", "too many levels of indentation", "Exceeds the limit", "too complex",
          "parser stack overflow", "too many statically nested blocks", "maximum recursion depth", "too many nested f-strings")
@functools.cache
def parser_of(name, start):
    from lark import Lark
    from lark.indenter import PythonIndenter
    more = {"postlex": PythonIndenter()} if name == "python" else {}
    return Lark.open_from_package("lark", name + ".lark", ["grammars"], parser="lalr", start=start, **more)
def parse(kind, text):
    if kind == "lark":
        from lark.exceptions import UnexpectedInput
        try:
            parser_of(*sys.argv[2:4]).parse(text + "\\n" * (sys.argv[2] == "python"))
        except UnexpectedInput as error:
            lines = str(error).strip().splitlines()
            raise ValueError(lines[0] if lines else type(error).__name__) from None
    elif kind == "python":
        ast.parse(text)
    else:
        json.loads(text)
def answer(kind, text):
    try:
        parse(kind, text)
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
asked = Connection(int(sys.argv[-1]))
while True:
    try:
        text = asked.recv()
    except EOFError:
        break
    asked.send(answer(kind, text))
"""


class ChildReference:
    """CPython's parser, `json.loads`, or Lark with a grammar of its wheel, in a child process.

    The child is started again after a crash or a hang. `json.loads` accepts NaN and Infinity, which
    are not JSON; the check "negative" can test that a grammar refuses them.

    name : "python" for this process's version of Python, "python:EXECUTABLE" for another one,
        "json", or "lark:NAME:START" for Lark's LALR parser with `lark/grammars/NAME.lark`. A text
        for its python.lark gets a line feed, as in Lark's own examples: Lark's indenter takes
        blanks at the very end for an indentation. "older-python": this process's Python, of which a
        refusal says nothing.
    seconds : time that the child has for a text.

    Raises: MaskwrightError if there is no such executable.
    """

    def __init__(self, name: str, seconds: float) -> None:
        self._is_older = name == OLDER
        self.name, self.seconds = "python" if self._is_older else name, seconds
        kind, *rest = self.name.split(":", 1)
        executable = rest[0] if rest and kind == "python" else sys.executable
        if shutil.which(executable) is None:
            raise MaskwrightError(
                f"the reference {name!r} names no program: {executable!r} is not there, or not executable"
            )
        self._command = [executable, "-I", "-c", _SERVER, *(self.name.split(":") if kind == "lark" else [kind])]
        self._child: Child | None = None

    def judge(self, text: str) -> Judgement:
        """The parser's verdict; "hung" or "crashed" if the child gives none."""
        if self._child is None or self._child.process.poll() is not None:
            self.close()
            self._child = Child(self._command)
        try:
            self._child.send(text)
            answer, message = self._child.receive(self.seconds)
        except TimeoutError:
            self.close()
            return Judgement("hung", f"no answer within {self.seconds:g} s")
        except EOFError:
            return Judgement("crashed", f"exit code {self._child.end(1)}")
        if answer == "refused" and self._is_older:
            version = ".".join(map(str, sys.version_info[:2]))
            return Judgement(
                "not judged",
                f"this is Python {version}, older than the grammar's: name a newer one (--reference python:EXECUTABLE); "
                f"it says {message}",
            )
        return Judgement(answer, message)

    def close(self) -> None:
        """Kill the child. The next `judge` starts another one."""
        child, self._child = self._child, None
        if child is not None:
            child.end()


class CommandReference:
    """A command that reads a text and accepts it by exit code 0.

    It reads the text from standard input or, if its words have `{}`, from the file whose name
    replaces that. A death by a signal, or an exit code above 128, is a crash. Any other exit code
    is a refusal; its message is the end of what the command wrote, at most 500 characters.

    name : the words of the command, quoted as for a shell.
    seconds : time that the command has for a text.

    Raises: MaskwrightError if the command is empty or its quotes are not closed.
    """

    def __init__(self, name: str, seconds: float) -> None:
        self.name, self.seconds = name, seconds
        try:
            self._words = shlex.split(name)
        except ValueError as error:
            raise MaskwrightError(f"the reference command {name!r} cannot be read: {error}") from None
        if not self._words:
            raise MaskwrightError("the reference command is empty; expected python, json, none or a command")

    def judge(self, text: str) -> Judgement:
        """The verdict on a text. Raises: MaskwrightError if the command cannot be run."""
        data = text.encode("utf-8", "surrogatepass")
        if not any("{}" in word for word in self._words):
            return self._run(self._words, data)
        with tempfile.NamedTemporaryFile(prefix="maskwright-") as file:
            file.write(data)
            file.flush()
            return self._run([word.replace("{}", file.name) for word in self._words], b"")

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
        if done.returncode == 0:
            return Judgement("accepted")
        if done.returncode < 0 or done.returncode > 128:
            return Judgement("crashed", f"exit code {done.returncode}")
        message = done.stdout.decode("utf-8", "replace").strip()
        return Judgement("refused", message[-500:] or f"exit code {done.returncode}")

    def close(self) -> None:
        """Nothing to do: each text has a process of its own."""


Reference: TypeAlias = ChildReference | CommandReference
"""A parser that is independent of this project."""


def make_reference(name: str, seconds: float = 10.0) -> Reference | None:
    """The reference parser of a name; None for "none".

    name : "python", "python:EXECUTABLE", "older-python", "json", "lark:NAME:START", "none", or a
        command.
    seconds : time that the parser has for a text, more than 0.

    Raises: MaskwrightError if `seconds` is not positive, if there is no such executable, or if the
        command is empty or its quotes are not closed.
    """
    if seconds <= 0:
        raise MaskwrightError(f"the reference's time limit is {seconds:g} s; expected more than 0")
    if name == "none":
        return None
    if name in ("python", "json", OLDER) or name.startswith(("python:", "lark:")):
        return ChildReference(name, seconds)
    return CommandReference(name, seconds)


def reference_for(grammar: Grammar | str) -> str:
    """The name of the reference parser for a grammar's texts, see `make_reference`.

    For a grammar of Lark's own wheel it is Lark. For one of a certain version of Python
    (`PYTHON_VERSIONS`) it is this process's Python or, if that is older, another one that is not:
    on the PATH, of pyenv or of uv. If there is none, it is "older-python". For others whose names
    begin so it is "python" or "json", else "none".

    grammar : a grammar, or its name.
    """
    name = grammar if isinstance(grammar, str) else grammar.name
    if isinstance(grammar, Grammar) and name.endswith(".lark") and grammar.text:
        own = files("lark").joinpath("grammars", name)
        if own.is_file() and own.read_text(encoding="utf-8") == grammar.text:
            return f"lark:{name.removesuffix('.lark')}:{grammar.symbol_name(grammar.start)}"
    wanted = PYTHON_VERSIONS.get(name, (0, 0))
    if sys.version_info[:2] < wanted:
        found = _newer_python(wanted)
        return OLDER if found is None else f"python:{found}"
    return next((each for each in ("python", "json") if name.lower().startswith(each)), "none")


@functools.cache
def _newer_python(version: tuple[int, int]) -> str | None:
    """A Python that runs and is not older than a version, (major, minor); or None."""
    for minor in range(version[1], version[1] + 6):
        for found in _pythons(f"{version[0]}.{minor}"):
            command = [found, "-I", "-c", "import sys; print(*sys.version_info[:2])"]
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
                if done.returncode == 0 and done.stdout.split() == [str(version[0]), str(minor)]:
                    return found
    return None


def _pythons(version: str) -> Iterator[str]:
    """Where a version of Python may be: on the PATH, then in the folders of pyenv and of uv."""
    found = shutil.which(f"python{version}")
    if found is not None:
        yield found
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    pyenv, uv = (
        os.environ.get("PYENV_ROOT") or "~/.pyenv",
        os.environ.get("UV_PYTHON_INSTALL_DIR") or f"{data}/uv/python",
    )
    for folder in (f"{pyenv}/versions/{version}[.-]*", f"{uv}/cpython-{version}.*"):
        yield from sorted(glob.glob(os.path.join(os.path.expanduser(folder), "bin", f"python{version}")))
