"""From a clause of arrays to a draft of a shape."""

from __future__ import annotations

from collections.abc import Sequence

from maskwright.analysis.errors import LimitError
from maskwright.analysis.schema import constraints as c
from maskwright.analysis.schema.counted import Counted, item_states
from maskwright.analysis.schema.drafts import Doubtful, Draft
from maskwright.analysis.schema.listed import n_values
from maskwright.analysis.schema.numerous import are_fewer
from maskwright.analysis.schema.objects import Nodes
from maskwright.analysis.schema.shapes import NO_NODE, Arrays, Contained, ItemState


def item_terms(clause: c.Clause, offset: int) -> list[int]:
    """The terms that the item at an offset satisfies; those of all behind the first ones for -1."""
    found = []
    for one in clause:
        if isinstance(one, c.Items):
            found.append(one.first[offset] if 0 <= offset < len(one.first) else one.others)
    return found


def array_drafts(clause: c.Clause, nodes: Nodes) -> list[Draft]:
    """The drafts of a clause: none or one. Raises: SchemaError, LimitError."""
    refused: list[tuple[str, str]] = []
    least, most, n = 0, None, 0
    unique: c.Unique | None = None
    for one in clause:
        if isinstance(one, c.Size):
            least, most = one.least, one.most
        elif isinstance(one, c.Items):
            n = max(n, len(one.first))
        elif isinstance(one, c.Contains):
            n = max(n, one.start)
        elif isinstance(one, c.Unique):
            unique = unique or one
        elif isinstance(one, c.Equal):
            refused.append((one.pointer, "arrays with equal items are asked for"))
        elif isinstance(one, c.Refused):
            refused.append((one.pointer, one.reason))
    if most is not None:
        n = min(n, most)
    counted: list[c.Contains] = []
    for one in _merged(clause):
        fits, low, high = _simple(clause, one, n, nodes)
        if fits:
            least = max(least, low)
            most = high if most is None else most if high is None else min(most, high)
        else:
            counted.append(one)
    if most is not None and most < least:
        return []
    if most is not None and most < 2:
        unique = None
    prefix = [item_terms(clause, i) for i in range(n)]
    items = item_terms(clause, -1)
    if unique and not prefix and any(_are_too_few([*items, one.term], one.least, nodes) for one in counted):
        return []
    if len(counted) > 1 or (counted and unique):
        try:
            states = _states(Counted(least, most, n, tuple(counted), unique is not None), prefix, items, nodes)
            arrays = Arrays((), NO_NODE, 0, None, states=states)
        except LimitError as error:
            where = unique.pointer if unique else nodes.pointer(counted[-1].term)
            refused.append((where, str(error)))
            arrays = Arrays(tuple(map(nodes.node, prefix)), nodes.node(items), least, most)
        counted = []
    else:
        arrays = Arrays(tuple(map(nodes.node, prefix)), nodes.node(items), least, most)
    if counted:
        only = counted[0]
        start, term = only.start, only.term
        inside = tuple(nodes.node([*terms, term] if i >= start else [c.FALSE]) for i, terms in enumerate(prefix))
        outside = tuple(nodes.node([*terms, term ^ 1] if i >= start else terms) for i, terms in enumerate(prefix))
        contained = Contained(only.least, only.most, inside, nodes.node([*items, term]))
        arrays = Arrays(outside, nodes.node([*items, term ^ 1]), least, most, contained)
    if unique:
        nodes.has_unique = True
        arrays = arrays._replace(is_unique=True)
    draft: Draft = Doubtful(arrays, tuple(refused)) if refused else arrays
    return [draft]


def _states(counted: Counted, prefix: list[list[int]], items: list[int], nodes: Nodes) -> tuple[ItemState, ...]:
    """The states of items that are counted by several sets, or that must differ as well.

    Raises: LimitError where they are too many, or it is not known how many values are left.
    """

    def node(offset: int, terms: Sequence[int]) -> int:
        return nodes.node([*(items if offset < 0 else prefix[offset]), *terms])

    if not counted.is_exact:
        return item_states(counted, node)
    if prefix:
        raise LimitError(
            "`contains` with `uniqueItems` cannot be counted where the first items have schemas of their own"
        )
    return item_states(counted, node, lambda one: n_values(nodes.drafts(one)))


def _are_too_few(terms: list[int], least: int, nodes: Nodes) -> bool:
    """Whether surely fewer than `least` values satisfy some terms."""
    node = nodes.node(terms) if least > 1 else NO_NODE
    return node != NO_NODE and are_fewer(nodes.drafts(node), least)


def _merged(clause: c.Clause) -> list[c.Contains]:
    """What items are to be counted, with one range for each set."""
    found: dict[tuple[int, int], tuple[int, int | None]] = {}
    for one in clause:
        if isinstance(one, c.Contains):
            low, high = found.get((one.start, one.term), (0, None))
            high = one.most if high is None else high if one.most is None else min(high, one.most)
            found[one.start, one.term] = max(low, one.least), high
    return [c.Contains(*key, *limits) for key, limits in found.items() if limits != (0, None)]


def _simple(clause: c.Clause, one: c.Contains, n: int, nodes: Nodes) -> tuple[bool, int, int | None]:
    """Whether a range of items of a set is a range of all items, and which one."""
    places = [*range(one.start, n), -1]
    terms = [item_terms(clause, i) for i in places]
    if all(nodes.is_surely_empty([*each, one.term ^ 1]) for each in terms):
        return True, one.least + one.start if one.least else 0, None if one.most is None else one.most + one.start
    if all(nodes.is_surely_empty([*each, one.term]) for each in terms):
        return True, 0 if not one.least else 1, None if not one.least else 0
    return False, 0, None
