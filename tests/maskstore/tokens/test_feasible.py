"""Sequences that no parser can read: against sets of states by the definition, and never on a text's own terminals."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from engine_cases import random_layout_grammar, random_longest_grammar, random_verbatim_grammar
from naive import states_after

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.lexing.modes import lexing_modes
from maskwright.analysis.loading import parse_grammar
from maskwright.analysis.lr.bisimulation import bisimulate
from maskwright.analysis.lr.tables import build_lr_tables
from maskwright.maskstore.tokens.feasible import ANYWHERE, NOWHERE, Feasible


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("make", [random_longest_grammar, random_layout_grammar, random_verbatim_grammar])
def test_dead_sequences_are_those_that_lead_to_no_state(make: Any, seed: int) -> None:
    grammar = make(seed)
    try:
        tables = bisimulate(build_lr_tables(grammar, grammar.conflicts))
        modes = lexing_modes(grammar, tables.action != 0, tables.terminal_column, tables.accessing)
    except MaskwrightError:
        pytest.skip("no such tables")
    column_of = tables.terminal_column.tolist()
    n, newline_code, mode_code = grammar.n_terminals, grammar.n_terminals, grammar.n_terminals + 5
    every = set(range(tables.n_states))
    rng = random.Random(seed)
    parent, last, expected = [-1], [-1], [every]
    while len(parent) < 400:
        before = rng.randrange(len(parent))
        symbol = rng.choice([*range(n), newline_code, *range(mode_code, mode_code + len(modes))])
        parent.append(before)
        last.append(symbol)
        if symbol >= mode_code:
            expected.append({s for s in expected[before] if modes.of_state[s] == symbol - mode_code})
        elif symbol >= n:
            expected.append(every if expected[before] else set())
        else:
            expected.append(
                states_after(tables, expected[before], column_of[symbol]) if column_of[symbol] >= 0 else set()
            )
    feasible = Feasible(tables, column_of, modes.of_state, mode_code, len(modes))
    numbers = [ANYWHERE]
    for before, symbol in zip(parent[1:], last[1:], strict=True):
        numbers.append(feasible.set_after(numbers[before], symbol))
    assert [set(feasible.states(number).tolist()) for number in numbers] == expected
    assert [number == NOWHERE for number in numbers] == [not states for states in expected]
    assert 0 < sum(not states for states in expected) < 400
    check_modes(feasible, set(numbers) - {NOWHERE}, modes.of_state)


def check_modes(feasible: Feasible, numbers: set[int], mode_of_state: Any) -> None:
    """What is left of sets of states in each of their modes."""
    for number in numbers:
        feasible.learn_modes(number)
    begins, ends, mode_of, subset = feasible.modes_of_sets
    for number in numbers:
        found = slice(int(begins[number]), int(ends[number]))
        states = feasible.states(number)
        assert mode_of[found].tolist() == sorted(set(mode_of_state[states].tolist()))
        for mode, left in zip(mode_of[found].tolist(), subset[found].tolist(), strict=True):
            assert feasible.states(left).tolist() == states[mode_of_state[states] == mode].tolist()
    assert (begins[sorted({NOWHERE} | numbers)] >= 0).sum() == len(numbers)


def test_what_cannot_be_nested_is_dead() -> None:
    grammar = parse_grammar('start: "(" start ")" | "[" start "]" | "x"')
    tables = bisimulate(build_lr_tables(grammar))
    number = {grammar.terminals[i].literal: i for i in range(grammar.n_terminals)}
    feasible = Feasible(tables, tables.terminal_column.tolist(), np.zeros(tables.n_states, np.int32), 1000, 1)
    texts = ["x)]", "xx", "(x]", "[[x]]", ")(", "(["]
    ends = []
    for text in texts:
        at = ANYWHERE
        for character in text:
            at = feasible.set_after(at, number[character])
        ends.append(at == NOWHERE)
    # only the state on top is known: that "(" waits below "x" is not
    assert ends == [False, True, False, False, True, False]


def test_tables_grow() -> None:
    n = 300
    grammar = parse_grammar("start: (" + " | ".join(f'"{i};" "{i}:"' for i in range(n)) + ")+")
    tables = bisimulate(build_lr_tables(grammar))
    modes = np.arange(tables.n_states, dtype=np.int32)
    feasible = Feasible(tables, tables.terminal_column.tolist(), modes, 1000, tables.n_states)
    sets = {feasible.set_after(ANYWHERE, terminal) for terminal in range(grammar.n_terminals)}
    after = {
        (states, terminal): feasible.set_after(states, terminal) for states in sets for terminal in range(0, 2 * n, 50)
    }
    assert len(feasible.known.after.keys) > 1 << 10
    for (states, terminal), found in after.items():
        assert feasible.set_after(states, terminal) == found
        members = set(feasible.states(states).tolist())
        assert set(feasible.states(found).tolist()) == states_after(
            tables, members, int(tables.terminal_column[terminal])
        )
    check_modes(feasible, sets | {ANYWHERE}, modes)
