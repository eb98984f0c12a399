"""The tokens that spell the forced bytes of a text, if canonical spellings alone are allowed.

A tokenizer may spell forced bytes in many ways, and the model has seen one of them. So they are
forced tokens only where other spellings are ruled out: by canonical masks
(`maskwright.maskstore.canonical`), or since only one token is in the mask.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import need_type
from maskwright.decoding.endings.forced import Forced, forced
from maskwright.decoding.engine.arguments import plain_bytes
from maskwright.decoding.generation.logits import allows
from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.vocabulary.masks import n_words, words_of

if TYPE_CHECKING:
    from maskwright.maskstore.canonical import CanonicalState, CanonicalTokens
    from maskwright.maskstore.canonical.tokens import Spot

Words = npt.NDArray[np.uint32]

Node: TypeAlias = "tuple[int, Spot]"
"""How many forced bytes are spelled, and where the canonical sequence stands."""


class ForcedSpellings:
    """The canonical spellings of the forced bytes behind a text, with what may come behind them.

    A spelling goes token by token through the forced bytes. Its last token may reach past them,
    by bytes that a mask allows. A token is *alive* if some spelling that goes on has it.

    forced : the bytes, with the tokens that may come behind and past them.
    state : of the canonical sequence, where they begin.
    """

    def __init__(self, forced: Forced, state: CanonicalState) -> None:
        self.forced = forced
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
        mask = self.forced.masks.get(at)
        beyond = None if mask is None else mask.copy()
        if beyond is not None:
            self._tokens.narrow(spot, beyond)
        for end in range(at + 1, min(len(data), at + self._longest) + 1):
            for token in self._ids.get(data[at:end], ()):
                if allows(row, token):
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
        while node not in self._alive:
            inside, beyond = self._next(waiting[-1])
            is_alive = beyond is not None or any(self._alive.get(then, False) for _, then in inside)
            unknown = next((then for _, then in inside if then not in self._alive), None)
            if is_alive or unknown is None:
                self._alive[waiting.pop()] = is_alive
            else:
                waiting.append(unknown)
        return self._alive[node]


def forced_tokens(matcher: Matcher, state: CanonicalState) -> list[int]:
    """The tokens with which every canonical continuation of a matcher's text begins.

    matcher, state : stand at the same place; both are left as they are.

    Each spelling of the forced bytes is followed up to the first token beyond them. Cost: a mask a
    forced byte, and some 20 us a token.
    Raises: MaskwrightError if one is of another kind.
    """
    need_type("matcher", matcher, Matcher, "a Matcher")
    _check_state(state)
    return ForcedSpellings(forced(matcher), state).tokens()


def tokenize_partial(state: CanonicalState, data: bytes) -> tuple[list[int], bytes]:
    """The tokens that a tokenizer makes of some bytes whatever comes behind them, and what is left.

    state : of the canonical sequence before the bytes; it has read the recent tokens, and is left
        as it is.
    data : the next bytes of the text. All texts that begin so are looked at, this one too; there is
        no grammar.

    Returns tokens, and the bytes behind them: those that other tokens may spell, depending on what
        comes.

    Cost: some 20 us a token, and a sort of the vocabulary once.

    >>> from maskwright.maskstore.canonical import load_canonical
    >>> state = load_canonical("python-tiny").start()
    >>> tokens, left = tokenize_partial(state, b"def mean(numb")
    >>> [state.tokens.vocabulary.tokens[token] for token in tokens], left
    ([b'def', b' mean', b'('], b'numb')

    Source: llguidance, `tokenize_partial` and its article on fast-forward tokens.
    """
    _check_state(state)
    data = plain_bytes("data", data)
    vocabulary = state.tokens.vocabulary
    texts = vocabulary.sorted_texts
    every = Forced(data, {len(data): np.full(n_words(vocabulary.size), 0xFFFFFFFF, np.uint32)})
    for at in range(max(0, len(data) - texts.longest), len(data)):
        first = bisect_left(texts.texts, data[at:])
        end = bisect_right(texts.texts, data[at:] + b"\xff" * texts.longest)
        if end > first:
            every.masks[at] = words_of(texts.ids[first:end], vocabulary.size)
    tokens = ForcedSpellings(every, state).tokens()
    return tokens, data[sum(len(vocabulary.tokens[token]) for token in tokens) :]


def _check_state(state: object) -> None:
    from maskwright.maskstore.canonical import CanonicalState  # PERF: whoever has such a state has it

    need_type("state", state, CanonicalState, "a CanonicalState, as load_canonical(...).start() gives")
