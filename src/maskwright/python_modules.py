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
import os
import re
import subprocess
import symtable
import tempfile
import types
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, islice
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

_MAKES_NAMES = re.compile(
    r"\b(?:globals|locals|vars|exec)\(|\bsys\.modules\b|\b(?:import_module|__import__)\(__name__\b"
)
"""What gives a module names that it does not tell."""

_LIKE_IMPORTS = re.compile(r"\b(?:import|from)\b(?:[^\n(\\]+|\\\n?|\((?:[^)#]+|#.*)*)*")
"""An import with all that may belong to it."""

_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What Python raises for a text that it cannot parse."""

_PARTS = ("body", "orelse", "handlers", "cases", "finalbody")
"""What holds the statements within a statement."""

_OF_MODULES = frozenset(
    {*dir(types.ModuleType), *vars(types.ModuleType("any")), "__file__", "__cached__", "__builtins__"}
)
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
        self._answer = lru_cache(_MOST_KEPT)(partial(_answer, executable))

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
        return self._answer(*(" ".join(sorted({each for each in words if each.isascii()})) for words in given))


def _answer(executable: str, *asked: str) -> dict[str, Found]:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [executable, "-I", "-S", "-c", _PROGRAM, *asked],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            cwd=folder,
            timeout=SECONDS,
        )
    return {path: Found(kind, *map(frozenset, names)) for path, (kind, *names) in json.loads(done.stdout).items()}


def names_of_modules(
    script: Any,
    line: int,
    column: int,
    above: frozenset[Path] = frozenset(),
    n_read: list[None] | None = None,
    is_from: bool = False,
) -> set[str] | None:
    """What the modules have that a name stands for; None if one is not found, or may have more.

    The source is read, or an extension's names. A stub alone is no proof that a name is there.

    above : modules that are being read, which import all of these; what these hide is left out.
    n_read : one entry for each module that has been read for this answer.
    is_from : whether `from ... import` asks, which imports submodules that nobody else does.
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
        if path is None or path.suffix != ".py":
            names |= {name.name for name in each.defined_names()}
            continue
        code = path.read_text(errors="replace")
        n_read.append(None)
        if _MAKES_NAMES.search(code) or len(n_read) > _MOST_MODULES:
            return None
        tree, submodules = ast.parse(code), set[str]()
        told, its = names_told(tree), names_bound(tree)
        if path.stem == "__init__":
            submodules = {name for name in map(_name_of_module, path.parent.iterdir()) if name} - {"__init__"}
            its |= {"__path__", *(submodules if is_from else _imported(submodules, script, path.parent))}
        inner = type(script)(path=path, project=script._inference_state.project)
        for star in star_imports(inner._module_node):
            bound = names_of_modules(inner, *place_of_from(star), above | {path}, n_read)
            if bound is None:
                return None
            its |= bound
        if above:
            if "__all__" not in its:
                told = {name for name in its if not name.startswith("_")}
            if told is None:
                return None
            its = told & (its | submodules)
        names |= its
    return names if found and "__getattr__" not in names else None


def names_bound(tree: ast.Module) -> set[str]:
    """The names that a module's statements bind, and do not surely unbind again. Changes the tree.

    Example:
        >>> code = "match v:\\n case [a, *b]: 0\\nx = y = 1\\ndel x\\ndef f():\\n global z; z = 1"
        >>> sorted(names_bound(ast.parse(code)))
        ['a', 'b', 'f', 'y', 'z']
    """
    for node in list[Any](ast.walk(tree)):
        if isinstance(node, ast.ExceptHandler):
            node.name = None  # unbound behind the block
        elif type(node).__name__ in ("ListComp", "SetComp"):  # whose names later Pythons take for the module's
            node.__class__ = ast.GeneratorExp
        elif type(node).__name__ == "DictComp":
            node.__class__, node.elt = ast.GeneratorExp, ast.Tuple([node.key, node.value], ast.Load())
        elif isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            node.body = [ast.Pass()]
    found, block = set[str](), list[ast.stmt]()
    for statement in (*tree.body, ast.Delete([])):
        block.append(statement)
        if isinstance(statement, ast.Delete):
            found |= _assigned(symtable.symtable(ast.unparse(ast.Module(block[:-1], [])), "", "exec"))
            found -= {target.id for target in statement.targets if isinstance(target, ast.Name)}
            block.clear()
    return found


def _assigned(table: symtable.SymbolTable) -> set[str]:
    """The global names that code binds, in functions and classes too."""
    is_module = table.get_type() == "module"
    symbols = [each for each in table.get_symbols() if each.is_assigned() or each.is_imported()]
    own = {each.get_name() for each in symbols if is_module or each.is_declared_global()}
    return own.union(*map(_assigned, table.get_children()))


def names_told(tree: ast.Module) -> set[str] | None:
    """What is in `__all__` of a module; None if that is not certain."""
    n_uses = sum(isinstance(node, ast.Name) and node.id == "__all__" for node in ast.walk(tree))
    told: list[str] = []
    for statement in tree.body:
        try:
            match statement:
                case ast.Assign([ast.Name("__all__")], value) | ast.AnnAssign(
                    ast.Name("__all__"), _, ast.expr() as value
                ):
                    told = [*ast.literal_eval(value)]
                case ast.AugAssign(ast.Name("__all__"), ast.Add(), value) | ast.Expr(
                    ast.Call(ast.Attribute(ast.Name("__all__"), "extend"), [value])
                ):
                    told += ast.literal_eval(value)
                case ast.Expr(ast.Call(ast.Attribute(ast.Name("__all__"), "append" | "remove" as change), [value])):
                    getattr(told, change)(ast.literal_eval(value))
                case _:
                    continue
        except (TypeError, ValueError):
            return None
        n_uses -= 1
    return None if n_uses else {*told}


def _imported(submodules: set[str], script: Any, folder: Path) -> set[str]:
    """The submodules of a package that are its attributes, since something may import them.

    It is what import statements of the text, of the package and of the project speak of; all where
    these are too many to be read, or import what is not written there.
    """
    while (folder.parent / "__init__.py").exists():
        folder = folder.parent
    tops = {folder, Path(script._inference_state.project.path)}
    files = [*islice(chain.from_iterable(map(_sources, sorted(tops))), _MOST_MODULES + 1)]
    tree = script._module_node
    if len(files) > _MOST_MODULES or _imports_by_call(tree.get_code()):
        return submodules
    own = " ".join(each.get_code() for kind in ("import_name", "import_from") for each in nodes(tree, kind))
    found = submodules.intersection(re.findall(r"\w+", own))
    versions = [(path, path.stat().st_mtime_ns) for path in files]
    # PERF: trees take most of the time, so they are made of files that may add something, or are in
    # doubt; not once all submodules are there
    may_add = {each: submodules.intersection(_words_like_imports(*each)) for each in versions}
    for each in sorted(versions, key=lambda each: -len(may_add[each])):
        if found != submodules and not (may_add[each] <= found and _is_certain(*each)):
            words = _words_in_file(*each)
            if words is None:
                return submodules
            found |= submodules & words
    return found


@lru_cache(maxsize=8 * _MOST_MODULES)
def _words_like_imports(path: Path, changed: int) -> frozenset[str]:
    """The words of what looks like an import in a file, in strings and comments too.

    They are normalised, as Python does it with names.
    """
    found = " ".join(_LIKE_IMPORTS.findall(path.read_text(errors="replace")))
    return frozenset(re.findall(r"\w+", unicodedata.normalize("NFKC", found)))


@lru_cache(maxsize=8 * _MOST_MODULES)
def _is_certain(path: Path, changed: int) -> bool:
    """Whether `_words_in_file` surely is not None, found without a tree."""
    code = path.read_text(errors="replace")
    try:
        symtable.symtable("(" if _imports_by_call(code) else code, "", "exec")
    except _UNREADABLE:
        return False
    return True


@lru_cache(maxsize=8 * _MOST_MODULES)
def _words_in_file(path: Path, changed: int) -> frozenset[str] | None:
    """The words of a file's imports, kept until it is `changed`; None where that is not all."""
    code = path.read_text(errors="replace")
    try:
        tree = ast.parse("(" if _imports_by_call(code) else code)
    except _UNREADABLE:
        return None
    found, agenda = set[str](), list[Any]([tree])
    for node in agenda:  # PERF: of all nodes, statements are a tenth
        agenda += chain.from_iterable(getattr(node, part, ()) for part in _PARTS)
        if isinstance(node, ast.Import | ast.ImportFrom):
            paths = [*(each.name for each in node.names), getattr(node, "module", None) or ""]
            found.update(".".join(paths).split("."))
    return frozenset(found)


def _imports_by_call(code: str) -> bool:
    """Whether a text may import what it does not write in a statement.

    PERF: a pattern for both names takes ten times as long.
    """
    return any(re.search(rf"\b{name}\(", code) for name in ("import_module", "__import__") if name in code)


def _sources(top: Path) -> Iterator[Path]:
    """The source files under a folder, without those of other projects."""
    for folder, folders, files in os.walk(top):
        folders[:] = [each for each in folders if each.isidentifier() and each != "site-packages"]
        yield from (Path(folder, each) for each in files if each.endswith(".py"))


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
