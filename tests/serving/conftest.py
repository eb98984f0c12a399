"""What tests of requests share: a cache of their own, and a compiler."""

from __future__ import annotations

from pathlib import Path

import pytest

from maskwright.serving.requests import RequestCompiler


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def compiler() -> RequestCompiler:
    return RequestCompiler("python-tiny")
