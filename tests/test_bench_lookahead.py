"""The script that measures Domino's lookahead: where lexemes begin in tokens, and texts cut at them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from bench_scripts import bench_script
from engine_cases import longest
from naive_lexing import NaiveLexing

from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.stores.build import compile_store

WORDS = """
start: (NAME | NUMBER | EXPONENT | "(" | ")" | STRING)+
NAME: /[a-z]+/
NUMBER: /[0-9]+/
EXPONENT: /[0-9]+e[0-9]+/
STRING: /"[^"]*"/
WS: / +/
%ignore WS
"""


@pytest.fixture(scope="module")
def lookahead() -> Iterator[Any]:
    with bench_script("lookahead") as script:
        yield script


def begins_of(naive: NaiveLexing, text: bytes) -> set[int]:
    """Where the lexemes of a text begin, by its longest matches; the last one may be unfinished."""
    begin, found = 0, set()
    while begin < len(text):
        found.add(begin)
        _, end, state = naive.scan(text, begin)
        if state >= 0:
            break
        begin = end
    return found


def test_borders_are_those_of_the_whole_text(lookahead: Any) -> None:
    grammar, rng = longest(WORDS), random.Random(1)
    pieces = [
        b"a",
        b"ab",
        b"1",
        b"12e",
        b"e",
        b"3",
        b"(",
        b")(",
        b" ",
        b" a",
        b'"',
        b'"x',
        b'" (',
        b"a)",
        b"))1",
        b"b (c)",
    ]
    store = compile_store(grammar, Vocabulary("pieces", (*pieces, b""), {len(pieces): "</s>"}, (len(pieces),)))
    naive, borders = NaiveLexing(grammar), lookahead.Borders(store)
    compared = 0
    for _ in range(60):
        matcher, place, text = store.matcher(), borders.start, b""
        for _ in range(12):
            legal = np.array([matcher.is_allowed(token) for token in range(len(pieces))] + [False])
            counts = borders.counts(place, legal)
            for token in np.flatnonzero(legal).tolist():
                begins = begins_of(naive, text + pieces[token])
                assert counts[token] == sum(at > len(text) for at in begins), (text, pieces[token])
                compared += 1
            token = int(rng.choice(np.flatnonzero(legal)))
            matcher.advance(token)
            place = borders.behind(place, pieces[token])
            text += pieces[token]
    assert compared > 1000


@pytest.mark.parametrize(
    ("k", "pieces"),
    [(0, [b"(", b")", b":", b"x"]), (1, [b"()", b":x"]), (2, [b"():", b"x"]), (3, [b"():x"]), (None, [b"():x"])],
)
def test_tokens_are_cut_as_rarely_as_possible(lookahead: Any, k: int | None, pieces: list[bytes]) -> None:
    assert lookahead.cut([1, 2, 3], b"():x", k) == pieces
