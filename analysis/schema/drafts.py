"""Shapes before it is known which nodes are empty, and when such a shape has a value.

Node numbers are those of the builder here, not yet those of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.schema.shapes import NO_NODE, Arrays, Objects, Shape


class Patterned(NamedTuple):
    """Objects whose other keys have classes by the patterns that match them.

    objects : with no others.
    automata : of the patterns.
    classes : set of patterns, as a sum of 1 << i -> the node of the keys that just these match. A
        set that is not there has no key beside the named ones.
    """

    objects: Objects
    automata: tuple[Dfa, ...]
    classes: dict[int, int]


class Doubtful(NamedTuple):
    """A shape that says less than the schema.

    refused : JSON pointer and reason of what it leaves out.
    """

    shape: Shape | Patterned
    refused: tuple[tuple[str, str], ...]


Draft = Shape | Patterned | Doubtful


def nodes_of(draft: Draft) -> Iterator[int]:
    """The nodes of a draft's members or items."""
    if isinstance(draft, Doubtful):
        draft = draft.shape
    if isinstance(draft, Patterned):
        yield from draft.objects.values
        yield from draft.classes.values()
    elif isinstance(draft, Objects):
        yield from draft.values
        yield from draft.others
    elif isinstance(draft, Arrays):
        yield from draft.prefix
        yield draft.items
        if draft.contained:
            yield from draft.contained.prefix
            yield draft.contained.items


def has_value(draft: Draft, is_there: Callable[[int], bool]) -> bool:
    """Whether a draft has a value, if just the nodes that `is_there` names have some."""
    if isinstance(draft, Doubtful):
        draft = draft.shape
    if isinstance(draft, Patterned):
        return _object_exists(draft.objects, any(is_there(node) for node in draft.classes.values()), is_there)
    if isinstance(draft, Objects):
        return _object_exists(draft, any(is_there(node) for node in draft.others), is_there)
    if isinstance(draft, Arrays):
        return _array_exists(draft, is_there)
    return True


def _object_exists(objects: Objects, has_others: bool, is_there: Callable[[int], bool]) -> bool:
    n_required = sum(objects.required)
    if objects.most is not None and objects.most < max(n_required, objects.least):
        return False
    if n_required and not all(
        is_there(node) for node, required in zip(objects.values, objects.required, strict=True) if required
    ):
        return False
    if has_others or objects.least <= n_required:
        return True
    return sum(is_there(node) for node in objects.values) >= objects.least


def _array_exists(arrays: Arrays, is_there: Callable[[int], bool]) -> bool:
    """Whether some number of items is possible: each in the set, not in it, or either."""
    n = len(arrays.prefix)
    least, most = arrays.least, arrays.most
    if most is not None and most < least:
        return False
    contained = arrays.contained
    if contained is None:
        if not all(is_there(node) for node in arrays.prefix[:least]):
            return False
        return least <= n or is_there(arrays.items)
    forced = possible = 0  # items that must be in the set, and that can be
    for size in range(n + 1):
        if size >= least and possible >= contained.least and (contained.most is None or forced <= contained.most):
            return True
        if size in (n, most):
            break
        outside, inside = is_there(arrays.prefix[size]), is_there(contained.prefix[size])
        if not (outside or inside):
            return False
        forced += not outside
        possible += inside
    outside, inside = is_there(arrays.items), is_there(contained.items)
    more = max(1, least - n)
    if possible + more * inside < contained.least:
        more = contained.least - possible
    if not (outside or inside) or (most is not None and n + more > most):
        return False
    if possible + more * inside < contained.least:
        return False
    return contained.most is None or forced + (0 if outside else more) <= contained.most


def living(drafts: dict[int, list[Draft]]) -> set[int]:
    """The nodes that have a value: the least set that the drafts allow.

    drafts : of each node; those of all nodes inside are there too.

    Cost: O(size of the drafts), and that of a node's drafts again for each of its nodes that turns
    out to have a value.
    """
    alive: set[int] = set()
    waiting: dict[int, list[int]] = {}

    def is_there(node: int) -> bool:
        return node in alive

    # most nodes stand behind those whose parts they are, so that one pass decides most of them
    for node in reversed(drafts):
        if any(has_value(draft, is_there) for draft in drafts[node]):
            alive.add(node)
    todo = [node for node in drafts if node not in alive]
    for node in todo:
        for draft in drafts[node]:
            for child in nodes_of(draft):
                if child != NO_NODE and child not in alive:
                    waiting.setdefault(child, []).append(node)
    while todo:
        node = todo.pop()
        if node not in alive and any(has_value(draft, is_there) for draft in drafts[node]):
            alive.add(node)
            todo.extend(above for above in waiting.get(node, ()) if above not in alive)
    return alive


def all_live(nodes: Sequence[Sequence[Draft]]) -> bool:
    """Whether all of some nodes have a value. False may also mean that a short look does not tell.

    nodes : the drafts of each node: scalars, `Objects` without limits and `Arrays` without
        `contained`. Most nodes stand behind those whose parts they are.
    """
    alive = [False] * (len(nodes) + 1)  # the last one is `NO_NODE`'s
    waiting: Sequence[int] = range(len(nodes) - 1, -1, -1)
    while waiting:
        rest = []
        for node in waiting:
            for draft in nodes[node]:
                if draft.__class__ is Objects:
                    if True not in draft.required or all(
                        [alive[value] for value, flag in zip(draft.values, draft.required, strict=True) if flag]
                    ):
                        break
                elif draft.__class__ is not Arrays or not draft.least or alive[draft.items]:
                    break
            else:
                rest.append(node)
                continue
            alive[node] = True
        if len(rest) == len(waiting):
            return False
        waiting = rest
    return True
