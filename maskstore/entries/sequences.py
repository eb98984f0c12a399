"""Sequences of entries, by number; and what a `Judge` reads of one."""

from __future__ import annotations

from maskwright.analysis.legality.judge import ENDED_NEWLINE
from maskwright.maskstore.tokens.events import EventCodes

Symbols = tuple[int, ...]


class SequenceTable:
    """Distinct sequences, numbered in order of first use. Number 0 is the empty sequence."""

    def __init__(self) -> None:
        self.sequences: list[Symbols] = [()]
        self._number: dict[Symbols, int] = {(): 0}

    def __getitem__(self, number: int) -> Symbols:
        return self.sequences[number]

    def __len__(self) -> int:
        return len(self.sequences)

    def number(self, sequence: Symbols) -> int:
        """The number of a sequence. A new sequence is added to the table."""
        found = self._number.get(sequence)
        if found is None:
            found = self._number[sequence] = len(self.sequences)
            self.sequences.append(sequence)
        return found


def spoken_sequence(codes: EventCodes, sequence: Symbols) -> Symbols:
    """A sequence of the table as a sequence that a `Judge` reads.

    A newline that ended at some column becomes ENDED_NEWLINE. The end of the newline under way is
    left out.

    Example: with 10 terminals and layout, (11, 3) becomes (3,), since 11 is the event "leave"; and
    (12, 3) becomes (ENDED_NEWLINE, 3), since 12 is the event "newline_at".
    """
    if not sequence or max(sequence) < codes.n_terminals:
        return sequence
    decoded = (codes.decode(symbol) for symbol in sequence)
    return tuple(value if kind == "terminal" else ENDED_NEWLINE for kind, value in decoded if kind != "leave")
