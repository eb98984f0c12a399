"""Grammars on which a parser could reduce for ever are refused, and no others."""

from __future__ import annotations

import sys

import pytest
from grammars import make_grammar, random_grammar
from lr.naive_lr import Stack, first_loop, reductions_end, shift, unchecked_tables

from maskwright.analysis.errors import GrammarError
from maskwright.analysis.grammar import Grammar, Rule, Terminal, load_grammar, parse_grammar, reduce
from maskwright.analysis.lr import LrTables, build_lr_tables
from maskwright.analysis.lr.loops import endless_cycle

CHUNK = 100


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


@pytest.mark.parametrize("chunk", range(3))
def test_all_actions_refused_if_and_only_if_they_can_go_on_for_ever(chunk: int) -> None:
    n_endless = 0
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        grammar = random_grammar(seed)
        tables = unchecked_tables(grammar)
        if endless_cycle(reduce(grammar)) is None:
            assert build_lr_tables(grammar).n_states <= tables.n_states
            assert not never_ends(tables, 4), seed
        else:
            n_endless += 1
            with pytest.raises(GrammarError, match="infinite ambiguity"):
                build_lr_tables(grammar)
            assert never_ends(tables, 9), seed
    assert n_endless > CHUNK // 20


def test_one_action_refused_if_it_can_go_on_for_ever() -> None:
    """The parser that takes the first action: where it is let through no text makes it loop, where it is refused some text does."""
    n_refused = n_endless = n_found = 0
    for seed in range(700):
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
    assert 15 < n_refused < n_endless
    assert n_found > 0.7 * n_refused, (n_found, n_refused)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("S : N S a | b\nN : c | ", r"'S' begins with itself after symbols that may be empty \(S -> S\)"),
        (
            "S : A\nA : B A a | a\nB : N N\nN : n | ",
            r"'A' begins with itself after symbols that may be empty \(A -> A\)",
        ),
        ("S : N A a | b\nA : S c\nN : | n", r"'S' begins with itself after symbols that may be empty \(S -> A -> S\)"),
        ("S : A\nA : A | a", r"'A' derives itself \(A -> A\)"),
        ("S : A a\nA : B | a\nB : N A N | b\nN : ", r"'A' derives itself \(A -> B -> A\)"),
        ("S : S S | a | ", r"'S' derives itself \(S -> S\)"),
    ],
)
def test_the_message_names_the_cycle(text: str, fault: str) -> None:
    with pytest.raises(
        GrammarError, match=rf"^test:[12]:1: infinite ambiguity: {fault}, so that a parser could reduce"
    ):
        build_lr_tables(make_grammar(text))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "S : C\nB : A\nA : B | a\nC : A | B",
            r"before the end of the text the parser would reduce for ever \([AB] -> [AB] -> [AB]\)",
        ),
        ("S : N S a | M b\nN : \nM : ", r"before b the parser would reduce for ever \(N -> N\)"),
        (
            "S : N K S a | M b\nN : \nM : \nK : ",
            r"before b the parser would reduce for ever \(K -> N -> K\)",
        ),
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
    with pytest.raises(GrammarError, match="infinite ambiguity"):
        build_lr_tables(grammar, "all")


def test_ambiguity_that_ends_is_let_through() -> None:
    for text in ("S : S S | a", "S : A | B\nA : a\nB : a", "S : a N N b\nN : | n", "S : A S | B S | \nA : a\nB : a"):
        grammar = make_grammar(text)
        assert unchecked_tables(grammar).n_conflicts > 0
        assert build_lr_tables(grammar).n_rules == unchecked_tables(grammar).n_rules
    assert endless_cycle(reduce(load_grammar("lark:python"))) is None


def test_long_cycles_meet_no_recursion_limit() -> None:
    n = 3000
    rules = [Rule(1 + i, (1 + (i + 1) % n,)) for i in range(n)] + [Rule(n, (0,))]
    grammar = Grammar("ring", (Terminal("A", "a"),), tuple(f"n{i}" for i in range(n)), tuple(rules), start=1)
    assert n > sys.getrecursionlimit()
    with pytest.raises(GrammarError, match=r"'n0' derives itself \(n0 -> n1 -> .* -> n2999 -> n0\)"):
        build_lr_tables(grammar)
    # hidden left recursion through a tower of empty rules: no state comes back, the pushes do
    rules = [Rule(2 + i, (2 + i + 1, 2 + i + 1)) for i in range(n)] + [
        Rule(2 + n, ()),
        Rule(1, (2, 1, 0)),
        Rule(1, (0,)),
    ]
    grammar = Grammar("tower", (Terminal("A", "a"),), ("s", *(f"n{i}" for i in range(n + 1))), tuple(rules), start=1)
    with pytest.raises(GrammarError, match="'s' begins with itself after symbols that may be empty"):
        build_lr_tables(grammar)


@pytest.mark.parametrize("text", ['start: r+ "b"\nr: "a"?', 'start: r* "b"\nr: "a"?', 'start: ("a"?)+ "b"'])
def test_a_repetition_that_lark_names_is_named_by_its_rule(text: str) -> None:
    with pytest.raises(GrammarError, match=r"^<text>:1:1: infinite ambiguity: rule 'start' repeats something that may"):
        build_lr_tables(parse_grammar(text))
