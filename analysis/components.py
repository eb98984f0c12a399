"""The strongly connected components of a graph."""

from __future__ import annotations

from collections.abc import Sequence


def components(successors: Sequence[Sequence[int]]) -> list[list[int]]:
    """The largest sets of nodes that reach each other: each node is in one.

    successors : for each node the nodes that its edges lead to.

    A component comes after those that it leads to.

    Cost: O(nodes and edges). There is no recursion, since chains may be long.
    Source: R. E. Tarjan, Depth-first search and linear graph algorithms (1972).

    >>> components([[1], [2], [1], [3, 0]])
    [[2, 1], [0], [3]]
    """
    n = len(successors)
    order, low = [-1] * n, [0] * n  # when a node was met (n once its component is done); Tarjan's low
    found: list[list[int]] = []
    pending: list[int] = []
    n_met = 0
    for root in range(n):
        path = [] if order[root] >= 0 else [(root, iter(successors[root]))]
        while path:
            node, targets = path[-1]
            if order[node] < 0:
                order[node] = low[node] = n_met
                n_met += 1
                pending.append(node)
            for target in targets:
                if order[target] < 0:
                    path.append((target, iter(successors[target])))
                    break
                low[node] = min(low[node], order[target])
            else:
                path.pop()
                if path:
                    parent = path[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == order[node]:
                    component = [pending.pop()]
                    while component[-1] != node:
                        component.append(pending.pop())
                    for member in component:
                        order[member] = n
                    found.append(component)
    return found
