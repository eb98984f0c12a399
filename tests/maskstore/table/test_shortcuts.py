"""Shorter LR tables come to the same stacks; terminals said to be shifted whatever lies below are shifted from all stacks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from engine_cases import longest, random_layout_grammar, random_longest_grammar, random_verbatim_grammar

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.loading import parse_grammar
from maskwright.analysis.lr.bisimulation import bisimulate
from maskwright.analysis.lr.encoding import ACCEPT, LrTables
from maskwright.analysis.lr.tables import build_lr_tables
from maskwright.maskstore.automaton.shortcuts import shortened, with_few_rules
from maskwright.maskstore.tokens.feasible import surely_shifted

Stack = tuple[int, ...]

MAKERS = [random_longest_grammar, random_layout_grammar, random_verbatim_grammar]

ARITHMETIC = """
start: sum
sum: product | sum "+" product
product: power | product "*" power
power: atom | atom "^" power
atom: call | "(" start ")" | "x"
call: "f" "(" start ")"
"""


def read(tables: LrTables, stack: Stack, column: int) -> tuple[set[Stack], int]:
    """The stacks once a terminal has been shifted, by the definition of an LR parser, and how many reductions that took."""
    agenda, found, seen, steps = [stack], set(), {stack}, 0
    while agenda:
        here = agenda.pop()
        rule = int(tables.default_rule[here[-1]])
        for action in (-rule - 1,) if rule >= 0 else tables.actions(here[-1], column):
            if action == ACCEPT:
                continue
            if action > 0:
                found.add((*here, action - 1))
                continue
            steps += 1
            below = here[: len(here) - int(tables.rule_length[-action - 1])]
            after = int(tables.goto[below[-1], tables.rule_lhs[-action - 1]])
            assert after >= 0 and len(seen) < 10_000
            if (*below, after) not in seen:
                seen.add((*below, after))
                agenda.append((*below, after))
    return found, steps


def random_stacks(tables: LrTables, seed: int, n: int) -> Iterator[Stack]:
    """Stacks on the way of random sequences of terminals."""
    rng = random.Random(seed)
    known: list[Stack] = [(0,)]
    for _ in range(n):
        stack = rng.choice(known[-20:]) if rng.random() < 0.7 else rng.choice(known)
        yield stack
        if len(stack) < 30:
            known += sorted(read(tables, stack, rng.randrange(tables.n_terminals))[0])


def tables_of(make: Any, seed: int) -> LrTables:
    grammar = make(seed)
    try:
        return bisimulate(build_lr_tables(grammar, grammar.conflicts))
    except MaskwrightError:
        pytest.skip("no such tables")


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("make", MAKERS)
def test_shorter_tables_come_to_the_same_stacks(make: Any, seed: int) -> None:
    tables = tables_of(make, seed)
    shorter = shortened(tables)
    for stack in random_stacks(tables, seed, 150):
        for column in range(tables.n_terminals):
            (expected, steps), (found, fewer) = read(tables, stack, column), read(shorter, stack, column)
            assert found == expected
            assert fewer <= steps


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("make", MAKERS)
def test_states_with_more_rules_keep_theirs(make: Any, seed: int) -> None:
    tables = tables_of(make, seed)
    shorter = shortened(tables)
    for most in range(4):
        expected = shorter.action.copy()
        for state, row in enumerate(shorter.action.tolist()):
            if len({code for code in row if code < 0}) > most:
                expected[state] = tables.action[state]
        assert (with_few_rules(shorter, tables, most).action == expected).all()
    assert (shorter.action == shortened(tables).action).all()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("make", MAKERS)
def test_what_is_said_to_be_shifted_is(make: Any, seed: int) -> None:
    tables = tables_of(make, seed)
    words = surely_shifted(tables)
    assert words.shape == (tables.n_states, tables.n_terminals // 32 + 1)
    shifts = (tables.action > 0) & (tables.action < ACCEPT)
    for stack in random_stacks(tables, seed, 150):
        for column in range(tables.n_terminals):
            is_sure = bool(words[stack[-1], column >> 5] >> np.uint32(column & 31) & 1)
            assert is_sure >= shifts[stack[-1], column]
            if is_sure:
                assert read(tables, stack, column)[0]


def test_renaming_takes_one_step() -> None:
    tables = bisimulate(build_lr_tables(longest(ARITHMETIC)))
    shorter = shortened(tables)
    number = {t.literal: int(tables.terminal_column[i]) for i, t in enumerate(longest(ARITHMETIC).terminals)}
    stack: Stack = (0,)
    for character in "(f(x)":
        ((stack,), _) = read(tables, stack, number[character])
    # behind the call: a call is an atom is a power is a product is a sum is a start
    expected, steps = read(tables, stack, number[")"])
    found, fewer = read(shorter, stack, number[")"])
    assert found == expected and len(found) == 1
    assert (steps, fewer) == (6, 3)  # a call by `)`, whatever comes; that is an atom; and a sum


def test_what_depends_on_the_stack_is_not_sure() -> None:
    """Behind `x` a "+" may always come, but ")" only where a bracket is open."""
    grammar = parse_grammar(ARITHMETIC)
    tables = bisimulate(build_lr_tables(grammar))
    number = {t.literal: int(tables.terminal_column[i]) for i, t in enumerate(grammar.terminals)}
    words = surely_shifted(tables)
    ((stack,), _) = read(tables, (0,), number["x"])
    sure = {c for c in number.values() if words[stack[-1], c >> 5] >> np.uint32(c & 31) & 1}
    assert sure == {number["+"], number["*"], number["^"]}
    assert not (tables.action[stack[-1]] > 0).any()
