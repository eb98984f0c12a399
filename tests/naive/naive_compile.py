"""Naive twins of what compiles a store: over dicts, sets and tuples, one continuation, pair or group after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.analysis.lexing.lexemes import Lexemes
from maskwright.analysis.lr.encoding import LrTables
from maskwright.maskstore.automaton.exploration_tables import ACCEPTED, REFUSED_CONTINUATION
from maskwright.maskstore.tokens.continuations import WHATEVER, Continuations
from maskwright.maskstore.tokens.events import ABSOLUTE, RESET
from maskwright.maskstore.tokens.required_keys import Ending
from maskwright.maskstore.tokens.requirements import Requirements
from maskwright.maskstore.tokens.state_tokens import LineBreaks

Int32 = npt.NDArray[np.int32]
Alternative = tuple[LineBreaks, tuple[int, ...], frozenset[int] | None]


class Brackets(NamedTuple):
    """How brackets stand: those open, the fewest so far, and how many numbers of open ones make a difference."""

    depth: int
    lowest: int
    n_depth_cases: int


def sequence_of(required: Requirements, number: int) -> tuple[int, ...]:
    """The symbols of a sequence: terminals, newline events (`codes`) and modes: symbol `mode_code` + m is mode m."""
    (parent, last), found = required.sequences, []
    while number:
        found.append(int(last[number]))
        number = int(parent[number])
    return tuple(reversed(found))


def brackets_after(required: Requirements, symbols: Sequence[int], before: Brackets) -> Brackets:
    depth, lowest, n_depth_cases = before
    for symbol in symbols if required.newline >= 0 else ():
        if required.codes.n_terminals <= symbol < required.mode_code:
            n_depth_cases = max(n_depth_cases, 2 - lowest)
        depth += required.bracket.get(symbol, 0)
        lowest = min(lowest, depth)
    return Brackets(depth, lowest, n_depth_cases)


def depth_cases(required: Requirements, symbols: Sequence[int], ending: Ending) -> int:
    before = brackets_after(required, symbols, Brackets(0, 0, 1))
    most = before.n_depth_cases
    for more, last in ending:
        after = brackets_after(required, more, before)
        most = max(most, after.n_depth_cases)
        if last is not None and required.newline in last:
            most = max(most, 2 - after.lowest)
    return most


def requires(required: Requirements, symbols: Sequence[int], ending: Ending, depth: int) -> list[Alternative]:
    """What a sequence and an ending require with some brackets open, in order: line breaks, columns, a set of columns."""
    found: dict[Alternative, None] = {}
    for more, last in ending:
        alternative = _read(required, [*symbols, *more], last, depth)
        if alternative is not None:
            found[alternative] = None
    return list(found)


def _read(required: Requirements, symbols: list[int], last: frozenset[int] | None, depth: int) -> Alternative | None:
    breaks, part = [], []
    for symbol in symbols:
        if symbol >= required.mode_code:
            part.append(required.n_columns + symbol - required.mode_code)
        elif symbol >= required.codes.n_terminals:
            if depth == 0:
                if required.column_of[required.newline] < 0:
                    return None
                move = required.codes.moves.members[required.codes.decode(symbol)[1]]
                breaks.append((tuple(part), move._replace(stop=ABSOLUTE) if move.stop == RESET else move))
                part = []
        else:
            depth = max(0, depth + required.bracket.get(symbol, 0))
            part.append(required.column_of[symbol])
            if part[-1] < 0:
                return None
    columns = None if last is None or (depth > 0 and required.newline in last) else required.columns_of(last)
    if columns is None and breaks and all(column >= required.n_columns for column in part):
        columns = required.after_newline
    return None if columns is not None and not columns else (tuple(breaks), tuple(part), columns)


def survives(lexemes: Lexemes, winner: int, under_way: int, state: int, is_first: bool) -> bool:
    """`Lexemes.can_survive`, pair by pair and byte by byte."""
    seen = {(is_first, under_way, state)}
    agenda = list(seen)
    while agenda:
        first, lexeme, other = agenda.pop()
        for byte in range(256):
            after, other_after = lexemes.after(lexeme, byte), lexemes.after(other, byte)
            if other_after < 0 or (after >= 0 and lexemes.winner[after] >= 0):
                continue
            if after < 0:
                if not first or any(lexemes.follows(winner, terminal) for terminal in lexemes.live[other_after]):
                    return True
                continue
            ended = lexemes.union.accepting[other_after]
            new = {(first, after, other_after)}
            if ended and (not first or any(lexemes.follows(winner, terminal) for terminal in ended)):
                new |= {(False, after, start) for start in lexemes.starts_after(ended)}
            agenda += new - seen
            seen |= new
    return False


class Levels:
    """`levels.Levels`, continuation by continuation."""

    def __init__(
        self,
        tables: LrTables,
        mode_of_state: Int32,
        continuations: Continuations,
        roots: Any,
        allowed: npt.NDArray[np.bool_],
    ) -> None:
        self.allowed = allowed
        self.roots = np.reshape(roots, (-1, 2)).astype(np.int32)
        self.next_continuation = continuations.next_continuation
        self.n_columns = tables.action.shape[1]
        self._tables, self._mode_of_state = tables, mode_of_state
        self._symbols: list[int] = continuations.symbols.tolist()
        self._leader = {WHATEVER: WHATEVER}
        self._leader_of_key: dict[tuple[int, tuple[int, ...]], int] = {}
        self._met: dict[int, list[tuple[int, list[int]]]] = {}
        self._results: dict[tuple[int, int], int] = {}
        self._before: dict[int, set[int]] = {}
        self._kinds: dict[int, set[int]] = {}
        self._explored: set[tuple[int, int]] = set()
        self._inner: set[tuple[int, int]] = set()
        following: list[int] = self.next_continuation.tolist()
        length: dict[int, int] = {}
        for root, kind in self.roots.tolist():
            self._kinds.setdefault(root, set()).add(kind)
            here, n = root, 0
            chain = [root]
            while here >= 0:
                self._before.setdefault(following[here], set()).add(self._symbols[here])
                here = following[here]
                chain.append(here)
            for n, one in enumerate(reversed(chain)):
                length[one] = n
        self._levels = [
            sorted(c for c in length if length[c] == n and c != WHATEVER) for n in range(max([0, *length.values()]) + 1)
        ]
        self.n_levels = len(self._levels)

    def leader(self, continuations: Int32) -> Int32:
        return np.array([self._leader[continuation] for continuation in continuations.tolist()], np.int32)

    def accessed(self, symbol: int) -> list[int]:
        """The states that a symbol leads to; a mode reads nothing, and the state stays."""
        if symbol < self.n_columns:
            return np.flatnonzero(self._tables.accessing == symbol).tolist()  # type: ignore[no-any-return]
        return np.flatnonzero(self._mode_of_state == symbol - self.n_columns).tolist()  # type: ignore[no-any-return]

    def acts(self, symbol: int, state: int) -> bool:
        if symbol < self.n_columns:
            return bool(self._tables.action[state, symbol])
        return bool(self._mode_of_state[state] == symbol - self.n_columns)

    def begin(self, level: int) -> tuple[Int32, Int32]:
        wanted: dict[int, tuple[set[int], set[int]]] = {}
        for continuation in self._levels[level]:
            leader = continuation
            if continuation >= 0:
                symbol, after = self._symbols[continuation], self._leader[int(self.next_continuation[continuation])]
                self.next_continuation[continuation] = after
                results: list[int] = []
                if after == WHATEVER:
                    results = [ACCEPTED] * len(self.accessed(symbol))
                elif after != REFUSED_CONTINUATION:
                    results = [self._results[after, state] for state in self.accessed(symbol)]
                if after != WHATEVER and not any(results):
                    self._leader[continuation] = REFUSED_CONTINUATION
                    continue
                leader = self._leader_of_key.setdefault((symbol, tuple(results)), continuation)
                if leader == continuation and symbol < self.n_columns:
                    self._met.setdefault(symbol, []).append((continuation, results))
            self._leader[continuation] = leader
            outer, inner = wanted.setdefault(leader, (set(), set()))
            for before in self._before.get(continuation, ()):
                inner.update(self.accessed(before))
            for kind in self._kinds.get(continuation, ()):
                outer.update(np.flatnonzero(self.allowed[kind]).tolist())
        pairs = []
        for leader, (outer, inner) in wanted.items():
            if leader >= 0:
                outer = {state for state in outer if self.acts(self._symbols[leader], state)}
            new = {state for state in outer if (leader, state) not in self._explored}
            new |= {state for state in inner if (leader, state) not in self._inner}
            pairs += [(leader, state) for state in sorted(new)]
            self._inner |= {(leader, state) for state in inner}
            self._explored |= {(leader, state) for state in outer | inner}
        return np.array([leader for leader, _ in pairs], np.int32), np.array([state for _, state in pairs], np.int32)

    def is_inner(self, continuation_of: Int32, top_of: Int32) -> npt.NDArray[np.bool_]:
        pairs = zip(continuation_of.tolist(), top_of.tolist(), strict=True)
        return np.array([pair in self._inner for pair in pairs], np.bool_)

    def met(self) -> Iterator[tuple[int, Int32, Int32]]:
        for column, found in sorted(self._met.items()):
            yield (
                column,
                np.array([c for c, _ in found], np.int32),
                np.array([results for _, results in found], np.int32),
            )
        self._met = {}

    def learn(self, continuation_of: Int32, top_of: Int32, results: Int32) -> None:
        pairs = zip(continuation_of.tolist(), top_of.tolist(), strict=True)
        self._results.update(dict(zip(pairs, results.tolist(), strict=True)))
