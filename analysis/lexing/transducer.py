"""Longest-match lexing as a subsequential transducer: bytes in, terminals out, one state at a time.

At each place the longest match over all terminals wins; ties by priority, then string literals before patterns, then Lark's order. What
a text lexes to is decided some bytes late: after ``1.e`` the lexer may be inside ``1.e5`` or past the float ``1.`` and inside ``else``. So a
state knows

- the union automaton's state u of the lexeme under way,
- the terminal c that won at the last place where the lexeme could have ended, and
- the pending bytes w read since then, which are read again if the lexeme fails.

Reading a byte that u cannot read emits c and reads w and the byte afresh. A lexeme that cannot grow is emitted at once.

Backing up is kept only where it can come true: some bytes must make the lexeme fail while another reading of w survives them, and
its first terminal must be able to follow c. Otherwise c is forgotten (``0x`` is no DEC_NUMBER and NAME, since these never meet). A
lexeme that nothing but the end of the text can make fail, like an open comment or long string, is therefore unfinished at the end
of a text, as in CPython and C, and not backed up over.

With several *modes* (contextual lexing) the terminals that compete are chosen where a lexeme begins, by the parser's state. A
backed-up lexer must then ask the parser again: the transition says `RESTART`, and the pending bytes and the byte are read anew.

Source: Reps, "Maximal-munch" tokenization in linear time (1998), for the problem; Mohri (1997) for subsequential transducers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from lark.utils import get_regexp_width

from maskwright.analysis.errors import GrammarError, LimitError
from maskwright.analysis.grammar.grammar import Grammar, Terminal
from maskwright.analysis.lexing.terminal_nfa import UnionDfa, build_terminal_nfa, build_union_dfa
from maskwright.analysis.lexing.terminals import compile_terminals

STATE_LIMIT = 20_000

START = 0
"""The transducer's state at the start of the text and wherever nothing is under way."""

DEAD = -1
RESTART = -2

LINE_FEED = 10

_MOVES_COLUMN = frozenset(b"\n\t ")

CanFollow = Callable[[int, int], bool]
"""Whether the parser may see the second terminal directly after the first."""

Outputs = tuple[int, ...]


@dataclass(frozen=True)
class Transducer:
    """The lexer of `longest` and `contextual` lexing.

    byte_class : (256,) uint8; bytes of one class do the same everywhere.
    next_state : (n_states, n_classes) int32; DEAD, RESTART, or the state after the byte.
    output : (n_states, n_classes) int32; number of the terminals emitted on the way, in `outputs`. With RESTART those before it.
    outputs : sequences of terminals, ignored ones left out; number 0 is empty.
    end_output : (n_states,) int32; what is emitted if the text ends here, -1 if it cannot, RESTART if `pending` must be read again
        after emitting `fallback`.
    live : for each state the terminals that the lexeme under way may still become, ascending. () where nothing is under way.
    fallback : for each state the terminal emitted when the lexeme fails, while `pending` has bytes; -1 = none.
    pending : for each state the bytes read since the last place where the lexeme could have ended, if `fallback` is there.
    may_end_newline : (n_states,) bool; the layout's newline may end exactly here: its column is the one reached here.
    is_newline : (n_states,) bool; the layout's newline is alive or to be emitted.
    mode_state : (n_modes,) int32; the state in which a lexeme begins, by mode. One mode: START itself.
    """

    byte_class: npt.NDArray[np.uint8]
    next_state: npt.NDArray[np.int32]
    output: npt.NDArray[np.int32]
    outputs: tuple[Outputs, ...]
    end_output: npt.NDArray[np.int32]
    live: tuple[tuple[int, ...], ...]
    fallback: tuple[int, ...]
    pending: tuple[bytes, ...]
    may_end_newline: npt.NDArray[np.bool_]
    is_newline: npt.NDArray[np.bool_]
    mode_state: npt.NDArray[np.int32]

    @property
    def n_states(self) -> int:
        return len(self.live)

    @property
    def n_modes(self) -> int:
        return len(self.mode_state)

    @cached_property
    def longest_pending(self) -> int:
        """Bytes that the lexer backs up over, at most."""
        return max(map(len, self.pending))

    def __repr__(self) -> str:
        return (
            f"<Transducer {self.n_states} states, {self.next_state.shape[1]} byte classes, {self.n_modes} modes, "
            f"backs up over at most {self.longest_pending} bytes>"
        )


def terminal_rank(terminals: Sequence[Terminal]) -> tuple[int, ...]:
    """For each terminal its place in the order in which ties are decided: the least wins.

    Higher priority first, then literals, then longer greatest width, longer pattern, name (Lark's order).
    """

    def key(number: int) -> tuple[int, bool, int, int, str]:
        terminal = terminals[number]
        pattern = terminal.pattern or ""
        width = len(terminal.literal) if terminal.literal is not None else _greatest_width(pattern, terminal.flags)
        return (-terminal.priority, terminal.literal is None, -width, -len(pattern), terminal.name)

    rank = [0] * len(terminals)
    for place, number in enumerate(sorted(range(len(terminals)), key=key)):
        rank[number] = place
    return tuple(rank)


def _greatest_width(pattern: str, flags: str) -> int:
    return int(get_regexp_width(f"(?{flags}:{pattern})" if flags else pattern)[1]) if pattern else 0


def build_transducer(
    grammar: Grammar,
    can_follow: CanFollow,
    modes: Sequence[frozenset[int]] | None = None,
    limit: int = STATE_LIMIT,
) -> Transducer:
    """The transducer of a grammar's terminals.

    can_follow : an over-approximation of what the parser takes; ignored terminals are not asked about.
    modes : the terminals that compete in each mode; None: one mode with all of them.

    Raises TerminalError for a terminal that cannot be compiled, LimitError naming terminals when there are more than `limit` states:
    either too many terminals are alive together, or some terminal's end shows an unbounded number of bytes late.
    Cost for python.lark: 0.2 s.
    """
    return _Builder(grammar, can_follow, modes, limit).build()


@dataclass(frozen=True, slots=True)
class _State:
    """under_way : the union automaton's state, -1 where nothing is under way. has_line_feed : in the lexeme; False without layout.

    winner : the terminal that won at the last place where the lexeme could have ended, or -1. pending : bytes since then.
    """

    under_way: int
    has_line_feed: bool
    winner: int
    pending: bytes


class _Builder:
    def __init__(
        self, grammar: Grammar, can_follow: CanFollow, modes: Sequence[frozenset[int]] | None, limit: int
    ) -> None:
        self.grammar = grammar
        self.limit = limit
        self.newline = grammar.layout.newline if grammar.layout else -1
        self._can_follow = can_follow
        nfa = build_terminal_nfa(compile_terminals(grammar))
        names = [terminal.name for terminal in grammar.terminals]
        every = frozenset(t for t in range(grammar.n_terminals) if not grammar.terminals[t].is_declared)
        self.modes = [every] if modes is None else [mode & every for mode in modes]
        starts = [tuple(int(nfa.initial[t]) for t in sorted(mode)) for mode in self.modes]
        union = build_union_dfa(nfa, names, limit, starts)
        self.union = union
        self.table: list[list[int]] = union.next_state.tolist()
        rank = terminal_rank(grammar.terminals)
        self.winner = [min(found, key=rank.__getitem__, default=-1) for found in union.accepting]
        self.live = self._live_winners(union)
        columns, byte_class = np.unique(union.next_state, axis=1, return_inverse=True)
        byte_class = byte_class.reshape(-1)
        # line feed, space and tab mean something to layout: a class each
        for byte in (LINE_FEED, 32, 9) if grammar.layout else ():
            if (byte_class == byte_class[byte]).sum() > 1:
                byte_class[byte] = byte_class.max() + 1
        self.byte_class = byte_class.astype(np.uint8)
        self.n_classes = int(byte_class.max()) + 1
        self.byte_of_class = [int(np.flatnonzero(byte_class == c)[0]) for c in range(self.n_classes)]
        self.number: dict[_State, int] = {}
        self.states: list[_State] = []
        self.outputs: dict[Outputs, int] = {(): 0}
        self._feasible: dict[tuple[int, int, bytes], bool] = {}
        self._survives: dict[tuple[int, int, int, bool], bool] = {}

    def _live_winners(self, union: UnionDfa) -> list[tuple[int, ...]]:
        """For each set the terminals that win at some set reachable from it, itself included."""
        n = len(self.table)
        live = np.zeros((n, self.grammar.n_terminals), np.bool_)
        for state, winner in enumerate(self.winner):
            if winner >= 0:
                live[state, winner] = True
        successors = [np.unique(row[row >= 0]) for row in union.next_state]
        predecessors: list[list[int]] = [[] for _ in range(n)]
        for state, targets in enumerate(successors):
            for target in targets.tolist():
                predecessors[target].append(state)
        agenda = list(range(n))
        while agenda:
            state = agenda.pop()
            for before in predecessors[state]:
                if (live[state] & ~live[before]).any():
                    live[before] |= live[state]
                    agenda.append(before)
        return [tuple(np.flatnonzero(row).tolist()) for row in live]

    def build(self) -> Transducer:
        nothing = _State(-1, False, -1, b"")
        self._add(nothing)
        if len(self.modes) > 1:
            mode_state = [self._add(_State(start, False, -1, b"")) for start in self.union.starts]
        else:
            mode_state = [START]
        next_rows, output_rows = [], []
        count = 0
        while count < len(self.states):
            state = self.states[count]
            next_row, output_row = [], []
            for byte in self.byte_of_class:
                target, emitted = self._step(state, byte)
                next_row.append(target)
                output_row.append(self.outputs.setdefault(emitted, len(self.outputs)))
            next_rows.append(next_row)
            output_rows.append(output_row)
            count += 1
        ends = [self._end(state) for state in self.states]
        waits = [state.winner >= 0 and bool(state.pending) for state in self.states]
        newline = self.newline
        return Transducer(
            byte_class=_read_only(self.byte_class),
            next_state=_read_only(np.array(next_rows, np.int32)),
            output=_read_only(np.array(output_rows, np.int32)),
            outputs=tuple(self.outputs),
            end_output=_read_only(np.array(ends, np.int32)),
            live=tuple(self.live[s.under_way] if s.under_way >= 0 else () for s in self.states),
            fallback=tuple(s.winner if wait else -1 for s, wait in zip(self.states, waits, strict=True)),
            pending=tuple(s.pending if wait else b"" for s, wait in zip(self.states, waits, strict=True)),
            may_end_newline=_read_only(
                np.array([s.winner == newline >= 0 and not s.pending for s in self.states], np.bool_)
            ),
            is_newline=_read_only(
                np.array(
                    [
                        newline >= 0 and s.under_way >= 0 and (s.winner == newline or newline in self.live[s.under_way])
                        for s in self.states
                    ],
                    np.bool_,
                )
            ),
            mode_state=_read_only(np.array(mode_state, np.int32)),
        )

    def _add(self, state: _State) -> int:
        found = self.number.get(state)
        if found is None:
            found = self.number[state] = len(self.states)
            self.states.append(state)
            if found >= self.limit:
                name = self.grammar.display_name
                guilty = max(self.states, key=lambda s: len(s.pending))
                alive = ", ".join(map(name, self.live[guilty.under_way][:6]))
                raise LimitError(
                    f"grammar {self.grammar.name}: longest-match lexing needs more than {self.limit} states. After "
                    f"{guilty.pending[:40]!r} it is still open whether {name(guilty.winner) if guilty.winner >= 0 else 'a lexeme'} has ended "
                    f"before it or {alive} goes on: the lexer would have to back up over any number of bytes; make these terminals "
                    "differ sooner, or load the grammar with lexing='contextual'"
                )
        return found

    def _step(self, state: _State, byte: int) -> tuple[int, Outputs]:
        if state.under_way < 0:
            if len(self.modes) > 1:
                return DEAD, ()  # the parser's mode chooses the state to read from
            return self._grow(_State(self.union.starts[0], False, -1, b""), byte)
        return self._grow(state, byte)

    def _grow(self, state: _State, byte: int) -> tuple[int, Outputs]:
        after = self.table[state.under_way][byte]
        if after >= 0:
            has_line_feed = state.has_line_feed or (byte == LINE_FEED and self.newline in self.live[after])
            has_line_feed = has_line_feed and self.newline in self.live[after]
            winner = self.winner[after]
            if winner >= 0:
                if winner == self.newline and not has_line_feed:
                    winner = -1  # such a newline has no column, so it cannot end
                if max(self.table[after]) < 0:
                    return (START, self._emitted(winner)) if winner >= 0 else (DEAD, ())
                return self._add(_State(after, has_line_feed, winner, b"")), ()
            pending = state.pending + bytes([byte]) if state.winner >= 0 else b""
            if state.winner >= 0 and self._is_feasible(state.winner, after, pending):
                return self._add(_State(after, has_line_feed, state.winner, pending)), ()
            return self._add(_State(after, has_line_feed, -1, b"")), ()
        if state.winner < 0:
            return DEAD, ()
        if len(self.modes) > 1:
            return RESTART, self._emitted(state.winner)
        found = self._run(state.pending + bytes([byte]))
        if found is None:
            return DEAD, ()
        if self.newline in found[1] or (state.winner == self.newline and not _MOVES_COLUMN.isdisjoint(state.pending)):
            raise GrammarError(
                f"grammar {self.grammar.name}: after {state.pending!r} the lexer may have to back up over a newline of the layout "
                f"({self.grammar.display_name(self.newline)}), whose column would be unknown; make the terminals differ sooner"
            )
        return found[0], self._emitted(state.winner) + found[1]

    def _emitted(self, winner: int) -> Outputs:
        return () if winner in self.grammar.ignored else (winner,)

    def _run(self, data: bytes) -> tuple[int, Outputs] | None:
        """Read data from START."""
        number, emitted = START, ()
        for byte in data:
            number, more = self._step(self.states[number], byte)
            if number < 0:
                return None
            emitted += more
        return number, emitted

    def _end(self, state: _State) -> int:
        if state.under_way < 0:
            return 0
        if state.winner < 0:
            return -1
        if state.pending and len(self.modes) > 1:
            return RESTART
        emitted = self._emitted(state.winner)
        if state.pending:
            found = self._run(state.pending)
            if found is None:
                return -1
            rest = self._end(self.states[found[0]])
            if rest < 0:
                return -1
            emitted += found[1] + list(self.outputs)[rest]
        return self.outputs.setdefault(emitted, len(self.outputs))

    def _is_feasible(self, winner: int, under_way: int, pending: bytes) -> bool:
        """Whether the lexeme may fail in such a way that `winner` and another reading of the pending bytes come true.

        Over-approximated: the other reading may end its lexemes anywhere, and only its first terminal is held against `winner`.
        """
        key = (winner, under_way, pending)
        if key not in self._feasible:
            self._feasible[key] = any(
                self._can_survive(winner, under_way, state, is_first)
                for state, is_first in self._readings(winner, pending)
            )
        return self._feasible[key]

    def _follows(self, winner: int, first: int) -> bool:
        return (
            winner in self.grammar.ignored
            or first in self.grammar.ignored
            or self.newline in (winner, first)
            or self._can_follow(winner, first)
        )

    def _readings(self, winner: int, data: bytes) -> set[tuple[int, bool]]:
        """Where a fresh lexer can be after some bytes: union state, and whether it is still in its first lexeme."""
        current = {(start, True) for start in self.union.starts}
        for byte in data:
            current = {found for place in current for found in self._read(winner, place, byte)}
        return current

    def _read(self, winner: int, place: tuple[int, bool], byte: int) -> list[tuple[int, bool]]:
        state, is_first = place
        after = self.table[state][byte]
        if after < 0:
            return []
        found = [(after, is_first)]
        if self.winner[after] >= 0:
            if not is_first:
                found += [(start, False) for start in self.union.starts]
            elif any(self._follows(winner, terminal) for terminal in self.union.accepting[after]):
                found += [(start, False) for start in self.union.starts]
        return found

    def _can_survive(self, winner: int, under_way: int, state: int, is_first: bool) -> bool:
        """Whether some bytes that the lexeme under way cannot read, before it could have ended, can be read by the other reading."""
        begin = (under_way, state, is_first)
        known = self._survives.get((winner, *begin))
        if known is not None:
            return known
        seen = {begin}
        agenda = [begin]
        while agenda:
            lexeme, other, first = agenda.pop()
            for byte in self.byte_of_class:
                places = self._read(winner, (other, first), byte)
                if not places:
                    continue
                after = self.table[lexeme][byte]
                if after < 0:
                    if not first or any(self._follows(winner, t) for t in self.live[places[0][0]]):
                        self._survives[winner, *begin] = True
                        return True
                elif self.winner[after] < 0:
                    for place in places:
                        pair = (after, *place)
                        if pair not in seen:
                            seen.add(pair)
                            agenda.append(pair)
        for pair in seen:
            self._survives[winner, *pair] = False
        return False


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.setflags(write=False)
    return array
