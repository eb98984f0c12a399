"""An engine of one's own: a `TextState` in plain Python and a row of the registry, and all else follows."""

from __future__ import annotations

import gc
import pickle
import weakref
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from mask_bits import ids

import maskwright as mw
from maskwright.analysis.regex.dfa import Dfa
from maskwright.decoding.endings import states
from maskwright.decoding.engine import constants
from maskwright.decoding.engine.state import TextState
from maskwright.decoding.engines import ENGINES, Engine, explain_after
from maskwright.decoding.generation import generate
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.masks import n_words
from maskwright.serving.server_matcher import ServerMatcher

VOCABULARY = mw.load_vocabulary("python-tiny")
PATTERN = r"(ab|cd+)*;(yes|no)"


@dataclass(frozen=True)
class ToyStore:
    """The texts of an automaton."""

    automaton: Dfa
    vocabulary: Vocabulary
    name: str
    engine = "toy"

    @property
    def n_words(self) -> int:
        return n_words(self.vocabulary.size)


class ToyText(TextState):
    """The states behind each token that was said, and whether the last of them has ended the text."""

    said: list[int | bytes]

    def __init__(self, store: ToyStore, max_rollback: int) -> None:
        super().__init__(store, max_rollback)
        self.under = store.name
        self.reset()

    def reset(self) -> None:
        self.said, self._states, self._has_ended = [], [0], False

    def read(self, data: bytes, commit: bool) -> int:
        if self._has_ended:
            return constants.AFTER_END
        return self._note(data, self.store.automaton.run(data, self._states[-1]), commit)

    def read_token(self, token: int, commit: bool) -> int:
        vocabulary = self.store.vocabulary
        if not 0 <= token < vocabulary.size:
            return constants.OUT_OF_RANGE
        if self._has_ended:
            return constants.AFTER_END
        if token in vocabulary.eos:
            if not self.can_end():
                return constants.NOT_COMPLETE
            self._has_ended = commit
            return self._note(token, self._states[-1], commit)
        data = vocabulary.tokens[token]
        return (
            self._note(token, self.store.automaton.run(data, self._states[-1]), commit) if data else constants.NO_TEXT
        )

    def _note(self, said: int | bytes, state: int, commit: bool) -> int:
        if state < 0:
            return constants.ILLEGAL
        if commit:
            self.said.append(said)
            self._states = [*self._states, state][-1 - self.max_rollback :]
        return constants.OK

    def can_end(self) -> bool:
        return self._has_ended or bool(self.store.automaton.is_accepting[self._states[-1]])

    def is_finished(self) -> bool:
        return self._has_ended

    def remembered(self) -> int:
        return len(self._states) - 1

    def forget(self, remembered: int) -> None:
        self._states = self._states[-1 - remembered :]

    def undo(self, n: int) -> None:
        del self.said[-n:], self._states[-n:]
        self._has_ended = False

    def become(self, other: Any) -> TextState:
        self.max_rollback, self.said, self._has_ended = other.max_rollback, other.said.copy(), other._has_ended
        self._states = other._states.copy()
        return self

    def copy(self) -> TextState:
        return ToyText(self.store, self.max_rollback).become(self)

    def key(self) -> object:
        return self._states[-1]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(ENGINES, "toy", Engine(ToyText))
    return ToyStore(mw.load_regex(PATTERN).automaton, VOCABULARY, f"{PATTERN!r}")


def test_a_fork_takes_nothing_back_from_the_first_text(store: Any) -> None:
    one = mw.Matcher(store, 3)
    one.advance_bytes(b"ab")
    other = one.fork()
    other.rollback(1)
    assert (one.said(), other.said()) == (b"ab", b"")
    one.rollback(1)
    one.advance_bytes(b"cd")
    assert (one.said(), other.said()) == (b"cd", b"")


def said(use: Any, *arguments: Any) -> Any:
    """What a call gives, or its error."""
    try:
        return use(*arguments)
    except mw.MaskwrightError as error:
        return type(error), str(error)


def test_it_does_what_the_engine_of_patterns_does(store: Any) -> None:
    known = mw.build_store(mw.load_regex(PATTERN), VOCABULARY)
    one, other = mw.Matcher(store, 3), mw.Matcher(known, 3)
    words = [np.zeros(store.n_words, np.uint32) for _ in range(2)]
    rng = np.random.default_rng(3)
    for step in range(60):
        assert said(one.fill, words[0]) == said(other.fill, words[1])
        assert (words[0] == words[1]).all()
        assert one.forced_bytes() == other.forced_bytes()
        assert (one.is_accepting(), one.is_finished(), one.said()) == (
            other.is_accepting(),
            other.is_finished(),
            other.said(),
        )
        allowed = sorted(ids(words[0])) or [0]
        token = int(rng.choice(allowed)) if rng.random() < 0.8 else int(rng.integers(-1, VOCABULARY.size + 1))
        for use in (mw.Matcher.is_allowed, mw.Matcher.why, mw.Matcher.advance):
            assert said(use, one, token) == said(use, other, token)
        if step % 7 == 6:
            n = int(rng.integers(0, 4))
            assert said(one.rollback, n) == said(other.rollback, n)
        if step % 11 == 10:
            one, other = pickle.loads(pickle.dumps(one)) if step % 2 else one.fork(), other.fork()
        if one.is_finished():
            one.reset()
            other.reset()


@pytest.mark.parametrize("has_bytes", [True, False])
def test_endings_are_the_shortest(store: Any, monkeypatch: pytest.MonkeyPatch, has_bytes: bool) -> None:
    """Held against the search for patterns; without some single bytes tokens are tried instead."""
    if not has_bytes:
        texts = (b"a", b"b", b"ab", b"abcd", b"cd", b"d", b";ye", b"s", b";no", b"")
        store = replace(store, vocabulary=Vocabulary("few", texts, {9: "</s>"}, (9,)))
    known = mw.build_store(mw.load_regex(PATTERN), store.vocabulary)
    for before in (b"", b"ab", b"a", b"abc", b"cdd", b"ab;", b"ab;n", b"cd;ye", b"abcd;no"):
        one, other = mw.Matcher(store, 3), mw.Matcher(known, 3)
        one.advance_bytes(before)
        other.advance_bytes(before)
        if not has_bytes and before.endswith((b";", b";n")):
            with pytest.raises(mw.DeadEndError, match="but not under vocabulary few"):
                one.short_ending()
            continue
        found = one.short_ending()
        assert found.is_shortest and len(found.data) == len(other.shortest_ending().data) == one.min_bytes_left()
        assert b"".join(store.vocabulary.tokens[token] for token in found.tokens) == found.data
        assert len(found.tokens) == len(other.shortest_ending().tokens)
        one.advance_bytes(found.data)
        assert one.is_accepting()


def test_a_search_without_keys_gives_up(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ToyText, "key", TextState.key)
    assert mw.Matcher(store).short_ending().data == b";no"
    monkeypatch.setattr(ToyText, "can_end", lambda self: False)
    monkeypatch.setattr(states, "MOST_TEXTS", 100)
    with pytest.raises(mw.LimitError, match="no shortest ending of the text was found among"):
        mw.Matcher(store).shortest_ending()


def test_a_store_goes_once_nobody_has_it(store: Any) -> None:
    """What is kept of endings holds no text of the store."""
    store = replace(store)
    assert mw.Matcher(store).short_ending().data == b";no"
    there = weakref.ref(store)
    del store
    gc.collect()
    assert there() is None


def test_batches_words_generation_and_servers_follow(store: Any) -> None:
    batch = mw.Batch(store, 2)
    batch.advance_bytes(1, b"ab;")
    batch.copy(1, 0)
    with pytest.raises(
        mw.IllegalTokenError, match=r"^slot 0: token \d+ \(b'a'\) is not legal here under .*; the state is unchanged"
    ):
        batch.advance([VOCABULARY.tokens.index(b"a"), VOCABULARY.tokens.index(b"no")])
    assert batch.is_accepting(1) and not batch.is_accepting(0)
    mixed = mw.Batch([store, mw.build_store("json", VOCABULARY)])
    mixed.fill(np.zeros((2, store.n_words), np.uint32))
    with pytest.raises(mw.MaskwrightError, match="only a terminal of a grammar's store can be held to names"):
        batch.restrict(0, "NAME", ["a"])
    matcher = mw.Matcher(store)
    assert explain_after(store, b"ab", b"c").is_allowed and explain_after(store, b"ab;").is_allowed
    assert not explain_after(store, b"ab", b"d").is_allowed and not explain_after(store, b"b").is_allowed
    explained = matcher.explain(VOCABULARY.tokens.index(b"a"))
    assert explained.is_allowed and not matcher.explain(VOCABULARY.tokens.index(b"no")).is_allowed
    steps = generate(lambda tokens: np.zeros(VOCABULARY.size), matcher, [VOCABULARY.tokens.index(b"a")], max_tokens=12)
    data = b"".join(step.data for step in steps)
    assert mw.load_regex(PATTERN).automaton.matches(data) and matcher.is_accepting()
    server = ServerMatcher(store, (VOCABULARY.tokens.index(b"!"),), VOCABULARY.size)
    server.advance_bytes(b";no")
    row = np.zeros(store.n_words, np.uint32)
    assert server.fill_row(row) is None and server.try_advance(VOCABULARY.tokens.index(b"!")) and server.is_finished()
