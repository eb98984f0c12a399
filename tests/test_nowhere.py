"""A working directory that is gone, and paths that no file can have: an error in one line, of the class that the call has."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import maskwright as mw
from maskwright.analysis.files import absolute
from maskwright.stores.cache import clear_cache, missing_folders, trim_cache, warm_cache

TINY = mw.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])


@pytest.fixture
def nowhere(tmp_path: Path) -> Iterator[Path]:
    """A working directory that is deleted; the folder above it is still there."""
    before = os.getcwd()
    (tmp_path / "gone").mkdir()
    os.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    yield tmp_path
    os.chdir(before)


CALLS: dict[str, tuple[Callable[[Any], object], type[mw.MaskwrightError]]] = {
    "load_store": (mw.load_store, mw.StoreError),
    "load_store, mapped": (lambda path: mw.load_store(path, mapped=True), mw.StoreError),
    "save": (lambda path: mw.build_store('start: "a"', TINY).save(path), mw.StoreError),
    "load_vocabulary": (mw.load_vocabulary, mw.MaskwrightError),
    "load_grammar": (mw.load_grammar, mw.MaskwrightError),
    "load_schema": (lambda path: mw.load_schema(Path(path)), mw.SchemaError),
    "documents": (lambda path: mw.load_schema(True, documents=path), mw.SchemaError),
    "build_store": (lambda path: mw.build_store(Path(path), TINY), mw.MaskwrightError),
    "read_composition": (lambda path: mw.read_composition(Path(path)), mw.MaskwrightError),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_relative_path_where_the_working_directory_is_gone(call: str, nowhere: Path) -> None:
    work, kind = CALLS[call]
    with pytest.raises(kind) as error:
        work("a.lark" if call != "save" else "a.safetensors")
    assert "\n" not in str(error.value)


def test_absolute_paths_are_as_ever(nowhere: Path) -> None:
    store = mw.build_store('start: "a"', TINY)
    store.save(nowhere / "a.safetensors")
    assert mw.load_store(nowhere / "a.safetensors", mapped=True).vocabulary.size == TINY.size
    assert absolute("a") == "a" and absolute(nowhere / "a") == str(nowhere / "a")


def test_a_relative_cache_where_the_working_directory_is_gone(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASKWRIGHT_CACHE", "cache")
    store = mw.cached_store('start: "a"', TINY)  # built each time
    assert isinstance(store, mw.Store) and store.matcher().try_bytes(b"a")
    for call in (missing_folders, lambda: warm_cache('start: "a"', TINY)):
        with pytest.raises(
            mw.StoreError, match="the cache folder cache cannot be found: No such file or directory; set"
        ):
            call()
    assert clear_cache() == trim_cache(0) == 0


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("path", ["x" * 5000, "a\0b", "\ud800x", __file__ + "/x", "~nobody/x", "/dev/full"])
def test_paths_that_no_file_can_have(call: str, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    work, kind = CALLS[call]
    with pytest.raises(kind):
        work(path)


@pytest.mark.parametrize(
    "arguments",
    [
        ["info", "a.safetensors"],
        ["export", "json", "-t", "python-tiny", "-o", "q.safetensors"],
        pytest.param(["verify", "a.safetensors"], marks=pytest.mark.slow),
        pytest.param(["complete", "json", "[1", "--max-tokens", "2"], marks=pytest.mark.slow),
        pytest.param(["lint", "a.lark"], marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_commands_where_the_working_directory_is_gone(arguments: list[str], nowhere: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "maskwright", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ") and "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["x" * 5000, "a..b/c"])
def test_models_that_no_folder_and_no_hub_can_have(name: str) -> None:
    pytest.importorskip("transformers")
    with pytest.raises(mw.UnknownNameError, match="no model is named"):
        mw.complete(mw.build_store("json", "python-tiny"), "[1", model=name, max_tokens=1)
