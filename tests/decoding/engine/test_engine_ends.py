"""Whether a text may end, where blocks are open: what the engine remembers of it is what a matcher without memories finds.

`can_end` keeps its answer until the stacks change, and each open block what came of closing it, told by the numbers of records. Here texts
grow, are rolled back, forked (which numbers the records anew) and grow again.
"""

from __future__ import annotations

import dataclasses
import random
from functools import cache

import numpy as np
import pytest
from engine_cases import longest, vocabulary_of
from mask_bits import ids
from naive_engine import NaiveEngine

from maskwright.analysis.grammar.grammar import Conflicts
from maskwright.decoding.engine import constants
from maskwright.decoding.matcher import Matcher
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

BLOCKS = r"""
start: line*
line: "a" _NEWLINE | "t" ":" block "f" ":" block | "w" ":" block
block: _NEWLINE _INDENT line+ _DEDENT | _NEWLINE _INDENT line* "a" _DEDENT
_NEWLINE: /(\n[ ]*)+/
%declare _INDENT _DEDENT
"""
"""A block that "t" begins is no end without the one that "f" begins; a block's last line may have no newline."""

REDUCED = r"""
start: line*
line: "a" _NEWLINE | "t" open line+ close "f" open line+ close | "w" open line+ close
open: ":" _NEWLINE _INDENT
close: _DEDENT
_NEWLINE: /(\n[ ]*)+/
%declare _INDENT _DEDENT
"""
"""The frame of an indent is reduced while its block is open."""

SEVERAL = BLOCKS.replace('line: "a" _NEWLINE', 'line: "a" _NEWLINE | "a" other').replace(
    "block:", "other: _NEWLINE\nblock:"
)
"""With all actions of its conflicts followed: several stacks."""

CASES: dict[str, tuple[str, Conflicts]] = {
    "blocks": (BLOCKS, "shift"),
    "reduced": (REDUCED, "shift"),
    "several": (SEVERAL, "all"),
}
PIECES = (b"a", b"t", b"f", b"w", b":", b"\n", b" ", b"\n ", b"\n  ", b"a\n", b":\n   ", b"a\n  a\n ")


@cache
def prepared(name: str) -> Store:
    text, conflicts = CASES[name]
    return compile_store(dataclasses.replace(longest(text, name), conflicts=conflicts), vocabulary_of(*PIECES))


def state(matcher: Matcher) -> tuple[bool, set[int]]:
    words = np.zeros(matcher.store.n_words, np.uint32)
    matcher.fill(words)
    return matcher.is_accepting(), ids(words)


def anew(store: Store, tokens: list[int]) -> Matcher:
    """A matcher that has been asked nothing on the way."""
    matcher = store.matcher()
    for token in tokens:
        matcher.advance(token)
    return matcher


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", CASES)
def test_ends_are_those_of_a_matcher_without_memories(name: str, seed: int) -> None:
    store, rng = prepared(name), random.Random(seed)
    matcher, tokens = store.matcher(), list[int]()
    seen = set()
    for _ in range(120):
        found = state(matcher)
        assert found == state(anew(store, tokens)), tokens
        seen.add(found[0])
        action = rng.random()
        if action < 0.1 and tokens:
            back = rng.randint(1, min(len(tokens), 8))
            matcher.rollback(back)
            del tokens[-back:]
        elif action < 0.2:
            matcher = matcher.fork()
        else:
            allowed = sorted(found[1] - set(store.vocabulary.eos))
            tokens.append(rng.choice(allowed))
            matcher.advance(tokens[-1])
    assert seen == {False, True}


@pytest.mark.parametrize("name", CASES)
def test_ends_are_the_naive_engines(name: str) -> None:
    store, rng = prepared(name), random.Random(name)
    naive = NaiveEngine(store.grammar, store.grammar.conflicts)
    for _ in range(4):
        matcher, text = store.matcher(), b""
        for _ in range(14):
            accepting, allowed = state(matcher)
            assert accepting == naive.is_legal_text(text), text
            token = rng.choice(sorted(allowed - set(store.vocabulary.eos)))
            matcher.advance(token)
            text += store.vocabulary.tokens[token]


def remembered(matcher: Matcher) -> list[int]:
    """What the records of the open blocks hold, the innermost first."""
    memory, arena, found = matcher.text.texts._memory, int(matcher.text.texts._memory[constants.ARENA]), []
    indent = int(matcher.text.texts._memory[constants.INDENTS])
    while indent > 0:
        found.append(int(memory[arena + 3 * indent + 2]))
        indent = int(memory[arena + 3 * indent + 1])
    return found


def test_blocks_remember_and_forget() -> None:
    store = prepared("blocks")
    matcher = store.matcher()
    matcher.advance_bytes(b"w:\n a\n w:\n  a\n  a")
    assert matcher.is_accepting() and remembered(matcher)[0] != 0
    once = remembered(matcher)
    matcher.advance_bytes(b"\n  ")
    assert matcher.is_accepting()
    # the block may end behind a newline and without one: two answers
    assert remembered(matcher)[0] not in (0, once[0])
    assert remembered(matcher.fork()) == [0, 0]  # numbers of records have changed
    matcher.advance_bytes(b"t:\n   a\n")
    assert not matcher.is_accepting() and remembered(matcher)[0] % 2 == 1
    matcher.rollback(1)
    assert matcher.is_accepting()
