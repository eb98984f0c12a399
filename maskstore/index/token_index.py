"""The automaton over tokens of a pattern and a vocabulary, and its coalescence.

Coalescence: where a pattern leaves the model no choice, and what text comes there.

Source: the idea is that of R. Louf's "Coalescence" (2024), for Outlines; V. Tran-Thien's "Fast,
high-fidelity LLM decoding with regex constraints" (2024) asks which of the spellings of a text a
model would take.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import as_integer, clip
from maskwright.analysis.errors import LimitError, MaskwrightError
from maskwright.analysis.kept import cached_property
from maskwright.analysis.regex.dfa import Dfa
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.masks import n_words, packed

MOST_KEPT = 1 << 26
"""BOUND: the bytes of the lists of tokens and the masks that an index keeps."""


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


@dataclass(frozen=True, repr=False, eq=False)
class TokenIndex:
    """Which tokens come next in each state of a pattern, and where they lead; see `build_index`.

    The states are those of the automaton over bytes; `states` are those that tokens lead to. Tokens
    that do the same in all states are one *class*, so that the size does not depend on how many
    words the vocabulary has.

    name : what errors call the pattern.
    automaton : the bytes of the pattern's texts.
    class_of : (V,) int32; the class of each token, -1 for one that no state can read.
    start : (n + 1,) int64; from state q the classes of classes[start[q] : start[q + 1]], ascending,
        lead on.
    classes, targets : (m,) int32; a class, and the state to which its tokens lead.
    states : (n_states,) int32, ascending.

    All arrays are read-only. An index can be used by several threads.
    """

    name: str
    automaton: Dfa
    vocabulary: Vocabulary
    class_of: npt.NDArray[np.int32]
    start: npt.NDArray[np.int64]
    classes: npt.NDArray[np.int32]
    targets: npt.NDArray[np.int32]
    states: npt.NDArray[np.int32]
    _tokens: dict[int, npt.NDArray[np.int32]] = field(default_factory=dict, init=False)
    _masks: dict[int, npt.NDArray[np.uint32]] = field(default_factory=dict, init=False)
    _rows: dict[int, dict[int, int]] = field(default_factory=dict, init=False)

    @property
    def initial_state(self) -> int:
        """The state at the start of a text: 0."""
        return 0

    @cached_property
    def final_states(self) -> frozenset[int]:
        """The states in which a text may end, of those that tokens lead to."""
        return frozenset(self.states[self.automaton.is_accepting[self.states]].tolist())

    @property
    def n_states(self) -> int:
        """The number of states that tokens lead to, the initial one among them."""
        return len(self.states)

    @cached_property
    def n_classes(self) -> int:
        """The number of classes of tokens."""
        return len(self._class_sizes)

    @cached_property
    def n_transitions(self) -> int:
        """The number of pairs (state, token) with a next state, without end-of-text tokens."""
        return sum(self.n_allowed(state) for state in self.states.tolist()) - len(self.vocabulary.eos) * len(
            self.final_states
        )

    def n_allowed(self, state: int) -> int:
        """The number of tokens that are allowed in a state. Raises: as `allowed_tokens`."""
        state = self._state(state)
        ends = len(self.vocabulary.eos) if self.automaton.is_accepting[state] else 0
        return ends + int(self._class_sizes[self.classes[self.start[state] : self.start[state + 1]]].sum())

    def allowed_tokens(self, state: int) -> npt.NDArray[np.int32]:
        """The tokens that are allowed in a state: (n,) int32, ascending, read-only.

        In a final state the vocabulary's end-of-text tokens are among them.

        Raises: MaskwrightError if there is no such state.
        Cost: O(V) once for each state, then a look-up.
        """
        try:
            return self._tokens[state]
        except (KeyError, TypeError):
            state = self._state(state)
        tokens = np.flatnonzero(self._flags(state)[: self.vocabulary.size]).astype(np.int32)
        return self._keep(self._tokens, state, tokens)

    def next_state(self, state: int, token: int) -> int | None:
        """The state behind a token; None where the token is not allowed.

        An end-of-text token is allowed in a final state, and stays there.

        Raises: MaskwrightError if there is no such state or token.
        """
        try:
            if token >= 0:
                return self._rows[state][self._class_list[token]]
        except (KeyError, IndexError, TypeError):
            pass
        return self._look_up(self._state(state), self._token(token))

    def _look_up(self, state: int, token: int) -> int | None:
        """`next_state` for a state that was not met, and for what is not allowed."""
        if state not in self._rows:
            part = slice(self.start[state], self.start[state + 1])
            self._rows[state] = dict(zip(self.classes[part].tolist(), self.targets[part].tolist(), strict=True))
        if token in self.vocabulary.eos:
            return state if self.automaton.is_accepting[state] else None
        return self._rows[state].get(self._class_list[token])

    def run(self, tokens: Iterable[int], state: int = 0) -> int | None:
        """The state behind several tokens, None if one is not allowed. Raises: as `next_state`."""
        found: int | None = self._state(state)
        for token in tokens:
            if found is None:
                break
            found = self.next_state(found, token)
        return found

    def is_final(self, state: int) -> bool:
        """Whether a text may end in a state. Raises: MaskwrightError if there is no such state."""
        return bool(self.automaton.is_accepting[self._state(state)])

    def mask(self, state: int) -> npt.NDArray[np.uint32]:
        """The allowed tokens as bits: (ceil(V / 32),) uint32, read-only.

        Bit i of word w, counted from the lowest, is token 32 w + i.

        Raises: MaskwrightError if there is no such state.
        """
        try:
            return self._masks[state]
        except (KeyError, TypeError):
            state = self._state(state)
        return self._keep(self._masks, state, packed(self._flags(state)))

    def to_dict(self, most: int = 10_000_000) -> dict[int, dict[int, int]]:
        """All transitions, state -> token -> next state, as outlines-core's `get_transitions`.

        End-of-text tokens are among them.

        Raises: LimitError if there are more than `most`.
        """
        if self.n_transitions > most:
            raise LimitError(
                f"the index of {self.name} has {self.n_transitions:,} transitions, more than {most:,}; walk it with next_state instead, or "
                "raise most"
            )
        found: dict[int, dict[int, int]] = {}
        for state in self.states.tolist():
            target = np.append(np.full(self.n_classes, state, np.int32), state)  # the last is of end-of-text tokens
            part = slice(self.start[state], self.start[state + 1])
            target[self.classes[part]] = self.targets[part]
            tokens = self.allowed_tokens(state)
            found[state] = dict(zip(tokens.tolist(), target[self.class_of[tokens]].tolist(), strict=True))
        return found

    def forced_token(self, state: int) -> tuple[int, bool] | None:
        """The longest token of a forced state, and whether no other is allowed; None elsewhere.

        Raises: MaskwrightError if there is no such state.
        Cost: O(bytes of the longest token).
        """
        automaton, at = self.automaton, self._state(state)
        if automaton.is_accepting[at]:
            return None
        n_allowed = self.n_allowed(at)
        if n_allowed == 1:
            return int(self.allowed_tokens(at)[0]), True
        counts, longest = _counts(self.vocabulary)
        text, n, best = bytearray(), 0, b""
        while len(text) < longest and not automaton.is_accepting[at]:
            onward = (automaton.next_state[at] >= 0).nonzero()[0]
            if len(onward) != 1:
                break
            text.append(int(onward[0]))
            at = int(automaton.next_state[at, onward[0]])
            spelled = bytes(text)
            if spelled in counts:
                n, best = n + counts[spelled], spelled
        # tokens that spell a beginning of the one text are all allowed: equal numbers leave none
        return (self.vocabulary.id_of_text[best], False) if best and n == n_allowed else None

    def chain(self, state: int) -> Chain | None:
        """The forced chain that begins in a state; None if the model has a choice there.

        It ends before a state that it has met: with a vocabulary that lacks bytes, the only tokens
        may go round for ever.

        Raises: MaskwrightError if there is no such state.
        """
        at, tokens, is_only = self._state(state), list[int](), True
        met = {at}
        while (found := self.forced_token(at)) is not None:
            after = self.next_state(at, found[0])
            if after is None or after in met:
                break
            met.add(after)
            tokens.append(found[0])
            at, is_only = after, is_only and found[1]
        if not tokens:
            return None
        return Chain(state, at, tuple(tokens), b"".join(self.vocabulary.tokens[token] for token in tokens), is_only)

    @cached_property
    def chains(self) -> tuple[Chain, ...]:
        """The chains that do not begin on the way of another one, by their first states."""
        inside: set[int] = set()
        for state in self.states.tolist():
            if (found := self.forced_token(state)) is not None:
                at = state
                for byte in self.vocabulary.tokens[found[0]]:
                    at = int(self.automaton.next_state[at, byte])
                    inside.add(at)
        found_chains = (self.chain(state) for state in self.states.tolist() if state not in inside)
        return tuple(chain for chain in found_chains if chain is not None)

    @cached_property
    def _class_list(self) -> list[int]:
        return self.class_of.tolist()  # type: ignore[no-any-return]

    @cached_property
    def _class_sizes(self) -> npt.NDArray[np.int64]:
        return np.bincount(self.class_of[self.class_of >= 0]).astype(np.int64)

    def _keep(self, kept: dict[int, npt.NDArray[Any]], state: int, found: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Keep what is found for a state, read-only; and no other states' if they are too many."""
        found.setflags(write=False)
        if sum(each.nbytes for each in kept.values()) + found.nbytes > MOST_KEPT:
            kept.clear()
        kept[state] = found
        return found

    def _flags(self, state: int) -> npt.NDArray[np.bool_]:
        """Whether each token is allowed: (32 ceil(V / 32),) bool."""
        is_class = np.zeros(self.n_classes + 1, np.bool_)  # the last for class -1
        is_class[self.classes[self.start[state] : self.start[state + 1]]] = True
        flags = np.zeros(32 * n_words(self.vocabulary.size), np.bool_)
        np.take(is_class, self.class_of, out=flags[: self.vocabulary.size], mode="wrap")
        if self.automaton.is_accepting[state]:
            flags[list(self.vocabulary.eos)] = True
        return flags

    def _state(self, state: int) -> int:
        state = as_integer("the state", state)
        if not 0 <= state < self.automaton.n_states:
            raise MaskwrightError(
                f"the state is {clip(state)}; the index of {self.name} has the states 0 to {self.automaton.n_states - 1}"
            )
        return state

    def _token(self, token: int) -> int:
        token = as_integer("the token", token)
        if not 0 <= token < self.vocabulary.size:
            raise MaskwrightError(
                f"token {clip(token)} is out of range: vocabulary {self.vocabulary.name} has the ids 0 to {self.vocabulary.size - 1}"
            )
        return token

    def __repr__(self) -> str:
        return f"<TokenIndex {self.name} x {self.vocabulary.name}: {self.n_states:,} states, {self.n_transitions:,} transitions>"


__all__ = ["TokenIndex"]
