"""A short way to the drafts of plain subschemas: a type with its own keywords, and some unions.

It gives the drafts that the long way (`builder.py`, by clauses) gives, in a fraction of the time;
what it does not know, and what is malformed as far as it looks, it leaves to the long way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from maskwright.analysis.errors import LimitError, SchemaError
from maskwright.analysis.schema.documents import Document
from maskwright.analysis.schema.drafts import SCALARS, Draft, Patterned, has_value
from maskwright.analysis.schema.keys import MOST_NAMED, key_sets
from maskwright.analysis.schema.objects import is_found
from maskwright.analysis.schema.plain_leaves import GROUPS, are_apart, can_unite, is_union, leaf_shapes
from maskwright.analysis.schema.scalars import ANY_STRING, merged
from maskwright.analysis.schema.shapes import NO_NODE, Arrays, Objects, Shape, StringLiterals
from maskwright.analysis.schema.strings import finite_language, pattern_automaton

_SCALAR_LIST = ["null", "boolean", "number", "string"]
_COMBINED = ("anyOf", "oneOf", "allOf")


class Plain(Protocol):
    """What makes nodes (`builder.py`)."""

    document: Document
    in_order: bool
    is_natural: bool
    has_unique: bool

    def leaf_node(self, shapes: tuple[Shape, ...]) -> int:
        """The node of some shapes of scalars."""

    def one_node(self, term: int, is_leaf: bool | None) -> int:
        """The node of the values that satisfy a term. is_leaf : None if it is not known."""


def plain_drafts(nodes: Plain, location: int) -> list[Draft] | None:
    """The drafts of a plain subschema; None for one that is not."""
    schema = nodes.document.schemas[location]
    if schema is True:
        schema = {}
    if schema.__class__ is not dict:
        return None
    groups = {*map(GROUPS.get, schema)}
    if "x" in groups:
        keyword = next((name for name in _COMBINED if name in schema), None)
        if keyword is None or not is_union(schema, keyword):
            return None
        return _union(nodes, location, keyword)
    types = schema.get("type", nodes)
    if types == "object":  # PERF: most are such; keywords of other types are to be checked
        return None if "s" in groups or "a" in groups else _object(nodes, location, schema)
    if types is nodes:
        names = [*_SCALAR_LIST, "array", "object"]
    elif types.__class__ is str:
        names = [types]
    elif types.__class__ is list:
        names = types
    else:
        return None
    found: list[Draft] = []
    scalars = [name for name in names if name not in ("array", "object")]
    if scalars:
        leaf = {name: value for name, value in schema.items() if GROUPS.get(name) == "s"}
        shapes = leaf_shapes({"type": scalars, **leaf}, nodes.document.drafts[location], nodes.is_natural)
        if shapes is None:
            return None
        found.extend(shapes)
    elif "s" in groups:
        return None  # to be checked
    if "array" in names:
        array = _array(nodes, location, schema)
        if array is None:
            return None
        found.extend(array)
    elif "a" in groups:
        return None
    if "object" in names:
        members = _object(nodes, location, schema)
        if members is None:
            return None
        found.extend(members)
    elif "o" in groups:
        return None
    return found if found or names else None


def _union(nodes: Plain, location: int, keyword: str) -> list[Draft] | None:
    """The drafts of any of some plain branches, of one, or of all of them where there is but one.

    Returns None where some of them may say the same.
    """
    branches = nodes.document.schemas[location][keyword]
    if keyword == "allOf" and len(branches) > 1:
        return None
    every: list[Sequence[Draft]] = []
    passed: set[int] = set()
    is_named = True  # whether each branch of objects has a table of its own
    for i, branch in enumerate(branches):
        if branch.__class__ is not dict:
            return None
        inside = leaf_shapes(branch, nodes.document.drafts[location], nodes.is_natural)
        if inside is not None:
            every.append(inside)
            continue
        place = nodes.document.child(location, branch, keyword, i)
        branch = nodes.document.schemas[place]
        if place in passed or branch.__class__ is not dict or place in nodes.document.unknown:
            return None
        if any([name in branch for name in _COMBINED]):
            return None
        passed.add(place)
        drafts = plain_drafts(nodes, place)
        if drafts is None:
            return None
        every.append(drafts)
        is_named = is_named and (bool(branch.get("properties")) or not any(map(_is_object, drafts)))
    found = [draft for drafts in every for draft in drafts]
    scalars = [draft for draft in found if draft.__class__ in SCALARS]
    n_objects = sum(map(_is_object, found))
    if not can_unite(scalars) or len(found) - len(scalars) - n_objects > 1 or (n_objects > 1 and not is_named):
        return None
    if keyword == "oneOf" and not are_apart(every):
        return None
    inside = merged(scalars)  # type: ignore[arg-type]
    return [*inside, *(draft for draft in found if draft.__class__ is Arrays), *filter(_is_object, found)]


def _is_object(draft: Draft) -> bool:
    return draft.__class__ is Objects or draft.__class__ is Patterned


def child_node(nodes: Plain, location: int, schema: Any, *keys: str) -> int:
    """The node of a subschema under some keys of a location."""
    is_leaf = None
    if schema.__class__ is dict:
        if "$ref" not in schema:
            shapes = leaf_shapes(schema, nodes.document.drafts[location], nodes.is_natural)
            if shapes is not None:
                return nodes.leaf_node(shapes)
            is_leaf = False
    elif schema is False:
        return NO_NODE
    return nodes.one_node(2 * nodes.document.child(location, schema, *keys), is_leaf)


def _count(schema: dict[str, Any], keyword: str) -> int | None:
    """A keyword's number, None if it is not there, -1 if it is not plain."""
    value = schema.get(keyword, schema)
    if value is schema:
        return None
    return value if value.__class__ is int and value >= 0 else -1


def _array(nodes: Plain, location: int, schema: dict[str, Any]) -> list[Draft] | None:
    least, most = _count(schema, "minItems") or 0, _count(schema, "maxItems")
    items, unique = schema.get("items", True), schema.get("uniqueItems", False)
    if (
        least < 0
        or most == -1
        or unique.__class__ is not bool
        or (items.__class__ is not dict and items.__class__ is not bool)
    ):
        return None
    if most is not None and most < least:
        return []
    node = child_node(nodes, location, items, "items")
    if unique and (most is None or most > 1):
        return _unique(nodes, location, items, Arrays((), node, least, most, is_unique=True))
    if node == NO_NODE or most == 0:
        return [] if least else [Arrays((), NO_NODE, 0, 0)]
    return [Arrays((), node, least, most)]


def _unique(nodes: Plain, location: int, items: Any, arrays: Arrays) -> list[Draft] | None:
    """The draft of an array without equal items: strings of any content, or listed ones."""
    document = nodes.document
    place = document.child(location, items, "items")
    schema = document.schemas[place]
    if schema.__class__ is not dict or "$ref" in schema or place in document.unknown:
        return None
    shapes = leaf_shapes(schema, document.drafts[place], nodes.is_natural)
    if shapes is None or len(shapes) != 1:
        return None
    (shape,) = shapes
    if isinstance(shape, StringLiterals):
        n = len(shape.texts)
        arrays = arrays._replace(most=n if arrays.most is None else min(arrays.most, n))
        if n < 2 or arrays.least > n:
            return None
    elif shape != ANY_STRING:
        return None
    nodes.has_unique = True
    return [arrays]


def _object(nodes: Plain, location: int, schema: dict[str, Any]) -> list[Draft] | None:
    properties = schema.get("properties")
    required = schema.get("required")
    others = schema.get("additionalProperties", True)
    named: dict[str, Any] = {}
    if properties is not None or "properties" in schema:
        if properties.__class__ is not dict:
            return None
        named.update(properties)
    needed: set[str] = set()
    if required is not None or "required" in schema:
        if required.__class__ is not list:
            return None
        for name in required:
            if name.__class__ is not str:
                return None
            named.setdefault(name, others)
        needed.update(required)
    if others.__class__ is not dict and others.__class__ is not bool:
        return None
    least, most = _count(schema, "minProperties") or 0, _count(schema, "maxProperties")
    if least < 0 or most == -1:
        return None
    patterns: list[tuple[str, int]] = []
    if "patternProperties" in schema:
        found = _patterns(nodes, location, schema["patternProperties"])
        if found is None or any([is_found(text, name) for text, _ in found for name in named]):
            return None
        patterns = found
    values: list[int] = []
    try:
        order = sorted(named)
        keys = [name.encode() for name in order]
    except (TypeError, AttributeError, UnicodeEncodeError):
        return None
    for name in order:
        if properties and name in properties:
            node = child_node(nodes, location, named[name], "properties", name)
        else:
            node = child_node(nodes, location, others, "additionalProperties")
        if node == NO_NODE and name in needed:
            return []
        values.append(node)
    flags = [name in needed for name in order]
    node = NO_NODE
    if others is not False and not patterns:
        node = child_node(nodes, location, others, "additionalProperties")
    ranks = None
    if nodes.in_order:
        place = {name: i for i, name in enumerate(named)}
        ranks = tuple(place[name] for name in order)
    rest = () if node == NO_NODE else (node,)
    objects = Objects(tuple(keys), tuple(values), tuple(flags), rest, None, least, most, ranks)
    draft: Draft | None = objects
    if patterns:
        draft = _patterned(nodes, location, objects, patterns, others)
    if draft is None:
        return None
    if (least or most is not None) and not has_value(draft, lambda node: node != NO_NODE):
        return []
    return [draft]


def _patterns(nodes: Plain, location: int, patterns: Any) -> list[tuple[str, int]] | None:
    """The patterns of keys, each with its node; None where one has few keys, or is none."""
    if patterns.__class__ is not dict:
        return None
    found: list[tuple[str, int]] = []
    for text, schema in patterns.items():
        if text.__class__ is not str or (schema.__class__ is not dict and schema.__class__ is not bool):
            return None
        try:
            if finite_language(pattern_automaton(text), MOST_NAMED) is not None:
                return None
        except (SchemaError, LimitError):
            return None
        found.append((text, child_node(nodes, location, schema, "patternProperties", text)))
    return found


def _patterned(
    nodes: Plain, location: int, objects: Objects, patterns: list[tuple[str, int]], others: Any
) -> Draft | None:
    """Objects with the classes of keys that some patterns make. others : the schema of all others.

    Returns None for more patterns than are told apart, and for keys of several patterns.
    """
    automata = tuple([pattern_automaton(text) for text, _ in patterns])
    classes: dict[int, int] = {}
    try:
        numbers = key_sets(automata, objects.keys)
    except LimitError:
        return None
    for number in numbers:
        hits = [node for i, (_, node) in enumerate(patterns) if number >> i & 1]
        if len({*hits}) > 1:
            return None
        node = NO_NODE
        if hits:
            node = hits[0]
        elif others is not False:
            node = child_node(nodes, location, others, "additionalProperties")
        if node != NO_NODE:
            classes[number] = node
    return Patterned(objects, automata, classes) if classes else objects
