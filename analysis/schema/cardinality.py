"""How many values there are: what items that must differ have to choose from.

In: shapes and drafts. Out: the number of their values, or a list of them, as far as it matters. How
many strings go on from a state of an automaton says `lengths.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import compress

import numpy as np

from maskwright.analysis.graphs import reachable
from maskwright.analysis.kept import Kept
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.schema import shapes as s
from maskwright.analysis.schema.drafts import Draft, Patterned, nodes_of, shape_of
from maskwright.analysis.schema.lengths import ENDLESS, characters, strings_left
from maskwright.analysis.schema.scalars import any_number, merged
from maskwright.analysis.schema.strings import both, counted, finite_language, pattern_automaton

MOST_LISTED = 4096
"""BOUND: values of an item of a unique array that are listed.

More are as good as infinitely many.
"""
MOST_COUNTED = 64
"""BOUND: characters up to which the strings of an item of a unique array are listed."""
MOST_STEPS = 200_000
"""BOUND: states that are passed while strings are counted; past it they count as enough."""
_CHARACTERS = 0x110000 - 0x800


def n_values(drafts: Sequence[Draft]) -> int | None:
    """The number of values of some drafts; None for endlessly many.

    It is None as well for objects and arrays, unless surely none of them has members or items.
    """
    shapes: list[s.Shape] = []
    texts: set[tuple[bool, bytes]] = set()
    for shape in map(shape_of, drafts):
        if isinstance(shape, (s.Objects, s.Arrays, Patterned)):
            if not _is_bare(shape):
                return None
            texts.add((False, b"{}" if isinstance(shape, s.Objects) else b"[]"))
        else:
            shapes.append(shape)
    for shape in merged(shapes):
        some = listed_texts(shape)
        if some is None:
            return None
        texts.update((isinstance(shape, (s.Strings, s.StringLiterals)), text) for text in some)
    return len(texts)


def _is_bare(shape: s.Objects | s.Arrays | Patterned) -> bool:
    """Whether a shape's only value is surely `{}` or `[]`."""
    if isinstance(shape, s.Objects):
        return not shape.least and not shape.others and all(node == s.NO_NODE for node in shape.values)
    if not isinstance(shape, s.Arrays) or shape.least or shape.states or shape.contained is not None:
        return False
    return shape.most == 0 or all(node == s.NO_NODE for node in (*shape.prefix[:1], shape.items))


def are_fewer(drafts: Sequence[Draft | Patterned], n: int) -> bool:
    """Whether some drafts surely have fewer than `n` values. False for objects and arrays."""
    shapes = [shape for shape in map(shape_of, drafts) if isinstance(shape, s.SCALARS)]
    if len(shapes) < len(drafts):
        return False
    found = 0
    for one in merged(shapes):  # a value of two shapes counts twice
        if found < n:
            found += _counted(one, n)
    return found < n


def listed_texts(shape: s.Shape) -> tuple[bytes, ...] | None:
    """One text of each value of scalars; None if there are more than `MOST_LISTED`."""
    if isinstance(shape, s.Numbers):
        return finite_language(plain_numbers(shape.automaton), MOST_LISTED)
    if isinstance(shape, s.Strings):
        return listed_strings(shape)
    return shape.texts if isinstance(shape, (s.Spellings, s.StringLiterals)) else None


def endless(node: int, shapes_of: Callable[[int], Sequence[s.Shape]]) -> set[int]:
    """The nodes, of those that a node's values hold, which certainly have infinitely many values.

    shapes_of : the shapes of a node that have a value.

    More than `MOST_LISTED` scalars count as infinitely many.
    """
    inside = reachable(
        [node], lambda one: [part for each in shapes_of(one) for part in nodes_of(each) if part != s.NO_NODE]
    )
    held = {one: shapes_of(one) for one in inside}
    new = {
        one for one, shapes in held.items() if any(isinstance(x, s.SCALARS) and listed_texts(x) is None for x in shapes)
    }
    found: set[int] = set()
    while new:
        found |= new
        new = {one for one in held.keys() - found if any(_is_endless(shape, found, held) for shape in held[one])}
    return found


def _is_endless(shape: s.Shape, found: set[int], held: Mapping[int, Sequence[s.Shape]]) -> bool:
    """Whether a shape certainly has infinitely many values. found : nodes that have."""
    if isinstance(shape, s.Objects):
        if shape.most is not None and shape.most <= shape.required.count(True):
            return not found.isdisjoint(compress(shape.values, shape.required))
        return any(held.get(one) for one in shape.others) or not found.isdisjoint(shape.values)
    if not isinstance(shape, s.Arrays) or shape.most == 0 or shape.states:
        return False
    if shape.contained is not None and shape.most is not None:
        return False
    if shape.prefix:  # one item that must come suffices as a proof; others may never come
        return shape.prefix[0] in found
    if shape.items in found:
        return True
    return shape.most is None and not shape.is_unique and bool(held.get(shape.items))


def plain_numbers(dfa: Dfa) -> Dfa:
    """The one spelling of each number that `listed_texts` takes."""
    return both(dfa, pattern_automaton(r"^(?:0|-?[1-9]\d*|-?(?:0|[1-9]\d*)\.\d*[1-9])$"))


@Kept
def listed_strings(shape: s.Strings) -> tuple[bytes, ...] | None:
    """All strings, None if there are more than `MOST_LISTED`."""
    dfa, least, most = shape
    if most is not None and most <= MOST_COUNTED:
        dfa = counted(dfa, least, most)
    elif dfa is not None and most is None and 0 < least <= MOST_COUNTED:
        dfa = counted(dfa, least, None)
    texts = None if dfa is None else finite_language(dfa, MOST_LISTED)
    if texts is None or dfa is not shape.automaton:
        return texts
    lengths = [len(text.decode()) for text in texts]
    return tuple([text for text, n in zip(texts, lengths, strict=True) if least <= n and (most is None or n <= most)])


def _counted(shape: s.Shape, n: int) -> int:
    """The number of a shape's scalars if it is below `n`; else some number of `n` or more."""
    if isinstance(shape, (s.Spellings, s.StringLiterals)):
        return len(shape.texts)
    if isinstance(shape, s.Numbers):
        if shape == any_number():
            return n
        count = int(strings_left(plain_numbers(shape.automaton))[0])
        return n if count >= min(n, ENDLESS) or _has_other_wholes(shape.automaton) else count
    return _n_strings(shape, n) if isinstance(shape, s.Strings) else n


def _has_other_wholes(numbers: Dfa) -> bool:
    """Whether some k.0 is there without k, as it can be in draft 4, where they are two values.

    >>> patterns = (r"^[123]$", r"^[123](\\.0)?$", r"^([123]|[45]\\.0)$")
    >>> [_has_other_wholes(pattern_automaton(text)) for text in patterns]
    [False, False, True]
    """
    table = np.where(numbers.next_state < 0, numbers.n_states, numbers.next_state)
    table = np.vstack([table, np.full((1, 256), numbers.n_states)])  # the last state for no transition
    accepts = np.append(numbers.is_accepting, False)
    pointed = Dfa.minimal(numbers.next_state, accepts[table[table[:-1, ord(".")], ord("0")]])
    pointed = both(pointed, pattern_automaton(r"^-?\d+$"))
    return both(pointed, numbers) != pointed


@Kept
def _n_strings(shape: s.Strings, n: int) -> int:
    """The number of strings if it is below `n`; else some number of `n` or more."""
    dfa, least, most = shape
    if dfa is None:
        enough = n.bit_length() // 20 + 1  # characters: there are more than 2 ** 20 of them
        if most is None or least >= enough:
            return n
        return sum([_CHARACTERS**length for length in range(least, min(enough, most) + 1)])
    is_inside = characters(dfa)[0].tolist()
    rows = dfa.next_state.tolist()
    ways: dict[int, int] = {0: 1}
    found = length = steps = 0
    while ways and (most is None or length <= most):
        if length >= least:
            found += sum([count for state, count in ways.items() if dfa.is_accepting[state]])
        if found >= n:
            return n
        after: Counter[int] = Counter()
        todo = list(ways.items())
        while todo:
            state, count = todo.pop()
            steps += 1
            if steps > MOST_STEPS:
                return n
            for target, width in Counter(rows[state]).items():
                if target >= 0:
                    if is_inside[target]:
                        todo.append((target, min(count * width, n)))
                    else:
                        after[target] += count * width
        ways = {state: min(count, n) for state, count in after.items()}
        length += 1
    return found
