"""Calls by addresses, which keep the GIL, beside those that do neither, on random grammars; what is not quick."""

from __future__ import annotations

import pickle
import random
import threading
from typing import Any

import numpy as np
import pytest
from engine_cases import MAKERS, ids, longest, random_vocabulary, vocabulary_of
from quick_cases import outcome, rounds_meanwhile
from shares import share

import maskwright as mw
from maskwright.decoding.engine import constants
from maskwright.decoding.engine.entries import entries
from maskwright.decoding.engine.quick import NOT_QUICK, NOTHING_QUICK
from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.table.build import prepare_engine_table
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

needs_quick_calls = pytest.mark.skipif(
    not entries.is_compiled_ahead, reason="no extension, so there are no quick calls"
)

DEEP = 'start: "(" start ")" | "a"'
AMBIGUOUS = '// maskwright: conflicts = all\nstart: s*\ns: "x" | "x" "x"'


def check_addresses(matcher: Any) -> None:
    """What the quick calls take is where the arrays are."""
    addresses, *arrays = matcher._quick.bound
    assert addresses.tolist() == [number for each in arrays for number in (each.ctypes.data, each.size)]


def small_store(text: str, *tokens: bytes, singles: bytes = b"") -> Store:
    return compile_store(longest(text), vocabulary_of(*tokens, singles=singles))


@needs_quick_calls
@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("seed", share([*range(100, 160)], 8))
def test_quick_calls_do_what_the_others_do(seed: int, make: Any) -> None:
    """Masks, tokens, errors, rollbacks, forks, pickles and resets of two texts, one of which has no quick calls."""
    rng = random.Random(seed)
    try:
        grammar = make(seed)
        store = compile_store(grammar, random_vocabulary(grammar, seed))
    except mw.MaskwrightError:
        pytest.skip("the grammar is refused")
    quick, slow = Matcher(store, 8), Matcher(store, 8)
    slow._quick_fill, slow._quick_read = NOTHING_QUICK.quick_fill, NOTHING_QUICK.quick_read
    slow._quick_step = NOTHING_QUICK.quick_step
    words = [np.zeros(store.n_words + seed % 3, np.uint32) for _ in range(2)]
    n_quick = 0
    for _ in range(150):
        assert outcome(quick.fill, words[0]) == outcome(slow.fill, words[1])
        check_addresses(quick)
        assert (words[0] == words[1]).all()
        allowed = sorted(ids(words[0]))
        n_quick += quick._quick_fill(quick._quick.bound[0]) != NOT_QUICK
        token = rng.choice(allowed) if allowed and rng.random() < 0.9 else rng.randrange(-1, store.vocabulary.size + 1)
        if rng.random() < 0.3:
            assert outcome(quick.step, token, words[0]) == outcome(slow.step, token, words[1])
        else:
            assert outcome(quick.advance, token) == outcome(slow.advance, token)
        n_kept = int(quick.text.texts._memory[constants.N_HISTORY])
        assert n_kept == int(slow.text.texts._memory[constants.N_HISTORY])
        if n_kept and (not allowed or rng.random() < 0.2):
            n = rng.randint(0, n_kept)
            quick.rollback(n)
            slow.rollback(n)
        if rng.random() < 0.1:
            quick = quick.fork()
        if rng.random() < 0.02:
            quick = pickle.loads(pickle.dumps(quick))
        if quick.is_finished() or rng.random() < 0.05:
            quick.reset()
            slow.reset()
    assert n_quick > 30  # less than half where texts have many parses


@needs_quick_calls
def test_addresses_move_with_the_memory() -> None:
    """A text outgrows its memory, and gets a cache of walks: quick calls go on in the new one."""
    store = small_store(DEEP, singles=b"()a")
    matcher, twin, words = store.matcher(), store.matcher(), np.zeros(store.n_words, np.uint32)
    twin._quick_fill, twin._quick_read = NOTHING_QUICK.quick_fill, NOTHING_QUICK.quick_read
    twin._quick_step = NOTHING_QUICK.quick_step
    places = set()
    for _ in range(8_000):
        matcher.step(0, words)
        twin.advance(0)
        places.add(matcher.text.texts._memory.ctypes.data)
    check_addresses(matcher)
    assert (
        len(places) > 1
        and (matcher.text.texts._memory[: constants.CACHE] == twin.text.texts._memory[: constants.CACHE]).all()
    )


@needs_quick_calls
def test_what_may_take_long_is_not_quick() -> None:
    """Deep stacks, long tokens."""
    long = b"(" * (constants.MOST_QUICK_BYTES + 1)
    store = small_store(DEEP, long, long[1:], singles=b"()a")
    for n, expected in ((1, constants.OK), (constants.MOST_QUICK_FRAMES + 9, NOT_QUICK)):
        matcher, words = store.matcher(), np.zeros(store.n_words, np.uint32)
        matcher.fill(words)
        assert matcher._quick_read(matcher._quick.bound[0], 0) == NOT_QUICK
        matcher.advance_bytes(b"(" * n)
        assert matcher._quick_fill(matcher._quick.bound[0]) == expected
        assert matcher._quick_read(matcher._quick.bound[0], 2) == expected
    matcher = store.matcher()
    matcher.fill(words)
    assert matcher._quick_read(matcher._quick.bound[0], 1) == constants.OK


def many_reductions(n: int) -> str:
    """A grammar of no conflicts whose every letter takes 2^n reductions of rules that match nothing."""
    rules = [f"e{k}: e{k + 1} e{k + 1}" for k in range(n)]
    return "\n".join(['start: item*\nitem: "x" e0 "y" e0', *rules, f"e{n}: "])


@needs_quick_calls
@pytest.mark.parametrize(("n", "is_quick"), [(3, True), (16, False)])
def test_what_reduces_much_is_not_quick(n: int, is_quick: bool) -> None:
    store = small_store(many_reductions(n), b"xy" * 20, singles=b"xy")
    matcher, words = store.matcher(), np.zeros(store.n_words, np.uint32)
    matcher.fill(words)
    expected = constants.OK if is_quick else NOT_QUICK
    assert matcher._quick_read(matcher._quick.bound[0], 0) == expected
    if not is_quick:  # nothing has changed, and nothing is remembered of the attempt
        assert (
            matcher.text.texts._memory[constants.N_HISTORY] == matcher.text.texts._memory[constants.SPENT_BEFORE] == 0
        )
        matcher.advance(0)
    assert matcher.text.texts._memory[constants.N_HISTORY] == 1 and matcher.is_allowed(0)


@needs_quick_calls
def test_many_parses_are_not_quick() -> None:
    """Neither those of the text, nor those that a token comes to on the way."""
    store = small_store(AMBIGUOUS, singles=b"x")
    matcher, words = store.matcher(), np.zeros(store.n_words, np.uint32)
    matcher.fill(words)
    assert matcher._quick_fill(matcher._quick.bound[0]) == constants.OK
    matcher.advance_bytes(b"xxx")
    assert len(matcher.text.stacks()) > 1
    assert matcher._quick_fill(matcher._quick.bound[0]) == NOT_QUICK
    assert matcher._quick_step(matcher._quick.bound[0], 0) == 2 * NOT_QUICK

    store = small_store('// maskwright: conflicts = all\nstart: e\ne: "x" | e "x" e | "x" e', b"x" * 200, singles=b"x")
    matcher, words = store.matcher(), np.zeros(store.n_words, np.uint32)
    matcher.fill(words)
    assert matcher._quick_read(matcher._quick.bound[0], 0) == NOT_QUICK
    assert matcher._quick_read(matcher._quick.bound[0], 1) == constants.OK
    matcher.advance(0)
    assert len(matcher.text.stacks()) > 100


def lazy_store(is_closed: bool = True) -> tuple[Store, threading.Event]:
    """A store that is open until the event is set; then it is closed, or stays open for good."""
    grammar, vocabulary = mw.load_grammar("json"), mw.load_vocabulary("python-tiny")
    found, close = prepare_engine_table(grammar, vocabulary)
    end = threading.Event()

    def finish(progress: Any) -> Any:
        end.wait()
        return close(progress) if is_closed else found

    return Store.of(found).close_in_background(finish), end


@needs_quick_calls
def test_open_tables_are_not_quick() -> None:
    """While the store is being closed, and after that failed; quick calls begin with the closed table."""
    for is_closed in (True, False):
        store, end = lazy_store(is_closed)
        matcher, words = store.matcher(), np.zeros(store.n_words, np.uint32)
        matcher.fill(words)
        wanted = words.copy()
        assert not store.is_closed and matcher._quick_fill(matcher._quick.bound[0]) == NOT_QUICK
        end.set()
        store.close()
        matcher.fill(words)
        assert store.is_final and store.is_closed == is_closed and (words == wanted).all()
        assert matcher._quick_fill(matcher._quick.bound[0]) == (constants.OK if is_closed else NOT_QUICK)


@needs_quick_calls
def test_an_interrupt_does_not_keep_a_text_on_the_open_table(monkeypatch: pytest.MonkeyPatch) -> None:
    store, end = lazy_store()
    matcher, words = store.matcher(), np.zeros(store.n_words, np.uint32)
    matcher.fill(words)
    end.set()
    store.close()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):

        def interrupt(*_: Any) -> None:
            raise KeyboardInterrupt

        patched.setattr(entries, "note_addresses", interrupt)
        matcher.fill(words)
    matcher.fill(words)
    assert matcher.text.texts._table.ctypes.data == store.table.ctypes.data
    check_addresses(matcher)


@needs_quick_calls
def test_a_text_from_a_pickle_has_memory_of_its_own() -> None:
    """Buffers that are kept beside a pickle may be read-only, and may be used twice."""
    store = small_store(DEEP, singles=b"()a")
    matcher = store.matcher()
    matcher.advance(0)
    buffers: list[Any] = []
    data = pickle.dumps(matcher, protocol=5, buffer_callback=buffers.append)
    kept = [bytes(each) for each in buffers]
    before = [bytearray(each) for each in kept]
    one, other = (pickle.loads(data, buffers=kept) for _ in range(2))
    one.advance(0)
    other.advance(2)
    assert len(one.text.stacks()[0]) == 3 and other.is_allowed(1) and not one.is_allowed(1)
    assert before == [bytearray(each) for each in kept]


@needs_quick_calls
def test_quick_calls_keep_the_gil() -> None:
    """So no other thread runs while they do."""
    store = small_store(DEEP, singles=b"()a")
    matcher, words = store.matcher(), np.zeros(store.n_words, np.uint32)
    matcher.fill(words)
    address, quick = matcher._quick.bound[0], matcher._quick_fill
    assert rounds_meanwhile(lambda: quick(address)) == 0
