"""Conflicts decided by a shift: masks lead into no dead end, as the naive engine and the oracle have it; explanations and lint say so."""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Callable

import numpy as np
import pytest
from checked_texts import checked_texts
from engine_cases import longest, random_vocabulary, vocabulary_of
from grammars import random_expressions, random_grammar, random_looping_grammar, random_tails
from naive_engine import NaiveEngine
from naive_lr import unchecked_tables
from oracle import Oracle
from shares import share

from maskwright.analysis.errors import GrammarError, IllegalTokenError
from maskwright.analysis.grammar import Grammar
from maskwright.analysis.loading import parse_grammar
from maskwright.analysis.lr.encoding import CONFLICT
from maskwright.decoding.explain import explain_text
from maskwright.lint import lint_grammar
from maskwright.maskstore.automaton.stack_automaton import build_lexer_and_parser
from maskwright.stores.build import build_store, compile_store

DEAD = 'start: "d" | x "c"\nx: "c" x | \n'
PARTLY = 'start: r0 | "c" | start r2 "c"\nr0: "f" "e"\nr2: start\n'


def check(seed: int, draw: Callable[[int], Grammar]) -> bool:
    """Whether the grammar's parser has dead ends; masks along random texts are the naive engine's and the oracle's.

    The oracle, whose item sets are Lark's, is not asked where rules compete for a reduction: which comes first depends on look-ahead that
    Lark has more of there, and Lark itself refuses such grammars.
    """
    grammar = dataclasses.replace(longest_of(draw(seed), seed), conflicts="shift")
    try:
        store = compile_store(grammar, random_vocabulary(grammar, seed))
    except GrammarError as error:
        if "no text comes to an end" in str(error):
            assert not NaiveEngine(grammar, "shift").is_legal_prefix(b"")
            return True
        assert "infinite ambiguity" in str(error)
        return False
    naive, rng = NaiveEngine(grammar, "shift"), random.Random(seed)
    every = unchecked_tables(grammar)
    cells = [every.actions(*where) for where in np.argwhere(every.action >= CONFLICT).tolist()]
    is_larks = not any(sum(action < 0 for action in cell) > 1 for cell in cells)
    oracle = Oracle(grammar, "shift") if is_larks else None
    for _ in checked_texts(store, naive, oracle, rng, 3):
        pass
    return build_lexer_and_parser(grammar).live is not None


def longest_of(grammar: Grammar, seed: int) -> Grammar:
    return dataclasses.replace(grammar, lexing="contextual" if seed % 3 == 2 else "longest")


@pytest.mark.parametrize("draw", [random_grammar, random_expressions, random_tails, random_looping_grammar])
@pytest.mark.parametrize("seeds", share([range(3), range(3, 25)], 1), ids=str)
def test_masks_of_random_grammars(draw: Callable[[int], Grammar], seeds: range) -> None:
    assert sum(check(seed, draw) for seed in seeds) >= (0 if draw is random_tails else 1)


@pytest.mark.slow
@pytest.mark.parametrize("draw", [random_grammar, random_expressions, random_tails, random_looping_grammar])
def test_masks_of_many_random_grammars(draw: Callable[[int], Grammar]) -> None:
    assert sum(check(seed, draw) for seed in range(1000, 1100)) >= (0 if draw is random_tails else 10)


def test_units_in_a_circle_that_dead_ends_cut_off() -> None:
    """Its tables keep gotos past `B: B`, which no stack takes: following them never ended."""
    assert check(1039, random_looping_grammar)


def test_units_in_a_circle_that_a_decided_conflict_cut_off() -> None:
    """There are no dead ends here: a shift was preferred to the reduction that led to the circle."""
    text = 'start: "y" | n2 "x"\nn0: "x"\nn1: n1 | n2 | n2\nn2: n1 | "x"'
    store = build_store(parse_grammar(text, conflicts="shift"), vocabulary_of(b"xx", singles=b"xy"))
    for whole in (b"xx", b"y"):
        matcher = store.matcher()
        matcher.advance_bytes(whole)
        assert matcher.is_accepting()


def test_a_token_that_leads_into_a_dead_end_is_masked() -> None:
    store = build_store(parse_grammar(PARTLY, conflicts="shift"), vocabulary_of(b"fe", b"cc", b"fef", singles=b"cef"))
    matcher = store.matcher()
    assert [matcher.is_allowed(store.vocabulary.tokens.index(one)) for one in (b"c", b"fe", b"cc", b"fef")] == [
        True,
        True,
        False,
        False,
    ]
    matcher.advance_bytes(b"c")
    assert matcher.is_accepting() and not matcher.is_allowed(store.vocabulary.tokens.index(b"c"))
    with pytest.raises(IllegalTokenError, match="allowed: nothing"):
        matcher.advance_bytes(b"c")
    said = str(matcher.explain(store.vocabulary.tokens.index(b"c")))
    assert "C cannot come here: conflicts are decided by a shift, and then no text continues after it" in said


def test_explanations_of_texts_stop_where_masks_do() -> None:
    grammar = parse_grammar(PARTLY, conflicts="shift")
    assert str(explain_text(grammar, b"fe")).startswith("legal")
    said = str(explain_text(grammar, b"fec"))
    assert said.startswith("not legal") and "conflicts are decided by a shift" in said
    assert "not legal" not in str(explain_text(parse_grammar(PARTLY, conflicts="all"), b"fecc")).partition("\n")[0]


def test_a_grammar_whose_texts_all_are_dead_ends_has_no_store() -> None:
    vocabulary = vocabulary_of(singles=b"cd")
    store = build_store(parse_grammar(DEAD, conflicts="shift"), vocabulary)
    matcher = store.matcher()
    assert not matcher.is_allowed(vocabulary.tokens.index(b"c")) and matcher.is_allowed(vocabulary.tokens.index(b"d"))
    with pytest.raises(GrammarError, match="conflicts are decided by a shift, so no text comes to an end"):
        build_store(parse_grammar('start: x "c"\nx: "c" x | \n', conflicts="shift"), vocabulary)
    findings = lint_grammar(parse_grammar('start: x "c"\nx: "c" x | \n', conflicts="shift")).findings
    assert [f.severity for f in findings if f.code == "no-text"] == ["error"]


@pytest.mark.slow
def test_a_short_ending_that_is_on_no_way_straight_down_is_found() -> None:
    """A descent of 20,000 steps finds none; the shortest is near."""
    text = 'start: p+ "c" |  | start "c" p\np: "a" start start | "b" "c"\n'
    matcher = build_store(parse_grammar(text, conflicts="shift"), vocabulary_of(singles=b"abc")).matcher()
    matcher.advance_bytes(b"bcaaa")
    begin = time.process_time()
    assert matcher.short_ending().data == b"bccbccbccbccbccbccbcc"
    assert time.process_time() - begin < 20


def test_lint_says_that_neither_reading_is_left() -> None:
    (finding,) = [f for f in lint_grammar(parse_grammar(PARTLY, conflicts="shift")).findings if f.code == "ambiguity"]
    assert finding.severity == "warning" and "the text is refused" in finding.decoding
    sums = parse_grammar('start: start "+" start | "n"\n', conflicts="shift")
    (finding,) = [f for f in lint_grammar(sums).findings if f.code == "ambiguity"]
    assert finding.severity == "info" and "the text is allowed" in finding.decoding


def test_a_parser_too_large_to_be_looked_at_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from maskwright.analysis.errors import LimitError
    from maskwright.analysis.lr import live

    monkeypatch.setattr(live, "MAX_EXITS", 2)
    with pytest.raises(LimitError, match="decided by a shift, which may lead texts into dead ends, and its parser has"):
        compile_store(longest(PARTLY + "// maskwright: conflicts = shift\n"), vocabulary_of(singles=b"cef"))
