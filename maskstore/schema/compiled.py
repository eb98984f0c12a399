"""What the schema engine reads: a schema's or a pattern's tables, with the vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from maskwright.analysis.kept import cached_property
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.schema.shapes import Escapes, Texts
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.masks import n_words

if TYPE_CHECKING:
    from maskwright.analysis.schema.load import JsonSchema
    from maskwright.analysis.schema.text_patterns import Regex


@dataclass(frozen=True, eq=False)
class SchemaTables:
    """Exact masks for the JSON texts of a schema, or the texts of a pattern, and a vocabulary.

    name : what errors call the schema or pattern.
    texts : the JSON texts, or the automaton of all texts.
    table, automata : (n,), (m,) int32, read-only; see `maskwright.maskstore.schema.layout`.
    era : of their content ids: two tables of one vocabulary share what is kept under these ids only
        in the same era (`maskwright.maskstore.schema.eras`).
    constraint : the schema or the expression that they are of, if that is known: endings prefer the
        values that a schema names.
    """

    file_kind = "schema"
    """What its file says that it is of (`maskstore.file`)."""
    engine = "schema"
    """What reads texts under these masks (`decoding.engines`)."""

    name: str
    texts: Texts | Dfa
    vocabulary: Vocabulary
    table: npt.NDArray[np.int32]
    automata: npt.NDArray[np.int32]
    era: int
    constraint: JsonSchema | Regex | None = None

    @property
    def escapes(self) -> Escapes:
        """Which escapes the strings of texts have; of a pattern those that schemas mostly have.

        PERF: where a pattern has no strings, it shares their workspace and the vocabulary's tables.
        """
        return self.texts.escapes if isinstance(self.texts, Texts) else "natural"

    @cached_property
    def compares_items(self) -> bool:
        """Whether items of any kind must differ in some array: the engine reads what it can.

        Then the plain interpreter reads beside it (`decoding.schema.compared`).
        """
        return isinstance(self.texts, Texts) and self.texts.graph.compares_items

    @property
    def n_words(self) -> int:
        """The number of 32-bit words of a mask: ceil(V / 32)."""
        return n_words(self.vocabulary.size)
