"""The LR(0) automaton: viable prefix -> the items that are valid for it.

An item is a rule with a dot. It is represented by a number, and the items of one rule are
consecutive. A state is its kernel, that is the items whose dot has moved (and the start item). The
closure is implied.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from maskwright.analysis.deadline import look
from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar.grammar import Grammar, Rule
from maskwright.analysis.graphs import unions
from maskwright.analysis.kept import cached_property

Kernel = tuple[int, ...]
"""The items of a state whose dot has moved, ascending."""

MAX_STATES = 200_000
"""The most states of an automaton."""
MAX_TRANSITIONS = 1 << 22
"""The most transitions of an automaton."""
MAX_CELLS = 1 << 27
"""The most states times symbols of a table that is written out: half a gibibyte."""
SMALL = 1 << 20
"""The most cells of a table of transitions that is written out because it is quicker to read."""


class Items:
    """The items of a grammar and of one more rule, root -> start symbol, which is the last one.

    symbol : for each item the symbol after its dot, -1 at the end of its rule.
    rule : for each item its rule; n_rules for the root rule.
    first : for each rule its item with the dot in front.

    Example: the rule `s : A B` has three items, one before A, one before B, and one at the end.
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
        """The item root -> . start."""
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
    """The LR(0) automaton of a reduced grammar. State 0 is the start.

    States are numbered breadth first, symbols ascending.

    items : the items of the grammar's rules.
    source, symbol, target : (n_transitions,) int32; the transitions, ordered by source and then by
        symbol.
    kernels : for each state its kernel items, ascending.
    closures : for each state the nonterminals after a dot, as bits: nonterminal index i is bit i.
    accessing : for each state the symbol on which it is entered, always the same; -1 for state 0.
    completed : for each state the rules that end in it, ascending, without the root rule.
    """

    items: Items
    source: npt.NDArray[np.int32]
    symbol: npt.NDArray[np.int32]
    target: npt.NDArray[np.int32]
    kernels: tuple[Kernel, ...]
    closures: tuple[int, ...]
    accessing: tuple[int, ...]
    completed: tuple[tuple[int, ...], ...]

    @property
    def grammar(self) -> Grammar:
        """The grammar."""
        return self.items.grammar

    @property
    def n_states(self) -> int:
        """The number of states."""
        return len(self.kernels)

    @property
    def n_symbols(self) -> int:
        """The number of terminals and nonterminals."""
        return self.grammar.n_terminals + self.grammar.n_nonterminals

    @cached_property
    def transitions(self) -> npt.NDArray[np.int32]:
        """(n_states, n_symbols) int32; the state after each state and symbol, -1 = none.

        Raises: as `check_cells`.
        """
        self.check_cells()
        table = np.full((self.n_states, self.n_symbols), -1, np.int32)
        table[self.source, self.symbol] = self.target
        return table

    def check_cells(self) -> None:
        """Raises: LimitError if a table of the states and symbols has more than MAX_CELLS cells."""
        if self.n_states * self.n_symbols > MAX_CELLS:
            raise LimitError(
                _too_large(self.items, self.kernels, self.n_symbols, f"past the limit of {MAX_CELLS} cells")
            )

    @cached_property
    def _index(self) -> npt.NDArray[np.intp] | None:
        """(n_states, n_symbols) intp; the transition of each state and symbol. None if large."""
        if self.n_states * self.n_symbols > SMALL:
            return None
        index = np.zeros((self.n_states, self.n_symbols), np.intp)
        index[self.source, self.symbol] = np.arange(len(self.source))
        return index

    @cached_property
    def _keys(self) -> npt.NDArray[np.int64]:
        return self.source.astype(np.int64) * self.n_symbols + self.symbol

    def find(self, states: npt.NDArray[np.int32], symbol: int) -> npt.NDArray[np.intp]:
        """The transitions on one symbol, each of which must exist.

        states : (n,) int32; the states that the transitions leave.

        Returns (n,) intp; their indices in `source`, `symbol` and `target`.
        """
        index = self._index
        if index is not None:
            found: npt.NDArray[np.intp] = index[states, symbol]
            return found
        return np.searchsorted(self._keys, states.astype(np.int64) * self.n_symbols + symbol)

    @cached_property
    def shifted(self) -> tuple[int, ...]:
        """For each state the terminals on which it has a transition, as bits."""
        n_terminals = self.grammar.n_terminals
        symbols: list[int] = self.symbol.tolist()
        known: dict[tuple[int, ...], int] = {}
        found = []
        for begin, end in pairwise(np.searchsorted(self.source, np.arange(self.n_states + 1)).tolist()):
            terminals = tuple(symbols[begin : bisect_left(symbols, n_terminals, begin, end)])
            if terminals not in known:
                known[terminals] = from_bits(terminals, n_terminals)
            found.append(known[terminals])
        return tuple(found)

    @cached_property
    def is_used(self) -> npt.NDArray[np.bool_]:
        """(n_terminals,) bool; whether each terminal occurs in a rule."""
        n_terminals = self.grammar.n_terminals
        used = np.zeros(n_terminals, np.bool_)
        used[[symbol for rule in self.grammar.rules for symbol in rule.rhs if symbol < n_terminals]] = True
        return used

    @cached_property
    def below(self) -> list[list[int]]:
        """For each state the states that have a transition to it, ascending."""
        order = np.argsort(self.target, kind="stable")
        bounds = np.searchsorted(self.target[order], np.arange(self.n_states + 1)).tolist()
        sources: list[int] = self.source[order].tolist()
        return [sources[i:j] for i, j in pairwise(bounds)]

    @cached_property
    def accepting(self) -> int:
        """The state in which the whole text has been reduced to the start symbol."""
        return int(self.target[self.find(np.zeros(1, np.int32), self.grammar.start)[0]])

    def restricted(self, states: npt.NDArray[np.int32]) -> Automaton:
        """The automaton of some states alone, which are numbered anew.

        states : (n,) int32, ascending; the start and the accepting state must be among them.
        """
        number = np.full(self.n_states, -1, np.int32)
        number[states] = np.arange(len(states), dtype=np.int32)
        kept: list[int] = states.tolist()
        is_kept = (number[self.source] >= 0) & (number[self.target] >= 0)
        return Automaton(
            self.items,
            number[self.source[is_kept]],
            self.symbol[is_kept],
            number[self.target[is_kept]],
            tuple(self.kernels[state] for state in kept),
            tuple(self.closures[state] for state in kept),
            tuple(self.accessing[state] for state in kept),
            tuple(self.completed[state] for state in kept),
        )


class _Closure:
    """What a set of nonterminals after a dot adds to a state. All states with that set share it.

    kernels : symbol -> the items past that symbol. symbols : (n,) int32; these symbols, ascending.
    index_of : symbol -> its index in `symbols`. missing : the symbols for which no state has been
        needed yet.
    row : (n,) int32; for each symbol the state with just its kernel, -1 if it has not been needed
        yet.
    empty : the empty rules.
    """

    __slots__ = ("empty", "index_of", "kernels", "missing", "row", "symbols")

    def __init__(self, rules: Iterable[int], items: Items) -> None:
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
        self.symbols = np.array(self.missing, np.int32)
        self.index_of = {symbol: i for i, symbol in enumerate(self.missing)}
        self.row = np.full(len(self.symbols), -1, np.int32)

    def transitions(self, targets: dict[int, int]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """A state's symbols, ascending, and the states that they lead to.

        targets : symbol -> state, where a state differs from the shared row or has a symbol more.

        Returns two arrays (n,) int32.
        """
        row = self.row.copy()
        more = {symbol: target for symbol, target in targets.items() if symbol not in self.index_of}
        for symbol, target in targets.items():
            if symbol in self.index_of:
                row[self.index_of[symbol]] = target
        if not more:
            return self.symbols, row
        symbols = np.concatenate([self.symbols, np.array(list(more), np.int32)])
        order = np.argsort(symbols)
        return symbols[order], np.concatenate([row, np.array(list(more.values()), np.int32)])[order]


def build_automaton(grammar: Grammar) -> Automaton:
    """The LR(0) automaton of a reduced grammar (`normalise.reduce`).

    Raises: LimitError if there are more than MAX_STATES states or MAX_TRANSITIONS transitions.
    Cost: O(transitions), and O(distinct closures * rules). There can be exponentially many states.
    Source: Aho, Lam, Sethi, Ullman, Compilers (2nd ed.), 4.6.2. We differ in that equal closures
        are shared: what they add to a state, and where that leads, is found once. Most states of a
        real grammar differ in few symbols.
    """
    items = Items(grammar)
    n_terminals, n_symbols = grammar.n_terminals, grammar.n_terminals + grammar.n_nonterminals
    rules_of: list[list[int]] = [[] for _ in range(grammar.n_nonterminals)]
    corners: list[set[int]] = [set() for _ in range(grammar.n_nonterminals)]
    for number, rule in enumerate(grammar.rules):
        rules_of[rule.lhs - n_terminals].append(number)
        if rule.rhs and grammar.is_nonterminal(rule.rhs[0]):
            corners[rule.lhs - n_terminals].add(rule.rhs[0] - n_terminals)
    derives = unions([sorted(c) for c in corners], [1 << i for i in range(grammar.n_nonterminals)])

    kernels: list[Kernel] = [(items.start,)]
    number_of = {kernels[0]: 0}
    accessing = [-1]
    closures: list[int] = []
    completed: list[tuple[int, ...]] = []
    shared: dict[int, _Closure] = {}
    rows: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]] = []
    n_transitions = n_closed = 0

    def state(kernel: Kernel, symbol: int) -> int:
        found = number_of.get(kernel)
        if found is None:
            found = number_of[kernel] = len(kernels)
            kernels.append(kernel)
            accessing.append(symbol)
            if found >= MAX_STATES:
                raise LimitError(_too_large(items, kernels, n_symbols, f"past the limit of {MAX_STATES} states"))
        return found

    here = 0
    while here < len(kernels):
        look()
        closure_set = 0
        ended: list[int] = []
        kernel_after: dict[int, list[int]] = {}
        for item in kernels[here]:
            symbol = items.symbol[item]
            if symbol >= 0:
                kernel_after.setdefault(symbol, []).append(item + 1)
                if symbol >= n_terminals:
                    closure_set |= derives[symbol - n_terminals]
            elif items.rule[item] < len(grammar.rules):
                ended.append(items.rule[item])
        closure = shared.get(closure_set)
        if closure is None:
            members = (rule for nonterminal in bits(closure_set) for rule in rules_of[nonterminal])
            closure = shared[closure_set] = _Closure(members, items)
            n_closed += len(closure.kernels)
        targets: dict[int, int] = {}
        for symbol in sorted({*kernel_after, *closure.missing}):
            if symbol in kernel_after:
                kernel = tuple(sorted([*kernel_after[symbol], *closure.kernels.get(symbol, ())]))
                targets[symbol] = state(kernel, symbol)
            else:
                closure.row[closure.index_of[symbol]] = state(closure.kernels[symbol], symbol)
        closure.missing = [symbol for symbol in closure.missing if symbol in kernel_after]
        rows.append(closure.transitions(targets))
        n_transitions += len(rows[-1][0])
        if max(n_transitions, n_closed) > MAX_TRANSITIONS:
            raise LimitError(_too_large(items, kernels, n_symbols, f"past the limit of {MAX_TRANSITIONS} transitions"))
        closures.append(closure_set)
        completed.append(tuple(sorted([*ended, *closure.empty])))
        here += 1
    source = np.repeat(np.arange(here, dtype=np.int32), [len(symbols) for symbols, _ in rows])
    symbols, found = (np.concatenate([row[i] for row in rows]) for i in (0, 1))
    return Automaton(
        items, source, symbols, found, tuple(kernels), tuple(closures), tuple(accessing), tuple(completed)
    )  # fmt: skip


def bits(number: int) -> list[int]:
    """The positions of the one bits, ascending.

    >>> bits(0b10110)
    [1, 2, 4]
    """
    if number & (number - 1) == 0:  # PERF: most sets of a large grammar have one member
        return [number.bit_length() - 1] if number else []
    data = np.frombuffer(number.to_bytes((number.bit_length() + 7) // 8, "little"), np.uint8)
    positions: list[int] = np.flatnonzero(np.unpackbits(data, bitorder="little")).tolist()
    return positions


def from_bits(positions: Sequence[int], n: int) -> int:
    """The number whose one bits are at these positions, which are below n.

    >>> from_bits([1, 2, 4], 5)
    22
    """
    data = bytearray(n // 8 + 1)
    for position in positions:
        data[position >> 3] |= 1 << (position & 7)
    return int.from_bytes(data, "little")


def _too_large(items: Items, kernels: Sequence[Kernel], n_symbols: int, limit: str) -> str:
    """The message of a limit. It names the nonterminal whose rules are under way in most states."""
    grammar = items.grammar
    count = [0] * grammar.n_nonterminals
    for kernel in kernels[1:]:
        for lhs in {grammar.rules[items.rule[i]].lhs for i in kernel if items.rule[i] < len(grammar.rules)}:
            count[lhs - grammar.n_terminals] += 1
    worst = max(range(len(count)), key=lambda i: count[i])
    return (
        f"grammar {grammar.name}: its LR automaton has at least {len(kernels)} states over {n_symbols} symbols, {limit}; "
        f"rules of {grammar.symbol_name(grammar.n_terminals + worst)!r} are under way in {count[worst]} states; give it fewer or shorter "
        "alternatives, or split the grammar"
    )
