"""The values of scalars, listed and counted: what items that must differ have to choose from."""

from __future__ import annotations

from collections.abc import Sequence

from maskwright.analysis.kept import Kept
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.schema.drafts import Doubtful, Draft, Patterned
from maskwright.analysis.schema.scalars import merged
from maskwright.analysis.schema.shapes import (
    NO_NODE,
    Arrays,
    Numbers,
    Objects,
    Shape,
    Spellings,
    StringLiterals,
    Strings,
)
from maskwright.analysis.schema.strings import both, finite_language, pattern_automaton

MOST_LISTED = 4096
"""BOUND: values of an item of a unique array that are listed.

More are as good as infinitely many.
"""

MOST_COUNTED = 64
"""BOUND: characters up to which the strings of an item of a unique array are listed."""


def listed_texts(shape: Shape) -> tuple[bytes, ...] | None:
    """One text of each value of scalars; None if there are more than `MOST_LISTED`."""
    if isinstance(shape, Numbers):
        return listed_numbers(shape.automaton)
    if isinstance(shape, Strings):
        return listed_strings(shape)
    return shape.texts if isinstance(shape, (Spellings, StringLiterals)) else None


def _is_bare(shape: Objects | Arrays | Patterned) -> bool:
    """Whether a shape's only value is surely `{}` or `[]`."""
    if isinstance(shape, Objects):
        return not shape.least and not shape.others and all(node == NO_NODE for node in shape.values)
    if not isinstance(shape, Arrays) or shape.least or shape.states or shape.contained is not None:
        return False
    return shape.most == 0 or all(node == NO_NODE for node in (*shape.prefix[:1], shape.items))


def n_values(drafts: Sequence[Draft]) -> int | None:
    """The number of values of some drafts; None for endlessly many.

    It is None as well for objects and arrays, unless surely none of them has members or items.
    """
    shapes: list[Shape] = []
    texts: set[tuple[bool, bytes]] = set()
    for draft in drafts:
        shape = draft.shape if isinstance(draft, Doubtful) else draft
        if isinstance(shape, (Objects, Arrays, Patterned)):
            if not _is_bare(shape):
                return None
            texts.add((False, b"{}" if isinstance(shape, Objects) else b"[]"))
        else:
            shapes.append(shape)
    for shape in merged(shapes):
        some = listed_texts(shape)
        if some is None:
            return None
        texts.update((isinstance(shape, (Strings, StringLiterals)), text) for text in some)
    return len(texts)


def is_long(shape: Shape | Patterned) -> bool:
    """Whether a shape of scalars has more than `MOST_LISTED` values."""
    if isinstance(shape, Numbers):
        return listed_numbers(shape.automaton) is None
    return isinstance(shape, Strings) and listed_strings(shape) is None


@Kept
def listed_numbers(dfa: Dfa) -> tuple[bytes, ...] | None:
    """One spelling of each number, None if there are more than `MOST_LISTED`."""
    return finite_language(plain_numbers(dfa), MOST_LISTED)


def plain_numbers(dfa: Dfa) -> Dfa:
    """The one spelling of each number that `listed_numbers` takes."""
    return both(dfa, pattern_automaton(r"^(?:0|-?[1-9]\d*|-?(?:0|[1-9]\d*)\.\d*[1-9])$"))


@Kept
def listed_strings(shape: Strings) -> tuple[bytes, ...] | None:
    """All strings, None if there are more than `MOST_LISTED`."""
    dfa, least, most = shape
    if most is not None and most <= MOST_COUNTED:
        counted = pattern_automaton(f"^[^]{{{least},{most}}}$")
        dfa = counted if dfa is None else both(dfa, counted)
    elif least and dfa is not None and most is None:
        dfa = both(dfa, pattern_automaton(f"^[^]{{{least},}}$")) if least <= MOST_COUNTED else dfa
    return None if dfa is None else finite_language(dfa, MOST_LISTED)
