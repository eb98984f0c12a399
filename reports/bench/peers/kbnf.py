"""kbnf: `compute_allowed_token_ids`, then `fill_torch_bitmask`; `reset` keeps its cache from text to text, as documented."""

from __future__ import annotations

from typing import Any

import kbnf
import numpy as np

from peers.engine import GRAMMARS, UnsupportedError, Work


class Matcher:
    def __init__(self, engine: Any, n_words: int) -> None:
        # the documentation asks for four bytes a token, though one bit a token is written
        self.bitmask = np.zeros(n_words * 32, dtype=np.uint32)
        self.words = self.bitmask[:n_words]
        self.engine = engine
        self.advance = engine.try_accept_new_token
        self._compute, self._write, self._address = (
            engine.compute_allowed_token_ids,
            engine.fill_torch_bitmask,
            self.bitmask.ctypes.data,
        )

    def fill(self) -> None:
        self._compute()
        self._write(self._address)

    def failure(self) -> str:
        return ""


class Engine:
    package = "kbnf"
    has_eos = False
    """The grammars end with a zero byte instead (grammars/flatten.py)."""

    def load_vocabulary(self, work: Work) -> None:
        self.n_words = work.n_words
        tokens = {token: kbnf.Token(text) for token, text in enumerate(work.tokens) if text}
        names = {token: work.tokens[token].decode("latin-1") for token in tokens}
        self.vocabulary = kbnf.Vocabulary(tokens, names)

    def compile(self, work: Work) -> None:
        self.grammar = {"python": "python.lark flattened, no indentation, keywords may be names", "json": "RFC 8259"}[
            work.name
        ]
        config = kbnf.Config()
        config.start_nonterminal = "text"
        text = (GRAMMARS / f"{work.name}.kbnf").read_text(encoding="utf-8")
        self.engine = kbnf.InternalEngine(text, self.vocabulary, config)

    def matcher(self) -> Matcher:
        self.engine.reset()
        return Matcher(self.engine, self.n_words)

    def batch(self, n: int) -> None:
        raise UnsupportedError("no batch call")
