"""Subterminal trees: against the lexer of one token at a time, and the kinds of their edges."""

from __future__ import annotations

import ast
import random
import re
from typing import Any

import pytest

import maskwright as mw
from maskwright.analysis.lexing.terminal_nfa import build_terminal_nfa
from maskwright.analysis.lexing.terminals import compile_terminals
from maskwright.analysis.loading import parse_grammar
from maskwright.decoding.reference.nfa_lexer import NfaLexer
from maskwright.maskstore.entries.subterminal_tree import SHOWN
from maskwright.maskstore.entries.walk import Walk

WORDS = """
start: (NAME | STRING | "if" | "(" | ")")+
NAME: /[a-c]+/
STRING: /"[^"]*"/
WS: / +/
%ignore WS
"""


def vocabulary(*tokens: bytes) -> mw.Vocabulary:
    return mw.Vocabulary.from_tokens([b"</s>", *tokens], eos=[0])


def paths_of(tree: Any) -> dict[tuple[tuple[str, str], ...], set[str]]:
    """The kinds and names along each path with tokens at its end, and the tokens that its label shows."""
    found: dict[tuple[tuple[str, str], ...], set[str]] = {}
    names: dict[Any, tuple[tuple[str, str], ...]] = {(): ()}
    for edge in tree.edges:
        kind, _, terminal = edge.label.partition(" ")
        names[edge.target] = (*names[edge.source], (kind, terminal))
        shown = tree.nodes[edge.target].label
        assert edge.accented == (edge.label.split()[0] in ("end", "continuation"))
        if shown:
            found[names[edge.target]] = {ast.literal_eval(token) for token in re.findall("'(?:[^'])*'", shown)}
    return found


def test_kinds_of_subterminals() -> None:
    words = parse_grammar(WORDS)
    tokens = vocabulary(b"i", b"if", b"(if", b'"', b'"a', b'a"', b'a" b', b" ")
    start = paths_of(mw.subterminal_tree(words, tokens))
    assert start == {
        (("start", "IF"),): {"i"},
        (("full", "IF"),): {"if"},
        (("full", "LPAR"), ("full", "IF")): {"(if"},
        (("start", "STRING"),): {'"', '"a'},
        (("full", "NAME"), ("start", "STRING")): {'a"', 'a" b'},
        (("full", "WS"),): {" "},
    }
    nfa = build_terminal_nfa(compile_terminals(words))
    inside = int(nfa.next_state[nfa.initial[words.terminal_number["STRING"]], ord('"')])
    assert paths_of(mw.subterminal_tree(words, tokens, inside)) == {
        (("continuation", "STRING"),): {"i", "if", "(if", " "},
        (("end", "STRING"),): {'"', 'a"'},
        (("end", "STRING"), ("full", "NAME")): {'"a'},
        (("end", "STRING"), ("full", "WS"), ("full", "NAME")): {'a" b'},
    }


@pytest.mark.parametrize("text", [WORDS, 'start: "." | "..." | D "." D\nD: /[0-9]+(\\.[0-9]+)?/'])
def test_readings_are_those_of_one_token_at_a_time(text: str) -> None:
    grammar, rng, compared = parse_grammar(text), random.Random(3), 0
    nfa = build_terminal_nfa(compile_terminals(grammar))
    tokens = [b".", b"..", b"...", b"0", b"a", b'"', *(bytes(rng.choices(b'ab"if(. 1', k=3)) for _ in range(40))]
    walk = Walk(grammar, nfa, tokens)
    lexer = NfaLexer(nfa, walk.codes, -1)
    for state in walk.resting_states:
        for token in tokens:
            tree = mw.subterminal_tree(grammar, vocabulary(token), state)
            found = {
                tuple(terminal for kind, terminal in path if kind in ("full", "start"))
                for path, look in tree.nodes.items()
                if look.label and path
            }
            assert found == {symbols for symbols, _, _ in lexer.outcomes(state, None, token)}
            compared += len(found)
    assert compared > 40


def test_newlines_of_a_layout_are_their_terminal() -> None:
    python = mw.load_grammar("lark:python")
    tree = mw.subterminal_tree(python, vocabulary(b"\n", b"\n\n  x", b"x\n"))
    labels = {edge.label for edge in tree.edges}
    assert {"full _NEWLINE", "full NAME"} <= labels


def test_labels_count_tokens() -> None:
    tokens = [bytes([byte]) for byte in b"abc"] + [b"aa", b"ab", b"ac"]
    tree = mw.subterminal_tree(parse_grammar(WORDS), vocabulary(*tokens))
    (edge,) = tree.edges
    assert tree.nodes[edge.target].label == f"'a' 'b' 'c' 'aa' and {len(tokens) - SHOWN} more"
    assert tree.to_networkx().number_of_edges() == 1
    assert '0 -> 1 [label="full NAME"]' in tree.to_dot("words")


def test_states_without_a_tree() -> None:
    words = parse_grammar(WORDS)
    for state in (0, -1, 10_000):
        with pytest.raises(mw.MaskwrightError, match=f"no text stands in lexer state {state} of grammar"):
            mw.subterminal_tree(words, vocabulary(b"a"), state)
    with pytest.raises(mw.VocabularyError, match="has no token that stands for text"):
        mw.subterminal_tree(words, mw.Vocabulary("none", (b"",), {0: "</s>"}, (0,)))
