"""Machine code is kept under a checksum of all that it was made of, and somewhere in any case."""

from __future__ import annotations

import ast
import functools
import importlib
import os
import shutil
import subprocess
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from jitted import kernels_put_back
from paths import ROOT
from shares import share

from maskwright.analysis import jit, kernel_sources
from maskwright.analysis.ahead import JIT_VARIABLE

FILES = sorted(
    path
    for folder in ("analysis", "maskstore", "decoding")
    for path in (ROOT / folder).rglob("*.py")
    if kernel_sources.has_kernels(path.read_bytes())
)


def module_of(path: Path) -> ModuleType:
    return importlib.import_module("maskwright." + ".".join(path.relative_to(ROOT).with_suffix("").parts))


def kernels_of(module: ModuleType) -> Iterator[Any]:
    for value in vars(module).values():
        if hasattr(value, "py_func") and value.py_func.__module__ == module.__name__:
            yield value


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_code_is_kept_under_the_checksum(path: Path) -> None:
    module = module_of(path)
    functions = list(kernels_of(module))
    assert functions
    before = dict(vars(module))
    with kernels_put_back():
        for function in functions:
            folder = Path(function._cache.cache_path).parent.name
            assert folder == f"{path.stem.strip('_')}-{kernel_sources.checksum(str(module.__file__)):08x}"
    assert dict(vars(module)) == before


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_kernels_use_is_imported_from_where_it_is_defined(path: Path) -> None:
    """Else the checksum would not be of the file that it comes from."""
    module = module_of(path)
    used = {name for function in kernels_of(module) for name in function.py_func.__code__.co_names}
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("maskwright"):
            continue
        source = importlib.import_module(str(node.module))
        for name in (alias.name for alias in node.names if (alias.asname or alias.name) in used):
            if isinstance(getattr(source, name), ModuleType):
                continue
            assert name in defined_in(Path(str(source.__file__))), f"{name} of {node.module}"


@functools.cache
def defined_in(path: Path) -> frozenset[str]:
    """The names that a module defines itself."""
    defined = ast.parse(path.read_text()).body
    targets = {
        found.id
        for one in defined
        if isinstance(one, ast.Assign | ast.AnnAssign)
        for target in (one.targets if isinstance(one, ast.Assign) else [one.target])
        for found in ast.walk(target)
        if isinstance(found, ast.Name)
    }
    return frozenset(targets | {getattr(one, "name", "") for one in defined})


PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
from maskwright.analysis import jit, kernel_sources
jit.PACKAGE = kernel_sources.PACKAGE = {folder!r} + "/maskwright"
from maskwright.outer import twice
print(twice(1), len(twice.stats.cache_hits))
"""

OUTER = """
from maskwright.analysis.jit import kernel
from maskwright.inner import add
@kernel
def twice(x):
    return add(add(x))
"""

INNER = """
from maskwright.analysis.jit import kernel
from maskwright.constants import (
    STEP,
)
@kernel
def add(x):
    return x + STEP
"""


def copy_jit(folder: Path) -> None:
    """What `kernel` needs."""
    for name in ("jit", "addresses", "ahead", "arrays", "kernel_sources", "errors", "locks"):
        shutil.copy(Path(jit.__file__).with_name(f"{name}.py"), folder)


@pytest.mark.slow
def test_a_change_of_another_file_is_noticed(tmp_path: Path) -> None:
    """Of a constant that a function uses which a function of another file calls."""
    package = tmp_path / "maskwright"
    (package / "analysis").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "analysis" / "__init__.py").write_text("")
    copy_jit(package / "analysis")
    (package / "outer.py").write_text(OUTER)
    (package / "inner.py").write_text(INNER)

    def run(step: int) -> str:
        (package / "constants.py").write_text(f"STEP = {step}\n")
        program = [sys.executable, "-B", "-c", PROGRAM.format(folder=str(tmp_path))]
        environment = os.environ | {jit.CACHE_VARIABLE: str(tmp_path / "code")}
        return subprocess.run(program, capture_output=True, text=True, check=True, env=environment).stdout

    assert [run(1), run(1), run(5), run(1)] == ["3 0\n", "3 1\n", "11 0\n", "3 1\n"]


@pytest.fixture
def anywhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No folder is chosen yet, and none is named."""
    monkeypatch.setenv(jit.CACHE_VARIABLE, "")  # what there is now is put back in the end
    monkeypatch.delenv(jit.CACHE_VARIABLE)
    jit.code_folder.cache_clear()
    yield
    jit.code_folder.cache_clear()


@pytest.mark.usefixtures("anywhere")
def test_a_folder_of_the_process_where_there_is_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "_can_write", lambda folder: False)
    with pytest.warns(RuntimeWarning, match="compiled code can be kept neither in .* nor in .*; set NUMBA_CACHE_DIR"):
        folder = Path(jit.code_folder(""))
    assert folder.is_dir() and folder.stat().st_mode & 0o077 == 0
    assert os.environ[jit.CACHE_VARIABLE] == str(folder)
    jit._remove(os.getpid() + 1, str(folder))
    assert folder.is_dir()  # another process's
    jit._remove(os.getpid(), str(folder))
    assert not folder.exists()


@pytest.mark.usefixtures("anywhere")
def test_folders_in_their_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert jit.code_folder(str(tmp_path / "named")) == str(tmp_path / "named")
        assert jit.code_folder("") == os.path.join(jit.PACKAGE, "__pycache__")
        jit.code_folder.cache_clear()
        monkeypatch.setattr(jit, "_can_write", lambda folder: folder.startswith(str(tmp_path)))
        assert jit.code_folder("") == str(tmp_path / "maskwright-kernels")
    with pytest.warns(RuntimeWarning, match="NUMBA_CACHE_DIR names /named, where nothing can be written"):
        assert jit.code_folder("/named") == str(tmp_path / "maskwright-kernels")


@pytest.mark.parametrize("has_others", share([True, False], 1))
def test_code_that_cannot_be_written_is_not_kept_elsewhere(tmp_path: Path, has_others: bool) -> None:
    """A file has the folder's name, so Numba would go on to places where nobody looks at the checksum, if there are others."""
    package = tmp_path / "maskwright"
    (package / "analysis").mkdir(parents=True)
    for name, text in {"__init__.py": "", "analysis/__init__.py": "", "outer.py": OUTER, "inner.py": INNER}.items():
        (package / name).write_text(text)
    (package / "constants.py").write_text("STEP = 1\n")
    copy_jit(package / "analysis")
    code = tmp_path / "code"
    code.mkdir()
    program = PROGRAM.format(folder=str(tmp_path)).replace(
        "from maskwright.outer",
        "open({!r} + '/outer-%08x' % kernel_sources.checksum({!r}), 'w').close()\nfrom maskwright.outer".format(
            str(code), str(package / "outer.py")
        ),
    )
    if not has_others:
        named_only = "from numba.core.caching import CompileResultCacheImpl as Impl\nImpl._locator_classes = Impl._locator_classes[:1]\n"
        program = named_only + program
    environment = os.environ | {jit.CACHE_VARIABLE: str(code)}
    found = subprocess.run(
        [sys.executable, "-B", "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    assert found.stdout == "3 0\n" and "compiled code cannot be written to" in found.stderr
    assert not list(package.rglob("*.nb?"))


RETURNS = """
import sys
import numpy as np
import maskwright as mw
from numba import types
from maskwright.maskstore.automaton.stack_automaton import Budget, build_automaton

def holds_array(kind):
    if isinstance(kind, types.BaseTuple):
        return any(holds_array(one) for one in kind)
    return isinstance(kind, types.Array)

vocabulary = mw.load_vocabulary("python-tiny")
for grammar in ("lark:python", "json"):
    store = mw.build_store(grammar, vocabulary)
    matcher = store.matcher()
    matcher.advance_bytes(b"[1")
    matcher.fill(np.zeros(store.n_words, np.int32))
    matcher.short_ending()
build_automaton(mw.load_grammar("json"), vocabulary, budget=Budget(edges=2))
n = 0
for name, module in list(sys.modules.items()):
    if name.startswith("maskwright."):
        for function in vars(module).values():
            for overload in getattr(function, "overloads", {}).values():
                n += 1
                counts = function.targetoptions["_nrt"]
                assert counts or not holds_array(overload.signature.return_type), function.__name__
print(n)
"""


@pytest.mark.slow
def test_kernels_that_return_arrays_count_references(tmp_path: Path) -> None:
    """All kernels are compiled anew here: of those that others call there is nothing to look at otherwise."""
    environment = os.environ | {jit.CACHE_VARIABLE: str(tmp_path), JIT_VARIABLE: "1"}
    found = subprocess.run([sys.executable, "-c", RETURNS], capture_output=True, text=True, check=True, env=environment)
    assert int(found.stdout) > 150


def test_folders_that_have_to_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(jit.os, "access", lambda folder, mode: asked.append(folder) or folder == str(tmp_path))
    assert jit._can_write(str(tmp_path / "a" / "b"))
    assert asked == [str(tmp_path)]
    assert not jit._can_write("/")
    monkeypatch.chdir(tmp_path)
    assert jit._can_write("a") and jit._can_write(os.path.join("a", "b"))


def test_code_for_types_that_are_gone_is_compiled_anew(tmp_path: Path) -> None:
    """A named tuple of a caller that is elsewhere in the next version."""
    files = [
        tmp_path / name
        for name in ("f-1.py311.nbi", "f-1.py311.1.nbc", "f-1.py311.12.nbc", "f-11.py311.1.nbc", "g-1.py311.nbi")
    ]
    for file in files:
        file.write_bytes(b"")

    def lost() -> None:
        raise AttributeError("Can't get attribute '_Runs'")

    index = types.SimpleNamespace(_index_path=str(files[0]), _load_index=lost)
    jit._forget_lost_types(index)
    assert index._load_index() == {}
    assert sorted(tmp_path.iterdir()) == sorted(files[3:])
    numba_file = pytest.importorskip("numba.core.caching").IndexDataCacheFile(str(tmp_path), "f-1.py311", 0)
    assert Path(numba_file._index_path) == files[0] and numba_file._load_index() == {}
    numba_file._save_index({"a": "f-1.py311.1.nbc"})
    jit._forget_lost_types(numba_file)
    assert numba_file._load_index() == {"a": "f-1.py311.1.nbc"}
