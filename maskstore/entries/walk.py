"""The vocabulary walk: from every lexer state, every token, to the terminal sequences that it may begin and the states it may end in.

Longest match inside a token, all alternatives at its end. A lexeme that begins at some byte of a token runs on as far as any terminal
that began there is alive. If all die, it ended at the last place where some terminal accepted (any terminal that accepts there: none
has priority). If some are alive at the token's end, each of them may be the one; and because each may still fail in the next
token, a shorter accepted lexeme remains possible, unless one accepts at the end itself: ``..`` is an unfinished ELLIPSIS, or DOT DOT.

A terminal counts when it is entered: sequences hold the terminals that *begin* in the token. The terminal under way has been accepted
before, so the empty sequence needs no parser.

Source: Tran-Thien's streamlining post (2025); Domino (arXiv 2403.06988), section 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.lexing.terminal_nfa import TerminalNfa, UnionDfa, build_union_dfa
from maskwright.maskstore.tokens import _kernels
from maskwright.maskstore.tokens.events import ABSOLUTE, EventCodes, Move, Moves

Sequence = tuple[int, ...]
Outcome = tuple[Sequence, int]
"""A terminal sequence begun by some bytes, and the lexer state after them."""

NO_OUTCOME = 0
"""The number of the empty outcome set."""


@dataclass(frozen=True)
class StateGroups:
    """What the tokens do in one lexer state: tokens that do the same form a group.

    end_state : (n_groups,) int32; the terminal under way goes on and ends up there, or -1.
    leave : (n_groups,) int32; symbol for the newline that is left, or -1 (not a newline, or not left).
    outcome_set : (n_groups,) int32; number of the outcome set of what is left of the token once the terminal under way
        has ended, or NO_OUTCOME.
    members : (n_alive,) int32; indices of the walk's tokens, sorted by group, then ascending. A token in no group is never allowed.
    member_start : (n_groups + 1,) int64; group i is members[member_start[i] : member_start[i + 1]].
    """

    end_state: npt.NDArray[np.int32]
    leave: npt.NDArray[np.int32]
    outcome_set: npt.NDArray[np.int32]
    members: npt.NDArray[np.int32]
    member_start: npt.NDArray[np.int64]

    @property
    def n_groups(self) -> int:
        return len(self.end_state)


class Walk:
    """The walk of one vocabulary over one lexer.

    tokens : the byte strings walked, none empty; the caller keeps track of their ids.
    layout : the grammar's, or None to treat the newline as any terminal.

    outcome_sets[n] : outcomes, sorted; equal sets have one number. outcome_of : (n_bytes,) int32; for each byte of each
    token the outcome set of the text from there to the token's end, a fresh lexeme beginning there.
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
        accept_sets = list(dict.fromkeys([(), *self.union.accepting]))
        accept_number = {terminals: number for number, terminals in enumerate(accept_sets)}
        accepts = np.array([accept_number[terminals] for terminals in self.union.accepting], np.int32)
        newline = self.layout.newline if self.layout else -1
        counts_columns = np.array([newline in terminals for terminals in accept_sets], np.bool_)
        n = len(self.data)
        end_set, cut, accepted, move = (np.empty(n, np.int32) for _ in range(4))
        _kernels.scan_fresh(
            self.union.next_state,
            accepts,
            counts_columns,
            self.moves,
            self.codes.moves.find(Move(ABSOLUTE)),
            self.data,
            self.offsets,
            end_set,
            cut,
            accepted,
            move,
        )
        outcome_of = np.zeros(n, np.int32)
        known: dict[tuple[int, int, int, int], int] = {}
        # shorter rests first: a rest's outcomes are built from those of the rest after its first lexeme
        remaining = np.repeat(self.offsets[1:], np.diff(self.offsets)) - np.arange(n)
        order = np.argsort(remaining, kind="stable")
        bounds = np.searchsorted(remaining[order], np.arange(1, int(remaining.max(initial=0)) + 2))
        for begin, end in pairwise(bounds.tolist()):
            block = order[begin:end]
            rest = np.where(cut[block] >= 0, outcome_of[cut[block]], -1)
            keys = np.stack([end_set[block], accepted[block], move[block], rest], axis=1)
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
        self, end_set: int, accepted: int, move: int, rest: int, accept_sets: list[tuple[int, ...]], newline: int
    ) -> int:
        outcomes: set[Outcome] = set()
        if end_set >= 0:
            outcomes |= {((int(self.nfa.terminal[state]),), state) for state in self.union.members[end_set]}
        if rest >= 0:
            for terminal in accept_sets[accepted]:
                symbol = terminal
                if terminal == newline:
                    if move == _kernels.NO_COLUMN:
                        continue  # a newline without a line feed cannot end: it has no column
                    symbol = self.codes.newline_at(move)
                outcomes |= {((symbol, *sequence), state) for sequence, state in self.outcome_sets[rest]}
        content = tuple(sorted(outcomes))
        if content not in self._set_number:
            self._set_number[content] = len(self.outcome_sets)
            self.outcome_sets.append(content)
        return self._set_number[content]

    @cached_property
    def resting_states(self) -> list[int]:
        """The lexer states in which a text can stand between tokens, the start of the text (numbered n_states) last."""
        return [*np.flatnonzero(self.nfa.is_resting).tolist(), self.nfa.n_states]

    def groups(self, state: int) -> StateGroups:
        """The groups of tokens in a lexer state; `nfa.n_states` is the start of the text. Cost: O(bytes of the vocabulary)."""
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
        none = np.full(len(self.tokens), -1, np.int32)
        return self._group(none, none, self.outcome_of[self.offsets[:-1]])

    def _group(
        self, end_state: npt.NDArray[np.int32], leave: npt.NDArray[np.int32], outcome_set: npt.NDArray[np.int32]
    ) -> StateGroups:
        alive = np.flatnonzero((end_state >= 0) | (outcome_set != NO_OUTCOME))
        radix_leave = self.codes.n_symbols + 1
        radix_set = len(self.outcome_sets)
        if (self.nfa.n_states + 1) * radix_leave * radix_set >= 1 << 62:
            raise LimitError(
                "the lexer has too many states and the tokens too many outcomes to number their pairs in 64 bits"
            )
        keys = (end_state[alive].astype(np.int64) + 1) * radix_leave + (leave[alive] + 1)
        keys = keys * radix_set + outcome_set[alive]
        group = np.empty(len(alive), np.int32)
        firsts = np.empty(len(alive), np.int32)
        slots = np.full(1 << max(4, (2 * len(alive)).bit_length()), -1, np.int32)
        n_groups = _kernels.group_equal(keys, group, firsts, slots)
        first_tokens = alive[firsts[:n_groups]]
        return StateGroups(
            end_state[first_tokens],
            leave[first_tokens],
            outcome_set[first_tokens],
            alive[np.argsort(group, kind="stable")].astype(np.int32),
            np.concatenate([[0], np.cumsum(np.bincount(group, minlength=n_groups))]).astype(np.int64),
        )

    def outcomes(self, groups: StateGroups, number: int) -> list[Outcome]:
        """What the tokens of a group lead to: sequence and end state."""
        found: list[Outcome] = []
        if groups.end_state[number] >= 0:
            found.append(((), int(groups.end_state[number])))
        leave = int(groups.leave[number])
        prefix = (leave,) if leave >= 0 else ()
        found += [((*prefix, *sequence), state) for sequence, state in self.outcome_sets[groups.outcome_set[number]]]
        return found
