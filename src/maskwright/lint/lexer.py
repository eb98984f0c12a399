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

from maskwright.analysis.graphs import shortest_texts, unions
from maskwright.analysis.kept import cached_property
from maskwright.analysis.lexing.lexemes import Lexemes, members, terminal_rank
from maskwright.analysis.lr.automaton import bits
from maskwright.analysis.regex.dfa import Dfa
from maskwright.decoding.reference import machine as reference

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
    known : made of these automata. Its modes are the sets of terminals that compete.
    alphabet : the bytes of which texts are made here, the best to read first.
    """

    def __init__(self, automata: Sequence[Dfa | None], known: Lexemes, alphabet: bytes = BYTE_ORDER) -> None:
        super().__init__(known)
        self.automata, self.alphabet = automata, alphabet
        self.rank = terminal_rank(self.grammar.terminals)

    @cached_property
    def edges(self) -> list[Edges]:
        """For each state its next states over the alphabet, each once, the best byte first.

        With each comes the best byte that leads there.
        """
        best: dict[int, int] = {}
        for byte in self.alphabet:
            best.setdefault(int(self.known.byte_class[byte]), byte)
        found = []
        for row in self.rows:
            byte_to: dict[int, int] = {}
            for byte in best.values():
                byte_to.setdefault(row[byte], byte)
            found.append([(byte, target) for target, byte in byte_to.items() if target >= 0])
        return found

    @cached_property
    def shortest_paths(self) -> dict[int, bytes]:
        """State -> a shortest byte string that leads to it from some mode's start.

        The states are in the order of length.
        """
        return shortest_texts(self.union.starts, self.edges.__getitem__)

    @cached_property
    def lexemes(self) -> dict[int, bytes]:
        """Terminal -> a shortest text that is lexed as it; none for one that always loses."""
        found: dict[int, bytes] = {}
        for state, text in self.shortest_paths.items():
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

    @cached_property
    def live(self) -> list[tuple[int, ...]]:
        """For each state the terminals that win there or somewhere after it."""
        wins = [1 << winner if winner >= 0 else 0 for winner in self.winner]
        return [members(found) for found in unions([[target for _, target in edges] for edges in self.edges], wins)]

    def may_become(self, terminal: int, lexeme: bytes) -> set[int]:
        """The terminals that a lexeme may still be lexed as if more bytes follow.

        terminal, lexeme : what it is lexed as without them, and its bytes.
        """
        found: set[int] = set()
        for mode in range(len(self.known.modes)):
            winner, end, state = self.scan(mode, lexeme, 0)
            if state >= 0 and (winner, end) == (terminal, len(lexeme)):
                for _, target in self.edges[state]:
                    found.update(self.live[target])
        return found

    def side_by_side(self, wanted: Iterable[tuple[int, int]]) -> list[int]:
        """For each terminal, as bits, the wanted terminals that can begin right after its lexeme.

        A bit that is not set is a proof: in every text the longest match takes bytes of the second
        lexeme into the first, or loses both.

        wanted : pairs of a first terminal and second terminals as bits.
        """
        n, known = self.grammar.n_terminals, self.known
        begin_with = [0] * len(known.byte_of_class)
        for terminal, dfa in enumerate(self.automata):
            for klass in set() if dfa is None else set(known.byte_class[dfa.next_state[0] >= 0].tolist()):
                begin_with[klass] |= 1 << terminal
        at_once = [0] * n
        for terminal, states in self.ends.items():
            fails = np.flatnonzero((known.after_class[states] < 0).any(axis=0))
            at_once[terminal] = reduce(or_, (begin_with[klass] for klass in fails.tolist()), 0)
        found, looked_at = [0] * n, [0] * n
        self._n_pairs = 0
        for first, seconds in wanted:
            new = seconds & ~looked_at[first]
            looked_at[first] |= seconds
            found[first] |= new & at_once[first]
            for second in bits(new & ~at_once[first]) if first in self.ends else ():
                found[first] |= self._parts(first, second) << second
        return found

    @cached_property
    def _rows_of(self) -> list[list[list[int]]]:
        """For each terminal and state of its automaton the next states by class of bytes."""
        columns = self.known.byte_of_class
        return [[] if dfa is None else dfa.next_state[:, columns].tolist() for dfa in self.automata]

    def _parts(self, first: int, second: int) -> bool:
        """Whether some beginning of the second makes the first's lexeme fail in time.

        In time means before the longer lexeme could end.
        """
        dfa, rows = self.automata[second], self._rows_of[second]
        if dfa is None:
            return True
        agenda = [(state, 0) for state in self.ends[first]]
        seen = set(agenda)
        for state, other in agenda:  # grows while it is read
            self._n_pairs += 1
            if self._n_pairs > MAX_PAIRS:
                return True
            for target, after in zip(self.known.next_by_class[state], rows[other], strict=True):
                if after < 0 or (target >= 0 and self.winner[target] >= 0):
                    continue  # the second does not begin so, or the longer lexeme can end
                if target < 0 or dfa.is_accepting[after]:
                    return True
                if (target, after) not in seen:
                    seen.add((target, after))
                    agenda.append((target, after))
        return False

    def after(self, terminal: int, lexeme: bytes, more: bytes) -> tuple[int, int] | None:
        """The longest match on a lexeme and more bytes.

        This is asked of the first mode in which the lexeme alone is lexed as the terminal.

        Returns a terminal and an end as `longest` does; None if there is no such mode.
        """
        for mode in range(len(self.known.modes)):
            if self.longest(mode, lexeme, 0) == (terminal, len(lexeme)):
                return self.longest(mode, lexeme + more, 0)
        return None
