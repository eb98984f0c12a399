"""SynCode: `GrammarConstrainer.mask_scores`, which parses the text so far and masks a row of scores; its own Python and JSON grammars.

It has no bitmask and no advance: both are in the one call. When its parser fails, it masks nothing from there on and says nothing; here the
text counts as refused then.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import LlamaTokenizer

from peers.engine import UnsupportedError, Work

torch.set_num_threads(1)


class Matcher:
    def __init__(self, constrainer: Any, size: int, n_words: int) -> None:
        constrainer.reset()
        self.constrainer = constrainer
        # the tokens of the text are appended to one prompt token
        self.ids = torch.zeros((1, 1 << 16), dtype=torch.long)
        self.length = 1
        self.ids[0, 0] = 1
        self.scores = torch.zeros((1, size))
        self._n_words = n_words

    @property
    def words(self) -> Any:
        allowed = np.zeros(self._n_words * 32, dtype=np.bool_)
        allowed[: self.scores.shape[1]] = torch.isfinite(self.masked[0]).numpy()
        return np.packbits(allowed, bitorder="little").view(np.uint32)

    def fill(self) -> None:
        self.scores.zero_()
        self.masked = self.constrainer.mask_scores(self.ids[:, : self.length], self.scores)

    def advance(self, token: int) -> None:
        self.ids[0, self.length] = token
        self.length += 1

    def failure(self) -> str:
        return "its parser failed; no mask from here on" if self.constrainer.parse_failed else ""


class Engine:
    package = "syncode"
    goes_on = True
    """It looks at the whole text at each step, so that a step after a refused token can be measured."""

    def load_vocabulary(self, work: Work) -> None:
        model = work.folder / "tokenizer.model"
        if not model.exists():
            raise UnsupportedError("measured with SentencePiece tokenizers only")
        self.size, self.n_words = len(work.tokens), work.n_words
        self.tokenizer = LlamaTokenizer(vocab_file=str(model), legacy=False)

    def compile(self, work: Work) -> None:
        # the store's cache is a folder named when the package is imported
        cache = Path(os.environ["SYNCODE_CACHE"])
        cache.mkdir(parents=True, exist_ok=True)
        from syncode.grammar_mask.logits_processor import SyncodeLogitsProcessor
        from syncode.parsers.grammars import Grammar

        self.grammar = f"its own {work.name} grammar" + (
            ", indentation not masked (its default)" * (work.name == "python")
        )
        processor = SyncodeLogitsProcessor(Grammar(work.name), self.tokenizer, use_cache=True, parse_output_only=True)
        self.constrainer = processor.grammar_engine

    def matcher(self) -> Matcher:
        return Matcher(self.constrainer, self.size, self.n_words)

    def batch(self, n: int) -> None:
        raise UnsupportedError("one parser for all sequences of a batch")
