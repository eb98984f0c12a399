"""The least solution of F(x) = G(x) joined with all F(y) for x R y. Sets are bits of an int."""

from __future__ import annotations

from collections.abc import Sequence

from maskwright.analysis.deadline import look


def digraph(successors: Sequence[Sequence[int]], initial: Sequence[int]) -> list[int]:
    """For each node the union of `initial` over all nodes that it reaches, itself included.

    successors : for each node x the nodes y with x R y.
    initial : G; for each node a set, as bits.

    Cost: one union for each edge. There is no recursion, since chains are often as long as the
        grammar is deep.
    Source: DeRemer and Pennello, Efficient computation of LALR(1) look-ahead sets (1982), section
        4, an adaption of Tarjan's algorithm for strongly connected components.
    """
    n = len(successors)
    result = list(initial)
    # 0 = not yet seen; else a position in `pending`, counted from 1, or past all of them once the
    # component is done
    # PERF: a node without successors is done at once: most of them are
    done = n + 1
    low = [0 if targets else done for targets in successors]
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
