"""Data flows one way: a layer imports only from itself and from the layers to its left."""

from __future__ import annotations

import ast
import functools
import importlib
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from paths import ROOT

LAYERS = ("analysis", "maskstore", "decoding", "maskwright")
FOLDERS = {"analysis": ROOT / "analysis", "maskstore": ROOT / "maskstore", "decoding": ROOT / "decoding"}
FOLDERS["maskwright"] = ROOT / "src" / "maskwright"
STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)
HEAVY = ("torch", "transformers", "vllm", "pyformlang", "mistral_common", "sentencepiece", "tokenizers", "tiktoken")


@functools.cache
def sources(layer: str) -> list[Path]:
    """The layer's files; the front door's folder links to the other layers', which are theirs."""
    folder = FOLDERS[layer]
    found = [path for path in folder.rglob("*.py") if path.resolve().is_relative_to(folder.resolve())]
    return sorted(p for p in found if layer != "maskwright" or p.relative_to(folder).parts[0] not in LAYERS)


@functools.cache
def tree(path: Path) -> ast.Module:
    """A file as Python reads it. It is not to be changed."""
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def imports(path: Path) -> tuple[tuple[str, bool], ...]:
    """The modules that a file imports, dotted, and whether it does so when it is itself imported."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[tuple[str, bool]]:
    agenda: list[tuple[ast.AST, bool]] = [(tree(path), True)]
    for node, at_once in agenda:  # grows while it is read
        goes_on = at_once and not isinstance(node, ast.FunctionDef) and not is_for_types(node)
        agenda += [(child, goes_on) for child in blocks(node)]
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, at_once
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.relative_to(ROOT)}:{node.lineno} imports relatively"
            for alias in node.names:
                yield f"{node.module}.{alias.name}", at_once


def blocks(node: ast.AST) -> Iterator[ast.AST]:
    """The children that are statements or hold some; expressions hold none."""
    return (child for child in ast.iter_child_nodes(node) if isinstance(child, STATEMENTS))


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def layer_of(module: str) -> str | None:
    """The layer that a module belongs to; None for what is not ours."""
    parts = module.split(".")
    if parts[0] != "maskwright":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in LAYERS else "maskwright"


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_only_from_its_left(layer: str) -> None:
    files = sources(layer)
    assert files, f"no files in {FOLDERS[layer]}"
    allowed = LAYERS[: LAYERS.index(layer) + 1]
    for path in files:
        for module, _ in imports(path):
            found = layer_of(module)
            assert found is None or found in allowed, f"{path.relative_to(ROOT)} imports {module}"
            assert module.split(".")[0] not in ("analysis", "maskstore", "decoding"), (
                f"{path.relative_to(ROOT)} imports {module} past the package"
            )


def modules() -> dict[str, Path]:
    """All modules of the package by name; a package's own is its folder's."""
    found = {}
    for layer in LAYERS:
        for path in sources(layer):
            inside = path.relative_to(FOLDERS[layer]).with_suffix("").parts
            name = ".".join(("maskwright", *([] if layer == "maskwright" else [layer]), *inside))
            found[name.removesuffix(".__init__")] = path
    return found


@functools.cache
def graph() -> dict[str, set[str]]:
    """For each module those that it imports, wherever it does so: at once, in a function, or for types only."""
    paths = modules()
    found: dict[str, set[str]] = {}
    for name, path in paths.items():
        named = {module for module, _ in imports(path)}
        targets = {module if module in paths else module.rpartition(".")[0] for module in named}
        found[name] = (targets & paths.keys()) - {name}
    return found


def test_modules_import_each_other_in_no_circle() -> None:
    TopologicalSorter(graph()).prepare()  # raises CycleError, which names the circle


def test_folders_import_each_other_in_no_circle() -> None:
    paths = modules()

    def folder(name: str) -> str:
        """The folder of a module; the front door's own modules each stand for themselves."""
        is_own = paths[name].parent == FOLDERS["maskwright"]
        return name if paths[name].name == "__init__.py" or is_own else name.rpartition(".")[0]

    folders: dict[str, set[str]] = {}
    for name, targets in graph().items():
        folders.setdefault(folder(name), set()).update({folder(target) for target in targets} - {folder(name)})
    assert len(folders) > 20
    TopologicalSorter(folders).prepare()


def test_nothing_imports_the_front_door() -> None:
    for name, targets in graph().items():
        assert "maskwright" not in targets, f"{name} imports the package's front door"


def test_no_module_of_ours_is_imported_by_a_string() -> None:
    """But by the front door, whose table of names is for users."""
    for name, path in modules().items():
        for node in ast.walk(tree(path)):
            is_call = isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in (
                "import_module",
                "__import__",
                "find_spec",
                "resolve_name",
            )
            if is_call and name != "maskwright":
                text = ast.unparse(node)
                assert "maskwright" not in text, f"{path.relative_to(ROOT)}:{node.lineno}: {text}"


def test_the_front_door_knows_where_names_are() -> None:
    front = importlib.import_module("maskwright")
    for name, home in front._HOME.items():
        assert hasattr(importlib.import_module(home), name)
    assert front.__all__ == sorted(front._HOME)


def test_old_names_are_said_to_be_old() -> None:
    front = importlib.import_module("maskwright")
    for old, new in {"AutomatonStore": "Store", "MaskStore": "EntryStore"}.items():
        with pytest.warns(DeprecationWarning, match=f"maskwright.{old} is now called {new}"):
            assert getattr(front, old) is getattr(front, new)


@pytest.mark.parametrize("layer", LAYERS)
def test_heavy_packages_are_imported_where_they_are_needed(layer: str) -> None:
    for path in sources(layer):
        for module, at_once in imports(path):
            assert not (at_once and module.split(".")[0] in HEAVY), f"{path.relative_to(ROOT)} imports {module} at once"


def test_what_is_imported_at_once_is_installed_along() -> None:
    """Modules that need an extra are imported by those alone that need it too: where kernels are compiled,
    where a GPU is, and in the commands."""
    assigned = [node for node in tree(ROOT / "scripts" / "build_backend.py").body if isinstance(node, ast.Assign)]
    (value,) = (node.value for node in assigned if ast.unparse(node.targets[0]) == "NEEDED")
    needed = {name.partition(">")[0] for name in ast.literal_eval(value)}
    with_extras = {
        "decoding/engine/_batch_kernels.py": {"numba", "llvmlite"},
        "decoding/gpu/engine_cuda.py": {"numba"},
        "decoding/logits/apply_triton.py": {"triton"},
        "decoding/logits/selective.py": {"triton"},
        "src/maskwright/report/terminal.py": {"rich"},
        "src/maskwright/serving/settings.py": {"pydantic"},  # of servers, which need it themselves
    }
    of_the_commands = {"rich", "typer"}
    used = set()
    for layer in LAYERS:
        for path in sources(layer):
            found = {module.split(".")[0] for module, at_once in imports(path) if at_once}
            found -= {*sys.stdlib_module_names, "maskwright"}
            used |= found & needed
            name = path.relative_to(ROOT).as_posix()
            found -= of_the_commands if name.startswith("src/maskwright/cli/") else set()
            assert found <= needed | with_extras.get(name, set()), path
    assert used == needed


def test_legality_knows_nothing_of_lexing() -> None:
    for path in (ROOT / "analysis" / "legality").glob("*.py"):
        for module, _ in imports(path):
            assert not module.startswith("maskwright.analysis.lexing"), f"{path.name} imports {module}"


def test_a_second_copy_of_the_classes_cannot_be_imported() -> None:
    """From the repository's root `import analysis` would find the folder; it is refused."""
    for name in FOLDERS.keys() - {"maskwright"}:
        run = subprocess.run([sys.executable, "-c", f"import {name}"], cwd=ROOT, capture_output=True, text=True)
        assert run.returncode and f"import maskwright.{name}, not {name}" in run.stderr
