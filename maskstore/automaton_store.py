"""The store of `longest` lexing: a closed stack automaton with its grammar and vocabulary, ready for decoders."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from maskwright.analysis.grammar.grammar import Grammar
from maskwright.maskstore.automaton.stack_automaton import build_automaton
from maskwright.maskstore.file.portable import Origin, Portable
from maskwright.maskstore.masks import n_words
from maskwright.maskstore.table.engine_table import engine_table
from maskwright.maskstore.vocabulary import Vocabulary

if TYPE_CHECKING:
    from maskwright.decoding.engine.matcher import Batch, Matcher

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class AutomatonStore(Portable):
    """Exact masks for a grammar and a vocabulary.

    table : (n,) int32, read-only; see `maskwright.maskstore.table.engine_table`.
    counts : sizes on the way to the closed automaton; statistics only.
    origin : the file that it was loaded from; a pickle names it, and has the content otherwise (`portable`).
    """

    grammar: Grammar
    vocabulary: Vocabulary
    table: npt.NDArray[np.int32]
    counts: Mapping[str, int]
    origin: Origin | None = field(default=None, init=False, compare=False, repr=False)

    @property
    def n_words(self) -> int:
        """Words of a bitmask: ceil(V / 32)."""
        return n_words(self.vocabulary.size)

    def matcher(self, max_rollback: int = 256) -> Matcher:
        """The state of one text, at its start: a `maskwright.Matcher`. max_rollback : tokens that `rollback` can take back."""
        # the layer to the right, which a store does not depend on: it is imported when somebody decodes
        from maskwright.decoding.engine.matcher import Matcher

        return Matcher(self, max_rollback)

    def batch(self, size: int, max_rollback: int = 256, n_threads: int = 1) -> Batch:
        """The states of several texts, at their starts: a `maskwright.Batch`."""
        from maskwright.decoding.engine.matcher import Batch

        return Batch(self, size, max_rollback, n_threads)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the store to a file; see `maskwright.maskstore.file.fileformat.save_store`."""
        from maskwright.maskstore.file.fileformat import save_store

        save_store(self, path)

    def __repr__(self) -> str:
        return (
            f"<AutomatonStore {self.grammar.name} x {self.vocabulary.name}: {self.counts.get('nodes', 0):,} nodes, "
            f"{self.counts.get('edges', 0):,} edges, {self.counts.get('masks', 0):,} masks, {self.table.nbytes / 1e6:.1f} MB>"
        )


def build_automaton_store(grammar: Grammar, vocabulary: Vocabulary, progress: Progress | None = None) -> AutomatonStore:
    """Compile a grammar and a vocabulary completely. Raises as `build_store`. Cost for python.lark: 10 CPU-s at V = 32k."""
    automaton = build_automaton(grammar, vocabulary, progress)
    return AutomatonStore(grammar, vocabulary, engine_table(grammar, vocabulary, automaton), automaton.counts)
