"""The names that exist in a Python text, as jedi sees them: what `complete --names` holds masks to.

In: a text up to the cursor, and the folder of its project. Out: the names that can come next, or
None. Jedi reads files and stubs and runs no code of the project.

Only such places are held at which the list is whole:

- an attribute behind a module, or behind an instance of a class of the standard library, unless it
  answers to any name (`__getattr__`);
- a module behind `import` and `from`, and a name behind `from ... import` of a module that is
  found;
- a name in scope behind a keyword such as `return` or `if`, outside brackets;
- an argument behind a comma, in a call whose parameters are known: their names, and those in scope.

What jedi cannot tell stays open: any other object, names that are bound there, texts that it fails
to read.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import Any

from maskwright.analysis.errors import MissingExtraError, UnknownNameError

TERMINAL = "NAME"
"""The terminal of the library's grammar `python` that names are lexemes of."""

_IMPORT = re.compile(
    r"(?:^|[\n;:])[ \t]*(?:import[ \t]+(?:[\w.]+(?:[ \t]+as[ \t]+\w+)?[ \t]*,[ \t]*)*(?:\w+\.)*|from[ \t]+(?:\w+\.)*)$"
)
_FROM = re.compile(
    r"(?:^|[\n;:])[ \t]*from[ \t]+(?P<module>\.*[\w.]*\w)[ \t]+import[ \t]*(?:\([ \t\n]*)?(?:\w+(?:[ \t]+as[ \t]+\w+)?[ \t\n]*,[ \t\n]*)*$"
)
_SCOPE = re.compile(r"(?:^|[^\w.])(?:return|if|elif|while|assert|raise|in|and|or|not|del|await)[ \t]+$")
_ARGUMENT = re.compile(r",[ \t\n]*$")
_ATTRIBUTE = re.compile(r"[\w\])}\"']\.$")
_OPEN = re.compile(r"\b(?:lambda|for)\b")
_FOR = re.compile(r"^[ \t]*(?:async[ \t]+)?for\b.*?\bin[ \t]")
"""A `for` statement up to what it goes through, where what it binds is no name yet."""
_MOST_KEPT = 64
_WORD = "maskwright_name"
"""Stands for the name that is to come."""

_logger = logging.getLogger(__name__)


class PythonNames:
    """A source of names for `mw.complete` and `mw.generate` with the grammar `python`.

    project : the folder whose modules can be imported beside the installed ones.
    path : the file that the text is of; it need not exist. Without it relative imports stay open.

    Raises: MissingExtraError if jedi is not installed; UnknownNameError if there is no such folder.

    Cost: some ms to some seconds a place, as jedi takes it; a place is asked about once.
    """

    def __init__(self, project: str | os.PathLike[str], path: str | os.PathLike[str] | None = None) -> None:
        try:
            import jedi
        except ImportError as error:
            raise MissingExtraError(
                "jedi is not installed, but the names of a Python project are its: pip install 'maskwright[names]'"
            ) from error
        folder = Path(project)
        if not folder.is_dir():
            raise UnknownNameError(f"there is no folder {folder}; expected the folder of a Python project")
        self._jedi: Any = jedi
        self._project: Any = jedi.Project(folder.resolve())
        self._path = folder.resolve() / "completed_text.py" if path is None else Path(path).resolve()
        self._has_path = path is not None
        self._known: dict[str, tuple[str, frozenset[str]] | None] = {}

    def __call__(self, text: bytes) -> tuple[str, frozenset[str]] | None:
        """NAME and the names that can come behind a text; None where that is not known."""
        try:
            code = text.decode()
        except UnicodeDecodeError:
            return None
        kind = kind_of_place(code)
        if kind is None:
            return None
        if code not in self._known:
            while len(self._known) >= _MOST_KEPT:
                del self._known[next(iter(self._known))]
            names = None
            # once more where it fails: jedi keeps files that another process may be writing
            for _ in range(2):
                try:
                    names = self._names(code, kind)
                    break
                except Exception as error:  # jedi raises many kinds on texts that it fails to read
                    _logger.debug("jedi fails at the end of a text of %d characters: %r", len(code), error)
            self._known[code] = None if not names else (TERMINAL, frozenset(names))
        return self._known[code]

    def _names(self, code: str, kind: str) -> set[str] | None:
        lines = code.split("\n")
        line, column = len(lines), len(lines[-1])
        # with a word at the end, and closed, the statement is whole, which jedi reads best
        whole = code + _WORD + (")" if kind == "argument" else "")
        script = self._jedi.Script(whole, path=self._path, project=self._project)
        if _in_string_or_comment(script, line, column):
            return None
        objects: list[Any] = []
        if kind == "attribute":
            objects = script.infer(line, column - 2)
            if not _is_known(objects):
                return None
            objects += script.infer(line, column - 2, prefer_stubs=False)
        if kind == "from" and not self._is_module(script, code):
            return None
        if kind == "argument" and not _has_known_parameters(script.get_signatures(line, column)):
            return None
        found = script.complete(line, column)
        names = {each.name.rstrip("=") for each in found if each.type != "keyword"}
        if kind == "attribute":
            if "__getattr__" in names:
                return None
            for each in objects:  # what stubs leave out
                names.update(name.name for name in each.defined_names())
        names.discard(_WORD)
        return names

    def _is_module(self, script: Any, code: str) -> bool:
        """Whether the module of a `from` is found. Relative ones need the path of the text."""
        match = _FROM.search(code)
        if match is None or (match["module"].startswith(".") and not self._has_path):
            return False
        before = code[: match.end("module")]
        lines = before.split("\n")
        return any(each.type == "module" for each in script.infer(len(lines), len(lines[-1]) - 1))


def kind_of_place(code: str) -> str | None:
    """What may be known of the name that may begin behind a text; None if nothing is, or none may.

    Example:
        >>> [kind_of_place(code) for code in ("import ", "from os import ", "x.", "f(a, ")]
        ['import', 'from', 'attribute', 'argument']
    """
    if _IMPORT.search(code):
        return "import"
    if _FROM.search(code):
        return "from"
    if _ATTRIBUTE.search(code):
        return "attribute"
    depth, inner = _brackets(code)
    if not depth and _SCOPE.search(code) and not _OPEN.search(_FOR.sub("", inner)):
        return "scope"
    if depth and inner.startswith("(") and _ARGUMENT.search(code) and not _OPEN.search(inner):
        return "argument"
    return None


def _brackets(code: str) -> tuple[int, str]:
    """Whether a bracket is open, 1 or 0; and what is in the innermost, or else the last line.

    A bracket that no call opens is shown as a square one.
    """
    depth = 0
    begin = max(0, len(code) - 4000)
    for at in range(len(code) - 1, begin - 1, -1):
        if code[at] in ")]}":
            depth += 1
        elif code[at] in "([{":
            if not depth:
                is_call = at > 0 and (code[at - 1].isalnum() or code[at - 1] in "_)]")
                return 1, code[at:] if is_call and code[at] == "(" else code[at:].replace("(", "[", 1)
            depth -= 1
    return 0, code[code.rfind("\n") + 1 :]


def _in_string_or_comment(script: Any, line: int, column: int) -> bool:
    """Whether the word at a place is none, but part of a string or a comment."""
    leaf = script._module_node.get_leaf_for_position((line, column + 1), include_prefixes=True)
    return leaf is None or leaf.type != "name" or leaf.value != _WORD or leaf.start_pos != (line, column)


def _is_known(objects: list[Any]) -> bool:
    """Whether all attributes of some objects are known: of modules, of instances of the library."""
    return bool(objects) and all(
        each.type == "module" or (each.type == "instance" and _is_stub(each.module_path)) for each in objects
    )


def _is_stub(path: Path | None) -> bool:
    return path is not None and path.suffix == ".pyi" and "typeshed" in path.parts


def _has_known_parameters(signatures: list[Any]) -> bool:
    """Whether calls take no keyword that is no parameter's name."""
    return bool(signatures) and not any(each.kind.name == "VAR_KEYWORD" for one in signatures for each in one.params)
