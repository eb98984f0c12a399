"""Which nodes have infinitely many values, and which automata as many strings behind each prefix.

In: the shapes of nodes. Out: those of which it is certain, so that a unique array finds new items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.schema.drafts import Patterned
from maskwright.analysis.schema.shapes import NO_NODE, Arrays, Objects, Shape


def endless(
    node: int, shapes_of: Callable[[int], Sequence[Shape | Patterned]], is_long: Callable[[Shape | Patterned], bool]
) -> set[int]:
    """The nodes, of those that a node's values hold, with infinitely many values.

    shapes_of : the shapes of a node that have a value.
    is_long : whether a shape of scalars has infinitely many values.
    """
    held: dict[int, list[Shape | Patterned]] = {}
    todo = [node]
    while todo:
        one = todo.pop()
        if one not in held:
            held[one] = list(shapes_of(one))
            for shape in held[one]:
                todo.extend(_inside(shape))
    found = {one for one, shapes in held.items() if any(map(is_long, shapes))}
    is_changed = True
    while is_changed:
        new = {
            one
            for one, shapes in held.items()
            if one not in found and any(_is_endless(shape, found, held) for shape in shapes)
        }
        found |= new
        is_changed = bool(new)
    return found


def _inside(shape: Shape | Patterned) -> list[int]:
    """The nodes of a shape's members or items."""
    if isinstance(shape, Objects):
        return [one for one in (*shape.values, *shape.others) if one != NO_NODE]
    if isinstance(shape, Arrays):
        return [one for one in shape.item_nodes if one != NO_NODE]
    return []


def _is_endless(shape: Shape | Patterned, found: set[int], held: dict[int, list[Shape | Patterned]]) -> bool:
    """Whether a shape certainly has infinitely many values. found : nodes that have."""
    if isinstance(shape, Objects):
        if shape.most is not None and shape.most <= shape.required.count(True):
            pairs = zip(shape.values, shape.required, strict=True)
            return any(is_required and one in found for one, is_required in pairs)
        return any(held.get(one) for one in shape.others) or any(one in found for one in shape.values)
    if not isinstance(shape, Arrays) or shape.most == 0 or shape.states:
        return False
    if shape.contained is not None and shape.most is not None:
        return False
    if shape.prefix:  # one item that must come suffices as a proof; others may never come
        return shape.prefix[0] in found
    if shape.items in found:
        return True
    return shape.most is None and not shape.is_unique and bool(held.get(shape.items))


def goes_on_for_ever(automaton: Dfa) -> bool:
    """Whether infinitely many strings begin like each prefix of a string."""
    followers = [set(row[row >= 0].tolist()) for row in automaton.next_state]
    endless = set(range(len(followers)))
    while True:
        ending = {state for state in endless if not followers[state] & endless}
        if not ending:
            return len(endless) == len(followers)
        endless -= ending
