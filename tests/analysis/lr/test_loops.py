"""Grammars on which a parser could reduce for ever are found, and no others; those that take one action a cell are refused."""

from __future__ import annotations

import sys

import pytest
from grammars import make_grammar, random_grammar
from naive_lr import Stack, first_loop, reductions_end, shift, unchecked_tables
from shares import share

from maskwright.analysis.errors import GrammarError
from maskwright.analysis.grammar import Grammar, Rule, Terminal
from maskwright.analysis.grammar.normalise import reduce
from maskwright.analysis.loading import load_grammar
from maskwright.analysis.lr.encoding import LrTables
from maskwright.analysis.lr.loops import endless_cycle
from maskwright.analysis.lr.tables import build_lr_tables

CHUNK = 50


def never_ends(tables: LrTables, max_length: int) -> bool:
    """Whether all actions together can reduce for ever at some place in a word of at most so many terminals."""
    level: list[list[Stack]] = [[(0,)]]
    for _ in range(max_length):
        longer = []
        for stacks in level:
            if not all(reductions_end(tables, stacks, column) for column in range(tables.n_terminals + 1)):
                return True
            longer += [after for column in range(tables.n_terminals) if (after := shift(tables, stacks, column))]
        level = longer[:200]
    return False


@pytest.mark.parametrize("chunk", share(range(6), 1))
def test_all_actions_can_go_on_for_ever_if_and_only_if_there_is_a_cycle(chunk: int) -> None:
    n_endless = 0
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        grammar = random_grammar(seed)
        tables = unchecked_tables(grammar)
        if endless_cycle(reduce(grammar)) is None:
            assert build_lr_tables(grammar).n_states <= tables.n_states
            assert not never_ends(tables, 4), seed
        else:
            n_endless += 1
            assert never_ends(tables, 9), seed
            assert not never_ends(build_lr_tables(grammar), 4), seed
    assert n_endless > CHUNK // 20


@pytest.mark.parametrize("n", share([100, 700], 1))
def test_one_action_refused_if_it_can_go_on_for_ever(n: int) -> None:
    """The parser that takes the first action: where it is let through no text makes it loop, where it is refused some text does."""
    n_refused = n_endless = n_found = 0
    for seed in range(n):
        grammar = random_grammar(seed)
        if endless_cycle(reduce(grammar)) is None:
            continue
        n_endless += 1
        tables = unchecked_tables(grammar, "shift")
        try:
            build_lr_tables(grammar, "shift")
        except GrammarError as error:
            assert "the parser would reduce for ever" in str(error)
            n_refused += 1
            n_found += first_loop(tables, 4000) is not None
        else:
            assert first_loop(tables, 300) is None, seed
    assert n // 60 < n_refused < n_endless
    assert n_found > 0.7 * n_refused, (n_found, n_refused)


@pytest.mark.parametrize(
    ("text", "cycle", "is_hidden"),
    [
        ("S : N S a | b\nN : c | ", "S S", True),
        ("S : A\nA : B A a | a\nB : N N\nN : n | ", "A A", True),
        ("S : N A a | b\nA : S c\nN : | n", "S A S", True),
        ("S : A\nA : A | a", "A A", False),
        ("S : A a\nA : B | a\nB : N A N | b\nN : ", "A B A", False),
        ("S : S S | a | ", "S S", False),
    ],
)
def test_the_cycle_is_named(text: str, cycle: str, is_hidden: bool) -> None:
    grammar = reduce(make_grammar(text))
    found = endless_cycle(grammar)
    assert found is not None and (" ".join(map(grammar.symbol_name, found[0])), found[1]) == (cycle, is_hidden)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "S : C\nB : A\nA : B | a\nC : A | B",
            r"before the end of the text the parser would reduce for ever \([AB] -> [AB] -> [AB]\)",
        ),
        ("S : N S a | M b\nN : \nM : ", r"before b the parser would reduce for ever \(N -> N\)"),
        ("S : N K S a | M b\nN : \nM : \nK : ", r"before b the parser would reduce for ever \(K -> N -> K\)"),
    ],
)
def test_one_action_messages(text: str, fault: str) -> None:
    grammar = make_grammar(text)
    assert first_loop(unchecked_tables(grammar, "shift"), 100) is not None
    with pytest.raises(GrammarError, match=f"infinite ambiguity: ({fault}), because its conflicts are resolved"):
        build_lr_tables(grammar, "shift")


@pytest.mark.parametrize(
    "text", ["S : A\nA : A | a", "S : S S | a | ", "S : A a\nA : B | a\nB : A", "S : N S a | b\nN : | N c"]
)
def test_the_first_action_may_lead_out_of_a_cycle(text: str) -> None:
    grammar = make_grammar(text)
    assert build_lr_tables(grammar, "shift").n_conflicts == 0
    assert first_loop(unchecked_tables(grammar, "shift"), 100) is None
    assert not never_ends(build_lr_tables(grammar, "all"), 4)


def test_ambiguity_that_ends_is_let_through() -> None:
    for text in ("S : S S | a", "S : A | B\nA : a\nB : a", "S : a N N b\nN : | n", "S : A S | B S | \nA : a\nB : a"):
        grammar = make_grammar(text)
        assert unchecked_tables(grammar).n_conflicts > 0
        assert build_lr_tables(grammar).n_rules == unchecked_tables(grammar).n_rules
    assert endless_cycle(reduce(load_grammar("lark:python"))) is None


def test_long_cycles_meet_no_recursion_limit() -> None:
    n = 2 * sys.getrecursionlimit()
    rules = [Rule(1 + i, (1 + (i + 1) % n,)) for i in range(n)] + [Rule(n, (0,))]
    grammar = Grammar("ring", (Terminal("A", "a"),), tuple(f"n{i}" for i in range(n)), tuple(rules), start=1)
    assert endless_cycle(grammar) == ((*range(1, n + 1), 1), False)
    assert build_lr_tables(grammar).n_rules == 1
    # hidden left recursion through a tower of empty rules: no state comes back, the pushes do
    rules = [Rule(2 + i, (2 + i + 1, 2 + i + 1)) for i in range(n)] + [
        Rule(2 + n, ()),
        Rule(1, (2, 1, 0)),
        Rule(1, (0,)),
    ]
    grammar = Grammar("tower", (Terminal("A", "a"),), ("s", *(f"n{i}" for i in range(n + 1))), tuple(rules), start=1)
    assert endless_cycle(grammar) == ((1, 1), True)
    assert build_lr_tables(grammar).n_rules == 2
