"""The effect of one token on a lexer state, worked out from the definition in plain Python.

`maskstore.entries.walk` computes it for all tokens at once.
"""

from __future__ import annotations

from functools import lru_cache

from maskwright.analysis.grammar.columns import FIRST_COLUMN, Column
from maskwright.analysis.lexing.terminal_nfa import TerminalNfa
from maskwright.maskstore.tokens.events import EventCodes, move_of

NO_COLUMN = None

Symbols = tuple[int, ...]
Outcome = tuple[Symbols, int, Column | None]
"""Symbols begun, lexer state after the token, and column of the newline lexeme under way.

The column is NO_COLUMN if no newline is under way, or if it has no line feed yet.
"""


class NfaLexer:
    """The lexer of lexing "nfa", one token at a time. `maskstore.entries.walk` defines its steps.

    nfa : the terminals' automata side by side.
    codes : numbers of the symbols; their layout is the grammar's.
    newline : the layout's newline terminal, or -1.
    start : number of the lexer state at the start of the text, `nfa.n_states`.
    """

    def __init__(self, nfa: TerminalNfa, codes: EventCodes, newline: int) -> None:
        self.nfa = nfa
        self.codes = codes
        self.newline = newline
        self.layout = codes.moves.layout
        self.start = nfa.n_states
        self._fresh = lru_cache(maxsize=1 << 16)(self._outcomes_of_fresh)

    def column_after(self, column: Column | None, data: bytes) -> Column | None:
        """The column of a newline lexeme after more bytes; NO_COLUMN before its first line feed."""
        if column is NO_COLUMN:
            _, line_feed, data = data.partition(b"\n")
            if not line_feed:
                return NO_COLUMN
        assert self.layout is not None  # INVARIANT: only grammars with layout have newlines
        return self.layout.column_after(data, column or FIRST_COLUMN)

    def outcomes(self, state: int, column: Column | None, token: bytes) -> list[Outcome]:
        """All outcomes of a token in a lexer state.

        state : lexer state; `start` at the start of the text.
        column : of the newline under way, if the state is in one.
        token : bytes, not empty.
        """
        if state == self.start:
            return list(self._fresh(token))
        end, cut = self._end_and_cut(state, token)
        is_newline = int(self.nfa.terminal[state]) == self.newline
        found: list[Outcome] = []
        if end >= 0:
            found.append(((), end, self.column_after(column, token) if is_newline else NO_COLUMN))
        if cut is not None and cut < len(token):
            prefix: Symbols = ()
            if is_newline:
                ended_at = self.column_after(column, token[:cut])
                if ended_at is NO_COLUMN:
                    return found  # a newline without a line feed cannot end
                prefix = (self.codes.leave(self._move(token[:cut])),)
            found += [((*prefix, *symbols), last, at) for symbols, last, at in self._fresh(token[cut:])]
        return found

    def _move(self, piece: bytes) -> int:
        """The number of the move of a piece of a newline."""
        assert self.layout is not None  # INVARIANT: only grammars with layout have newlines
        return self.codes.moves.number(move_of(self.layout, piece))

    def _end_and_cut(self, state: int, data: bytes) -> tuple[int, int | None]:
        """The state after all bytes (-1: none), and the last offset at which it accepted.

        The offset is None if the automaton accepted nowhere.
        """
        cut = 0 if self.nfa.is_accepting[state] else None
        for offset, byte in enumerate(data, start=1):
            state = int(self.nfa.next_state[state, byte])
            if state < 0:
                return -1, cut
            if self.nfa.is_accepting[state]:
                cut = offset
        return state, cut

    def _outcomes_of_fresh(self, data: bytes) -> tuple[Outcome, ...]:
        """All outcomes of bytes where no lexeme is under way."""
        runs = {
            terminal: self._end_and_cut(int(state), data)
            for terminal, state in enumerate(self.nfa.initial.tolist())
            if state >= 0
        }
        found: list[Outcome] = []
        for terminal, (end, _) in runs.items():
            if end >= 0:
                column = self.column_after(NO_COLUMN, data) if terminal == self.newline else NO_COLUMN
                found.append(((terminal,), end, column))
        longest = max((cut for _, cut in runs.values() if cut), default=0)
        if 0 < longest < len(data):
            for terminal, (_, cut) in runs.items():
                if cut != longest:
                    continue
                symbol = terminal
                if terminal == self.newline:
                    if b"\n" not in data[:longest]:
                        continue
                    symbol = self.codes.newline_at(self._move(data[:longest]))
                found += [((symbol, *symbols), end, at) for symbols, end, at in self._fresh(data[longest:])]
        return tuple(found)
