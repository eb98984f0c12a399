"""How far the states of an array's items (`ItemState`) are from an end: in items, and in bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from maskwright.analysis.schema.shapes import ItemState


def items_to_end(states: Sequence[ItemState], has_values: Callable[[int], bool]) -> dict[int, int]:
    """A number for each state that reaches an end by nodes that have values.

    0 at an end; from each other state an item leads to one with a lower number.
    """
    far = {number: 0 for number, state in enumerate(states) if state.is_end}
    n_known = -1
    while n_known < len(far):
        n_known = len(far)
        for number, state in enumerate(states):
            if number not in far:
                ways = [far[after] for node, after in state.moves if after in far and has_values(node)]
                if ways:
                    far[number] = 1 + min(ways)
    return far


def bytes_to_end(states: Sequence[ItemState], item: Callable[[int], int], n_more: int, never: int) -> list[int]:
    """The bytes to an end from each state, by `n_more` items at least.

    item : those of an item of a node.
    """

    def step(behind: list[int], one: ItemState) -> int:
        return min([never, *(item(node) + behind[after] for node, after in one.moves)])

    found = [0 if one.is_end else never for one in states]
    for _ in states:  # as many times at most
        before = found
        found = [min(before[number], step(before, one)) for number, one in enumerate(states)]
        if found == before:
            break
    for _ in range(n_more):
        found = [step(found, one) for one in states]
    return found
