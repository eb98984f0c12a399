"""What a Python's standard library has: held to `dir` in processes of their own, and to the attributes that real files use."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from library_cases import records

from maskwright import python_modules
from maskwright.python_modules import StandardModules

MODULES = [
    "abc", "argparse", "array", "ast", "asyncio", "collections", "concurrent", "datetime", "functools", "hashlib",
    "importlib", "inspect", "io", "itertools", "json", "logging", "math", "multiprocessing", "os", "pathlib", "random",
    "re", "shutil", "socket", "string", "subprocess", "sys", "threading", "time", "typing", "urllib", "xml",
]  # fmt: skip


@pytest.fixture(scope="module")
def standard() -> StandardModules:
    return StandardModules(sys.executable)


def run(program: str) -> str:
    """What a program prints in a Python of its own."""
    return subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("module", MODULES)
def test_what_a_module_has_is_what_python_says(standard: StandardModules, module: str) -> None:
    found = standard.find([module], [module])[module]
    told = run(f"import {module} as m\nprint(*dir(m))\nprint(*dir(type(m)))").split("\n")
    assert found.kind == "module"
    assert found.names == {*told[0].split(), *told[1].split()}


def test_what_other_versions_and_platforms_have_is_not_there(standard: StandardModules) -> None:
    found = standard.find(["collections", "json", "typing"], ["collections", "json", "typing"])
    assert not {"Sized", "Mapping", "Iterable"} & found["collections"].names
    assert "tool" not in found["json"].names and "tool" in found["json"].submodules
    assert "_typeshed" not in found["typing"].names


@pytest.mark.skipif(sys.platform == "win32", reason="these are names of Windows")
def test_names_of_windows_are_not_elsewhere(standard: StandardModules) -> None:
    found = standard.find(["os", "subprocess", "winreg"], ["os", "subprocess", "winreg"])
    assert "O_BINARY" not in found["os"].names and "STARTUPINFO" not in found["subprocess"].names
    assert found["winreg"].kind == ""


@pytest.mark.parametrize(
    ("imports", "path", "names"),
    [
        (["json"], "json", set()),
        (["json.tool"], "json", {"tool"}),
        (["json:tool"], "json", {"tool"}),
        (["xml.dom.minidom"], "xml", {"dom"}),
        (["xml.dom.minidom"], "xml.dom", {"minidom"}),
        (["os"], "os.path", {"join"}),
    ],
)
def test_submodules_are_attributes_once_they_are_imported(
    standard: StandardModules, imports: list[str], path: str, names: set[str]
) -> None:
    import json.tool  # noqa: F401  what this process has imported says nothing

    found = standard.find([path], imports)[path].names
    assert names <= found and ("tool" in found) == ("tool" in names)


def test_kinds(standard: StandardModules) -> None:
    paths = ["os", "builtins.str", "builtins.Exception", "sys.path", "os.none", "numpy", "__main__"]
    found = standard.find(paths, ["os", "sys"])
    assert {path: each.kind for path, each in found.items()} == {
        "os": "module",
        "builtins.str": "closed class",
        "builtins.Exception": "class",
        "sys.path": "",
        "os.none": "",
    }
    assert {*dir(str)} == found["builtins.str"].names


def test_modules_that_do_more_when_they_are_imported_are_not(standard: StandardModules) -> None:
    modules = ["this", "antigravity", "idlelib.idle", "test.support", "unittest.__main__"]
    assert standard.find(modules, modules) == {}


def test_what_comes_before_the_standard_library_hides_it(standard: StandardModules) -> None:
    assert {*standard.find(["random", "sys", "é"], ["random", "sys"], others=["random", "sys"])} == {"sys"}


def test_a_python_that_fails_is_told() -> None:
    with pytest.raises(OSError, match="no_such_python"):
        StandardModules("/no_such_python").find(["os"])


def test_attributes_that_real_files_use_are_there(standard: StandardModules) -> None:
    """Of the standard library's modules, where nothing but imports binds the name. What is not in a
    list is not in Python either, once the same modules are imported."""
    n_uses, lost = 0, []
    for record in records("source/python", 80):
        imports, uses = uses_of(record["text"])
        found = standard.find({path for path, _ in uses}, imports)
        told = {path for path, one in found.items() if one.kind == "module" and "__getattr__" not in one.names}
        known = [(path, name) for path, name in uses if path in told]
        n_uses += len(known)
        missing = [(path, name) for path, name in known if name not in found[path].names]
        if missing:
            lost += there_are(imports, missing)
    assert n_uses > 300
    assert lost == []


def uses_of(text: str) -> tuple[list[str], set[tuple[str, str]]]:
    """The imports of a text, as `find` takes them; and the attributes: what each is of, and its name."""
    try:
        nodes = [*ast.walk(ast.parse(text))]
    except SyntaxError:
        return [], set()
    imports: list[str] = []
    bound: dict[str, set[str]] = defaultdict(set)
    others: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                imports.append(alias.name)
                bound[alias.asname or alias.name.split(".")[0]].add(
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            imports.append(":".join([node.module, *(alias.name for alias in node.names if alias.name != "*")]))
            for alias in node.names:
                bound[alias.asname or alias.name].add(f"{node.module}.{alias.name}")
        elif isinstance(node, ast.ImportFrom):
            others |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            others.add(node.id)
        elif isinstance(node, ast.arg):
            others.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            others.add(node.name)
    uses = set()
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            head, *rest = ast.unparse(node).split(".")
            if head.isidentifier() and head not in others:
                uses |= {(".".join([path, *rest[:-1]]), node.attr) for path in bound[head]}
    return imports, uses


def there_are(imports: list[str], uses: list[tuple[str, str]]) -> list[str]:
    """Which attributes Python has after statements of import, of those that can be executed."""
    statements = []
    for each in imports:
        module, *members = each.split(":")
        if module.split(".")[0] in sys.stdlib_module_names:
            statements += [f"from {module} import {name}" for name in members] or [f"import {module}"]
    program = (
        f"for statement in {statements}:\n    try:\n        exec(statement)\n    except ImportError:\n        pass\n"
        f"import importlib\nfor path, name in {uses}:\n"
        "    if hasattr(importlib.import_module(path), name):\n        print(path + '.' + name)"
    )
    return run(program).split()


def test_no_text_of_a_project_is_run(
    standard: StandardModules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shutil.py").write_text("open('ran', 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert "copyfile" in StandardModules(sys.executable).find(["shutil"], ["shutil"])["shutil"].names
    assert not (tmp_path / "ran").exists()


def test_no_program_of_the_standard_library_is_run(
    standard: StandardModules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`venv.__main__` would make an environment of each word of the command line."""
    monkeypatch.chdir(tmp_path)
    for path in ("venv.__main__.x", "venv.__main__", "this.__main__.y"):
        found = standard.find({"os"}, ["os", path, f"{path}:z"])
        assert "sep" in found["os"].names
    assert list(tmp_path.iterdir()) == []


def test_the_words_of_imports_are_those_of_all_nodes() -> None:
    """Only statements are looked at, of which these files have all kinds."""
    folder = Path(ast.__file__).parent
    files = [*folder.glob("*.py"), *folder.glob("asyncio/*.py")]
    n_words = 0
    for path in files:
        found = python_modules._words_in_file(path, 0)
        if found is None:
            assert not python_modules._is_certain(path, 0)
            continue
        assert found - {"", "*"} <= python_modules._words_like_imports(path, 0), path
        expected = set()
        for node in ast.walk(ast.parse(path.read_text(errors="replace"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                expected.update(word for each in node.names for word in each.name.split("."))
                expected.update((getattr(node, "module", None) or "").split("."))
        assert found - {""} == expected - {""}, path
        n_words += len(found)
    assert n_words > 1_000


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("from .a import (b, # no ) here\n  c)", {"a", "b", "c"}),
        ("import a, \\\n  b.c as d", {"a", "b", "c"}),
        ("'from x import'; import a", {"a"}),
        ("'from ('; import a\nfrom . import b", {"a", "b"}),
        ("import \ufb01le", {"file"}),
        ("import a\ndef f(: pass", None),
        ("import_module('a')", None),
    ],
)
def test_what_looks_like_an_import_misses_none(tmp_path: Path, code: str, words: set[str] | None) -> None:
    path = tmp_path / "a.py"
    path.write_text(code, encoding="utf-8")
    found = python_modules._words_in_file(path, 0)
    assert (None if found is None else found - {""}) == words
    assert python_modules._is_certain(path, 0) == (words is not None)
    assert (words or set()) <= python_modules._words_like_imports(path, 0)
