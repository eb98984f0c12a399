"""Where compiled code can be kept nowhere, it is kept for the process, with a warning; it was an error from each compiled function."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest

from maskwright import kernel_cache


def test_a_folder_of_the_process_where_there_is_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernel_cache.VARIABLE, "")  # what there is now is put back in the end
    monkeypatch.delenv(kernel_cache.VARIABLE)
    monkeypatch.setattr(kernel_cache, "_can_write", lambda folder: False)
    monkeypatch.setitem(kernel_cache.sys.modules, "numba", type("Numba", (), {"config": type("Config", (), {})}))
    with pytest.warns(
        RuntimeWarning, match="compiled code can be kept neither in /opt/package nor in .*; set NUMBA_CACHE_DIR"
    ):
        kernel_cache.settle("/opt/package")
    folder = Path(os.environ[kernel_cache.VARIABLE])
    assert folder.is_dir() and folder.stat().st_mode & 0o077 == 0
    assert str(folder) == kernel_cache.sys.modules["numba"].config.CACHE_DIR
    kernel_cache._remove(os.getpid() + 1, str(folder))
    assert folder.is_dir()  # another process's
    kernel_cache._remove(os.getpid(), str(folder))
    assert not folder.exists()


@pytest.mark.parametrize("named", [True, False])
def test_what_numba_can_use_is_left_to_it(named: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(kernel_cache.VARIABLE, "")  # what there is now is put back in the end
    monkeypatch.delenv(kernel_cache.VARIABLE)
    if named:
        monkeypatch.setenv(kernel_cache.VARIABLE, "/named")
        monkeypatch.setattr(kernel_cache, "_can_write", lambda folder: False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel_cache.settle(str(tmp_path))
    assert os.environ.get(kernel_cache.VARIABLE) == ("/named" if named else None)


def test_folders_that_have_to_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(kernel_cache.os, "access", lambda folder, mode: asked.append(folder) or folder == str(tmp_path))
    assert kernel_cache._can_write(str(tmp_path / "a" / "b"))
    assert asked == [str(tmp_path)]
    assert not kernel_cache._can_write("/")
