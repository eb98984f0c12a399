"""Sets of strings as automata: patterns, formats, and what is made of them.

All automata here are over valid UTF-8 only: the bytes of Unicode scalar values, each in its
shortest form. A string of JSON is what it says, its escapes read.

In: texts of patterns, names of formats, automata. Out: `Dfa`. Knows nothing of schemas. Every
result is kept, so that a second request for the same content is a look-up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

import numpy as np

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import LimitError, SchemaError
from maskwright.analysis.kept import Kept
from maskwright.analysis.marks import part_of_format
from maskwright.analysis.regex import Dfa, difference, ecma, intersect, union
from maskwright.analysis.regex.charset import EVERYTHING
from maskwright.analysis.regex.simplify import whole_copies
from maskwright.analysis.regex.spell import spell, valid_utf8
from maskwright.analysis.regex.tree import Chars, Repeat
from maskwright.analysis.schema.formats import FORMATS, LATER, NOT_REGULAR, WIDENED
from maskwright.analysis.schema.keys import accepted
from maskwright.analysis.schema.lengths import strings_left

MOST_STATES = 20_000
"""BOUND: the states of an automaton of strings, also on the way to it."""
MOST_COMBINED = 40_000
"""BOUND: those of an automaton made of two, also on the way to it: some two seconds."""


def pattern_automaton(text: str) -> Dfa:
    r"""The strings in which a pattern is found.

    text : as ECMA 262 reads it with the flag `u` (`ecma`).

    Raises: SchemaError for what is no pattern, for back-references, and for a pattern whose
    automaton would be too large.
    Cost: that of the subset construction; stopped at a limit. A known text is a look-up.

    Example:
        >>> pattern_automaton("^a+$").matches(b"aa"), pattern_automaton("b").matches(b"abc")
        (True, True)
    """
    found = searched(text)
    if isinstance(found, str):
        raise SchemaError(f"the pattern {clip(text)} cannot be used: {found}")
    return found


@Kept
def searched(text: str) -> Dfa | str:
    """The strings in which a pattern is found, or why it cannot be used.

    PERF: a schema asks several times for a pattern, also for one that is too large.
    """
    try:
        return spell(ecma.parse(text), MOST_STATES, is_search=True)
    except ecma.PatternError as error:
        return f"{error.what}, at offset {error.offset}"
    except LimitError as error:
        return str(error)


@Kept
def repeated_class(text: str) -> tuple[Dfa, int, int | None] | None:
    r"""What a pattern says that only asks for some characters of one set, and no others.

    Returns an automaton of all strings over the set, and the least and the greatest number of
    characters, None for no limit. None for any other pattern, also one that is no pattern. The
    strings are those of `pattern_automaton`, without its copies of the set.

    Example: ``^[a-z]{1,500}$`` gives the automaton of ``^[a-z]*$``, 1 and 500.
    """
    try:
        found = whole_copies(ecma.parse(text))
    except ecma.PatternError:
        return None
    if found is None:
        return None
    ranges, least, most = found
    if ranges == EVERYTHING:
        return valid_utf8(), least, most
    return spell(Repeat(Chars(ranges), 0, None)), least, most


def pattern_parts(text: str, is_counted: bool = True) -> tuple[Dfa, int, int | None]:
    """The strings in which a pattern is found: an automaton, and a least and a greatest length.

    is_counted : False for the strings of any length over the set that `repeated_class` knows.

    Raises: as `pattern_automaton`.
    """
    repeated = repeated_class(text)
    if repeated is None:
        return pattern_automaton(text), 0, None
    return repeated if is_counted else (repeated[0], 0, None)


@Kept
def format_automaton(name: str) -> Dfa | None:
    """The strings of a format; None for one that JSON Schema does not name, which asserts nothing.

    A format may limit the length as well (`LONGEST`): with a counter it would be many times larger.

    Raises: SchemaError for a format that no automaton decides.
    """
    if part_of_format(name) is not None:
        raise SchemaError("a part of another language stands where it cannot be said")
    if name in NOT_REGULAR:
        raise SchemaError(
            f"the format {name} cannot be asserted: {NOT_REGULAR[name]}; remove it, or put a pattern in its place"
        )
    pattern = FORMATS.get(name) or _LATER.get(name)
    return None if pattern is None else spell(ecma.parse(pattern))


_LATER = {name: pattern for _, name, pattern in LATER.values()}


def format_in_draft(name: str, draft: int) -> str:
    """The name that a format has here as a draft reads it; "" if the draft does not name it."""
    since, later, _ = LATER.get(name, (0, name, ""))
    if name in _LATER:
        return ""
    return later if draft >= since else name


@lru_cache(maxsize=8)
def widest_format(name: str) -> Dfa | None:
    """The strings that may be of a format: those that `format_automaton` leaves out are among them.

    All others are none. Like that one, it says nothing of a greatest length.

    Raises: as `format_automaton`.
    """
    return spell(ecma.parse(WIDENED[name])) if name in WIDENED else format_automaton(name)


def _combined(by: Callable[..., Dfa], a: Dfa, b: Dfa) -> Dfa:
    try:
        return by(a, b, max_states=MOST_COMBINED)
    except LimitError:
        raise LimitError(
            f"the patterns, formats and values that are asked for together need an automaton of more than {MOST_COMBINED:,} "
            "states; make the repetitions of one shorter, or say in one pattern what all of them do"
        ) from None


@Kept
def both(a: Dfa, b: Dfa) -> Dfa:
    """The strings of both sets. Raises: LimitError past `MOST_COMBINED` states."""
    return a if a == b else _combined(intersect, a, b)


@Kept
def either(a: Dfa, b: Dfa) -> Dfa:
    """The strings of the one or the other set. Raises: LimitError as `both`."""
    return a if a == b else _combined(union, a, b)


@Kept
def without(a: Dfa, b: Dfa) -> Dfa:
    """The strings of `a` that are not in `b`. Raises: LimitError as `both`."""
    return _combined(difference, a, b)


def counted(dfa: Dfa | None, least: int, most: int | None) -> Dfa:
    """The strings of a set, None for all, with `least` to `most` characters. Raises: as `both`."""
    lengths = pattern_automaton(f"^[^]{{{least},{'' if most is None else most}}}$")
    return lengths if dfa is None else both(dfa, lengths)


def utf8(texts: Iterable[str]) -> tuple[bytes, ...]:
    """Texts in UTF-8, sorted, without those that have none, with half a surrogate pair."""
    found = []
    for text in texts:
        try:
            found.append(text.encode())
        except UnicodeEncodeError:
            continue
    return tuple(sorted(found))


def literals(texts: Iterable[bytes]) -> Dfa:
    """Some strings, by their UTF-8.

    Raises: LimitError if they have together more than `MOST_STATES` different beginnings.
    """
    return _literals(tuple(sorted(set(texts))))


@Kept
def _literals(texts: tuple[bytes, ...]) -> Dfa:
    rows: list[dict[int, int]] = [{}]
    ends: list[int] = []
    for text in texts:
        state = 0
        for byte in text:
            after = rows[state].setdefault(byte, len(rows))
            if after == len(rows):
                rows.append({})
                if len(rows) > MOST_STATES:
                    raise LimitError(
                        f"{len(texts):,} values have more than {MOST_STATES:,} different beginnings; give fewer or shorter ones"
                    )
            state = after
        ends.append(state)
    table = np.full((len(rows), 256), -1, np.int32)
    for state, row in enumerate(rows):
        table[state, list(row)] = list(row.values())
    accepting = np.zeros(len(rows), np.bool_)
    accepting[ends] = True
    return Dfa.minimal(table, accepting)


@Kept
def finite_language(dfa: Dfa, limit: int) -> tuple[bytes, ...] | None:
    """All strings of a set, sorted; None if there are infinitely many, or more than `limit`.

    Cost: O(states * 256 + bytes of the strings).
    """
    if strings_left(dfa)[0] > limit:
        return None
    return tuple(sorted([text for text, _ in accepted(dfa.next_state, dfa.is_accepting)]))
