"""From a clause of null, boolean, number or string to a shape.

The same clause has the same shape: one object.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from maskwright.analysis.errors import LimitError, SchemaError
from maskwright.analysis.kept import Kept
from maskwright.analysis.marks import mark, part_of_format
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.regex.spell import valid_utf8
from maskwright.analysis.schema import constraints as c
from maskwright.analysis.schema import numbers
from maskwright.analysis.schema.drafts import SCALARS
from maskwright.analysis.schema.lengths import length_table, lengths_exist
from maskwright.analysis.schema.shapes import Numbers, Shape, Spellings, StringLiterals, Strings
from maskwright.analysis.schema.strings import (
    both,
    either,
    format_automaton,
    format_most,
    literals,
    pattern_automaton,
    pattern_parts,
    utf8,
    widest_format,
    without,
)

ANY_STRING = Strings(None, 0, None)
_SPELLED = {None: b"null", False: b"false", True: b"true"}


@lru_cache(maxsize=1)
def any_number() -> Numbers:
    """All numbers."""
    return Numbers(numbers.any_number())


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
    least, most = 0, None
    for one in clause:
        found: Dfa | None = None
        match one:
            case c.Among(values, True):
                texts = utf8(values)
                return StringLiterals(texts) if texts else None
            case c.Among(values, False):
                texts = utf8(values)
                dfa = without(dfa or valid_utf8(), literals(texts)) if texts else dfa
            case c.Length(low, high):
                least, most = max(least, low), _lower(most, high)
            case c.Pattern(text, True, is_counted):
                found, low, high = pattern_parts(text, is_counted)
                least, most = max(least, low), _lower(most, high)
            case c.Pattern(text, False, is_counted):
                other = pattern_automaton(text) if is_counted else pattern_parts(text, False)[0]
                dfa = without(dfa or valid_utf8(), other)
            case c.Format(name, True):
                found = format_automaton(name)
                most = _lower(most, format_most(name))
            case c.Format(name, False):
                widest = widest_format(name)
                dfa = without(dfa or valid_utf8(), widest) if widest is not None else dfa
        if found is not None:
            dfa = found if dfa is None else both(dfa, found)
    if dfa is not None and dfa == valid_utf8():
        dfa = None
    if most is not None and most < least:
        return None
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
    return both(dfa, pattern_automaton(f"^[^]{{{least},}}$")), 0


def _lower(left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return right if left is None else left
    return min(left, right)


def _number(clause: c.Clause, is_natural: bool) -> Numbers | None:
    limits = [one for one in clause if isinstance(one, c.Bound)]
    wholes = [one.with_fraction for one in clause if isinstance(one, c.Whole) and one.is_whole]
    whole = all(wholes) if wholes else None
    dfa: Dfa | None = None
    # where 1.0 is no integer, but 1 is, the spelling decides
    is_natural = is_natural and all(one.with_fraction for one in clause if isinstance(one, c.Whole))
    is_together = bool(limits or wholes or (is_natural and clause))
    if is_together:  # PERF: in one go, without the automata of each
        try:
            dfa = numbers.constrained(frozenset(limits), whole=whole, is_natural=is_natural)
        except LimitError:
            is_together = False
            dfa = numbers.constrained(whole=whole, is_natural=True) if is_natural else None
    for one in clause:
        found: Dfa | None = None
        match one:
            case c.Among(values, True):
                found = numbers.equal_to(values, is_natural)
            case c.Among(values, False):
                found = without(numbers.constrained(), numbers.equal_to(values, False))
            case c.Bound() if not is_together:
                found = numbers.constrained(frozenset([one]))
            case c.Multiple(of, is_multiple):
                found = numbers.constrained(multiples_of=frozenset([of]))
                found = found if is_multiple else without(numbers.constrained(), found)
            case c.Whole(True, with_fraction) if not is_together:
                found = numbers.constrained(whole=with_fraction)
            case c.Whole(False, with_fraction):
                found = without(numbers.constrained(), numbers.constrained(whole=with_fraction))
        if found is not None:
            dfa = found if dfa is None else both(dfa, found)
    return any_number() if dfa is None else None if dfa.is_empty else Numbers(dfa)


@Kept
def _spellings(texts: tuple[bytes, ...]) -> Spellings:
    return Spellings(texts)


@Kept
def _literals(texts: tuple[bytes, ...]) -> StringLiterals:
    return StringLiterals(texts)


def merged(shapes: Sequence[Shape]) -> tuple[Shape, ...]:
    """The same values in fewer shapes: one for all listed ones, one for all numbers.

    A shape that is alone of its kind stays the same object.
    """
    if len(shapes) < 2:
        return tuple(shapes)
    spelled = [one for one in shapes if isinstance(one, Spellings)]
    literal = [one for one in shapes if isinstance(one, StringLiterals)]
    numbers = list(dict.fromkeys(one for one in shapes if isinstance(one, Numbers)))
    strings = list(dict.fromkeys(one for one in shapes if isinstance(one, Strings)))
    if len(spelled) > 1:
        spelled = [_spellings(tuple(sorted({text for one in spelled for text in one.texts})))]
    if any_number() in numbers:
        numbers = [any_number()]
    while len(numbers) > 1:
        right, left = numbers.pop(), numbers.pop()
        numbers.append(Numbers(either(left.automaton, right.automaton)))
    if ANY_STRING in strings:
        strings, literal = [ANY_STRING], []
    elif len(literal) > 1:
        literal = [_literals(tuple(sorted({text for one in literal for text in one.texts})))]
    rest = (one for one in shapes if not isinstance(one, SCALARS))
    return (*spelled, *numbers, *literal, *strings, *rest)
