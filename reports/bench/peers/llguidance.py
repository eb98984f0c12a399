"""llguidance: `LLMatcher.unsafe_compute_mask_ptr` on a preallocated bitmask, `LLExecutor` with one thread for batches."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import llguidance
import llguidance.numpy
import numpy as np

from peers.engine import GRAMMARS, UnsupportedError, Work
from peers.tokenizers import inner_encoder


class _Tokenizer:
    """What `TokenizerWrapper` asks for."""

    bos_token_id = None

    def __init__(self, work: Work) -> None:
        self.eos_token_id = work.eos[0]
        # llguidance marks special tokens by a leading byte 0xFF
        self.tokens = [
            b"\xff" + work.special[i].encode() if i in work.special else t for i, t in enumerate(work.tokens)
        ]
        self.special_token_ids = sorted(work.special)
        self._encode = inner_encoder(work.tokenizer)

    def __call__(self, text: str | bytes) -> list[int]:
        return self._encode(text)


def make_tokenizer(work: Work) -> llguidance.LLTokenizer:
    """The model's tokenizer: llguidance encodes the bytes that a grammar forces with the tokenizer's own encoder."""
    return llguidance.LLTokenizer(llguidance.TokenizerWrapper(_Tokenizer(work)), n_vocab=len(work.tokens))


class Matcher:
    def __init__(self, matcher: llguidance.LLMatcher, n_words: int) -> None:
        bitmask = np.zeros((1, n_words), dtype=np.int32)
        self.words = bitmask.view(np.uint32)[0]
        self.fill = partial(matcher.unsafe_compute_mask_ptr, bitmask.ctypes.data, bitmask.nbytes)
        self.advance = matcher.consume_token
        self.failure = matcher.get_error


class Batch:
    def __init__(self, matchers: list[llguidance.LLMatcher], n_words: int) -> None:
        self.matchers = matchers
        self.executor = llguidance.LLExecutor(num_threads=1)
        bitmask = np.zeros((len(matchers), n_words), dtype=np.int32)
        self.words = bitmask.view(np.uint32)
        self.bitmask = bitmask

    def prepare(self, active: Sequence[int]) -> None:
        self.slots = [(self.matchers[slot], slot) for slot in active]
        self.active = [self.matchers[slot] for slot in active]

    def fill(self) -> Any:
        llguidance.numpy.fill_next_token_bitmask_par(self.executor, self.slots, self.bitmask)

    def take(self, tokens: list[int]) -> None:
        self.pairs = list(zip(self.active, tokens, strict=True))

    def advance(self) -> Any:
        llguidance.numpy.consume_token_par(self.executor, self.pairs)


class Engine:
    package = "llguidance"

    def load_vocabulary(self, work: Work) -> None:
        self.n_words = work.n_words
        self.byte_ids = work.byte_ids
        self.tokenizer = make_tokenizer(work)
        # with the default limit of items, Python-sized grammars end in "ParserTooComplex" at V=131k
        self.limits = llguidance.LLParserLimits(step_max_items=5_000_000)

    def compile(self, work: Work) -> None:
        path = GRAMMARS / f"{work.name}.lark"
        self.grammar = {"python": "python.lark flattened, no indentation", "json": "RFC 8259"}[work.name]
        self._begin(llguidance.LLMatcher.grammar_from_lark(path.read_text(encoding="utf-8")))

    def compile_schema(self, schema: str, lenient: bool = False) -> None:
        overrides: Any = {"lenient": True} if lenient else None
        self._begin(llguidance.LLMatcher.grammar_from_json_schema(schema, overrides=overrides))

    def _begin(self, text: str) -> None:
        self.first = llguidance.LLMatcher(self.tokenizer, text, log_level=0, limits=self.limits)
        if self.first.is_error():
            raise UnsupportedError(self.first.get_error())

    def matcher(self) -> Matcher:
        # deep_copy shares the lexer's automaton, so that a new text does not start cold
        return Matcher(self.first.deep_copy(), self.n_words)

    def reads(self, data: bytes) -> bool:
        matcher = self.first.deep_copy()
        return all(map(matcher.consume_token, map(self.byte_ids.__getitem__, data))) and matcher.is_accepting()

    def batch(self, n: int) -> Batch:
        return Batch([self.first.deep_copy() for _ in range(n)], self.n_words)
