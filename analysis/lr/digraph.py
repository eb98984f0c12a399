"""F(x) = G(x) joined with all F(y) for x R y, the least solution, over sets kept as the bits of ints."""

from __future__ import annotations

from collections.abc import Sequence


def digraph(successors: Sequence[Sequence[int]], initial: Sequence[int]) -> list[int]:
    """The union of `initial` over all nodes that a node reaches, itself included.

    successors : the nodes y with x R y, for each node x. initial : G, a set of bits for each node.

    Cost: one union an edge. No recursion: chains as long as the grammar is deep are usual.
    Source: DeRemer and Pennello, Efficient computation of LALR(1) look-ahead sets (1982), section 4, an adaption of Tarjan's algorithm for
    strongly connected components.
    """
    n = len(successors)
    result = list(initial)
    low = (
        [0] * n
    )  # 0 = not yet seen; else a position on `pending` counted from 1, or past all of them when the component is done
    done = n + 1
    pending: list[int] = []
    position = [0] * n  # how many successors of a node have been looked at
    for root in range(n):
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
                result[node] |= result[target]
                continue
            path.pop()
            if low[node] == depth.pop():
                while True:
                    member = pending.pop()
                    low[member] = done
                    result[member] = result[node]
                    if member == node:
                        break
    return result
