"""glrmask: `ConstraintState.fill_mask` on a preallocated bitmask, `commit_token`; it has no batch call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import glrmask
import numpy as np

from peers.engine import GRAMMARS, UnsupportedError, Work


class Matcher:
    def __init__(self, state: glrmask.ConstraintState, n_words: int) -> None:
        bitmask = np.zeros(n_words, dtype=np.int32)
        self.words = bitmask.view(np.uint32)
        self.fill = partial(state.fill_mask, bitmask)
        self.advance = state.commit_token
        self.may_end = state.is_accepting

    def failure(self) -> str:
        return ""


class Batch:
    """The states one after the other, as its guide says to serve several texts."""

    def __init__(self, constraint: glrmask.Constraint, n: int, n_words: int) -> None:
        self.states = [constraint.start() for _ in range(n)]
        bitmask = np.zeros((n, n_words), dtype=np.int32)
        self.words = bitmask.view(np.uint32)
        self.rows = list(bitmask)

    def prepare(self, active: Sequence[int]) -> None:
        self.fills = [(self.states[slot].fill_mask, self.rows[slot]) for slot in active]
        self.advances = [self.states[slot].commit_token for slot in active]

    def fill(self) -> None:
        for fill, row in self.fills:
            fill(row)

    def take(self, tokens: list[int]) -> None:
        self.pairs = list(zip(self.advances, tokens, strict=True))

    def advance(self) -> None:
        for advance, token in self.pairs:
            advance(token)


class Engine:
    package = "glrmask"
    has_eos = False
    """It says by `is_accepting` whether a text may end; no token stands for the end."""

    def load_vocabulary(self, work: Work) -> None:
        self.n_words = work.n_words
        tokens = {token: text for token, text in enumerate(work.tokens) if text and token not in work.special}
        self.vocabulary = glrmask.Vocab.from_id_to_bytes(tokens)

    def compile(self, work: Work) -> None:
        self.grammar = {"python": "python.lark flattened, no indentation, keywords may be names", "json": "RFC 8259"}[
            work.name
        ]
        # its Lark dialect has no complement
        file = {"python": "python_xgrammar.lark", "json": "json.lark"}[work.name]
        self._build(glrmask.Grammar.from_lark, (GRAMMARS / file).read_text(encoding="utf-8"))

    def compile_schema(self, schema: str, lenient: bool = False) -> None:
        if lenient:
            raise UnsupportedError("no such option")
        self._build(glrmask.Grammar.from_json_schema, schema)

    def _build(self, read: Callable[[str], glrmask.Grammar], text: str) -> None:
        try:
            self.constraint = read(text).compile(self.vocabulary)
        except ValueError as error:
            raise UnsupportedError(str(error)) from error

    def reads(self, data: bytes) -> bool:
        state = self.constraint.start()
        return state.commit_bytes(data) and state.is_accepting()

    def matcher(self) -> Matcher:
        return Matcher(self.constraint.start(), self.n_words)

    def batch(self, n: int) -> Batch:
        return Batch(self.constraint, n, self.n_words)
