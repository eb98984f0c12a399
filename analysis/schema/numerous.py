"""Whether there are as many scalars as items that must differ: counted on automata, up to there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from maskwright.analysis.kept import Kept
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.schema.drafts import SCALARS, Doubtful, Draft, Patterned
from maskwright.analysis.schema.keys import n_keys
from maskwright.analysis.schema.lengths import characters
from maskwright.analysis.schema.listed import plain_numbers
from maskwright.analysis.schema.scalars import any_number, merged
from maskwright.analysis.schema.shapes import Numbers, Shape, Spellings, StringLiterals, Strings
from maskwright.analysis.schema.strings import both, pattern_automaton

MOST_STEPS = 200_000
"""BOUND: states that are passed while strings are counted; past it they count as enough."""

_CHARACTERS = 0x110000 - 0x800


def are_fewer(drafts: Sequence[Draft | Patterned], n: int) -> bool:
    """Whether some drafts surely have fewer than `n` values. False for objects and arrays."""
    shapes: list[Shape] = []
    for draft in drafts:
        shape = draft.shape if isinstance(draft, Doubtful) else draft
        if not isinstance(shape, SCALARS):
            return False
        shapes.append(shape)
    found = 0
    for one in merged(shapes):  # a value of two shapes counts twice
        if found < n:
            found += _counted(one, n)
    return found < n


def _counted(shape: Shape, n: int) -> int:
    """The number of a shape's scalars if it is below `n`; else some number of `n` or more."""
    if isinstance(shape, (Spellings, StringLiterals)):
        return len(shape.texts)
    if isinstance(shape, Numbers):
        if shape == any_number():
            return n
        count = _n_texts(plain_numbers(shape.automaton))
        if count is None or count >= n:
            return n
        return n if _has_other_wholes(shape.automaton) else count
    return _n_strings(shape, n) if isinstance(shape, Strings) else n


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


def _n_texts(dfa: Dfa) -> int | None:
    return 0 if dfa.is_empty else n_keys((dfa,), [1], ())


@Kept
def _n_strings(shape: Strings, n: int) -> int:
    """The number of strings if it is below `n`; else some number of `n` or more."""
    dfa, least, most = shape
    if dfa is None:
        if most is None or 20 * least > n.bit_length():  # there are more than 2 ** 20 characters
            return n
        found, length = 0, least
        while found < n and length <= most:
            found += _CHARACTERS**length
            length += 1
        return found
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
