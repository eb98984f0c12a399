"""This package, through its public names alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import maskwright as mw
from peers.engine import GRAMMARS, UnsupportedError, Work
from peers.tokenizers import BYTES


class Matcher:
    def __init__(self, matcher: Any, n_words: int) -> None:
        self.words = np.zeros(n_words, dtype=np.uint32)
        self.fill = partial(matcher.fill, self.words)
        self.advance = matcher.advance

    def failure(self) -> str:
        return ""


class Batch:
    def __init__(self, batch: Any, n: int, n_words: int) -> None:
        self.batch = batch
        self.words = np.zeros((n, n_words), dtype=np.uint32)
        self.tokens = np.full(n, -1, dtype=np.int32)

    def prepare(self, active: Sequence[int]) -> None:
        self.tokens[:] = -1
        self.active = np.asarray(active)

    def fill(self) -> Any:
        self.batch.fill(self.words)

    def take(self, tokens: list[int]) -> None:
        self.tokens[self.active] = tokens

    def advance(self) -> Any:
        self.batch.advance(self.tokens)


class Engine:
    package = "maskwright"

    def load_vocabulary(self, work: Work) -> None:
        self.n_words = work.n_words
        if work.tokenizer == BYTES:
            self.vocabulary = mw.Vocabulary(BYTES, tuple(work.tokens), work.special, tuple(work.eos))
        else:
            self.vocabulary = mw.load_vocabulary(work.tokenizer)

    def compile(self, work: Work) -> None:
        source = {"python": "lark:python", "json": str(GRAMMARS / "json.lark")}[work.name]
        self.grammar = {"python": "python.lark as Lark ships it, with indentation", "json": "RFC 8259"}[work.name]
        self.store: Any = mw.build_store(mw.load_grammar(source, lexing="longest"), self.vocabulary)
        if not hasattr(self.store, "matcher"):
            raise UnsupportedError("this version of the package has no matcher")

    def compile_schema(self, schema: str, lenient: bool = False) -> None:
        try:
            self.store = mw.build_store(mw.load_schema(schema, lenient=lenient), self.vocabulary)
        except mw.MaskwrightError as error:
            raise UnsupportedError(str(error)) from error

    def reads(self, data: bytes) -> bool:
        matcher = self.store.matcher()
        return bool(matcher.try_bytes(data) and matcher.is_accepting())

    def matcher(self) -> Matcher:
        return Matcher(self.store.matcher(), self.n_words)

    def batch(self, n: int) -> Batch:
        return Batch(self.store.batch(n), n, self.n_words)
