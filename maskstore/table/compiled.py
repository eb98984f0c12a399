"""What the engine reads: a stack automaton as one table, with grammar and vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maskwright.analysis.grammar.grammar import Grammar
from maskwright.maskstore.table import schema
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.masks import n_words

Progress = Callable[[str, int, int], None]
"""Called with the name of the step, how much of it is done, and how much there is."""


@dataclass(frozen=True, eq=False)
class EngineTable:
    """Exact masks for a grammar and a vocabulary.

    table : (n,) int32, read-only; see `maskwright.maskstore.table.schema`.
    counts : sizes on the way to the closed automaton, by name; statistics only.

    While an automaton is not closed yet (`is_final`), both are those of the open one. They are
    replaced when it is closed.
    """

    file_kind = "automaton"
    """What its file says that it is of (`maskstore.file`)."""
    engine = "grammar"
    """What reads texts under these masks (`decoding.engines`)."""
    has_rows = True
    """Whether masks have numbers, so that they can stay on a device as rows (`ResidentRows`)."""

    grammar: Grammar
    vocabulary: Vocabulary
    table: npt.NDArray[np.int32]
    counts: Mapping[str, int]

    @property
    def name(self) -> str:
        """What messages call the grammar."""
        return self.grammar.name

    @property
    def n_words(self) -> int:
        """The number of 32-bit words of a mask: ceil(V / 32)."""
        return n_words(self.vocabulary.size)

    @property
    def is_closed(self) -> bool:
        """Whether all masks are looked up.

        Otherwise the parser is asked about some of the tokens at each mask: the masks are the same,
        and take longer.
        """
        table = self.table
        # the part of the open roots has one more integer than there are roots
        return bool(table[schema.OPEN_ITEMS] - table[schema.OPEN_START] == 1)

    @property
    def is_final(self) -> bool:
        """Whether the table is not replaced any more by that of the closed automaton."""
        return True

    def close(self, progress: Progress | None = None) -> None:
        """Wait until the table is not replaced any more. progress : see `Progress`."""
