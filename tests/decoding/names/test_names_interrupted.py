"""Ctrl-C in a text of which a terminal is held to names: it is as before the call, or as after it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest
from engine_cases import longest, vocabulary_of

import maskwright as mw
from maskwright.decoding.matcher import Matcher
from maskwright.stores.build import compile_store

INTERRUPTED = ("decoding/matcher.py", "decoding/grammar/text.py", "decoding/names/text.py")
CALLS: dict[str, Callable[[Matcher], object]] = {
    "advance": lambda matcher: matcher.advance(matcher.store.vocabulary.tokens.index(b"o")),
    "a token that ends the name": lambda matcher: matcher.advance_bytes(b"oo;"),
    "advance_bytes": lambda matcher: matcher.advance_bytes(b"oo"),
    "step": lambda matcher: matcher.step(matcher.store.vocabulary.tokens.index(b"o"), words_of(matcher)),
    "try_bytes": lambda matcher: matcher.try_bytes(b"oo"),
    "replay": lambda matcher: matcher.replay([matcher.store.vocabulary.tokens.index(b"o")]),
    "rollback": lambda matcher: matcher.rollback(min(2, matcher.remembered())),
    "reset": lambda matcher: matcher.reset(),
    "restrict": lambda matcher: matcher.restrict("NAME", ["foo", "foobar"]),
    "become held": lambda matcher: matcher.become(held(matcher.store, matcher.max_rollback, b"bar;", "baz")),
    "become free": lambda matcher: matcher.become(free(matcher.store, matcher.max_rollback, b"bar;b")),
}
"""What is done to `f`, which may go on with `oo` alone."""


@pytest.fixture(scope="module")
def store() -> mw.Store:
    grammar = 'start: (NAME ";")*\nNAME: /[a-z]+/\n%ignore " "'
    return compile_store(longest(grammar), vocabulary_of(b"oo", b"oo;", singles=b"abfoxz; "))


def words_of(matcher: Matcher) -> Any:
    return np.zeros(matcher.store.n_words, np.int32)


def free(store: mw.Store, max_rollback: int, *pieces: bytes) -> Matcher:
    matcher = store.matcher(max_rollback)
    for piece in pieces:
        matcher.advance_bytes(piece)
    return matcher


def held(store: mw.Store, max_rollback: int, text: bytes, name: str, *then: bytes) -> Matcher:
    matcher = free(store, max_rollback, text)
    matcher.restrict("NAME", [name])
    for piece in then:
        matcher.advance_bytes(piece)
    return matcher


def seen(matcher: Matcher) -> list[object]:
    """What can be told of a matcher: its masks here and behind each rollback, and behind what may come."""
    found: list[object] = []
    for back in range(matcher.remembered() + 1):
        there = matcher.fork()
        there.rollback(back)
        found += [there.remembered(), there.allowed_tokens(), there.is_accepting()]
        for data in (b"o", b"oo;", b"x", b"oo;x", b";", b"z;"):
            ahead = there.fork()
            found.append((data, ahead.try_bytes(data) and ahead.allowed_tokens()))
    words = words_of(matcher)
    matcher.fill(words)
    return [*found, words.tolist()]


@pytest.mark.parametrize("max_rollback", [0, 1, 2, 50])
@pytest.mark.parametrize("name", CALLS)
def test_an_interrupted_text_is_as_before_or_as_after(name: str, max_rollback: int, store: mw.Store) -> None:
    begin = held(store, max_rollback, b"x;", "foo", b" ", b"f")
    done = begin.fork()
    CALLS[name](done)
    expected = [seen(begin), seen(done)]
    n_before = 0
    for n in range(1, 1000):
        matcher = begin.fork()
        matcher.fill(words_of(matcher))
        if not interrupted_at(n, lambda: CALLS[name](matcher)):  # noqa: B023 - it is called at once
            break
        matcher._is_busy = False  # at the line behind the one that sets it, where no signal is taken
        outcome = expected.index(seen(matcher))
        n_before += outcome == 0
    assert n > 6 and n_before > 0


def interrupted_at(n: int, work: Callable[[], object]) -> bool:
    """Do something with Ctrl-C before the nth line of `INTERRUPTED`. Returns whether there are so many."""
    left = n

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.endswith(INTERRUPTED):
            return None
        if event == "line":
            left -= 1
            if not left:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False
