"""Calls by addresses, which keep the GIL, beside those that do neither, on random grammars; what is not quick."""

from __future__ import annotations

import pickle
import random
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from engine_cases import MAKERS, longest, random_vocabulary, vocabulary_of
from mask_bits import ids
from random_graphs import random_graph
from schema_masks import SPACINGS, VOCABULARY
from shares import share

import maskwright as mw
from maskwright.analysis.addresses import int32_at
from maskwright.analysis.schema.shapes import Texts
from maskwright.decoding.engine import constants
from maskwright.decoding.engine.entries import entries
from maskwright.decoding.engine.quick import NOT_QUICK, NOTHING_QUICK
from maskwright.decoding.matcher import Matcher
from maskwright.decoding.schema import constants as schema_constants
from maskwright.decoding.schema.entries import entries as schema_entries
from maskwright.maskstore.schema.compiled import SchemaTables
from maskwright.maskstore.schema.write import write_schema
from maskwright.maskstore.table.build import prepare_engine_table
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

needs_quick_calls = pytest.mark.skipif(
    not (entries.is_compiled_ahead and schema_entries.is_compiled_ahead),
    reason="no extension, so there are no quick calls",
)

DEEP = 'start: "(" start ")" | "a"'
AMBIGUOUS = '// maskwright: conflicts = all\nstart: s*\ns: "x" | "x" "x"'


def outcome(call: Callable[..., Any], *arguments: Any) -> str:
    """The error of a call, or "" """
    try:
        call(*arguments)
    except mw.MaskwrightError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def rounds_meanwhile(call: Callable[[], Any]) -> int:
    """How often another thread goes round while 2,000 calls are made one after the other."""
    rounds, end = [0], threading.Event()

    def go_on() -> None:
        while not end.is_set():
            rounds[0] += 1

    before = sys.getswitchinterval()
    sys.setswitchinterval(0.3)  # the calls take a millisecond together
    thread = threading.Thread(target=go_on)
    try:
        thread.start()
        n = rounds[0]
        for _ in range(2_000):
            call()
        return rounds[0] - n
    finally:
        sys.setswitchinterval(before)
        end.set()
        thread.join()


def yes_or_no() -> Any:
    return mw.build_store(mw.load_choice(["yes", "no"]), "python-tiny")


def check_addresses(matcher: Any) -> None:
    """What the quick calls take is where the arrays are."""
    addresses, *arrays = matcher._quick.bound
    assert addresses.tolist() == [number for each in arrays for number in (each.ctypes.data, each.size)]


def small_store(text: str, *tokens: bytes, singles: bytes = b"") -> Store:
    return compile_store(longest(text), vocabulary_of(*tokens, singles=singles))


def random_store(make: Any, seed: int) -> Any:
    """The store of a random grammar, or of a random graph of JSON texts."""
    if make == "graph":
        rng = random.Random(31_000 + seed)
        texts = Texts(random_graph(rng), rng.choice(SPACINGS), "any")
        return SchemaTables("random", texts, VOCABULARY, *write_schema(texts))
    try:
        grammar = make(seed)
        return compile_store(grammar, random_vocabulary(grammar, seed))
    except mw.MaskwrightError:
        return pytest.skip("the grammar is refused")


@needs_quick_calls
@pytest.mark.parametrize(
    ("make", "seed"),
    [
        *share([(make, seed) for seed in range(100, 160) for make in MAKERS], 4 * len(MAKERS)),
        *share([("graph", seed) for seed in range(30)], 5),
    ],
)
def test_quick_calls_do_what_the_others_do(make: Any, seed: int) -> None:
    """Masks, tokens, errors, rollbacks, forks, pickles and resets of two texts, one of which has no quick calls."""
    store, rng, is_graph = random_store(make, seed), random.Random(seed), make == "graph"
    quick, slow = Matcher(store, 8), Matcher(store, 8)
    slow._quick_fill, slow._quick_read = NOTHING_QUICK.quick_fill, NOTHING_QUICK.quick_read
    slow._quick_step = NOTHING_QUICK.quick_step
    words = [np.zeros(store.n_words + (0 if is_graph else seed % 3), np.uint32) for _ in range(2)]
    n_quick = 0
    for _ in range(400 if is_graph else 150):
        assert outcome(quick.fill, words[0]) == outcome(slow.fill, words[1])
        assert (words[0] == words[1]).all(), quick
        if not is_graph:
            check_addresses(quick)
        allowed = sorted(ids(words[0]))
        n_quick += quick._quick_fill(quick._quick.bound[0]) != NOT_QUICK
        token = rng.choice(allowed) if allowed and rng.random() < 0.9 else rng.randrange(-1, store.vocabulary.size + 1)
        if rng.random() < 0.3:
            assert outcome(quick.step, token, words[0]) == outcome(slow.step, token, words[1])
        else:
            assert outcome(quick.advance, token) == outcome(slow.advance, token)
        n_kept = quick.remembered()
        assert n_kept == slow.remembered() and (not is_graph or quick.said() == slow.said())
        if n_kept and (not allowed or rng.random() < 0.2):
            n = rng.randint(0, n_kept)
            quick.rollback(n)
            slow.rollback(n)
        if rng.random() < 0.1:
            quick = quick.fork()
        if not is_graph and rng.random() < 0.02:
            quick = pickle.loads(pickle.dumps(quick))
        if quick.is_finished() or rng.random() < 0.05:
            quick.reset()
            slow.reset()
    assert n_quick > (20 if is_graph else 30)  # less than half where texts have many parses


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
@pytest.mark.parametrize("make", [lambda: small_store(DEEP, singles=b"()a"), yes_or_no], ids=["grammar", "schema"])
def test_quick_calls_keep_the_gil(make: Any) -> None:
    """So no other thread runs while they do."""
    matcher = make().matcher()
    matcher.fill(np.zeros(matcher.store.n_words, np.uint32))
    address, quick = matcher._quick.bound[0], matcher._quick_fill
    assert rounds_meanwhile(lambda: quick(address)) == 0


@needs_quick_calls
def test_threads_that_share_a_workspace() -> None:
    """Some make masks without the GIL, and forget them, while others look kept ones up."""
    vocabulary = mw.load_vocabulary("python-tiny")
    schema = {"type": "object", "properties": {"name": {"maxLength": 9}, "n": {"enum": [1, 22, 333]}}}
    store = mw.build_store(mw.load_schema(schema, style="any"), vocabulary)
    tokens = list(b'{"name": "ab\\u0020cd", "n": 333, "other": [1, {"a": null}]}')
    ids = [vocabulary.tokens.index(bytes([byte])) for byte in tokens]

    def follow() -> list[bytes]:
        matcher, words, found = store.matcher(), np.zeros(store.n_words, np.uint32), []
        for token in ids:
            matcher.fill(words)
            found.append(words.tobytes())
            matcher.advance(token)
        return found

    wanted, wrong, end = follow(), [], threading.Event()

    def go_on() -> None:
        while not end.is_set():
            try:
                if follow() != wanted:
                    wrong.append("another mask")
            except Exception as error:
                wrong.append(repr(error))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=go_on) for _ in range(4)]
    try:
        for thread in threads:
            thread.start()
        workspace = store.matcher().text._workspace
        for _ in range(300):
            workspace.forget()
    finally:
        end.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(before)
    assert not wrong, wrong[:3]


@needs_quick_calls
def test_nothing_is_quick_while_another_thread_works() -> None:
    store = yes_or_no()
    matcher, words = store.matcher(), np.zeros(store.n_words, np.uint32)
    matcher.fill(words)
    assert matcher._quick_fill(matcher._quick.bound[0]) == schema_constants.OK
    matcher.text._work[schema_constants.BUSY] = 1
    try:
        assert matcher._quick_fill(matcher._quick.bound[0]) == NOT_QUICK
        assert matcher._quick_read(matcher._quick.bound[0], 5) == NOT_QUICK
        assert matcher._quick_step(matcher._quick.bound[0], 5) == 2 * NOT_QUICK
    finally:
        matcher.text._work[schema_constants.BUSY] = 0
    with pytest.raises(ZeroDivisionError):
        matcher.text._workspace.call(lambda: 1 // 0)
    assert matcher.text._work[schema_constants.BUSY] == 0 and not matcher.text._workspace.lock.locked()


KEYS = {"anyOf": [{"type": "object", "properties": {"a": {"enum": list(range(n))}}} for n in range(2, 32)]}
LIMITED = {"type": "array", "uniqueItems": True, "items": {"type": "string", "maxLength": 3}}


@needs_quick_calls
@pytest.mark.parametrize(
    ("schema", "data"),
    [
        (KEYS, b'{"k1": 1, "k2": 1, "k'),
        ({}, b"{" + b"".join(b'"k%d": 1, ' % k for k in range(500)) + b'"k'),
        ({}, b'{"k": 1, "k\\'),
        (LIMITED, b'["a", "b'),
    ],
)
def test_what_takes_long_in_json_is_not_quick(schema: Any, data: bytes) -> None:
    """Many readings, many keys, an escape, items that their length ends: many tokens are asked about."""
    store = mw.build_store(mw.load_schema(schema), mw.load_vocabulary("python-tiny"))
    matcher, words = store.matcher(), np.zeros(store.n_words, np.uint32)
    matcher.advance_bytes(data)
    matcher.fill(words)
    wanted = words.copy()
    assert matcher._quick_fill(matcher._quick.bound[0]) == NOT_QUICK
    matcher.fill(words)
    assert (words == wanted).all()


def test_a_copy_works_in_its_own_workspace() -> None:
    """Texts that compare items have an engine of their own, in the workspace of their thread."""
    store = mw.build_store(mw.load_schema({"uniqueItems": True}), mw.load_vocabulary("python-tiny"))
    batch = store.batch(4, n_threads=2)
    batch.advance_bytes(3, b"[1, [2]")
    batch.copy(3, 0)
    first = batch._texts[0]
    assert first.text._entries._workspace is first.text._workspace is not batch._texts[3].text._workspace
    assert batch.is_allowed(0, store.vocabulary.tokens.index(b"]"))
    assert not first.try_bytes(b", 1]") and first.try_bytes(b", 2]")


@pytest.mark.parametrize("make", [lambda: mw.load_choice(["yes", "no"]), lambda: mw.load_grammar("json")])
def test_a_matcher_is_no_bitmask(make: Any) -> None:
    """Once it stood for the bitmask that there was not, and its memory was written to."""
    store = mw.build_store(make(), mw.load_vocabulary("python-tiny"))
    for each in (store.matcher(), store.batch(2)):
        for _ in range(2):
            with pytest.raises(mw.MaskwrightError, match="bitmask"):
                each.fill(each)


def test_what_ends_become_leaves_all_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    store = yes_or_no()
    one, other = store.matcher(), store.matcher(3)
    one.advance_bytes(b"y")
    other.advance_bytes(b"n")
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):

        def interrupt(*_: Any) -> None:
            raise KeyboardInterrupt

        patched.setattr(one.text, "_bound_to", interrupt)
        one.become(other)
    assert (one.said(), one.max_rollback, one.remembered()) == (b"y", 256, 1)
    one.become(one)
    one.become(other)
    assert (one.said(), one.max_rollback) == (b"n", 3)


def test_a_token_that_calls_the_matcher() -> None:
    """An id's own `__index__` runs while the matcher is in use."""
    store = yes_or_no()
    matcher, words = store.matcher(), np.zeros(store.n_words, np.uint32)

    class Token:
        def __index__(self) -> int:
            matcher.advance_bytes(b"y")
            return 0

    for call in (lambda: matcher.advance(Token()), lambda: matcher.step(Token(), words)):
        with pytest.raises(mw.MaskwrightError, match="in use"):
            call()
    matcher.advance_bytes(b"n")
    assert matcher.said() == b"n"


def test_an_array_by_its_address() -> None:
    numbers = np.arange(7, dtype=np.int32)
    found = int32_at(numbers.ctypes.data + 4, 5)
    assert found.tolist() == [1, 2, 3, 4, 5]
    found[0] = 9
    assert numbers[1] == 9
