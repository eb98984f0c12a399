"""LALR(1) lookahead sets of reductions.

LA(q, A -> w) = the terminals that can follow when the automaton, in state q, reduces by A -> w. For
a transition p on a nonterminal A, Follow(p, A) is what can come after A when A is read in state p:

    Read(r)      = the terminals shifted in r (and END in the accepting state),
                   and Read(s) for each s that r goes to on a nullable nonterminal
    Follow(p, A) = Read(state after A),
                   and Follow(p', B) for all B -> b A g with g nullable, p' going to p on b
                   ("includes")
    LA(q, A -> w) = the union of Follow(p, A) for all p going to q on w
    ("lookback")

Source: DeRemer and Pennello, Efficient computation of LALR(1) look-ahead sets, TOPLAS 4 (1982).
They have Read for each (p, A). It depends on the state after A alone, since only the start state's
transition on the start symbol is followed by END.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.analysis.deadline import look
from maskwright.analysis.grammar.normalise import nullable_symbols
from maskwright.analysis.graphs import unions
from maskwright.analysis.lr.automaton import Automaton, bits

Lookaheads = tuple[tuple[int, ...], ...]
"""For each state the lookahead set of each of its completed rules, as bits."""


class Relations(NamedTuple):
    """DeRemer's and Pennello's relations of an automaton. Sets of terminals are bits.

    A *goto* is a transition on a nonterminal. Terminal t is bit t, END is bit n_terminals.

    read : for each state its Read.
    behind : for each goto the state that it leads to.
    includes : for each goto the gotos whose Follow is part of its own.
    follow : for each goto its Follow.
    lookback : for each rule the states where it ends, and the gotos on its left side at its begin.
    """

    read: list[int]
    behind: list[int]
    includes: list[list[int]]
    follow: list[int]
    lookback: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.intp]]]


def relations(automaton: Automaton) -> Relations:
    """The relations of an automaton.

    Cost: O(gotos * rules of the nonterminal * length), in numpy, and one union of bits for each
        edge of `includes`.
    """
    grammar = automaton.grammar
    n_terminals = grammar.n_terminals
    nullable = nullable_symbols(grammar)
    read = _read(automaton, nullable)

    goto = np.flatnonzero(automaton.symbol >= n_terminals)
    source, nonterminal = automaton.source[goto], automaton.symbol[goto] - n_terminals
    number = np.full(len(automaton.symbol), -1, np.int64)
    number[goto] = np.arange(len(goto))
    by_nonterminal = np.argsort(nonterminal, kind="stable")
    bounds = np.searchsorted(nonterminal[by_nonterminal], np.arange(grammar.n_nonterminals + 1))

    # included goto * n + goto on the left side
    edges: list[npt.NDArray[np.int64]] = []
    lookback = []
    for rule in grammar.rules:
        look()
        column = rule.lhs - n_terminals
        heads = by_nonterminal[bounds[column] : bounds[column + 1]]
        at = source[heads]
        first_inner = len(rule.rhs)  # all symbols behind this position are nullable
        while first_inner > 0 and (first_inner == len(rule.rhs) or rule.rhs[first_inner] in nullable):
            first_inner -= 1
        for position, symbol in enumerate(rule.rhs):
            passed = automaton.find(at, symbol)
            if position >= first_inner and symbol >= n_terminals:
                edges.append(number[passed] * len(source) + heads)
            at = automaton.target[passed]
        lookback.append((at, heads))

    included, by = np.divmod(_distinct(edges), max(1, len(source)))
    starts = np.searchsorted(included, np.arange(len(source) + 1)).tolist()
    targets: list[int] = by.tolist()
    includes = [targets[i:j] for i, j in pairwise(starts)]
    behind: list[int] = automaton.target[goto].tolist()
    return Relations(read, behind, includes, unions(includes, [read[state] for state in behind]), lookback)


def lookaheads(automaton: Automaton) -> Lookaheads:
    """For each state the lookahead set of each of its completed rules, as bits.

    The sets of a state are in the order of `Automaton.completed`. Terminal t is bit t, END is bit
    n_terminals.

    Cost: as `relations`.
    """
    found = relations(automaton)
    distinct: dict[int, int] = {}
    kind = np.array([distinct.setdefault(f, len(distinct)) for f in found.follow], np.int64)
    sets, n_rules = list(distinct), len(found.lookback)
    reduced: list[dict[int, int]] = [dict.fromkeys(rules, 0) for rules in automaton.completed]
    keys = [
        (ends.astype(np.int64) * n_rules + rule) * len(sets) + kind[heads]
        for rule, (ends, heads) in enumerate(found.lookback)
    ]
    for key in _distinct(keys).tolist():
        at, number = divmod(key, len(sets))
        reduced[at // n_rules][at % n_rules] |= sets[number]
    return tuple(tuple(terminals.values()) for terminals in reduced)


def _distinct(keys: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """All numbers of some arrays, ascending. PERF: np.unique hashes them, which takes longer."""
    every = np.sort(np.concatenate([np.zeros(0, np.int64), *keys]))
    return every[np.diff(every, prepend=-1) > 0]


def _read(automaton: Automaton, nullable: frozenset[int]) -> list[int]:
    """Read of each state, as bits."""
    n_terminals, n_states = automaton.grammar.n_terminals, automaton.n_states
    direct = list(automaton.shifted)
    direct[automaton.accepting] |= 1 << n_terminals
    is_nullable = np.zeros(automaton.n_symbols, np.bool_)
    is_nullable[sorted(nullable)] = True
    passed = np.flatnonzero(is_nullable[automaton.symbol])
    bounds = np.searchsorted(automaton.source[passed], np.arange(n_states + 1)).tolist()
    targets: list[int] = automaton.target[passed].tolist()
    return unions([targets[i:j] for i, j in pairwise(bounds)], direct)


def conflicting_cells(automaton: Automaton, sets: Lookaheads) -> Iterator[tuple[int, int]]:
    """The states and terminals with several actions, ascending. END is n_terminals.

    sets : as `lookaheads(automaton)`.
    """
    for state, (shifted, terminals) in enumerate(zip(automaton.shifted, sets, strict=True)):
        once = shifted | (state == automaton.accepting) << automaton.grammar.n_terminals
        twice = 0
        for terminal_set in terminals:
            twice |= once & terminal_set
            once |= terminal_set
        for terminal in bits(twice):
            yield state, terminal


def has_conflicts(automaton: Automaton, sets: Lookaheads) -> bool:
    """Whether some state has several actions before a terminal; as `conflicting_cells`."""
    return next(conflicting_cells(automaton, sets), None) is not None
