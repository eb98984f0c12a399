"""Cases that are written down as data, in files under data/cases. How a file's cases read is said in it."""

from __future__ import annotations

import functools
import json
import tomllib
from typing import Any

import pytest
from paths import TESTS

CASES = TESTS / "data" / "cases"


@functools.cache
def written(name: str) -> dict[str, Any]:
    """What the file NAME.toml or NAME.json holds."""
    path = CASES / f"{name}.toml"
    if path.exists():
        return tomllib.loads(path.read_text(encoding="utf-8"))
    found: dict[str, Any] = json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))
    return found


def parameters(name: str, *tables: str) -> list[Any]:
    """Parameters for `pytest.mark.parametrize`: the cases of some lists of a file, behind the name of their list if they are several."""
    return [
        pytest.param(*([table] if len(tables) > 1 else []), *case, id=f"{table}-{number}")
        for table in tables
        for number, case in enumerate(written(name)[table])
    ]
