"""All that says which texts are legal, behind one function: each case that is written down is read by all of them.

engine : a matcher; device : the GPU's functions, in a loop on the CPU; reference : the interpreter of `explain`; oracle : that of
`validate`; naive : the engine from the definition. The last three share no tables with the first two.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from engine_cases import vocabulary_of
from mask_bits import ids
from naive_engine import NaiveEngine
from oracle import Oracle

from maskwright.analysis.errors import IllegalTokenError
from maskwright.analysis.grammar import Grammar
from maskwright.decoding.explain.explain import explain_text
from maskwright.decoding.gpu.gpu import GpuBatch
from maskwright.stores.build import compile_store

Says = Callable[[bytes], tuple[bool, bool]]
"""Of a text: whether a legal text begins with it, and whether it is one."""


def engine(grammar: Grammar) -> Says:
    store = compile_store(grammar, vocabulary_of(singles=bytes(range(256))))

    def says(text: bytes) -> tuple[bool, bool]:
        matcher = store.matcher()
        try:
            matcher.advance_bytes(text)
        except IllegalTokenError:
            return False, False
        return True, matcher.is_accepting()

    return says


def device(grammar: Grammar) -> Says:
    store = compile_store(grammar, vocabulary_of(singles=bytes(range(256))))
    batch = GpuBatch(store, 1, "cpu")

    def says(text: bytes) -> tuple[bool, bool]:
        batch.admit([0])
        for byte in text:
            batch.find_rows()
            batch.advance(np.array([store.vocabulary.tokens.index(bytes([byte]))]))
            if batch.states() != ["reading"]:
                return False, False
        batch.find_rows()
        return True, store.vocabulary.eos[0] in ids(batch.words[0].numpy().view(np.uint32))

    return says


def reference(grammar: Grammar) -> Says:
    def says(text: bytes) -> tuple[bool, bool]:
        found = explain_text(grammar, text)
        return found.is_allowed, bool(found.is_allowed and found.is_whole)

    return says


def oracle(grammar: Grammar) -> Says:
    judge = Oracle(grammar, grammar.conflicts)
    return lambda text: (judge.is_legal_prefix(text), judge.is_legal_text(text))


def naive(grammar: Grammar) -> Says:
    return said_by(NaiveEngine(grammar))


def said_by(judge: NaiveEngine) -> Says:
    return lambda text: (judge.is_legal_prefix(text), judge.is_legal_text(text))


ENGINES: dict[str, Callable[[Grammar], Says]] = {
    "engine": engine,
    "device": device,
    "reference": reference,
    "oracle": oracle,
    "naive": naive,
}
