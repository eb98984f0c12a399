"""Bytes as tokens: the fewest that spell them, and which bytes no tokens spell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maskwright.decoding.endings._ending_kernels import COSTLY

if TYPE_CHECKING:
    from maskwright.maskstore.table.compiled import EngineTable

PREFERRED = bytes([*range(0x20, 0x7F), *range(0x20), *range(0x7F, 0x100)])


class Spelling:
    """The vocabulary's tokens as an automaton of what they spell one after the other.

    A state is a set of tokens under way, as a set of prefixes.
    """

    def __init__(self, store: EngineTable) -> None:
        vocabulary = store.vocabulary
        self.name = vocabulary.name
        self.id_of: dict[bytes, int] = {}
        for token in vocabulary.text_ids():
            self.id_of.setdefault(vocabulary.tokens[token], int(token))
        self.id_of.pop(b"", None)
        self.lengths = sorted({len(token) for token in self.id_of}, reverse=True)
        used = set(b"".join(self.id_of))
        self.alphabet = bytes(byte for byte in PREFERRED if byte in used)
        self._prefixes: set[bytes] | None = None
        self._states: list[frozenset[bytes]] = [frozenset([b""])]
        self._number = {self._states[0]: 0}

    def fewest_tokens(self, data: bytes) -> tuple[int, ...] | None:
        """Fewest tokens that spell some bytes; None if none do. Cost: O(bytes times distinct lengths of tokens)."""
        n = len(data)
        counts = [COSTLY] * n + [0]
        choice = [0] * n
        for begin in range(n - 1, -1, -1):
            for length in self.lengths:
                if (
                    length <= n - begin
                    and counts[begin + length] + 1 < counts[begin]
                    and data[begin : begin + length] in self.id_of
                ):
                    counts[begin] = counts[begin + length] + 1
                    choice[begin] = length
        if counts[0] >= COSTLY:
            return None
        tokens = []
        at = 0
        while at < n:
            tokens.append(self.id_of[data[at : at + choice[at]]])
            at += choice[at]
        return tuple(tokens)

    def after(self, state: int, byte: int) -> int:
        """The state after a byte; -1 if no token spells it here."""
        if self._prefixes is None:
            self._prefixes = {token[:end] for token in self.id_of for end in range(1, len(token) + 1)}
        longer = {prefix + bytes([byte]) for prefix in self._states[state]} & self._prefixes
        if not longer.isdisjoint(self.id_of):
            longer.add(b"")
        found = frozenset(longer)
        if not found:
            return -1
        number = self._number.setdefault(found, len(self._states))
        if number == len(self._states):
            self._states.append(found)
        return number

    def is_whole(self, state: int) -> bool:
        return b"" in self._states[state]

    def explanation(self, data: bytes) -> str:
        lacking = bytes(sorted(set(data) - set(self.alphabet)))
        why = (
            f"no token contains the bytes {lacking!r}"
            if lacking
            else "its tokens do not spell it, nor any other ending"
        )
        return f"the text can be completed with {data[:40]!r}, but not under vocabulary {self.name}: {why}; use one with all bytes"
