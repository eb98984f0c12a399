"""What every continuation of a text begins with: forced bytes, and the tokens that spell them.

A grammar often leaves no choice for a while: behind `{"na` a schema may allow nothing but
`me":`. These *forced bytes* need no model. But a tokenizer may spell them in many ways, and the
model has seen one of them: its tokens are forced only if other spellings are ruled out, as
canonical masks do (`maskwright.maskstore.canonical`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import as_integer
from maskwright.analysis.errors import DeadEndError, MaskwrightError

if TYPE_CHECKING:
    from maskwright.decoding.matchers import AnyMatcher
    from maskwright.maskstore.canonical import CanonicalState, CanonicalTokens
    from maskwright.maskstore.canonical.tokens import Spot
    from maskwright.maskstore.vocabulary import Vocabulary

Words = npt.NDArray[np.uint32]

MOST_BYTES = 256
"""Forced bytes that are looked for at a time."""


class FirstBytes:
    """Which tokens begin with which byte. `first_bytes` makes one a vocabulary.

    vocabulary : of V tokens.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        offsets, data = vocabulary.flat
        self._firsts = np.full(vocabulary.size, -1, np.int16)
        ids = vocabulary.text_ids()
        self._firsts[ids] = data[offsets[:-1][ids]]
        self._others: dict[int, Words] = {}

    def only(self, words: Words) -> int:
        """The byte with which all tokens of a mask begin; -1 if they differ, or one has no text.

        words : (ceil(V / 32),) uint32, of which one bit is set at least.
        """
        at = int(np.flatnonzero(words)[0])
        word = int(words[at])
        first = int(self._firsts[32 * at + (word & -word).bit_length() - 1])
        if first < 0:
            return -1
        others = self._others.get(first)
        if others is None:
            bits = np.packbits(self._firsts != first, bitorder="little")
            others = self._others[first] = np.pad(bits, (0, -len(bits) % 4)).view(np.uint32)
        return -1 if (words & others).any() else first


@lru_cache(maxsize=8)
def first_bytes(vocabulary: Vocabulary) -> FirstBytes:
    """The table of a vocabulary, kept for the last eight."""
    return FirstBytes(vocabulary)


@dataclass
class Forced:
    """The forced bytes behind a text.

    data : bytes with which every continuation begins that tokens can spell; b"" if the text may
        end here, or go on in several ways.
    masks : the masks before each of them and behind the last, (ceil(V / 32),) uint32 each; those of
        the places at which no token can come are left out.
    may_end : whether the text may end behind them.
    """

    data: bytes = b""
    masks: list[Words] = field(default_factory=list)
    may_end: bool = False


def forced(matcher: AnyMatcher, limit: int = MOST_BYTES) -> Forced:
    """The forced bytes behind a matcher's text. The matcher is left as it is.

    limit : the most bytes to look for.

    Cost: a mask a byte.
    """
    vocabulary = matcher.store.vocabulary
    table = first_bytes(vocabulary)
    there = matcher.fork()
    found = Forced()
    data = bytearray()
    while not there.is_finished():
        words = np.zeros((vocabulary.size + 31) // 32, np.uint32)
        try:
            there.fill(words.view(np.int32))
        except DeadEndError:
            break
        found.masks.append(words)
        found.may_end = there.is_accepting()
        if found.may_end or len(data) >= limit or (byte := table.only(words)) < 0:
            break
        there.advance_bytes(bytes((byte,)))
        data.append(byte)
    found.data = bytes(data)
    return found


def forced_bytes(matcher: AnyMatcher, limit: int = MOST_BYTES) -> bytes:
    """The longest bytes with which every continuation of a matcher's text begins.

    matcher : left as it is. A vocabulary that cannot spell each byte has fewer continuations: those
        that tokens spell.
    limit : the most bytes to look for.

    Raises: MaskwrightError if `limit` is negative.

    >>> import maskwright as mw
    >>> grammar = mw.parse_grammar('start: "hello" ("!" | "?")')
    >>> forced_bytes(mw.build_store(grammar, "python-tiny").matcher())
    b'hello'
    """
    limit = as_integer("limit", limit)
    if limit < 0:
        raise MaskwrightError(f"limit is {limit}; expected 0 or more")
    return forced(matcher, limit).data


Node: TypeAlias = "tuple[int, Spot]"
"""How many forced bytes are spelled, and where the canonical sequence stands."""


class ForcedSpellings:
    """The canonical spellings of the forced bytes behind a text, with what may come behind them.

    A spelling goes token by token through the forced bytes. Its last token may reach past them,
    by bytes that a mask allows. A token is *alive* if some spelling that goes on has it.

    matcher : stands where the bytes begin.
    state : of the canonical sequence, at the same place.
    """

    def __init__(self, matcher: AnyMatcher, state: CanonicalState) -> None:
        self.forced = forced(matcher)
        self._tokens: CanonicalTokens = state.tokens
        self._ids = state.tokens.id_of_text
        self._longest = state.tokens.longest
        self._root: Node = (0, state.spot)
        self._known: dict[Node, tuple[list[tuple[int, Node]], Words | None]] = {}
        self._alive: dict[Node, bool] = {}

    def mask(self) -> Words:
        """(ceil(V / 32),) uint32: the tokens that are alive at the beginning; a new array."""
        inside, beyond = self._next(self._root)
        words = np.zeros_like(self.forced.masks[0]) if beyond is None else beyond.copy()
        for token, node in inside:
            if self._is_alive(node):
                words[token >> 5] |= np.uint32(1 << (token & 31))
        return words

    def tokens(self) -> list[int]:
        """The tokens with which all spellings begin that go on."""
        found: list[int] = []
        node = self._root
        while True:
            inside, beyond = self._next(node)
            alive = [(token, then) for token, then in inside if self._is_alive(then)]
            if len(alive) != 1 or beyond is not None:
                return found
            token, node = alive[0]
            found.append(token)

    def _next(self, node: Node) -> tuple[list[tuple[int, Node]], Words | None]:
        """The tokens within the forced bytes with what they lead to, and those that go beyond."""
        known = self._known.get(node)
        if known is not None:
            return known
        at, spot = node
        data = self.forced.data
        row = self._tokens.row(spot)
        inside: list[tuple[int, Node]] = []
        beyond = self.forced.masks[at] & row[: len(self.forced.masks[at])] if at < len(self.forced.masks) else None
        for end in range(at + 1, min(len(data), at + self._longest) + 1):
            for token in self._ids.get(data[at:end], ()):
                if row[token >> 5] >> (token & 31) & 1:
                    inside.append((token, (end, self._tokens.after(spot, token))))
                if beyond is not None:
                    beyond[token >> 5] &= np.uint32(~(1 << (token & 31)) & 0xFFFFFFFF)
        if beyond is not None and not beyond.any():
            beyond = None
        found = self._known[node] = inside, beyond
        return found

    def _is_alive(self, node: Node) -> bool:
        """Whether a spelling that stands at a node can go on."""
        waiting = [node]
        while waiting:
            at = waiting[-1]
            if at in self._alive:
                waiting.pop()
                continue
            inside, beyond = self._next(at)
            open_nodes = [then for _, then in inside if then not in self._alive]
            if beyond is None and open_nodes and not any(self._alive.get(then, False) for _, then in inside):
                waiting.append(open_nodes[0])
                continue
            self._alive[at] = beyond is not None or any(self._alive.get(then, False) for _, then in inside)
            waiting.pop()
        return self._alive[node]


def forced_tokens(matcher: AnyMatcher, state: CanonicalState) -> list[int]:
    """The tokens with which every canonical continuation of a matcher's text begins.

    matcher, state : stand at the same place; both are left as they are.

    Each spelling of the forced bytes is followed up to the first token beyond them. Cost: a mask a
    forced byte, and some 20 us a token.
    """
    return ForcedSpellings(matcher, state).tokens()


__all__ = ["MOST_BYTES", "Forced", "forced", "forced_bytes", "forced_tokens"]
