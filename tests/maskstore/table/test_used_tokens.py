"""A table without the tokens that no mask has: the same masks, with other numbers, and a sound table."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from grammars import random_expressions, random_grammar
from mask_bits import mask_of

import maskwright as mw
from maskwright.maskstore.table.check import check_table
from maskwright.maskstore.table.write import used_tokens, with_tokens
from maskwright.stores.build import compile_store


@pytest.mark.parametrize("seed", range(30))
def test_masks_are_the_same(seed: int) -> None:
    rng = random.Random(seed)
    grammar = rng.choice([random_grammar, random_expressions])(seed)
    letters = [b"a", b"b", b"c", b"d", b"+", b"(", b")", b"0", b"zz", b"q"]
    tokens = [b"".join(rng.choices(letters, k=rng.randrange(1, 4))) for _ in range(rng.choice([5, 40, 300]))]
    end = rng.randrange(len(tokens))
    vocabulary = mw.Vocabulary.from_tokens([*tokens[:end], b"</s>", *tokens[end:], b"z" * 9, b""], eos=[end])
    store = compile_store(grammar, vocabulary)
    ids = used_tokens(store.table)
    assert end in ids
    if rng.random() < 0.3:  # others may stay
        ids = np.union1d(ids, rng.sample(range(vocabulary.size), 3)).astype(np.int32)
    own = tuple(vocabulary.tokens[token] for token in ids.tolist())
    at = int(np.searchsorted(ids, end))
    fewer = mw.Vocabulary("fewer", own, {at: "</s>"}, (at,))
    table = with_tokens(store.table, ids, fewer)
    check_table("test", grammar, fewer, table)
    small = replace(store, vocabulary=fewer, table=table)
    for _ in range(4):
        first, second = store.matcher(), small.matcher()
        for _ in range(10):
            try:
                allowed, numbers = (np.array(sorted(mask_of(one)), np.int64) for one in (first, second))
            except mw.LimitError:  # the grammar is too ambiguous
                break
            assert ids[numbers].tolist() == allowed.tolist()
            assert first.is_accepting() == second.is_accepting()
            if not len(numbers):
                break
            token = int(rng.choice(numbers.tolist()))
            try:
                first.advance(int(ids[token]))
            except mw.LimitError:
                break
            second.advance(token)
