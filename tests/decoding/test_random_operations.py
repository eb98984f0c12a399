"""All operations of matchers and batches, in random order, on random constraints of all kinds with odd vocabularies."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from naive_languages import Automaton, States, random_case, random_vocabulary
from shares import parts, share

import maskwright as mw

STEPS = 100
MOST_TEXTS = 4
KEPT = (0, 1, 3, 3, 256)
"""Values of `max_rollback`."""


def pickled(one: Any) -> Any:
    return pickle.loads(pickle.dumps(one))


class State(NamedTuple):
    states: States
    is_ended: bool


class Expected:
    """What a text should be. history : its states, the last one being now, as far back as can be rolled back."""

    def __init__(self, trial: Trial, history: list[State]) -> None:
        self.trial, self.history = trial, history

    @property
    def now(self) -> State:
        return self.history[-1]

    def copy(self) -> Expected:
        return Expected(self.trial, list(self.history))

    def push(self, state: State) -> None:
        self.history = [*self.history, state][-self.trial.max_rollback - 1 :]

    def back(self, n: int) -> bool:
        """Take back n tokens. Returns whether so many are remembered."""
        is_remembered = n < len(self.history)
        if is_remembered:
            del self.history[len(self.history) - n :]
        return is_remembered

    def after(self, token: int) -> State | None:
        return self.trial.after(self.now, token)

    def after_bytes(self, data: bytes) -> State | None:
        states = self.trial.automaton.after(self.now.states, data)
        return State(states, False) if states and not self.now.is_ended else None


class Trial:
    """One store, some matchers and a batch of it, and what each text should be."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.rng = rng = random.Random(seed)
        case = random_case(rng)
        self.automaton = Automaton(case.tree)
        self.vocabulary = random_vocabulary(rng, case, self.automaton)
        self.masks: dict[State, np.ndarray] = {}
        self.max_rollback = rng.choice(KEPT)
        self.store = store = self.made(
            case.make(), rng.choice(("built", "lazy", "saved", "mapped", "pickled", "copied")), folder
        )
        self.start = State(self.automaton.start, False)
        self.texts = [(store.matcher(self.max_rollback), Expected(self, [self.start]))]
        size = rng.randrange(1, 5)
        self.batch = store.batch(size, self.max_rollback, n_threads=rng.choice([1, 1, 2]))
        self.slots = [Expected(self, [self.start]) for _ in range(size)]

    def made(self, constraint: Any, how: str, folder: Path) -> Any:
        store = mw.build_store(constraint, self.vocabulary, lazy=how == "lazy")
        if how in ("saved", "mapped"):
            store.save(folder / "store.safetensors")
            return mw.load_store(folder / "store.safetensors", vocabulary=self.vocabulary, mapped=how == "mapped")
        return (
            pickle.loads(pickle.dumps(store))
            if how == "pickled"
            else copy.deepcopy(store)
            if how == "copied"
            else store
        )

    # -- from the definition

    def after(self, state: State, token: int) -> State | None:
        """The state behind a token; None if it is not allowed."""
        if state.is_ended:
            return None
        if token in self.vocabulary.eos:
            return State(state.states, True) if self.automaton.accepts(state.states) else None
        data = self.vocabulary.tokens[token]
        states = self.automaton.after(state.states, data)
        return State(states, False) if data and states else None

    def mask(self, state: State) -> np.ndarray:
        if state not in self.masks:
            self.masks[state] = np.array(
                [self.after(state, token) is not None for token in range(self.vocabulary.size)]
            )
        return self.masks[state]

    def is_dead(self, state: State) -> bool:
        return not state.is_ended and not self.mask(state).any()

    # -- what is drawn

    def token(self, state: State) -> int:
        """A token: most often one that is allowed and goes on."""
        allowed = np.flatnonzero(self.mask(state)).tolist()
        going_on = [token for token in allowed if token not in self.vocabulary.eos]
        some = going_on if going_on and self.rng.random() < 0.8 else allowed
        return self.rng.choice(some) if some and self.rng.random() < 0.8 else self.rng.randrange(self.vocabulary.size)

    def text(self, state: State) -> bytes:
        return b"".join(self.vocabulary.tokens[self.token(state)] for _ in range(self.rng.randrange(3)))

    def room(self, *lead: int) -> np.ndarray:
        """Room for masks, with something in it: of either type, wider than need be or not."""
        words = -(-self.vocabulary.size // 32) + self.rng.choice([0, 0, 1, 3])
        return np.full((*lead, words), self.rng.choice([-1, 7]), np.int32).view(self.rng.choice([np.int32, np.uint32]))

    def check(self, row: np.ndarray, state: State) -> None:
        """Compare a mask that was written."""
        bits = np.unpackbits(row.view(np.uint8), bitorder="little").astype(bool)
        wanted = self.mask(state)
        wrong = np.flatnonzero(bits[: len(wanted)] != wanted)
        assert not len(wrong), [(self.vocabulary.tokens[token][:40], bool(bits[token])) for token in wrong[:5].tolist()]
        assert not bits[len(wanted) :].any()

    # -- operations of a matcher

    def fill(self, matcher: Any, text: Expected) -> None:
        row = self.room()
        assert self.refuses(mw.DeadEndError, matcher.fill, row) == self.is_dead(text.now)
        if not self.is_dead(text.now):
            self.check(row, text.now)

    def advance(self, matcher: Any, text: Expected) -> None:
        token = self.token(text.now)
        self.took(text, text.after(token), not self.refuses(mw.IllegalTokenError, matcher.advance, token))

    def step(self, matcher: Any, text: Expected) -> None:
        token, row = self.token(text.now), self.room()
        after = text.after(token)
        if after is None:
            assert self.refuses(mw.IllegalTokenError, matcher.step, token, row)
            return
        text.push(after)
        assert self.refuses(mw.DeadEndError, matcher.step, token, row) == self.is_dead(after)
        if not self.is_dead(after):
            self.check(row, after)

    def read_bytes(self, matcher: Any, text: Expected) -> None:
        data = self.text(text.now)
        if self.rng.random() < 0.5:
            is_read = matcher.try_bytes(data)
        else:
            is_read = not self.refuses(mw.IllegalTokenError, matcher.advance_bytes, data)
        if data:
            self.took(text, text.after_bytes(data), is_read)

    def replay(self, matcher: Any, text: Expected) -> None:
        tokens, path = [], [text.now]
        for _ in range(self.rng.randrange(6)):
            tokens.append(self.token(path[-1]))
            after = self.after(path[-1], tokens[-1])
            if after is None:
                break
            path.append(after)
        array = np.array(tokens, self.rng.choice([np.int64, np.int32, np.uint32]))
        dead = next((at for at, state in enumerate(path) if self.is_dead(state)), len(path))
        try:
            n = matcher.replay(array)
            assert n == len(path) - 1
        except mw.DeadEndError:
            assert dead < len(path)
            n = dead
        for state in path[1 : n + 1]:
            text.push(state)

    def rollback(self, matcher: Any, text: Expected) -> None:
        n = self.rng.randrange(4)
        assert self.refuses(mw.MaskwrightError, matcher.rollback, n) != text.back(n)

    def reset(self, matcher: Any, text: Expected) -> None:
        if self.rng.random() < 0.3:
            matcher.reset()
            text.history = [self.start]

    def double(self, matcher: Any, text: Expected) -> None:
        copies: list[Callable[[Any], Any]] = [lambda one: one.fork(), copy.copy, copy.deepcopy, pickled, pickled]
        if len(self.texts) == MOST_TEXTS:
            self.texts.pop(self.rng.randrange(MOST_TEXTS))
        self.texts.append((self.rng.choice(copies)(matcher), text.copy()))

    def ask(self, matcher: Any, text: Expected) -> None:
        token = self.token(text.now)
        assert matcher.is_allowed(token) == (text.after(token) is not None)
        assert matcher.is_accepting() == self.automaton.accepts(text.now.states)
        assert matcher.is_finished() == text.now.is_ended

    def endings(self, matcher: Any, text: Expected) -> None:
        if text.now.is_ended:
            return
        for find in (matcher.short_ending, matcher.shortest_ending):
            try:
                ending = find()
            except (mw.DeadEndError, mw.LimitError):
                continue
            assert self.automaton.accepts(self.automaton.after(text.now.states, ending.data))
            assert b"".join(self.vocabulary.tokens[token] for token in ending.tokens) == ending.data

    def forced(self, matcher: Any, text: Expected) -> None:
        if text.now.is_ended or not self.vocabulary.is_byte_complete:
            return
        states, wanted = text.now.states, b""
        while len(wanted) < 20 and not self.automaton.accepts(states) and len(self.automaton.bytes_at(states)) == 1:
            wanted += bytes(self.automaton.bytes_at(states))
            states = self.automaton.after(states, wanted[-1:])
        assert matcher.forced_bytes(20) == wanted

    # -- operations of the batch

    def batch_advance(self) -> None:
        tokens = [self.token(text.now) if self.rng.random() < 0.8 else -1 for text in self.slots]
        after = [None if token < 0 else text.after(token) for token, text in zip(tokens, self.slots, strict=True)]
        is_wrong = any(token >= 0 and state is None for token, state in zip(tokens, after, strict=True))
        array = np.array(tokens, self.rng.choice([np.int64, np.int32]))
        assert self.refuses(mw.IllegalTokenError, self.batch.advance, array) == is_wrong
        for text, state in zip(self.slots, after, strict=True):
            if state is not None:
                text.push(state)

    def batch_fill(self) -> None:
        rows, n = self.room(len(self.slots)), len(self.slots)
        chosen = None if self.rng.random() < 0.6 else [self.rng.randrange(n) for _ in range(self.rng.randrange(n + 1))]
        asked = range(n) if chosen is None else sorted(set(chosen))
        before, is_dead = rows.copy(), any(self.is_dead(self.slots[slot].now) for slot in asked)
        assert self.refuses(mw.DeadEndError, self.batch.fill, rows, chosen) == is_dead
        for slot, text in enumerate(self.slots):
            if slot not in asked:
                assert (rows[slot] == before[slot]).all()
            elif not is_dead:
                self.check(rows[slot], text.now)

    def batch_slot(self) -> None:
        slot, other, kind = (
            self.rng.randrange(len(self.slots)),
            self.rng.randrange(len(self.slots)),
            self.rng.randrange(5),
        )
        text, batch = self.slots[slot], self.batch
        if kind == 0:
            batch.copy(slot, other)
            self.slots[other] = text.copy()
        elif kind == 1:
            batch.reset(slot)
            text.history = [self.start]
        elif kind == 2:
            n = self.rng.randrange(4)
            assert self.refuses(mw.MaskwrightError, batch.rollback, slot, n) != text.back(n)
        elif kind == 3:
            data = self.text(text.now)
            is_read = not self.refuses(mw.IllegalTokenError, batch.advance_bytes, slot, data)
            if data:
                self.took(text, text.after_bytes(data), is_read)
        else:
            token = self.token(text.now)
            assert batch.is_allowed(slot, token) == (text.after(token) is not None)
            assert batch.is_accepting(slot) == self.automaton.accepts(text.now.states)
            assert batch.is_finished(slot) == text.now.is_ended
            if self.rng.random() < 0.3:
                self.batch = pickled(batch) if self.rng.random() < 0.5 else copy.copy(batch)

    @staticmethod
    def took(text: Expected, after: State | None, is_taken: bool) -> None:
        assert is_taken == (after is not None)
        if after is not None:
            text.push(after)

    @staticmethod
    def refuses(kind: type[Exception], call: Callable[..., Any], *arguments: Any) -> bool:
        try:
            call(*arguments)
        except kind:
            return True
        return False

    def run(self) -> None:
        of_texts = 5 * [self.advance] + 4 * [self.fill] + 2 * [self.double] + [self.step, self.read_bytes, self.replay]
        of_texts += 3 * [self.rollback] + [self.reset, self.ask, self.endings, self.forced]
        of_batch = [self.batch_advance, self.batch_advance, self.batch_fill, self.batch_slot, self.batch_slot]
        for _ in range(STEPS):
            if self.rng.random() < 0.3:
                self.rng.choice(of_batch)()
            else:
                self.rng.choice(of_texts)(*self.rng.choice(self.texts))


@pytest.mark.parametrize("seeds", share(parts(3000, 10), 4), ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}")
def test_operations(seeds: range, tmp_path: Path) -> None:
    n = 0
    for seed in seeds:
        try:
            trial = Trial(seed, tmp_path)
        except (mw.DeadEndError, mw.VocabularyError):
            continue  # no tokens spell a text, or there are none
        try:
            trial.run()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {trial.store!r}: {error}") from error
        n += 1
    assert n
