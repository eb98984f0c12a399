"""Calls that keep the GIL beside those that do not, on random graphs; several threads in one workspace; addresses."""

from __future__ import annotations

import random
import sys
import threading
from typing import Any

import numpy as np
import pytest
from quick_cases import outcome, rounds_meanwhile
from random_graphs import random_graph
from schema_masks import SPACINGS, VOCABULARY
from shares import share

import maskwright as mw
from maskwright.analysis.addresses import int32_at
from maskwright.analysis.schema.shapes import Texts
from maskwright.decoding.engine.quick import NOT_QUICK, NOTHING_QUICK
from maskwright.decoding.matcher import Matcher
from maskwright.decoding.schema import constants
from maskwright.decoding.schema.entries import entries
from maskwright.maskstore.schema.compiled import SchemaTables
from maskwright.maskstore.schema.write import write_schema

needs_quick_calls = pytest.mark.skipif(
    not entries.is_compiled_ahead, reason="no extension, so there are no quick calls"
)


@needs_quick_calls
@pytest.mark.parametrize("seed", share([*range(30)], 5))
def test_quick_calls_do_what_the_others_do(seed: int) -> None:
    """Masks, tokens, errors, rollbacks and forks of two texts, one of which has no quick calls."""
    rng = random.Random(31_000 + seed)
    texts = Texts(random_graph(rng), rng.choice(SPACINGS), "any")
    store = SchemaTables("random", texts, VOCABULARY, *write_schema(texts))
    quick, slow = Matcher(store, 8), Matcher(store, 8)
    slow._quick_fill, slow._quick_read = NOTHING_QUICK.quick_fill, NOTHING_QUICK.quick_read
    slow._quick_step = NOTHING_QUICK.quick_step
    words = [np.zeros(store.n_words, np.uint32) for _ in range(2)]
    n_quick = 0
    for _ in range(400):
        n_quick += quick._quick_fill(bound(quick, words[0])) == constants.OK
        assert outcome(quick.fill, words[0]) == outcome(slow.fill, words[1])
        assert (words[0] == words[1]).all(), quick.said()
        bits = np.flatnonzero(np.unpackbits(words[0].view(np.uint8), bitorder="little")).tolist()
        token = rng.choice(bits) if bits and rng.random() < 0.9 else rng.randrange(-1, store.vocabulary.size + 1)
        if rng.random() < 0.3:
            assert outcome(quick.step, token, words[0]) == outcome(slow.step, token, words[1])
        else:
            assert outcome(quick.advance, token) == outcome(slow.advance, token)
        assert quick.text.said == slow.text.said
        if not bits or rng.random() < 0.2:
            n = rng.randint(0, quick.remembered())
            quick.rollback(n)
            slow.rollback(n)
        if rng.random() < 0.1:
            quick = quick.fork()
        if rng.random() < 0.05:
            quick.reset()
            slow.reset()
    assert n_quick > 20, n_quick


def bound(matcher: Any, words: Any) -> Any:
    """The addresses of a matcher that writes masks to some words."""
    matcher._take_bitmask(words)
    return matcher._quick.bound[0]


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
    store = mw.build_store(mw.load_choice(["yes", "no"]), mw.load_vocabulary("python-tiny"))
    matcher, words = store.matcher(), np.zeros(store.n_words, np.uint32)
    matcher.fill(words)
    assert matcher._quick_fill(matcher._quick.bound[0]) == constants.OK
    matcher.text._work[constants.BUSY] = 1
    try:
        assert matcher._quick_fill(matcher._quick.bound[0]) == NOT_QUICK
        assert matcher._quick_read(matcher._quick.bound[0], 5) == NOT_QUICK
        assert matcher._quick_step(matcher._quick.bound[0], 5) == 2 * NOT_QUICK
    finally:
        matcher.text._work[constants.BUSY] = 0
    with pytest.raises(ZeroDivisionError):
        matcher.text._workspace.call(lambda: 1 // 0)
    assert matcher.text._work[constants.BUSY] == 0 and not matcher.text._workspace.lock.locked()


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
def test_what_takes_long_is_not_quick(schema: Any, data: bytes) -> None:
    """Many readings, many keys, an escape, items that their length ends: many tokens are asked about."""
    store = mw.build_store(mw.load_schema(schema), mw.load_vocabulary("python-tiny"))
    matcher, words = store.matcher(), np.zeros(store.n_words, np.uint32)
    matcher.advance_bytes(data)
    matcher.fill(words)
    wanted = words.copy()
    assert matcher._quick_fill(matcher._quick.bound[0]) == NOT_QUICK
    matcher.fill(words)
    assert (words == wanted).all()


@needs_quick_calls
def test_quick_calls_keep_the_gil() -> None:
    """So no other thread runs while they do."""
    store = mw.build_store(mw.load_choice(["yes", "no"]), mw.load_vocabulary("python-tiny"))
    matcher, words = store.matcher(), np.zeros(store.n_words, np.uint32)
    matcher.fill(words)
    address, quick = matcher._quick.bound[0], matcher._quick_fill
    assert rounds_meanwhile(lambda: quick(address)) == 0


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
    store = mw.build_store(mw.load_choice(["yes", "no"]), mw.load_vocabulary("python-tiny"))
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
    store = mw.build_store(mw.load_choice(["yes", "no"]), mw.load_vocabulary("python-tiny"))
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
