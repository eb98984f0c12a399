"""Batches: every slot is a matcher of its own, whatever its neighbours, threads and admissions do."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import numpy as np
import pytest
from engine_cases import (
    MAKERS,
    longest,
    random_layout_grammar,
    random_longest_grammar,
    random_vocabulary,
    vocabulary_of,
)
from mask_bits import ids, row
from shares import share

from maskwright.analysis.errors import DeadEndError, GrammarError, IllegalTokenError, LimitError, MaskwrightError
from maskwright.decoding.batch import Batch
from maskwright.decoding.engine import constants
from maskwright.maskstore.automaton.stack_automaton import Budget, build_automaton
from maskwright.maskstore.table.write import engine_table
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store


@cache
def lines() -> Store:
    grammar = random_layout_grammar(1)
    return compile_store(grammar, random_vocabulary(grammar, 1))


@cache
def plain() -> Store:
    grammar = random_longest_grammar(0)
    return compile_store(grammar, random_vocabulary(grammar, 0))


@cache
def pair() -> Store:
    return compile_store(longest('start: "a" "b"? "c"', "pair"), vocabulary_of(b"a", b"b", b"c"))


STORES = [pytest.param(lines, id="layout"), pytest.param(plain, id="plain")]


def rows(batch: Batch, width: int = 0) -> list[set[int]]:
    words = np.full((batch.size, batch.store.n_words + width), 0x5A5A5A5A, np.uint32)
    batch.fill(words)
    return [ids(each) for each in words]


@pytest.mark.parametrize("make", STORES)
@pytest.mark.parametrize("n_threads", [1, 2, 3, 9])
def test_slots_are_matchers(make: Any, n_threads: int) -> None:
    """Random texts with idle slots, ends, admissions, rollbacks and copies; a matcher for each slot says what must come out."""
    store = make()
    rng = random.Random(n_threads)
    batch = store.batch(7, max_rollback=5, n_threads=n_threads)
    matchers = [store.matcher(max_rollback=5) for _ in range(7)]
    ended = 0
    for _ in range(120):
        found = rows(batch, width=rng.choice((0, 2)))
        assert found == [row(matcher) for matcher in matchers]
        tokens = []
        for slot, matcher in enumerate(matchers):
            draw = rng.random()
            if matcher.is_finished() or draw < 0.03:
                matchers[slot].reset()
                batch.reset(slot)
                tokens.append(-1)
            elif draw < 0.1:
                n = rng.randint(0, 2)
                try:
                    matcher.rollback(n)
                except MaskwrightError:
                    with pytest.raises(MaskwrightError, match="cannot roll back"):
                        batch.rollback(slot, n)
                else:
                    batch.rollback(slot, n)
                tokens.append(-1)
            elif draw < 0.13:
                source = rng.randrange(7)
                batch.copy(source, slot)
                matchers[slot] = matchers[source].fork()
                tokens.append(-1)
            elif draw < 0.2 or not found[slot]:
                tokens.append(-1)
            else:
                token = rng.choice(sorted(found[slot]))
                ended += token in store.vocabulary.eos
                tokens.append(token)
        # what came to a slot by copy, rollback or reset stays as it is; the others read on
        batch.advance(np.array(tokens))
        for matcher, token in zip(matchers, tokens, strict=True):
            if token >= 0:
                matcher.advance(token)
        assert [batch.is_accepting(slot) for slot in range(7)] == [matcher.is_accepting() for matcher in matchers]
        assert [batch.is_finished(slot) for slot in range(7)] == [matcher.is_finished() for matcher in matchers]
    assert ended


@pytest.mark.parametrize("seed", share(range(6), 3))
@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("is_open", [False, True], ids=["closed", "open"])
def test_many_texts_at_few_places(make: Any, seed: int, is_open: bool) -> None:
    """So many texts that most share their masks with another, but not always whether they may end there."""
    grammar = make(seed)
    vocabulary = random_vocabulary(grammar, seed)
    try:
        automaton = build_automaton(grammar, vocabulary, budget=Budget(edges=0) if is_open else None)
    except GrammarError:
        pytest.skip("no store")
    store = Store(grammar, vocabulary, engine_table(grammar, vocabulary, automaton), automaton.counts)
    size = 40
    rng = random.Random(seed)
    batch, matchers = store.batch(size), [store.matcher() for _ in range(size)]
    distinct = []
    for _ in range(25):
        try:
            expected = [row(matcher) for matcher in matchers]
        except LimitError:  # a text with very many readings
            with pytest.raises(LimitError):
                rows(batch)
            break
        assert rows(batch) == expected
        distinct.append(len(set(map(frozenset, expected))))
        tokens = [rng.choice(sorted(found)) if found else -1 for found in expected]
        try:
            for matcher, token in zip(matchers, tokens, strict=True):
                if token >= 0:
                    matcher.advance(token)
        except LimitError:
            with pytest.raises(LimitError):
                batch.advance(tokens)
            break
        batch.advance(tokens)
    assert distinct[0] == 1 and max(distinct) < size


def test_long_runs_and_short_ones() -> None:
    """Texts nested so deeply that a run of the automaton is longer than what is done for all at once."""
    grammar = longest('start: test\ntest: "x" | "x" "?" test ":" test | "(" test ")"', "nested")
    store = compile_store(grammar, vocabulary_of(b"x", b"?", b":", b"(", b")", b"x?x:", b"x)"))
    depths = [0, 1, constants.LONG_WALK - 2, *range(constants.LONG_WALK - 1, constants.LONG_WALK + 3), 200, 3, 200]
    batch, matchers = store.batch(len(depths)), [store.matcher() for _ in depths]
    for slot, depth in enumerate(depths):
        for text in (b"(" * 3, b"x?x:" * depth, b"x"):
            batch.advance_bytes(slot, text)
            matchers[slot].advance_bytes(text)
    for token in (4, 4, 2):
        expected = [row(matcher) for matcher in matchers]
        assert rows(batch) == rows(batch) == expected
        is_legal = [token in found for found in expected]
        batch.advance([token if legal else -1 for legal in is_legal])
        for matcher, legal in zip(matchers, is_legal, strict=True):
            if legal:
                matcher.advance(token)
    assert rows(batch) == [row(matcher) for matcher in matchers]


def test_chosen_slots_leave_the_other_rows_alone() -> None:
    batch = pair().batch(3)
    words = np.full((3, 1), 7777, np.uint32)
    batch.fill(words, slots=[1])
    assert words[:, 0].tolist() == [7777, 1, 7777]
    batch.fill(words, slots=[])
    assert words[:, 0].tolist() == [7777, 1, 7777]


def test_an_illegal_token_names_its_slot_and_the_others_advance() -> None:
    batch = pair().batch(3)
    with pytest.raises(IllegalTokenError, match=r"^slot 1: token 2 \(b'c'\) is not legal here under grammar pair"):
        batch.advance([0, 2, 0])
    assert rows(batch) == [{1, 2}, {0}, {1, 2}]


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([0, 0], r"shape \(2,\).*expected 3 integers"),
        ([0, 0, 0, 0], r"shape \(4,\)"),
        ([[0, 0, 0]], r"shape \(1, 3\)"),
        (0, r"shape \(\)"),
        ([0.0, 0.0, 0.0], "dtype float64"),
        ([True, False, True], "dtype bool"),
        (["a", "b", "c"], "dtype <U1"),
        ([None, 0, 0], "dtype object"),
    ],
)
def test_tokens_of_another_kind(tokens: Any, message: str) -> None:
    batch = pair().batch(3)
    with pytest.raises(MaskwrightError, match=message):
        batch.advance(tokens)
    assert rows(batch) == [{0}] * 3


@pytest.mark.parametrize("token", [-2, 4, 1 << 33, -(1 << 33) - 1])
def test_ids_out_of_range(token: int) -> None:
    batch = pair().batch(2)
    with pytest.raises(IllegalTokenError, match=r"slot 1: .* out of range"):
        batch.advance(np.array([0, token]))
    assert rows(batch) == [{1, 2}, {0}]


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint16, np.uint64])
def test_tokens_of_any_integer_type(dtype: Any) -> None:
    batch = pair().batch(2)
    batch.advance(np.array([0, 0], dtype))
    assert rows(batch) == [{1, 2}, {1, 2}]


@pytest.mark.parametrize(
    "words",
    [
        np.zeros((2, 1), np.uint32),
        np.zeros((3, 0), np.uint32),
        np.zeros(3, np.uint32),
        np.zeros((3, 1), np.int64),
        np.zeros((3, 4), np.uint32)[:, ::2],
        np.zeros((1, 3), np.uint32).T[:, :1].T,
        None,
    ],
)
def test_bitmasks_of_another_kind(words: Any) -> None:
    with pytest.raises(MaskwrightError, match=r"expected shape \(3, 1\) or wider"):
        pair().batch(3).fill(words)


@pytest.mark.parametrize(("size", "max_rollback"), [(0, 1), (-1, 1), (1, -1)])
def test_sizes(size: int, max_rollback: int) -> None:
    with pytest.raises(MaskwrightError, match=r"expected at least [01]"):
        pair().batch(size, max_rollback)
    with pytest.raises(MaskwrightError, match="n_threads is 0"):
        pair().batch(1, n_threads=0)


@pytest.mark.parametrize("slot", [-1, 2, 100])
def test_slots_out_of_range(slot: int) -> None:
    batch = pair().batch(2)
    words = np.zeros((2, 1), np.uint32)
    for use in (
        lambda: batch.reset(slot),
        lambda: batch.rollback(slot),
        lambda: batch.is_allowed(slot, 0),
        lambda: batch.is_accepting(slot),
        lambda: batch.is_finished(slot),
        lambda: batch.advance_bytes(slot, b"a"),
        lambda: batch.copy(slot, 0),
        lambda: batch.copy(0, slot),
        lambda: batch.explain(slot, 0),
        lambda: batch.fill(words, slots=[0, slot]),
    ):
        with pytest.raises(MaskwrightError, match=f"slot {slot} is out of range: the batch has the slots 0 to 1"):
            use()
    assert rows(batch) == [{0}, {0}]


def test_a_dead_end_names_its_slot_and_its_row_is_empty() -> None:
    store = compile_store(longest('start: "a" "b" | "c"', "gap"), vocabulary_of(b"a", b"c"))
    batch = store.batch(3)
    batch.advance([1, 0, -1])
    words = np.full((3, 1), 0xFFFFFFFF, np.uint32)
    with pytest.raises(DeadEndError, match=r"^slot 1: "):
        batch.fill(words)
    assert [ids(each) for each in words] == [{2}, set(), {0, 1}]


def test_finished_slots_have_empty_rows_and_can_be_used_again() -> None:
    batch = pair().batch(2)
    batch.advance([0, 0])
    batch.advance([2, 1])
    batch.advance([3, -1])
    assert rows(batch) == [set(), {2}]
    with pytest.raises(IllegalTokenError, match=r"^slot 0: .* after the end of the text"):
        batch.advance([0, 2])
    batch.reset(0)
    assert rows(batch) == [{0}, {3}]


def test_copies_are_apart() -> None:
    batch = pair().batch(3)
    batch.advance([0, -1, -1])
    batch.copy(0, 2)
    batch.copy(1, 1)
    batch.advance([1, -1, 2])
    assert rows(batch) == [{2}, {0}, {3}]
    batch.rollback(2, 2)
    batch.rollback(0)
    assert rows(batch) == [{1, 2}, {0}, {0}]
