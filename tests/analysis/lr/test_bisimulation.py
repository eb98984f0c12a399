"""Merged tables: the map onto them is a bisimulation, the partition is the coarsest, and languages are equal."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from grammars import random_grammar
from naive_lr import Stack, TooMany, accepts_end, all_words, shift, unchecked_tables
from shares import parts, share

from maskwright.analysis.grammar import Grammar, Rule
from maskwright.analysis.legality import interchange_classes
from maskwright.analysis.loading import load_grammar
from maskwright.analysis.lr.bisimulation import Partition, bisimulate, coarsest_partition
from maskwright.analysis.lr.encoding import ACCEPT, LrTables
from maskwright.analysis.lr.tables import build_lr_tables

CHUNK = 20


def assert_bisimulation(tables: LrTables, merged: LrTables, classes: Partition) -> None:
    """Cell by cell: what the merged tables do is what each member does, with classes for members."""
    states, columns, nonterminals, rules = (
        c.tolist() for c in (classes.states, classes.columns, classes.nonterminals, classes.rules)
    )
    for kind, size in ((states, merged.n_states), (nonterminals, merged.n_nonterminals), (rules, merged.n_rules)):
        assert list(dict.fromkeys(kind)) == list(range(size))
    assert states[0] == 0 and states.count(0) == 1
    assert columns[-1] == merged.n_terminals and columns.count(columns[-1]) == 1

    def image(action: int) -> int:
        if action < 0:
            return -rules[-action - 1] - 1
        return action if action == ACCEPT else states[action - 1] + 1

    for rule, to in enumerate(rules):
        assert merged.rule_length[to] == tables.rule_length[rule]
        assert merged.rule_lhs[to] == nonterminals[tables.rule_lhs[rule]]
    for state, to in enumerate(states):
        for column, to_column in enumerate(columns):
            found = tables.actions(state, column)
            if to_column < 0:
                assert not found
            else:
                assert merged.actions(to, to_column) == tuple(sorted(set(map(image, found)), reverse=True))
        for nonterminal, target in enumerate(tables.goto[state].tolist()):
            assert merged.goto[to, nonterminals[nonterminal]] == (states[target] if target >= 0 else -1)
    for terminal, column in enumerate(tables.terminal_column.tolist()):
        assert merged.terminal_column[terminal] == (columns[column] if column >= 0 else -1)


def doubled(seed: int) -> Grammar:
    """A random grammar with parts said twice: a copy of a nonterminal in some of its places, and terminal 1 wherever 0 may stand."""
    rng, grammar = random.Random(seed), random_grammar(seed)
    copied = grammar.n_terminals + rng.randrange(grammar.n_nonterminals)
    copy = grammar.n_terminals + grammar.n_nonterminals
    rules: dict[Rule, None] = {}
    for rule in grammar.rules:
        choices = [(0, 1) if s <= 1 else (s, copy) if s == copied and rng.random() < 0.6 else (s,) for s in rule.rhs]
        for body in itertools.islice(itertools.product(*choices), 8):
            rules[Rule(rule.lhs, body)] = None
            if rule.lhs == copied:
                rules[Rule(copy, body)] = None
    return grammar.with_rules((*grammar.nonterminals, "Copy"), tuple(rules), grammar.start)


def naive_partition(tables: LrTables) -> list[list[bool]]:
    """The greatest bisimulation by striking out pairs: for states, columns, nonterminals and rules which pairs are equivalent."""
    n_states, n_columns = tables.action.shape
    end = n_columns - 1
    sizes = (n_states, n_columns, tables.n_nonterminals, tables.n_rules)
    same: list[set[tuple[int, int]]] = [set(itertools.product(range(n), repeat=2)) for n in sizes]
    state_pairs, column_pairs, nonterminal_pairs, rule_pairs = same
    column_pairs -= {(t, end) for t in range(end)} | {(end, t) for t in range(end)}

    def equal_actions(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
        return all(any(equal_action(x, y) for y in b) for x in a) and all(any(equal_action(x, y) for x in a) for y in b)

    def equal_action(x: int, y: int) -> bool:
        if ACCEPT in (x, y) or (x < 0) != (y < 0):
            return x == y
        return (-x - 1, -y - 1) in rule_pairs if x < 0 else (x - 1, y - 1) in state_pairs

    def equal_states(x: int, y: int) -> bool:
        return (x, y) in state_pairs if min(x, y) >= 0 else x == y

    def equal_symbols(x: int, y: int) -> bool:
        if min(x, y) > end:
            return (x - n_columns, y - n_columns) in nonterminal_pairs
        return (x, y) in column_pairs if min(x, y) >= 0 and max(x, y) <= end else x == y

    cells = [[tables.actions(s, t) for t in range(n_columns)] for s in range(n_states)]
    goto = tables.goto.tolist()
    while True:
        before = [len(pairs) for pairs in same]
        for a, b in list(rule_pairs):
            if (
                tables.rule_length[a] != tables.rule_length[b]
                or (tables.rule_lhs[a], tables.rule_lhs[b]) not in nonterminal_pairs
            ):
                rule_pairs.discard((a, b))
        for a, b in list(state_pairs):
            if not (
                all(equal_actions(cells[a][t], cells[b][t]) for t in range(n_columns))
                and all(map(equal_states, goto[a], goto[b]))
                and equal_symbols(int(tables.accessing[a]), int(tables.accessing[b]))
            ):
                state_pairs.discard((a, b))
        for a, b in list(column_pairs):
            if not all(equal_actions(row[a], row[b]) for row in cells):
                column_pairs.discard((a, b))
        for a, b in list(nonterminal_pairs):
            if not all(equal_states(row[a], row[b]) for row in goto):
                nonterminal_pairs.discard((a, b))
        if before == [len(pairs) for pairs in same]:
            return [[(a, b) in pairs for a in range(n) for b in range(n)] for n, pairs in zip(sizes, same, strict=True)]


@pytest.mark.parametrize("chunk", share(range(4), 1))
def test_the_coarsest_bisimulation(chunk: int) -> None:
    n_merged = 0
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        tables = unchecked_tables(doubled(seed) if seed % 2 else random_grammar(seed))
        if tables.n_states > 45:
            continue
        classes = coarsest_partition(tables)
        merged = bisimulate(tables)
        assert_bisimulation(tables, merged, classes)
        naive = naive_partition(tables)
        for kind, pairs in zip(
            (classes.states, classes.columns, classes.nonterminals, classes.rules), naive, strict=True
        ):
            assert (kind[:, None] == kind[None, :]).ravel().tolist() == pairs, seed
        n_merged += merged.n_states < tables.n_states
    assert n_merged > CHUNK // 8


@pytest.mark.parametrize("seeds", share([range(200, 206), range(206, 230), range(230, 300)], 1), ids=str)
def test_languages_are_equal(seeds: range) -> None:
    """Stacks, images of stacks, and acceptance on every short terminal sequence and on random longer ones."""
    n_merged = 0
    for seed in seeds:
        grammar, rng = doubled(seed), random.Random(seed)
        tables = unchecked_tables(grammar)
        merged = bisimulate(tables)
        states = coarsest_partition(tables).states.tolist()
        n_merged += merged.n_states < tables.n_states
        words = list(all_words(grammar.n_terminals, 3))
        words += [tuple(rng.choices(range(grammar.n_terminals), k=8)) for _ in range(15)]
        try:
            for word in words:
                mine: list[Stack] = [(0,)]
                theirs: list[Stack] = [(0,)]
                for terminal in word:
                    mine = shift(tables, mine, terminal) if tables.terminal_column[terminal] >= 0 else []
                    column = int(merged.terminal_column[terminal])
                    theirs = shift(merged, theirs, column) if column >= 0 else []
                    assert {tuple(states[s] for s in stack) for stack in mine} == set(theirs), (seed, word)
                    if not mine:
                        break
                assert accepts_end(tables, mine) == accepts_end(merged, theirs), (seed, word)
        except TooMany:
            continue
    assert n_merged > 0.3 * len(seeds)


@pytest.mark.parametrize("seeds", share(parts(120, 15), 1), ids=str)
def test_stacks_lift(seeds: range) -> None:
    """Every path of merged predecessors from the start is the image of a path of the full ones with an equivalent last symbol."""
    for seed in seeds:
        tables = unchecked_tables(doubled(seed))
        merged, classes = bisimulate(tables), coarsest_partition(tables)
        states = classes.states.tolist()
        entered = np.append(np.concatenate([classes.columns, merged.n_terminals + 1 + classes.nonterminals]), -1)
        assert [merged.accessing[states[s]] for s in range(tables.n_states)] == entered[tables.accessing].tolist()
        full, small = ({(0,)} for _ in range(2))
        for _ in range(4):
            full = {(*path, s) for path in full for s in range(tables.n_states) if path[-1] in below(tables, s)}
            small = {(*path, s) for path in small for s in range(merged.n_states) if path[-1] in below(merged, s)}
            assert {tuple(states[s] for s in path) for path in full} == small, seed
            if len(full) > 300:
                break


def below(tables: LrTables, state: int) -> list[int]:
    start = tables.predecessor_start
    found: list[int] = tables.predecessors[start[state] : start[state + 1]].tolist()
    return found


def test_merging_twice_changes_nothing() -> None:
    for seed in range(60):
        once = bisimulate(unchecked_tables(doubled(seed)))
        twice = bisimulate(once)
        for name, value in vars(once).items():
            if name != "terminal_column":
                assert np.array_equal(value, vars(twice)[name]), (seed, name)


def test_python() -> None:
    """796 states, 537 rules, 101 terminals; interchangeable terminals share a column."""
    grammar = load_grammar("lark:python", soft=())
    tables = build_lr_tables(grammar)
    merged = bisimulate(tables)
    assert_bisimulation(tables, merged, coarsest_partition(tables))
    for members in interchange_classes(grammar):
        assert len({int(merged.terminal_column[t]) for t in members}) == 1
    assert (merged.n_states, merged.n_terminals, merged.n_nonterminals, merged.n_rules) == (701, 68, 149, 323)
