"""The names that exist in a Python text, as jedi sees them: what `complete --names` holds masks to.

In: a text up to the cursor, and the folder of its project. Out: the names that can come next, or
None. Jedi reads files and stubs and runs no code of the project. What it leaves open is asked of
its tree: `maskwright.python_bindings`.

Only such places are held at which the list is whole:

- an attribute behind a module, or behind a name whose class of the standard library is certain, and
  which answers to no other name (`__getattr__`);
- a module behind `import` and `from`, and a name behind `from ... import` of a module that is
  found;
- a name in scope behind a keyword such as `return` or `and`, outside brackets;
- an argument behind a comma, in a call of a function whose parameters are known: their names, and
  those in scope.

What jedi cannot tell stays open: any other object, names that are bound there, texts that it fails
to read. Three texts are refused all the same, which Python may take, since few are such: a new
attribute of a module (`os.new = 1`), `:=` behind the comma of a call, and in a function's body a
function that is defined further down.
"""

from __future__ import annotations

import logging
import os
import re
import types
from pathlib import Path
from typing import Any

from maskwright.analysis.errors import MissingExtraError, UnknownNameError
from maskwright.analysis.files import absolute
from maskwright.python_bindings import Place, are_whole

TERMINAL = "NAME"
"""The terminal of the library's grammar `python` that names are lexemes of."""

_IMPORT = re.compile(
    r"(?:^|[\n;:])[ \t]*(?:import[ \t]+(?:[\w.]+(?:[ \t]+as[ \t]+\w+)?[ \t]*,[ \t]*)*(?:\w+\.)*|from[ \t]+(?:\w+\.)*)$"
)
_FROM = re.compile(
    r"(?:^|[\n;:])[ \t]*from[ \t]+(?P<module>\.*[\w.]*\w)[ \t]+import[ \t]*(?:\([ \t\n]*)?(?:\w+(?:[ \t]+as[ \t]+\w+)?[ \t\n]*,[ \t\n]*)*$"
)
_SCOPE = re.compile(r"(?:^|[^\w.])(?:return|if|assert|raise|in|and|or|not|del|await)[ \t]+$")
_MAY_BIND = re.compile(r"(?:^|\n)[ \t]*if[ \t]+$")
"""An `if` statement, where `name := ...` may come."""
_ARGUMENT = re.compile(r",[ \t\n]*$")
_ATTRIBUTE = re.compile(r"\w\.$")
_OPEN = re.compile(r"\b(?:lambda|for)\b")
_FOR = re.compile(r"^[ \t]*(?:async[ \t]+)?for\b.*?\bin[ \t]")
"""A `for` statement up to what it goes through, where what it binds is no name yet."""
_OF_MODULES = frozenset(
    {*dir(types.ModuleType), "__file__", "__path__", "__cached__", "__builtins__", "__annotations__"}
)
"""Attributes of any module, of which jedi leaves some out."""
_OF_SCOPES = frozenset(
    {"__annotations__", "__builtins__", "__cached__", "__debug__", "__loader__", "__path__", "__qualname__", "__spec__"}
)
"""Names that are there in any module or class body, likewise."""
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
        if not os.path.isdir(folder):
            raise UnknownNameError(f"there is no folder {folder}; expected the folder of a Python project")
        self._jedi: Any = jedi
        self._project: Any = jedi.Project(folder.resolve())
        self._path = folder.resolve() / "completed_text.py" if path is None else Path(absolute(path)).resolve()
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
        place = Place(script, line, column, _WORD)
        if not place.is_name or not self._is_whole(place, kind):
            return None
        objects: list[Any] = []
        if kind == "attribute":
            objects = place.objects()
        elif kind == "from":
            objects = self._modules(script, code)
        if kind in ("attribute", "from") and not objects:
            return None
        found = script.complete(line, column)
        names = {each.name.rstrip("=") for each in found if each.type != "keyword"}
        if not names:
            return None
        for each in objects:  # what stubs leave out
            names.update(name.name for name in each.defined_names())
        if "__getattr__" in names and objects:
            return None
        if any(each.type == "module" for each in objects):
            names |= _OF_MODULES
        if kind == "attribute":
            names |= place.attributes_given()
        elif kind in ("scope", "argument"):
            names |= _OF_SCOPES | place.names_not_read()
        names.discard(_WORD)
        return names

    def _is_whole(self, place: Place, kind: str) -> bool:
        """Whether no other name than those of a list may come."""
        if kind == "scope":
            return place.is_scope() and place.are_stars_found()
        return kind != "argument" or (place.is_argument() and place.are_stars_found())

    def _modules(self, script: Any, code: str) -> list[Any]:
        """The module of a `from`, if it is found. Relative ones need the path of the text."""
        match = _FROM.search(code)
        if match is None or (match["module"].startswith(".") and not self._has_path):
            return []
        lines = code[: match.end("module")].split("\n")
        at = len(lines), len(lines[-1]) - 1
        found = script.infer(*at)
        is_whole = any(each.type == "module" for each in found) and are_whole(script, *at)
        return [*found, *script.infer(*at, prefer_stubs=False)] if is_whole else []


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
    if not depth and _SCOPE.search(code) and not _MAY_BIND.search(code) and not _OPEN.search(_FOR.sub("", inner)):
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
