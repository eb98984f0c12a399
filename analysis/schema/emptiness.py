"""Which subschemas no value satisfies: for people who look for mistakes in a schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from maskwright.analysis.schema.builder import Builder
from maskwright.analysis.schema.documents import DEFAULT_DRAFT, Document, NamesMatter
from maskwright.analysis.schema.drafts import living
from maskwright.analysis.schema.known_keywords import DEPENDENT
from maskwright.analysis.schema.shapes import NO_NODE

_CHOOSING = {"anyOf", "oneOf", "if", "not", "$dynamicRef", "$recursiveRef"} | DEPENDENT
"""Keywords under which a conjunction without a value is nothing unusual."""


class _Thorough(Builder):
    """Nodes by the terms that hold there; all subschemas are read where they stand."""

    def leaf(self, location: int) -> None:
        """Nothing is looked up."""


class Emptiness(NamedTuple):
    """What has no value.

    is_empty : whether no value satisfies the whole schema.
    subschemas : JSON pointers of subschemas that no value satisfies, each by itself.
    together : groups of JSON pointers of subschemas that must hold for one member or item, and that
        no value satisfies together. Only looked for in schemas without alternatives.
    """

    is_empty: bool
    subschemas: tuple[str, ...]
    together: tuple[tuple[str, ...], ...]


def empty_subschemas(
    schema: Any, *, documents: Mapping[str, Any] | None = None, default_draft: int = DEFAULT_DRAFT
) -> Emptiness:
    """The subschemas without a value, as far as they are reached from the whole schema.

    What cannot be said exactly counts as if it were left out.

    Raises: SchemaError for a malformed schema; LimitError past a limit.
    Cost: several times that of `build_graph`.
    """
    try:
        return _looked(_Thorough(Document(schema, documents, default_draft), False, False))
    except NamesMatter:
        return _looked(_Thorough(Document(schema, documents, default_draft, True), False, False))


def _looked(builder: Builder) -> Emptiness:
    document = builder.document
    root = builder.node([2 * document.followed(document.root)])
    if root == NO_NODE:
        return Emptiness(True, (), ())
    reached = set(builder.reached(root))
    alone: dict[int, int] = {}  # a location -> the node of its values
    location = 1
    while location < len(document.schemas):  # locations are found on the way
        # what was made up for a constant stands nowhere; what is not given is not looked at
        is_there = bool(document.pointer(location)) and location not in document.unknown
        if is_there and isinstance(document.schemas[location], dict):
            alone[location] = builder.node([2 * location])
            if alone[location] != NO_NODE:
                builder.reached(alone[location])
        location += 1
    drafts = {}
    for node in {root, *reached, *alone.values()} - {NO_NODE}:
        drafts.update(builder.reached(node))
    alive = living(drafts)
    empty = [place for place, node in alone.items() if node not in alive]
    pointers = dict.fromkeys(document.pointer(place) for place in empty)
    together: dict[tuple[str, ...], None] = {}
    if not any(isinstance(one, dict) and not _CHOOSING.isdisjoint(one) for one in document.schemas):
        for node in sorted(reached - alive):
            terms = builder.terms[node]
            places = tuple(document.pointer(term >> 1) for term in terms)
            if len(terms) > 1 and not any(term & 1 for term in terms) and pointers.keys().isdisjoint(places):
                together[places] = None
    return Emptiness(root not in alive, tuple(pointers), tuple(together))
