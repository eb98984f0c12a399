"""The one-token lexer along random texts, against the definition."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_store import Lexeme, Lexer, random_layout_grammar, random_lexed_grammar, random_vocabulary

from maskwright.analysis.grammar import Grammar
from maskwright.analysis.grammar.columns import Column
from maskwright.analysis.lexing.terminal_nfa import TerminalNfa, build_terminal_nfa
from maskwright.analysis.lexing.terminals import compile_terminals
from maskwright.decoding.reference.nfa_lexer import NO_COLUMN, NfaLexer
from maskwright.maskstore.tokens.events import EventCodes, Moves


def lexer_of(grammar: Grammar) -> tuple[TerminalNfa, NfaLexer]:
    nfa = build_terminal_nfa(compile_terminals(grammar))
    layout = grammar.layout
    return nfa, NfaLexer(nfa, EventCodes(grammar.n_terminals, Moves(layout)), layout.newline if layout else -1)


@pytest.mark.parametrize("make", [random_lexed_grammar, random_layout_grammar])
def test_outcomes_along_texts(make: Callable[[int], Grammar]) -> None:
    n_compared = 0
    for seed in range(80):
        grammar = make(seed)
        rng = random.Random(seed)
        tokens = [token for token in random_vocabulary(grammar, seed).tokens if token]
        definition = Lexer(grammar)
        nfa, fast = lexer_of(grammar)

        def column(lexeme: Lexeme, definition: Lexer = definition) -> Column | None:
            ended = definition.is_newline(lexeme[0]) and b"\n" in lexeme[1]
            return Column(*2 * [definition.column(lexeme[1])]) if ended else NO_COLUMN

        for _ in range(6):
            before, state, at = None, fast.start, NO_COLUMN
            for _ in range(5):
                token = rng.choice(tokens)
                expected = {}
                for found in definition.after(before, token):
                    last = found[-1]
                    end = int(nfa.initial[last[0]]) + definition.automata[last[0]].run(last[1])
                    expected[definition.symbols(fast.codes, before, found), end, column(last)] = last
                outcomes = fast.outcomes(state, at, token)
                assert len(outcomes) == len(set(outcomes)) and set(outcomes) == set(expected), (seed, before, token)
                n_compared += 1
                if not outcomes:
                    break
                (_, state, at) = chosen = rng.choice(outcomes)
                before = expected[chosen]
    assert n_compared > 500


@given(st.lists(st.sampled_from([b"\n", b"\r", b" ", b"\t", b"#x"])), st.integers(0, 12), st.integers(1, 8))
def test_columns(pieces: list[bytes], cut: int, tab_length: int) -> None:
    """Spaces and tabs since the last line feed, in one piece or in two; no column before a line feed."""
    grammar = random_layout_grammar(0)
    assert grammar.layout is not None
    _, lexer = lexer_of(replace(grammar, layout=replace(grammar.layout, tab_length=tab_length)))
    text = b"".join(pieces)
    after = text.rpartition(b"\n")[2]
    columns = after.count(b" ") + tab_length * after.count(b"\t")
    expected = Column(columns, columns) if b"\n" in text else NO_COLUMN
    assert lexer.column_after(NO_COLUMN, text) == expected
    assert lexer.column_after(lexer.column_after(NO_COLUMN, text[:cut]), text[cut:]) == expected
    further = columns if b"\n" in text else 3 + columns
    assert lexer.column_after(Column(3, 3), text) == (further, further)
