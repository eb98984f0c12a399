"""A grammar as a pushdown automaton: states are positions in rules, the stack has return addresses.

In: a `Grammar`. Out: states, transitions, runs, pictures. The automaton reads a word as a program
runs: it calls a nonterminal, and returns at the end of the nonterminal's rule.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate, product
from typing import NamedTuple

from maskwright.analysis.grammar.grammar import Grammar, Rule
from maskwright.analysis.grammar.normalise import productive_symbols, reachable_symbols
from maskwright.analysis.graphs import reachable
from maskwright.analysis.kept import cached_property
from maskwright.analysis.legality.graph import Graph, Link, Look, to_svg


class Position(NamedTuple):
    """A position in a rule, as in ``S : a · S b``.

    A position just after a nonterminal is also a return address: the automaton goes on there when
    the nonterminal's rule is done.

    rule : the number of the rule in the grammar. The number of rules itself stands for an added
        rule ``text : S``, where S is the start symbol.
    dot : the number of the rule's symbols before the position.
    """

    rule: int
    dot: int


class Transition(NamedTuple):
    """One move of the pushdown automaton.

    It reads a terminal, or pops or pushes a return address. The two others are None.
    """

    source: Position
    read: int | None
    popped: Position | None
    pushed: Position | None
    target: Position


class Configuration(NamedTuple):
    """Where the automaton stands; also a state of an `Exploration`, and a node of its picture.

    position : the position in a rule.
    consumed : the number of the word's terminals read so far.
    stack : the return addresses that the automaton pushed itself, the top first. Below them lies
        nothing, or the credit of an exploration.
    """

    position: Position
    consumed: int
    stack: tuple[Position, ...]

    def after(self, move: Transition) -> Configuration:
        """The configuration after a move that can be made here."""
        stack = self.stack[1:] if move.popped else self.stack
        stack = (move.pushed, *stack) if move.pushed else stack
        return Configuration(move.target, self.consumed + (move.read is not None), stack)


Run = tuple[tuple[Configuration, Transition], ...]
"""A run: each configuration with the move that is made there."""


@dataclass(frozen=True)
class Pushdown:
    """The pushdown automaton that reads exactly the words of L.

    It reads a word from `first` to `last`, with an empty stack at both. Its moves depend on the
    symbol after its position:

    - a terminal, as in ``A : u · a v``: it reads it and goes to ``A : u a · v``;
    - a nonterminal, as in ``A : u · B v``: it pushes the return address ``A : u B · v`` and goes to
      the beginning of a rule of B;
    - none, at a rule's end: it pops a return address and goes there.

    Useless rules are left out. So some word leads to the end from every position that the automaton
    can reach, with every stack that it can have there.
    """

    grammar: Grammar

    @cached_property
    def rules(self) -> dict[int, Rule]:
        """Rule number -> rule, for the rules that occur in a derivation of some word of L.

        The added first rule is among them. Empty if L is. (`normalise.reduce` would also renumber
        the rules, drop repeated ones and refuse an empty language.)
        """
        productive = productive_symbols(self.grammar)
        rules = {n: rule for n, rule in enumerate(self.grammar.rules) if productive.issuperset(rule.rhs)}
        called = reachable_symbols(
            self.grammar.with_rules(self.grammar.nonterminals, tuple(rules.values()), self.grammar.start)
        )
        rules = {n: rule for n, rule in rules.items() if rule.lhs in called}
        return rules | {self.first.rule: Rule(-1, (self.grammar.start,))} if rules else {}

    @property
    def first(self) -> Position:
        """The position at which the automaton starts, before the start symbol of the added rule."""
        return Position(len(self.grammar.rules), 0)

    @property
    def last(self) -> Position:
        """The position at which the automaton ends, after the start symbol of the added rule."""
        return Position(len(self.grammar.rules), 1)

    @cached_property
    def states(self) -> tuple[Position, ...]:
        """All positions in `rules`, by rule, then from left to right."""
        return tuple(Position(number, dot) for number, rule in self.rules.items() for dot in range(len(rule.rhs) + 1))

    @cached_property
    def occurrences(self) -> dict[int, tuple[Position, ...]]:
        """Symbol -> the positions just after it; for a nonterminal, its return addresses."""
        table: dict[int, list[Position]] = {}
        for position in self.states:
            if position.dot:
                table.setdefault(self.rules[position.rule].rhs[position.dot - 1], []).append(position)
        return {symbol: tuple(positions) for symbol, positions in table.items()}

    @cached_property
    def rule_starts(self) -> dict[int, tuple[Position, ...]]:
        """Nonterminal -> the beginnings of its rules."""
        table: dict[int, list[Position]] = {}
        for number, rule in self.rules.items():
            table.setdefault(rule.lhs, []).append(Position(number, 0))
        return {lhs: tuple(positions) for lhs, positions in table.items()}

    def next_symbol(self, position: Position) -> int | None:
        """The symbol after the position; None at a rule's end."""
        rhs = self.rules[position.rule].rhs
        return rhs[position.dot] if position.dot < len(rhs) else None

    def return_addresses(self, rule: int) -> tuple[Position, ...]:
        """The positions at which the automaton may go on after `rule`; none for the added rule."""
        return self.occurrences.get(self.rules[rule].lhs, ())

    def end_of(self, rule: int) -> Position:
        """The position at a rule's end."""
        return Position(rule, len(self.rules[rule].rhs))

    @cached_property
    def transitions(self) -> tuple[Transition, ...]:
        """All moves, in the order of `states`."""
        found = []
        for source in self.states:
            symbol, after = self.next_symbol(source), Position(source.rule, source.dot + 1)
            if symbol is None:
                found += [Transition(source, None, back, None, back) for back in self.return_addresses(source.rule)]
            elif self.grammar.is_nonterminal(symbol):
                found += [Transition(source, None, None, after, entry) for entry in self.rule_starts[symbol]]
            else:
                found.append(Transition(source, symbol, None, None, after))
        return tuple(found)

    @cached_property
    def moves(self) -> dict[Position, list[Transition]]:
        """Position -> the moves that leave it."""
        table: dict[Position, list[Transition]] = {position: [] for position in self.states}
        for move in self.transitions:
            table[move.source].append(move)
        return table

    def positions_before(self, terminal: int) -> tuple[Position, ...]:
        """The positions from which calls alone can lead to reading `terminal`.

        Only positions just after a symbol count, and `first`.
        """
        lefts: dict[int, list[int]] = {}
        for rule in self.rules.values():
            if rule.rhs:
                lefts.setdefault(rule.rhs[0], []).append(rule.lhs)
        begins = reachable([terminal], lambda symbol: lefts.get(symbol, ()))
        return tuple(p for p in self.states if (p.dot or p == self.first) and self.next_symbol(p) in begins)

    def text(self, position: Position) -> str:
        """The position as it is usually written, ``S : a · S b``."""
        rule = self.rules[position.rule]
        names = [self.grammar.display_name(symbol) for symbol in rule.rhs]
        lhs = "text" if position.rule == self.first.rule else self.grammar.display_name(rule.lhs)
        return " ".join([lhs, ":", *names[: position.dot], "·", *names[position.dot :]])

    def run(self, word: tuple[int, ...]) -> Run | None:
        """A run on a word whose parse tree has the least height; None if the word is not in L.

        Cost: O(height of the parse * size of the grammar * len(word)**3).
        """
        # (position, terminals read) -> where the position's rule can end, with the moves until then
        found: dict[tuple[Position, int], dict[int, tuple[Transition, ...]]] = {}
        size = -1
        for position in self.states:
            if self.next_symbol(position) is None:
                found |= {(position, start): {start: ()} for start in range(len(word) + 1)}
        while size != (size := sum(map(len, found.values()))):
            new = []
            for move, start in product(self.transitions, range(len(word) + 1)):
                begun: dict[int, tuple[Transition, ...]] = {}
                if move.read is not None and word[start : start + 1] == (move.read,):
                    begun, after = {start + 1: (move,)}, move.target
                elif move.pushed is not None:
                    after, end_of_rule = move.pushed, self.end_of(move.target.rule)
                    back = Transition(end_of_rule, None, after, None, after)
                    begun = {at: (move, *moves, back) for at, moves in found.get((move.target, start), {}).items()}
                for middle, first in begun.items():
                    for end, rest in found.get((after, middle), {}).items():
                        new.append((move.source, start, end, (*first, *rest)))
            for position, start, end, moves in new:
                found.setdefault((position, start), {}).setdefault(end, moves)
        whole = found.get((self.first, 0), {}).get(len(word))
        if whole is None:
            return None
        configurations = accumulate(whole, Configuration.after, initial=Configuration(self.first, 0, ()))
        return tuple(zip(configurations, whole, strict=False))

    @cached_property
    def graph(self) -> Graph[Position]:
        """The automaton as a graph: nodes are `states`, edges are `transitions`."""
        return self._graph(self.states, [(move, "") for move in self.transitions])

    def run_graph(self, run: Run) -> Graph[Position]:
        """The positions and moves of a run, each move with the numbers of its steps, from 1."""
        steps: dict[Transition, list[str]] = {}
        for number, (_, move) in enumerate(run, start=1):
            steps.setdefault(move, []).append(str(number))
        positions = dict.fromkeys([self.first, *(move.target for _, move in run)])
        return self._graph(positions, [(move, f"{', '.join(numbers)}: ") for move, numbers in steps.items()])

    def run_rows(self, run: Run, word: tuple[int, ...]) -> list[tuple[str, str, str, str]]:
        """A row for each configuration: position, stack (the top first), what is to read, move."""
        name = self.grammar.display_name
        rows = []
        for (position, consumed, stack), move in run:
            rest, shown = " ".join(map(name, word[consumed:])), self._label(move).replace("\n", " ")
            rows.append((self.text(position), " ".join(f"[{self.text(address)}]" for address in stack), rest, shown))
        return [*rows, (self.text(self.last), "", "", "accept")]

    def _label(self, move: Transition) -> str:
        """What a move reads, pops or pushes."""
        labels = [self.grammar.display_name(move.read)] if move.read is not None else []
        both = (("pop", move.popped), ("push", move.pushed))
        return "\n".join(labels + [f"{verb}\n{self.text(p)}" for verb, p in both if p is not None])

    def _graph(self, positions: Iterable[Position], moves: Iterable[tuple[Transition, str]]) -> Graph[Position]:
        """A graph of some positions and moves, each move with what its label begins with."""
        nodes = {
            each: Look(self.text(each), start=each == self.first, accepting=each == self.last) for each in positions
        }
        return Graph(nodes, [Link(move.source, move.target, before + self._label(move)) for move, before in moves])

    def to_svg(self) -> str:
        """A picture as one self-contained SVG text. The position `last` has a double frame."""
        return to_svg(self.graph, f"Pushdown automaton of the grammar {self.grammar.name}")
