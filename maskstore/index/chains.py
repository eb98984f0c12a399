"""Coalescence: where a pattern leaves the model no choice, and what text comes there.

Source: the idea is that of R. Louf's "Coalescence" (2024), for Outlines; V. Tran-Thien's "Fast,
high-fidelity LLM decoding with regex constraints" (2024) asks which of the spellings of a text a
model would take.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from maskwright.analysis.regex.dfa import Dfa
from maskwright.maskstore.vocabulary import Vocabulary


class Walked(Protocol):
    """What chains need of a `TokenIndex`."""

    @property
    def automaton(self) -> Dfa:
        """See `TokenIndex`."""

    @property
    def vocabulary(self) -> Vocabulary:
        """See `TokenIndex`."""

    @property
    def states(self) -> npt.NDArray[np.int32]:
        """See `TokenIndex`."""

    def n_allowed(self, state: int) -> int:
        """See `TokenIndex`."""

    def allowed_tokens(self, state: int) -> npt.NDArray[np.int32]:
        """See `TokenIndex`."""

    def next_state(self, state: int, token: int) -> int | None:
        """See `TokenIndex`."""


class Chain(NamedTuple):
    """Tokens that may be appended without asking the model.

    A state is *forced* if no text ends there and either one token is allowed, or all allowed tokens
    lead along one text: `n`, `na`, `name` where `name"` must come. A chain takes the longest of
    them, in one forced state after the other.

    start, end : the first state, and the first that is not forced.
    tokens : the chain.
    text : its bytes.
    is_only : whether no state on the way allows another token. Then the model, too, could only have
        written these tokens; else only this text.
    """

    start: int
    end: int
    tokens: tuple[int, ...]
    text: bytes
    is_only: bool


@lru_cache(maxsize=8)
def _counts(vocabulary: Vocabulary) -> tuple[Mapping[bytes, int], int]:
    """How many tokens have each text, and the longest text's bytes."""
    found = Counter(token for token in vocabulary.tokens if token)
    return found, max(map(len, found))


def forced_token(index: Walked, state: int) -> tuple[int, bool] | None:
    """The longest token of a forced state, and whether no other is allowed; None elsewhere.

    Cost: O(bytes of the longest token).
    """
    automaton = index.automaton
    if automaton.is_accepting[state]:
        return None
    n_allowed = index.n_allowed(state)
    if n_allowed == 1:
        return int(index.allowed_tokens(state)[0]), True
    counts, longest = _counts(index.vocabulary)
    at, text, n, best = state, bytearray(), 0, b""
    while len(text) < longest and not automaton.is_accepting[at]:
        onward = (automaton.next_state[at] >= 0).nonzero()[0]
        if len(onward) != 1:
            break
        text.append(int(onward[0]))
        at = int(automaton.next_state[at, onward[0]])
        spelled = bytes(text)
        if spelled in counts:
            n, best = n + counts[spelled], spelled
    # tokens that spell a beginning of the one text are all allowed: equal numbers leave no other
    return (index.vocabulary.id_of_text[best], False) if best and n == n_allowed else None


def chain_from(index: Walked, state: int) -> Chain | None:
    """The forced chain from a state; None where the state is not forced.

    It ends before a state that it has met: with a vocabulary that lacks bytes, the only tokens may
    go round for ever.
    """
    at, tokens, is_only = state, [], True
    met = {state}
    while (found := forced_token(index, at)) is not None:
        token, is_alone = found
        after = index.next_state(at, token)
        if after is None or after in met:
            break
        met.add(after)
        tokens.append(token)
        is_only = is_only and is_alone
        at = after
    if not tokens:
        return None
    return Chain(state, at, tuple(tokens), b"".join(index.vocabulary.tokens[token] for token in tokens), is_only)


def chains_of(index: Walked) -> tuple[Chain, ...]:
    """The chains that do not begin on the way of another one, by their first states."""
    inside: set[int] = set()
    starts = []
    for state in index.states.tolist():
        found = forced_token(index, state)
        if found is not None:
            starts.append(state)
            at = state
            for byte in index.vocabulary.tokens[found[0]]:
                at = int(index.automaton.next_state[at, byte])
                inside.add(at)
    found_chains = (chain_from(index, state) for state in starts if state not in inside)
    return tuple(chain for chain in found_chains if chain is not None)
