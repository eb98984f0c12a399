"""From a JSON Schema to the graph of its values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from maskwright.analysis.errors import UnknownNameError
from maskwright.analysis.schema.builder import Builder
from maskwright.analysis.schema.documents import DEFAULT_DRAFT, Document, NamesMatter
from maskwright.analysis.schema.finish import Finisher
from maskwright.analysis.schema.shapes import NO_NODE, SchemaGraph

DRAFT_NUMBERS = (4, 6, 7, 2019, 2020)


def build_graph(
    schema: Any,
    *,
    documents: Mapping[str, Any] | None = None,
    key_order: Literal["any", "schema"] = "any",
    is_natural: bool = False,
    lenient: bool = False,
    default_draft: int = DEFAULT_DRAFT,
) -> SchemaGraph:
    """The values of a schema.

    A JSON text is an instance if and only if the graph has its value, except that numbers whose
    value matters are spelled without an exponent, and that `format` asserts what it says.

    schema : as Python values: a dict or a bool. Drafts 4, 6, 7, 2019-09 and 2020-12, by `$schema`.
    documents : URI -> schema, for references to other documents. Nothing is loaded from elsewhere.
    key_order : "schema" for texts whose members keep the order of the schema's `properties`.
    is_natural : whether numbers whose value matters are spelled as people write them: an integer is
        not `1.0`, nothing is `-0`, and what `enum` and `const` list has no zeros at its end.
    lenient : whether to leave out what cannot be said exactly, so that more values are allowed.
        What is left out is in the graph.
    default_draft : 4, 6, 7, 2019 or 2020, for a schema without `$schema`.

    Raises: SchemaError, with a JSON pointer, for a schema that is malformed, that has no instance,
    or that cannot be said exactly; UnknownNameError for another order or draft.

    Example:
        >>> build_graph({"enum": ["a", None]}).nodes
        ((Spellings(texts=(b'null',)), StringLiterals(texts=(b'a',))),)
    """
    if key_order not in ("any", "schema"):
        raise UnknownNameError(f"key_order is {key_order!r}; expected 'any' or 'schema'")
    if default_draft not in DRAFT_NUMBERS:
        raise UnknownNameError(f"default_draft is {default_draft!r}; expected one of {DRAFT_NUMBERS}")
    return _built(schema, documents, key_order == "schema", is_natural, lenient, default_draft)


def _built(
    schema: Any,
    documents: Mapping[str, Any] | None,
    in_order: bool,
    is_natural: bool,
    lenient: bool,
    default_draft: int,
) -> SchemaGraph:
    """As `build_graph`."""
    try:
        document = Document(schema, documents, default_draft)
        return _graph(Builder(document, in_order, is_natural), lenient)
    except NamesMatter:
        document = Document(schema, documents, default_draft, True)
        return _graph(Builder(document, in_order, is_natural), lenient)


def _graph(builder: Builder, lenient: bool) -> SchemaGraph:
    document = builder.document
    root = builder.node([2 * document.followed(document.root)])
    drafts = {} if root == NO_NODE else builder.reached(root)
    return Finisher(builder, drafts, lenient).graph(root)
