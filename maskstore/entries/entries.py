"""The entries of every lexer state before streamlining: which tokens may begin which sequences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.legality.deciders import ANYWHERE
from maskwright.analysis.legality.judge import ENDED_NEWLINE
from maskwright.analysis.legality.verdict import START
from maskwright.analysis.lexing.terminal_nfa import TerminalNfa
from maskwright.maskstore.entries.walk import StateGroups, Walk
from maskwright.maskstore.tokens.events import EventCodes

Symbols = tuple[int, ...]


class SequenceTable:
    """Distinct sequences, numbered in order of first use. Number 0 is the empty sequence."""

    def __init__(self) -> None:
        self.sequences: list[Symbols] = [()]
        self._number: dict[Symbols, int] = {(): 0}

    def __getitem__(self, number: int) -> Symbols:
        return self.sequences[number]

    def __len__(self) -> int:
        return len(self.sequences)

    def number(self, sequence: Symbols) -> int:
        """The number of a sequence. A new sequence is added to the table."""
        found = self._number.get(sequence)
        if found is None:
            found = self._number[sequence] = len(self.sequences)
            self.sequences.append(sequence)
        return found


def spoken_sequence(codes: EventCodes, sequence: Symbols) -> Symbols:
    """A sequence of the table as a sequence that a `Judge` reads.

    A newline that ended at some column becomes ENDED_NEWLINE. The end of the newline under way is
    left out.

    Example: with 10 terminals and layout, (11, 3) becomes (3,), since 11 is the event "leave"; and
    (12, 3) becomes (ENDED_NEWLINE, 3), since 12 is the event "newline_at".
    """
    if not sequence or max(sequence) < codes.n_terminals:
        return sequence
    decoded = (codes.decode(symbol) for symbol in sequence)
    return tuple(value if kind == "terminal" else ENDED_NEWLINE for kind, value in decoded if kind != "leave")


@dataclass(frozen=True)
class StateEntries:
    """One lexer state's entries.

    state : the lexer state; `nfa.n_states` is the start of the text.
    left : what stands just before the sequences, see `left_of`.
    groups : the groups of tokens in the state. States in which every token begins afresh share one
        object.
    sequences : (n,) int64, ascending; numbers of the distinct sequences that begin in the state.
    group_of, sequence_of : (n_pairs,) int64; a pair for each sequence of each group of tokens.
    """

    state: int
    left: int
    groups: StateGroups
    sequences: npt.NDArray[np.int64]
    group_of: npt.NDArray[np.int64]
    sequence_of: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Entries:
    """The entries of all lexer states.

    table : the sequences by number.
    states : the resting states in ascending order, then the start of the text.
    token_ids : (n_tokens,) int32; the vocabulary id of each of the walk's tokens.
    n_token_nfa_rows : the size of the token NFA: the number of quadruples (state, token, sequence,
        end state).
    """

    walk: Walk
    table: SequenceTable
    states: tuple[StateEntries, ...]
    token_ids: npt.NDArray[np.int32]
    n_token_nfa_rows: int


def left_of(grammar: Grammar, nfa: TerminalNfa, state: int) -> int:
    """The terminal that stands just before every sequence that begins in a lexer state.

    Returns START at the start of the text. Returns ANYWHERE inside an ignored terminal and inside
    the layout's newline: the parser may have seen some other terminal last there.
    """
    if state == nfa.n_states:
        return START
    terminal = int(nfa.terminal[state])
    if terminal in grammar.ignored or (grammar.layout is not None and terminal == grammar.layout.newline):
        return ANYWHERE
    return terminal


def collect_entries(
    grammar: Grammar,
    walk: Walk,
    token_ids: npt.NDArray[np.int32],
    progress: Callable[[int, int], None] | None = None,
) -> Entries:
    """The entries of all resting states.

    token_ids : (n_tokens,) int32; the vocabulary id of each of the walk's tokens.
    progress : called with the number of states done, and the number of all states.

    Cost: O(states * bytes of the vocabulary).
    """
    table = SequenceTable()
    of_set: dict[tuple[int, int], npt.NDArray[np.int64]] = {}
    done: dict[int, tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64], int]] = {}

    def sequences_of(leave: int, outcome_set: int) -> npt.NDArray[np.int64]:
        key = (leave, outcome_set)
        if key not in of_set:
            prefix = (leave,) if leave >= 0 else ()
            distinct = dict.fromkeys((*prefix, *sequence) for sequence, _ in walk.outcome_sets[outcome_set])
            of_set[key] = np.array([table.number(sequence) for sequence in distinct], np.int64)
        return of_set[key]

    states = []
    n_rows = 0
    resting = walk.resting_states
    for count, state in enumerate(resting):
        groups = walk.groups(state)
        if id(groups) not in done:
            parts: list[npt.NDArray[np.int64]] = []
            owners: list[npt.NDArray[np.int64]] = []
            rows = 0
            sizes = np.diff(groups.member_start)
            for number in range(groups.n_groups):
                found = sequences_of(int(groups.leave[number]), int(groups.outcome_set[number]))
                goes_on = int(groups.end_state[number] >= 0)
                rows += int(sizes[number]) * (goes_on + len(walk.outcome_sets[groups.outcome_set[number]]))
                if goes_on:
                    found = np.concatenate([[0], found])
                parts.append(found)
                owners.append(np.full(len(found), number, np.int64))
            sequence_of = np.concatenate(parts) if parts else np.zeros(0, np.int64)
            group_of = np.concatenate(owners) if owners else np.zeros(0, np.int64)
            done[id(groups)] = (np.unique(sequence_of), group_of, sequence_of, rows)
        sequences, group_of, sequence_of, rows = done[id(groups)]
        n_rows += rows
        states.append(StateEntries(state, left_of(grammar, walk.nfa, state), groups, sequences, group_of, sequence_of))
        if progress is not None:
            progress(count + 1, len(resting))
    return Entries(walk, table, tuple(states), token_ids, n_rows)
