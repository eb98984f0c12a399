"""always_legal as the streamlining post decides it: explore with credit, then query an NFA.

A text ends in the terminal X. Where can the grammar's pushdown automaton (`Pushdown`) stand now? It
stands at one of a few positions in rules, which X determines. X does not determine which return
addresses are on its stack. So:

1. Start at each of these positions with an empty stack and *unlimited credit*: where the automaton
   would pop an empty stack, it borrows any return address that fits. Explore all that it can do
   while it reads the sequence.
2. Forget what was read, and keep what was borrowed. This leaves a nondeterministic automaton (NFA)
   over return addresses. A node is *epsilon-coaccessible* if the sequence can be read from it to
   the end without borrowing any more.
3. If every stack of return addresses leads to such a node before the stack is used up, the sequence
   is legal after every text that ends in X.

This second engine is there to be inspected and drawn. Streamlining uses the one in `deciders.py`.

Source: Tran-Thien's streamlining post (2025), on sequences that are always legal.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from maskwright.analysis.errors import GrammarError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.graphs import reachable
from maskwright.analysis.kept import cached_property
from maskwright.analysis.legality.graph import Graph, Link, Look, to_svg
from maskwright.analysis.legality.pushdown import Configuration, Position, Pushdown


class Edge(NamedTuple):
    """One step of an exploration.

    It reads a terminal, or borrows a return address, or does neither: it calls a nonterminal, or
    returns to an address that it pushed itself.

    read : the terminal, or None.
    borrowed : the return address, or None.
    """

    source: Configuration
    read: int | None
    borrowed: Position | None
    target: Configuration


@dataclass(frozen=True)
class Exploration:
    """Whether every word of P that ends in the context can go on with the sequence.

    `is_proved` is the answer: True is a proof, False means unknown. P is the set of prefixes of the
    words of L, and X is the context's last terminal.

    grammar : the grammar of L.
    context, sequence : terminals, in the order of the text. The context () stands for the start of
        the text: there is no credit at all.
    start : "after", as in the post: the automaton starts at every position just after an occurrence
        of X, and reads the sequence. "before": it starts at every position from which calls alone
        lead to reading X; it reads X, then the sequence. `PAPER` below says why.
    max_stack : the most return addresses of its own that the automaton may push on those it starts
        with.
    max_states : the most configurations, and the most sets of them, that are visited.

    A context of several terminals is read first, from every occurrence of its first terminal.
    Return addresses deeper than `max_stack` on the automaton's own stack are then forgotten: they
    become credit again.

    Why it is a proof. Let w be in P and end in the context. Take a run of the automaton on w, just
    before (or after) it reads the last X. It stands at the position of one of `starts`. Its stack
    is that start's own stack, and below it return addresses g1 .. gn that fit, the last of them
    `Pushdown.last`. The subset construction on `nodes` and `edges` shows the following: whichever
    fitting g1, g2, .. are borrowed, an epsilon-coaccessible node is met before nothing is left to
    borrow. From there the sequence can be read. No rule is useless, so the text can then be
    completed to a word of L. Whatever `max_stack` or `max_states` cuts off is missing from the
    sets, which can only lose proofs. If no word of P ends in the context, the statement is empty,
    and counts as proved.

    Raises: GrammarError if a symbol of context or sequence is not a terminal.
    Cost: exponential in `max_stack` where the grammar calls in many ways, bounded by `max_states`.
    Source: Tran-Thien, streamlining post (2025), on sequences that are always legal.
    PAPER: the post starts "after". "before" proves more. In S : a S b | a b the two a are
        alternatives of one call, so wherever an a was read the automaton may stand behind either of
        them. Each by itself does not let both a and b follow.

    >>> from maskwright.analysis.grammar.grammar import Rule, Terminal
    >>> ab = (Terminal("a", "a"), Terminal("b", "b"))
    >>> grammar = Grammar("anbn", ab, ("S",), (Rule(2, (0, 2, 1)), Rule(2, (0, 1))), start=2)
    >>> [Exploration(grammar, (x,), (y,)).is_proved for x, y in ((0, 0), (0, 1), (1, 1))]
    [True, True, False]
    """

    grammar: Grammar
    context: tuple[int, ...]
    sequence: tuple[int, ...]
    start: Literal["before", "after"] = "before"
    max_stack: int = 8
    max_states: int = 10_000

    def __post_init__(self) -> None:
        for symbol in self.context + self.sequence:
            if not 0 <= symbol < self.grammar.n_terminals:
                raise GrammarError(
                    f"grammar {self.grammar.name}: symbol number {symbol} is not a terminal, "
                    f"expected 0..{self.grammar.n_terminals - 1}"
                )

    @property
    def pushdown(self) -> Pushdown:
        """The grammar's pushdown automaton."""
        return _pushdown(self.grammar)

    @property
    def word(self) -> tuple[int, ...]:
        """The terminals that the automaton reads from its starts."""
        return (*self.context[-1:], *self.sequence) if self.start == "before" else self.sequence

    @cached_property
    def starts(self) -> tuple[Configuration, ...]:
        """The configurations in which the automaton can be just before, or after, it reads X.

        X is the context's last terminal. The attribute `start` chooses between before and after.
        """
        if not self.context:
            return (Configuration(self.pushdown.first, 0, ()),) if self.pushdown.rules else ()
        positions = frozenset(
            self.pushdown.positions_before(self.context[-1]) if self.start == "before" else self.pushdown.states
        )
        if self._context_run is None:
            return tuple(Configuration(position, 0, ()) for position in sorted(positions))
        read = len(self.context) - (2 if self.start == "before" else 1)
        found = (n for n in self._context_run.nodes if n.consumed == read and n.position in positions)
        return tuple(dict.fromkeys(Configuration(n.position, 0, n.stack) for n in found))

    @cached_property
    def _context_run(self) -> _Run | None:
        """The run on the context from every occurrence of its first terminal.

        None where the starts are known without it.
        """
        if not self.context or (self.start == "before" and len(self.context) == 1):
            return None
        first = [Configuration(position, 0, ()) for position in self.pushdown.occurrences.get(self.context[0], ())]
        return _run(self.pushdown, first, self.context[1:], self.max_stack, self.max_states, forget=True)

    @cached_property
    def _sequence_run(self) -> _Run:
        """The run on `word` from `starts`."""
        depth = self.max_stack + max((len(start.stack) for start in self.starts), default=0)
        return _run(self.pushdown, self.starts, self.word, depth, self.max_states, forget=False)

    @property
    def nodes(self) -> tuple[Configuration, ...]:
        """The configurations in the order in which they were met, `starts` first."""
        return self._sequence_run.nodes

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The steps between `nodes`, in the order in which they were met."""
        return self._sequence_run.edges

    @property
    def is_truncated(self) -> bool:
        """Whether `max_stack` or `max_states` cut something off."""
        return self._sequence_run.is_truncated or (self._context_run is not None and self._context_run.is_truncated)

    @cached_property
    def accepting(self) -> frozenset[Configuration]:
        """The nodes that have consumed the whole word. The exploration stops there."""
        return frozenset(node for node in self.nodes if node.consumed == len(self.word))

    @cached_property
    def coaccessible(self) -> frozenset[Configuration]:
        """The epsilon-coaccessible nodes: the word can be consumed from them without borrowing."""
        return _ancestors((edge for edge in self.edges if edge.borrowed is None), self.accepting)

    @property
    def is_proved(self) -> bool:
        """Whether always_legal(context, sequence) is proved; False means unknown."""
        return self.unproved is None

    @cached_property
    def unproved(self) -> tuple[Configuration | None, tuple[Position, ...]] | None:
        """None if the statement is proved; else a start and return addresses that give no proof.

        With these return addresses, the top first, the word cannot be consumed from the start. If
        something `is_truncated`, it is only known that it was not consumed within the limits. The
        start is None if a limit cut off the run that finds the starts.
        """
        if self._context_run is not None and self._context_run.is_truncated:
            return None, ()
        silent: dict[Configuration, list[Configuration]] = {}
        lent: dict[tuple[Configuration, Position], list[Configuration]] = {}
        useful = _ancestors(self.edges, self.accepting)
        for source, _, borrowed, target in self.edges:
            if target in useful and borrowed is None:
                silent.setdefault(source, []).append(target)
            elif target in useful and borrowed is not None:
                lent.setdefault((source, borrowed), []).append(target)
        queue: deque[tuple[Configuration, frozenset[Configuration], tuple[Position, ...]]]
        queue = deque((start, frozenset({start}), ()) for start in self.starts)
        seen = {subset for _, subset, _ in queue}
        while queue:
            start, subset, borrowed_so_far = queue.popleft()
            if not subset.isdisjoint(self.coaccessible):
                continue
            # All nodes of the subset borrowed the same addresses, so one rule is at the bottom of
            # all their stacks.
            bottom = next(((n.stack or (n.position,))[-1].rule for n in subset), None)
            addresses = () if bottom is None else self.pushdown.return_addresses(bottom)
            if not addresses or len(seen) > self.max_states:
                return start, borrowed_so_far
            closure = reachable(subset, lambda node: silent.get(node, ()))
            for address in addresses:
                following = frozenset(t for node in closure for t in lent.get((node, address), ()))
                if following not in seen:
                    seen.add(following)
                    queue.append((start, following, (*borrowed_so_far, address)))
        return None

    @cached_property
    def graph(self) -> Graph[Configuration]:
        """The exploration as a graph.

        Nodes are `nodes`; the epsilon-coaccessible ones are filled. Edges are `edges`; those that
        borrow are accented. An edge's label is the terminal read or ``borrow A : B · c``; calls and
        returns have none.
        """
        starts, text, name = frozenset(self.starts), self.pushdown.text, self.grammar.display_name
        nodes = {}
        for node in self.nodes:
            remainder = " ".join(map(name, self.word[node.consumed :])) or "done"
            stack = [f"[{text(address)}]" for address in node.stack]
            label = "\n".join([text(node.position), *stack, f"to read: {remainder}"])
            nodes[node] = Look(label, node in starts, node in self.accepting, node in self.coaccessible)
        edges = []
        for source, read, borrowed, target in self.edges:
            label = name(read) if read is not None else f"borrow {text(borrowed)}" if borrowed is not None else ""
            edges.append(Link(source, target, label, accented=borrowed is not None))
        return Graph(nodes, edges)

    def picture(self, view: Literal["exploration", "nfa"] = "exploration") -> tuple[Graph[Configuration], str]:
        """A graph to draw, and its title. Edges that borrow have a colour.

        view : "exploration" shows what the automaton reads and borrows. "nfa" shows the automaton
            over borrowed return addresses: all other edges are epsilon, and the
            epsilon-coaccessible nodes are filled.
        """
        title, nodes, edges = "Exploration", self.graph.nodes, self.graph.edges
        if view == "nfa":
            title = "NFA over borrowed addresses"
            edges = [edge if edge.accented else edge._replace(label="ε") for edge in edges]
        else:
            nodes = {node: look._replace(filled=False) for node, look in nodes.items()}
        names = (" ".join(map(self.grammar.display_name, word)) for word in (self.sequence, self.context))
        return Graph(nodes, edges), f"{title}: {' after '.join(names)}"

    def to_svg(self, view: Literal["exploration", "nfa"] = "exploration") -> str:
        """The `picture` as one self-contained SVG text.

        Nodes that have read the whole word have a double frame.
        """
        return to_svg(*self.picture(view))


class _Run(NamedTuple):
    """The configurations met, the steps between them, and whether a limit cut something off."""

    nodes: tuple[Configuration, ...]
    edges: tuple[Edge, ...]
    is_truncated: bool


@lru_cache(maxsize=8)
def _pushdown(grammar: Grammar) -> Pushdown:
    return Pushdown(grammar)


def _run(
    pushdown: Pushdown,
    starts: Sequence[Configuration],
    word: tuple[int, ...],
    max_stack: int,
    max_states: int,
    forget: bool,
) -> _Run:
    """Everything the automaton can do from `starts` with unlimited credit while it reads `word`.

    forget : False skips a step that would push more than `max_stack` return addresses. True takes
        the step, and the deepest address becomes credit.

    Nodes and edges are in breadth-first order.
    """
    nodes = dict.fromkeys(starts[:max_states])
    edges: list[Edge] = []
    is_truncated = len(starts) > max_states
    agenda = list(nodes)
    for source in agenda:  # grows while it is read
        position, consumed, stack = source
        for move in pushdown.moves[position] if consumed < len(word) else ():
            if move.read not in (None, word[consumed]) or (stack and move.popped not in (None, stack[0])):
                continue
            target = source.after(move)
            target = target._replace(stack=target.stack[:max_stack])
            if (move.pushed and len(stack) >= max_stack and not forget) or (
                target not in nodes and len(nodes) >= max_states
            ):
                is_truncated = True
                continue
            if target not in nodes:
                nodes[target] = None
                agenda.append(target)
            edges.append(Edge(source, move.read, None if stack else move.popped, target))
    return _Run(tuple(nodes), tuple(edges), is_truncated)


def _ancestors(edges: Iterable[Edge], targets: Iterable[Configuration]) -> frozenset[Configuration]:
    """The nodes from which one of `targets` can be reached, these included."""
    predecessors: dict[Configuration, list[Configuration]] = {}
    for edge in edges:
        predecessors.setdefault(edge.target, []).append(edge.source)
    return frozenset(reachable(targets, lambda node: predecessors.get(node, ())))
