"""The engine against its naive twin: random grammars, vocabularies cut from their texts, every position of random legal texts."""

from __future__ import annotations

import random
from functools import cache

import pytest
from engine_cases import (
    longest,
    random_layout_grammar,
    random_longest_grammar,
    random_vocabulary,
    row,
    vocabulary_of,
)
from naive_engine import NaiveEngine, check_endings
from shares import share

from maskwright.analysis.errors import DeadEndError, IllegalTokenError, LimitError
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

PLAIN, LAYOUT = range(24), range(14)
MORE = 200
KINDS = {"plain": random_longest_grammar, "layout": random_layout_grammar}

Case = tuple[Store, NaiveEngine]


@cache
def case(kind: str, seed: int) -> Case:
    """Store and twin of a random grammar."""
    grammar = KINDS[kind](seed)
    return compile_store(grammar, random_vocabulary(grammar, seed)), NaiveEngine(grammar)


CASES = [
    *share([pytest.param("plain", seed, id=f"plain-{seed}") for seed in PLAIN], 4),
    *share([pytest.param("layout", seed, id=f"layout-{seed}") for seed in LAYOUT], 3),
]


def expected(naive: NaiveEngine, store: Store, text: bytes) -> set[int]:
    eos = set(store.vocabulary.eos) if naive.is_legal_text(text) else set()
    return naive.allowed(text, store.vocabulary.tokens) | eos


def walk(store: Store, seed: int, length: int) -> list[tuple[int, bytes]]:
    """A random text that the masks allow: for each token its id, and the text before it. Texts that could only end are left there."""
    rng = random.Random(seed)
    matcher, text, steps = store.matcher(), b"", []
    for _ in range(length):
        allowed = sorted(row(matcher) - set(store.vocabulary.eos))
        if not allowed:
            break
        token = rng.choice(allowed)
        steps.append((token, text))
        matcher.advance(token)
        text += store.vocabulary.tokens[token]
    return steps


def check_rows(store: Store, naive: NaiveEngine, seed: int, length: int) -> None:
    matcher, text = store.matcher(), b""
    for token, before in walk(store, seed, length):
        assert before == text
        assert row(matcher) == expected(naive, store, text), text
        assert matcher.is_accepting() == naive.is_legal_text(text), text
        matcher.advance(token)
        text += store.vocabulary.tokens[token]
    assert row(matcher) == expected(naive, store, text), text


@pytest.mark.parametrize(("kind", "seed"), CASES)
@pytest.mark.parametrize(
    "numbers", share([pytest.param(range(1), id="first"), pytest.param(range(1, 3), id="more")], 1)
)
def test_rows_equal_the_naive_engines(kind: str, seed: int, numbers: range) -> None:
    store, naive = case(kind, seed)
    for number in numbers:
        check_rows(store, naive, number, 10)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_rows_equal_the_naive_engines_on_many_grammars(kind: str) -> None:
    compared = 0
    for seed in range(100, 100 + MORE):
        try:
            found = case.__wrapped__(kind, seed)
            for number in range(3):
                check_rows(*found, number, 10)
                compared += 1
        except LimitError as error:  # of texts with very many readings, or lexemes that back up without end
            assert "readings" in str(error) or "back up" in str(error)
    assert compared > MORE


@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_a_token_is_allowed_alone_as_in_the_mask(kind: str, seed: int) -> None:
    """Reading a token directly is another piece of code than the closed automaton."""
    store, _ = case(kind, seed)
    matcher = store.matcher()
    for token, text in walk(store, 3, 12):
        assert {i for i in range(store.vocabulary.size) if matcher.is_allowed(i)} == row(matcher), text
        matcher.advance(token)


@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_rollback_fork_and_reset_give_the_rows_back(kind: str, seed: int) -> None:
    store, _ = case(kind, seed)
    steps = walk(store, 5, 12)
    matcher = store.matcher()
    rows = []
    for token, _ in steps:
        rows.append((row(matcher), matcher.is_accepting()))
        matcher.advance(token)
    rows.append((row(matcher), matcher.is_accepting()))
    rng = random.Random(seed)
    at = len(steps)
    for _ in range(20):
        back = rng.randint(0, at)
        twin = matcher.fork()
        matcher.rollback(back)
        assert (row(twin), twin.is_accepting()) == rows[at], "a fork does not follow the original"
        twin.rollback(back)
        at -= back
        assert (row(matcher), matcher.is_accepting()) == rows[at] == (row(twin), twin.is_accepting())
        for token, _ in steps[at : at + rng.randint(0, 6)]:
            matcher.advance(token)
            at += 1
        assert (row(matcher), matcher.is_accepting()) == rows[at]
    matcher.reset()
    assert row(matcher) == rows[0][0]
    for token, _ in steps:
        matcher.advance(token)
    assert row(matcher) == rows[-1][0]


@pytest.mark.parametrize(("kind", "seed"), CASES[::4])
def test_refused_tokens_leave_no_trace(kind: str, seed: int) -> None:
    store, naive = case(kind, seed)
    matcher = store.matcher()
    for token, text in walk(store, 7, 8):
        before = row(matcher)
        for other in sorted(set(range(store.vocabulary.size)) - before)[::5]:
            with pytest.raises(IllegalTokenError):
                matcher.advance(other)
        assert row(matcher) == before == expected(naive, store, text)
        matcher.advance(token)


@pytest.mark.parametrize(("kind", "seed"), CASES[::3])
def test_how_a_text_is_cut_does_not_matter(kind: str, seed: int) -> None:
    """After the same bytes the same row, whether they came as tokens, one by one, or at once."""
    store, _ = case(kind, seed)
    matcher, single = store.matcher(), store.matcher()
    for token, text in walk(store, 9, 12):
        whole = store.matcher()
        whole.advance_bytes(text)
        assert row(whole) == row(single) == row(matcher), text
        matcher.advance(token)
        for byte in store.vocabulary.tokens[token]:
            single.advance_bytes(bytes([byte]))


@pytest.mark.parametrize("first", share(range(12), 1))
def test_allowed_texts_can_be_completed(first: int) -> None:
    """The definition itself, by searching for a continuation: no dead end is let in. Some are too far away to be found."""
    found = missed = 0
    for kind, seed in [("plain", seed) for seed in PLAIN[first::12]] + [("layout", seed) for seed in LAYOUT[first::12]]:
        store, naive = case(kind, seed)
        texts = [text + store.vocabulary.tokens[token] for token, text in walk(store, 11, 6)[::3]]
        n_found, n_missed = check_endings(store, naive, texts, 400)
        found, missed = found + n_found, missed + n_missed
    assert found > 5 and found > 2 * missed


@pytest.mark.parametrize(("kind", "seed"), CASES[::3])
def test_no_refused_text_can_be_completed(kind: str, seed: int) -> None:
    store, naive = case(kind, seed)
    rng = random.Random(seed)
    matcher = store.matcher()
    for token, text in walk(store, 13, 6):
        tokens = store.vocabulary.tokens
        refused = [i for i in range(store.vocabulary.size) if tokens[i] and not matcher.is_allowed(i)]
        for other in rng.sample(refused, min(3, len(refused))):
            assert naive.ending(text + tokens[other], 60) is None, text + tokens[other]
        matcher.advance(token)


def test_the_twin_finds_a_wrong_row() -> None:
    """The comparison can fail: a store of one grammar is not the twin of another."""
    store = compile_store(longest('start: "a" start | "b"'), vocabulary_of(b"a", b"b", b"ab"))
    with pytest.raises(AssertionError):
        check_rows(store, NaiveEngine(longest('start: "a" start | "a" "b"')), 0, 5)


def test_a_vocabulary_that_lacks_a_byte_leads_to_a_dead_end() -> None:
    store = compile_store(longest('start: "a" "b"', "pair"), vocabulary_of(b"a", b"c"))
    matcher = store.matcher()
    matcher.advance(0)
    with pytest.raises(
        DeadEndError, match=r"no token of vocabulary small can come next, .* under grammar pair.* bytes b'b'"
    ):
        row(matcher)
    assert not matcher.is_accepting()
