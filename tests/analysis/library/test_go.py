"""The grammar go: cases by hand, held against gofmt as well where Go 1.22 is installed, drawn texts, files of the data."""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from library_cases import byte_parser, records
from paths import ROOT
from written_cases import written

sys.path.insert(0, str(ROOT / "reports" / "bench"))
import gofmt

OPENINGS = ("package p\n", "func f() {", "type T ", "var x = ", "func (", "func f() { for ", "func f() { if ", "func f() { switch ",
            "func f() { select { case ", "type T[P", "type T interface {", "type T struct {", "func f[", "func f(a", "var x func(",
            "func f() { x[", "func f() { x(", "func f() { switch x { case ")  # fmt: skip

PROGRAM = "package p ;var x = f ( a , & T { 1 : b . c [ 2 : ] } ... ) ;func ( r * R ) g ( ) { for range c { h <- 1 } }"
ENDS = {"p", "x", "f", "a", "T", "1", "b", "c", "2", "R", "r", "g", ")", "]", "}"}


@functools.cache
def file_cases() -> dict[str, list[dict[str, object]]]:
    return written("go")


def drawn(n: int, seed: int) -> Iterator[bytes]:
    """Texts that begin in various places of the grammar, go on byte by byte under the masks, and are closed by a shortest ending."""
    chosen = random.Random(seed)
    store = byte_parser("go").store
    matcher = store.matcher(0)
    words = np.zeros(store.n_words, np.uint32)
    for _ in range(n):
        matcher.reset()
        opening = chosen.choice(OPENINGS)
        data = bytearray((opening if opening.startswith("package") else f"package p\n{opening}").encode())
        matcher.advance_bytes(bytes(data))
        for _ in range(chosen.randrange(100)):
            matcher.fill(words)
            allowed = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")[:256]).tolist()
            if not allowed:
                break
            common = [b for b in allowed if 32 <= b < 127 and (b not in b"/`\"'" or chosen.random() < 0.1)]
            common = [b for b in common if not chr(b).isalnum() or chosen.random() < 0.3]
            data.append(chosen.choice(common if common and chosen.random() < 0.99 else allowed))
            matcher.advance(data[-1])
        data += matcher.shortest_ending().data
        assert byte_parser("go").refusal(bytes(data)) is None
        yield bytes(data)


def needs_gofmt() -> None:
    why = gofmt.missing()
    if why is not None:
        pytest.skip(why)


def test_gofmt_says_the_same_of_the_cases() -> None:
    needs_gofmt()
    cases = file_cases()
    texts = [str(case["text"]).encode() for kind in ("accept", "refuse") for case in cases[kind]]
    expected = [True] * len(cases["accept"]) + [bool(case.get("gofmt", False)) for case in cases["refuse"]]
    said = [complaint is None for complaint in gofmt.complaints(texts)]
    assert [text for text, one, other in zip(texts, said, expected, strict=True) if one != other] == []


@pytest.mark.slow
def test_texts_drawn_under_the_masks_are_go() -> None:
    texts = list(drawn(150, 1))
    needs_gofmt()
    said = gofmt.complaints(texts)
    assert [(text, complaint) for text, complaint in zip(texts, said, strict=True) if complaint is not None] == []


@pytest.mark.parametrize("line_end", ["\n", "\r\n", " // c\n", " /* c */\n", " /* c\n */", "// /* c\n\n\t"])
def test_line_ends_behind_each_token(line_end: str) -> None:
    """A line's end is a semicolon behind a few tokens and nothing behind the others, however it is written."""
    pieces = PROGRAM.split()
    plain = " ".join(pieces)
    assert byte_parser("go").refusal(plain.encode()) is None
    for k in range(1, len(pieces)):
        text = " ".join(pieces[:k]) + line_end + " ".join(pieces[k:])
        is_semicolon = pieces[k - 1] in ENDS
        with_semicolon = " ".join(pieces[:k]) + ";" + " ".join(pieces[k:])
        expected = byte_parser("go").accepts((with_semicolon if is_semicolon else plain).encode())
        assert byte_parser("go").accepts(text.encode()) == expected, text


def test_real_files() -> None:
    for record in records("source/go", 40):
        assert byte_parser("go").refusal(record["text"].encode()) is None, record["path"]


def test_files_cut_short_are_prefixes() -> None:
    chosen = random.Random(1)
    for record in records("source/go", 10):
        text = record["text"].encode()
        for _ in range(5):
            cut = text[: chosen.randrange(len(text))]
            assert byte_parser("go").refusal(cut) in (None, len(cut)), record["path"]
