"""The longest match of a grammar's terminals in plain Python, one lexeme at a time."""

from __future__ import annotations

from maskwright.analysis.lexing.lexemes import Lexemes


class Lexer:
    """Finds lexemes with the union automaton of the terminals.

    known : the union automaton, and what is known of a lexeme in its states.
    rows : for each of its states and each byte the next state; -1 for none.
    winner : for each state the terminal that wins there; -1 for none.
    """

    def __init__(self, known: Lexemes) -> None:
        self.known = known
        self.grammar, self.union, self.winner = known.grammar, known.union, known.winner
        self.rows: list[list[int]] = known.union.next_state.tolist()

    def scan(self, mode: int, text: bytes, begin: int) -> tuple[int, int, int]:
        """The terminal of the longest match at an offset, its end, and the state behind the text.

        The terminal is -1 if there is no match, and the state -1 if no lexeme goes on so far.

        mode : lexing mode.
        begin : offset in bytes.
        """
        state = self.union.starts[mode]
        terminal, end = -1, begin
        for at in range(begin, len(text)):
            state = self.rows[state][text[at]]
            if state < 0:
                break
            if self.winner[state] >= 0:
                terminal, end = self.winner[state], at + 1
        return terminal, end, state

    def longest(self, mode: int, text: bytes, begin: int) -> tuple[int, int]:
        """The terminal of the longest match at an offset, and its end; (-1, begin) if none.

        There is none either if the text ends inside an unfinished lexeme: one that only the end of
        the text could make fail, such as an open string.
        """
        terminal, end, state = self.scan(mode, text, begin)
        if terminal < 0 or state < 0 or end == len(text) or self._may_fail(terminal, state, text[end:]):
            return terminal, end
        return -1, begin

    def _may_fail(self, terminal: int, under_way: int, pending: bytes) -> bool:
        """Whether some bytes make a lexeme fail behind its last end, and another reading survives.

        terminal : the one that won there. pending : the bytes since.
        """
        readings = sorted(self.known.readings(terminal, pending))
        return any(self.known.can_survive(terminal, under_way, state, is_first) for state, is_first in readings)
