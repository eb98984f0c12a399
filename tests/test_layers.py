"""Data flows one way: a layer imports only from itself and from the layers to its left."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = ("analysis", "maskstore", "decoding", "maskwright")
FOLDERS = {"analysis": ROOT / "analysis", "maskstore": ROOT / "maskstore", "decoding": ROOT / "decoding"}
FOLDERS["maskwright"] = ROOT / "src" / "maskwright"
LATE = {("maskstore/automaton_store.py", "maskwright.decoding.engine.matcher")}
"""A store makes matchers: it imports the layer to its right for their types, and when somebody asks for one, never at once."""
HEAVY = ("torch", "transformers", "vllm", "pyformlang", "mistral_common", "sentencepiece", "tokenizers", "tiktoken")


def sources(layer: str) -> list[Path]:
    """The layer's files; the front door's folder links to the other layers', which are theirs."""
    folder = FOLDERS[layer]
    found = [path for path in folder.rglob("*.py") if path.resolve().is_relative_to(folder.resolve())]
    return sorted(p for p in found if layer != "maskwright" or p.relative_to(folder).parts[0] not in LAYERS)


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """The modules that a file imports, dotted, and whether it does so when it is itself imported."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    late = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) or is_for_types(node)]
    inside = {id(node) for block in late for node in ast.walk(block)}
    for node in ast.walk(tree):
        at_once = id(node) not in inside
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, at_once
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.relative_to(ROOT)}:{node.lineno} imports relatively"
            for alias in node.names:
                yield f"{node.module}.{alias.name}", at_once


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
        for module, at_once in imports(path):
            found = layer_of(module)
            is_late = not at_once and (str(path.relative_to(ROOT)), module.rpartition(".")[0]) in LATE
            assert found is None or found in allowed or is_late, f"{path.relative_to(ROOT)} imports {module}"
            assert module.split(".")[0] not in ("analysis", "maskstore", "decoding"), (
                f"{path.relative_to(ROOT)} imports {module} past the package"
            )


@pytest.mark.parametrize("layer", LAYERS)
def test_heavy_packages_are_imported_where_they_are_needed(layer: str) -> None:
    for path in sources(layer):
        for module, at_once in imports(path):
            assert not (at_once and module.split(".")[0] in HEAVY), f"{path.relative_to(ROOT)} imports {module} at once"


def test_legality_knows_nothing_of_lexing() -> None:
    for path in (ROOT / "analysis" / "legality").glob("*.py"):
        for module, _ in imports(path):
            assert not module.startswith("maskwright.analysis.lexing"), f"{path.name} imports {module}"


def test_a_second_copy_of_the_classes_cannot_be_imported() -> None:
    """From the repository's root `import analysis` would find the folder; it is refused."""
    for name in FOLDERS.keys() - {"maskwright"}:
        run = subprocess.run([sys.executable, "-c", f"import {name}"], cwd=ROOT, capture_output=True, text=True)
        assert run.returncode and f"import maskwright.{name}, not {name}" in run.stderr
