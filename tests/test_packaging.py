"""The wheel holds every package, nothing can be imported twice, and the tree speaks of no machine."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from paths import ROOT

from maskwright.analysis.ahead import VARIANTS, entry_modules, wanted

TOP = {"analysis": ROOT / "analysis", "maskstore": ROOT / "maskstore", "decoding": ROOT / "decoding"}


def folders() -> dict[str, Path]:
    """Import names of all folders that hold Python files -> the folders."""
    found = {
        ".".join(("maskwright", *folder.relative_to(ROOT / "src" / "maskwright").parts)): folder
        for folder in [ROOT / "src" / "maskwright", *(ROOT / "src" / "maskwright").rglob("*")]
        if folder.is_dir() and not folder.is_symlink() and any(folder.glob("*.py"))
    }
    for top in TOP.values():
        for folder in [top, *top.rglob("*")]:
            if folder.is_dir() and any(folder.glob("*.py")):
                found[".".join(("maskwright", *folder.relative_to(ROOT).parts))] = folder
    return found


def test_pyproject_lists_every_package() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert set(settings["packages"]) == set(folders())
    for name, folder in TOP.items():
        assert settings["package-dir"][f"maskwright.{name}"] == name
        link = ROOT / "src" / "maskwright" / name
        assert link.is_symlink() and link.resolve() == folder


def test_the_version_is_one_everywhere() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    citation = (ROOT / "CITATION.cff").read_text().splitlines()
    sections = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert f"version: {version}" in citation
    assert version in sections and sections.index(version) <= sections.count("Unreleased")


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


def test_what_builds_a_wheel_is_in_the_source_distribution() -> None:
    named = (ROOT / "MANIFEST.in").read_text()
    for needed in (
        "scripts/build_backend.py",
        "scripts/compile_kernels.py",
        "CHANGELOG.md",
        "CITATION.cff",
        "SECURITY.md",
    ):
        assert needed in named and (ROOT / needed).is_file()


def built(folder: Path, **environment: str) -> Path:
    """A wheel, made of what the source distribution holds."""
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, env=os.environ | environment, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def needs(wheel: Path) -> list[str]:
    """What an installation of a wheel brings along."""
    with zipfile.ZipFile(wheel) as file:
        (metadata,) = (name for name in file.namelist() if name.endswith("/METADATA"))
        text = file.read(metadata).decode()
    return [
        line.split()[1] for line in text.splitlines() if line.startswith("Requires-Dist") and "extra ==" not in line
    ]


USE = """
import sys
import numpy as np
import maskwright as mw
for name in ("json", "python"):
    store = mw.build_store(name, "python-tiny")
    matcher, batch, words = store.matcher(), store.batch(2, n_threads=2), np.zeros((2, store.n_words), np.uint32)
    matcher.fill(words[0]); batch.fill(words); matcher.advance_bytes(b"[1, "); matcher.short_ending(); matcher.explain(0)
    mw.apply_mask(np.zeros((2, store.vocabulary.size), np.float32), words)
assert mw.analyze("json", "python-tiny")
print(sorted({"numba", "llvmlite"} & set(sys.modules)))
"""


@pytest.mark.slow
def test_a_wheel_needs_neither_numba_nor_a_compiler(tmp_path: Path) -> None:
    wheel = built(tmp_path)
    names = set(zipfile.ZipFile(wheel).namelist())
    for package in folders():
        assert f"{package.replace('.', '/')}/__init__.py" in names
    assert "maskwright/py.typed" in names
    assert not any(name.startswith(("analysis/", "maskstore/", "decoding/", "tests/")) for name in names)
    assert not any(name.endswith((".nbi", ".nbc")) for name in names)
    if wheel.name.endswith("-none-any.whl"):
        pytest.skip("no extensions: there is no C compiler here")
    extensions = [name for name in names if "/_compiled_" in name]
    with_entries = {package for package, folder in folders().items() if entry_modules(str(folder))}
    expected = {package.replace(".", "/"): len(wanted(package, VARIANTS)) for package in with_entries}
    assert Counter(name.rpartition("/")[0] for name in extensions) == expected
    assert not any(need.startswith("numba") for need in needs(wheel))
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "-q", str(wheel)], check=True, capture_output=True)
    before = sorted((tmp_path / "venv").rglob("*"))
    environment = {"PATH": "/nonexistent", "HOME": str(tmp_path / "nobody"), "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run([str(python), "-c", USE], env=environment, capture_output=True, text=True, check=False)
    assert run.stdout == "[]\n" and run.stderr == ""
    assert sorted((tmp_path / "venv").rglob("*")) == before and not (tmp_path / "nobody").exists()


@pytest.mark.slow
def test_a_wheel_for_all_machines_needs_numba(tmp_path: Path) -> None:
    wheel = built(tmp_path, MASKWRIGHT_PURE="1")
    assert wheel.name.endswith("-py3-none-any.whl") and any(need.startswith("numba") for need in needs(wheel))
    assert not any("/_compiled_" in name for name in zipfile.ZipFile(wheel).namelist())


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
