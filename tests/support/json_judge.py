"""Whether a JSON value is one of a graph, from the definition of what a graph means.

In: a graph and a JSON text, or its value. Out: True or False. Slow and plain: tests, validation and
the engine's oracle use it.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from maskwright.analysis.nesting import read_json
from maskwright.analysis.schema.shapes import (
    NO_NODE,
    Arrays,
    Contained,
    Numbers,
    Objects,
    SchemaGraph,
    Shape,
    Spellings,
    StringLiterals,
    Strings,
)


class Spelled(str):
    """A number of a JSON text as it is spelled there."""

    __slots__ = ()


class _Members(dict[str, Any]):
    """An object of a JSON text."""

    has_duplicates = False


def _members(pairs: list[tuple[str, Any]]) -> _Members:
    found = _Members(pairs)
    found.has_duplicates = len(found) < len(pairs)
    return found


def parsed(text: str | bytes) -> Any:
    """The value of a JSON text whose numbers keep their spelling.

    Raises: ValueError if it is none, and for `NaN` and `Infinity`, which JSON does not have.
    """

    def fail(name: str) -> Any:
        raise ValueError(f"{name} is not JSON")

    return read_json(text, parse_int=Spelled, parse_float=Spelled, parse_constant=fail, object_pairs_hook=_members)


def is_text_of(graph: SchemaGraph, text: str | bytes) -> bool:
    """Whether a JSON text has a value of the graph. Texts with the same key twice have not."""
    try:
        value = parsed(text)
    except ValueError:
        return False
    return is_instance(graph, value)


def is_instance(graph: SchemaGraph, value: Any) -> bool:
    """Whether a value is one of the graph.

    value : of `parsed`, or as `json.loads` makes them. Numbers that are not `Spelled` are spelled
        without an exponent, and whole floats with a `.0`.
    """
    return _Judge(graph).is_of(value, graph.root)


class _Judge:
    def __init__(self, graph: SchemaGraph) -> None:
        self.nodes = graph.nodes
        self.known: dict[tuple[int, int], bool] = {}
        self.kept: list[Any] = []

    def is_of(self, value: Any, node: int) -> bool:
        if node == NO_NODE:
            return False
        if not isinstance(value, (dict, list)):
            return any(self._has(shape, value) for shape in self.nodes[node])
        key = (id(value), node)
        found = self.known.get(key)
        if found is None:
            self.kept.append(value)
            found = self.known[key] = any(self._has(shape, value) for shape in self.nodes[node])
        return found

    def _has(self, shape: Shape, value: Any) -> bool:
        if isinstance(value, dict):
            return isinstance(shape, Objects) and self._has_object(shape, value)
        if isinstance(value, list):
            return isinstance(shape, Arrays) and self._has_array(shape, value)
        if isinstance(value, str) and not isinstance(value, Spelled):
            return _has_string(shape, value)
        spelled = spelling(value)
        if isinstance(shape, Spellings):
            return spelled in shape.texts
        return isinstance(shape, Numbers) and _is_number(value) and shape.automaton.matches(spelled)

    def _has_object(self, shape: Objects, value: dict[str, Any]) -> bool:
        if getattr(value, "has_duplicates", False):
            return False
        if len(value) < shape.least or (shape.most is not None and len(value) > shape.most):
            return False
        try:
            keys = [key.encode() for key in value]
        except UnicodeEncodeError:
            return False
        if any(needed and key not in keys for key, needed in zip(shape.keys, shape.required, strict=True)):
            return False
        place = {key: i for i, key in enumerate(shape.keys)}
        if shape.ranks is not None:
            behind = max(shape.ranks, default=0) + 1
            ranks = [shape.ranks[place[key]] if key in place else behind for key in keys]
            if ranks != sorted(ranks):
                return False
        return all(
            self.is_of(member, shape.values[place[key]] if key in place else _other(shape, key))
            for key, member in zip(keys, value.values(), strict=True)
        )

    def _has_array(self, shape: Arrays, value: list[Any]) -> bool:
        if len(value) < shape.least or (shape.most is not None and len(value) > shape.most):
            return False
        if shape.is_unique and len({_identity(item) for item in value}) < len(value):
            return False
        if shape.states:
            states = {0}
            for item in value:
                moves = {move for number in states for move in shape.states[number].moves}
                states = {after for node, after in moves if self.is_of(item, node)}
            return any(shape.states[number].is_end for number in states)
        outside = [self.is_of(item, _at(shape, i)) for i, item in enumerate(value)]
        if shape.contained is None:
            return all(outside)
        inside = [self.is_of(item, _at(shape.contained, i)) for i, item in enumerate(value)]
        if not all(a or b for a, b in zip(outside, inside, strict=True)):
            return False
        most = shape.contained.most
        return sum(inside) >= shape.contained.least and (most is None or outside.count(False) <= most)


def _at(shape: Arrays | Contained, offset: int) -> int:
    return shape.prefix[offset] if offset < len(shape.prefix) else shape.items


def _other(shape: Objects, key: bytes) -> int:
    """The node of a key that is not named."""
    automaton = shape.key_automaton
    if automaton is None:
        return shape.others[0] if shape.others else NO_NODE
    state = 0
    for byte in key:
        state = int(automaton.next_state[state, byte])
        if state < 0:
            return NO_NODE
    which = int(automaton.ends[state])
    return shape.others[which] if which >= 0 else NO_NODE


def _has_string(shape: Shape, value: str) -> bool:
    try:
        text = value.encode()
    except UnicodeEncodeError:
        return False
    if isinstance(shape, StringLiterals):
        return text in shape.texts
    if not isinstance(shape, Strings):
        return False
    if len(value) < shape.least or (shape.most is not None and len(value) > shape.most):
        return False
    return shape.automaton is None or shape.automaton.matches(text)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal, Spelled)) and not isinstance(value, bool)


def spelling(value: Any) -> bytes:
    """The JSON text of a null, a boolean or a number."""
    if value is None or isinstance(value, bool):
        return {None: b"null", True: b"true", False: b"false"}[value]
    if isinstance(value, Spelled):
        return value.encode()
    if isinstance(value, int):
        return str(value).encode()
    if isinstance(value, float):
        text = format(Decimal(repr(value)), "f")
        return (text if "." in text else text + ".0").encode()
    return format(value, "f").encode()


def _identity(value: Any) -> Any:
    """What two values have in common that are equal in JSON."""
    if isinstance(value, dict):
        return "object", frozenset((key, _identity(inside)) for key, inside in value.items())
    if isinstance(value, list):
        return "array", tuple(map(_identity, value))
    if isinstance(value, str) and not isinstance(value, Spelled):
        return "string", value
    if _is_number(value):
        return "number", *_value_of_number(spelling(value).decode())
    return "other", repr(value)


def _value_of_number(spelled: str) -> tuple[bool, str, int]:
    """Sign, digits and exponent, of which numbers that are equal have the same.

    >>> _value_of_number("-1.50e1") == _value_of_number("-15"), _value_of_number("-0.0")
    (True, (False, '', 0))
    """
    mantissa, _, exponent = spelled.lower().partition("e")
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    stripped = digits.rstrip("0")
    if not stripped:
        return False, "", 0
    # by way of a Decimal, which has no limit of digits
    shift = int(Decimal(exponent or "0")) - len(fraction) + len(digits) - len(stripped)
    return spelled.startswith("-"), stripped, shift
