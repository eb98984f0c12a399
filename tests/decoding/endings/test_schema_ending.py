"""Endings of a store's texts, and what is kept of the texts that were read: the same as anew."""

from __future__ import annotations

import itertools
import threading
from functools import partial
from random import Random
from typing import Any

import pytest
from json_endings import Said

import maskwright as mw
from maskwright.analysis.errors import DeadEndError
from maskwright.decoding.endings.ending import Endings
from maskwright.decoding.schema import ending_states as schema_states
from maskwright.decoding.schema.ending_states import JsonStates, PatternStates

PATTERNS = ["(ab|ba){2,3}", "a*b", "x(yy|z)+", "[a-c]{3}(,[a-c]{2})?"]


def vocabulary(tokens: list[bytes] | None = None) -> mw.Vocabulary:
    given = [bytes([i]) for i in range(256)] if tokens is None else tokens
    return mw.Vocabulary.from_tokens([b"", *given], eos=[0])


@pytest.mark.parametrize("pattern", PATTERNS)
def test_endings_of_patterns_are_shortest(pattern: str) -> None:
    """Against all texts of up to five more bytes."""
    automaton = mw.load_regex(pattern).automaton
    endings = Endings(partial(PatternStates, "pattern", automaton), vocabulary())
    letters = sorted(
        {byte for byte in range(256) for state in range(automaton.n_states) if automaton.next_state[state, byte] >= 0}
    )
    for n in range(4):
        for text in map(bytes, itertools.product(letters, repeat=n)):
            if automaton.run(text) < 0:
                with pytest.raises(DeadEndError):
                    endings.shortest(Said(text))
                continue
            found = endings.shortest(Said(text))
            shorter = (more for m in range(len(found.data)) for more in itertools.product(letters, repeat=m))
            assert automaton.matches(text + found.data) and not any(automaton.matches(text + bytes(m)) for m in shorter)
            assert len(found.tokens) == len(found.data) == endings.min_bytes_left(Said(text))


def test_endings_are_spelled_by_the_vocabulary() -> None:
    """The shortest ending is `b`; only the longer one has tokens."""
    store = mw.build_store(mw.load_regex("ab|acc"), vocabulary([b"a", b"cc"]))
    matcher = store.matcher()
    matcher.advance(1)
    assert (matcher.shortest_ending().data, matcher.min_bytes_left()) == (b"cc", 1)
    dead = mw.build_store(mw.load_regex("ab"), vocabulary([b"a"])).matcher()
    dead.advance(1)
    with pytest.raises(DeadEndError, match="can be completed with b'b', but not under vocabulary"):
        dead.shortest_ending()


def test_what_is_kept_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts in any order, more than are kept: the endings are those of endings made anew."""
    monkeypatch.setattr(schema_states, "N_KEPT", 3)
    schema = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "integer"}, "minItems": 2}},
        "required": ["a"],
    }
    texts = mw.load_schema(schema).texts
    kept = Endings(partial(JsonStates, "schema", texts), vocabulary())
    text, rng = b'{"b": [null], "a": [1, 20]}', Random(1)
    for _ in range(40):
        begin = Said(text[: rng.randrange(len(text))])
        anew = Endings(partial(JsonStates, "schema", texts), vocabulary())
        assert kept.shortest(begin) == anew.shortest(begin)
        assert kept.min_bytes_left(begin) == anew.min_bytes_left(begin) == len(anew.shortest(begin).data)
    with pytest.raises(DeadEndError, match="it is no legal prefix"):
        kept.shortest(Said(b"{]"))


def test_matchers_and_batches_tell_endings() -> None:
    store = mw.build_store({"type": "array", "items": {"type": "null"}, "minItems": 1}, vocabulary())
    batch, matcher = store.batch(2), store.matcher()
    batch.advance_bytes(1, b"[n")
    matcher.advance_bytes(b"[n")
    assert batch.shortest_ending(1) == matcher.shortest_ending() == matcher.short_ending()
    assert (batch.min_bytes_left(1), batch.min_bytes_left(0)) == (4, 6)
    matcher.advance_bytes(b"ull]")
    assert matcher.shortest_ending().data == b"" and matcher.min_bytes_left() == 0
    matcher.advance(0)
    assert matcher.is_finished() and matcher.shortest_ending().data == b""


def test_threads_share_the_endings_of_a_store() -> None:
    store = mw.build_store({"type": "array", "items": {"type": "boolean"}}, vocabulary())
    found: list[Any] = []

    def ask(begin: bytes) -> None:
        for _ in range(20):
            matcher = store.matcher()
            matcher.advance_bytes(begin)
            found.append((begin, matcher.shortest_ending().data))

    threads = [threading.Thread(target=ask, args=(begin,)) for begin in (b"[", b"[t", b"[true,")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found) == {(b"[", b"]"), (b"[t", b"rue]"), (b"[true,", b"true]")}


def test_a_long_search_does_not_stop_those_in_other_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    slow, quick = (mw.build_store({"const": value}, vocabulary()) for value in ("a", "b"))
    is_searching, may_end = threading.Event(), threading.Event()
    start = JsonStates.start

    def waiting(states: JsonStates, text: Any) -> Any:
        if text.bytes_said() == b'"a':
            is_searching.set()
            assert may_end.wait(60)
        return start(states, text)

    monkeypatch.setattr(JsonStates, "start", waiting)
    found: list[bytes] = []
    matchers = slow.matcher(), quick.matcher()
    for matcher, text in zip(matchers, (b'"a', b'"'), strict=True):
        matcher.advance_bytes(text)
    threads = [
        threading.Thread(target=lambda matcher=matcher: found.append(matcher.shortest_ending().data))
        for matcher in matchers
    ]
    threads[0].start()
    assert is_searching.wait(60)
    threads[1].start()
    threads[1].join(20)
    may_end.set()
    for thread in threads:
        thread.join()
    assert found == [b'b"', b'"']
