"""Conflicts are all found, and their examples lead there."""

from __future__ import annotations

import dataclasses
import time

import numpy as np
import pytest
from grammars import make_grammar, random_grammar
from naive import Earley
from naive_lr import Stack, TooMany, all_words, merged_lr1, reduced_stacks, shift, unchecked_tables
from shares import share

from maskwright.analysis.errors import GrammarError
from maskwright.analysis.grammar import Grammar
from maskwright.analysis.grammar.normalise import reduce
from maskwright.analysis.loading import load_grammar
from maskwright.analysis.lr.conflicts import Conflict, conflicts
from maskwright.analysis.lr.encoding import CONFLICT, LrTables


def reaches(tables: LrTables, word: tuple[int, ...], state: int, column: int) -> bool:
    """Whether some stack of the parser that follows all actions comes to `state`, having read the word, before a terminal."""
    stacks: list[Stack] = [(0,)]
    for terminal in word:
        stacks = shift(tables, stacks, terminal)
    return any(stack[-1] == state for stack in reduced_stacks(tables, stacks, column))


def read(conflict: Conflict, end: int) -> tuple[int, ...]:
    """The example without the terminal before which the conflict is."""
    assert conflict.example is not None
    assert conflict.terminal == end or conflict.example[-1] == conflict.terminal
    return conflict.example if conflict.terminal == end else conflict.example[:-1]


@pytest.mark.parametrize("chunk", share(range(4), 1))
def test_random_grammars(chunk: int) -> None:
    """Just the cells with several actions; each example is a prefix of a word, leads to the state, and no shorter one does."""
    n_shared = n_apart = n_shortest = 0
    for seed in range(chunk * 40, (chunk + 1) * 40):
        grammar = dataclasses.replace(reduce(random_grammar(seed)), conflicts="shift")  # as it is, endless or not
        end = grammar.n_terminals
        tables = unchecked_tables(grammar)
        found = conflicts(grammar, n_examples=10_000)
        assert [(c.state, c.terminal) for c in found] == [
            tuple(c) for c in np.argwhere(tables.action >= CONFLICT).tolist()
        ]
        earley = Earley(grammar)
        for conflict in found:
            actions = tables.actions(conflict.state, conflict.terminal)
            assert len(conflict.actions) == len(actions)
            assert [a.kind == "reduce" for a in conflict.actions] == [a < 0 for a in actions]
            word = read(conflict, end)
            columns = earley.read_word(word)
            assert (
                earley.is_word(columns) if conflict.terminal == end else earley.read(columns, conflict.terminal)[-1]
            ), (seed, str(conflict))
            n_shared += conflict.is_shared
            n_apart += not conflict.is_shared
            try:
                assert reaches(tables, word, conflict.state, conflict.terminal), (seed, str(conflict))
            except TooMany:
                continue
            if conflict.is_shared and len(word) < 4:
                n_shortest += 1
                for shorter in all_words(end, len(word) - 1):
                    try:
                        is_reached = reaches(tables, shorter, conflict.state, conflict.terminal)
                    except TooMany:
                        continue
                    assert not is_reached or not all_right(grammar, tables, shorter, conflict), (
                        seed,
                        shorter,
                        str(conflict),
                    )
    assert n_shared > 50 and n_shortest > 20 and n_apart < n_shared


def all_right(grammar: Grammar, tables: LrTables, word: tuple[int, ...], conflict: Conflict) -> bool:
    """Whether after the word, at the conflict, every action leads on to reading the terminal (which a wrong reduction does not)."""
    stacks: list[Stack] = [(0,)]
    for terminal in word:
        stacks = shift(tables, stacks, terminal)
    for stack in reduced_stacks(tables, stacks, conflict.terminal):
        if stack[-1] != conflict.state:
            continue
        outcomes = []
        for action in tables.actions(conflict.state, conflict.terminal):
            if action < 0:
                base = stack[: len(stack) - int(tables.rule_length[-action - 1])]
                after = (*base, int(tables.goto[base[-1], tables.rule_lhs[-action - 1]]))
                if conflict.terminal < grammar.n_terminals:
                    outcomes.append(bool(shift(tables, [after], conflict.terminal)))
                else:
                    outcomes.append(
                        any(s[-1] == tables.goto[0, 0] for s in reduced_stacks(tables, [after], conflict.terminal))
                    )
        if all(outcomes):
            return True
    return False


def test_python() -> None:
    """Soft keywords, and commas in class patterns; each example can be read, and takes no second to find."""
    grammar = load_grammar("lark:python", soft=())
    begin = time.process_time()
    found = conflicts(grammar)
    assert time.process_time() - begin < 2
    tables = unchecked_tables(grammar)
    assert len(found) == tables.n_conflicts == 10
    for conflict in found:
        assert conflict.kind == "shift/reduce" and conflict.is_shared
        assert reaches(tables, read(conflict, grammar.n_terminals), conflict.state, conflict.terminal)
    texts = [str(conflict) for conflict in found]
    assert texts[2] == (
        "shift/reduce conflict before NOT (state 34)\n"
        "  after: MATCH . NOT\n"
        "  shift : not_test_ : . NOT not_test_\n"
        "  reduce: name : MATCH ."
    )
    pattern = [text for text in texts if "keyws_arg_pattern : keyw_arg_pattern ." in text]
    assert len(pattern) == 1
    assert 'MATCH "..." COLON _NEWLINE _INDENT CASE NAME LPAR NAME EQUAL NAME . COMMA' in pattern[0]


def test_a_context_that_brings_all_actions_together_is_preferred() -> None:
    """After `x e` only one reduction is right; after `y z e`, which is longer, both are."""
    grammar = make_grammar("S : x A p | x B q | y z A p | y z B p\nA : e\nB : e")
    (on_p,) = conflicts(grammar)
    assert on_p.kind == "reduce/reduce" and on_p.is_shared
    assert on_p.example_text == "y z e . p"
    assert str(on_p).endswith("  reduce: A : e .\n  reduce: B : e .")


def test_a_conflict_of_merged_contexts_says_so() -> None:
    """LR(1) but not LALR(1): no text has both reductions right."""
    grammar = make_grammar("S : a A d | b B d | a B e | b A e\nA : c\nB : c")
    found = conflicts(grammar)
    assert [(c.example_text, c.is_shared) for c in found] == [("a c . d", False), ("a c . e", False)]
    merged = merged_lr1(reduce(grammar))
    assert sum(len(rules) > 1 for reductions in merged.reductions.values() for rules in reductions.values()) == 2


def test_the_end_of_the_text() -> None:
    grammar = dataclasses.replace(make_grammar("S : S N | a\nN : "), conflicts="shift")
    by_cell = {(c.terminal, c.kind): c for c in conflicts(grammar)}
    conflict = by_cell[1, "accept/reduce"]
    assert conflict.example == (0,) and conflict.example_text == "a . (end)"
    assert str(conflict) == (
        "accept/reduce conflict before the end of the text (state 2)\n"
        "  after: a . (end)\n"
        "  accept: the whole text : S .\n"
        "  reduce: N : ."
    )


def test_the_end_of_the_text_does_not_follow_just_anything() -> None:
    """After `x e` there must be more; only `y z e` can be the whole text."""
    grammar = make_grammar("S : x A S | x B S | y z A | y z B\nA : e\nB : e")
    texts = [conflict.example_text for conflict in conflicts(grammar)]
    assert texts == ["x e . x", "x e . y", "y z e . (end)"]


def test_examples_that_would_be_too_long_or_too_many_are_left_out() -> None:
    levels = "\n".join(f"A{i} : A{i + 1} A{i + 1}" for i in range(40))
    grammar = make_grammar(f"S : A0 B x | A0 C x\n{levels}\nA40 : a\nB : b\nC : b")
    (conflict,) = conflicts(grammar)
    assert conflict.example is None and conflict.example_text == "" and conflict.is_shared
    assert (
        str(conflict)
        == f"reduce/reduce conflict before x (state {conflict.state})\n  reduce: B : b .\n  reduce: C : b ."
    )
    grammar = make_grammar("S : S S | a | b")
    assert [c.example is not None for c in conflicts(grammar, n_examples=1)] == [True, False]


def test_no_conflicts() -> None:
    assert conflicts(make_grammar("S : a S b | ")) == ()
    with pytest.raises(GrammarError, match="start symbol 'S' is unproductive"):
        conflicts(make_grammar("S : a S"))
