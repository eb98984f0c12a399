"""What the engine reads: a closed stack automaton as one table, with grammar and vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maskwright.analysis.grammar.grammar import Grammar
from maskwright.maskstore.automaton.stack_automaton import build_automaton
from maskwright.maskstore.table.write import engine_table
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.masks import n_words

Progress = Callable[[str, int, int], None]
"""Called with the name of the step, how much of it is done, and how much there is."""


@dataclass(frozen=True, eq=False)
class EngineTable:
    """Exact masks for a grammar and a vocabulary.

    table : (n,) int32, read-only; see `maskwright.maskstore.table.schema`.
    counts : sizes on the way to the closed automaton, by name; statistics only.
    """

    grammar: Grammar
    vocabulary: Vocabulary
    table: npt.NDArray[np.int32]
    counts: Mapping[str, int]

    @property
    def n_words(self) -> int:
        """The number of 32-bit words of a mask: ceil(V / 32)."""
        return n_words(self.vocabulary.size)


def build_engine_table(grammar: Grammar, vocabulary: Vocabulary, progress: Progress | None = None) -> EngineTable:
    """Compile a grammar and a vocabulary completely.

    progress : see `Progress`.

    Raises: as `build_automaton` and `engine_table`.

    Cost: 10 CPU-s for python.lark at V = 32k.
    """
    automaton = build_automaton(grammar, vocabulary, progress)
    return EngineTable(grammar, vocabulary, engine_table(grammar, vocabulary, automaton), automaton.counts)
