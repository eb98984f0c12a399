"""The wheel holds every package, nothing can be imported twice, and the tree speaks of no machine."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from paths import ROOT

TOP = {"analysis": ROOT / "analysis", "maskstore": ROOT / "maskstore", "decoding": ROOT / "decoding"}


def folders() -> set[str]:
    """Import names of all folders that hold Python files."""
    found = {
        ".".join(("maskwright", *folder.relative_to(ROOT / "src" / "maskwright").parts))
        for folder in [ROOT / "src" / "maskwright", *(ROOT / "src" / "maskwright").rglob("*")]
        if folder.is_dir() and not folder.is_symlink() and any(folder.glob("*.py"))
    }
    for top in TOP.values():
        for folder in [top, *top.rglob("*")]:
            if folder.is_dir() and any(folder.glob("*.py")):
                found.add(".".join(("maskwright", *folder.relative_to(ROOT).parts)))
    return found


def test_pyproject_lists_every_package() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert set(settings["packages"]) == folders()
    for name, folder in TOP.items():
        assert settings["package-dir"][f"maskwright.{name}"] == name
        link = ROOT / "src" / "maskwright" / name
        assert link.is_symlink() and link.resolve() == folder


@pytest.mark.parametrize("name", sorted(TOP))
def test_top_level_import_is_refused(name: str) -> None:
    run = subprocess.run([sys.executable, "-c", f"import {name}"], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 1
    assert f"import maskwright.{name}, not {name}" in run.stderr


def test_every_public_name_exists() -> None:
    import maskwright

    for name in maskwright.__all__:
        assert getattr(maskwright, name) is not None
    assert set(maskwright.__all__) <= set(dir(maskwright))
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        maskwright.nonsense  # noqa: B018


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, maskwright, maskwright.cli; maskwright.cli.app; "
        "print(sorted({'numba', 'torch', 'transformers', 'networkx', 'lark'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_analysis_and_store_need_no_torch() -> None:
    code = (
        "import sys, maskwright as mw; mw.build_store; mw.analyze; mw.ReferenceDecoder; mw.load_vocabulary; "
        "print(sorted({'torch', 'transformers', 'pyformlang'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def tracked_files() -> list[Path]:
    run = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if run.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in run.stdout.split("\0") if name]


def test_the_tree_speaks_of_no_machine() -> None:
    # spelled in pieces, or this file would find itself
    forbidden = re.compile(
        "|".join(["/" + "work/", "/" + "root/", "py" + r"pi\.org", "python" + "hosted", "/home/" + r"\w"])
    )
    for path in tracked_files():
        if path.is_symlink() or not path.is_file():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found = forbidden.search(text)
        assert found is None, f"{path.relative_to(ROOT)} holds {found and found.group()!r}"


@pytest.mark.slow
def test_wheel_holds_everything(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "build", "--outdir", str(tmp_path), str(ROOT)], check=True, capture_output=True
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    for package in folders():
        assert f"{package.replace('.', '/')}/__init__.py" in names
    assert "maskwright/py.typed" in names
    assert not any(name.startswith(("analysis/", "maskstore/", "decoding/", "tests/")) for name in names)


@pytest.mark.parametrize(
    "name",
    [
        *(f"decoding.generation.{name}" for name in ("Completion", "Generation", "Sampler", "Step", "generate")),
        *(f"decoding.gpu.{name}" for name in ("STATES", "GpuBatch")),
        *(f"decoding.explain.{name}" for name in ("explain_id", "explain_next", "explain_text", "explain_token")),
        *(f"decoding.reference.{name}" for name in ("ReferenceDecoder", "check_same_masks")),
        *(f"decoding.adapters.{name}" for name in ("MaskwrightLogitsProcessor", "apply_mask")),
        *(f"maskstore.vocabulary.{name}" for name in ("BUILT_IN", "LONGEST_TOKEN", "Vocabulary", "VocabularySource")),
        *(f"maskstore.vocabulary.{name}" for name in ("as_vocabulary", "load_vocabulary", "post_tokens")),
    ],
)
def test_names_are_where_they_were(name: str) -> None:
    """Those of modules that have become folders."""
    module, _, last = name.rpartition(".")
    found = importlib.import_module(f"maskwright.{module}")
    assert last in found.__all__ and hasattr(found, last)
