"""Repetitions that are counted, of GBNF and EBNF: against Earley over copies written out, and as long as they may be."""

from __future__ import annotations

import itertools
import random
import time
from typing import Any

import pytest
from front_cases import compare
from growth import growth
from naive_fronts import Recogniser, read
from shares import share

import maskwright as mw
from maskwright.analysis.fronts import parse_ebnf, parse_gbnf
from maskwright.analysis.fronts.expressions import Expr, automaton_of, choice, literal, repetition, sequence

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


@pytest.mark.parametrize(
    ("body", "text", "most"),
    [('("a"?)', b"a", 2_000), ('("a"?)', b"a", 20_000), ('("ab"? "c"?)', b"abc", 400), ('(("a"{1,300}))', b"a", 300)],
)
def test_copies_that_may_be_empty_or_overlap_are_counted(body: str, text: bytes, most: int) -> None:
    start = time.process_time()
    n = most * 300 if "300" in body else most
    matcher = mw.build_store(parse_gbnf(f'root ::= {body}{{1,{most}}} "."'), VOCABULARY).matcher()
    assert time.process_time() - start < 3  # measured: below 0.3 s
    matcher.advance_bytes(text * (n - 1))
    assert matcher.fork().try_bytes(text + b".")
    matcher.advance_bytes(text)
    assert matcher.fork().try_bytes(b".")
    assert not matcher.try_bytes(text + b".")


def ends(tree: Any, text: str, starts: frozenset[int]) -> frozenset[int]:
    """Where what a tree matches may end, by the definition. tree : as `random_tree` makes it."""
    kind, *parts = tree
    if kind == "text":
        return frozenset(at + len(parts[0]) for at in starts if text.startswith(parts[0], at))
    if kind == "sequence":
        return ends(parts[1], text, ends(parts[0], text, starts))
    if kind == "choice":
        return ends(parts[0], text, starts) | ends(parts[1], text, starts)
    body, least, most = parts
    for _ in range(least):
        starts = ends(body, text, starts)
    found = starts
    for _ in range(len(text) + 1 if most is None else most - least):
        starts = ends(body, text, starts)
        found |= starts
    return found


def random_tree(choose: random.Random, depth: int) -> Any:
    kind = choose.choice(("sequence", "choice", "repeat", "repeat", "text")) if depth else "text"
    if kind == "text":
        return kind, choose.choice(("a", "b", "ab"))
    if kind == "repeat":
        least = choose.randrange(4)
        return kind, random_tree(choose, depth - 1), least, choose.choice((None, max(1, least), least + 1, least + 2))
    return kind, random_tree(choose, depth - 1), random_tree(choose, depth - 1)


def expression(tree: Any) -> Expr:
    kind, *parts = tree
    if kind == "text":
        return literal(parts[0])
    if kind == "repeat":
        return repetition(expression(parts[0]), *parts[1:])
    return (sequence if kind == "sequence" else choice)(map(expression, parts))


TEXTS = ["".join(letters) for n in range(8) for letters in itertools.product("ab", repeat=n)]


@pytest.mark.parametrize("seed", share(range(300), 60))
def test_automata_of_nested_repetitions(seed: int) -> None:
    tree = random_tree(random.Random(seed), 4)
    expr = expression(tree)
    if expr.size > 400:
        return
    dfa = automaton_of(expr, 5_000)
    assert [text for text in TEXTS if dfa.matches(text.encode())] == [
        text for text in TEXTS if len(text) in ends(tree, text, frozenset([0]))
    ]


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
