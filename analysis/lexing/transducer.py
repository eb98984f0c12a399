"""Longest-match lexing as a subsequential transducer: bytes in, terminals out.

At each position of the text the longest match over all terminals wins. Ties go to the higher
priority, then to string literals before patterns, then by Lark's order (`lexemes.terminal_rank`).

The lexer learns some bytes late where a lexeme has ended. Example: after ``1.e`` it may be inside
the float ``1.e5``, or behind the float ``1.`` and inside ``else``. A state therefore records

- the state u of the union automaton for the lexeme under way,
- the terminal c that won at the last position where the lexeme could have ended, and
- what the bytes read since become if the lexeme fails and they are read again: the terminals
  emitted, and a state.

If u cannot read the next byte, the lexer emits c and those terminals and goes on from that state. A
lexeme that cannot grow is emitted at once.

We keep such a state only where the lexer can really back up: some bytes make the lexeme fail but
not the other reading, and the first terminal of the other reading can follow c. Otherwise the state
forgets c. A lexeme that only the end of the text can make fail, such as an open comment, is
therefore unfinished at the end of a text, as in CPython and C.

Look-aheads at a terminal's end refuse it before some characters (``if\\b`` before a letter). Where
it wins, the state also records which one holds if it is refused: that of the next terminal that
ends there, and so on, and last that of the lexeme as if it could not have ended there.

Backing up over an ignored lexeme may lead to the same lexeme, begun later and in the same state of
the union automaton. The two readings grow, end and fail together, so we keep only the later one.

With several *modes* (contextual lexing, verbatim terminals) the parser's state chooses the
terminals that compete where a lexeme begins. So a lexer that backs up keeps the pending bytes
themselves, the transition says `RESTART`, and it reads these bytes and the current byte anew. Of
bytes that do the same in every mode it keeps the first ones met, so of a run of blanks one.

Source: Reps, "Maximal-munch" tokenization in linear time (1998); Mohri (1997), on transducers.
"""

from __future__ import annotations

import heapq
import warnings
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.analysis.deadline import look
from maskwright.analysis.errors import BackupError, GrammarError, LimitError, MaskwrightWarning
from maskwright.analysis.grammar.columns import LINE_FEED, column_bytes
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.lexing.encoding import DEAD, MAX_PENDING, RESTART, START_STATE, Output, State, Transducer
from maskwright.analysis.lexing.lexemes import CanFollow, Lexemes
from maskwright.analysis.lexing.messages import closed_newline, lost_column, unheld
from maskwright.analysis.lexing.modes import Modes
from maskwright.analysis.lexing.terminal_nfa import read_only

STATE_LIMIT = 60_000
"""Default limit on the states of a transducer."""

_Way = int | tuple[Any, Any]
"""A state; a lexeme under way and another way; or terminals emitted and bytes behind them."""
_UNKNOWN = -9
"""In rows of states: not worked out yet."""

MAX_AGAIN = 12
"""The most lexemes that a lexer may have to back up over; more count as unbounded."""
MANY, TOO_MANY, MOST_DEEP = 1 << 8, 1 << 12, 1 << 9
"""States that back up at which `_look_deep` looks, and at which we refuse; and those it makes."""


def build_transducer(
    grammar: Grammar,
    can_follow: CanFollow,
    modes: Modes | None = None,
    limit: int = STATE_LIMIT,
) -> Transducer:
    """The transducer of a grammar's terminals.

    can_follow : must be True wherever the parser may see the second terminal directly after the
        first. Not asked about ignored terminals, nor about the layout's newline.
    modes : the terminals that compete in each mode, and where; None: one mode with all of them.
    limit : the most states of the transducer, of the union automaton, and the most literals.

    Raises: TerminalError if a terminal cannot be compiled; LimitError past a limit; BackupError,
        which names terminals, if the lexer would have to back up over more than MAX_AGAIN lexemes
        or MAX_PENDING bytes; GrammarError if the layout's newline matches no text with a line feed,
        can end where no line feed continues it, or may have to be backed up over.
    """
    return Builder(Lexemes(grammar, can_follow, modes, limit), limit).build()


class _Other(NamedTuple):
    """How the reading goes on that begins where a lexeme could have ended last.

    row : (2, n_classes) int32; the states, and the outputs with the lexeme in front or _UNKNOWN.
    behind : (n_classes,) int32; the number of the output behind the lexeme; _UNKNOWN where DEAD.
    targets, behinds : the states, and `behind`, as lists.
    unended : the union automaton's state, target and output behind -> where both readings go on.
    """

    row: npt.NDArray[np.int32]
    behind: npt.NDArray[np.int32]
    targets: list[int]
    behinds: list[int]
    unended: dict[tuple[int, int, int], int]


class Builder:
    """Makes the states of a transducer, each from the bytes that lead to it.

    most_backup : lexemes, with several modes bytes, over which the lexer backs up at most. Beyond
        that it holds on to the lexeme in progress. None: over all, or BackupError.
    number : state -> its number. nested : for each state what it may have to back up over.
    """

    def __init__(self, lexemes: Lexemes, limit: int, most_backup: int | None = None) -> None:
        self.lexemes, self.most_backup = lexemes, most_backup
        self.grammar = lexemes.grammar
        self.newline = lexemes.newline
        self.column_bytes = column_bytes(self.grammar.layout.tabs) if self.grammar.layout else b""
        self.limit = limit
        self.has_modes = len(lexemes.modes) > 1
        self.number: dict[State, int] = {}
        self.states: list[State] = []
        self.nested: list[int] = []
        self.outputs: dict[Output, int] = {}
        self.output_of: list[Output] = []
        self._output(())
        self._alike = cache(self._find_alike)
        self._firsts: dict[tuple[object, ...], bytes] = {}
        self._stepped: dict[tuple[int, int], tuple[int, Output]] = {}
        self._after = lexemes.after_class
        self.unheld: set[int] = set()
        self._wins = np.array(lexemes.winner, np.int32) >= 0
        self._arrivals = np.full((2, len(self._after)), _UNKNOWN, np.int32)
        self._others: dict[tuple[object, ...], _Other] = {}
        self._row_of = cache(self._row)  # each row is made once

    def build(self) -> Transducer:
        """The transducer of all states that are reachable from the start."""
        nothing = State(-1)
        self._add(nothing)
        # With several modes no text stays in these states: it stays in START_STATE until the
        # parser's state is known.
        starts = self.lexemes.union.starts if self.has_modes else ()
        mode_state = [self._add(State(start, begins=True)) for start in starts] or [START_STATE]
        n_backing = 0
        for number, state in enumerate(self.states):  # grows while it is read
            look()
            self._row_of(number)
            n_backing += state.backs_up
            if n_backing == TOO_MANY:
                raise self._too_many(state)
            if state.backs_up and n_backing == MANY and self.most_backup is None:
                Builder(self.lexemes, self.limit)._look_deep()
        if self.unheld:
            warnings.warn(unheld(self.grammar, sorted(self.unheld)), MaskwrightWarning, stacklevel=2)
        next_rows, output_rows = np.stack([self._row_of(number) for number in range(len(self.states))], axis=1)
        self._check_newline()
        ends = [self._end(state) for state in self.states]
        newline = self.newline
        may_end = [s.winner == newline >= 0 and not s.backs_up for s in self.states]
        lives = [self.lexemes.live[s.under_way] if s.under_way >= 0 else () for s in self.states]
        is_newline = [newline >= 0 and newline in (s.winner, *live) for s, live in zip(self.states, lives, strict=True)]
        return Transducer(
            byte_class=read_only(self.lexemes.byte_class),
            next_state=read_only(next_rows),
            output=read_only(output_rows),
            outputs=tuple(self.outputs),
            end_output=read_only(np.array(ends, np.int32)),
            live=tuple(lives),
            lookahead=tuple(self.lexemes.lookahead[s.under_way] if s.under_way >= 0 else None for s in self.states),
            fallback=tuple(s.winner if s.backs_up else -1 for s in self.states),
            reread=tuple(s.reread for s in self.states),
            pending=tuple(s.pending for s in self.states),
            otherwise=tuple(s.otherwise for s in self.states),
            may_end_newline=read_only(np.array(may_end, np.bool_)),
            is_newline=read_only(np.array(is_newline, np.bool_)),
            mode_state=read_only(np.array(mode_state, np.int32)),
        )

    def _check_newline(self) -> None:
        """Raises GrammarError if the newline can end where no line feed can continue it.

        It might end at a column that no line can have, and the text be stuck.
        """
        for state in self.states:
            if state.winner != self.newline or self.newline < 0 or state.backs_up:
                continue
            after = self.lexemes.after(state.under_way, LINE_FEED)
            if after < 0 or self.newline not in self.lexemes.live[after]:
                raise GrammarError(closed_newline(self.grammar))

    def _add(self, state: State) -> int:
        found = self.number.get(state)
        if found is None:
            found = self.number[state] = len(self.states)
            self.states.append(state)
            self.nested.append(0)
            self.nested[found] = self._again(state)
            if found >= self.limit or self.nested[found] > (MAX_PENDING if self.has_modes else MAX_AGAIN):
                raise self._too_many(state)
        return found

    def _again(self, state: State) -> int:
        """The lexemes, or with several modes the bytes, that a state may have to back up over."""
        if state.reread is not None:
            # The bytes that are read again may be backed up over in their turn.
            return 1 + self.nested[state.reread[1]] + len(state.reread[0])
        return len(state.pending) if state.otherwise < 0 else self.nested[state.otherwise]

    def _too_many(self, state: State) -> LimitError:
        name = self.grammar.display_name
        text = f"grammar {self.grammar.name}: longest-match lexing needs more than {self.limit} states"
        is_contextual = self.has_modes or self.grammar.lexing == "contextual"
        advice = "" if is_contextual else ", or load the grammar with lexing='contextual'"
        advice = f"; make the terminals differ sooner{advice}"
        if state.backs_up:
            alive = self.lexemes.live[state.under_way][:6]
            bounds = f"{MAX_AGAIN} lexemes or {MAX_PENDING} bytes, in {TOO_MANY} states"
            text = (
                f"grammar {self.grammar.name}: the lexer would have to back up over more than it can ({bounds}): it cannot tell whether "
                f"{name(state.winner)} has ended or {', '.join(map(name, alive))} goes on"
            )
            if tuple(alive) == (state.winner,):
                advice = f"; make it clear sooner where {name(state.winner)} ends"
            return BackupError(f"{text}{advice}", tuple(dict.fromkeys((state.winner, *alive))))
        return LimitError(f"{text}{advice}")

    def _look_deep(self) -> None:
        """Make some of the states, those first that back up over most: to refuse early.

        With each lexeme more to back up over there may be twice as many states, and `build` meets
        the deepest last. The states are thrown away. Raises: as `build`, which makes them too.
        """
        self._add(State(-1))
        for start in self.lexemes.union.starts if self.has_modes else ():
            self._add(State(start, begins=True))
        agenda = [(0, number) for number in range(len(self.states))]
        while agenda and self._row_of.cache_info().currsize < MOST_DEEP:
            look()
            _, number = heapq.heappop(agenda)
            n_before = len(self.states)
            self._row_of(number)
            for new in range(n_before, len(self.states)):
                heapq.heappush(agenda, (-self.nested[new], new))

    def _output(self, emitted: Output) -> int:
        """The number of an output, a new one if it has none."""
        number = self.outputs.setdefault(emitted, len(self.outputs))
        if number == len(self.output_of):
            self.output_of.append(emitted)
        return number

    def _row(self, number: int) -> npt.NDArray[np.int32]:
        """A state's `_step` by class of bytes: (2, n_classes) int32, states and numbers of outputs.

        PERF: most bytes lead where they lead from other states too: to a state that records only
        the union automaton's, or out of a lexeme that fails. These are worked out once.
        """
        state = self.states[number]
        if state.otherwise >= 0:
            refused = self._refused(state)[:-1]
            return np.where(refused, self._row_of(state.otherwise), self._row_where(state, ~refused))
        return self._row_where(state, True)

    def _row_where(self, state: State, wanted: bool | npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
        """The row of a state whose winner is not refused, for the wanted classes of bytes."""
        if state.under_way < 0:
            if self.has_modes:  # the parser's mode chooses the state to read from
                return np.array([[DEAD], [0]], np.int32).repeat(len(self.lexemes.byte_of_class), axis=1)
            state = State(self.lexemes.union.starts[0])
        after, winners = self._after[state.under_way], self.lexemes.winner
        fails = after < 0
        key = state.winner, state.reread, state.pending
        other = self._others.get(key)
        if other is None:
            other = self._others[key] = self._other(state)
        row = np.where(fails, other.row, self._arrivals[:, after])
        is_new = row[1] == _UNKNOWN
        if state.winner >= 0:
            is_new |= ~fails & ~self._wins[after]
        is_new &= wanted
        next_by_class = self.lexemes.next_by_class[state.under_way]
        for klass in is_new.nonzero()[0].tolist():
            arrived = next_by_class[klass]
            if arrived < 0:
                if other.row[1, klass] == _UNKNOWN:
                    behind = other.behinds[klass]
                    other.row[1, other.behind == behind] = self._output(self._failed(state, self.output_of[behind]))
                row[1, klass] = other.row[1, klass]
            elif state.winner >= 0 and winners[arrived] < 0:
                row[0, klass], row[1, klass] = self._go_on(state, arrived, klass, other), 0
            elif self._arrivals[1, arrived] == _UNKNOWN:
                target, emitted = self._step(state, self.lexemes.byte_of_class[klass])
                row[:, klass] = target, self._output(emitted)
                if not self.lexemes.may_be_refused[arrived]:
                    self._arrivals[:, arrived] = row[:, klass]
            else:
                row[:, klass] = self._arrivals[:, arrived]
        return row

    def _refused(self, state: State) -> npt.NDArray[np.bool_]:
        """Before which classes of bytes, and last before the end, a state's winner is refused."""
        return dict(self.lexemes.choices[state.under_way])[state.winner]

    def _other(self, state: State) -> _Other:
        """The reading behind the last position where a state's lexeme could have ended."""
        n_classes = len(self.lexemes.byte_of_class)
        if state.winner < 0 or self.has_modes:
            target = np.full(n_classes, DEAD if state.winner < 0 else RESTART, np.int32)
            behind = np.zeros(n_classes, np.int32)
        else:
            target, behind = self._row_of(START_STATE if state.reread is None else state.reread[1])
        behind = np.where(target == DEAD, _UNKNOWN, behind)  # nothing is emitted
        row = np.stack([target, np.where(target == DEAD, 0, _UNKNOWN)], dtype=np.int32)
        return _Other(row, behind, target.tolist(), behind.tolist(), {})

    def _go_on(self, state: State, after: int, klass: int, other: _Other) -> int:
        """The state after a class of bytes that the lexeme reads, and behind which it cannot end.

        PERF: `_unfinished` depends on how the other reading goes on, not on the class.
        """
        byte = self.lexemes.byte_of_class[klass]
        is_alone = self.has_modes or (state.winner == self.newline and byte in self.column_bytes)
        key = (after, _UNKNOWN, klass) if is_alone else (after, other.targets[klass], other.behinds[klass])
        found = other.unended.get(key)
        if found is None:
            found = other.unended[key] = self._add(self._unfinished(state, after, byte))
        return found

    def _step(self, state: State, byte: int) -> tuple[int, Output]:
        """The state after a byte of a lexeme, or DEAD or RESTART, and the terminals emitted."""
        while state.otherwise >= 0 and self._refused(state)[self.lexemes.byte_class[byte]]:
            state = self.states[state.otherwise]
        after = self.lexemes.after(state.under_way, byte)
        if after >= 0:
            winner = self.lexemes.winner[after]
            if winner >= 0:
                if after in self.lexemes.choices:
                    return self._add(self._chosen(state, after, byte)), ()
                if not self.lexemes.reads_on[after]:
                    if winner == self.newline:
                        # no state of its own for `_check_newline` to see
                        raise GrammarError(closed_newline(self.grammar))
                    return START_STATE, self.lexemes.emitted(winner)
                return self._add(State(after, winner)), ()
            return self._add(self._unfinished(state, after, byte)), ()
        # `_row` knows what follows where a lexeme fails; only `_read_from` asks here, with modes
        return (DEAD, ()) if state.winner < 0 else (RESTART, self.lexemes.emitted(state.winner))

    def _chosen(self, state: State, after: int, byte: int) -> State:
        """The state after `byte`, where the lexeme can end as what comes next allows."""
        choices = [terminal for terminal, _ in self.lexemes.choices[after]]
        may_fail = self.lexemes.may_be_refused[after]
        found = State(after, -1 if may_fail else choices.pop())  # what holds if the others are refused
        if may_fail:
            over = self.lexemes.at_once.intersection(choices)  # refused here, and so wherever it won before
            while state.winner in over and state.otherwise >= 0:
                state = self.states[state.otherwise]
            found = found if state.winner in over else self._unfinished(state, after, byte)
        if self.has_modes and found.backs_up:
            # a state of several modes has one row of bytes to read again, not one for each choice
            self.unheld.update(choices)
            return State(after, choices[0])
        for terminal in reversed(choices):
            found = State(after, terminal, otherwise=self._add(found))
        return found

    def _failed(self, state: State, more: Output) -> Output:
        """What is emitted if a state's lexeme fails. more : where its bytes are read again."""
        emitted = self.lexemes.emitted(state.winner)
        if self.has_modes:
            return emitted
        if state.reread is not None:
            more = state.reread[0] + more
        if self.newline in more:
            raise GrammarError(lost_column(self.grammar, state.winner))
        return emitted + more

    def _unfinished(self, state: State, after: int, byte: int) -> State:
        """The state after `byte`, where the lexeme cannot end. after : of the union automaton."""
        lost = State(after)
        if state.winner < 0:
            return lost
        if self.has_modes:
            starts = self.lexemes.starts_after((state.winner,))
            if not self.lexemes.emitted(state.winner):  # the mode stays
                starts = [start for start in starts if after in self.lexemes.reachable(start)]
            pending, ways = self._alike(state.winner, tuple(starts), state.pending + bytes([byte]))
            readings = iter(sorted(self.lexemes.readings(state.winner, pending) if ways - {None} else ()))
            found = State(after, state.winner, None, pending)
            others = set() if self.lexemes.emitted(state.winner) else ways
        else:
            # PERF: the row is known, where a step would read again what is read again there
            outputs, number = state.reread or ((), START_STATE)
            target, more = self._row_of(number)[:, self.lexemes.byte_class[byte]].tolist()
            if target < 0:
                return lost
            outputs += self.output_of[more]
            if not all(self.lexemes.follows(*pair) for pair in pairwise((state.winner, *outputs))):
                return lost
            readings = self._readings(state.winner, target, not outputs)
            found = State(after, state.winner, (outputs, target))
            others = set() if self.lexemes.emitted(state.winner) + outputs else {target}
        if self.most_backup is not None and self._again(found) > self.most_backup:
            return lost
        if not any(self.lexemes.can_survive(state.winner, after, other, is_first) for other, is_first in readings):
            return lost
        if state.winner == self.newline and byte in self.column_bytes:
            raise GrammarError(lost_column(self.grammar, state.winner))
        if len(others) == 1:
            # The same lexeme, begun later behind an ignored one: both grow, end and fail together.
            (other,) = others
            if isinstance(other, int) and self.states[other].under_way == after:
                return self.states[other]
        return found

    def _read_from(self, start: int, data: bytes) -> tuple[int, Output, bytes]:
        """Read bytes in the mode whose lexemes begin in `start`, up to the first terminal.

        Returns the state then, or DEAD; the terminal; the bytes that are read behind it.
        """
        begin = self._add(State(start, begins=True))
        number = START_STATE
        while data and number >= 0:
            key = number or begin, data[0]
            if key not in self._stepped:
                self._stepped[key] = self._step(self.states[key[0]], data[0])
            target, emitted = self._stepped[key]
            number = START_STATE if target == RESTART else target
            data = self.states[key[0]].pending + data if target == RESTART else data[1:]
            if emitted:
                return number, emitted, data
        return number, (), b""

    def _find_alike(self, before: int, starts: tuple[int, ...], pending: bytes) -> tuple[bytes, set[_Way | None]]:
        """Of all bytes that do the same behind a terminal, the first ones met; and their ways.

        starts : the union automaton's states in which they may begin, one for each mode.
        """
        ways = [self._way(before, start, pending) for start in starts]
        # INVARIANT: a layout's newline counts its bytes, so that none of them stand for others
        counts = self.newline >= 0 and any(byte in self.column_bytes for byte in pending)
        key: tuple[object, ...] = (before, starts, pending) if counts else (before, starts, *ways)
        return self._firsts.setdefault(key, pending), set(ways)

    def _way(self, before: int, start: int, data: bytes) -> _Way | None:
        """What some bytes become behind a terminal in one mode; None if nothing reads them."""
        number, emitted, rest = self._read_from(start, data)
        if number < 0 or (emitted and not self.lexemes.follows(before, emitted[0])):
            return None
        if emitted:
            alike, ways = self._alike(emitted[0], tuple(self.lexemes.starts_after(emitted)), rest)
            return None if ways <= {None} else (emitted, alike)
        state = self.states[number]
        if state.under_way < 0:
            return number
        coming = {*self.lexemes.live[state.under_way], state.winner} - {-1}  # it may become, or have been
        if not any(self.lexemes.follows(before, terminal) for terminal in coming):
            return None
        if not state.pending or self.lexemes.emitted(state.winner):
            return number
        other = self._way(before, start, state.pending)  # an ignored lexeme may have ended: the mode stays
        if other is None:
            return self._add(State(state.under_way))
        is_same = state.under_way == (self.states[other].under_way if isinstance(other, int) else other[0])
        return other if is_same else (state.under_way, other)

    def _readings(self, winner: int, number: int, is_first: bool) -> Iterator[tuple[int, bool]]:
        """Where the union automaton may be in a state, as `Lexemes.readings`; also backing up."""
        while True:
            state = self.states[number]
            yield (state.under_way if state.under_way >= 0 else self.lexemes.union.starts[0]), is_first
            if state.otherwise >= 0:
                yield from self._readings(winner, state.otherwise, is_first)
            if state.winner < 0 or (is_first and not self.lexemes.follows(winner, state.winner)):
                return
            _, number = state.reread or ((), START_STATE)
            is_first = False

    def _end(self, state: State) -> int:
        """`Transducer.end_output` of a state."""
        if state.under_way < 0 or state.winner < 0:
            return 0 if state.under_way < 0 else -1
        if state.otherwise >= 0 and self._refused(state)[-1]:
            return self._end(self.states[state.otherwise])
        emitted = self.lexemes.emitted(state.winner)
        if state.backs_up and self.has_modes:
            return RESTART
        if state.reread is not None:
            outputs, number = state.reread
            end_output = self._end(self.states[number])
            if end_output < 0:
                return -1
            emitted += outputs + self.output_of[end_output]
        return self._output(emitted)
