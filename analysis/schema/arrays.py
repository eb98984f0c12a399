"""From a clause of arrays to a draft of a shape.

Where items are counted in several ways at once, by `contains` and its like, a shape has states
(`ItemState`); here not yet without those that no value reaches (`drafts.py`).
"""

from __future__ import annotations

from typing import NamedTuple

from maskwright.analysis.errors import LimitError
from maskwright.analysis.schema import constraints as c
from maskwright.analysis.schema.cardinality import are_fewer, n_values
from maskwright.analysis.schema.drafts import Doubtful, Draft
from maskwright.analysis.schema.objects import Nodes
from maskwright.analysis.schema.shapes import NO_NODE, Arrays, Contained, ItemState

MOST_SETS = 16
"""BOUND: sets of which items are counted in one array."""
MOST_ALIKE = 4
"""BOUND: sets that an item need not be told to be in none of; n give it up to 2 ** n readings."""
MOST_ITEM_STATES = 1_000
"""BOUND: the states of an array's items."""
MOST_WAYS = 20_000
"""BOUND: the ways from one of these states to the next, in all."""


def item_terms(clause: c.Clause, offset: int) -> list[int]:
    """The terms that the item at an offset satisfies; those of all behind the first ones for -1."""
    found = []
    for one in clause:
        if isinstance(one, c.Items):
            found.append(one.first[offset] if 0 <= offset < len(one.first) else one.others)
    return found


def array_drafts(clause: c.Clause, nodes: Nodes) -> list[Draft]:
    """The drafts of a clause: none or one. Raises: SchemaError, LimitError."""
    size = next((one for one in clause if isinstance(one, c.Size)), c.Size(0, None))
    unique: c.Unique | None = None
    refused: list[tuple[str, str]] = []
    ranges: dict[tuple[int, int], c.Size] = {}  # start and term of a set -> how many of its items there are
    for one in clause:
        if isinstance(one, c.Contains):
            key = one.start, one.term
            ranges[key] = ranges.get(key, c.Size(0, None)).met(one.least, one.most)
        elif isinstance(one, c.Refused):
            refused.append((one.pointer, one.reason))
        elif isinstance(one, c.Unique) and one.is_unique:
            unique = unique or one
        elif isinstance(one, c.Unique):
            refused.append((one.pointer, "arrays with equal items are asked for"))
    n = max([0, *(start for start, _ in ranges), *(len(one.first) for one in clause if isinstance(one, c.Items))])
    if size.most is not None:
        n = min(n, size.most)
    counted: list[c.Contains] = []
    for (start, term), its in ranges.items():
        one = c.Contains(start, term, its.least, its.most)
        of_all = _as_size(clause, one, n, nodes)
        if of_all is None:
            counted.append(one)
        else:
            size = size.met(of_all.least, of_all.most)
    if size.is_empty:
        return []
    least, most = size.least, size.most
    if most is not None and most < 2:
        unique = None
    prefix = [item_terms(clause, i) for i in range(n)]
    items = item_terms(clause, -1)
    for one in counted if unique and not prefix else ():
        inside = nodes.node([*items, one.term]) if one.least > 1 else NO_NODE
        if inside != NO_NODE and are_fewer(nodes.drafts(inside), one.least):
            return []
    arrays: Arrays | None = None
    if len(counted) > 1 or (counted and unique):
        try:
            how = _Counted(least, most, n, tuple(counted), unique is not None)
            arrays = Arrays((), NO_NODE, 0, None, states=_item_states(how, [*prefix, items], nodes))
        except LimitError as error:
            where = unique.pointer if unique else nodes.pointer(counted[-1].term)
            refused.append((where, str(error)))
        counted = []
    if arrays is None:
        arrays = Arrays(tuple(map(nodes.node, prefix)), nodes.node(items), least, most)
    if counted:
        only = counted[0]
        start, term = only.start, only.term
        within = tuple(nodes.node([*terms, term] if i >= start else [c.FALSE]) for i, terms in enumerate(prefix))
        outside = tuple(nodes.node([*terms, term ^ 1] if i >= start else terms) for i, terms in enumerate(prefix))
        contained = Contained(only.least, only.most, within, nodes.node([*items, term]))
        arrays = Arrays(outside, nodes.node([*items, term ^ 1]), least, most, contained)
    if unique:
        nodes.has_unique = True
        arrays = arrays._replace(is_unique=True)
    draft: Draft = Doubtful(arrays, tuple(refused)) if refused else arrays
    return [draft]


def _as_size(clause: c.Clause, one: c.Contains, n: int, nodes: Nodes) -> c.Size | None:
    """The range of all items that a range of the items of a set is; None if it is none."""
    places = [*range(one.start, n), -1]
    terms = [item_terms(clause, i) for i in places]
    if all(nodes.is_surely_empty([*each, one.term ^ 1]) for each in terms):
        return c.Size(one.least + one.start if one.least else 0, None if one.most is None else one.most + one.start)
    if all(nodes.is_surely_empty([*each, one.term]) for each in terms):
        return c.Size(1, 0) if one.least else c.Size(0, None)
    return None


class _Counted(NamedTuple):
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
    sets: tuple[c.Contains, ...]
    is_exact: bool


_Key = tuple[int, tuple[int, ...], tuple[tuple[int, int], ...]]
"""Of a state: the items so far, those of each set, and of each node how many, if that matters."""


def _item_states(counted: _Counted, items: list[list[int]], nodes: Nodes) -> tuple[ItemState, ...]:
    """The states of items that are counted by several sets, or that must differ as well.

    items : the terms of the first items, each its own, and last those of all others.

    Raises: LimitError if there are too many sets or states, or it is not known how many values are
    left.
    """
    if counted.is_exact and counted.n_first:
        raise LimitError(
            "`contains` with `uniqueItems` cannot be counted where the first items have schemas of their own"
        )
    if len(counted.sets) > MOST_SETS:
        raise LimitError(f"items are counted by {len(counted.sets)} sets at once, more than {MOST_SETS}")
    start: _Key = 0, (0,) * len(counted.sets), ()
    number = {start: 0}
    order = [start]
    found: list[ItemState] = []
    n_ways = 0
    for place, counts, used in order:  # grows while it is read
        is_end = place >= counted.least and all(
            count >= one.least for count, one in zip(counts, counted.sets, strict=True)
        )
        moves: dict[tuple[int, int], None] = {}
        own = items[min(place, counted.n_first)]
        ways = _ways(counted, place, counts, own, nodes, MOST_WAYS - n_ways)
        n_ways += len(ways)
        for terms, after in ways:
            one = nodes.node([*own, *terms])
            if one == NO_NODE:
                continue
            there = used
            limit = n_values(nodes.drafts(one)) if counted.is_exact else None
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


def _ways(
    counted: _Counted, place: int, counts: tuple[int, ...], own: list[int], nodes: Nodes, most: int
) -> list[tuple[list[int], tuple[int, tuple[int, ...]]]]:
    """The ways to read one more item: terms that it satisfies, and what is counted then.

    own : the terms of every item there. most : of the ways. Most sets have no item in common: few
    ways are left.
    """
    if place == counted.most:
        return []
    after = min(place + 1, max(counted.n_first, counted.least)) if counted.most is None else place + 1
    choices: list[list[tuple[int | None, int]]] = []  # for each set the terms that say something, and the count
    for count, one in zip(counts, counted.sets, strict=True):
        if place < one.start or (one.most is None and count >= one.least and not counted.is_exact):
            choices.append([(None, count)])
        elif one.most is None:
            outside = one.term ^ 1 if counted.is_exact or len(counted.sets) > MOST_ALIKE else None
            choices.append([(outside, count), (one.term, min(count + 1, one.least))])
        else:
            inside = [(one.term, count + 1)] if count < one.most else []
            choices.append([(one.term ^ 1, count), *inside])
    found: list[tuple[list[int], tuple[int, ...]]] = [([], ())]
    for choice in choices:
        longer = [
            (there if one is None else [*there, one], (*so_far, n)) for there, so_far in found for one, n in choice
        ]
        found = [way for way in longer if not nodes.is_surely_empty([*own, *way[0]])]
        if len(found) > most:
            raise LimitError(f"items are counted in more than {MOST_WAYS:,} ways")
    return [(terms, (after, so_far)) for terms, so_far in found]
