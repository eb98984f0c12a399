"""Store files that are cut off, altered or of another kind: always a StoreError, never anything else."""

from __future__ import annotations

import errno
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save
from stores import COMMITTED, framed, refusal

from maskwright.analysis.errors import StoreError
from maskwright.maskstore.file import fileformat
from maskwright.maskstore.file.fileformat import store_info
from maskwright.stores.store import load_store

SOMETHING = {"w": np.zeros(3, np.float32)}


@pytest.fixture(scope="module")
def good() -> Path:
    """A store that no change elsewhere can alter, so that its numbers can stand in messages."""
    return COMMITTED / "version-2.safetensors"


@settings(deadline=None, max_examples=100)
@given(content=st.binary(max_size=200), length=st.integers(0, 300))
def test_random_content(tmp_path_factory: pytest.TempPathFactory, content: bytes, length: int) -> None:
    path = tmp_path_factory.mktemp("random") / "s"
    path.write_bytes(struct.pack("<Q", length) + content)
    refusal(path)


# Not a store at all


def test_missing_folder_pipe_and_unreadable(good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "there is no store" in refusal(tmp_path / "none")
    assert "check the path, or make one with `maskwright export`" in refusal(tmp_path / "none" / "s", store_info)
    assert "is not a file; expected one that `maskwright export` wrote" in refusal(tmp_path)
    assert "is not a file" in refusal(Path("/dev/null"))
    assert "cannot be read: File name too long" in refusal(tmp_path / ("x" * 300))
    assert re.search("cannot be read: (stat: )?embedded null (byte|character)", refusal(tmp_path / "a\0b"))

    def denied(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(fileformat, "safe_open", denied)
    assert "cannot be read: Permission denied" in refusal(good)


def test_a_store_that_may_not_be_read_is_not_said_to_be_missing(good: Path, tmp_path: Path) -> None:
    copy = tmp_path / "store"
    copy.write_bytes(good.read_bytes())
    copy.chmod(0)
    code = f"import maskwright as mw; mw.load_store({str(copy)!r})"
    as_nobody = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    if as_nobody and shutil.which("setpriv") is None:
        pytest.skip("root reads every file, and there is no setpriv here")
    run = subprocess.run([*as_nobody, sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "cannot be read: Permission denied" in run.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a whole safetensors file"),
        (b"\xff" * 8 + b"{}", "is not a whole safetensors file"),
        (struct.pack("<Q", 1 << 26) + b"{}", "is not a whole safetensors file"),
        (b'{"a": 1}', "is not a whole safetensors file"),
        (b"\x80\x04\x95" + b"pickle" * 10, "is not a whole safetensors file"),
        (framed('{"a":' * 10_000), "is not a whole safetensors file"),
        (
            framed('{"a":{"dtype":"I64","shape":[4611686018427387904,4],"data_offsets":[0,0]}}'),
            "not a whole safetensors",
        ),
        (framed('{"a":{"dtype":"U8","shape":[9],"data_offsets":[0,1]}}', b"x"), "not a whole safetensors"),
        (framed('{"__metadata__":{"maskwright":1}}'), "not a whole safetensors"),
        (
            framed("{}"),
            r"is a safetensors file, but not a mask store: its metadata has the keys \[\], expected \['mask",
        ),
        (save(SOMETHING, {"format": "pt"}), r"has the keys \['format'\], expected \['maskwright'\]; make a store"),
        (save(SOMETHING, {"maskwright": "{}", "format": "pt"}), r"has the keys \['format', 'maskwright'\], expected"),
    ],
)
def test_files_of_another_kind(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "other").write_bytes(content)
    for read in (load_store, store_info):
        with pytest.raises(StoreError, match=message):
            read(tmp_path / "other")
