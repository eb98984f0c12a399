"""Repetitions that are counted, of GBNF and EBNF: against Earley over copies written out, and as long as they may be."""

from __future__ import annotations

import random
import time

import pytest
from front_cases import compare
from growth import growth
from naive_fronts import Recogniser, read
from shares import share

import maskwright as mw
from maskwright.analysis.fronts import parse_ebnf, parse_gbnf

PIECES = [
    b"a",
    b"b",
    b"c",
    b"d",
    b".",
    b"cc",
    b"ccc",
    b"cccccccc",
    b"cd",
    b"cdcd",
    b"ab",
    b"acb",
    b"bac",
    b"c.",
    b"cc.",
    b"b.",
    b"d.",
]
VOCABULARY = mw.Vocabulary.from_tokens([b"</s>", *PIECES], eos=[0])
UNITS = ('"a" x "b" | "c"', '"a" x | "c" "d"', '"a" x "b" | "c" | "cc"', '"a" x "b" | ""', "[a-c]", '"c" "d"?', '"c"?')
"""Rules x: the end of a copy is told by what follows, or is not; copies may be empty; some are regular."""
BEHIND = ('"."', 'x "."', '"c" "."', "", 'x{1,3} "."', '("." x{0,5})?')


@pytest.mark.parametrize("seed", share(range(40), 10))
def test_masks_count_copies(seed: int) -> None:
    choose = random.Random(seed)
    least = choose.randrange(12)
    most = choose.choice((f"{least}", f"{least},", *[f"{least},{max(1, least) + choose.randrange(14)}"] * 4))
    text = f"root ::= x{{{most}}} {choose.choice(BEHIND)}\nx ::= {choose.choice(UNITS)}"
    if most == "0":
        return
    assert compare(parse_gbnf(text), Recogniser(read(text)), VOCABULARY, seed, 2, 12) > 0, text


@pytest.mark.parametrize(("least", "most"), [(0, 1), (1, 2), (3, 3), (2, 9), (7, 21), (5, None)])
def test_texts_end_and_are_taken_back_after_each_number_of_copies(least: int, most: int | None) -> None:
    grammar = parse_ebnf(f'root ::= x{{{least}, {-1 if most is None else most}}} "."\nx ::= "a" x "b" | "c"')
    matcher = mw.build_store(grammar, VOCABULARY).matcher(max_rollback=64)
    last = most or least + 20
    masks = []
    for n in range(last + 1):
        masks.append(matcher.allowed_tokens())
        assert matcher.is_allowed(VOCABULARY.tokens.index(b".")) == (n >= least)
        assert matcher.is_allowed(VOCABULARY.tokens.index(b"ccc")) == (most is None or n + 3 <= most)
        assert matcher.shortest_ending().data == b"c" * (least - n) + b"."
        if n < last:
            matcher.advance(VOCABULARY.tokens.index(b"c"))
    assert matcher.is_allowed(VOCABULARY.tokens.index(b"c")) == (most is None)
    for n in reversed(range(last)):
        matcher.rollback(1)
        assert matcher.allowed_tokens() == masks[n]


@pytest.mark.parametrize("unit", ['"a" x "b" | "c"', "[a-z]", '"c" | "a" x x "d"'])
def test_a_long_repetition_takes_few_rules(unit: str) -> None:
    start = time.process_time()
    grammar = parse_ebnf(f'root ::= x{{2,10000}} "."\nx ::= {unit}')
    assert len(grammar.rules) < 100
    matcher = mw.build_store(grammar, VOCABULARY).matcher()
    assert time.process_time() - start < 5
    dot, one = VOCABULARY.tokens.index(b"."), VOCABULARY.tokens.index(b"c")
    for n_more, can_end, can_go_on in ((1, False, True), (1, True, True), (9_997, True, True), (1, True, False)):
        matcher.advance_bytes(b"c" * n_more)
        assert (matcher.is_allowed(dot), matcher.is_allowed(one)) == (can_end, can_go_on)


@pytest.mark.slow
@pytest.mark.parametrize("count", ["{2,%d}", "{%d}", "{%d,}"])
@pytest.mark.parametrize("unit", ['"a" x "b" | "c"', "[a-z]", '[a-c]+ "d"'])
def test_a_repetition_of_twice_the_length_takes_little_more(unit: str, count: str) -> None:
    def seconds(n: int) -> float:
        start = time.process_time()
        mw.build_store(parse_gbnf(f'root ::= x{count % n} "."\nx ::= {unit}'), VOCABULARY)
        return time.process_time() - start

    seconds(10)
    assert growth(seconds, 2_500) < 2.6
