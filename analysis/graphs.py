"""What graphs have: nodes that are reached, shortest ways to them, components, unions over them.

Nodes whose edges stand in a list are 0, 1, ..; others are anything that is hashable. There is no
recursion, since chains may be long.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from maskwright.analysis.deadline import look

MOST_COST = 1 << 62  # BOUND: the costs of rules that double one another
NodeT = TypeVar("NodeT", bound=Hashable)

VISIBLE_FIRST = tuple(sorted(range(256), key=lambda byte: (not 32 < byte < 127, byte)))
"""All bytes, in an order for `shortest_texts` that are to be read."""


def reachable(starts: Iterable[NodeT], successors: Callable[[NodeT], Iterable[NodeT]]) -> list[NodeT]:
    """The nodes that paths lead to from some nodes, these included; each once, the nearest first.

    >>> reachable([2], [[1], [2], [1], [3, 0]].__getitem__)
    [2, 1]
    """
    return list(ways(starts, successors))


def ways(starts: Iterable[NodeT], successors: Callable[[NodeT], Iterable[NodeT]]) -> dict[NodeT, NodeT]:
    """For each node that is reached the one before it on a shortest way, the nearest first.

    Before a start is the start itself. `way_to` reads what is returned.

    >>> way_to(0, ways([2], [[1], [2], [1, 3], [0]].__getitem__))
    [2, 3, 0]
    """
    before = {start: start for start in starts}
    agenda = list(before)
    for node in agenda:  # grows while it is read
        look()
        for target in successors(node):
            if target not in before:
                before[target] = node
                agenda.append(target)
    return before


def way_to(node: NodeT, before: Mapping[NodeT, NodeT]) -> list[NodeT]:
    """A shortest way to a node, both ends included. before : as `ways` returns it."""
    way = [node]
    while before[way[-1]] != way[-1]:
        way.append(before[way[-1]])
    return way[::-1]


def shortest_texts(
    starts: Iterable[NodeT], edges: Callable[[NodeT], Iterable[tuple[int, NodeT]]]
) -> dict[NodeT, bytes]:
    """For each node that is reached a shortest text that leads there, the nearest first.

    edges : the bytes that lead on from a node, and to which one; the best come first.

    >>> shortest_texts([0], [[(97, 0), (98, 1)], [(99, 0)]].__getitem__)
    {0: b'', 1: b'b'}
    """
    found = dict.fromkeys(starts, b"")
    agenda = list(found)
    for node in agenda:  # grows while it is read
        look()
        for byte, target in edges(node):
            if target not in found:
                found[target] = found[node] + bytes([byte])
                agenda.append(target)
    return found


def cheapest_rules(rules: Iterable[tuple[NodeT, int, Iterable[NodeT]]]) -> dict[NodeT, tuple[int, int]]:
    """What each node costs at least, and the number of such a rule, by which it comes to an end.

    rules : the node that a rule makes, what the rule costs by itself, at least 0, and the nodes
        that it is made of, whose costs are added, up to MOST_COST. What none makes is left out.

    Source: D. Knuth, A generalization of Dijkstra's algorithm (1977).

    >>> cheapest_rules([("a", 1, ["b"]), ("b", 2, []), ("b", 0, ["a"])])
    {'b': (2, 1), 'a': (3, 0)}
    """
    made: list[NodeT] = []
    costs: list[int] = []
    missing: list[int] = []
    users: dict[NodeT, list[int]] = {}
    for number, (node, cost, inner) in enumerate(rules):
        made.append(node)
        costs.append(cost)
        missing.append(0)
        for each in inner:
            missing[-1] += 1
            users.setdefault(each, []).append(number)
    agenda = [(costs[number], number) for number, count in enumerate(missing) if not count]
    heapq.heapify(agenda)
    found: dict[NodeT, tuple[int, int]] = {}
    while agenda:
        cost, number = heapq.heappop(agenda)
        if made[number] in found:
            continue
        found[made[number]] = cost, number
        for user in users.get(made[number], ()):
            missing[user] -= 1
            costs[user] = min(costs[user] + cost, MOST_COST)
            if not missing[user]:
                heapq.heappush(agenda, (costs[user], user))
    return found


def predecessors(successors: Sequence[Iterable[int]]) -> list[list[int]]:
    """For each node the nodes whose edges lead to it."""
    found: list[list[int]] = [[] for _ in successors]
    for node, targets in enumerate(successors):
        for target in targets:
            found[target].append(node)
    return found


def components(successors: Sequence[Sequence[int]]) -> list[list[int]]:
    """The largest sets of nodes that reach each other: each node is in one.

    successors : for each node the nodes that its edges lead to.

    A component comes after those that it leads to.

    Cost: O(nodes and edges).

    >>> components([[1], [2], [1], [3, 0]])
    [[2, 1], [0], [3]]
    """
    return _components(successors, [0] * len(successors))


def unions(successors: Sequence[Sequence[int]], own: Sequence[int]) -> list[int]:
    """For each node the union of `own` over all nodes that it reaches, itself included.

    It is the least solution of F(x) = own(x) joined with all F(y) for edges from x to y.

    successors : for each node the nodes that its edges lead to. own : for each a set, as bits.

    Cost: one union for each edge.

    >>> unions([[1], [2], [1], [3, 0]], [1, 2, 4, 8])
    [7, 6, 6, 15]
    """
    found = list(own)
    _components(successors, found)
    return found


def _components(successors: Sequence[Sequence[int]], sets: list[int]) -> list[list[int]]:
    """The components as of `components`. `sets` become the unions as of `unions`.

    Source: R. E. Tarjan, Depth-first search and linear graph algorithms (1972); DeRemer and
        Pennello, Efficient computation of LALR(1) look-ahead sets (1982), section 4, who join sets
        on the way.
    """
    n = len(successors)
    # 0 = not yet seen; else a position in `pending`, counted from 1, or past all of them once the
    # component is done
    # PERF: a node without successors is done at once: most of them are
    done = n + 1
    low = [0 if targets else done for targets in successors]
    found = [[node] for node, targets in enumerate(successors) if not targets]
    pending: list[int] = []
    position = [0] * n  # for each node how many of its successors have been looked at
    for root in range(n):
        look()
        if low[root]:
            continue
        path = [root]
        pending.append(root)
        low[root] = len(pending)
        depth = [len(pending)]
        while path:
            node = path[-1]
            targets = successors[node]
            at = position[node]
            if at < len(targets):
                target = targets[at]
                if not low[target]:
                    path.append(target)
                    pending.append(target)
                    low[target] = len(pending)
                    depth.append(len(pending))
                    continue  # this successor is looked at again once it has been explored
                position[node] = at + 1
                if low[target] < low[node]:
                    low[node] = low[target]
                sets[node] |= sets[target]
                continue
            path.pop()
            if low[node] == depth.pop():
                component = [pending.pop()]
                while component[-1] != node:
                    component.append(pending.pop())
                for member in component:
                    low[member] = done
                    sets[member] = sets[node]
                found.append(component)
    return found
