"""always_legal by the streamlining post's construction, kept so that it can be inspected and drawn.

A grammar is read by a pushdown automaton whose states are places in rules and whose stack holds return addresses. The
automaton is started just before or just after a terminal X, with an empty stack and unlimited credit: where it would
pop an empty stack it borrows any return address that fits and writes it down. What it can do is a finite automaton
over borrowed return addresses.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from html import escape
from operator import mul
from typing import Any, Literal, NamedTuple

import networkx as nx

from maskwright.analysis.errors import GrammarError
from maskwright.analysis.grammar.grammar import Grammar, Rule


class Position(NamedTuple):
    """A place in a rule: just after the occurrence of its `dot`-th symbol, or before the first one where dot = 0.

    rule : number of the rule in the grammar; the number of rules itself stands for the rule "the text is one start
        symbol".
    """

    rule: int
    dot: int


class Transition(NamedTuple):
    """One move of the pushdown automaton: it reads a terminal, or pops or pushes a return address (else None)."""

    source: Position
    read: int | None
    popped: Position | None
    pushed: Position | None
    target: Position


class Configuration(NamedTuple):
    """A place, how much of the word is read, and the own stack, top first; a state over borrowed return addresses."""

    position: Position
    consumed: int
    stack: tuple[Position, ...]


class Edge(NamedTuple):
    """One step of an exploration: it reads a terminal, or borrows a return address, or calls or returns (both None)."""

    source: Configuration
    read: int | None
    borrowed: Position | None
    target: Configuration


@dataclass(frozen=True)
class Pushdown:
    """The pushdown automaton that reads exactly the words of L from `first` to `last`, its stack empty at both.

    Before a nonterminal B, as in A : u · B v, it pushes the return address A : u B · v and goes to the beginning of a
    rule of B; at a rule's end it pops a return address and goes there; before a terminal it reads it. Useless rules
    are left out, so from every place that it can reach, with every stack that it can have there, some word leads to
    the end.
    """

    grammar: Grammar

    @cached_property
    def rules(self) -> dict[int, Rule]:
        """Rule number -> rule, for the rules that occur in a derivation of some word of L, and the added first one."""
        rules, useful = dict(enumerate(self.grammar.rules)), set(range(self.grammar.n_terminals))
        while new := {rule.lhs for rule in rules.values() if useful.issuperset(rule.rhs)} - useful:
            useful |= new
        rules = {number: rule for number, rule in rules.items() if useful.issuperset(rule.rhs)}
        calls: nx.DiGraph[int] = nx.DiGraph((rule.lhs, symbol) for rule in rules.values() for symbol in rule.rhs)
        calls.add_node(self.grammar.start)
        called: set[int] = nx.descendants(calls, self.grammar.start)
        rules = {number: rule for number, rule in rules.items() if rule.lhs in called | {self.grammar.start}}
        return rules | {self.first.rule: Rule(-1, (self.grammar.start,))} if rules else {}

    @property
    def first(self) -> Position:
        return Position(len(self.grammar.rules), 0)

    @property
    def last(self) -> Position:
        return Position(len(self.grammar.rules), 1)

    @cached_property
    def states(self) -> tuple[Position, ...]:
        return tuple(Position(number, dot) for number, rule in self.rules.items() for dot in range(len(rule.rhs) + 1))

    @cached_property
    def occurrences(self) -> dict[int, tuple[Position, ...]]:
        """Symbol -> the places just after it. Those of a nonterminal are its return addresses."""
        table: dict[int, list[Position]] = {}
        for position in self.states:
            if position.dot:
                table.setdefault(self.rules[position.rule].rhs[position.dot - 1], []).append(position)
        return {symbol: tuple(positions) for symbol, positions in table.items()}

    @cached_property
    def entries(self) -> dict[int, tuple[Position, ...]]:
        """Nonterminal -> the beginnings of its rules."""
        table: dict[int, list[Position]] = {}
        for number, rule in self.rules.items():
            table.setdefault(rule.lhs, []).append(Position(number, 0))
        return {lhs: tuple(positions) for lhs, positions in table.items()}

    def next_symbol(self, position: Position) -> int | None:
        """The symbol after the place, None at a rule's end."""
        rhs = self.rules[position.rule].rhs
        return rhs[position.dot] if position.dot < len(rhs) else None

    def return_addresses(self, rule: int) -> tuple[Position, ...]:
        """Where the automaton may go on after `rule`; nowhere after the added first rule."""
        return self.occurrences.get(self.rules[rule].lhs, ())

    @cached_property
    def transitions(self) -> tuple[Transition, ...]:
        found = []
        for source in self.states:
            symbol, after = self.next_symbol(source), Position(source.rule, source.dot + 1)
            if symbol is None:
                found += [Transition(source, None, back, None, back) for back in self.return_addresses(source.rule)]
            elif self.grammar.is_nonterminal(symbol):
                found += [Transition(source, None, None, after, entry) for entry in self.entries[symbol]]
            else:
                found.append(Transition(source, symbol, None, None, after))
        return tuple(found)

    def places_before(self, terminal: int) -> tuple[Position, ...]:
        """The places after some symbol, or `first`, from which `terminal` can be read after calls alone."""
        corner: nx.DiGraph[int] = nx.DiGraph((rule.rhs[0], rule.lhs) for rule in self.rules.values() if rule.rhs)
        begins = {terminal} | (nx.descendants(corner, terminal) if terminal in corner else set())
        return tuple(p for p in self.states if (p.dot or p == self.first) and self.next_symbol(p) in begins)

    def text(self, position: Position) -> str:
        """The place as it is usually written, ``S : a · S b``."""
        rule = self.rules[position.rule]
        names = [self.grammar.symbol_name(symbol) for symbol in rule.rhs]
        lhs = "text" if position.rule == self.first.rule else self.grammar.symbol_name(rule.lhs)
        return " ".join([lhs, ":", *names[: position.dot], "·", *names[position.dot :]])

    def to_networkx(self) -> nx.MultiDiGraph[Position]:
        """Nodes are `states` (label, start), edges are `transitions` (label), in a fixed order."""
        graph: nx.MultiDiGraph[Position] = nx.MultiDiGraph()
        graph.add_nodes_from((p, {"label": self.text(p), "start": p == self.first}) for p in self.states)
        for source, read, popped, pushed, target in self.transitions:
            labels = [self.grammar.symbol_name(read)] if read is not None else []
            labels += [f"{verb} {self.text(p)}" for verb, p in (("pop", popped), ("push", pushed)) if p is not None]
            graph.add_edge(source, target, label=", ".join(labels))
        return graph

    def to_svg(self) -> str:
        """The automaton as one self-contained SVG text."""
        return _svg(self.to_networkx())


@dataclass(frozen=True)
class Exploration:
    """Every word of P that ends in context can go on with sequence: `is_proved` = True is a proof, False means unknown.

    With `start` = "before" the automaton starts at every place from which calls alone lead to reading X, the
    context's last terminal, and reads X·sequence; with "after", as in the post, at every place just after an
    occurrence of X, and reads sequence. The own stack is empty, below it lies credit. For a longer context it first
    reads the terminals before in the same way, and what lies deeper than `max_stack` on its stack then is forgotten,
    that is, becomes credit again. The context (), the start of the text, starts at `Pushdown.first`, where nothing
    can be borrowed.

    Why it is a proof. Let w in P end in the context. A run of the automaton on w stands, just before (or after)
    reading the last X, at the place of one of `starts`, its stack being that start's own stack and then some return
    addresses g1 .. gn, the last of them `Pushdown.last`; each fits the rule that returns to it. `nodes` and `edges`
    are an automaton over borrowed return addresses, and the subset construction shows: whichever fitting g1, g2, ..
    are borrowed, an epsilon-coaccessible node is met before nothing is left to borrow. There the sequence can be
    consumed; as no rule is useless, the rest can be completed to a word of L. What is cut off at `max_stack` or
    `max_states` is missing from the sets, which can only lose proofs. If the context never occurs, the statement is
    true of nothing, and proved.

    context, sequence : terminals, in the order of the text.
    max_stack : how many return addresses of its own the automaton may stack on those it starts with.
    max_states : how many configurations, and how many sets of them, are looked at.
    Raises : GrammarError when a symbol of context or sequence is not a terminal.
    Cost : exponential in `max_stack` where the grammar calls in many ways, bounded by `max_states`.
    Source : Tran-Thien, streamlining post (2025), on sequences that are always legal.
    PAPER : the post starts "after". "before" proves more: in S : a S b | a b the two a are alternatives of one call,
        so wherever an a was read the automaton may stand behind either; looked at for itself, neither lets both a and
        b follow.

    >>> from maskwright.analysis.grammar.grammar import Terminal
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
        return _pushdown(self.grammar)

    @property
    def word(self) -> tuple[int, ...]:
        """What the automaton has to read from its starts."""
        return (*self.context[-1:], *self.sequence) if self.start == "before" else self.sequence

    @cached_property
    def starts(self) -> tuple[Configuration, ...]:
        """Where the automaton can stand just before, or after, it reads the context's last terminal."""
        if not self.context:
            return (Configuration(self.pushdown.first, 0, ()),) if self.pushdown.rules else ()
        places = frozenset(
            self.pushdown.places_before(self.context[-1]) if self.start == "before" else self.pushdown.states
        )
        if self._context_run is None:
            return tuple(Configuration(place, 0, ()) for place in sorted(places))
        read = len(self.context) - (2 if self.start == "before" else 1)
        found = (n for n in self._context_run.nodes if n.consumed == read and n.position in places)
        return tuple(dict.fromkeys(Configuration(n.position, 0, n.stack) for n in found))

    @cached_property
    def _context_run(self) -> _Run | None:
        """The context read from every occurrence of its first terminal; None where the starts are known without."""
        if not self.context or (self.start == "before" and len(self.context) == 1):
            return None
        first = [Configuration(place, 0, ()) for place in self.pushdown.occurrences.get(self.context[0], ())]
        return _run(self.pushdown, first, self.context[1:], self.max_stack, self.max_states, forget=True)

    @cached_property
    def _sequence_run(self) -> _Run:
        depth = self.max_stack + max((len(start.stack) for start in self.starts), default=0)
        return _run(self.pushdown, self.starts, self.word, depth, self.max_states, forget=False)

    @property
    def nodes(self) -> tuple[Configuration, ...]:
        """The configurations met, in the order in which they were met, `starts` first."""
        return self._sequence_run.nodes

    @property
    def edges(self) -> tuple[Edge, ...]:
        return self._sequence_run.edges

    @property
    def is_truncated(self) -> bool:
        """Was something left out for `max_stack` or `max_states`?"""
        return self._sequence_run.is_truncated or (self._context_run is not None and self._context_run.is_truncated)

    @cached_property
    def accepting(self) -> frozenset[Configuration]:
        """The nodes that have consumed the whole word; the exploration goes no further there."""
        return frozenset(node for node in self.nodes if node.consumed == len(self.word))

    @cached_property
    def coaccessible(self) -> frozenset[Configuration]:
        """The epsilon-coaccessible nodes: from them the word can be consumed without borrowing."""
        return _ancestors((edge for edge in self.edges if edge.borrowed is None), self.accepting)

    @property
    def is_proved(self) -> bool:
        """always_legal(context, sequence). True is a proof; False means unknown."""
        return self.unproved is None

    @cached_property
    def unproved(self) -> tuple[Configuration | None, tuple[Position, ...]] | None:
        """None when proved; else a start and return addresses, top first, with which the word cannot be consumed.

        Where something `is_truncated`: was not consumed within the limits; the start is None when it is the starts that
        are too many for `max_states`.
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
            # All of the subset borrowed the same addresses, so one rule lies at the bottom of all their stacks.
            bottom = next(((n.stack or (n.position,))[-1].rule for n in subset), None)
            addresses = () if bottom is None else self.pushdown.return_addresses(bottom)
            if not addresses or len(seen) > self.max_states:
                return start, borrowed_so_far
            closure = _closure(subset, silent)
            for address in addresses:
                following = frozenset(t for node in closure for t in lent.get((node, address), ()))
                if following not in seen:
                    seen.add(following)
                    queue.append((start, following, (*borrowed_so_far, address)))
        return None

    def to_networkx(self) -> nx.MultiDiGraph[Configuration]:
        """`nodes` (label, start, accepting, coaccessible) and `edges` (label, silent), in a fixed order.

        An edge's label is the terminal read or ``borrow A : B · c``; calls and returns have none.
        """
        graph: nx.MultiDiGraph[Configuration] = nx.MultiDiGraph()
        starts, text, name = frozenset(self.starts), self.pushdown.text, self.grammar.symbol_name
        for node in self.nodes:
            rest = " ".join(map(name, self.word[node.consumed :])) or "done"
            stack = [f"[{text(address)}]" for address in node.stack]
            label = "\n".join([text(node.position), *stack, f"to read: {rest}"])
            graph.add_node(
                node,
                label=label,
                start=node in starts,
                accepting=node in self.accepting,
                coaccessible=node in self.coaccessible,
            )
        for source, read, borrowed, target in self.edges:
            label = name(read) if read is not None else f"borrow {text(borrowed)}" if borrowed is not None else ""
            graph.add_edge(source, target, label=label, silent=borrowed is None)
        return graph

    def to_svg(self, view: Literal["exploration", "nfa"] = "exploration") -> str:
        """A drawing as one self-contained SVG text.

        "exploration" shows what the automaton reads and borrows; "nfa" shows the automaton over borrowed return
        addresses, where all else is epsilon, with the epsilon-coaccessible nodes filled.
        """
        graph = self.to_networkx()
        for node, attributes in graph.nodes(data=True):
            attributes["filled"] = view == "nfa" and node in self.coaccessible
        for _, _, attributes in graph.edges(data=True):
            if view == "nfa" and attributes["silent"]:
                attributes["label"] = "ε"
        return _svg(graph)


class _Run(NamedTuple):
    """The configurations that were met, the steps between them, and whether a limit left something out."""

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
    """All that the automaton can do from `starts` with unlimited credit while it reads `word`, breadth first.

    A return address too many is a step not taken or, with `forget`, pushes the deepest one out into credit.
    """
    nodes: dict[Configuration, None] = dict.fromkeys(starts[:max_states])
    edges: list[Edge] = []
    queue = deque(nodes)
    is_truncated = len(starts) > max_states
    while queue:
        source = queue.popleft()
        position, consumed, stack = source
        if consumed == len(word):
            continue
        symbol = pushdown.next_symbol(position)
        after = Position(position.rule, position.dot + 1)
        steps: list[Edge] = []
        if symbol is None and stack:
            steps.append(Edge(source, None, None, Configuration(stack[0], consumed, stack[1:])))
        elif symbol is None:
            for address in pushdown.return_addresses(position.rule):
                steps.append(Edge(source, None, address, Configuration(address, consumed, ())))
        elif symbol == word[consumed]:
            steps.append(Edge(source, symbol, None, Configuration(after, consumed + 1, stack)))
        elif len(stack) < max_stack or forget:
            for entry in pushdown.entries.get(symbol, ()):
                steps.append(Edge(source, None, None, Configuration(entry, consumed, (after, *stack)[:max_stack])))
        elif symbol in pushdown.entries:
            is_truncated = True
        for edge in steps:
            if edge.target not in nodes and len(nodes) >= max_states:
                is_truncated = True
                continue
            if edge.target not in nodes:
                nodes[edge.target] = None
                queue.append(edge.target)
            edges.append(edge)
    return _Run(tuple(nodes), tuple(edges), is_truncated)


def _closure(
    subset: Iterable[Configuration], successors: Mapping[Configuration, Sequence[Configuration]]
) -> list[Configuration]:
    """What can be reached from `subset`, itself included."""
    reached = dict.fromkeys(subset)
    queue = list(reached)
    while queue:
        for node in successors.get(queue.pop(), ()):
            if node not in reached:
                reached[node] = None
                queue.append(node)
    return list(reached)


def _ancestors(edges: Iterable[Edge], targets: Iterable[Configuration]) -> frozenset[Configuration]:
    """The nodes from which one of `targets` can be reached, these included."""
    predecessors: dict[Configuration, list[Configuration]] = {}
    for edge in edges:
        predecessors.setdefault(edge.target, []).append(edge.source)
    return frozenset(_closure(targets, predecessors))


def _svg(graph: nx.MultiDiGraph[Any]) -> str:
    """`graph` in layers from left to right, by the distance from its start nodes, from which all must be reachable.

    Start nodes have a short arrow in, accepting ones a double frame, `filled` ones a colour. Parallel edges share one
    arrow, whose labels stand near its tail.
    """
    layers = list(nx.bfs_layers(graph, [node for node, is_start in graph.nodes(data="start") if is_start]))
    lines = {node: str(text).split("\n") for node, text in graph.nodes(data="label")}
    labels: dict[tuple[Any, Any], list[str]] = {}
    for source, target, attributes in graph.edges(data=True):
        labels.setdefault((source, target), []).append(attributes["label"])
    width = 7.4 * max((len(line) for node in lines for line in lines[node]), default=0) + 20
    height = 15.0 * max(map(len, lines.values()), default=0) + 14
    step_x = width + 9.5 * max((len(text) for texts in labels.values() for text in texts), default=0) + 60
    step_y = height + 15 * max(map(len, labels.values()), default=0) + 40
    rows = max(map(len, layers), default=0)
    place = {
        node: (60 + width / 2 + x * step_x, 40 + height / 2 + (y + (rows - len(layer)) / 2) * step_y)
        for x, layer in enumerate(layers)
        for y, node in enumerate(layer)
    }
    parts = [_svg_edge(*place[pair[0]], *place[pair[1]], width, height, texts) for pair, texts in labels.items()]
    for node, (x, y) in place.items():
        attributes = graph.nodes[node]
        parts.append(_svg_box(x, y, width, height, "#cfe8cf" if attributes.get("filled") else "#ffffff"))
        if attributes.get("accepting"):
            parts.append(_svg_box(x, y, width - 6, height - 6, "none"))
        if attributes["start"]:
            parts.append(f'<path d="M{x - width / 2 - 30:.0f} {y:.0f}h30" marker-end="url(#tip)"/>')
        parts.append(_svg_text(x, y, lines[node]))
    size = f'width="{max(len(layers) - 1, 0) * step_x + width + 120:.0f}" height="{rows * step_y + 80:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="monospace" font-size="12" stroke="#444444" '
        'fill="none">\n<marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto"><path d="M0 0L8 4L0 8z" fill="#444444" stroke="none"/></marker>\n'
        f'<rect {size} fill="#ffffff" stroke="none"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _svg_edge(x0: float, y0: float, x1: float, y1: float, width: float, height: float, texts: list[str]) -> str:
    """An arrow between two boxes given by their centres: forward side to side, else round below or at the right."""
    if x1 > x0:
        points = [x0 + width / 2, y0, x0 + width / 2 + 60, y0, x1 - width / 2 - 60, y1, x1 - width / 2, y1]
    elif x1 < x0:
        y0, y1 = y0 + height / 2, y1 + height / 2
        points = [x0, y0, x0, y0 + 40, x1, y1 + 40, x1, y1]
    else:
        x0, x1 = x0 + width / 2, x1 + width / 2
        points = [x0, y0 - 6, x0 + 50, y0 - 6, x1 + 50, y1 + 6, x1, y1 + 6]
    weights = (0.216, 0.432, 0.288, 0.064)  # of the four points of a Bezier curve at 0.4 of its way
    x, y = (sum(map(mul, weights, points[axis::2])) for axis in (0, 1))
    curve = "M{:.0f} {:.0f}C{:.0f} {:.0f} {:.0f} {:.0f} {:.0f} {:.0f}".format(*points)
    return f'<path d="{curve}" marker-end="url(#tip)"/>\n' + _svg_text(x, y - 10, [text for text in texts if text])


def _svg_box(x: float, y: float, width: float, height: float, fill: str) -> str:
    corner = f'x="{x - width / 2:.0f}" y="{y - height / 2:.0f}"'
    return f'<rect {corner} width="{width:.0f}" height="{height:.0f}" rx="6" fill="{fill}"/>'


def _svg_text(x: float, y: float, lines: list[str]) -> str:
    """`lines` centred on a point."""
    style, first = 'text-anchor="middle" fill="#111111" stroke="none"', y + 4 - 7.5 * (len(lines) - 1)
    return "\n".join(
        f'<text x="{x:.0f}" y="{first + 15 * i:.0f}" {style}>{escape(line)}</text>' for i, line in enumerate(lines)
    )
