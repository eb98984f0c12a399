"""The names that exist in a Python text: what `complete --names` holds masks to.

In: a text up to the cursor, and the folder of its project. Out: the names that can come next, or
None. What binds a name is read in the text's tree (`maskwright.python_bindings`); what the standard
library has is asked of its Python (`maskwright.python_modules`); jedi tells the rest, reads files
and stubs, and runs no code of the project.

Only such places are held at which the list is whole:

- an attribute behind a module, or behind a name whose class of the standard library is certain, and
  which answers to no other name (`__getattr__`);
- a module behind `import` and `from`, and a name behind `from ... import` of a module that is
  found;
- a name in scope behind a keyword such as `return` or `and`, outside brackets;
- an argument behind a comma, in a call of a function whose parameters are known: their names, and
  those in scope.

What is not certain stays open: any other object, names that are bound there, texts that jedi fails
to read. Some texts are refused all the same, which Python may take, since few are such:
docs/restrictions.md lists them.
"""

from __future__ import annotations

import logging
import os
import re
import types
from collections.abc import Iterable, Set
from functools import lru_cache
from pathlib import Path
from typing import Any

from maskwright.analysis.errors import MissingExtraError, UnknownNameError
from maskwright.analysis.files import absolute
from maskwright.python_bindings import Place
from maskwright.python_modules import Found, StandardModules, names_of_modules, place_of_from

TERMINAL = "NAME"
"""The terminal of the library's grammar `python` that names are lexemes of."""

_IMPORT = re.compile(
    r"(?:^|[\n;:])[ \t]*(?:import[ \t]+(?:[\w.]+(?:[ \t]+as[ \t]+\w+)?[ \t]*,[ \t]*)*(?:\w+\.)*|from[ \t]+(?:\w+\.)*)$"
)
_PACKAGE = re.compile(r"([\w.]+)\.$")
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
_OF_SCOPES = frozenset(
    {*vars(types.ModuleType("any")), "__annotations__", "__builtins__", "__cached__", "__debug__", "__file__"}
    | {"__path__", "__qualname__"}
)
"""Names that are there in any module or class body."""
_MOST_KEPT = 64
_WORD = "maskwright_name"
"""Stands for the name that is to come."""

_logger = logging.getLogger(__name__)


class PythonNames:
    """A source of names for `mw.complete` and `mw.generate` with the grammar `python`.

    project : the folder whose modules can be imported beside the installed ones.
    path : the file that the text is of; it need not exist. Without it relative imports stay open.

    Raises: MissingExtraError if jedi is not installed; UnknownNameError if there is no such folder.

    Cost: a process of Python (`StandardModules.find`) and a pass over the text, some 50 ms; where
        jedi is asked (calls, modules of the project), up to some seconds. An answer is kept.
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
        self._environment = self._project.get_environment()
        self._folders = {folder.resolve(), self._path.parent}
        self._standard = StandardModules(self._environment.executable)
        self._answer = lru_cache(_MOST_KEPT)(self._tried)

    def __call__(self, text: bytes) -> tuple[str, frozenset[str]] | None:
        """NAME and the names that can come behind a text; None where that is not known."""
        try:
            code = text.decode()
        except UnicodeDecodeError:
            return None
        kind = kind_of_place(code)
        return None if kind is None else self._answer(code, kind)

    def _tried(self, code: str, kind: str) -> tuple[str, frozenset[str]] | None:
        for _ in range(2):  # jedi keeps files that another process may be writing
            try:
                names = self._names(code, kind)
                return (TERMINAL, frozenset(names)) if names else None
            except Exception as error:  # jedi raises many kinds on texts that it fails to read
                _logger.debug("jedi fails at the end of a text of %d characters: %r", len(code), error)
        return None

    def _names(self, code: str, kind: str) -> Set[str] | None:
        # with a word at the end, and closed, the statement is whole, which the parser reads best
        whole = code + _WORD + (")" if kind == "argument" else "")
        place = Place(
            self._environment.get_grammar().parse(whole),
            *_end(code),
            _WORD,
            lambda: self._jedi.Script(whole, path=self._path, project=self._project),
        )
        if not place.is_name:
            return None
        if kind == "import":
            names: Set[str] | None = self._modules(place, code)
        elif kind == "from":
            names = self._members(place, code)
        elif kind == "attribute":
            names = self._attributes(place)
        else:
            names = self._in_scope(place, code, kind)
        return None if names is None else names - {_WORD}

    def _find(self, place: Place, *paths: str, imports: Iterable[str] = ()) -> dict[str, Found]:
        """What the standard library has behind dotted names, once the text's imports are done."""
        imports = [*place.imports(), *imports]
        tops = {re.split("[.:]", each)[0] for each in (*paths, *imports)}
        return self._standard.find(paths, imports, filter(self._is_of_project, tops))

    def _is_of_project(self, name: str) -> bool:
        """Whether a module of the project stands in the way of an installed one."""
        return any(
            (folder / f"{name}.py").exists() or (folder / name / "__init__.py").exists() for folder in self._folders
        )

    def _modules(self, place: Place, code: str) -> Set[str]:
        """The modules that can be imported; behind a point, those of the package before it."""
        package = _PACKAGE.search(code)
        if package is not None:
            for found in self._find(place, package[1], imports=[package[1]]).values():
                return found.submodules
        return {each.name for each in place.script.complete(*_end(code)) if each.type != "keyword"}

    def _members(self, place: Place, code: str) -> Set[str] | None:
        """What the module of a `from` has, if it is found. Relative ones need the text's path."""
        match = _FROM.search(code)
        assert match is not None
        module = match["module"]
        if module.startswith("."):
            if not self._has_path:
                return None
        else:
            for found in self._find(place, module, imports=[module]).values():
                return _names_of(found, found.submodules)
        line, column = _end(code[: match.end("module")])
        return names_of_modules(place.script, line, column - 1, is_from=True)

    def _attributes(self, place: Place) -> Set[str] | None:
        """The attributes of what is before a point, if that is certain."""
        paths = {*place.paths()}
        modules = self._find(place, *paths) if paths else {}
        if paths and paths == {*modules}:
            each_of = [_names_of(found) for found in modules.values()]
        elif classes := place.classes():
            members = [":".join(name.rpartition(".")[::2]) for name in classes]
            found = self._find(place, *classes, imports=members)
            each_of = [_names_of_instance(found[name], place) if name in found else None for name in classes]
        else:
            each_of = [place.attributes_of_modules()]
        names = _union(each_of)
        return None if names is None else names | place.attributes_given()

    def _in_scope(self, place: Place, code: str, kind: str) -> Set[str] | None:
        """The names in scope; where an argument may come, the parameters' names too."""
        if not (place.is_argument() if kind == "argument" else place.is_scope()):
            return None
        # what any module has as an object is no name in it
        built_in = self._find(place, "builtins")["builtins"].names - {*dir(types.ModuleType)}
        names: list[Set[str] | None] = [place.names_in_scope(), built_in, _OF_SCOPES]
        names += [self._public(place, star) for star in place.star_imports()]
        if kind == "argument":
            parameters = [each.name for each in place.script.complete(*_end(code)) if each.name.endswith("=")]
            names.append({name[:-1] for name in parameters})
        return _union(names)

    def _public(self, place: Place, star: Any) -> Set[str] | None:
        """What a statement `from ... import *` binds."""
        module = ".".join(name.value for name in star.get_from_names())
        if not star.level:
            for found in self._find(place, module).values():
                return found.public or None
        return names_of_modules(place.script, *place_of_from(star), frozenset({self._path}))


def _names_of(module: Found, submodules: Iterable[str] = ()) -> Set[str] | None:
    """What a module has; None where it is none, or answers to any name."""
    return None if module.kind != "module" or "__getattr__" in module.names else {*module.names, *submodules}


def _names_of_instance(found: Found, place: Place) -> Set[str] | None:
    """What an instance of a class has: the class's names, and its own as jedi lists them."""
    if "class" not in found.kind or "__getattr__" in found.names:
        return None
    own = place.attributes_listed() if found.kind == "class" else {*()}
    return None if own is None else {*found.names, *own}


def _union(each_of: list[Set[str] | None]) -> Set[str] | None:
    """All names of some sets; None if one of these is not known."""
    known = [names for names in each_of if names is not None]
    return {*()}.union(*known) if len(known) == len(each_of) else None


def _end(code: str) -> tuple[int, int]:
    """The line and the column behind a text, as jedi counts."""
    return code.count("\n") + 1, len(code) - code.rfind("\n") - 1


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
