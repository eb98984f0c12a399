"""The walk from all lexer states at once, against reading each token from each state, byte by byte."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from engine_cases import MAKERS, random_contextual_grammar, random_vocabulary
from naive import states_after
from shares import share

from maskwright.analysis.errors import GrammarError, LimitError
from maskwright.analysis.lexing.encoding import RESTART, START_STATE
from maskwright.analysis.loading import parse_grammar
from maskwright.maskstore.automaton.stack_automaton import build_automaton
from maskwright.maskstore.tokens import token_walk
from maskwright.maskstore.tokens.feasible import Feasible
from maskwright.maskstore.tokens.requirements import Requirements
from maskwright.maskstore.tokens.token_walk import TokenWalk
from maskwright.maskstore.vocabulary import SortedTexts, Vocabulary

Way = tuple[tuple[int, ...], int]
"""Symbols emitted, and the lexer's state."""


class Naive:
    """Reads tokens by the transducer's tables alone."""

    def __init__(self, required: Requirements) -> None:
        self.required = required
        self.states_of: dict[tuple[int, ...], frozenset[int]] = {(): frozenset(range(required._tables.n_states))}

    def states(self, symbols: tuple[int, ...]) -> frozenset[int]:
        """The states that a parser can be in after some symbols."""
        if symbols not in self.states_of:
            required, before, last = self.required, self.states(symbols[:-1]), symbols[-1]
            if last >= required.mode_code:
                found = {s for s in before if required.modes.of_state[s] == last - required.mode_code}
            elif last >= required.codes.n_terminals:
                found = set(self.states_of[()]) if before else set()
            else:
                column = required.column_of[last]
                found = states_after(required._tables, before, column) if column >= 0 else set()
            self.states_of[symbols] = frozenset(found)
        return self.states_of[symbols]

    def ways(self, state: int, token: bytes) -> set[Way]:
        if self.required.transducer.n_modes > 1 and state in self.required.transducer.mode_state:
            return set()
        return set(self._read(state, token, 0, (), 0))

    def _read(self, state: int, data: bytes, n_again: int, symbols: tuple[int, ...], move: int) -> Iterator[Way]:
        """n_again : how many bytes of `data` are read anew."""
        required, transducer = self.required, self.required.transducer
        if not self.states(symbols):
            return
        if not data:
            yield symbols, state
            return
        if state == START_STATE and transducer.n_modes > 1:
            last = symbols[-1] if symbols else -1
            for mode, begin in enumerate(transducer.mode_state.tolist()):
                if last >= required.mode_code:
                    if last == required.mode_code + mode:
                        yield from self._read(begin, data, n_again, symbols, move)
                elif not 0 <= last < len(required.modes.may_follow) or required.modes.may_follow[last, mode]:
                    yield from self._read(begin, data, n_again, (*symbols, required.mode_code + mode), move)
            return
        klass = int(transducer.byte_class[data[0]])
        after = int(transducer.next_state[state, klass])
        for symbol in transducer.outputs[int(transducer.output[state, klass])]:
            is_newline = symbol == required.newline
            symbol = int(required.symbol_of[symbol])
            symbols = (*symbols, required.codes.newline_at(0) + 2 * move if is_newline else symbol)
        if after == RESTART:
            pending = transducer.pending[state]
            yield from self._read(START_STATE, pending + data, len(pending) + n_again, symbols, move)
        elif after >= 0:
            further = move if n_again else required.codes.moves.step(move, data[0])
            yield from self._read(after, data[1:], max(0, n_again - 1), symbols, further)


def walked(required: Requirements, texts: SortedTexts) -> TokenWalk:
    feasible = Feasible(
        required._tables, required.column_of, required.modes.of_state, required.mode_code, len(required.modes)
    )
    return TokenWalk(
        "x", required.transducer, required.modes, required.codes, feasible, required.newline, required.symbol_of, texts
    )


def ways_of(required: Requirements, walk: TokenWalk, texts: SortedTexts, state: int) -> dict[int, set[Way]]:
    """Token id -> its ways."""
    n = required.transducer.n_states
    parent, last = walk.sequences
    of_class: dict[int, set[Way]] = {}
    classes, starts, keys = (array.tolist() for array in walk.groups(state, np.arange(n, dtype=np.int32), n))
    for number, key in ((each, key) for i, key in enumerate(keys) for each in classes[starts[i] : starts[i + 1]]):
        sequence, ended = divmod(key, n)
        symbols = []
        while sequence:
            symbols.append(int(last[sequence]))
            sequence = int(parent[sequence])
        of_class.setdefault(number, set()).add((tuple(reversed(symbols)), ended))
    ids = texts.ids[texts.by_id].tolist()
    return {token: of_class[c] for token, c in zip(ids, walk.class_of.tolist(), strict=True) if c in of_class}


@pytest.mark.parametrize("seed", share(range(16), 3))
@pytest.mark.parametrize("make", MAKERS)
def test_all_tokens_do_what_they_do_one_by_one(make: Any, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    grammar = make(seed)
    vocabulary = random_vocabulary(grammar, seed)
    try:
        required = build_automaton(grammar, vocabulary).required
    except GrammarError:
        pytest.skip("the grammar has no store")
    if seed % 2:
        # tables that are full, and pauses, all the time
        for name, value in (("FIRST_ROWS", 2), ("FIRST_CAPACITY", 4), ("PAUSE", 10)):
            monkeypatch.setattr(token_walk, name, value)
    texts = vocabulary.sorted_texts
    walk, naive, n_ways = walked(required, texts), Naive(required), 0
    classes: dict[tuple[Any, ...], set[int]] = {}
    of_state = [ways_of(required, walk, texts, state) for state in range(required.transducer.n_states)]
    for state, found in enumerate(of_state):
        expected = {token: naive.ways(state, vocabulary.tokens[token]) for token in texts.ids.tolist()}
        assert found == {token: ways for token, ways in expected.items() if ways}, state
        n_ways += sum(map(len, found.values()))
    assert n_ways
    for token, number in zip(texts.ids[texts.by_id].tolist(), walk.class_of.tolist(), strict=True):
        does = tuple(frozenset(found.get(token, ())) for found in of_state)
        classes.setdefault(does if any(does) else (), set()).add(number)
    assert classes.pop((), {-1}) == {-1}, "what no state reads is in no class"
    # tokens of a class do the same. (Those that begin with different bytes may be of two classes all the same.)
    numbers = [number for each in classes.values() for number in each]
    assert sorted(numbers) == list(range(walk.n_classes))


def test_a_vocabulary_is_walked_in_the_order_of_its_bytes() -> None:
    grammar = parse_grammar('start: ("a" | "ab" | "b" "c")+')
    orders = []
    for seed in range(5):
        tokens = [b"a", b"ab", b"abc", b"b", b"bc", b"c", b"ca", b"aa", b"x", b"a"]
        random.Random(seed).shuffle(tokens)
        vocabulary = Vocabulary("x", (*tokens, b""), {len(tokens): "</s>"}, (len(tokens),))
        required = build_automaton(grammar, vocabulary).required
        texts = vocabulary.sorted_texts
        walk = walked(required, texts)
        orders.append(
            [
                {tokens[token]: ways for token, ways in ways_of(required, walk, texts, state).items()}
                for state in range(required.transducer.n_states)
            ]
        )
        assert walk.class_of.min() == -1, "no state reads x"
    assert all(order == orders[0] for order in orders)


def test_a_token_that_can_be_read_in_too_many_ways_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = set()
    for seed in range(12):
        grammar = random_contextual_grammar(seed)
        vocabulary = random_vocabulary(grammar, seed)
        try:
            required = build_automaton(grammar, vocabulary).required
        except GrammarError:
            continue
        with monkeypatch.context() as patched:
            patched.setattr(token_walk, "FIRST_FOUND", 1)
            patched.setattr(token_walk, "MOST_CONFIGURATIONS", 0)
            try:
                walked(required, vocabulary.sorted_texts)
            except LimitError as error:
                messages.add(str(error))
    assert messages == {
        "grammar x: some token can be read in too many ways under contextual lexing; load the grammar with lexing='longest'"
    }
