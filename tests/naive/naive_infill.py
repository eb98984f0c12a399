"""Is there a text of a grammar with some free bytes in it? From the rules, for terminals of one byte."""

from __future__ import annotations

from collections.abc import Iterable

Edges = dict[tuple[int, int], set[int]]
"""An automaton over terminals: from a state and a terminal to states. It begins in state 0."""


def is_empty(rules: Iterable[tuple[int, tuple[int, ...]]], start: int, edges: Edges, n: int, finals: set[int]) -> bool:
    """Whether the grammar and an automaton of n states have no text in common.

    Source: Bar-Hillel, Perles, Shamir (1961): for each symbol the pairs of states between which the automaton reads one
    of its texts.
    """
    pairs: dict[int, set[tuple[int, int]]] = {}
    for (state, terminal), targets in edges.items():
        pairs.setdefault(terminal, set()).update((state, target) for target in targets)
    is_changed = True
    while is_changed:
        is_changed = False
        for lhs, rhs in rules:
            found = {(state, state) for state in range(n)}
            for symbol in rhs:
                step: dict[int, list[int]] = {}
                for state, target in pairs.get(symbol, ()):
                    step.setdefault(state, []).append(target)
                found = {(state, target) for state, between in found for target in step.get(between, ())}
            known = pairs.setdefault(lhs, set())
            is_changed |= not found <= known
            known |= found
    return not any((0, final) in pairs.get(start, set()) for final in finals)


def can_be_filled(
    rules: list[tuple[int, tuple[int, ...]]],
    start: int,
    before: list[int],
    after: list[int],
    free: tuple[list[int], int | None],
) -> bool:
    """Whether the grammar has a text of `before`, free terminals, and `after`.

    free : which terminals may stand between, and at most how many; None for any number.
    """
    terminals, most = free
    edges: Edges = {}

    def add(state: int, terminal: int, target: int) -> None:
        edges.setdefault((state, terminal), set()).add(target)

    for i, terminal in enumerate(before):
        add(i, terminal, i + 1)
    m = len(before)
    if most is None:
        for terminal in terminals:
            add(m, terminal, m)
        borders = [m]
    else:
        for k in range(most):
            for terminal in terminals:
                add(m + k, terminal, m + k + 1)
        borders = list(range(m, m + most + 1))
    last = borders[-1]
    for i, terminal in enumerate(after):
        for state in borders if i == 0 else [last + i]:
            add(state, terminal, last + i + 1)
    finals = {last + len(after)} if after else set(borders)
    return not is_empty(rules, start, edges, last + len(after) + 1, finals)
