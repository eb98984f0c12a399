"""Parser and lexer of a table, made anew from its grammar."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from automaton_mutator import ALTERED
from engine_cases import longest, random_vocabulary
from grammars import JSON
from stores import LAYOUT_TEXT, flipped

from maskwright.analysis.errors import StoreError
from maskwright.analysis.loading import parse_grammar
from maskwright.maskstore.table import schema
from maskwright.maskstore.table.build import OF_GRAMMAR
from maskwright.maskstore.table.check import _Checks
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store
from maskwright.verification import verify


def json_store() -> Store:
    grammar = longest(JSON, "json")
    return compile_store(grammar, random_vocabulary(grammar, 0))


def lines_store() -> Store:
    grammar = parse_grammar(LAYOUT_TEXT, name="lines", lexing="longest")
    return compile_store(grammar, random_vocabulary(grammar, 0))


def test_a_parser_or_a_lexer_of_another_grammar_is_refused() -> None:
    """Each part that a table has of its grammar alone, changed so that it is a table still."""
    tried: Counter[str] = Counter()
    for store in (json_store(), lines_store()):
        rng = random.Random(1)
        assert verify(store).passed
        spans = _Checks("x", store.grammar, store.vocabulary, store.table).spans
        for offset in OF_GRAMMAR:
            for _ in range(40):
                if spans[offset][0] == spans[offset][1]:
                    break
                at, by = rng.randrange(*spans[offset]), rng.choice((-1, 1))
                try:
                    altered = flipped(store, at, int(store.table[at]) + by)
                except StoreError:
                    continue
                tried[schema.PARTS[offset].name] += 1
                with pytest.raises(
                    StoreError,
                    match=f"not those that this version makes of the grammar: the table's part {schema.PARTS[offset].name} ",
                ):
                    verify(altered)
                break
    assert len(tried) > 20, tried
    store = lines_store()
    sets = int(store.table[schema.SHIFT_BITS] - store.table[schema.SET_BITS]) // int(store.table[schema.N_SET_WORDS])
    with pytest.raises(StoreError, match="the table's set after a newline is"):
        verify(flipped(store, schema.AFTER_NEWLINE, sets - 1))


def test_each_part_is_checked() -> None:
    """A part of the schema is walked, made anew, or held by `check_table` against the vocabulary; open roots are refused."""
    vocabulary = {schema.TOKEN_START, schema.TOKEN_BYTES, schema.EOS}
    is_open = {schema.CONTINUATION_SYMBOL, schema.CONTINUATION_NEXT, schema.OPEN_START, schema.OPEN_ITEMS}
    parts = [*OF_GRAMMAR, *ALTERED, *vocabulary, *is_open]
    assert sorted(parts) == sorted(schema.PARTS)
