"""Longest-match lexing as a subsequential transducer: bytes in, terminals out, one state at a time.

At each place the longest match over all terminals wins; ties by priority, then string literals before patterns, then Lark's order. What
a text lexes to is decided some bytes late: after ``1.e`` the lexer may be inside ``1.e5`` or past the float ``1.`` and inside ``else``.
So a state knows

- the union automaton's state u of the lexeme under way,
- the terminal c that won at the last place where the lexeme could have ended, and
- what comes of the bytes read since then if the lexeme fails and they are read again: terminals emitted, and a state.

Reading a byte that u cannot read emits c and those terminals, and goes on from that state. A lexeme that cannot grow is emitted at once.

Backing up is kept only where it can come true: some bytes must make the lexeme fail while the other reading survives them, and its
first terminal must be able to follow c. Otherwise c is forgotten (``0x`` is no DEC_NUMBER and NAME, since these never meet). A
lexeme that nothing but the end of the text can make fail, like an open comment or long string, is therefore unfinished at the end
of a text, as in CPython and C, and not backed up over. A lexeme that is where it would be had it begun later, behind what is ignored,
is taken for that one; so comments that may become a newline are followed in any number.

With several *modes* (contextual lexing) the terminals that compete are chosen where a lexeme begins, by the parser's state. A
backed-up lexer must then ask the parser again: a state keeps the pending bytes themselves, the transition says `RESTART`, and they
and the byte are read anew.

Source: Reps, "Maximal-munch" tokenization in linear time (1998), for the problem; Mohri (1997) for subsequential transducers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from lark.utils import get_regexp_width

from maskwright.analysis.errors import GrammarError, LimitError
from maskwright.analysis.grammar.grammar import Grammar, Terminal
from maskwright.analysis.lexing.modes import Modes
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
_Lexeme = tuple[int, bool]
"""A lexeme under way: the union automaton's state, and whether it has a line feed (see `_State`)."""
Again = tuple[Outputs, int]

MAX_AGAIN = 12
"""Lexemes that a lexer may have to back up over; more are taken for any number of them."""
MAX_PENDING = 64
"""Bytes that a contextual lexer may have to read anew."""


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
    fallback : for each state the terminal emitted when the lexeme fails, if bytes have been read since it could have ended; else -1.
    again : for each state with a fallback what those bytes come to, read again: terminals emitted, and the state. One mode only.
    pending : for each state with a fallback those bytes. Several modes only.
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
    again: tuple[Again | None, ...]
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

    @property
    def longest_pending(self) -> int:
        """Bytes that a contextual lexer reads anew, at most."""
        return max(map(len, self.pending))

    def __repr__(self) -> str:
        backs_up = sum(terminal >= 0 for terminal in self.fallback)
        return (
            f"<Transducer {self.n_states} states, {self.next_state.shape[1]} byte classes, {self.n_modes} modes, {backs_up} states that "
            "may back up>"
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
    modes: Modes | None = None,
    limit: int = STATE_LIMIT,
) -> Transducer:
    """The transducer of a grammar's terminals.

    can_follow : an over-approximation of what the parser takes; ignored terminals are not asked about.
    modes : the terminals that compete in each mode, and where; None: one mode with all of them.

    Raises TerminalError for a terminal that cannot be compiled, LimitError naming terminals when there are more than `limit` states:
    either too many terminals are alive together, or some terminal's end shows an unbounded number of bytes late.
    Cost for python.lark: 0.2 s.
    """
    return _Builder(grammar, can_follow, modes, limit).build()


@dataclass(frozen=True, slots=True)
class _State:
    """under_way : the union automaton's state, -1 where nothing is under way. has_line_feed : in the lexeme; False without layout.

    winner : the terminal that won at the last place where the lexeme could have ended, or -1. again : None there; past it what the
    bytes since then come to when they are read again. pending : those bytes, with several modes. begins : a mode's start, where nothing
    has been read; `(ab)*c` may be where it began in the middle of a lexeme too.
    """

    under_way: int
    has_line_feed: bool = False
    winner: int = -1
    again: Again | None = None
    pending: bytes = b""
    begins: bool = False

    @property
    def backs_up(self) -> bool:
        return self.again is not None or bool(self.pending)


class _Builder:
    def __init__(self, grammar: Grammar, can_follow: CanFollow, modes: Modes | None, limit: int) -> None:
        self.grammar = grammar
        self.limit = limit
        self.newline = grammar.layout.newline if grammar.layout else -1
        self._can_follow = can_follow
        nfa = build_terminal_nfa(compile_terminals(grammar))
        names = [terminal.name for terminal in grammar.terminals]
        every = frozenset(t for t in range(grammar.n_terminals) if not grammar.terminals[t].is_declared)
        self.modes = [every] if modes is None else [mode & every for mode in modes.competing]
        self._may_follow = np.ones((grammar.n_terminals, 1), np.bool_) if modes is None else modes.may_follow
        starts = [tuple(int(nfa.initial[t]) for t in sorted(mode)) for mode in self.modes]
        union = build_union_dfa(nfa, names, limit, starts)
        self.union = union
        self.table: list[list[int]] = union.next_state.tolist()
        rank = terminal_rank(grammar.terminals)
        self.winner = [min(found, key=rank.__getitem__, default=-1) for found in union.accepting]
        self.winner_but_newline = [
            min((t for t in found if t != self.newline), key=rank.__getitem__, default=-1) for found in union.accepting
        ]
        self.live = self._live_winners(union)
        _columns, byte_class = np.unique(union.next_state, axis=1, return_inverse=True)
        byte_class = byte_class.reshape(-1)
        # line feed, space and tab mean something to layout: a class each
        for byte in (LINE_FEED, 32, 9) if grammar.layout else ():
            if (byte_class == byte_class[byte]).sum() > 1:
                byte_class[byte] = byte_class.max() + 1
        self.byte_class = byte_class.astype(np.uint8)
        self.n_classes = int(byte_class.max()) + 1
        self.byte_of_class = [int(np.flatnonzero(byte_class == c)[0]) for c in range(self.n_classes)]
        self.columns: list[list[int]] = union.next_state[:, self.byte_of_class].tolist()
        """For each set of the union automaton where a byte of each class leads."""
        self.reads_on = [max(row) >= 0 for row in self.columns]
        self.number: dict[_State, int] = {}
        self.states: list[_State] = []
        self.nested: list[int] = []
        self.outputs: dict[Outputs, int] = {(): 0}
        self._starts: dict[tuple[int, ...], list[int]] = {}
        self._reached: dict[int, set[int]] = {}
        self._stepped: dict[tuple[int, int], tuple[int, Outputs]] = {}
        self._survives: dict[tuple[int, _Lexeme, int], bool] = {}
        self._together: dict[tuple[_Lexeme, int], tuple[list[int], list[tuple[_Lexeme, int]]]] = {}
        self._first_after: dict[int, tuple[list[bool], list[bool]]] = {}

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
        nothing = _State(-1)
        self._add(nothing)
        # no text rests in those of several modes: it stands in START until the parser's state is known
        starts = self.union.starts if len(self.modes) > 1 else ()
        mode_state = [self._add(_State(start, begins=True)) for start in starts] or [START]
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
        self._check_newline()
        ends = [self._end(state) for state in self.states]
        newline = self.newline
        return Transducer(
            byte_class=_read_only(self.byte_class),
            next_state=_read_only(np.array(next_rows, np.int32)),
            output=_read_only(np.array(output_rows, np.int32)),
            outputs=tuple(self.outputs),
            end_output=_read_only(np.array(ends, np.int32)),
            live=tuple(self.live[s.under_way] if s.under_way >= 0 else () for s in self.states),
            fallback=tuple(s.winner if s.backs_up else -1 for s in self.states),
            again=tuple(s.again for s in self.states),
            pending=tuple(s.pending for s in self.states),
            may_end_newline=_read_only(
                np.array([s.winner == newline >= 0 and not s.backs_up for s in self.states], np.bool_)
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

    def _check_newline(self) -> None:
        """Columns must stay open: else a newline may end at a column that no line can have, and the text is stuck."""
        for state in self.states:
            if state.winner != self.newline or self.newline < 0 or state.backs_up:
                continue
            after = self.table[state.under_way][LINE_FEED]
            if after < 0 or self.newline not in self.live[after]:
                raise GrammarError(
                    f"grammar {self.grammar.name}: the layout's newline {self.grammar.display_name(self.newline)} can end where no further "
                    r"line feed can continue it, so blank lines would be newlines of their own; write it as in (\r?\n[\t ]*)+"
                )

    def _add(self, state: _State) -> int:
        found = self.number.get(state)
        if found is None:
            found = self.number[state] = len(self.states)
            self.states.append(state)
            self.nested.append(0)
            if state.again is not None:
                # what is read again may back up in its turn
                self.nested[found] = 1 + self.nested[state.again[1]] + len(state.again[0])
            if found >= self.limit or len(state.pending) > MAX_PENDING or self.nested[found] > MAX_AGAIN:
                raise LimitError(self._too_many(state))
        return found

    def _too_many(self, state: _State) -> str:
        name = self.grammar.display_name
        text = f"grammar {self.grammar.name}: longest-match lexing needs more than {self.limit} states"
        if state.backs_up:
            alive = ", ".join(map(name, self.live[state.under_way][:6]))
            text = (
                f"grammar {self.grammar.name}: the lexer would have to back up over any number of lexemes or bytes: it stays open whether "
                f"{name(state.winner)} has ended or {alive} goes on"
            )
        advice = "" if len(self.modes) > 1 else ", or load the grammar with lexing='contextual'"
        return f"{text}; make these terminals differ sooner{advice}"

    def _step(self, state: _State, byte: int) -> tuple[int, Outputs]:
        if state.under_way < 0:
            if len(self.modes) > 1:
                return DEAD, ()  # the parser's mode chooses the state to read from
            return self._grow(_State(self.union.starts[0]), byte)
        return self._grow(state, byte)

    def _grow(self, state: _State, byte: int) -> tuple[int, Outputs]:
        after = self.table[state.under_way][byte]
        if after >= 0:
            has_line_feed = self._has_line_feed(state.has_line_feed, byte, after)
            winner = self._winner(after, has_line_feed)
            if winner >= 0:
                if not self.reads_on[after]:
                    return (START, self._emitted(winner)) if winner >= 0 else (DEAD, ())
                return self._add(_State(after, has_line_feed, winner)), ()
            return self._add(self._unfinished(state, after, has_line_feed, byte)), ()
        if state.winner < 0:
            return DEAD, ()
        if len(self.modes) > 1:
            return RESTART, self._emitted(state.winner)
        outputs, number = state.again or ((), START)
        target, more = self._step(self.states[number], byte)
        if target < 0:
            return DEAD, ()
        emitted = outputs + more
        if self.newline in emitted:
            raise GrammarError(self._lost_column(state.winner))
        return target, self._emitted(state.winner) + emitted

    def _has_line_feed(self, before: bool, byte: int, after: int) -> bool:
        """Whether a lexeme that may become the layout's newline has a line feed, one byte on."""
        return (before or byte == LINE_FEED) and self.newline in self.live[after]

    def _winner(self, under_way: int, has_line_feed: bool) -> int:
        """What a lexeme is if it ends here, or -1. A newline without a line feed has no column: it cannot end."""
        winner = self.winner[under_way]
        return winner if winner != self.newline or has_line_feed else self.winner_but_newline[under_way]

    def _unfinished(self, state: _State, after: int, has_line_feed: bool, byte: int) -> _State:
        """The state inside a lexeme that cannot end where it is."""
        lost = _State(after, has_line_feed)
        if state.winner < 0:
            return lost
        if len(self.modes) > 1:
            pending = state.pending + bytes([byte])
            places = self._readings(state.winner, pending)
            found = _State(after, has_line_feed, state.winner, None, pending)
            others = self._read_again(state.winner, after, pending)
        else:
            outputs, number = state.again or ((), START)
            target, more = self._step(self.states[number], byte)
            if target < 0:
                return lost
            outputs += more
            if outputs and not self._follows(state.winner, outputs[0]):
                return lost
            places = self._places(state.winner, target, not outputs)
            found = _State(after, has_line_feed, state.winner, (outputs, target))
            others = set() if self._emitted(state.winner) + outputs else {target}
        lexeme = after, has_line_feed
        if not any(self._can_survive(state.winner, lexeme, other, is_first) for other, is_first in sorted(places)):
            return lost
        if state.winner == self.newline and byte in _MOVES_COLUMN:
            raise GrammarError(self._lost_column(state.winner))
        if len(others) == 1:
            # the same lexeme begun later, behind what is ignored: the two grow, end and fail together, and come to the same
            other = self.states[others.pop()]
            if (other.under_way, other.has_line_feed) == (after, has_line_feed):
                return other
        return found

    def _read_again(self, winner: int, under_way: int, pending: bytes) -> set[int]:
        """The states to which the pending bytes come in each mode that the lexeme can have begun in, DEAD among them.

        Nothing unless what won is ignored, so that the mode stays, and nothing is emitted on the way.
        """
        found: set[int] = set()
        if self._emitted(winner):
            return found
        for start in set(self.union.starts):
            if under_way not in self._reachable(start):
                continue
            begin = self._add(_State(start, begins=True))
            number, data = START, pending
            while data and number >= 0:
                key = number or begin, data[0]
                if key not in self._stepped:
                    self._stepped[key] = self._step(self.states[key[0]], data[0])
                target, emitted = self._stepped[key]
                if emitted:
                    return set()
                number, data = (START, self.states[number].pending + data) if target == RESTART else (target, data[1:])
            found.add(number)
        return found

    def _reachable(self, start: int) -> set[int]:
        """The union automaton's states in a lexeme that begins there."""
        if start not in self._reached:
            found: set[int] = set()
            agenda = [start]
            while agenda:
                new = {after for after in self.columns[agenda.pop()] if after >= 0} - found
                found |= new
                agenda += new
            self._reached[start] = found
        return self._reached[start]

    def _lost_column(self, winner: int) -> str:
        return (
            f"grammar {self.grammar.name}: past {self.grammar.display_name(winner)} the lexer may have to back up over a newline of the "
            f"layout ({self.grammar.display_name(self.newline)}), whose column would be unknown; make the terminals differ sooner"
        )

    def _places(self, winner: int, number: int, is_first: bool) -> set[tuple[int, bool]]:
        """Where the union automaton can be in a state of the transducer, its own backing up included: places as in `_readings`."""
        state = self.states[number]
        if state.under_way < 0:
            return {(self.union.starts[0], is_first)}
        found = {(state.under_way, is_first)}
        if state.winner >= 0 and (not is_first or self._follows(winner, state.winner)):
            _, again = state.again or ((), START)
            found |= self._places(winner, again, False)
        return found

    def _emitted(self, winner: int) -> Outputs:
        return () if winner in self.grammar.ignored else (winner,)

    def _end(self, state: _State) -> int:
        if state.under_way < 0:
            return 0
        if state.winner < 0:
            return -1
        emitted = self._emitted(state.winner)
        if state.backs_up and len(self.modes) > 1:
            return RESTART
        if state.again is not None:
            outputs, number = state.again
            rest = self._end(self.states[number])
            if rest < 0:
                return -1
            emitted += outputs + list(self.outputs)[rest]
        return self.outputs.setdefault(emitted, len(self.outputs))

    def _follows(self, winner: int, first: int) -> bool:
        return (
            winner in self.grammar.ignored
            or first in self.grammar.ignored
            or self.newline in (winner, first)
            or self._can_follow(winner, first)
        )

    def _readings(self, winner: int, data: bytes) -> set[tuple[int, bool]]:
        """Where a fresh lexer can be after some bytes: union state, and whether it is still in its first lexeme."""
        current = {(start, True) for start in self._starts_after((winner,))}
        for byte in data:
            current = {found for place in current for found in self._read(winner, place, byte)}
        return current

    def _read(self, winner: int, place: tuple[int, bool], byte: int) -> list[tuple[int, bool]]:
        state, is_first = place
        after = self.table[state][byte]
        if after < 0:
            return []
        found = [(after, is_first)]
        accepting = self.union.accepting[after]
        if accepting and (not is_first or any(self._follows(winner, terminal) for terminal in accepting)):
            found += [(start, False) for start in self._starts_after(accepting)]
        return found

    def _starts_after(self, terminals: Sequence[int]) -> list[int]:
        """The union automaton's states in which a lexeme may begin after one of some terminals."""
        key = tuple(terminals)
        if key not in self._starts:
            modes: npt.NDArray[np.bool_] = np.asarray(self._may_follow[list(key)].any(axis=0))
            self._starts[key] = [start for mode, start in enumerate(self.union.starts) if modes[mode]]
        return self._starts[key]

    def _can_survive(self, winner: int, under_way: _Lexeme, state: int, is_first: bool) -> bool:
        """Whether some bytes that the lexeme under way cannot read, before it could have ended, can be read by the other reading."""
        # Over-approximated: the other reading may end its lexemes anywhere, and only its first terminal is held against `winner`.
        # Behind that one `winner` does not matter: what is found there is shared by all winners, as number -1.
        begin = (winner if is_first else -1, under_way, state)
        survives = self._survives
        known = survives.get(begin)
        if known is not None:
            return known
        may_end, may_live = self._firsts(winner) if is_first else ([], [])
        accepting = self.union.accepting
        seen = {begin}
        agenda = [begin]
        while agenda:
            first, lexeme, other = agenda.pop()
            fails, goes_on = self._side_by_side(lexeme, other)
            if fails if first < 0 else any(may_live[place] for place in fails):
                survives[begin] = True
                return True
            for after, place in goes_on:
                pairs = [(first, after, place)]
                if accepting[place] if first < 0 else may_end[place]:
                    pairs += [(-1, after, start) for start in self._starts_after(accepting[place])]
                for pair in pairs:
                    if pair not in seen:
                        known = survives.get(pair)
                        if known:
                            survives[begin] = True
                            return True
                        if known is None:
                            seen.add(pair)
                            agenda.append(pair)
        survives.update(dict.fromkeys(seen, False))
        return False

    def _side_by_side(self, lexeme: _Lexeme, other: int) -> tuple[list[int], list[tuple[_Lexeme, int]]]:
        """Where a byte leads that two states of the union automaton are given: the second alone, or both, the first not to an end."""
        key = lexeme, other
        found = self._together.get(key)
        if found is None:
            # PERF: bytes that lead to the same pair count once: a few of some hundred classes
            under_way, has_line_feed = lexeme
            fails, goes_on = set(), set()
            rows = zip(self.byte_of_class, self.columns[under_way], self.columns[other], strict=True)
            for byte, after, place in rows:
                if place < 0:
                    continue
                if after < 0:
                    fails.add(place)
                    continue
                has_one = self._has_line_feed(has_line_feed, byte, after)
                if self._winner(after, has_one) < 0:
                    goes_on.add(((after, has_one), place))
            found = self._together[key] = sorted(fails), sorted(goes_on)
        return found

    def _firsts(self, winner: int) -> tuple[list[bool], list[bool]]:
        """For each set of the union automaton whether a terminal that may follow `winner` can end there, and there or later."""
        found = self._first_after.get(winner)
        if found is None:
            may = [self._follows(winner, terminal) for terminal in range(self.grammar.n_terminals)]
            found = self._first_after[winner] = (
                [any(may[t] for t in accepting) for accepting in self.union.accepting],
                [any(may[t] for t in live) for live in self.live],
            )
        return found


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.setflags(write=False)
    return array
