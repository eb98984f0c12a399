"""Domino's subterminal trees: the pieces of terminals that tokens are made of in a lexer state.

In: a grammar, a vocabulary, a lexer state of lexing "nfa". Out: a `Graph` with a path for each
sequence of subterminals, and tokens at its nodes. To be looked at; masks are computed from entries.

A *subterminal* is what a token has of one lexeme. Its kind says whether the lexeme begins in the
token, and whether it may end where the subterminal does:

    full           begins, and may end      `if` in `if(`
    start          begins, and may not      `"a` of a string
    end            began before, may end    `a"` in a string
    continuation   began before, may not    `a` in a string

Source: Beurer-Kellner, Fischer and Vechev, Guiding LLMs The Right Way (Domino, arXiv 2403.06988),
section 3 and algorithm 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np

from maskwright.analysis.arguments import as_integer
from maskwright.analysis.errors import MaskwrightError, VocabularyError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.legality.graph import Graph, Link, Look
from maskwright.analysis.lexing.terminal_nfa import build_terminal_nfa
from maskwright.analysis.lexing.terminals import compile_terminals
from maskwright.analysis.loading.sources import GrammarSource, as_grammar
from maskwright.maskstore.entries.walk import Walk
from maskwright.maskstore.tokens import _kernels
from maskwright.maskstore.vocabulary import VocabularySource, as_vocabulary

Kind = Literal["full", "start", "end", "continuation"]
Path: TypeAlias = "tuple[tuple[Kind, int], ...]"
"""Kinds of subterminals and their terminals, from the first: a node of a tree."""

SHOWN = 4
"""Tokens of a node that its label shows; further ones are counted."""


def subterminal_tree(grammar: GrammarSource, tokenizer: VocabularySource, state: int | None = None) -> Graph[Path]:
    """The subterminal tree of a lexer state.

    grammar : whatever its lexing is, its terminals are read side by side, as by lexing "nfa".
    state : the lexer's, as `mw.analyze` numbers them; None for the start of a text, where no lexeme
        is under way.

    Returns a graph whose nodes are `Path`s. A node's label counts the tokens that may be read so,
    and shows the shortest; an edge's is a kind and a terminal. Edges of lexemes that began before
    the token are accented.

    Raises: MaskwrightError if no text can stand in the state between tokens; VocabularyError if no
        token stands for text; as `load_grammar` and `load_vocabulary`.
    Cost: O(bytes of the vocabulary), and some us for each reading of a token.
    """
    loaded = as_grammar(grammar)
    loaded = replace(loaded.plain or loaded, lexing="nfa")
    vocabulary = as_vocabulary(tokenizer)
    tokens = [vocabulary.tokens[token] for token in vocabulary.text_ids()]
    if not tokens:
        raise VocabularyError(f"vocabulary {vocabulary.name} has no token that stands for text")
    walk = Walk(loaded, build_terminal_nfa(compile_terminals(loaded)), tokens)
    start = walk.nfa.n_states
    state = start if state is None else as_integer("state", state)
    if state not in walk.resting_states:
        raise MaskwrightError(
            f"no text stands in lexer state {state} of grammar {loaded.name} between tokens; expected one of the states that analyze "
            "--json lists, or None for the start"
        )
    found: dict[Path, list[bytes]] = {(): []}
    for token, path in _readings(loaded, walk, state):
        for end in range(1, len(path)):
            found.setdefault(path[:end], [])
        found.setdefault(path, []).append(token)
    terminal = "START" if state == start else loaded.display_name(int(walk.nfa.terminal[state]))
    heading = terminal if state == start else f"{terminal}, state {state}"
    nodes = {path: Look(_label(heading if not path else "", found[path]), start=not path) for path in sorted(found)}
    edges = [
        Link(
            path[:-1], path, f"{path[-1][0]} {loaded.display_name(path[-1][1])}", path[-1][0] in ("end", "continuation")
        )
        for path in nodes
        if path
    ]
    return Graph(nodes, edges)


def _readings(grammar: Grammar, walk: Walk, state: int) -> Iterator[tuple[bytes, Path]]:
    """Each token with the subterminals that it may be in a lexer state."""
    nfa, n = walk.nfa, len(walk.tokens)
    end_state, cut = np.full(n, -1, np.int32), walk.offsets[:-1].astype(np.int32)
    under_way = -1
    if state < nfa.n_states:
        _kernels.scan_state(nfa.next_state, nfa.is_accepting, state, walk.data, walk.offsets, end_state, cut)
        under_way = int(nfa.terminal[state])
    for number, (token, (begin, _)) in enumerate(zip(walk.tokens, pairwise(walk.offsets.tolist()), strict=True)):
        at, end = int(cut[number]), int(end_state[number])
        paths: list[Path] = []
        if end >= 0:
            paths.append(((("end" if nfa.is_accepting[end] else "continuation"), under_way),))
        if at >= 0:
            first: Path = (("end", under_way),) if at > begin else ()
            for symbols, last in walk.outcome_sets[walk.outcome_of[at]]:
                terminals = [_terminal(grammar, walk, symbol) for symbol in symbols]
                kind: Kind = "full" if nfa.is_accepting[last] else "start"
                paths.append((*first, *(("full", terminal) for terminal in terminals[:-1]), (kind, terminals[-1])))
        for path in dict.fromkeys(paths):
            yield token, path


def _terminal(grammar: Grammar, walk: Walk, symbol: int) -> int:
    """The terminal of a symbol: each event of a layout is one of its newline."""
    kind, number = walk.codes.decode(symbol)
    return number if kind == "terminal" else grammar.newline


def _label(heading: str, tokens: list[bytes]) -> str:
    """What a node is, how many tokens hang on it, and the shortest of them."""
    distinct = sorted(set(tokens), key=lambda token: (len(token), token))
    shown = " ".join(repr(token.decode("utf-8", "backslashreplace")) for token in distinct[:SHOWN])
    more = f" and {len(distinct) - SHOWN} more" if len(distinct) > SHOWN else ""
    return "\n".join(filter(None, (heading, f"{shown}{more}")))


__all__ = ["subterminal_tree"]
