"""The follow graph: which terminal can stand directly after which in a word of the language.

It has an edge X -> Y if and only if X Y is a factor of some word. It has an edge START -> Y if and
only if some word begins with Y. A sequence that is no path of the graph is never legal. A path may
be never legal too.

Example: the words a b and b c have the edges START -> a, START -> b, a -> b and b -> c. The path
a b c is never legal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import networkx as nx
import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import need_type
from maskwright.analysis.legality.deciders import NEVER, Deciders, Query
from maskwright.analysis.legality.drawing import to_svg
from maskwright.analysis.legality.verdict import START

if TYPE_CHECKING:
    FollowGraph = nx.DiGraph[int]
else:
    FollowGraph = nx.DiGraph


def pair_verdicts(deciders: Deciders) -> npt.NDArray[np.int8]:
    """NEVER, SOMETIMES or ALWAYS for each pair of terminals.

    Returns (n_terminals + 1, n_terminals) int8, by left and right terminal. The last row is for the
    start of the text. Terminals that occur in no word have NEVER everywhere. NEVER is exact, ALWAYS
    is a proof.

    Cost: O(terminals * size of the grammar).
    """
    n = deciders.grammar.n_terminals
    table = np.full((n + 1, n), NEVER, np.int8)
    lefts = (*deciders.live_terminals, START)
    queries = [Query(left, (right,)) for right in deciders.live_terminals for left in lefts]
    verdicts = deciders.judge(queries)
    for query, verdict in zip(queries, verdicts, strict=True):
        table[query.left, query.sequence[0]] = verdict  # START = -1 is the last row
    return table


def build_follow_graph(deciders: Deciders) -> FollowGraph:
    """The follow graph over START and all terminal numbers.

    Each edge has an attribute `always`: whether its target is proved always legal after its source.

    Raises: MaskwrightError if `deciders` is no `Deciders`.

    Cost: as `pair_verdicts`.
    """
    need_type("deciders", deciders, Deciders, "the Deciders of a grammar")
    table = pair_verdicts(deciders)
    graph: FollowGraph = nx.DiGraph()
    graph.add_nodes_from([START, *range(deciders.grammar.n_terminals)])
    for left, right in np.argwhere(table != NEVER).tolist():
        node = START if left == deciders.grammar.n_terminals else left
        graph.add_edge(node, right, always=bool(table[left, right] == 2))
    return graph


def draw_follow_graph(deciders: Deciders) -> str:
    """The follow graph as one self-contained SVG text.

    Edges that are always legal have a colour. The picture suits small grammars: python.lark's graph
    has 2,779 edges, which the matrix of the analysis report shows better.

    Raises: MaskwrightError if `deciders` is no `Deciders`.
    """
    graph = build_follow_graph(deciders)
    drawn: nx.MultiDiGraph[int] = nx.MultiDiGraph()
    for node in graph.nodes:
        if node == START or graph.in_degree(node):
            name = "start" if node == START else deciders.grammar.display_name(node)
            drawn.add_node(node, label=name, start=node == START, accepting=False, filled=False)
    for left, right in graph.edges:
        drawn.add_edge(left, right, label="", accented=graph.edges[left, right]["always"])
    return to_svg(drawn, f"What can follow what in {deciders.grammar.name}")
