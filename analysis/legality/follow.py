"""The follow graph: which terminal can stand directly after which in a word of the language.

It has an edge X -> Y if and only if X Y is a factor of some word. It has an edge START -> Y if and
only if some word begins with Y. A sequence that is no path of the graph is never legal. A path may
be never legal too.

Example: the words a b and b c have the edges START -> a, START -> b, a -> b and b -> c. The path
a b c is never legal.

The post draws nonterminals and the end of the text, too: that is the follow graph of the grammar's
sentential forms (`sentential_forms`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from maskwright.analysis.arguments import need_type
from maskwright.analysis.grammar.grammar import Grammar, Rule
from maskwright.analysis.grammar.normalise import reduce
from maskwright.analysis.grammar.terminal import Terminal
from maskwright.analysis.legality.deciders import ALWAYS, NEVER, Deciders
from maskwright.analysis.legality.graph import Graph, Link, Look, need_networkx
from maskwright.analysis.legality.verdict import START

END = "<end>"
"""The end of the text among the symbols of `sentential_forms`."""

if TYPE_CHECKING:
    from collections.abc import Mapping

    import networkx as nx


@dataclass(frozen=True, slots=True)
class FollowGraph:
    """Which terminal can stand directly after which.

    names : node -> what it is called. Nodes are START and all terminal numbers.
    edges : (left, right) -> whether right is proved always legal after left. Pairs that no word has
        are missing.
    """

    names: Mapping[int, str]
    edges: Mapping[tuple[int, int], bool]

    def successors(self, node: int) -> list[int]:
        """The terminals that can stand directly after `node`, in order."""
        return [right for left, right in self.edges if left == node]

    @property
    def graph(self) -> Graph[int]:
        """The graph to draw: what words can have. Edges that are always legal have a colour."""
        met = {START, *(right for _, right in self.edges)}
        looks = {
            node: Look(name, start=node == START, accepting=name == END)
            for node, name in self.names.items()
            if node in met
        }
        return Graph(looks, [Link(left, right, accented=always) for (left, right), always in self.edges.items()])

    def to_networkx(self) -> nx.DiGraph[int]:
        """The graph for networkx: nodes with the attribute label, edges with the attribute always.

        Raises: MissingExtraError if networkx is not installed.
        """
        graph: nx.DiGraph[int] = need_networkx().DiGraph()
        for node, label in self.names.items():
            graph.add_node(node, label=label)
        for (left, right), always in self.edges.items():
            graph.add_edge(left, right, always=always)
        return graph


def build_follow_graph(deciders: Deciders) -> FollowGraph:
    """The follow graph over START and all terminal numbers.

    A picture of it suits small grammars: python.lark's graph has 2,779 edges, which the matrix of
    the analysis report shows better.

    Raises: MaskwrightError if `deciders` is no `Deciders`.

    Cost: as `Deciders.pairs`.
    """
    need_type("deciders", deciders, Deciders, "the Deciders of a grammar")
    table, n = deciders.pairs, deciders.grammar.n_terminals
    edges = {
        (START if left == n else left, right): bool(table[left, right] == ALWAYS)
        for left, right in np.argwhere(table != NEVER).tolist()
    }
    names = {START: "start"} | {terminal: deciders.grammar.display_name(terminal) for terminal in range(n)}
    return FollowGraph(names, edges)


def sentential_forms(grammar: Grammar) -> Grammar:
    """A grammar of the sentential forms of another one, each with the end of the text.

    A word of it is one of the other grammar, in which nonterminals may stand for themselves,
    `<sum>`, and then the terminal `<end>`. So its follow graph says which symbols can stand side by
    side, and with which ones a text can end. Rules that occur in no word are left out.

    Raises: GrammarError if the language is empty.
    """
    grammar = reduce(grammar)
    n, n_new = grammar.n_terminals, grammar.n_nonterminals + 1
    terminals = [Terminal(f"<{name}>", None) for name in grammar.nonterminals]

    def moved(symbol: int) -> int:
        return symbol if symbol < n else symbol + n_new

    rules = [Rule(moved(rule.lhs), tuple(map(moved, rule.rhs))) for rule in grammar.rules]
    rules += [Rule(moved(n + number), (n + number,)) for number in range(grammar.n_nonterminals)]
    top = moved(n + grammar.n_nonterminals)
    rules.append(Rule(top, (moved(grammar.start), n + grammar.n_nonterminals)))
    return replace(
        grammar,
        terminals=(*grammar.terminals, *terminals, Terminal(END, None)),
        nonterminals=(*grammar.nonterminals, "text"),
        rules=tuple(rules),
        start=top,
        plain=None,
    )
