"""Parses that stand in states of different classes are found wherever some text has them."""

from __future__ import annotations

import random

import numpy as np
import pytest
from grammars import random_grammar
from naive_lr import Stack, shift
from shares import parts, share

from maskwright.analysis.loading import parse_grammar
from maskwright.analysis.lr.agreement import disagreement
from maskwright.analysis.lr.encoding import LrTables
from maskwright.analysis.lr.tables import build_lr_tables

LONGEST_TEXT = 6
MOST_STACKS = 200


def disagrees(tables: LrTables, classes: list[int]) -> tuple[int, ...] | None:
    """A shortest text of terminals after which two stacks have tops of different classes, by following all stacks of all short texts."""
    agenda: list[tuple[tuple[int, ...], list[Stack]]] = [((), [(0,)])]
    for text, stacks in agenda:
        if len({classes[stack[-1]] for stack in stacks}) > 1:
            return text
        if len(text) < LONGEST_TEXT and len(stacks) < MOST_STACKS:
            for column in range(tables.n_terminals):
                after = shift(tables, stacks, column)
                if after:
                    agenda.append(((*text, column), after))
    return None


def conflicting(seed: int) -> LrTables | None:
    tables = build_lr_tables(random_grammar(seed))
    return tables if tables.n_conflicts and tables.n_terminals <= 4 else None


@pytest.mark.parametrize("seeds", share([range(20), *parts(400, 50)], 1), ids=str)
def test_no_text_disagrees_where_none_is_said_to(seeds: range) -> None:
    n_agreeing = n_found = 0
    for seed in seeds:
        tables = conflicting(seed)
        if tables is None:
            continue
        rng = random.Random(seed)
        for n_classes in (2, 2, 3):
            # a class for each set of actions, some thrown together: two states with the same actions lex alike
            kinds = {row.tobytes(): 0 for row in tables.action != 0}
            kinds = {kind: rng.randrange(n_classes) for kind in kinds}
            classes = [kinds[row.tobytes()] for row in tables.action != 0]
            said = disagreement(tables, np.array(classes, np.int32))
            text = disagrees(tables, classes)
            assert said is not None or text is None, (seed, text)
            n_agreeing += said is None
            n_found += said is not None and text is not None
    assert n_agreeing and n_found


def test_the_conflict_and_what_is_read_are_named() -> None:
    grammar = parse_grammar('start: x "b" "c" | y "b" /[c-z]/\nx: "a"\ny: "a"\n', conflicts="all")
    tables = build_lr_tables(grammar)
    classes = [int((row != 0) @ (1 << np.arange(len(row)))) for row in tables.action]
    found = disagreement(tables, np.array(classes, np.int32))
    assert found is not None and found.states is not None
    names = {
        int(column): grammar.terminals[t].literal for t, column in enumerate(tables.terminal_column) if column >= 0
    }
    assert [names[column] for column in found.columns] == ["b"]
    assert tables.action[found.state, found.column] >= 1 << 30
    assert disagreement(tables, np.zeros(len(classes), np.int32)) is None


def test_a_search_that_is_given_up_says_so() -> None:
    grammar = parse_grammar('start: x "b" "c" | y "b" /[c-z]/\nx: "a"\ny: "a"\n', conflicts="all")
    tables = build_lr_tables(grammar)
    found = disagreement(tables, np.arange(tables.n_states, dtype=np.int32) * 0, max_pairs=0)
    assert found is not None and found.states is None
