"""The vocabulary walk: which terminal sequences each token may begin in each lexer state; entries.

The walk goes from every lexer state over every token. It also finds the lexer states in which the
token may end.

Inside a token the longest match decides; at the token's end all alternatives are kept. A lexeme
that begins at some byte of a token runs on as long as a terminal that began there is alive. If all
of them die, the lexeme ended after the last byte at which a terminal accepted. Every terminal that
accepts there counts, since none has priority. If some terminals are alive at the token's end, the
lexeme may become each of them. It may also still fail in the next token. So a shorter accepted
lexeme remains possible too, unless a terminal accepts at the token's very end.

Example: the token ``..`` is an unfinished ELLIPSIS, or DOT DOT.

A terminal is part of a sequence if it *begins* in the token. The terminal under way before the
token has been accepted before, so the empty sequence needs no parser.

Source: Tran-Thien's streamlining post (2025); Domino (arXiv 2403.06988), section 3.3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.kept import cached_property
from maskwright.analysis.legality.deciders import ANYWHERE
from maskwright.analysis.legality.judge import ENDED_NEWLINE
from maskwright.analysis.legality.verdict import START
from maskwright.analysis.lexing.terminal_nfa import TerminalNfa, UnionDfa, build_union_dfa
from maskwright.maskstore.tokens import _kernels
from maskwright.maskstore.tokens.classes import numbered
from maskwright.maskstore.tokens.events import ABSOLUTE, EventCodes, Move, Moves

Sequence = tuple[int, ...]
Outcome = tuple[Sequence, int]
"""A terminal sequence that begins in some bytes, and the lexer state after them."""

NO_OUTCOME = 0
"""The number of the empty outcome set."""


@dataclass(frozen=True)
class StateGroups:
    """The tokens in one lexer state, grouped: tokens that do the same form a group.

    end_state : (n_groups,) int32; the lexer state after the token if the terminal under way goes on
        to the token's end; -1 if it cannot.
    leave : (n_groups,) int32; the event "leave" if the token ends a newline under way, else -1.
    outcome_set : (n_groups,) int32; if the terminal under way ends inside or before the token, the
        number of the outcome set of the token's bytes from there on, else NO_OUTCOME.
    members : (n_alive,) int32; indices of the walk's tokens, sorted by group, then ascending. A
        token in no group is never allowed.
    member_start : (n_groups + 1,) int64; group i is members[member_start[i] : member_start[i + 1]].
    """

    end_state: npt.NDArray[np.int32]
    leave: npt.NDArray[np.int32]
    outcome_set: npt.NDArray[np.int32]
    members: npt.NDArray[np.int32]
    member_start: npt.NDArray[np.int64]

    @property
    def n_groups(self) -> int:
        """The number of groups."""
        return len(self.end_state)


class Walk:
    """The walk of one vocabulary over one lexer.

    nfa : the lexer.
    layout : the grammar's layout; None if it has none.
    tokens : the byte strings to walk, none empty. The caller keeps track of their ids.
    data : (n_bytes,) uint8; the bytes of all tokens end to end.
    offsets : (n_tokens + 1,) int64; token i is data[offsets[i] : offsets[i + 1]].
    union : the subset automaton of the lexer, which reads a fresh lexeme.
    codes : the symbols of the sequences: terminals and the layout's events.
    moves : (n_moves, 33) int32; see `Moves.table`.
    outcome_sets : the distinct outcome sets by number, each a sorted tuple. Number NO_OUTCOME is
        the empty set.
    outcome_of : (n_bytes,) int32; for each byte the outcome set of the bytes from there to the
        token's end, if a fresh lexeme begins there.

    Raises: LimitError if too many terminals are alive together (`build_union_dfa`).
    """

    def __init__(self, grammar: Grammar, nfa: TerminalNfa, tokens: list[bytes]) -> None:
        self.nfa = nfa
        self.layout = grammar.layout
        self.tokens = tokens
        self.data = np.frombuffer(b"".join(tokens), np.uint8)
        self.offsets = np.concatenate([[0], np.cumsum([len(t) for t in tokens])]).astype(np.int64)
        self.union: UnionDfa = build_union_dfa(nfa, [t.name for t in grammar.terminals])
        self.codes = EventCodes(grammar.n_terminals, Moves(self.layout, tokens))
        self.moves = self.codes.moves.table()
        self.outcome_sets: list[tuple[Outcome, ...]] = [()]
        self._set_number: dict[tuple[Outcome, ...], int] = {(): NO_OUTCOME}
        self.outcome_of = self._intern_outcomes()

    def _intern_outcomes(self) -> npt.NDArray[np.int32]:
        """`outcome_of`; fills `outcome_sets`."""
        accept_sets = list(dict.fromkeys([(), *self.union.accepting]))
        accept_number = {terminals: number for number, terminals in enumerate(accept_sets)}
        accepts = np.array([accept_number[terminals] for terminals in self.union.accepting], np.int32)
        newline = self.layout.newline if self.layout else -1
        counts_columns = np.array([newline in terminals for terminals in accept_sets], np.bool_)
        n = len(self.data)
        end_set, cut, accepted, move = found = np.empty((4, n), np.int32)
        _kernels.scan_fresh(
            np.ascontiguousarray(self.union.next_state),
            accepts,
            counts_columns,
            self.moves,
            self.codes.moves.find(Move(ABSOLUTE)),
            self.data,
            self.offsets,
            found,
        )
        outcome_of = np.zeros(n, np.int32)
        known: dict[tuple[int, int, int, int], int] = {}
        # shorter suffixes of tokens first: the outcomes of a suffix are built from those of the
        # suffix after its first lexeme
        remaining = np.repeat(self.offsets[1:], np.diff(self.offsets)) - np.arange(n)
        order = np.argsort(remaining, kind="stable")
        bounds = np.searchsorted(remaining[order], np.arange(1, int(remaining.max(initial=0)) + 2))
        for begin, end in pairwise(bounds.tolist()):
            block = order[begin:end]
            remainder_set = np.where(cut[block] >= 0, outcome_of[cut[block]], -1)
            keys = np.stack([end_set[block], accepted[block], move[block], remainder_set], axis=1)
            distinct, inverse = np.unique(keys, axis=0, return_inverse=True)
            numbers = np.empty(len(distinct), np.int32)
            for i, row in enumerate(distinct.tolist()):
                key = (row[0], row[1], row[2], row[3])
                if key not in known:
                    known[key] = self._outcome_set(*key, accept_sets, newline)
                numbers[i] = known[key]
            outcome_of[block] = numbers[inverse.reshape(-1)]
        return outcome_of

    def _outcome_set(
        self,
        end_set: int,
        accepted: int,
        move: int,
        remainder_set: int,
        accept_sets: list[tuple[int, ...]],
        newline: int,
    ) -> int:
        """The number of the outcome set of a suffix of a token.

        end_set : the set of terminals alive at the token's end, or -1.
        accepted, move : the terminals that accept the first lexeme, by number in `accept_sets`, and
            its move if the newline is among them.
        remainder_set : the outcome set of the bytes after the first lexeme, or -1.
        """
        outcomes: set[Outcome] = set()
        if end_set >= 0:
            outcomes |= {((int(self.nfa.terminal[state]),), state) for state in self.union.members[end_set]}
        if remainder_set >= 0:
            for terminal in accept_sets[accepted]:
                symbol = terminal
                if terminal == newline:
                    if move == _kernels.NO_COLUMN:
                        continue  # a newline without a line feed cannot end: it has no column
                    symbol = self.codes.newline_at(move)
                outcomes |= {((symbol, *sequence), state) for sequence, state in self.outcome_sets[remainder_set]}
        content = tuple(sorted(outcomes))
        if content not in self._set_number:
            self._set_number[content] = len(self.outcome_sets)
            self.outcome_sets.append(content)
        return self._set_number[content]

    @cached_property
    def resting_states(self) -> list[int]:
        """The lexer states in which a text can stand between two tokens, ascending.

        The last is `nfa.n_states`, which stands for the start of the text.
        """
        return [*np.flatnonzero(self.nfa.is_resting).tolist(), self.nfa.n_states]

    def groups(self, state: int) -> StateGroups:
        """The groups of tokens in a lexer state.

        state : `nfa.n_states` is the start of the text.

        Raises: LimitError if there are too many lexer states, events and outcome sets to number
        their combinations in 64 bits.

        Cost: O(bytes of the vocabulary).
        """
        if state == self.nfa.n_states:
            return self._fresh_groups
        n_tokens = len(self.tokens)
        end_state = np.empty(n_tokens, np.int32)
        leave = np.full(n_tokens, -1, np.int32)
        cut = np.empty(n_tokens, np.int32)
        read_on = _kernels.scan_state(
            self.nfa.next_state, self.nfa.is_accepting, state, self.data, self.offsets, end_state, cut
        )
        if not read_on and self.nfa.is_accepting[state] and not self._is_newline(state):
            return self._fresh_groups  # the terminal is complete: every token begins afresh
        outcome_set = np.where(cut >= 0, self.outcome_of[cut], NO_OUTCOME).astype(np.int32)
        if self._is_newline(state):
            moves = np.zeros(n_tokens, np.int32)
            _kernels.leave_newline(self.data, self.offsets, cut, self.moves, moves)
            leave = np.where(outcome_set != NO_OUTCOME, self.codes.leave(0) + 2 * moves, -1).astype(np.int32)
        return self._group(end_state, leave, outcome_set)

    def _is_newline(self, state: int) -> bool:
        return self.layout is not None and int(self.nfa.terminal[state]) == self.layout.newline

    @cached_property
    def _fresh_groups(self) -> StateGroups:
        """The groups where every token begins with a fresh lexeme."""
        none = np.full(len(self.tokens), -1, np.int32)
        return self._group(none, none, self.outcome_of[self.offsets[:-1]])

    def _group(
        self, end_state: npt.NDArray[np.int32], leave: npt.NDArray[np.int32], outcome_set: npt.NDArray[np.int32]
    ) -> StateGroups:
        """Group tokens by what they do: end_state, leave and outcome_set are (n_tokens,) int32."""
        alive = np.flatnonzero((end_state >= 0) | (outcome_set != NO_OUTCOME))
        radix_leave = self.codes.n_symbols + 1
        radix_set = len(self.outcome_sets)
        if (self.nfa.n_states + 1) * radix_leave * radix_set >= 1 << 62:
            raise LimitError(
                "the lexer has too many states and the tokens too many outcomes to number their pairs in 64 bits"
            )
        keys = (end_state[alive].astype(np.int64) + 1) * radix_leave + (leave[alive] + 1)
        keys = keys * radix_set + outcome_set[alive]
        group, firsts = numbered(keys)
        first_tokens = alive[firsts]
        return StateGroups(
            end_state[first_tokens],
            leave[first_tokens],
            outcome_set[first_tokens],
            alive[np.argsort(group, kind="stable")].astype(np.int32),
            np.concatenate([[0], np.cumsum(np.bincount(group, minlength=len(firsts)))]).astype(np.int64),
        )

    def outcomes(self, groups: StateGroups, number: int) -> list[Outcome]:
        """The outcomes of a group's tokens: each a terminal sequence and the lexer state after it.

        number : the group.
        """
        found: list[Outcome] = []
        if groups.end_state[number] >= 0:
            found.append(((), int(groups.end_state[number])))
        leave = int(groups.leave[number])
        prefix = (leave,) if leave >= 0 else ()
        found += [((*prefix, *sequence), state) for sequence, state in self.outcome_sets[groups.outcome_set[number]]]
        return found


Symbols = tuple[int, ...]
Reading = Literal["sound", "post"]


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
