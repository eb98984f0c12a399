"""Stores of JSON schemas and of regular expressions: what makes their matchers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from maskwright.analysis.arguments import need_type, printable
from maskwright.analysis.kept import cached_property, size
from maskwright.analysis.schema.load import JsonSchema
from maskwright.analysis.schema.shapes import Texts
from maskwright.analysis.schema.text_patterns import Regex
from maskwright.maskstore.file.fileformat import save_store
from maskwright.maskstore.schema.build import tables_of
from maskwright.maskstore.schema.compiled import SchemaTables
from maskwright.maskstore.table.compiled import Progress
from maskwright.maskstore.vocabulary import VocabularySource, as_vocabulary
from maskwright.stores.texts import MakesTexts


@dataclass(frozen=True, repr=False, eq=False)
class SchemaStore(MakesTexts, SchemaTables):
    """Exact masks for a JSON schema or a regular expression, and a vocabulary.

    constraint : the schema or the expression.

    Its masks are made when they are asked for, and kept for all stores of the vocabulary in this
    process. A pickle holds the constraint and the vocabulary.
    """

    constraint: JsonSchema | Regex

    @property
    def is_closing(self) -> bool:
        """False: nothing is done in the background, as may be for a `Store`."""
        return False

    def close(self, progress: Progress | None = None) -> None:
        """Nothing: the store is complete. A `Store` that was built lazily waits here."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the schema or the pattern, and the vocabulary, to the file at `path`.

        `load_store` builds the store again.

        Raises: as `save_store`; StoreError for a schema of values that JSON does not have.
        """
        save_store(self, path)

    @cached_property
    def n_bytes(self) -> int:
        """About how many bytes the store holds, beside its vocabulary."""
        held = self.texts.graph if isinstance(self.texts, Texts) else self.texts
        return int(self.table.nbytes) + int(self.automata.nbytes) + size(held)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Mapping[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return build_schema_store, (self.constraint, self.vocabulary)

    def __repr__(self) -> str:
        kilobytes = (self.table.nbytes + self.automata.nbytes) / 1e3
        return f"<SchemaStore {printable(self.name)} x {printable(self.vocabulary.name)}: {kilobytes:.1f} kB>"


def build_schema_store(constraint: JsonSchema | Regex, vocabulary: VocabularySource) -> SchemaStore:
    """The store of a JSON schema or a regular expression, and a vocabulary.

    constraint : what `load_schema`, `load_regex` or `load_choice` returns.
    vocabulary : what `load_vocabulary` accepts.

    Raises: LimitError if the tables grow past their limits; DeadEndError if nothing matches the
    expression.
    Cost: 10 us for each node of the schema.
    """
    need_type("the constraint", constraint, (JsonSchema, Regex), "what load_schema, load_regex or load_choice returns")
    made = tables_of(constraint, as_vocabulary(vocabulary))
    return SchemaStore(made.name, made.texts, made.vocabulary, made.table, made.automata, made.era, constraint)
