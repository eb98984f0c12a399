"""What `make demo` shows: texts that are right with masks and wrong without, a mask explained, masks that hold, a report."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest
from paths import ROOT

from maskwright.models.numpy_model import NumpyModel


def test_the_demo(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Without PyTorch, as in the environment of `make demo`."""
    pytest.importorskip("tokenizers")
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *more: None if name == "torch" else find(name, *more))
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["demo.py", str(tmp_path / "out")])
    made: list[Path] = []
    begin = NumpyModel.__init__
    monkeypatch.setattr(NumpyModel, "__init__", lambda self, folder: (made.append(folder), begin(self, folder))[1])
    spec = importlib.util.spec_from_file_location("demo", ROOT / "scripts" / "demo.py")
    assert spec is not None and spec.loader is not None
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)
    demo.main()
    text = capsys.readouterr().out
    assert len(made) == 1
    for parser in ("json.loads", "ast.parse"):
        assert f"without masks: WRONG, says {parser}: " in text and f"with masks: right, says {parser}\n" in text
    assert 'expected "high", "low" or "medium"' in text
    assert re.search(r"\d+ files of the standard library, [\d,]{6,} tokens: all allowed", text)
    assert re.search(r"[\d,]+ entries of a mask store become [\d,]+, with the same masks", text)
    report = Path(re.findall(r"the report: file://(\S+)", text)[0])
    assert report.is_file() and report.read_text().startswith("<!DOCTYPE html>")
