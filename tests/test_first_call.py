"""Where nothing is compiled yet, what the first call compiles is said before it does."""

from __future__ import annotations

from pathlib import Path

import pytest
from paths import ROOT

import maskwright as mw
from maskwright.analysis import jit
from maskwright.stores import first_call


@pytest.mark.parametrize("package", ["engine", "schema"])
def test_it_is_said_once(
    package: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setattr(first_call, "extension", lambda package: None)
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    monkeypatch.setenv(jit.CACHE_VARIABLE, str(tmp_path))

    def said() -> str:
        caplog.clear()
        mw.build_store('start: "a"' if package == "engine" else {"const": 1}, [b"a", b"1"])
        return caplog.text

    first_call._say_once.cache_clear()
    found = said()
    what = "grammars" if package == "engine" else "schemas and patterns"
    assert "without compiled kernels (no C compiler, or MASKWRIGHT_PURE)" in found and str(tmp_path) in found
    assert f"compiles those of {what} now, at the first calls: for about a minute, once" in found
    assert said() == ""
    first_call._say_once.cache_clear()
    path = ROOT / "src" / "maskwright" / "decoding" / package / "_mask_kernels.py"
    (tmp_path / f"mask_kernels-{first_call.checksum(str(path)):08x}").mkdir()
    assert said() == ""
    first_call._say_once.cache_clear()
