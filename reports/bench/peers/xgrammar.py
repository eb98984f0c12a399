"""xgrammar: `GrammarMatcher.fill_next_token_bitmask` on a preallocated tensor, `BatchGrammarMatcher` with one thread for batches.

JSON is its built-in grammar. Python is the flattened Lark text: a hand-flattened EBNF that was tried was slower.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
import xgrammar

from peers.engine import GRAMMARS, UnsupportedError, Work

torch.set_num_threads(1)


class Matcher:
    def __init__(self, matcher: xgrammar.GrammarMatcher, vocabulary_size: int) -> None:
        bitmask = xgrammar.allocate_token_bitmask(1, vocabulary_size)
        self.words = bitmask.numpy().view(np.uint32)[0]
        self.fill = partial(matcher.fill_next_token_bitmask, bitmask, 0)
        self.advance = matcher.accept_token

    def failure(self) -> str:
        return ""


class Batch:
    def __init__(self, matchers: list[xgrammar.GrammarMatcher], vocabulary_size: int) -> None:
        self.matchers = matchers
        self.batch = xgrammar.BatchGrammarMatcher(max_threads=1)
        self.bitmask = xgrammar.allocate_token_bitmask(len(matchers), vocabulary_size)
        self.words = self.bitmask.numpy().view(np.uint32)

    def prepare(self, active: Sequence[int]) -> None:
        self.slots = list(active)
        self.active = [self.matchers[slot] for slot in active]

    def fill(self) -> Any:
        self.batch.batch_fill_next_token_bitmask(self.active, self.bitmask, self.slots)

    def take(self, tokens: list[int]) -> None:
        self.tokens = tokens

    def advance(self) -> Any:
        self.batch.batch_accept_token(self.active, self.tokens)


class Engine:
    package = "xgrammar"

    def load_vocabulary(self, work: Work) -> None:
        self.size = len(work.tokens)
        self.eos = work.eos[0]
        info = xgrammar.TokenizerInfo(
            work.tokens, xgrammar.VocabType.RAW, vocab_size=self.size, stop_token_ids=work.eos
        )
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)

    def compile(self, work: Work) -> None:
        if work.name == "json":
            self.grammar = "built-in JSON"
            self.compiled = self.compiler.compile_builtin_json_grammar()
        else:
            self.grammar = "python.lark flattened, no indentation, keywords may be names"
            text = (GRAMMARS / f"{work.name}_xgrammar.lark").read_text(encoding="utf-8")
            self.compiled = self.compiler.compile_lark(text)

    def compile_schema(self, schema: str, lenient: bool = False) -> None:
        """By its default no members and items may come but those that the schema names, so `strict_mode` is off."""
        if lenient:
            raise UnsupportedError("no such option")
        try:
            self.compiled = self.compiler.compile_json_schema(schema, strict_mode=False)
        except RuntimeError as error:
            raise UnsupportedError(str(error)) from error

    def reads(self, data: bytes) -> bool:
        matcher = xgrammar.GrammarMatcher(self.compiled)
        return matcher.accept_string(data) and matcher.accept_token(self.eos)

    def matcher(self) -> Matcher:
        return Matcher(xgrammar.GrammarMatcher(self.compiled), self.size)

    def batch(self, n: int) -> Batch:
        return Batch([xgrammar.GrammarMatcher(self.compiled) for _ in range(n)], self.size)
