"""Terminals with common texts, made such that a lexer may say one terminal for a text.

A parser that follows all terminals which a text is a lexeme of may as well get one of them, if the
rules have that one wherever they have another one of them. This holds if each text has a *least*
terminal: one whose texts all others of its terminals have too. Where there is none, a terminal of
the common texts is added, which then is the least.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from maskwright.analysis.errors import LimitError
from maskwright.analysis.fronts.automata import automaton_of, in_both
from maskwright.analysis.fronts.expressions import Expr
from maskwright.analysis.lexing.terminal_nfa import build_terminal_nfa, build_union_dfa

MAX_ADDED = 50
"""The most terminals that are added."""
MAX_STATES = 20_000
"""The most states of the automaton of all terminals."""


class Disjoint(NamedTuple):
    """Terminals of which the lexer takes the one with the highest priority.

    terminals : those given, then those added. alternatives : for each terminal given, the numbers
    of the terminals that its texts may be. priorities : of each terminal.
    """

    terminals: tuple[Expr, ...]
    alternatives: tuple[tuple[int, ...], ...]
    priorities: tuple[int, ...]


def disjoint(terminals: Sequence[Expr], skip: int | None, names: Sequence[str], where: str) -> Disjoint:
    """The terminals, with those that must be added, and what stands for each.

    terminals : regular expressions that do not match the empty text.
    skip : the number of the terminal that wins wherever it may be taken; None if there is none.
    names, where : of the terminals and the grammar, for messages.

    Raises: LimitError if more than MAX_ADDED terminals must be added, or their automaton has more
    than MAX_STATES states.
    """
    found = list(terminals)
    while True:
        sets = _common(found, skip, names, where)
        over: list[frozenset[int]] = [frozenset()] * len(found)
        for texts in sets:
            for t in texts:
                over[t] = over[t] & texts if over[t] else texts
        missing = next((texts for texts in sets if _least(texts, over) is None), None)
        if missing is None:
            break
        if len(found) - len(terminals) >= MAX_ADDED:
            shown = " and ".join(names[t] for t in sorted(missing) if t < len(names))
            raise LimitError(
                f"grammar {where}: terminals have too many texts in common, such as {shown[:200]}; make them differ"
            )
        first, *others = sorted(missing)
        common = found[first]
        for other in others:
            common = in_both(common, found[other])
        found.append(common)
    alternatives: list[set[int]] = [{t} for t in range(len(found))]
    for texts in sets:
        least = _least(texts, over)
        for t in texts:
            if least is not None:
                alternatives[t].add(least)
    priorities = [len(over[t]) for t in range(len(found))]
    if skip is not None:
        priorities[skip] = len(found) + 1
    return Disjoint(
        tuple(found),
        tuple(tuple(sorted(alternatives[t], key=lambda other: (other != t, other))) for t in range(len(terminals))),
        tuple(priorities),
    )


def _common(terminals: Sequence[Expr], skip: int | None, names: Sequence[str], where: str) -> list[frozenset[int]]:
    """The sets of terminals that have a text in common, in order; also those of one terminal.

    The terminal `skip` is left out.
    """
    nfa = build_terminal_nfa([automaton_of(expr, MAX_STATES) for expr in terminals])
    labels = [names[t] if t < len(names) else f"__{t}" for t in range(len(terminals))]
    try:
        union = build_union_dfa(nfa, labels, MAX_STATES)
    except LimitError as error:
        raise LimitError(f"grammar {where}: {error}") from error
    sets = (frozenset(accepting) - {skip} for accepting in union.accepting)
    return list(dict.fromkeys(texts for texts in sets if texts))


def _least(texts: frozenset[int], over: Sequence[frozenset[int]]) -> int | None:
    """The terminal whose texts all others of a set have; None if there is none.

    over : for each terminal those that have all of its texts, itself included.
    """
    return min((t for t in texts if texts <= over[t]), default=None)
