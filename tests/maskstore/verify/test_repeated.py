"""What a table says twice is held against what it follows from; and no flip of any part passes unseen."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest
from automaton_mutator import Places, ids_of, small_stores
from engine_cases import longest, random_vocabulary
from grammars import JSON
from shares import share
from stores import LAYOUT_TEXT, flipped

from maskwright.analysis.errors import MaskwrightError, StoreError
from maskwright.analysis.loading import parse_grammar
from maskwright.decoding.engine.constants import OK
from maskwright.maskstore.table import schema
from maskwright.maskstore.table.check import _Checks
from maskwright.maskstore.verify import verify_table
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store
from maskwright.verification import verify


def json_store() -> Store:
    grammar = longest(JSON, "json")
    return compile_store(grammar, random_vocabulary(grammar, 0))


def refused(store: Store, match: str) -> None:
    """`verify_table` alone refuses a store that is different."""
    with pytest.raises(StoreError, match=match):
        verify_table("x", store.grammar, store.vocabulary, store.table)


def lines_store() -> Store:
    grammar = parse_grammar(LAYOUT_TEXT, name="lines", lexing="longest")
    return compile_store(grammar, random_vocabulary(grammar, 0))


def test_a_column_that_is_not_surely_shifted_is_refused() -> None:
    """The engine takes a token where SHIFT_BITS say so, without asking the parser."""
    store = json_store()
    begin, end = (int(store.table[offset]) for offset in (schema.SHIFT_BITS, schema.DEPTH_CASE_START))
    verify_table("x", store.grammar, store.vocabulary, store.table)
    n_columns, n_words = (int(store.table[offset]) for offset in (schema.N_COLUMNS, schema.N_SET_WORDS))
    assert n_words == 1 and end - begin == store.table[schema.N_STATES]
    rng = random.Random(5)
    for at in rng.sample(range(begin, end), 10):
        free = [column for column in range(n_columns) if not store.table[at] >> column & 1]
        refused(flipped(store, at, store.table[at] | 1 << rng.choice(free)), "part shift_bits has column")


def test_a_state_that_is_missing_below_another_is_refused() -> None:
    """Endings are counted over PREDECESSORS: without one there is none, or a longer one."""
    store = json_store()
    begin, end = (int(store.table[offset]) for offset in (schema.PREDECESSORS, schema.BYTE_CLASS))
    starts = store.table[store.table[schema.PREDECESSOR_START] :][: int(store.table[schema.N_STATES]) + 1]
    at = next(int(first) for first, last in pairwise(starts) if last - first == 1)
    assert begin + at < end
    refused(
        flipped(store, begin + at, (store.table[begin + at] + 1) % store.table[schema.N_STATES]),
        "part predecessors lacks state",
    )


def test_brackets_and_what_follows_a_newline_are_the_layouts() -> None:
    store = lines_store()
    verify_table("x", store.grammar, store.vocabulary, store.table)
    depth = int(store.table[schema.SYMBOL_DEPTH])
    for terminal in range(store.grammar.n_terminals):
        refused(flipped(store, depth + terminal, int(store.table[depth + terminal] == 0)), "part symbol_depth holds")
    n_words = int(store.table[schema.N_SET_WORDS])
    at = int(store.table[schema.SET_BITS]) + int(store.table[schema.AFTER_NEWLINE]) * n_words
    refused(flipped(store, at, store.table[at] ^ 1), "set after a newline is not")


def test_an_integer_of_the_header_that_no_one_uses_is_0() -> None:
    store = json_store()
    unused = set(range(schema.HEADER)) - set(schema.NUMBERS) - set(schema.SETTINGS) - set(schema.PARTS)
    for offset in sorted(unused):
        refused(flipped(store, offset, 1), f"header holds 1 at {offset}, which no one uses")


@pytest.mark.slow
def test_a_rule_of_a_thousand_symbols() -> None:
    """Cells far below are looked at one by one, without recursion."""
    grammar = longest("start: " + '"a" ' * 1200 + '\n| "b"', "long rule")
    store = compile_store(grammar, random_vocabulary(grammar, 0, 5))
    assert verify(store).passed


def is_read_otherwise(places: Places, altered: Store) -> bool:
    """Whether other tokens are taken behind some text, or its shortest ending has another length."""
    for number, place in enumerate(places.members):
        found, own = altered.matcher(), places.store.matcher()
        for token in place.tokens:
            found.advance(token)
            own.advance(token)
        taken = [token for token in range(altered.vocabulary.size) if found.is_allowed(token)]
        if place.code == OK and taken != ids_of(place.words):
            return True
        if number < 10 and found.min_bytes_left() != own.min_bytes_left():
            return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize(("part", "n"), share([(0, 1), *((part, 6) for part in range(8))], 1))
def test_a_flip_that_passes_changes_no_mask(part: int, n: int) -> None:
    """Single integers of whole tables: those that `verify` passes are seen nowhere."""
    tally: Counter[str] = Counter()
    stores = small_stores(4, 100 * (part + 1))
    for store in stores:
        places = Places(store, part, 80)
        rng = random.Random(part)
        for offset, (begin, end) in _Checks("x", store.grammar, store.vocabulary, store.table).spans.items():
            for _ in range(n if begin < end else 0):
                at = rng.randrange(begin, end)
                value = rng.choice(
                    [0, int(store.table[rng.randrange(begin, end)]), *(int(store.table[at]) + by for by in (-1, 1))]
                )
                try:
                    altered = flipped(store, at, value)
                    has_passed = verify(altered).passed
                except (AssertionError, MaskwrightError):
                    continue
                tally["passed" if has_passed else "refused"] += 1
                if has_passed:
                    assert places.difference(altered.table) is None, (
                        store.grammar.name,
                        schema.PARTS[offset].name,
                        at,
                        value,
                    )
                    assert not is_read_otherwise(places, altered), (
                        store.grammar.name,
                        schema.PARTS[offset].name,
                        at,
                        value,
                    )
    assert tally["passed"] > 5 * n // 6 and tally["refused"] > 50 * n // 6, tally
