"""The automata of all terminals side by side: the lexer of lexing `nfa`.

A lexer state is a state of one terminal's automaton. The NFA has two states more: a start state,
which leads to each initial state, and a final state, which each accepting state leads to. Neither
step reads a byte. No terminal has priority over another: after the bytes ``def`` both DEF and NAME
are alive. Longest match decides how far a terminal reaches before the next one begins, see
`maskwright.maskstore.entries.walk`.

Source: Domino (arXiv 2403.06988), section 3; Tran-Thien's streamlining post (2025), with its
reading of longest match.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import LimitError
from maskwright.analysis.regex.dfa import MAX_STATES, Dfa
from maskwright.analysis.regex.minimise import sorted_columns

LONGEST_NAME = 60
"""The most characters of a terminal's name in a message."""


@dataclass(frozen=True)
class TerminalNfa:
    """The disjoint union of the terminals' automata. All arrays are read-only.

    next_state : (n_states, 256) int32; -1 = none. A transition never leaves its terminal's
        automaton.
    is_accepting : (n_states,) bool; whether a lexeme of the state's terminal may end there.
    terminal : (n_states,) int32; the terminal whose automaton a state belongs to.
    initial : (n_terminals,) int32; the initial state of each terminal, -1 for declared terminals,
        which no text spells.
    is_resting : (n_states,) bool; the states in which a non-empty text can end.

    INVARIANT: every state can reach an accepting one, so an unfinished terminal can always be
    finished.
    """

    next_state: npt.NDArray[np.int32]
    is_accepting: npt.NDArray[np.bool_]
    terminal: npt.NDArray[np.int32]
    initial: npt.NDArray[np.int32]
    is_resting: npt.NDArray[np.bool_]

    @property
    def n_states(self) -> int:
        """The number of the terminals' states, without the start and the final state of the NFA."""
        return int(self.next_state.shape[0])


def build_terminal_nfa(automata: Sequence[Dfa | None]) -> TerminalNfa:
    """The automata side by side, in the order of the terminals.

    automata : for each terminal its automaton; None for a declared terminal, which gets no states.
    """
    compiled = [dfa for dfa in automata if dfa is not None]
    sizes = np.array([0 if dfa is None else dfa.n_states for dfa in automata], np.int32)
    offsets = np.cumsum(sizes, dtype=np.int32) - sizes
    next_state = np.concatenate([np.zeros((0, 256), np.int32), *[dfa.next_state for dfa in compiled]])
    np.add(next_state, offsets.repeat(sizes)[:, None], out=next_state, where=next_state >= 0)
    is_resting = np.zeros(len(next_state) + 1, np.bool_)  # the last one for no transition
    is_resting[next_state] = True
    return TerminalNfa(
        next_state=read_only(next_state),
        is_accepting=read_only(np.concatenate([np.zeros(0, np.bool_), *[dfa.is_accepting for dfa in compiled]])),
        terminal=read_only(np.arange(len(sizes), dtype=np.int32).repeat(sizes)),
        initial=read_only(np.where(sizes, offsets, -1).astype(np.int32)),
        is_resting=read_only(is_resting[:-1]),
    )


@dataclass(frozen=True)
class UnionDfa:
    """The union automaton: the subset construction on a `TerminalNfa`.

    A state is the set of NFA states that are alive after some bytes of a lexeme.

    next_state : (n_sets, 256) int32, read-only; -1 = nothing is alive.
    members : for each set its NFA states, ascending.
    accepting : for each set the terminals that may end there, ascending.
    starts : for each choice of competing terminals the set in which a lexeme begins. By default
        there is one choice, all terminals, and it begins in set 0.
    byte_class : (256,) intp, read-only; the class of each byte, as `sorted_columns(next_state)`.
    """

    next_state: npt.NDArray[np.int32]
    members: tuple[tuple[int, ...], ...]
    accepting: tuple[tuple[int, ...], ...]
    starts: tuple[int, ...]
    byte_class: npt.NDArray[np.intp]


def build_union_dfa(
    nfa: TerminalNfa,
    names: Sequence[str],
    limit: int = MAX_STATES,
    starts: Sequence[tuple[int, ...]] | None = None,
) -> UnionDfa:
    """The subset construction, from all initial states or from each of some choices of them.

    names : (n_terminals,); the terminals' names for the error message.
    limit : the most sets.
    starts : for each choice of competing terminals their initial states, ascending; None: one
        choice, all.

    Raises: LimitError, which names the terminals that are alive together in the largest set, if
        there are more than `limit` sets; at once if one competing terminal has more states than
        that by itself.
    Cost: O(n_sets * byte classes); n_sets may be exponential in the states of the NFA.
    """
    competing = {start for choice in starts for start in choice} if starts is not None else None
    for terminal, n_own in enumerate(np.bincount(nfa.terminal, minlength=len(nfa.initial)).tolist()):
        first = int(nfa.initial[terminal])
        if n_own > limit and (competing is None or first in competing):
            raise LimitError(_too_many(nfa, names, [(first,)], limit))
    byte_class, representatives = sorted_columns(nfa.next_state)
    columns: list[list[int]] = nfa.next_state[:, representatives].tolist()
    if starts is None:
        starts = [tuple(int(s) for s in nfa.initial if s >= 0)]
    members = list(dict.fromkeys(starts))
    number: dict[tuple[int, ...], int] = {start: i for i, start in enumerate(members)}
    n_rows = 0
    several: dict[int, list[int]] = {}  # the rows of sets that have not just one member

    def number_of(reached: tuple[int, ...]) -> int:
        if not reached:
            return -1
        found = number.get(reached)
        if found is None:
            found = number[reached] = len(members)
            members.append(reached)
            if len(members) > limit:
                raise LimitError(_too_many(nfa, names, members, limit))
        return found

    # PERF: classes that lead to the same states are looked at once, in the order of their first
    # class. Most sets have one member: their rows are renamed all at once.
    of_one = np.full(nfa.n_states + 1, -1, np.int32)  # the last one for no transition
    met = [False] * nfa.n_states + [True]
    while n_rows < len(members):
        set_ = members[n_rows]
        if len(set_) == 1:
            for state in dict.fromkeys(columns[set_[0]]):
                if not met[state]:
                    met[state] = True
                    of_one[state] = number_of((state,))
        else:
            found: dict[tuple[int, ...], int] = {}
            row = several[n_rows] = [] if set_ else [-1] * len(representatives)
            for each in zip(*[columns[state] for state in set_], strict=True):
                target = found.get(each)  # once, since hashes of long tuples take most of the time
                if target is None:
                    target = found[each] = number_of(tuple(sorted(set(each) - {-1})))
                row.append(target)
        n_rows += 1
    ended = np.where(nfa.is_accepting, nfa.terminal, -1).tolist()
    accepting = tuple(tuple(sorted({ended[s] for s in set_} - {-1})) for set_ in members)
    table = np.empty((len(members), len(representatives)), np.int32)
    alone = [number for number in range(len(members)) if number not in several]
    table[alone] = of_one[nfa.next_state[[members[number][0] for number in alone]][:, representatives]]
    if several:
        table[list(several)] = list(several.values())
    class_of, _ = sorted_columns(table)  # PERF: of as many columns as the NFA has classes, not of 256
    return UnionDfa(
        read_only(table[:, byte_class]),
        tuple(members),
        accepting,
        tuple(number[start] for start in starts),
        read_only(class_of[byte_class]),
    )


def _too_many(nfa: TerminalNfa, names: Sequence[str], members: Sequence[tuple[int, ...]], limit: int) -> str:
    alive = list(dict.fromkeys(names[nfa.terminal[s]] for s in max(members[len(members) // 2 :], key=len)))
    alive = [name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}..." for name in alive]
    more = f" and {len(alive) - 8} more" if len(alive) > 8 else ""
    return (
        f"the terminals together have more than {limit} lexer states; those alive side by side in one state are "
        f"{', '.join(alive[:8])}{more}: make them shorter or more alike"
    )


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array, which can be changed no more."""
    array.setflags(write=False)
    return array
