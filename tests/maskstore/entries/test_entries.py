"""Entries before streamlining, of every lexer state, against the definition."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from naive_store import (
    Lexeme,
    Lexer,
    Symbols,
    random_layout_grammar,
    random_lexed_grammar,
    random_vocabulary,
    texts_of_states,
)

from maskwright.analysis.errors import GrammarError, VocabularyError
from maskwright.analysis.grammar import Grammar
from maskwright.analysis.legality.deciders import ANYWHERE
from maskwright.analysis.legality.verdict import START
from maskwright.analysis.lexing.terminal_nfa import build_terminal_nfa
from maskwright.analysis.lexing.terminals import compile_terminals
from maskwright.analysis.loading import parse_grammar
from maskwright.maskstore.entries.build import contexts_of, dependent_states, known_lefts, walk_vocabulary
from maskwright.maskstore.entries.walk import left_of
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.stores.build import compile_entry_store

MAKERS = [random_lexed_grammar, random_layout_grammar]


@pytest.mark.parametrize("make", MAKERS)
def test_entries_equal_the_definition(make: Callable[[int], Grammar]) -> None:
    """Sequence -> token ids, in each lexer state; in all, the rows of the token NFA."""
    for seed in range(40):
        grammar = make(seed)
        vocabulary = random_vocabulary(grammar, seed)
        lexer, nfa = Lexer(grammar), build_terminal_nfa(compile_terminals(grammar))
        entries = walk_vocabulary(grammar, nfa, vocabulary)
        lexemes: dict[int, Lexeme | None] = {nfa.n_states: None}
        for terminal, dfa in lexer.automata.items():
            for number, text in texts_of_states(dfa).items():
                lexemes[int(nfa.initial[terminal]) + number] = (terminal, text)
        assert {s.state for s in entries.states} == set(lexemes)
        assert entries.states[-1].state == nfa.n_states
        n_rows = 0
        for state in entries.states:
            before = lexemes[state.state]
            expected: dict[Symbols, set[int]] = {}
            for token in vocabulary.text_ids().tolist():
                for found in lexer.after(before, vocabulary.tokens[token], anyhow=True):
                    sequence = lexer.symbols(entries.walk.codes, before, found)
                    expected.setdefault(sequence, set()).add(token)
                    n_rows += 1
            fast: dict[Symbols, set[int]] = {}
            groups = state.groups
            for group, sequence_number in zip(state.group_of.tolist(), state.sequence_of.tolist(), strict=True):
                members = groups.members[groups.member_start[group] : groups.member_start[group + 1]]
                fast.setdefault(entries.table[sequence_number], set()).update(entries.token_ids[members].tolist())
            assert fast == expected, (seed, before)
            assert [entries.table[n] for n in state.sequences.tolist()] == [
                entries.table[n] for n in np.unique(state.sequence_of).tolist()
            ]
        assert entries.n_token_nfa_rows == n_rows


@pytest.mark.parametrize("make", MAKERS)
def test_what_stands_to_the_left(make: Callable[[int], Grammar]) -> None:
    for seed in range(40):
        grammar = make(seed)
        nfa = build_terminal_nfa(compile_terminals(grammar))
        newline = grammar.layout.newline if grammar.layout else None
        unclear = set(grammar.ignored) | {newline}
        assert left_of(grammar, nfa, nfa.n_states) == START
        for number in range(nfa.n_states):
            terminal = int(nfa.terminal[number])
            assert left_of(grammar, nfa, number) == (ANYWHERE if terminal in unclear else terminal)
        entries = walk_vocabulary(grammar, nfa, random_vocabulary(grammar, seed))
        dependent = dependent_states(grammar, entries)
        assert {s.state for s in dependent} == {s.state for s in entries.states if s.left == ANYWHERE}
        for state in dependent:
            lefts = known_lefts(grammar, entries, state)
            if int(nfa.terminal[state.state]) == newline:
                assert lefts == [newline]
            else:
                declared = {t for t in range(grammar.n_terminals) if grammar.terminals[t].is_declared}
                assert set(lefts) == {START, *range(grammar.n_terminals)} - declared - grammar.ignored
        contexts = {(context.left, tuple(context.sequences)) for context in contexts_of(grammar, entries)}
        assert contexts >= {(state.left, tuple(state.sequences)) for state in entries.states}


def test_progress_counts_states() -> None:
    grammar = random_lexed_grammar(0)
    nfa = build_terminal_nfa(compile_terminals(grammar))
    reports: list[tuple[str, int, int]] = []
    entries = walk_vocabulary(grammar, nfa, random_vocabulary(grammar, 0), lambda *report: reports.append(report))
    n = len(entries.states)
    assert reports == [("walk", done, n) for done in range(1, n + 1)]


def test_refused() -> None:
    vocabulary = Vocabulary("v", (b"", b"a"), {0: "</s>"}, (0,))
    longest = parse_grammar('start: "a"', lexing="longest")
    with pytest.raises(GrammarError, match="has lexing 'longest', but only lexing 'nfa' has entries"):
        compile_entry_store(longest, vocabulary)
    with pytest.raises(VocabularyError, match="vocabulary empty has no token that stands for text"):
        compile_entry_store(parse_grammar('start: "a"', lexing="nfa"), Vocabulary("empty", (b"",), {0: "</s>"}, (0,)))
