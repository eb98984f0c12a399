"""A model's folder to spoil."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from random_model import save_model


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    save_model(folder)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path / "cache"))
    return Path(shutil.copytree(made, tmp_path / "model"))
