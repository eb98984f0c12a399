"""What the modules of a Python have.

In: the Python, what a text imports, and the modules' names. Out: the names in them. Stubs speak of
all versions and platforms, and what they import is theirs alone. So they are not read.

- Of the standard library, the Python itself is asked: one is started for the question, imports what
  the text imports of the standard library, and nothing else, and ends. It reads no site-packages,
  no working directory and no environment variables (`-I -S`). What this process has imported is in
  no answer.
- The source of other modules is read, and not run.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import tempfile
import types
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PROGRAM = """
import sys, site
for function in (site.setquit, site.setcopyright, site.sethelper):
    function()
answers, sys.stdout = sys.stdout, None
standard = sys.stdlib_module_names - ({*sys.argv[1].split()} - {*sys.builtin_module_names, *sys.modules})

def is_standard(path):
    return path.split(".")[0] in standard and "__main__" not in path.split(".")

def find(path):
    top, *rest = path.split(".")
    found = sys.modules.get(top)
    for name in rest:
        found = getattr(found, name, None)
    return sys.modules.get(path, found)

def names(found):
    if isinstance(found, type):
        return "class" if found.__dictoffset__ else "closed class", dir(found), []
    if not isinstance(found, type(sys)):
        return "", [], []
    public = getattr(found, "__all__", None) or [name for name in vars(found) if not name.startswith("_")]
    return "module", {*dir(found), *vars(found), *dir(type(found))}, public

_, _, imports, asked = sys.argv
sys.argv = [""]  # what is imported is told nothing
for line in imports.split():
    path, *members = line.split(":")
    if is_standard(path):
        try:
            __import__(path, None, None, [each for each in members if each != "__main__"])
        except BaseException:
            pass
paths = asked.split()
found = {path: (*names(find(path)), list(getattr(find(path), "__path__", ()))) for path in paths if is_standard(path)}
import json, pkgutil
for path, (kind, there, public, folders) in found.items():
    modules = [each.name for each in pkgutil.iter_modules(folders)]
    modules += [name[len(path) + 1:] for name in sys.modules if name.rpartition(".")[0] == path]
    found[path] = kind, sorted(there), sorted(public), sorted({*modules})
json.dump(found, answers)
"""
_NOT_IMPORTED = ("antigravity", "idlelib", "test", "this", "turtledemo")
"""Modules that do more than be there when they are imported: open a window, print, run."""
_MOST_KEPT = 64
SECONDS = 20.0
"""BOUND: what the Python may take for its answer."""
_MOST_MODULES = 200
"""BOUND: modules that are read for one answer, since each may import all names of others."""

_MAKES_NAMES = re.compile(r"\b(?:globals|locals|vars)\(\)(?:\[|\.update\b)|\bsys\.modules\[")
"""What gives a module names that it does not tell."""

_OF_MODULES = frozenset({*dir(types.ModuleType("any")), "__file__", "__cached__", "__builtins__", "__annotations__"})
"""Attributes of any module, of which jedi leaves some out."""


@dataclass(frozen=True, slots=True)
class Found:
    """What is behind a dotted name.

    kind : "module"; "class", "closed class" if its instances have no attributes of their own; ""
        for anything else, and where nothing is.
    names : the attributes, those that any module has among them.
    public : what `from ... import *` binds.
    submodules : that can be imported, whether they are attributes or not.
    """

    kind: str
    names: frozenset[str]
    public: frozenset[str]
    submodules: frozenset[str]


class StandardModules:
    """The standard library's modules of a Python.

    executable : the Python. It is run.
    """

    def __init__(self, executable: str) -> None:
        self._executable = executable
        self._known: dict[tuple[str, ...], dict[str, Found]] = {}

    def find(self, paths: Iterable[str], imports: Iterable[str] = (), others: Iterable[str] = ()) -> dict[str, Found]:
        """What is behind those dotted names that begin with a module of the standard library.

        paths : such as "os.path".
        imports : what the text imports, as "os", or "os:path:sep" for `from os import path, sep`. A
            submodule is an attribute only if one of these imports brings it.
        others : modules of other folders that come before the standard library's. They take the
            place of those that Python does not import itself when it starts.

        Raises: OSError if the Python cannot be run; ValueError if it fails; TimeoutExpired.

        Cost: some 30 ms, and the imports. An answer is kept.
        """
        given = ((*_NOT_IMPORTED, *others), imports, paths)
        asked = tuple(" ".join(sorted({each for each in words if each.isascii()})) for words in given)
        found = self._known.get(asked)
        if found is None:
            with tempfile.TemporaryDirectory() as folder:
                done = subprocess.run(
                    [self._executable, "-I", "-S", "-c", _PROGRAM, *asked],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    check=False,
                    cwd=folder,
                    timeout=SECONDS,
                )
            found = {
                path: Found(kind, frozenset(names), frozenset(public), frozenset(submodules))
                for path, (kind, names, public, submodules) in json.loads(done.stdout).items()
            }
            while len(self._known) >= _MOST_KEPT:
                self._known.pop(next(iter(self._known)), None)
            self._known[asked] = found
        return found


def names_of_modules(
    script: Any, line: int, column: int, above: frozenset[Path] = frozenset(), n_read: list[None] | None = None
) -> set[str] | None:
    """What the modules have that a name stands for; None if one is not found, or may have more.

    The source is read, or an extension's names. A stub alone is no proof that a name is there.

    above : modules that are being read, which import all of these; what these hide is left out.
    n_read : one entry for each module that has been read for this answer.
    """
    n_read = [] if n_read is None else n_read
    found = script.infer(line, column, prefer_stubs=False)
    names = set() if above else {*_OF_MODULES}
    for each in found:
        path = each.module_path
        if each.type != "module" or (path is not None and path.suffix == ".pyi"):
            return None
        if path in above:
            continue
        its = {name.name for name in each.defined_names()}
        if path is not None and path.suffix == ".py":
            if _MAKES_NAMES.search(path.read_text(errors="replace")):
                return None
            n_read.append(None)
            if len(n_read) > _MOST_MODULES:
                return None
            inner = type(script)(path=path, project=script._inference_state.project)
            for star in star_imports(inner._module_node):
                bound = names_of_modules(inner, *place_of_from(star), above | {path}, n_read)
                if bound is None:
                    return None
                its |= bound
            if above:
                its = _public(its, inner._module_node)
        if path is not None and path.stem == "__init__":
            its.add("__path__")
            its.update(name for name in map(_name_of_module, path.parent.iterdir()) if name)
        names |= its
    return names if found and "__getattr__" not in names else None


def _public(names: set[str], tree: Any) -> set[str]:
    """Those of a module's names that `from ... import *` may bind."""
    told = tree.get_used_names().get("__all__", [])
    if not told:
        return {name for name in names if not name.startswith("_")}
    definition = told[0].get_definition()
    if len(told) > 1 or definition is None or definition.type != "expr_stmt":
        return names
    try:
        return names & {*ast.literal_eval(definition.children[-1].get_code().strip())}
    except (TypeError, ValueError, SyntaxError):
        return names


def star_imports(tree: Any) -> list[Any]:
    """The statements `from ... import *` in a tree."""
    return [each for each in nodes(tree, "import_from") if each.is_star_import()]


def place_of_from(node: Any) -> tuple[int, int]:
    """Where the module of `from ... import` ends, as jedi counts."""
    line, column = node.children[node.children.index("import") - 1].end_pos
    return line, column - 1


def _name_of_module(path: Path) -> str:
    """The module that is imported from a path; nothing if none is."""
    name, _, ending = path.name.partition(".")
    is_module = path.suffix in (".py", ".pyc", ".so", ".pyd") if ending else path.is_dir()
    return name if is_module and name != "__pycache__" and name.isidentifier() else ""


def nodes(node: Any, kind: str) -> list[Any]:
    """The nodes of a kind in a tree of parso."""
    found, agenda = [], [node]
    while agenda:
        node = agenda.pop()
        if node.type == kind:
            found.append(node)
        agenda += getattr(node, "children", [])
    return found
