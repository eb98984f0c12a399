"""Names: byte strings of which the next lexeme of a terminal must be one."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import clip, refuse_argument
from maskwright.analysis.errors import MaskwrightError, UnknownNameError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.decoding.engine.arguments import text_bytes
from maskwright.decoding.names import layout
from maskwright.decoding.names.lexer import NameLexer, joined
from maskwright.maskstore.vocabulary.sorted_texts import flatten

MOST_BYTES = 1 << 28
"""The most bytes that names may have together."""


class Names:
    """Names of one terminal, sorted.

    lexer : of the store.
    terminal : its number.
    texts : the names, sorted by their bytes, each once.
    array : `layout`'s `names`. It is replaced where a row of counts is added.

    Raises: MaskwrightError if a name is neither str nor bytes, is empty, or holds a lone surrogate,
    or if all together are too long.

    Cost: 5 ms for 10,000 names, and as much for each further mode of the lexer that they are read
    in.
    """

    def __init__(self, lexer: NameLexer, terminal: int, names: Iterable[str | bytes]) -> None:
        self.lexer = lexer
        self.terminal = terminal
        self.texts = sorted(set(_as_bytes(names)))
        self.offsets, self.data = flatten(self.texts)
        if len(self.data) > MOST_BYTES:
            raise MaskwrightError(f"the names have {len(self.data):,} bytes together; expected {MOST_BYTES:,} at most")
        self._rows: dict[int, npt.NDArray[np.int32]] = {}
        self.array = self._array()
        if not lexer.array[layout.HAS_MODES]:
            self.count(int(lexer.array[lexer.array[layout.UNDER_WAY]]))

    def count(self, start: int) -> None:
        """Add the row of counts for lexemes that begin in a state of the union automaton."""
        counts = np.zeros(len(self.texts) + 1, np.int32)
        np.cumsum(self.is_lexeme(start), out=counts[1:])
        self._rows[start] = counts
        self.array = self._array()

    def is_lexeme(self, start: int) -> npt.NDArray[np.bool_]:
        """Which names are lexemes of the terminal that begin in a state: (n,) bool."""
        next_state, winner = self.lexer.next_state, self.lexer.winner
        begins, sizes = self.offsets[:-1], np.diff(self.offsets)
        states = np.full(len(sizes), start, np.int32)
        at = np.arange(len(sizes))
        for k in range(int(sizes.max(initial=0))):
            at = at[(sizes[at] > k) & (states[at] >= 0)]
            if not len(at):
                break
            states[at] = next_state[states[at], self.data[begins[at] + k]]
        is_name: npt.NDArray[np.bool_] = (states >= 0) & (winner[states] == self.terminal)
        return is_name

    def _array(self) -> npt.NDArray[np.int32]:
        header = np.zeros(layout.NAMES_HEADER, np.int32)
        header[layout.N_NAMES], header[layout.TERMINAL] = len(self.texts), self.terminal
        row_of = np.full(len(self.lexer.winner), -1, np.int32)
        for row, start in enumerate(self._rows):
            row_of[start] = row
        return joined(
            header,
            {
                layout.NAME_START: self.offsets.astype(np.int32),
                layout.NAME_DATA: self.data.astype(np.int32),
                layout.COUNT_ROW: row_of,
                layout.COUNTS: np.concatenate([np.zeros(0, np.int32), *self._rows.values()]),
            },
        )


def _as_bytes(names: Iterable[str | bytes]) -> list[bytes]:
    if isinstance(names, str | bytes | bytearray) or not isinstance(names, Iterable):
        refuse_argument("names", names, "a list of names, each a str or bytes")
    found = [text_bytes("a name", name, "a str or bytes") for name in names]
    if b"" in found:
        raise MaskwrightError("a name is empty; no lexeme is, so leave it out")
    return found


def terminal_of(grammar: Grammar, name: str) -> int:
    """The number of a terminal that can be held to names.

    name : as the grammar names it.

    Raises: UnknownNameError if there is none; MaskwrightError for one that no rule reads from a
    text: ignored, declared, or the layout's newline.
    """
    if not isinstance(name, str):
        refuse_argument("the terminal", name, "a terminal's name, such as 'NAME'")
    terminals = grammar.terminals
    found = [t for t, terminal in enumerate(terminals) if terminal.name == name]
    if not found:
        known = sorted(terminal.name for terminal in terminals if terminal.literal is None and not terminal.is_declared)
        raise UnknownNameError(
            f"grammar {grammar.name} has no terminal {clip(name)}; those with patterns are {', '.join(known[:20])}"
        )
    terminal = found[0]
    newline = None if grammar.layout is None else grammar.layout.newline
    if terminal in grammar.ignored or terminals[terminal].is_declared or terminal == newline:
        raise MaskwrightError(
            f"terminal {name} of grammar {grammar.name} cannot be held to names: no rule reads it from a text"
        )
    return terminal
