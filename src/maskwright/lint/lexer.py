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

from maskwright.analysis.graphs import shortest_texts, unions
from maskwright.analysis.kept import cached_property
from maskwright.analysis.lexing.lexemes import Lexemes, members, terminal_rank
from maskwright.analysis.lr.automaton import bits
from maskwright.analysis.regex.dfa import Dfa
from maskwright.decoding.reference import lexer as reference

MAX_PAIRS = 20_000
"""Pairs of states looked at to decide whether one terminal can stand before another.

Past this number we assume that it can.
"""

_READABLE = (string.ascii_lowercase + string.digits + string.ascii_uppercase + string.punctuation + " \n\t\r").encode()
BYTE_ORDER = bytes(dict.fromkeys(_READABLE + bytes(range(0xC2, 0xF5)) + bytes(range(0x80, 0xC2)) + bytes(range(256))))
"""All bytes; those that are good to read in an example come first."""

Edges = list[tuple[int, int]]
"""Transitions of one state: (byte, next state)."""


class Lexer(reference.Lexer):
    """The union automaton of a grammar's terminals, and what wins in its states.

    automata : for each terminal the automaton of its lexemes (`Facts.lexemes`), or None.
    known : made of these automata.
    competing : for each mode the terminals that compete. Lexing "longest" has one mode, with all.
    """

    def __init__(self, automata: Sequence[Dfa | None], known: Lexemes) -> None:
        super().__init__(known)
        self.automata = automata
        self.competing = known.modes
        self.newline = known.newline
        self.rank = terminal_rank(self.grammar.terminals)
        self._table: npt.NDArray[np.int32] = self.union.next_state
        self._terminal_edges: dict[int, list[Edges]] = {}

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

    def live(self, usable: npt.NDArray[np.bool_] | None = None) -> list[tuple[int, ...]]:
        """For each state the terminals that win there or somewhere after it.

        usable : (256,) bool; the bytes that may be read. None for all bytes.
        """
        if usable is None:
            return self.known.live
        wins = [1 << winner if winner >= 0 else 0 for winner in self.winner]
        successors = [[target for _, target in edges] for edges in self.usable_edges(usable)]
        return [members(found) for found in unions(successors, wins)]

    def may_become(self, terminal: int, lexeme: bytes, usable: npt.NDArray[np.bool_] | None = None) -> set[int]:
        """The terminals that a lexeme may still be lexed as if more usable bytes follow.

        terminal, lexeme : what it is lexed as without them, and its bytes.
        usable : (256,) bool; None for all bytes.
        """
        live, edges = self.live(usable), self.edges if usable is None else self.usable_edges(usable)
        found: set[int] = set()
        for mode in range(len(self.competing)):
            winner, end, state = self.scan(mode, lexeme, 0)
            if state >= 0 and (winner, end) == (terminal, len(lexeme)):
                for _, target in edges[state]:
                    found.update(live[target])
        return found

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
            bytes_read = self.known.byte_of_class if is_in_union else list(range(256))
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
