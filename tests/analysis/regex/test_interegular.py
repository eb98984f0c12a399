"""Patterns beside interegular, which Lark uses to find terminals that collide: the same language, the same overlaps.

interegular reads characters and knows Unicode's classes in part, and its `\\s` lacks four controls that `re` has. So the texts compared are
those in ASCII without these four: all of them, since both automata are made minimal.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from random_patterns import random_pattern
from shares import share

from maskwright.analysis.lexing.terminals import compile_pattern, compile_terminals
from maskwright.analysis.loading import load_grammar
from maskwright.analysis.regex import Dfa, difference, intersect

interegular = pytest.importorskip("interegular")

NAMES = ("json", "c", "toml", "lark", "lark:python", "lark:lark")
LOOKS = ("(?=", "(?!", "(?<=", "(?<!")
"""interegular takes what these look at into the text."""
SEPARATORS = range(0x1C, 0x20)
KEPT = [byte for byte in range(128) if byte not in SEPARATORS]


def fsm_of(pattern: str) -> Any:
    """interegular's automaton of a pattern, or None where it does not read the pattern."""
    try:
        return interegular.parse_pattern(pattern).to_fsm()
    except (interegular.InvalidSyntax, interegular.Unsupported):
        return None


def in_ascii(dfa: Dfa) -> Dfa:
    """The texts of an automaton that are in ASCII, without separators."""
    table = np.full_like(dfa.next_state, -1)
    table[:, KEPT] = dfa.next_state[:, KEPT]
    return Dfa.minimal(table, dfa.is_accepting)


def as_dfa(fsm: Any) -> Dfa:
    """The texts of interegular's automaton that are in ASCII, without separators."""
    number = {state: i for i, state in enumerate([fsm.initial, *(s for s in fsm.states if s != fsm.initial)])}
    table = np.full((len(number), 256), -1, np.int32)
    for state, i in number.items():
        for byte in KEPT:
            after = fsm.map.get(state, {}).get(fsm.alphabet[chr(byte)])
            table[i, byte] = number.get(after, -1)
    return Dfa.minimal(table, [state in fsm.finals for state in number])


def is_empty(dfa: Dfa) -> bool:
    return not dfa.is_accepting.any()


SINGLES = ("a", "b", "c", "[ab]", "[^a]", ".", r"\d", r"\s", "[a-c]", r"\.")


@pytest.mark.parametrize("n", share([40, 300], 1))
def test_random_patterns(n: int) -> None:
    """`re` prefers alternatives in order (`/a|ab/` matches no "ab"), interegular knows only sets: it has at least our texts."""
    rng, automata, n_equal = random.Random(3), [], 0
    for _ in range(n):
        pattern = random_pattern(rng, 4, SINGLES, around=("(?i:{})", "(?s:{})"))
        fsm = fsm_of(pattern)
        if fsm is not None:
            found, expected = in_ascii(compile_pattern(pattern)), as_dfa(fsm)
            assert is_empty(difference(found, expected)), pattern
            n_equal += found == expected
            automata.append((pattern, found, fsm))
    assert len(automata) > 0.8 * n and n_equal > len(automata) // 2
    n_disjoint = 0
    for (one, left, theirs), (other, right, others) in itertools.pairwise(automata):
        is_disjoint = is_empty(as_dfa(theirs & others))
        n_disjoint += is_disjoint
        assert not is_disjoint or is_empty(intersect(left, right)), (one, other)
    assert n // 15 < n_disjoint < len(automata) - n // 15


def terminals_of(name: str) -> Iterator[tuple[str, Dfa, Any]]:
    """The terminals of a grammar that interegular reads: name, automaton here, automaton there; both in ASCII."""
    grammar = load_grammar(name)
    for terminal, dfa in zip(grammar.terminals, compile_terminals(grammar), strict=True):
        if dfa is not None and terminal.pattern is not None and not any(look in terminal.pattern for look in LOOKS):
            fsm = fsm_of(terminal.pattern)
            if fsm is not None:
                yield terminal.name, in_ascii(dfa), as_dfa(fsm)


@pytest.mark.parametrize("name", NAMES)
def test_terminals_of_grammars(name: str) -> None:
    n_read = 0
    for terminal, found, expected in terminals_of(name):
        assert found == expected, terminal
        n_read += 1
    assert n_read > len(load_grammar(name).terminals) // 2
