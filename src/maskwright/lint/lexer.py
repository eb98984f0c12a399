"""The lexemes of a grammar: which terminal wins on which bytes, and which can stand side by side.

In: the terminals' automata and the sets of terminals that compete. Out: shortest lexemes, and pairs
that can stand side by side. Lexing is longest match, with ties as in `analysis.lexing.transducer`.
Knows nothing of rules.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_

import numpy as np
import numpy.typing as npt

from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.graphs import predecessors, shortest_texts
from maskwright.analysis.kept import cached_property
from maskwright.analysis.lexing.lexemes import terminal_rank
from maskwright.analysis.lexing.terminal_nfa import UnionDfa, build_terminal_nfa, build_union_dfa
from maskwright.analysis.lr.automaton import bits
from maskwright.analysis.regex.dfa import Dfa

MAX_PAIRS = 20_000
"""Pairs of states looked at to decide whether one terminal can stand before another.

Past this number we assume that it can.
"""

_READABLE = (string.ascii_lowercase + string.digits + string.ascii_uppercase + string.punctuation + " \n\t\r").encode()
BYTE_ORDER = bytes(dict.fromkeys(_READABLE + bytes(range(0xC2, 0xF5)) + bytes(range(0x80, 0xC2)) + bytes(range(256))))
"""All bytes; those that are good to read in an example come first."""

Edges = list[tuple[int, int]]
"""Transitions of one state: (byte, next state)."""


class Lexer:
    """The union automaton of a grammar's terminals, and what wins in its states.

    automata : for each terminal the automaton of its lexemes (`Facts.lexemes`), or None.
    competing : for each mode the terminals that compete. Lexing "longest" has one mode, with all.
    winner : for each state the terminal that wins there; -1 for none.
    rows : for each state and byte the next state; -1 for none.
    """

    def __init__(
        self, grammar: Grammar, automata: Sequence[Dfa | None], competing: Sequence[frozenset[int]] | None = None
    ) -> None:
        self.grammar = grammar
        self.automata = automata
        every = frozenset(t for t, dfa in enumerate(automata) if dfa is not None)
        self.competing = tuple(competing) if competing is not None else (every,)
        nfa = build_terminal_nfa(automata)
        starts = [tuple(int(nfa.initial[t]) for t in sorted(mode & every)) for mode in self.competing]
        self.union: UnionDfa = build_union_dfa(nfa, [t.name for t in grammar.terminals], starts=starts)
        self.newline = grammar.layout.newline if grammar.layout else -1
        self.rank = terminal_rank(grammar.terminals)
        self.winner = [min(found, key=self.rank.__getitem__, default=-1) for found in self.union.accepting]
        self._table: npt.NDArray[np.int32] = self.union.next_state
        self.rows: list[list[int]] = self._table.tolist()
        self._never_fails: set[tuple[int, int]] = set()
        self._may_fail_known: dict[tuple[int, frozenset[int]], bool] = {}
        self._terminal_edges: dict[int, list[Edges]] = {}

    @property
    def n_states(self) -> int:
        """The number of states of the union automaton."""
        return len(self.winner)

    @cached_property
    def representatives(self) -> list[int]:
        """One byte of each class, ascending. Bytes of one class do the same in all states."""
        return sorted(np.unique(self._table, axis=1, return_index=True)[1].tolist())

    @cached_property
    def _columns(self) -> list[list[int]]:
        """For each state the next states on the representatives."""
        columns: list[list[int]] = self._table[:, self.representatives].tolist()
        return columns

    @cached_property
    def edges(self) -> list[Edges]:
        """For each state its next states, each once, in the order of `BYTE_ORDER`.

        With each comes the byte that leads there and is best to read.
        """
        return self.usable_edges(None)

    def usable_edges(self, usable: npt.NDArray[np.bool_] | None) -> list[Edges]:
        """`edges` over usable bytes only.

        usable : (256,) bool; None for all bytes.
        """
        found = []
        order = np.frombuffer(BYTE_ORDER, np.uint8)
        if usable is not None:
            order = order[usable[order]]
        for row in self._table[:, order]:
            targets, first = np.unique(row, return_index=True)
            pairs = sorted((int(at), int(target)) for target, at in zip(targets, first, strict=True) if target >= 0)
            found.append([(int(order[at]), target) for at, target in pairs])
        return found

    @cached_property
    def shortest_paths(self) -> dict[int, bytes]:
        """State -> a shortest byte string that leads to it from some mode's start.

        The states are in the order of length.
        """
        return shortest_texts(self.union.starts, self.edges.__getitem__)

    def lexemes(self, usable: npt.NDArray[np.bool_] | None = None) -> dict[int, bytes]:
        """Terminal -> a shortest text that is lexed as it. Terminals that always lose are missing.

        usable : (256,) bool; the bytes that the text may have. None for all bytes.
        """
        edges = self.edges if usable is None else self.usable_edges(usable)
        found: dict[int, bytes] = {}
        for state, text in shortest_texts(self.union.starts, edges.__getitem__).items():
            if text and self.winner[state] >= 0:
                found.setdefault(self.winner[state], text)
        return found

    @cached_property
    def ends(self) -> dict[int, list[int]]:
        """Terminal -> the states in which it wins."""
        found: dict[int, list[int]] = {}
        for state, winner in enumerate(self.winner):
            if winner >= 0:
                found.setdefault(winner, []).append(state)
        return found

    def live(self, usable: npt.NDArray[np.bool_] | None = None) -> npt.NDArray[np.bool_]:
        """(n_states, n_terminals) bool: which terminals win in a state or somewhere after it.

        usable : (256,) bool; the bytes that may be read. None for all bytes.
        """
        live = np.zeros((self.n_states, self.grammar.n_terminals), np.bool_)
        for state, winner in enumerate(self.winner):
            if winner >= 0:
                live[state, winner] = True
        edges = self.edges if usable is None else self.usable_edges(usable)
        before = predecessors([[target for _, target in targets] for targets in edges])
        agenda = list(range(self.n_states))
        while agenda:
            state = agenda.pop()
            for other in before[state]:
                if (live[state] & ~live[other]).any():
                    live[other] |= live[state]
                    agenda.append(other)
        return live

    def may_become(self, terminal: int, lexeme: bytes, usable: npt.NDArray[np.bool_] | None = None) -> set[int]:
        """The terminals that a lexeme may still be lexed as if more usable bytes follow.

        terminal, lexeme : what it is lexed as without them, and its bytes.
        usable : (256,) bool; None for all bytes.
        """
        if usable is None:
            live, edges = self._all_live, self.edges
        else:
            live, edges = self.live(usable), self.usable_edges(usable)
        found: set[int] = set()
        for start in self.union.starts:
            state = start
            for byte in lexeme:
                state = self.rows[state][byte] if state >= 0 else -1
            if state >= 0 and terminal == self.winner[state]:
                for _, target in edges[state]:
                    found.update(live[target].nonzero()[0].tolist())
        return found

    @cached_property
    def _all_live(self) -> npt.NDArray[np.bool_]:
        return self.live()

    def side_by_side(self, wanted: Iterable[tuple[int, int]]) -> list[int]:
        """For each terminal, as bits, the wanted terminals that can begin right after its lexeme.

        A bit that is not set is a proof: in every text the longest match takes bytes of the second
        lexeme into the first, or loses both.

        wanted : pairs of a first terminal and second terminals as bits.
        """
        n = self.grammar.n_terminals
        begin_with = [0] * 256
        for terminal, dfa in enumerate(self.automata):
            if dfa is not None:
                for byte in np.flatnonzero(dfa.next_state[0] >= 0).tolist():
                    begin_with[byte] |= 1 << terminal
        at_once = [0] * n
        of_bytes: dict[bytes, int] = {}
        for terminal, states in self.ends.items():
            fails = (self._table[states] < 0).any(axis=0)
            key = fails.tobytes()
            if key not in of_bytes:
                of_bytes[key] = reduce(or_, (begin_with[byte] for byte in np.flatnonzero(fails).tolist()), 0)
            at_once[terminal] = of_bytes[key]
        found = [0] * n
        looked_at = [0] * n
        self._n_pairs = 0
        for first, seconds in wanted:
            new = seconds & ~looked_at[first]
            looked_at[first] |= seconds
            found[first] |= new & at_once[first]
            if first in self.ends:
                for second in bits(new & ~at_once[first]):
                    if self._parts(first, second):
                        found[first] |= 1 << second
        return found

    def _parts(self, first: int, second: int) -> bool:
        """Whether some beginning of the second makes the first's lexeme fail in time.

        In time means before the longer lexeme could end.
        """
        dfa = self.automata[second]
        if dfa is None:
            return True
        inner = self._edges_of(second, dfa)
        agenda = [(state, 0) for state in self.ends[first]]
        seen = set(agenda)
        for state, other in agenda:  # grows while it is read
            self._n_pairs += 1
            if self._n_pairs > MAX_PAIRS:
                return True
            outer = self.rows[state]
            for byte, after in inner[other]:
                target = outer[byte]
                if target < 0 or (dfa.is_accepting[after] and self.winner[target] < 0):
                    return True
                if self.winner[target] < 0 and (target, after) not in seen:
                    seen.add((target, after))
                    agenda.append((target, after))
        return False

    def _edges_of(self, terminal: int, dfa: Dfa) -> list[Edges]:
        """For each state of a terminal's automaton its transitions, one for each byte class."""
        found = self._terminal_edges.get(terminal)
        if found is None:
            # Bytes that the union does not tell apart do the same in each of its terminals.
            is_in_union = any(terminal in mode for mode in self.competing)
            bytes_read = self.representatives if is_in_union else list(range(256))
            found = self._terminal_edges[terminal] = [
                [(byte, after) for byte, after in zip(bytes_read, row, strict=True) if after >= 0]
                for row in dfa.next_state[:, bytes_read].tolist()
            ]
        return found

    def after(self, terminal: int, lexeme: bytes, more: bytes) -> tuple[int, int] | None:
        """The longest match on a lexeme and more bytes.

        This is asked of the first mode in which the lexeme alone is lexed as the terminal.

        Returns a terminal and an end as `longest` does; None if there is no such mode.
        """
        for mode in range(len(self.competing)):
            if self.longest(mode, lexeme, 0) == (terminal, len(lexeme)):
                return self.longest(mode, lexeme + more, 0)
        return None

    def longest(self, mode: int, text: bytes, begin: int) -> tuple[int, int]:
        """The terminal of the longest match at an offset, and its end; (-1, begin) if none.

        There is none either if the text ends inside an unfinished lexeme: one that only the end of
        the text could make fail, such as an open string.

        mode : lexing mode.
        begin : offset in bytes.
        """
        state = self.union.starts[mode]
        best = -1, begin
        for at in range(begin, len(text)):
            state = self.rows[state][text[at]]
            if state < 0:
                return best
            if self.winner[state] >= 0:
                best = self.winner[state], at + 1
        if best[0] < 0 or best[1] == len(text) or self._may_fail(state, text[best[1] :]):
            return best
        return -1, begin

    def is_under_way(self, mode: int, text: bytes) -> bool:
        """Whether a text is the beginning of a lexeme."""
        state = self.union.starts[mode]
        for byte in text:
            if state >= 0:
                state = self.rows[state][byte]
        return state >= 0

    def _may_fail(self, under_way: int, pending: bytes) -> bool:
        """Whether some bytes make the lexeme under way fail before it could end.

        The pending bytes and these bytes must then be lexable again from a start.
        """
        positions = set(self.union.starts)
        for byte in pending:
            positions = {after for position in positions for after in self._anew(position, byte)}
        key = under_way, frozenset(positions)
        known = self._may_fail_known.get(key)
        if known is None:
            known = self._may_fail_known[key] = self._may_part(under_way, positions)
        return known

    def _may_part(self, under_way: int, positions: set[int]) -> bool:
        """`_may_fail` once the pending bytes have been lexed again, up to one of some states."""
        agenda = [
            (under_way, position) for position in sorted(positions) if (under_way, position) not in self._never_fails
        ]
        seen = set(agenda)
        columns = self._columns
        for lexeme, other in agenda:  # grows while it is read
            # PERF: pairs in a set take a third of the time of np.unique on arrays this short
            pairs = {pair for pair in zip(columns[lexeme], columns[other], strict=True) if pair[1] >= 0}
            if any(after < 0 for after, _ in pairs):
                return True
            for after, position in sorted(pairs):
                if self.winner[after] < 0:
                    following = [position, *self.union.starts] if self.winner[position] >= 0 else [position]
                    new = [
                        (after, p) for p in following if (after, p) not in seen and (after, p) not in self._never_fails
                    ]
                    seen.update(new)
                    agenda += new
            if len(seen) > MAX_PAIRS:
                return False
        self._never_fails |= seen
        return False

    def _anew(self, position: int, byte: int) -> list[int]:
        """The states that a byte can lead to if each lexeme may end wherever it could."""
        after = self.rows[position][byte]
        if after < 0:
            return []
        return [after, *self.union.starts] if self.winner[after] >= 0 else [after]


class PlainLexer:
    """The same longest match without the union automaton.

    Nothing is built, and each text costs more. This is for lexings that are only compared.

    is_open : whether a text ended inside a lexeme that could have ended before. This lexer cannot
        tell whether such a lexeme is unfinished.
    """

    def __init__(self, grammar: Grammar, automata: Sequence[Dfa | None], competing: Sequence[frozenset[int]]) -> None:
        rank = terminal_rank(grammar.terminals)
        self.competing = [
            [(t, dfa) for t in sorted(mode, key=rank.__getitem__) if (dfa := automata[t]) is not None]
            for mode in competing
        ]
        self.is_open = False

    def longest(self, mode: int, text: bytes, begin: int) -> tuple[int, int]:
        """The terminal of the longest match at an offset, and its end; (-1, begin) if none.

        Unlike `Lexer.longest` it does not look for unfinished lexemes; it sets `is_open` instead.
        """
        alive = [(t, dfa, 0) for t, dfa in self.competing[mode]]
        best = -1, begin
        for at in range(begin, len(text)):
            byte = text[at]
            alive = [(t, dfa, after) for t, dfa, s in alive if (after := int(dfa.next_state[s, byte])) >= 0]
            if not alive:
                return best
            for t, dfa, state in alive:
                if dfa.is_accepting[state]:
                    best = t, at + 1
                    break
        self.is_open |= best[0] >= 0 and best[1] < len(text)
        return best
