"""Actions that are pruned from conflicts: the parser reads the same texts, and ordinary ambiguous grammars are read on one stack."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pytest
from grammars import make_grammar, random_expressions, random_grammar, random_tails
from naive_lr import Stack, TooMany, accepts_end, all_words, shift, unchecked_tables
from shares import parts, share

from maskwright.analysis.grammar import Grammar
from maskwright.analysis.grammar.normalise import reduce
from maskwright.analysis.loading import load_grammar
from maskwright.analysis.lr.acyclic import parsed_grammar
from maskwright.analysis.lr.automaton import build_automaton
from maskwright.analysis.lr.bisimulation import bisimulate
from maskwright.analysis.lr.domination import Domination
from maskwright.analysis.lr.encoding import LrTables
from maskwright.analysis.lr.tables import build_lr_tables

EXPRESSION = "E : E + E | E * E | - E | E ? E : E | ( E ) | n"
ONE_READING = {
    "expression": EXPRESSION,
    "behind chains": "S : E\nE : B | U | n\nB : E + E | E * E\nU : - E | E !",
    "operators as a rule": "E : E O E | n\nO : + | *",
    "side by side": "R : R R | R or R | R * | ( R ) | n",
    "calls": "E : E ( ) | E ( L ) | E . n | E if E else E | lambda n : E | not E | E and E | n\nL : E | L , E",
    "statements": "S : S ; S | S ; | x",
    "two names": "S : A | B\nA : n\nB : n",
    "two chains": "S : C | B\nC : A\nA : n\nB : n | q",
    "else behind an if": "S : if c S | if c S else S | x",
    "else behind an if and a loop": "S : if c S | if c S else S | while c S | { L } | x\nL : S | L S",
    "else and its like": "S : if c S | if c S else S | for c S | for c S else S | x ;",
    "an end that may be left out": "S : begin S | begin S end | x",
    "a list of else": "S : if c S E | x\nE : | elif c S E",
    "two and three": "S : S S S | S S | a",
    "a longer rule": "E : E + E | E + E ! | E ! | n",
    "behind it an end": "S : E | E + !\nE : E + E | n",
}
LEFT = {
    "else behind an operator": "E : E + E | E + E ! E | n",
    "else behind a case too": "S : if c S | if c S else S | case S else S end | x",
    "else that goes on otherwise": "S : if c S | if c S else S | for c S | for c S else x | x",
    "else that is required": "S : if c S | if c S else S | for c S else S | x",
    "only the one goes on": "S : A x | B x y\nA : n\nB : n",
    "only one is expected": "S : [ E ] | F\nE : E + E | F\nF : E + E . | n",
    "the right side is a list": "S : A S | A\nA : x | x x",
}
MANY = range(10_000, 18_000, 1000)
"""Where the seeds of the slow tests begin."""


@pytest.mark.parametrize("name", ONE_READING)
def test_one_reading_is_left(name: str) -> None:
    grammar = make_grammar(ONE_READING[name])
    full, pruned = unchecked_tables(grammar), build_lr_tables(grammar)
    assert full.n_conflicts and not pruned.n_conflicts
    assert is_same_language(grammar, full, [pruned], seed=1, length=5)


@pytest.mark.parametrize("name", LEFT)
def test_what_some_text_needs_is_kept(name: str) -> None:
    grammar = make_grammar(LEFT[name])
    full, pruned = unchecked_tables(grammar), build_lr_tables(grammar)
    assert pruned.n_conflicts
    assert is_same_language(grammar, full, [pruned], seed=1, length=6)


@pytest.mark.parametrize("seeds", share([range(8), *parts(160, 20)], 1), ids=str)
def test_random_grammars(seeds: range) -> None:
    """Before each terminal both parsers stand on what their stacks can read next, and both know the same ends."""
    check_random(seeds)


@pytest.mark.slow
@pytest.mark.parametrize("first", MANY, ids=str)
def test_many_random_grammars(first: int) -> None:
    check_random(range(first, first + 400))


@pytest.mark.parametrize("seeds", share(parts(100, 25), 1), ids=str)
def test_random_tails(seeds: range) -> None:
    """Of a rule and the same one with a tail."""
    assert check_tails(seeds) > 3


@pytest.mark.slow
@pytest.mark.parametrize("first", MANY, ids=str)
def test_many_random_tails(first: int) -> None:
    assert check_tails(range(first, first + 250)) > 50


def check_tails(seeds: Iterable[int]) -> int:
    """In how many grammars a shift did for a reduction."""
    n_continued = n_checked = n_seeds = 0
    for seed in seeds:
        n_seeds += 1
        grammar = random_tails(seed)
        if seed % 4 == 3:
            grammar = dataclasses.replace(grammar, lexing="contextual")
        read = parsed_grammar(grammar, "all")
        pruned, full = build_lr_tables(grammar), unchecked_tables(read)
        domination = Domination(build_automaton(read))
        n_continued += any(
            domination.is_continued(-action - 1, terminal)
            for state in range(full.n_states)
            for terminal in range(full.n_terminals)
            if len(actions := full.actions(state, terminal)) > 1
            for action in actions
            if action < 0
        )
        n_checked += is_same_language(grammar, full, (pruned, bisimulate(pruned)), seed, 5)
    assert n_checked > 0.9 * n_seeds
    return n_continued


def check_random(seeds: Iterable[int]) -> None:
    n_pruned = n_left = n_checked = n_seeds = 0
    for seed in seeds:
        n_seeds += 1
        grammar = random_grammar(seed) if seed % 4 == 0 else random_expressions(seed)
        if seed % 8 == 7:
            grammar = dataclasses.replace(grammar, lexing="contextual")
        pruned, full = build_lr_tables(grammar), unchecked_tables(parsed_grammar(grammar, "all"))
        n_pruned += pruned.n_conflicts < full.n_conflicts
        n_left += pruned.n_conflicts > 0
        n_checked += is_same_language(grammar, full, (pruned, bisimulate(pruned)), seed, 4)
    assert n_checked > 0.9 * n_seeds and n_pruned > n_seeds // 8 and n_left > n_seeds // 8


def is_same_language(grammar: Grammar, full: LrTables, others: Sequence[LrTables], seed: int, length: int) -> bool:
    """On all short words and random longer ones; where one lexer is chosen by the parser's state the tops are of the full parser's.

    False where some word has too many stacks for all to be read; those before it were.
    """
    rng = random.Random(seed)
    reader, readers = Reader(full), [Reader(tables) for tables in others]
    try:
        for word in words(reader, rng, length):
            mine = reader.read(word)
            for other in readers:
                pruned = other.tables
                theirs = other.read(tuple(pruned.terminal_column[list(word)].tolist()))
                assert bool(mine) == bool(theirs), (grammar.text, word)
                assert accepts_end(full, mine) == accepts_end(pruned, theirs), (grammar.text, word)
                if pruned.n_states == full.n_states and grammar.lexing == "contextual":
                    assert {stack[-1] for stack in mine} >= {stack[-1] for stack in theirs}
    except TooMany:
        return False
    return True


class Reader:
    """The stacks of a parser after words; what is read of a word is kept for those that begin with it."""

    def __init__(self, tables: LrTables) -> None:
        self.tables = tables
        self.known: dict[tuple[int, ...], list[Stack]] = {(): [(0,)]}

    def read(self, word: tuple[int, ...]) -> list[Stack]:
        """word : of columns, -1 for a terminal that the parser has none for."""
        if word not in self.known:
            before = self.read(word[:-1])
            self.known[word] = shift(self.tables, before, word[-1]) if before and word[-1] >= 0 else []
        return self.known[word]


def words(reader: Reader, rng: random.Random, length: int) -> Iterator[tuple[int, ...]]:
    """Words that a parser reads, each with one terminal more."""
    n = reader.tables.n_terminals
    known: list[tuple[int, ...]] = [()]
    for _ in range(length):
        longer = []
        for word in known if len(known) < 30 else rng.sample(known, 30):
            yield from ((*word, terminal) for terminal in range(n))
            longer += [(*word, terminal) for terminal in range(n) if reader.read((*word, terminal))]
        known = longer
    for _ in range(3):
        word: tuple[int, ...] = ()
        for _ in range(12):
            able = [t for t in range(n) if reader.read((*word, t))]
            if not able:
                break
            word = (*word, rng.choice(able))
            yield from ((*word, t) for t in range(n))


def read_on(tables: LrTables, stacks: list[Stack], column: int) -> list[Stack]:
    return shift(tables, stacks, column) if column >= 0 and tables.terminal_column[column] >= 0 else []


@pytest.mark.slow
@pytest.mark.parametrize("n", share([2, 10, 30], 1))
def test_relations_hold_on_stacks(n: int) -> None:
    """The relations, by the definition: what is read on a stack is read on the one that it contracts to, is <= or is covered by."""
    n_contracting = n_simulating = n_continued = 0
    named = [make_grammar(text) for text in ONE_READING.values()]
    for grammar in map(reduce, [*named, *map(random_expressions, range(2 * n)), *map(random_tails, range(n))]):
        grammar = parsed_grammar(grammar, "all")
        automaton, tables = build_automaton(grammar), unchecked_tables(grammar)
        domination = Domination(automaton)
        path = paths(tables)
        for state, rules in enumerate(automaton.completed):
            for rule in rules:
                body = grammar.rules[rule].rhs
                if len(body) > 1 and domination.contracts(state, rule):
                    for below, _ in domination.bases(state, rule):
                        long = walk(tables, path[below], body)
                        n_contracting += 1
                        assert_covered(tables, long, walk(tables, path[below], body[-1:]), grammar.text)
            for rule, terminal in itertools.product(rules, range(tables.n_terminals)):
                if tables.actions(state, terminal) and domination.is_continued(rule, terminal):
                    lhs, body = grammar.rules[rule].lhs, grammar.rules[rule].rhs
                    for below, _ in domination.bases(state, rule):
                        n_continued += 1
                        shifted = walk(tables, path[below], (*body, terminal))
                        for reduced in read_on(tables, [walk(tables, path[below], [lhs])], terminal):
                            assert_covered(tables, reduced, shifted, grammar.text)
        for below in range(tables.n_states):
            targets = tables.goto[below][tables.goto[below] >= 0].tolist()
            for state, other in itertools.permutations(targets, 2):
                if domination.simulates(state, other):
                    n_simulating += 1
                    assert_covered(tables, (*path[below], state), (*path[below], other), grammar.text)
    assert n_contracting > 3 * n and n_simulating > n // 15 and n_continued > 1.5 * n


def paths(tables: LrTables) -> list[Stack]:
    """For each state a shortest stack with it on top."""
    found: dict[int, Stack] = {0: (0,)}
    agenda = [0]
    for state in agenda:  # grows while it is read
        for above in range(tables.n_states):
            start = tables.predecessor_start
            if above not in found and state in tables.predecessors[start[above] : start[above + 1]]:
                found[above] = (*found[state], above)
                agenda.append(above)
    return [found[state] for state in range(tables.n_states)]


def walk(tables: LrTables, stack: Stack, symbols: Iterable[int]) -> Stack:
    n = tables.n_terminals
    for symbol in symbols:
        after = [a - 1 for a in tables.actions(stack[-1], symbol) if 0 < a < 1 << 29] if symbol < n else []
        stack = (*stack, *(after or [int(tables.goto[stack[-1], symbol - n])]))
    return stack


def assert_covered(tables: LrTables, stack: Stack, other: Stack, text: str) -> None:
    """Words of three terminals; without look-ahead nothing differs, since a reduction that look-ahead forbids leads to no shift."""
    try:
        for word in all_words(tables.n_terminals, 3):
            mine, theirs = [stack], [other]
            for terminal in word:
                mine, theirs = read_on(tables, mine, terminal), read_on(tables, theirs, terminal)
            assert theirs or not mine, (text, stack, other, word)
            assert accepts_end(tables, theirs) or not accepts_end(tables, mine), (text, stack, other, word)
    except TooMany:
        return


def test_where_the_parser_chooses_the_lexer_the_tops_agree() -> None:
    """Behind `E +` at the start `!` may come, behind an inner one not: another set of terminals, so both are followed."""
    grammar = make_grammar(ONE_READING["behind it an end"])
    assert build_lr_tables(dataclasses.replace(grammar, lexing="contextual")).n_conflicts == 1
    assert build_lr_tables(dataclasses.replace(grammar, verbatim=frozenset({1}))).n_conflicts == 1
    expression = dataclasses.replace(make_grammar(EXPRESSION), lexing="contextual")
    assert build_lr_tables(expression).n_conflicts == 0


def test_states_that_nothing_leads_to_are_left_out() -> None:
    """`E + E !` is read as `(E + E) !` as well, so the state behind it is not needed."""
    grammar = make_grammar(ONE_READING["behind it an end"])
    automaton, tables = build_automaton(reduce(grammar)), build_lr_tables(grammar)
    assert tables.n_states < automaton.n_states
    part = automaton.restricted(tables.origin)
    assert [part.kernels[s] for s in range(tables.n_states)] == [automaton.kernels[s] for s in tables.origin.tolist()]
    for state in range(tables.n_states):
        shifted = {a - 1 for t in range(tables.n_terminals) for a in tables.actions(state, t) if 0 < a < 1 << 29}
        targets = shifted | set(tables.goto[state][tables.goto[state] >= 0].tolist())
        row = part.transitions[state]
        assert targets <= set(row[row >= 0].tolist())
        below = tables.predecessors[tables.predecessor_start[state] : tables.predecessor_start[state + 1]]
        assert state == 0 or len(below)


def test_grammars_without_superfluous_actions_stay_as_they_are() -> None:
    for name in ("lark:python", "json", "c"):
        grammar = load_grammar(name)
        full, pruned = unchecked_tables(grammar), build_lr_tables(grammar)
        assert np.array_equal(full.action, pruned.action) and np.array_equal(full.goto, pruned.goto)
        assert pruned.origin.tolist() == list(range(full.n_states))
