"""Shortest texts: of a symbol, up to a parser state, or from a stack to the end of a text.

A text is written with the shortest lexeme of each terminal. Where two lexemes would run together,
an ignored lexeme is put between them. Layout is written as lines that are indented by one space a
level.

The caller always reads again what was written. So a text that does not come out as meant is never
shown.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.kept import cached_property
from maskwright.analysis.lr.automaton import Automaton
from maskwright.analysis.lr.yields import Yields
from maskwright.lint.lexer import Lexer

MAX_LENGTH = 2_000
"""Terminals of the longest sequence that is written out."""
MAX_COMPLETIONS = 3_000
"""Stacks looked at for a shortest end of a text."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A derivation: a symbol, and the derivations of its rule's symbols.

    symbol : number of a terminal or nonterminal.
    children : None for a terminal.
    """

    symbol: int
    children: tuple[Tree, ...] | None = None

    def terminals(self) -> Iterator[int]:
        """The terminals of the derived sentence, in order."""
        agenda = [self]
        while agenda:
            tree = agenda.pop()
            if tree.children is None:
                yield tree.symbol
            else:
                agenda += tree.children[::-1]


TreeStack: TypeAlias = "tuple[int, Tree | None, TreeStack | None]"
"""State on top, derivation of its symbol, stack below; the last two are None at the bottom."""


def states_of(stack: TreeStack | None) -> tuple[int, ...]:
    """The states of a stack, the bottom one last."""
    found = []
    while stack is not None:
        found.append(stack[0])
        stack = stack[2]
    return tuple(found)


def reduced(automaton: Automaton, stack: TreeStack, n: int, lhs: int, more: Sequence[Tree] = ()) -> TreeStack | None:
    """The stack after a reduction of its last n symbols; None if the automaton has no such stack.

    more : derivations of further symbols of the rule, which are not on the stack.
    """
    children: list[Tree] = []
    below: TreeStack | None = stack
    for _ in range(n):
        if below is None or below[1] is None:
            return None
        children.append(below[1])
        below = below[2]
    after = -1 if below is None else int(automaton.transitions[below[0], lhs])
    return None if after < 0 else (after, Tree(lhs, (*children[::-1], *more)), below)


class Writer:
    """Writes texts of a grammar's reduced rules.

    grammar : its layout and ignored terminals apply.
    automaton : LR(0) automaton of the rules.
    lexer : tells which lexemes run together.
    lexemes : terminal -> how it is written. A terminal without a lexeme is in no text that is
        written here.
    cost : for each symbol the cost of its cheapest yield: its bytes, and one for each lexeme; -1 if
        it has none.
    body : for each nonterminal the right-hand side that its cheapest yield begins with.
    """

    def __init__(self, grammar: Grammar, automaton: Automaton, lexer: Lexer, lexemes: dict[int, bytes]) -> None:
        self.grammar, self.automaton, self.lexer, self.lexemes = grammar, automaton, lexer, lexemes
        self.rules = automaton.grammar
        inserted = () if grammar.layout is None else (grammar.layout.indent, grammar.layout.dedent)
        costs = {terminal: 1 + len(lexeme) for terminal, lexeme in lexemes.items()} | dict.fromkeys(inserted, 1)
        self._yields = Yields(self.rules, costs)
        self.cost, self.body = self._yields.cost, self._yields.body
        self._trees: dict[int, Tree] = {}
        self._paths: dict[frozenset[int], dict[int, tuple[int, ...]]] = {}

    def yield_of(self, symbols: Iterable[int]) -> tuple[int, ...] | None:
        """A cheapest terminal sequence that some symbols in a row derive.

        Returns None if there is none, or if it has more than MAX_LENGTH terminals.
        """
        symbols = tuple(symbols)
        if min((self.cost[symbol] for symbol in symbols), default=0) < 0:
            return None
        word = tuple(itertools.islice(self._yields.of(symbols), MAX_LENGTH + 1))
        return word if len(word) <= MAX_LENGTH else None

    def tree_of(self, symbol: int) -> Tree:
        """The derivation of a symbol's cheapest yield. The symbol must have one."""
        known = self._trees.get(symbol)
        if known is not None:
            return known
        done: list[Tree] = []
        agenda: list[tuple[int, bool]] = [(symbol, False)]
        while agenda:
            at, is_built = agenda.pop()
            if not self.rules.is_nonterminal(at):
                done.append(Tree(at))
            elif is_built:
                n = len(self.body[at])
                done[len(done) - n :] = [Tree(at, tuple(done[len(done) - n :]))]
            else:
                agenda.append((at, True))
                agenda += [(inner, False) for inner in self.body[at][::-1]]
        self._trees[symbol] = done[0]
        return done[0]

    @cached_property
    def moves(self) -> list[list[tuple[int, int]]]:
        """For each state of the automaton its (symbol, next state), if the symbol has a text."""
        found: list[list[tuple[int, int]]] = [[] for _ in range(self.automaton.n_states)]
        automaton = self.automaton
        for source, s, target in zip(
            automaton.source.tolist(), automaton.symbol.tolist(), automaton.target.tolist(), strict=True
        ):
            if self.cost[s] >= 0:
                found[source].append((s, target))
        return found

    def paths(self, avoiding: frozenset[int] = frozenset()) -> dict[int, tuple[int, ...]]:
        """State -> the symbols of a viable prefix with a shortest text that leads there.

        The states are in the order of their texts' cost.

        avoiding : symbols that the prefixes must not contain.
        """
        known = self._paths.get(avoiding)
        if known is not None:
            return known
        best = {0: 0}
        predecessor: dict[int, tuple[int, int]] = {}
        done: dict[int, tuple[int, ...]] = {}
        agenda = [(0, 0)]
        while agenda:
            cost, state = heapq.heappop(agenda)
            if state in done:
                continue
            before, symbol = predecessor.get(state, (-1, -1))
            done[state] = (*done[before], symbol) if state else ()
            for symbol, target in self.moves[state]:
                length = cost + self.cost[symbol]
                if symbol not in avoiding and (target not in best or length < best[target]):
                    best[target], predecessor[target] = length, (state, symbol)
                    heapq.heappush(agenda, (length, target))
        self._paths[avoiding] = done
        return done

    def completion(self, stack: TreeStack) -> Tree | None:
        """The derivation of a whole text that begins with what the stack holds.

        It is as short as possible. Each step completes an item that is under way on top of the
        stack by cheapest yields, and reduces by its rule.

        Returns None if no derivation is found within MAX_COMPLETIONS stacks.
        """
        items, rules = self.automaton.items, self.rules
        agenda: list[tuple[int, int, TreeStack]] = [(0, 0, stack)]
        known: set[tuple[int, ...]] = set()
        count = 0
        while agenda and count < MAX_COMPLETIONS:
            cost, _, current = heapq.heappop(agenda)
            states = states_of(current)
            if states in known:
                continue
            known.add(states)
            if current[0] == self.automaton.accepting and len(states) == 2:
                return current[1]
            for item in self.automaton.kernels[current[0]]:
                number = items.rule[item]
                # The whole text: its end is the accepting state, or the start.
                if number == len(rules.rules):
                    if item == items.start:
                        following = self._finished(current, 0, rules.start, (rules.start,))
                        price = self.cost[rules.start]
                    else:
                        continue
                else:
                    rule = rules.rules[number]
                    dot = item - items.first[number]
                    remaining = rule.rhs[dot:]
                    price = sum(self.cost[s] for s in remaining) if all(self.cost[s] >= 0 for s in remaining) else -1
                    following = None if price < 0 else self._finished(current, dot, rule.lhs, remaining)
                if following is not None and price >= 0:
                    count += 1
                    heapq.heappush(agenda, (cost + price, count, following))
        return None

    def _finished(self, stack: TreeStack, dot: int, lhs: int, remaining: Sequence[int]) -> TreeStack | None:
        """The stack after reading `remaining` and reducing; `dot` symbols of the rule are on it."""
        if lhs == self.rules.start and not dot and remaining == (lhs,):
            after = int(self.automaton.transitions[stack[0], lhs])
            return None if after < 0 else (after, self.tree_of(lhs), stack)
        return reduced(self.automaton, stack, dot, lhs, [self.tree_of(symbol) for symbol in remaining])

    def text(self, terminals: Sequence[int], instead: Mapping[int, bytes] | None = None) -> bytes | None:
        """Write terminals as a text.

        instead : position -> what is written there instead of the terminal's own lexeme.

        Returns None if a terminal cannot be written, or two lexemes cannot be kept apart.
        """
        layout = self.grammar.layout
        written: list[tuple[int, bytes]] = []
        level = 0
        for position, terminal in enumerate(terminals):
            if layout is not None and terminal in (layout.indent, layout.dedent):
                level += 1 if terminal == layout.indent else -1
                if not written or written[-1][0] != layout.newline or level < 0:
                    if position and terminal == layout.dedent and position >= len(terminals) - level - 1:
                        continue  # the end of the text closes what is open
                    return None
                newline = written[-1][1]
                written[-1] = layout.newline, newline[: newline.rfind(b"\n") + 1] + b" " * level
                continue
            lexeme = (instead or {}).get(position, self.lexemes.get(terminal))
            if lexeme is None:
                return None
            if layout is not None and terminal == layout.newline:
                lexeme += b" " * level
            written.append((terminal, lexeme))
        text = b""
        for position, (terminal, lexeme) in enumerate(written):
            if position and not self._stays(written[position - 1], (terminal, lexeme)):
                separator = self._separator(written[position - 1], (terminal, lexeme))
                if separator is None:
                    return None
                text += separator
            text += lexeme
        return text

    def _stays(self, left: tuple[int, bytes], right: tuple[int, bytes]) -> bool:
        """Whether a lexeme is still lexed as it is with another one directly after it.

        This is asked of the first mode in which it is lexed so.
        """
        if left[0] == right[0] == self.lexer.newline:
            return True
        found = self.lexer.after(*left, right[1])
        # None: the left lexeme is meant to be misread, or is only begun.
        return found is None or found == (left[0], len(left[1]))

    def _separator(self, left: tuple[int, bytes], right: tuple[int, bytes]) -> bytes | None:
        """The shortest ignored lexeme that keeps two lexemes apart; None if there is none."""
        candidates = [(self.lexemes[i], i) for i in self.grammar.ignored if i in self.lexemes]
        for lexeme, terminal in sorted(candidates, key=lambda pair: (len(pair[0]), pair)):
            if self._stays(left, (terminal, lexeme)) and self._stays((terminal, lexeme), right):
                return lexeme
        return None
