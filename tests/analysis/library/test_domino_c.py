"""The grammar domino.c: cases by hand, programs drawn from a description of their own, held against gcc and the grammar c as well."""

from __future__ import annotations

import random

import domino_c
import pytest
from library_cases import byte_parser, sampled

with_gcc = pytest.mark.skipif(domino_c.GCC is None, reason="gcc is not installed")


def test_drawn_programs() -> None:
    parser = byte_parser("domino.c")
    for text in domino_c.texts(200):
        assert parser.refusal(text.encode()) is None, text


def test_it_is_a_part_of_c() -> None:
    whole = byte_parser("c")
    for text in [*sampled("domino.c", 100), *domino_c.texts(100, seed=2)]:
        assert whole.refusal(text.encode()) is None, text


@with_gcc
def test_gcc_finds_its_syntax_right() -> None:
    for text in [*sampled("domino.c", 20, seed=3), *domino_c.texts(20, seed=3)]:
        assert not domino_c.is_refused(text), text


@with_gcc
def test_programs_with_a_token_too_few() -> None:
    parser = byte_parser("domino.c")
    chosen = random.Random(4)
    n = 0
    for text in domino_c.texts(60, seed=4):
        marks = [at for at, letter in enumerate(text) if letter in "(){};,="]
        if not marks:
            continue
        at = chosen.choice(marks)
        damaged = text[:at] + " " + text[at + 1 :]
        if domino_c.is_refused(damaged):
            n += 1
            refusal = parser.refusal(damaged.encode())
            assert refusal is not None and refusal >= at, damaged
    assert n > 30
