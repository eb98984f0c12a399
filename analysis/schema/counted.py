"""Arrays whose items are counted in several ways at once: by states (`ItemState`).

In: what `contains` and its like ask for, and the number of items. Out: the states of the items, not
yet without those that no value reaches (`drafts.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

from maskwright.analysis.errors import LimitError
from maskwright.analysis.schema.constraints import Contains
from maskwright.analysis.schema.shapes import NO_NODE, ItemState

MOST_SETS = 4
"""BOUND: sets of which items are counted in one array; an item is in any of 2 ** so many."""

MOST_ITEM_STATES = 1_000
"""BOUND: the states of an array's items."""


class Counted(NamedTuple):
    """How items are counted.

    least, most : the number of items.
    n_first : those that have terms of their own.
    sets : what must be counted; `start` and `term` are different pairs.
    is_exact : whether each way to read an item says of each set whether the item is in it.
        Otherwise it says so only of sets with a greatest number, and of others perhaps that the
        item is in it: so fewer terms are negated.
    """

    least: int
    most: int | None
    n_first: int
    sets: tuple[Contains, ...]
    is_exact: bool


_Key = tuple[int, tuple[int, ...], tuple[tuple[int, int], ...]]
"""Of a state: the items so far, those of each set, and of each node how many, if that matters."""


def item_states(
    counted: Counted,
    node: Callable[[int, Sequence[int]], int],
    n_values: Callable[[int], int | None] | None = None,
) -> tuple[ItemState, ...]:
    """The states of an array's items.

    node : from an offset, -1 behind the first items, and terms, to the node of such items.
    n_values : the number of values of a node, if items must differ; None for endlessly many.

    Raises: LimitError if there are too many sets or states.
    """
    if len(counted.sets) > MOST_SETS:
        raise LimitError(f"items are counted by {len(counted.sets)} sets at once, more than {MOST_SETS}")
    start: _Key = 0, (0,) * len(counted.sets), ()
    number = {start: 0}
    order = [start]
    found: list[ItemState] = []
    for place, counts, used in order:  # grows while it is read
        is_end = place >= counted.least and all(
            count >= one.least for count, one in zip(counts, counted.sets, strict=True)
        )
        moves: dict[tuple[int, int], None] = {}
        for terms, after in _ways(counted, place, counts):
            one = node(place if place < counted.n_first else -1, terms)
            if one == NO_NODE:
                continue
            there = used
            limit = None if n_values is None else n_values(one)
            if limit is not None:
                n = dict(used).get(one, 0)
                if n >= limit:
                    continue
                there = tuple(sorted({**dict(used), one: n + 1}.items()))
            key = (*after, there)
            if key not in number:
                number[key] = len(order)
                order.append(key)
                if len(order) > MOST_ITEM_STATES:
                    raise LimitError(f"items are counted in more than {MOST_ITEM_STATES:,} ways")
            moves[one, number[key]] = None
        found.append(ItemState(is_end, tuple(moves)))
    return tuple(found)


def _ways(counted: Counted, place: int, counts: tuple[int, ...]) -> list[tuple[list[int], tuple[int, tuple[int, ...]]]]:
    """The ways to read one more item: terms that it satisfies, and what is counted then."""
    if place == counted.most:
        return []
    after = min(place + 1, max(counted.n_first, counted.least)) if counted.most is None else place + 1
    choices: list[list[tuple[int | None, int]]] = []  # for each set the terms that say something, and the count
    for count, one in zip(counts, counted.sets, strict=True):
        if place < one.start or (one.most is None and count >= one.least and not counted.is_exact):
            choices.append([(None, count)])
        elif one.most is None:
            outside = one.term ^ 1 if counted.is_exact else None
            choices.append([(outside, count), (one.term, min(count + 1, one.least))])
        else:
            inside = [(one.term, count + 1)] if count < one.most else []
            choices.append([(one.term ^ 1, count), *inside])
    return [
        ([term for term, _ in way if term is not None], (after, tuple(count for _, count in way)))
        for way in product(*choices)
    ]
