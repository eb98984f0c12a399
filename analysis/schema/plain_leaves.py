"""The shapes of schemas of scalars only, by their content: the leaves of the short way.

In: a schema as Python values. Out: shapes, the same objects for the same content, for all schemas
of the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from maskwright.analysis.errors import LimitError, SchemaError
from maskwright.analysis.kept import Cache
from maskwright.analysis.marks import MARK
from maskwright.analysis.schema import constraints as c
from maskwright.analysis.schema.clauses import joined
from maskwright.analysis.schema.documents import Document
from maskwright.analysis.schema.drafts import Draft, Patterned
from maskwright.analysis.schema.keywords import OF_NUMBERS, OF_STRINGS, Keywords, decimal, values_normal
from maskwright.analysis.schema.scalars import ANY_STRING, merged, scalar_shape
from maskwright.analysis.schema.shapes import Numbers, Objects, Shape, Spellings, StringLiterals, Strings

_SCALAR = " ".join(sorted(OF_NUMBERS | OF_STRINGS))
_OBJECT = "properties required additionalProperties patternProperties minProperties maxProperties"
_ARRAY = "items minItems maxItems uniqueItems"
_OTHER = (
    "enum const $ref $dynamicRef $recursiveRef allOf anyOf oneOf not if then else dependencies dependentRequired "
    "dependentSchemas propertyNames unevaluatedProperties prefixItems additionalItems contains minContains "
    "maxContains unevaluatedItems"
)
GROUPS = {
    name: group
    for group, names in (("s", _SCALAR), ("o", _OBJECT), ("a", _ARRAY), ("x", _OTHER), ("t", "type"))
    for name in names.split()
}
"""Keyword -> what it is about; keywords that are not there say nothing of values."""

_SCALAR_TYPES = frozenset({"null", "boolean", "integer", "number", "string"})
_SCALAR_CLASSES = frozenset({str, int, float, bool, type(None)})
_LEAF_KEYS = frozenset({"type", "enum", "const", *_SCALAR.split()})

_leaves: Cache[tuple[Any, ...], tuple[Shape, ...] | None] = Cache()
_same: Cache[tuple[int, ...], tuple[Shape, ...]] = Cache()  # by the identities of the shapes, which it holds


def leaf_shapes(schema: dict[str, Any], draft: int, is_natural: bool) -> tuple[Shape, ...] | None:
    """The shapes of a schema of scalars only, the same ones for the same content.

    is_natural : as for `scalar_shape`.

    Returns None for any other schema, and for one that is malformed, empty or cannot be said.
    """
    try:
        key = _leaf_key(schema, draft, is_natural)
        found: Any = _leaves.get(key, _leaves) if key else None
    except TypeError:  # a list inside a list
        return None
    if found is _leaves:
        if "anyOf" in schema or "oneOf" in schema:
            keyword = "anyOf" if "anyOf" in schema else "oneOf"
            found = _made_union(schema[keyword], draft, is_natural, keyword)
        else:
            found = _made_leaf({name: schema[name] for name in schema if name in _LEAF_KEYS}, draft, is_natural)
        found = _leaves.put(key, found)
    return found  # type: ignore[no-any-return]


def _leaf_key(schema: dict[str, Any], draft: int, is_natural: bool) -> tuple[Any, ...] | None:
    """What the shapes of a schema of scalars only depend on; None for any other schema."""
    if "$schema" in schema:
        return None  # it may have a draft of its own
    key: list[Any] = [draft, is_natural]
    is_scalar = False
    for name, value in schema.items():
        group = GROUPS.get(name)
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
            if value.__class__ is not list or not _SCALAR_CLASSES.issuperset(kinds := [*map(type, value)]):
                return None
            is_scalar = True
            key += (name, tuple(value), *(() if kinds.count(str) == len(kinds) else kinds))
        elif (name == "anyOf" or name == "oneOf") and is_union(schema, name):
            inside = [_leaf_key(branch, draft, is_natural) if branch.__class__ is dict else None for branch in value]
            return None if None in inside else (name, *inside)
        else:
            return None
    return tuple(key) if is_scalar else None


def is_union(schema: dict[str, Any], keyword: str) -> bool:
    """Whether a schema has some branches of a keyword, and says nothing else."""
    branches = schema[keyword]
    return (
        bool(branches)
        and branches.__class__ is list
        and not any([GROUPS.get(name) for name in schema if name != keyword])
    )


def _made_union(branches: list[Any], draft: int, is_natural: bool, keyword: str) -> tuple[Shape, ...] | None:
    """The shapes of any of some leaves, or of one. None where some of them may say the same."""
    every: list[Sequence[Shape]] = []
    for branch in branches:
        shapes = leaf_shapes(branch, draft, is_natural)
        if shapes is None:
            return None
        every.append(shapes)
    found = [shape for shapes in every for shape in shapes]
    if not can_unite(found) or (keyword == "oneOf" and not are_apart(every)):
        return None
    shapes = merged(found)
    return _same.put(tuple(map(id, shapes)), shapes)


def can_unite(scalars: Sequence[Draft]) -> bool:
    """Whether a union of scalars has no two shapes that may say the same."""
    kinds = [shape.__class__ for shape in scalars]
    return kinds.count(Numbers) < 2 and (kinds.count(Strings) < 2 or scalars.count(ANY_STRING) == kinds.count(Strings))


def are_apart(branches: Sequence[Sequence[Draft]]) -> bool:
    """Whether it is plain that no value is of two branches."""
    kinds: set[type] = set()
    texts: set[tuple[type, bytes]] = set()
    for branch in branches:
        here: set[type] = set()
        some: list[tuple[type, bytes]] = []
        for shape in branch:
            kind = shape.__class__
            if isinstance(shape, (StringLiterals, Spellings)):
                if shape.texts and max(shape.texts)[:1] >= bytes((MARK,)):
                    return False  # what a part of another language says is not known here
                some += [(kind, text) for text in shape.texts]
            else:
                here.add(Objects if kind is Patterned else kind)
        if not kinds.isdisjoint(here) or not texts.isdisjoint(some):
            return False
        kinds |= here
        texts.update(some)
    return Strings not in kinds or not any(kind is StringLiterals for kind, _ in texts)


def listed_values(schema: dict[str, Any], draft: int) -> frozenset[Any] | None:
    """The scalars of a subschema that lists some and says nothing else; else None.

    Two of these values are equal if they are the same in JSON: strings are themselves, numbers
    `Decimal`, the others their texts in a tuple.
    """
    values: frozenset[Any] | None = None
    types = None
    for name, value in schema.items():
        group = GROUPS.get(name)
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


def _made_leaf(schema: dict[str, Any], draft: int, is_natural: bool) -> tuple[Shape, ...] | None:
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
            shape = scalar_shape(kind, clause, kind == c.NUMBER and is_natural)
            if shape is not None:
                found.append(shape)
    except (SchemaError, LimitError):
        return None
    shapes = merged(found)
    return _same.put(tuple(map(id, shapes)), shapes) if shapes else None
