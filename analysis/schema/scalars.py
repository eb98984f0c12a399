"""From a clause of null, boolean, number or string to a shape, and subschemas of these alone.

The same clause has the same shape: one object.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce
from typing import Any

from maskwright.analysis.errors import LimitError, SchemaError
from maskwright.analysis.kept import Cache, Kept
from maskwright.analysis.marks import mark, part_of_format
from maskwright.analysis.regex import Dfa, ecma
from maskwright.analysis.regex.spell import spell, valid_utf8
from maskwright.analysis.schema import constraints as c
from maskwright.analysis.schema import numbers, strings
from maskwright.analysis.schema.formats import LONGEST
from maskwright.analysis.schema.known_keywords import OF_NUMBERS, OF_STRINGS, SAYING
from maskwright.analysis.schema.lengths import length_table, lengths_exist
from maskwright.analysis.schema.shapes import SCALARS, Numbers, Shape, Spellings, StringLiterals, Strings

ANY_STRING = Strings(None, 0, None)
_SPELLED = {None: b"null", False: b"false", True: b"true"}


@lru_cache(maxsize=1)
def any_number() -> Numbers:
    """All numbers of RFC 8259, with exponents."""
    return Numbers(spell(ecma.parse(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+\-]?[0-9]+)?")))


@Kept
def scalar_shape(kind: str, clause: c.Clause, is_natural: bool) -> Shape | None:
    """The shape of a clause's values; None if there are none.

    clause : without `Refused` and what counts as evaluated.
    is_natural : whether numbers are spelled as people write them, as in `constrained`.

    Raises: SchemaError and LimitError where an automaton cannot be made.
    """
    if kind == c.STRING:
        return _string(clause)
    if kind == c.NUMBER:
        return _number(clause, is_natural)
    values = {None} if kind == c.NULL else {False, True}
    for one in clause:
        if isinstance(one, c.Among):
            values &= one.values if one.is_among else values - one.values
    return Spellings(tuple(sorted(_SPELLED[value] for value in values))) if values else None


def _string(clause: c.Clause) -> Shape | None:
    parts = [part for one in clause if isinstance(one, c.Format) and (part := part_of_format(one.name)) is not None]
    if parts:
        if len(clause) > 1:
            raise SchemaError(
                "a part of another language is combined with other demands on strings: say one of the two"
            )
        return Spellings((mark(parts[0]),))
    dfa: Dfa | None = None
    size = c.Length(0, None)
    for one in clause:
        found: Dfa | None = None
        match one:
            case c.Among(values, True):
                texts = strings.utf8(values)
                return StringLiterals(texts) if texts else None
            case c.Among(values, False):
                texts = strings.utf8(values)
                dfa = strings.without(dfa or valid_utf8(), strings.literals(texts)) if texts else dfa
            case c.Length(low, high):
                size = size.met(low, high)
            case c.Pattern(text, True, is_counted):
                found, low, high = strings.pattern_parts(text, is_counted)
                size = size.met(low, high)
            case c.Pattern(text, False, is_counted):
                other = strings.pattern_automaton(text) if is_counted else strings.pattern_parts(text, False)[0]
                dfa = strings.without(dfa or valid_utf8(), other)
            case c.Format(name, True):
                found = strings.format_automaton(name)
                size = size.met(0, LONGEST.get(name))
            case c.Format(name, False):
                widest = strings.widest_format(name)
                dfa = strings.without(dfa or valid_utf8(), widest) if widest is not None else dfa
        if found is not None:
            dfa = found if dfa is None else strings.both(dfa, found)
    if dfa is not None and dfa == valid_utf8():
        dfa = None
    if size.is_empty:
        return None
    least, most = size.least, size.most
    if dfa is not None:
        if dfa.is_empty or not lengths_exist(dfa, least, most):
            return None
        if least and most is None:
            dfa, least = _with_least(dfa, least)
    return ANY_STRING if dfa is None and least == 0 and most is None else Strings(dfa, least, most)


MOST_FOLDED = 256
"""The states of an automaton, times the characters that it is made to count."""


def _with_least(dfa: Dfa, least: int) -> tuple[Dfa, int]:
    """An automaton and a least length that say the same as these: no length, if that costs little.

    PERF: where lengths matter, each token's is looked at for the mask of a state.
    """
    if length_table(dfa).after(0, 0) >= least:
        return dfa, 0
    if dfa.n_states * least > MOST_FOLDED:
        return dfa, least
    return strings.counted(dfa, least, None), 0


def _number(clause: c.Clause, is_natural: bool) -> Numbers | None:
    limits = frozenset(one for one in clause if isinstance(one, c.Bound))
    wholes = [one.with_fraction for one in clause if isinstance(one, c.Whole) and one.is_whole]
    whole = all(wholes) if wholes else None
    # where 1.0 is no integer, but 1 is, the spelling decides
    is_natural = is_natural and all(one.with_fraction for one in clause if isinstance(one, c.Whole))
    nothing: frozenset[Any] = frozenset()
    every = numbers.constrained(nothing, nothing, None, False)
    parts: list[Dfa] = []
    if limits or wholes or (is_natural and clause):  # PERF: in one go, without the automata of each
        try:
            parts.append(numbers.constrained(limits, nothing, whole, is_natural))
        except LimitError:
            parts += [numbers.constrained(frozenset([one]), nothing, None, False) for one in limits]
            parts.append(numbers.constrained(nothing, nothing, whole, is_natural))
    for one in clause:
        match one:
            case c.Among(values, True):
                parts.append(numbers.equal_to(values, is_natural))
            case c.Among(values, False):
                parts.append(strings.without(every, numbers.equal_to(values, False)))
            case c.Multiple(of, is_multiple):
                found = numbers.constrained(nothing, frozenset([of]), None, False)
                parts.append(found if is_multiple else strings.without(every, found))
            case c.Whole(False, with_fraction):
                wholes_too = numbers.constrained(nothing, nothing, with_fraction, False)
                parts.append(strings.without(every, wholes_too))
    if not parts:
        return any_number()
    dfa = reduce(strings.both, parts)
    return None if dfa.is_empty else Numbers(dfa)


_spellings: Kept[tuple[bytes, ...], Spellings] = Kept(lambda texts: Spellings(texts))
_literals: Kept[tuple[bytes, ...], StringLiterals] = Kept(lambda texts: StringLiterals(texts))


def merged(shapes: Sequence[Shape]) -> tuple[Shape, ...]:
    """The same values in fewer shapes: one for all listed ones, one for all numbers.

    A shape that is alone of its kind stays the same object.
    """
    if len(shapes) < 2:
        return tuple(shapes)
    spelled = [one for one in shapes if isinstance(one, Spellings)]
    literal = [one for one in shapes if isinstance(one, StringLiterals)]
    numbers = list(dict.fromkeys(one for one in shapes if isinstance(one, Numbers)))
    ranges = list(dict.fromkeys(one for one in shapes if isinstance(one, Strings)))
    if len(spelled) > 1:
        spelled = [_spellings(tuple(sorted({text for one in spelled for text in one.texts})))]
    if any_number() in numbers:
        numbers = [any_number()]
    while len(numbers) > 1:
        right, left = numbers.pop(), numbers.pop()
        numbers.append(Numbers(strings.either(left.automaton, right.automaton)))
    if ANY_STRING in ranges:
        ranges, literal = [ANY_STRING], []
    elif len(literal) > 1:
        literal = [_literals(tuple(sorted({text for one in literal for text in one.texts})))]
    rest = (one for one in shapes if not isinstance(one, SCALARS))
    return (*spelled, *numbers, *literal, *ranges, *rest)


# -- subschemas of scalars only

Leaf = tuple[Shape, ...]
"""The shapes of a subschema of scalars. They are one object where the shapes are the same."""
_SCALAR_TYPES = frozenset({"null", "boolean", "integer", "number", "string"})
_SCALAR_CLASSES = frozenset({str, int, float, bool, type(None)})
_OF_SCALARS = OF_NUMBERS | OF_STRINGS | {"const"}
_UNIONS = frozenset({"anyOf", "oneOf"})
_OF_VALUES = _UNIONS | {"type", "enum", "const"}
LEAVES: Cache[tuple[Any, ...], Leaf | None] = Cache()
"""Content -> the shapes; None where they are not of scalars only, or there are none.

PERF: most subschemas are such, and say the same again and again, as ``{"type": "string"}`` beside
one description or another. The shapes of one that was met before are a look-up of 2 us.
"""
_same: Cache[tuple[int, ...], Leaf] = Cache()  # by the identities of the shapes, which it holds


def leaf_content(schema: dict[str, Any], draft: int, is_natural: bool) -> tuple[Any, ...] | None:
    """What the shapes of a subschema of scalars only depend on; None for any other subschema.

    is_natural : as for `scalar_shape`.

    Raises: TypeError where a list stands in a list, so that the content cannot be looked up.
    """
    if "$schema" in schema:
        return None  # it may have a draft of its own
    found: list[Any] = [draft, is_natural]
    for name, value in schema.items():
        if name not in SAYING:
            continue
        kind = value.__class__
        if name in _OF_SCALARS:
            if kind is not str and kind is not int and kind is not float and kind is not bool:
                return None
            found += (name, value, kind)
        elif name == "type":
            names = (value,) if kind is str else value
            if not isinstance(names, tuple | list) or not _SCALAR_TYPES.issuperset(names):
                return None
            found += (name, *names)
        elif name == "enum":
            if kind is not list or not _SCALAR_CLASSES.issuperset(kinds := [*map(type, value)]):
                return None
            found += (name, tuple(value), *(() if kinds.count(str) == len(kinds) else kinds))
        elif name in _UNIONS and kind is list and value:
            inside = [leaf_content(one, draft, is_natural) if one.__class__ is dict else None for one in value]
            if None in inside:
                return None
            found += (name, *inside)
        else:
            return None
    return None if _OF_VALUES.isdisjoint(schema) else tuple(found)


def same_leaf(shapes: Leaf) -> Leaf:
    """The one tuple of some shapes, which are one object each wherever they are the same."""
    return _same.put(tuple(map(id, shapes)), shapes)
