"""The vocabulary walk and the one-token lexer against the definition, for every lexer state and token."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from grammars import make_grammar
from naive_store import (
    Lexeme,
    Lexer,
    Symbols,
    dress,
    python_grammar,
    random_layout_grammar,
    random_lexed_grammar,
    random_vocabulary,
    terminal_of,
    texts_of_states,
)
from shares import share

from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar import Grammar
from maskwright.analysis.grammar.columns import Column
from maskwright.analysis.lexing.terminal_nfa import TerminalNfa, build_terminal_nfa, build_union_dfa
from maskwright.analysis.lexing.terminals import compile_terminals
from maskwright.decoding.reference.nfa_lexer import NO_COLUMN, NfaLexer
from maskwright.maskstore.entries.walk import Outcome, Walk
from maskwright.maskstore.vocabulary import load_vocabulary

CHUNK = 20


def state_of(lexer: Lexer, nfa: TerminalNfa, lexeme: Lexeme) -> int:
    return int(nfa.initial[lexeme[0]]) + lexer.automata[lexeme[0]].run(lexeme[1])


def walked(walk: Walk, state: int) -> dict[int, list[Outcome]]:
    """Token index -> outcomes, as the walk has them for one state."""
    groups = walk.groups(state)
    found: dict[int, list[Outcome]] = {}
    for number in range(groups.n_groups):
        members = groups.members[groups.member_start[number] : groups.member_start[number + 1]].tolist()
        assert members == sorted(members)
        for token in members:
            assert token not in found
            found[token] = walk.outcomes(groups, number)
    return found


def check_walk(grammar: Grammar, tokens: list[bytes], lexemes: list[Lexeme | None]) -> int:
    """Compare the walk and the one-token lexer with the definition; returns the number of outcomes."""
    lexer = Lexer(grammar)
    nfa = build_terminal_nfa(compile_terminals(grammar))
    walk = Walk(grammar, nfa, tokens)
    newline = grammar.layout.newline if grammar.layout else -1
    single = NfaLexer(nfa, walk.codes, newline)
    n_outcomes = 0

    def column(lexeme: Lexeme | None) -> Column | None:
        ended = lexeme is not None and lexer.is_newline(lexeme[0]) and b"\n" in lexeme[1]
        return Column(*2 * [lexer.column(lexeme[1])]) if lexeme is not None and ended else NO_COLUMN

    for before in lexemes:
        state = nfa.n_states if before is None else state_of(lexer, nfa, before)
        fast = walked(walk, state)
        for number, token in enumerate(tokens):
            expected: set[Outcome] = set()
            exact: set[tuple[Symbols, int, Column | None]] = set()
            for anyhow in (True, False):
                for found in lexer.after(before, token, anyhow=anyhow):
                    symbols, end = lexer.symbols(walk.codes, before, found), state_of(lexer, nfa, found[-1])
                    expected.add((symbols, end))
                    if not anyhow:
                        exact.add((symbols, end, column(found[-1])))
            outcomes = fast.get(number, [])
            assert len(outcomes) == len(set(outcomes)) and set(outcomes) == expected, (grammar.name, before, token)
            assert (number in fast) == bool(expected)
            assert set(single.outcomes(state, column(before), token)) == exact, (grammar.name, before, token)
            n_outcomes += len(expected)
    return n_outcomes


@pytest.mark.parametrize("chunk", share(range(10), 1))
def test_outcomes_of_every_state_and_token(chunk: int) -> None:
    n_outcomes = 0
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        make: Callable[[int], Grammar]
        for make in (random_lexed_grammar, random_layout_grammar):
            grammar = make(seed)
            rng = random.Random(seed)
            vocabulary = random_vocabulary(grammar, seed, size=12)
            tokens = [token for token in vocabulary.tokens if token]
            lexer = Lexer(grammar)
            lexemes: list[Lexeme | None] = [None]
            for terminal, dfa in lexer.automata.items():
                lexemes += [(terminal, text) for text in texts_of_states(dfa).values()]
            drawn = {found[-1] for _ in range(6) for found in lexer.fresh(rng.choice(tokens) + rng.choice(tokens))}
            n_outcomes += check_walk(grammar, tokens, [*lexemes, *sorted(drawn - set(lexemes))])
    assert n_outcomes > 150 * CHUNK


def test_python_with_real_tokens() -> None:
    """python.lark's lexer states after some texts, and a sample of real tokens with those of several lexemes in front."""
    pytest.importorskip("mistral_common")
    grammar = python_grammar()
    vocabulary = load_vocabulary("mistral-7b-v0.1")
    rng = random.Random(0)
    ids = rng.sample(vocabulary.text_ids().tolist(), 250)
    rich = [i for i in vocabulary.text_ids().tolist() if b"\n" in vocabulary.tokens[i] or b"." in vocabulary.tokens[i]]
    tokens = [vocabulary.tokens[i] for i in ids + rng.sample(rich, 50)]
    lexer = Lexer(grammar)
    lexemes: list[Lexeme | None] = [None]
    for text in (b"def", b"1.", b"'a", b'"""a', b"\n  ", b"# c", b".", b"rb", b"\\"):
        lexemes += [(t, text) for t in lexer.automata if lexer.is_alive((t, text))]
    assert {grammar.terminals[lexeme[0]].name for lexeme in lexemes if lexeme is not None} >= {
        "DEF",
        "NAME",
        "FLOAT_NUMBER",
        "STRING",
        "LONG_STRING",
        "_NEWLINE",
        "COMMENT",
        "DOT",
    }
    assert check_walk(grammar, tokens, lexemes) > 1000


def test_by_hand() -> None:
    """Longest match inside a token, all alternatives at its end."""
    grammar = make_grammar("S : dot S | dots S | name S | def S | ")
    patterns = {"dot": (".", None), "dots": ("...", None), "name": (None, "[a-z]+"), "def": ("def", None)}
    names = [t.name for t in grammar.terminals]
    grammar = dress(grammar, [terminal_of(name, patterns[name]) for name in names])
    dot, dots, name, def_ = (names.index(x) for x in ("dot", "dots", "name", "def"))
    nfa = build_terminal_nfa(compile_terminals(grammar))
    tokens = [b"..", b"...", b"....", b"def", b"defx.", b"-"]
    walk = Walk(grammar, nfa, tokens)
    found = walked(walk, nfa.n_states)
    assert [sorted(sequence for sequence, _ in found.get(i, [])) for i in range(len(tokens))] == [
        sorted([(dot, dot), (dot, dots), (dots,)]),
        [(dots,)],
        sorted([(dots, dot), (dots, dots)]),
        sorted([(name,), (def_,)]),
        sorted([(name, dot), (name, dots)]),
        [],
    ]
    after_dots = walked(walk, int(nfa.initial[dots]) + 2)  # two dots of an unfinished "..."
    assert [sorted(s for s, _ in after_dots.get(i, [])) for i in range(3)] == [
        sorted([(dot,), (dots,)]),
        sorted([(dot, dot), (dot, dots), (dots,)]),
        [(dots,)],
    ]
    assert walk.resting_states[-1] == nfa.n_states
    after_def = walked(walk, int(nfa.initial[def_]) + 3)
    assert after_def == found  # complete: every token begins afresh


def test_no_tokens_that_are_alive() -> None:
    grammar = random_lexed_grammar(1)
    nfa = build_terminal_nfa(compile_terminals(grammar))
    walk = Walk(grammar, nfa, [b"\xff", b"\xfe\xff"])
    assert all(walk.groups(state).n_groups == 0 for state in walk.resting_states)


def test_the_union_stops_at_its_limit() -> None:
    grammar = make_grammar("S : x | y")
    patterns = [(None, "[ab]*a[ab]{7}"), (None, "[ab]*b[ab]{7}")]
    grammar = dress(grammar, [terminal_of(name, pattern) for name, pattern in zip("xy", patterns, strict=True)])
    nfa = build_terminal_nfa(compile_terminals(grammar))
    with pytest.raises(
        LimitError, match="more than 300 lexer states; those alive side by side in one state are x, y: make them"
    ):
        build_union_dfa(nfa, ["x", "y"], limit=300)
    with pytest.raises(
        LimitError, match="more than 20 lexer states; those alive side by side in one state are x: make"
    ):
        build_union_dfa(nfa, ["x", "y"], limit=20)  # x alone has more
