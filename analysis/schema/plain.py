"""A short way to the shapes of plain subschemas: a type with its own keywords, no combinators.

It gives the shapes that the long way (`builder.py`, by clauses) gives, in a fraction of the time;
what it does not know, and all that is malformed, it leaves to the long way.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Protocol

from maskwright.analysis.errors import LimitError, SchemaError
from maskwright.analysis.schema import constraints as c
from maskwright.analysis.schema.clauses import joined
from maskwright.analysis.schema.documents import Document
from maskwright.analysis.schema.kept import size
from maskwright.analysis.schema.keywords import Keywords, decimal, values_normal
from maskwright.analysis.schema.scalars import merged, scalar_shape
from maskwright.analysis.schema.shapes import NO_NODE, Arrays, Numbers, Objects, Shape, Strings

_SCALAR = "minLength maxLength pattern format minimum maximum exclusiveMinimum exclusiveMaximum multipleOf"
_OBJECT = "properties required additionalProperties"
_ARRAY = "items minItems maxItems"
_OTHER = (
    "enum const $ref $dynamicRef $recursiveRef allOf anyOf oneOf not if then else dependencies dependentRequired "
    "dependentSchemas patternProperties propertyNames minProperties maxProperties unevaluatedProperties prefixItems "
    "additionalItems contains minContains maxContains uniqueItems unevaluatedItems"
)
_GROUPS = {
    name: group
    for group, names in (("s", _SCALAR), ("o", _OBJECT), ("a", _ARRAY), ("x", _OTHER), ("t", "type"))
    for name in names.split()
}
"""Keyword -> what it is about; keywords that are not there say nothing of values."""

_SCALAR_TYPES = frozenset({"null", "boolean", "integer", "number", "string"})
_SCALAR_LIST = ["null", "boolean", "number", "string"]
_LEAF_KEYS = frozenset({"type", "enum", "const", *_SCALAR.split()})

MOST_KEPT = 50_000
"""BOUND: leaves whose shapes are kept."""

MOST_BYTES = 1 << 26
"""BOUND: the bytes of their automata."""

_leaves: dict[Any, tuple[Shape, ...] | None] = {}
_held = [0]
_same: dict[tuple[int, ...], tuple[Shape, ...]] = {}  # by the identities of the shapes, which it holds


class Plain(Protocol):
    """What makes nodes (`builder.py`)."""

    document: Document
    in_order: bool

    def leaf_node(self, shapes: tuple[Shape, ...]) -> int:
        """The node of some shapes of scalars."""

    def node(self, terms: list[int]) -> int:
        """The node of the values that satisfy all terms."""


def leaf_shapes(schema: dict[str, Any], draft: int) -> tuple[Shape, ...] | None:
    """The shapes of a schema of scalars only, the same ones for the same content.

    Returns None for any other schema, and for one that is malformed, empty or cannot be said.
    """
    try:
        key = _leaf_key(schema, draft)
        found = _leaves.get(key, _leaves) if key else None
    except TypeError:  # a list inside a list
        return None
    if found is _leaves:
        if len(_leaves) >= MOST_KEPT or _held[0] > MOST_BYTES:
            _leaves.clear()
            _same.clear()
            _held[0] = 0
        if "anyOf" in schema:
            found = _made_union(schema["anyOf"], draft)
        else:
            found = _made_leaf({name: schema[name] for name in schema if name in _LEAF_KEYS}, draft)
            _held[0] += size(tuple([one[0] for one in found])) if found else 0  # an automaton comes first
        _leaves[key] = found
    return found  # type: ignore[return-value]


def _leaf_key(schema: dict[str, Any], draft: int) -> tuple[Any, ...] | None:
    """What the shapes of a schema of scalars only depend on; None for any other schema."""
    key: list[Any] = [draft]
    is_scalar = False
    for name, value in schema.items():
        group = _GROUPS.get(name)
        if group is None:
            continue
        if group == "t":
            if value.__class__ is str:
                if value not in _SCALAR_TYPES:
                    return None
            elif value.__class__ is list:
                if not _SCALAR_TYPES.issuperset(value):
                    return None
                value = tuple(value)
            else:
                return None
            is_scalar = True
            key += (name, value)
        elif group == "s" or name == "const":
            kind = value.__class__
            if kind is not str and kind is not int and kind is not float and kind is not bool:
                return None
            is_scalar = is_scalar or name == "const"
            key += (name, value, kind)
        elif name == "enum":
            if value.__class__ is not list or not {each.__class__ for each in value} <= {str}:
                return None
            is_scalar = True
            key += (name, tuple(value))
        elif name == "anyOf" and is_union(schema):
            inside = [_leaf_key(branch, draft) if branch.__class__ is dict else None for branch in value]
            return None if None in inside else (name, *inside)
        else:
            return None
    return tuple(key) if is_scalar else None


def is_union(schema: dict[str, Any]) -> bool:
    """Whether a schema has some branches of `anyOf`, and says nothing else."""
    branches = schema["anyOf"]
    return (
        bool(branches)
        and branches.__class__ is list
        and not any(_GROUPS.get(name) for name in schema if name != "anyOf")
    )


def _made_union(branches: list[Any], draft: int) -> tuple[Shape, ...] | None:
    """The shapes of any of some leaves; None where some of them may say the same."""
    found: list[Shape] = []
    for branch in branches:
        shapes = leaf_shapes(branch, draft)
        if shapes is None:
            return None
        found.extend(shapes)
    kinds = [shape.__class__ for shape in found]
    if kinds.count(Numbers) > 1 or kinds.count(Strings) > 1:
        return None
    shapes = merged(found)
    return _same.setdefault(tuple(map(id, shapes)), shapes)


def listed_values(schema: dict[str, Any], draft: int) -> frozenset[Any] | None:
    """The scalars of a subschema that lists some and says nothing else; else None.

    Two of these values are equal if they are the same in JSON: strings are themselves, numbers
    `Decimal`, the others their texts in a tuple.
    """
    values: frozenset[Any] | None = None
    types = None
    for name, value in schema.items():
        group = _GROUPS.get(name)
        if group is None:
            continue
        if name == "enum" and value.__class__ is list and value:
            some = frozenset([_scalar(each) for each in value])
        elif name == "const" and draft > 4:
            some = frozenset((_scalar(value),))
        elif group == "t" and value.__class__ is str:
            types = value
            continue
        else:
            return None
        if None in some:
            return None
        values = some if values is None else values & some
    if values is None or types is None:
        return values
    if types == "string":
        return frozenset(value for value in values if value.__class__ is str)
    if types == "integer" and draft > 4:
        return frozenset(value for value in values if isinstance(value, Decimal) and value == value.to_integral_value())
    return None


def _scalar(value: Any) -> Any:
    """A scalar, equal to another one if they are the same in JSON; None for all else."""
    if value.__class__ is str:
        return value
    if value is None or value.__class__ is bool:
        return (repr(value),)
    return decimal(value) if isinstance(value, (int, float)) else None


def _made_leaf(schema: dict[str, Any], draft: int) -> tuple[Shape, ...] | None:
    """The shapes of a leaf by the long way."""
    document = Document(schema, None, draft)
    words = Keywords(document, document.root, False)
    try:
        parts = [words.clauses()]
        if "enum" in schema:
            parts.append(values_normal(document, schema["enum"], lambda what: words.error("enum", what)))
        if "const" in schema and draft > 4:
            parts.append(values_normal(document, [schema["const"]], lambda what: words.error("const", what)))
        found: list[Shape] = []
        for kind in c.TYPES:
            if any(kind not in part for part in parts):
                continue
            clause: c.Clause | None = ()
            for part in parts:
                for one in part[kind][0]:
                    clause = None if clause is None else joined(kind, clause, (one,))
            if clause is None:
                continue
            if kind in (c.ARRAY, c.OBJECT) or any(isinstance(one, c.Refused) for one in clause):
                return None
            shape = scalar_shape(kind, clause)
            if shape is not None:
                found.append(shape)
    except (SchemaError, LimitError):
        return None
    shapes = merged(found)
    return _same.setdefault(tuple(map(id, shapes)), shapes) if shapes else None


def plain_shapes(nodes: Plain, location: int) -> list[Shape] | None:
    """The shapes of a plain subschema; None for one that is not."""
    schema = nodes.document.schemas[location]
    if schema is True:
        schema = {}
    if schema.__class__ is not dict:
        return None
    groups = {_GROUPS.get(name) for name in schema}
    if "x" in groups:
        return _union(nodes, location, schema) if "anyOf" in schema and is_union(schema) else None
    types = schema.get("type", nodes)
    if types is nodes:
        names = [*_SCALAR_LIST, "array", "object"]
    elif types.__class__ is str:
        names = [types]
    elif types.__class__ is list:
        names = types
    else:
        return None
    found: list[Shape] = []
    scalars = [name for name in names if name not in ("array", "object")]
    if scalars:
        leaf = {name: value for name, value in schema.items() if _GROUPS.get(name) == "s"}
        shapes = leaf_shapes({"type": scalars, **leaf}, nodes.document.drafts[location])
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


def _union(nodes: Plain, location: int, schema: dict[str, Any]) -> list[Shape] | None:
    """The shapes of any of some plain branches; None where some of them may say the same."""
    scalars: list[Shape] = []
    arrays: list[Shape] = []
    objects: list[Shape] = []
    passed: set[int] = set()
    is_named = True  # whether each branch of objects has a table of its own, so that none says what another one says
    for i, branch in enumerate(schema["anyOf"]):
        if branch.__class__ is not dict:
            return None
        inside = leaf_shapes(branch, nodes.document.drafts[location]) if "$ref" not in branch else None
        if inside is not None:
            scalars.extend(inside)
            continue
        place = nodes.document.child(location, branch, "anyOf", i)
        branch = nodes.document.schemas[place]
        if place in passed or branch.__class__ is not dict or place in nodes.document.unknown or "anyOf" in branch:
            return None
        passed.add(place)
        shapes = plain_shapes(nodes, place)
        if shapes is None:
            return None
        for shape in shapes:
            if shape.__class__ is Objects:
                is_named = is_named and bool(branch.get("properties"))
                objects.append(shape)
            else:
                (arrays if shape.__class__ is Arrays else scalars).append(shape)
    kinds = [shape.__class__ for shape in scalars]
    if kinds.count(Numbers) > 1 or kinds.count(Strings) > 1 or len(arrays) > 1:
        return None
    if len(objects) > 1 and not is_named:
        return None
    return list(merged([*scalars, *arrays, *objects]))


def child_node(nodes: Plain, location: int, schema: Any, *keys: str) -> int:
    """The node of a subschema under some keys of a location."""
    if schema.__class__ is dict:
        if "$ref" not in schema:
            shapes = leaf_shapes(schema, nodes.document.drafts[location])
            if shapes is not None:
                return nodes.leaf_node(shapes)
    elif schema is False:
        return NO_NODE
    return nodes.node([2 * nodes.document.child(location, schema, *keys)])


def _count(schema: dict[str, Any], keyword: str, otherwise: int | None) -> int | None:
    """A keyword's number, `otherwise` if it is not there, -1 if it is not plain."""
    value = schema.get(keyword, schema)
    if value is schema:
        return otherwise
    return value if value.__class__ is int and value >= 0 else -1


def _array(nodes: Plain, location: int, schema: dict[str, Any]) -> list[Shape] | None:
    least, most = _count(schema, "minItems", 0), _count(schema, "maxItems", None)
    items = schema.get("items", True)
    if least is None or least < 0 or most == -1 or (items.__class__ is not dict and items.__class__ is not bool):
        return None
    if most is not None and most < least:
        return []
    node = child_node(nodes, location, items, "items")
    if node == NO_NODE or most == 0:
        return [] if least else [Arrays((), NO_NODE, 0, 0)]
    return [Arrays((), node, least, most)]


def _object(nodes: Plain, location: int, schema: dict[str, Any]) -> list[Shape] | None:
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
    keys: list[bytes] = []
    values: list[int] = []
    flags: list[bool] = []
    try:
        order = sorted(named)
        for name in order:
            keys.append(name.encode())
    except (TypeError, AttributeError, UnicodeEncodeError):
        return None
    for name in order:
        if properties and name in properties:
            node = child_node(nodes, location, named[name], "properties", name)
        else:
            node = child_node(nodes, location, others, "additionalProperties")
        if name in needed:
            if node == NO_NODE:
                return []
            flags.append(True)
        else:
            flags.append(False)
        values.append(node)
    node = NO_NODE if others is False else child_node(nodes, location, others, "additionalProperties")
    ranks = None
    if nodes.in_order:
        place = {name: i for i, name in enumerate(named)}
        ranks = tuple(place[name] for name in order)
    rest = () if node == NO_NODE else (node,)
    return [Objects(tuple(keys), tuple(values), tuple(flags), rest, None, 0, None, ranks)]
