"""Subschemas of scalars only, by what they say: each is worked out once in a process.

PERF: most subschemas are such, and say the same again and again, as ``{"type": "string"}`` beside
one description or another. The shapes of one that was met before are a look-up of 2 us.
"""

from __future__ import annotations

from typing import Any

from maskwright.analysis.kept import Cache
from maskwright.analysis.schema.known_keywords import OF_NUMBERS, OF_STRINGS, SAYING
from maskwright.analysis.schema.shapes import Shape

Leaf = tuple[Shape, ...]
"""The shapes of a subschema of scalars. They are one object where the shapes are the same."""

_SCALAR_TYPES = frozenset({"null", "boolean", "integer", "number", "string"})
_SCALAR_CLASSES = frozenset({str, int, float, bool, type(None)})
_OF_SCALARS = OF_NUMBERS | OF_STRINGS | {"const"}
_UNIONS = frozenset({"anyOf", "oneOf"})

LEAVES: Cache[tuple[Any, ...], Leaf | None] = Cache()
"""Content -> the shapes; None where they are not of scalars only, or there are none."""
_same: Cache[tuple[int, ...], Leaf] = Cache()  # by the identities of the shapes, which it holds


def leaf_content(schema: dict[str, Any], draft: int, is_natural: bool) -> tuple[Any, ...] | None:
    """What the shapes of a subschema of scalars only depend on; None for any other subschema.

    is_natural : as for `scalar_shape`.

    Raises: TypeError where a list stands in a list, so that the content cannot be looked up.
    """
    if "$schema" in schema:
        return None  # it may have a draft of its own
    found: list[Any] = [draft, is_natural]
    is_scalar = False
    for name, value in schema.items():
        if name not in SAYING:
            continue
        kind = value.__class__
        if name in _OF_SCALARS:
            if kind is not str and kind is not int and kind is not float and kind is not bool:
                return None
            is_scalar = is_scalar or name == "const"
            found += (name, value, kind)
        elif name == "type":
            if kind is str:
                if value not in _SCALAR_TYPES:
                    return None
            elif kind is list and _SCALAR_TYPES.issuperset(value):
                value = tuple(value)
            else:
                return None
            is_scalar = True
            found += (name, value)
        elif name == "enum":
            if kind is not list or not _SCALAR_CLASSES.issuperset(kinds := [*map(type, value)]):
                return None
            is_scalar = True
            found += (name, tuple(value), *(() if kinds.count(str) == len(kinds) else kinds))
        elif name in _UNIONS and kind is list and value:
            inside = [leaf_content(one, draft, is_natural) if one.__class__ is dict else None for one in value]
            if None in inside:
                return None
            is_scalar = True
            found += (name, *inside)
        else:
            return None
    return tuple(found) if is_scalar else None


def same_leaf(shapes: Leaf) -> Leaf:
    """The one tuple of some shapes, which are one object each wherever they are the same."""
    return _same.put(tuple(map(id, shapes)), shapes)
