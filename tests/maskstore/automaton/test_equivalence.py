"""Equivalence: what is explored once for many continuations. That verdicts stay those of whole stacks is tested in `test_suspended`."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from engine_cases import random_longest_grammar

from maskwright.analysis.dialects import read_constraint
from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.loading import parse_grammar
from maskwright.analysis.lr.bisimulation import bisimulate
from maskwright.analysis.lr.encoding import ACCEPT, LrTables
from maskwright.analysis.lr.tables import build_lr_tables
from maskwright.maskstore.automaton import equivalence
from maskwright.maskstore.automaton.equivalence import Equivalence, Positions
from maskwright.maskstore.automaton.stack_automaton import build_automaton
from maskwright.maskstore.vocabulary import Vocabulary


def counts(n_keywords: int) -> dict[str, int]:
    """Keywords that may be names, each with one use of its own."""
    every = [f"k{letter}" for letter in "abcdefghijklmn"]
    words = every[:n_keywords]
    uses = "".join(f' | "{word}"' + ' "!"' * (1 + i) + " name" for i, word in enumerate(words))
    names = "".join(f' | "{word}"' for word in words)
    text = f'start: (item ";")*\nitem: "(" item ")" | name "." name | name{uses}\nname: NAME{names}\nNAME: /[a-z]+/\n%ignore " "'
    tokens = [
        b"",
        *(bytes([byte]) for byte in range(256)),
        b" k",
        *(f"{word}{more}".encode() for word in every for more in (".k", ";", " ", ";(")),
    ]
    return build_automaton(parse_grammar(text), Vocabulary("bytes", tuple(tokens), {0: "<eos>"}, (0,))).counts


def test_keywords_that_may_be_names_share_the_name_s_suspended_parses(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = counts(14)
    monkeypatch.setattr(Equivalence, "add", lambda self, column, continuations, results: None)
    alone = counts(14)
    same = ["never", "distinct", "classes", "roots", "nodes", "edges", "masks"]
    assert [shared[key] for key in same] == [alone[key] for key in same]
    assert shared["suspended"] < 0.75 * alone["suspended"]


@pytest.mark.parametrize("seed", range(20))
def test_places_hold_what_can_be_on_top(seed: int) -> None:
    tables = bisimulate(build_lr_tables(random_longest_grammar(seed)))
    positions = Positions(tables)
    below = [
        set(tables.predecessors[tables.predecessor_start[s] : tables.predecessor_start[s + 1]].tolist())
        for s in range(tables.n_states)
    ]
    columns = tables.action.shape[1]
    for state in range(tables.n_states):
        rules = positions.rules[positions.rule_start[state] : positions.rule_start[state + 1]].tolist()
        assert rules == sorted({-1 - act for c in range(columns) for act in tables.actions(state, c) if act < 0})
        for rule, number in zip(rules, positions.set_after[positions.rule_start[state] :].tolist(), strict=False):
            cells = {state}
            for _ in range(int(tables.rule_length[rule])):
                cells = {under for cell in cells for under in below[cell]}
            naive = {int(tables.goto[cell, tables.rule_lhs[rule]]) for cell in cells} - {-1}
            found = positions.members[positions.set_start[number] : positions.set_start[number + 1]]
            assert set(found.tolist()) == naive and (np.diff(found) > 0).all()


def shape(tables: LrTables, states: Iterable[int], column: int, after: dict[tuple[int, int], set[int]]) -> Any:
    """What the parser may do before a column with one of some states on top, and the states that it shifts to.

    after : for each state and rule the states that can be on top after the reduction.
    """
    met: set[int] = set()
    agenda = list(states)
    while agenda:
        state = agenda.pop()
        if state in met:
            continue
        met.add(state)
        default = int(tables.default_rule[state])
        for act in [-1 - default] if default >= 0 else tables.actions(state, column):
            if act < 0:
                agenda += after[state, -1 - act]
    order: dict[int, int] = {}
    shown = []
    for state in sorted(met):
        if tables.default_rule[state] < 0 and tables.actions(state, column):
            acts = [act if act < 0 else order.setdefault(act, len(order)) for act in tables.actions(state, column)]
            shown.append((state, *acts))
    return shown, list(order)


def optional(n: int) -> LrTables:
    """The tables of n optional literals in a row: before each of them the parser may reduce all that stand before it."""
    text = "root ::= " + " ".join(f'"a{i}"?' for i in range(n))
    grammar = read_constraint(text, "gbnf")
    assert isinstance(grammar, Grammar)
    return bisimulate(build_lr_tables(grammar))


def test_shapes_of_optional_literals_in_a_row_share_their_chunks() -> None:
    """A thousand of them took gigabytes: all that may be reduced was written down for each two of them."""
    tables = optional(300)
    columns = range(tables.action.shape[1])
    tracemalloc.start()
    try:
        Equivalence(tables, 1, columns)
        assert tracemalloc.get_traced_memory()[1] < 60 << 20  # 300 MB before
    finally:
        tracemalloc.stop()
    for limit in (1 << 20, 1 << 22):
        with pytest.raises(LimitError, match=rf"too many different things .*more than {limit >> 20} MiB"):
            Equivalence(tables, 1, columns, limit)


@pytest.mark.parametrize("seed", range(22))
def test_shapes_are_what_the_parser_does(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 2:
        monkeypatch.setattr(equivalence, "FIRST_RUNS", 1)
    tables = bisimulate(build_lr_tables(random_longest_grammar(seed))) if seed < 20 else optional(70)
    positions = Positions(tables)
    sets = [
        positions.members[positions.set_start[i] : positions.set_start[i + 1]].tolist() for i in range(positions.n_sets)
    ]
    after = {
        (state, int(positions.rules[r])): set(sets[positions.set_after[r]])
        for state in range(tables.n_states)
        for r in range(positions.rule_start[state], positions.rule_start[state + 1])
    }
    columns = range(tables.action.shape[1])
    made = Equivalence(tables, 1, columns)
    numbers: dict[int, tuple[int, Any]] = {}
    for column in columns:
        entered = np.flatnonzero(tables.accessing == column).tolist()
        shifted, starts = made._lists[column]
        for number, states in enumerate(sets):
            found, targets = shape(tables, states, column, after)
            of_shape, of_list = made.positions.shape[column, number].tolist()
            assert numbers.setdefault(of_shape, (number, found)) == (number, found)
            expected = [len(entered) if target == ACCEPT else entered.index(target - 1) for target in targets]
            assert shifted[starts[of_list] : starts[of_list + 1]].tolist() == expected
    assert len({repr(each) for each in numbers.values()}) == len(numbers)
