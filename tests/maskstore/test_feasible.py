"""Sequences that no parser can read: against sets of states by the definition, and never on a text's own terminals."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from engine_cases import random_layout_grammar, random_longest_grammar, random_verbatim_grammar
from naive import states_after

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.grammar import parse_grammar
from maskwright.analysis.lexing.modes import lexing_modes
from maskwright.analysis.lr.tables import bisimulate, build_lr_tables
from maskwright.maskstore.feasible import Feasible


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
    arrays = np.array(parent, np.int32), np.array(last, np.int32)
    feasible.extend(*arrays, 150)
    feasible.extend(*arrays, 400)
    assert feasible.dead[:400].tolist() == [not states for states in expected]
    assert 0 < sum(not states for states in expected) < 400


def test_what_cannot_be_nested_is_dead() -> None:
    grammar = parse_grammar('start: "(" start ")" | "[" start "]" | "x"')
    tables = bisimulate(build_lr_tables(grammar))
    number = {grammar.terminals[i].literal: i for i in range(grammar.n_terminals)}
    feasible = Feasible(tables, tables.terminal_column.tolist(), np.zeros(tables.n_states, np.int32), 1000, 1)
    texts = ["x)]", "xx", "(x]", "[[x]]", ")(", "(["]
    parent, last, ends = [-1], [-1], []
    for text in texts:
        at = 0
        for character in text:
            parent.append(at)
            last.append(number[character])
            at = len(parent) - 1
        ends.append(at)
    feasible.extend(np.array(parent, np.int32), np.array(last, np.int32), len(parent))
    # only the state on top is known: that "(" waits below "x" is not
    assert feasible.dead[ends].tolist() == [False, True, False, False, True, False]
