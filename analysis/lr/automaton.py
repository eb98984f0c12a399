"""The LR(0) automaton: viable prefix -> the items that are valid for it.

An item is a rule with a dot; it is a number, items of one rule being consecutive. A state is its kernel, the items whose
dot has moved (and the start item); the closure is implied.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar.grammar import Grammar, Rule
from maskwright.analysis.lr.digraph import digraph

Kernel = tuple[int, ...]

MAX_STATES = 200_000
MAX_CELLS = 1 << 27
"""States times symbols: half a gibibyte of table."""


class Items:
    """The items of a grammar and of one more rule, root -> start symbol, which is the last one.

    symbol : symbol after an item's dot, -1 at the end of its rule. rule : an item's rule. first : a rule's item with the dot in front.
    """

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.symbol: list[int] = []
        self.rule: list[int] = []
        self.first: list[int] = []
        for number, body in enumerate([*(rule.rhs for rule in grammar.rules), (grammar.start,)]):
            self.first.append(len(self.symbol))
            self.symbol += [*body, -1]
            self.rule += [number] * (len(body) + 1)

    @property
    def start(self) -> int:
        """root -> . start"""
        return self.first[-1]

    def text(self, item: int) -> str:
        """The item as people write it.

        >>> from maskwright.analysis.grammar.grammar import Terminal
        >>> terminals = (Terminal("A", "a"), Terminal("__ANON_0", "=", literal="="))
        >>> items = Items(Grammar("g", terminals, ("s",), (Rule(2, (0, 1)),), start=2))
        >>> [items.text(i) for i in (1, 2, items.start)]
        ['s : A . "="', 's : A "=" .', 'the whole text : . s']
        """
        number = self.rule[item]
        dot = item - self.first[number]
        rule = self.grammar.rules[number] if item < self.start else Rule(-1, (self.grammar.start,))
        left = self.grammar.symbol_name(rule.lhs) if rule.lhs >= 0 else "the whole text"
        names = list(map(self.grammar.display_name, rule.rhs))
        return " ".join([left, ":", *names[:dot], ".", *names[dot:]])


@dataclass(frozen=True)
class Automaton:
    """The LR(0) automaton of a reduced grammar. State 0 is the start; states are numbered breadth first, symbols ascending.

    transitions : (n_states, n_symbols) int32, -1 = none.
    kernels : the kernel items of each state, ascending.
    closures : the nonterminals after a dot in each state, as bits.
    accessing : the symbol on which a state is entered, always the same; -1 for state 0.
    completed : the rules that end in each state, ascending; the root rule is not among them.
    """

    items: Items
    transitions: npt.NDArray[np.int32]
    kernels: tuple[Kernel, ...]
    closures: tuple[int, ...]
    accessing: tuple[int, ...]
    completed: tuple[tuple[int, ...], ...]

    @property
    def grammar(self) -> Grammar:
        return self.items.grammar

    @property
    def n_states(self) -> int:
        return len(self.kernels)

    @cached_property
    def below(self) -> list[list[int]]:
        """For each state those that have a transition to it, ascending."""
        source, symbol = np.nonzero(self.transitions >= 0)
        target = self.transitions[source, symbol]
        order = np.argsort(target, kind="stable")
        bounds = np.searchsorted(target[order], np.arange(self.n_states + 1)).tolist()
        sources: list[int] = source[order].tolist()
        return [sources[i:j] for i, j in pairwise(bounds)]

    @property
    def accepting(self) -> int:
        """The state in which the whole text has been reduced to the start symbol."""
        return int(self.transitions[0, self.grammar.start])

    def restricted(self, states: npt.NDArray[np.int32]) -> Automaton:
        """The automaton of some states alone, ascending, the start and the accepting state among them; they are numbered anew."""
        number = np.full(self.n_states + 1, -1, np.int32)  # the last one for no state
        number[states] = np.arange(len(states), dtype=np.int32)
        kept: list[int] = states.tolist()
        return Automaton(
            self.items,
            number[self.transitions[states]],
            tuple(self.kernels[state] for state in kept),
            tuple(self.closures[state] for state in kept),
            tuple(self.accessing[state] for state in kept),
            tuple(self.completed[state] for state in kept),
        )


class _Closure:
    """What a set of nonterminals after a dot adds to a state, the same for all states with that set.

    kernels : symbol -> the items past that symbol. row : the states with just these kernels, -1 where not yet asked for.
    missing : the symbols not yet asked for. empty : the empty rules.
    """

    __slots__ = ("empty", "kernels", "missing", "row")

    def __init__(self, rules: Iterable[int], items: Items, n_symbols: int) -> None:
        found: dict[int, list[int]] = {}
        self.empty: list[int] = []
        for rule in rules:
            first = items.first[rule]
            if items.symbol[first] < 0:
                self.empty.append(rule)
            else:
                found.setdefault(items.symbol[first], []).append(first + 1)
        self.kernels = {symbol: tuple(sorted(found[symbol])) for symbol in sorted(found)}
        self.missing = list(self.kernels)
        self.row = np.full(n_symbols, -1, np.int32)


def build_automaton(grammar: Grammar) -> Automaton:
    """The LR(0) automaton of a reduced grammar (`normalise.reduce`).

    Raises LimitError past MAX_STATES states or MAX_CELLS states times symbols.
    Cost: O(states * symbols) copied, and O(distinct closures * rules); there can be exponentially many states.
    Source: Aho, Lam, Sethi, Ullman, Compilers (2nd ed.), 4.6.2. Here equal closures are shared: what they add to a state, and where that
    leads, is found once; most states of a real grammar differ in few symbols.
    """
    items = Items(grammar)
    n_terminals, n_symbols = grammar.n_terminals, grammar.n_terminals + grammar.n_nonterminals
    rules_of: list[list[int]] = [[] for _ in range(grammar.n_nonterminals)]
    corners: list[set[int]] = [set() for _ in range(grammar.n_nonterminals)]
    for number, rule in enumerate(grammar.rules):
        rules_of[rule.lhs - n_terminals].append(number)
        if rule.rhs and grammar.is_nonterminal(rule.rhs[0]):
            corners[rule.lhs - n_terminals].add(rule.rhs[0] - n_terminals)
    derives = digraph([sorted(c) for c in corners], [1 << i for i in range(grammar.n_nonterminals)])

    kernels: list[Kernel] = [(items.start,)]
    number_of = {kernels[0]: 0}
    accessing = [-1]
    closures: list[int] = []
    completed: list[tuple[int, ...]] = []
    shared: dict[int, _Closure] = {}
    transitions = np.empty((256, n_symbols), np.int32)

    def state(kernel: Kernel, symbol: int) -> int:
        found = number_of.get(kernel)
        if found is None:
            found = number_of[kernel] = len(kernels)
            kernels.append(kernel)
            accessing.append(symbol)
            if found >= MAX_STATES or (found + 1) * n_symbols > MAX_CELLS:
                raise LimitError(_too_large(items, kernels, n_symbols))
        return found

    here = 0
    while here < len(kernels):
        closure_set = 0
        ended: list[int] = []
        past: dict[int, list[int]] = {}
        for item in kernels[here]:
            symbol = items.symbol[item]
            if symbol >= 0:
                past.setdefault(symbol, []).append(item + 1)
                if symbol >= n_terminals:
                    closure_set |= derives[symbol - n_terminals]
            elif items.rule[item] < len(grammar.rules):
                ended.append(items.rule[item])
        closure = shared.get(closure_set)
        if closure is None:
            members = (rule for nonterminal in bits(closure_set) for rule in rules_of[nonterminal])
            closure = shared[closure_set] = _Closure(members, items, n_symbols)
        targets: dict[int, int] = {}
        for symbol in sorted({*past, *closure.missing}):
            if symbol in past:
                kernel = tuple(sorted([*past[symbol], *closure.kernels.get(symbol, ())]))
                targets[symbol] = state(kernel, symbol)
            else:
                closure.row[symbol] = state(closure.kernels[symbol], symbol)
        closure.missing = [symbol for symbol in closure.missing if symbol in past]
        if here == len(transitions):
            transitions = np.concatenate([transitions, np.empty_like(transitions)])
        row = transitions[here]
        row[:] = closure.row
        row[list(targets)] = list(targets.values())
        closures.append(closure_set)
        completed.append(tuple(sorted([*ended, *closure.empty])))
        here += 1
    return Automaton(
        items, transitions[:here].copy(), tuple(kernels), tuple(closures), tuple(accessing), tuple(completed)
    )


def bits(number: int) -> list[int]:
    """The positions of the one bits, ascending.

    >>> bits(0b10110)
    [1, 2, 4]
    """
    data = np.frombuffer(number.to_bytes((number.bit_length() + 7) // 8, "little"), np.uint8)
    positions: list[int] = np.flatnonzero(np.unpackbits(data, bitorder="little")).tolist()
    return positions


def _too_large(items: Items, kernels: list[Kernel], n_symbols: int) -> str:
    """The message of the limit; it names the nonterminal whose rules are in progress in most states."""
    grammar = items.grammar
    count = [0] * grammar.n_nonterminals
    for kernel in kernels[1:]:
        for lhs in {grammar.rules[items.rule[i]].lhs for i in kernel if items.rule[i] < len(grammar.rules)}:
            count[lhs - grammar.n_terminals] += 1
    worst = max(range(len(count)), key=lambda i: count[i])
    return (
        f"grammar {grammar.name}: its LR automaton has {len(kernels)} states or more over {n_symbols} symbols, past the limit of "
        f"{MAX_STATES} states and {MAX_CELLS} cells; rules of {grammar.symbol_name(grammar.n_terminals + worst)!r} are under way in "
        f"{count[worst]} of them: give it fewer or shorter alternatives, or split the grammar"
    )
