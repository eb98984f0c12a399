"""Merged tables are those of the full tables' coarsest partition, number for number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from grammars import make_grammar, random_grammar
from shares import share

from maskwright.analysis.errors import GrammarError, LimitError
from maskwright.analysis.grammar import Grammar
from maskwright.analysis.grammar.grammar import Conflicts
from maskwright.analysis.loading import load_grammar
from maskwright.analysis.lr import tables
from maskwright.analysis.lr.bisimulation import bisimulate
from maskwright.analysis.lr.encoding import can_follow
from maskwright.analysis.lr.tables import build_lr_tables, build_merged_tables

ARRAYS = (
    "action", "goto", "rule_lhs", "rule_length", "alternatives", "default_rule", "predecessor_start", "predecessors", "accessing",
    "terminal_column",
)  # fmt: skip


def check_same(grammar: Grammar, conflicts: Conflicts) -> bool:
    try:
        full = build_lr_tables(grammar, conflicts)
    except GrammarError as error:
        with pytest.raises(GrammarError) as raised:
            build_merged_tables(grammar, conflicts)
        assert str(raised.value) == str(error)
        return False
    expected, found = bisimulate(full), build_merged_tables(grammar, conflicts)
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(found.tables, name), getattr(expected, name), name)
    asked = can_follow(full)
    for first in range(grammar.n_terminals):
        for second in range(grammar.n_terminals):
            assert found.can_follow(first, second) == asked(first, second)
    return True


@pytest.mark.parametrize("seeds", share([range(50), range(50, 150)], 1), ids=str)
@pytest.mark.parametrize("conflicts", ["all", "shift"])
def test_random_grammars(conflicts: Conflicts, seeds: range) -> None:
    assert sum(check_same(random_grammar(seed), conflicts) for seed in seeds) > len(seeds) // 3


@pytest.mark.parametrize("name", share(["json", "lark", "toml", "c", "lark:python"], 3))
def test_real_grammars(name: str) -> None:
    assert check_same(load_grammar(name), load_grammar(name).conflicts)


def test_merged_tables_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    grammar = make_grammar("S : A\nA : B\nB : C\nC : c", "chain")
    monkeypatch.setattr(tables, "MAX_MERGED_CELLS", 30)
    with pytest.raises(
        LimitError,
        match=r"grammar chain: its LR tables have \d+ states over 6 symbols, \d+ cells, past the limit of 30",
    ):
        build_merged_tables(grammar, "all")
    with pytest.raises(LimitError, match="its LR tables have"):  # found once, said again
        build_merged_tables(grammar, "all")


def test_the_last_tables_are_kept() -> None:
    grammar = make_grammar("S : A S\nS : A\nA : c", "kept")
    assert build_merged_tables(grammar, "all") is build_merged_tables(replace(grammar), "all")
    assert build_merged_tables(grammar, "shift") is not build_merged_tables(grammar, "all")
