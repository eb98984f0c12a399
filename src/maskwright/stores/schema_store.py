"""Stores of JSON schemas and of regular expressions: what makes their matchers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from maskwright.analysis.arguments import need_type, printable
from maskwright.analysis.kept import cached_property, size
from maskwright.analysis.schema.load import JsonSchema
from maskwright.analysis.schema.shapes import Texts
from maskwright.analysis.schema.text_patterns import Regex
from maskwright.maskstore.schema.compiled import SchemaTables
from maskwright.maskstore.schema.write import tables_of
from maskwright.maskstore.vocabulary import VocabularySource, as_vocabulary
from maskwright.stores.base import BaseStore


@dataclass(frozen=True, repr=False, eq=False)
class SchemaStore(SchemaTables, BaseStore):
    """Exact masks for a JSON schema or a regular expression, and a vocabulary.

    constraint : the schema or the expression.

    Its masks are made when they are asked for, and kept for all stores of the vocabulary in this
    process. A pickle holds the constraint and the vocabulary.
    """

    constraint: JsonSchema | Regex

    @cached_property
    def n_bytes(self) -> int:
        """About how many bytes the store holds, beside its vocabulary."""
        held = self.texts.graph if isinstance(self.texts, Texts) else self.texts
        return int(self.table.nbytes) + int(self.automata.nbytes) + size(held)

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
    return SchemaStore.of(tables_of(constraint, as_vocabulary(vocabulary)))
