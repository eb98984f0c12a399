"""The script that measures Domino's lookahead: texts cut where lexemes begin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from bench_scripts import bench_script


@pytest.fixture(scope="module")
def lookahead() -> Iterator[Any]:
    with bench_script("lookahead") as script:
        yield script


@pytest.mark.parametrize(
    ("k", "pieces"),
    [(0, [b"(", b")", b":", b"x"]), (1, [b"()", b":x"]), (2, [b"():", b"x"]), (3, [b"():x"]), (None, [b"():x"])],
)
def test_tokens_are_cut_as_rarely_as_possible(lookahead: Any, k: int | None, pieces: list[bytes]) -> None:
    assert lookahead.cut([1, 2, 3], b"():x", k) == pieces
