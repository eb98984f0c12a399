"""Shortest texts: of a symbol, up to a parser state, or from a stack to the end of a text.

A text is written with the shortest lexeme of each terminal. Where two lexemes would run together,
an ignored lexeme is put between them. Layout is written as lines that are indented by one space a
level.

The caller always reads again what was written, by the longest match and the LALR tables. So a text
that does not come out as meant is never shown.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from maskwright.analysis.deadline import look
from maskwright.analysis.grammar.columns import FIRST_COLUMN
from maskwright.analysis.kept import cached_property
from maskwright.analysis.lexing.modes import Modes
from maskwright.analysis.lr.automaton import Automaton
from maskwright.analysis.lr.encoding import LrTables
from maskwright.analysis.lr.yields import Yields
from maskwright.decoding.reference import machine as reference
from maskwright.decoding.reference.parser import Configuration, Parser, Refusal, Stacks, TextParser
from maskwright.lint.lexer import Lexer

LabelT = TypeVar("LabelT")

MAX_LENGTH = 2_000
"""Terminals of the longest sequence that is written out."""
MAX_COMPLETIONS = 3_000
"""Stacks looked at for a shortest end of a text."""
MAX_THREADS = 2_000
"""Steps of all threads over one text."""
MAX_STACKS = 100
"""Stacks made for one terminal."""


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


def cheapest_ways(
    start: int, edges: Callable[[int], Iterable[tuple[int, int, LabelT]]]
) -> dict[int, tuple[LabelT, ...]]:
    """For each node that is reached the labels of a cheapest way there, the cheapest first.

    edges : what each edge from a node costs, 0 or more; where it leads; and its label.

    Source: E. Dijkstra, A note on two problems in connexion with graphs (1959).

    >>> cheapest_ways(0, [[(9, 1, "a"), (1, 2, "b")], [], [(1, 1, "c")]].__getitem__)
    {0: (), 2: ('b',), 1: ('b', 'c')}
    """
    found: dict[int, tuple[LabelT, ...]] = {}
    best: dict[int, tuple[int, tuple[LabelT, ...]]] = {start: (0, ())}
    agenda = [(0, start)]
    while agenda:
        cost, node = heapq.heappop(agenda)
        if node in found:
            continue
        look()
        found[node] = way = best[node][1]
        for more, target, label in edges(node):
            if target not in best or cost + more < best[target][0]:
                best[target] = cost + more, (*way, label)
                heapq.heappush(agenda, (cost + more, target))
    return found


class Writer:
    """Writes texts of a grammar's reduced rules.

    automaton : LR(0) automaton of the rules.
    lexer : tells how terminals are written, and which lexemes run together. A terminal without a
        lexeme over its alphabet is in no text that is written here.
    cost : for each symbol the cost of its cheapest yield: its bytes, and one for each lexeme; -1 if
        it has none.
    body : for each nonterminal the right-hand side that its cheapest yield begins with.
    """

    def __init__(self, automaton: Automaton, lexer: Lexer) -> None:
        self.grammar, self.automaton, self.lexer, self.lexemes = lexer.grammar, automaton, lexer, lexer.lexemes
        self.rules = automaton.grammar
        layout = self.grammar.layout
        inserted = () if layout is None else (layout.indent, layout.dedent)
        costs = {terminal: 1 + len(lexeme) for terminal, lexeme in self.lexemes.items()} | dict.fromkeys(inserted, 1)
        self._yields = Yields(self.rules, costs)
        self.cost, self.body = self._yields.cost, self._yields.body
        self._trees: dict[int, Tree] = {}
        self._paths: dict[frozenset[int], dict[int, tuple[int, ...]]] = {}

    def yield_of(self, symbols: Iterable[int]) -> tuple[int, ...] | None:
        """A cheapest terminal sequence that some symbols in a row derive.

        Returns None if there is none, or if it has more than MAX_LENGTH terminals.
        """
        symbols = tuple(symbols)
        if any(self.cost[symbol] < 0 for symbol in symbols):
            return None
        word = tuple(itertools.islice(self._yields.of(symbols), MAX_LENGTH + 1))
        return word if len(word) <= MAX_LENGTH else None

    def tree_of(self, symbol: int) -> Tree:
        """The derivation of a symbol's cheapest yield. The symbol must have one."""
        agenda = [symbol] if symbol not in self._trees else []
        while agenda:
            at = agenda[-1]
            missing = [inner for inner in self.body[at] if inner not in self._trees]
            agenda += missing
            if not missing:
                parts = tuple(self._trees[inner] for inner in self.body[at])
                self._trees[agenda.pop()] = Tree(at, parts if self.rules.is_nonterminal(at) else None)
        return self._trees[symbol]

    @cached_property
    def moves(self) -> list[list[tuple[int, int]]]:
        """For each state of the automaton its (symbol, next state), if the symbol has a text."""
        automaton = self.automaton
        found: list[list[tuple[int, int]]] = [[] for _ in range(automaton.n_states)]
        for edge in zip(automaton.source.tolist(), automaton.symbol.tolist(), automaton.target.tolist(), strict=True):
            if self.cost[edge[1]] >= 0:
                found[edge[0]].append(edge[1:])
        return found

    def paths(self, avoiding: frozenset[int] = frozenset()) -> dict[int, tuple[int, ...]]:
        """State -> the symbols of a viable prefix with a shortest text that leads there.

        The states are in the order of their texts' cost.

        avoiding : symbols that the prefixes must not contain.
        """

        def onwards(state: int) -> Iterator[tuple[int, int, int]]:
            return ((self.cost[s], target, s) for s, target in self.moves[state] if s not in avoiding)

        if avoiding not in self._paths:
            self._paths[avoiding] = cheapest_ways(0, onwards)
        return self._paths[avoiding]

    def completion(self, stack: TreeStack) -> Tree | None:
        """The derivation of a whole text that begins with what the stack holds.

        It is as short as possible. Each step completes an item that is under way on top of the
        stack by cheapest yields, and reduces by its rule.

        Returns None if no derivation is found within MAX_COMPLETIONS stacks.
        """
        items, rules = self.automaton.items, self.rules.rules
        if stack[1] is None:
            return self.tree_of(self.rules.start) if self.cost[self.rules.start] >= 0 else None
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
                if number == len(rules):  # the start symbol has been read: more must come before its end
                    continue
                dot = item - items.first[number]
                costs = [self.cost[symbol] for symbol in rules[number].rhs[dot:]]
                if min(costs, default=0) >= 0:
                    more = [self.tree_of(symbol) for symbol in rules[number].rhs[dot:]]
                    following = reduced(self.automaton, current, dot, rules[number].lhs, more)
                    if following is not None:
                        count += 1
                        heapq.heappush(agenda, (cost + sum(costs), count, following))
        return None

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
        text = b"" if not written else written[0][1]
        for left, right in itertools.pairwise(written):
            separator = b"" if self._stays(left, right) else self._separator(left, right)
            if separator is None:
                return None
            text += separator + right[1]
        return text

    def _stays(self, left: tuple[int, bytes], right: tuple[int, bytes]) -> bool:
        """Whether a lexeme is still lexed as it is with another one directly after it.

        This is asked of the first mode in which it is lexed so.
        """
        if left[0] == right[0] == self.grammar.newline:
            return True
        found = self.lexer.after(*left, right[1])
        # None: the left lexeme is meant to be misread, or is only begun.
        return found is None or found == (left[0], len(left[1]))

    def _separator(self, left: tuple[int, bytes], right: tuple[int, bytes]) -> bytes | None:
        """The shortest ignored lexeme that keeps two lexemes apart; None if there is none."""
        ignored = [(i, self.lexemes[i]) for i in self.grammar.ignored if i in self.lexemes]
        apart = [one[1] for one in ignored if self._stays(left, one) and self._stays(one, right)]
        return min(apart, key=lambda lexeme: (len(lexeme), lexeme), default=None)


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of reading a text.

    accepted : whether it is a whole text.
    reached : bytes that were lexed and parsed, by the thread that came furthest.
    terminals : those of this thread, with those that the layout inserts.
    is_unfinished : whether the text ends inside a lexeme that more text may complete.
    """

    accepted: bool
    reached: int
    terminals: tuple[int, ...]
    is_unfinished: bool = False


class Reader(TextParser):
    """Reads short texts under a grammar with lexing "longest" or "contextual".

    With contextual lexing, the stacks of each mode lex for themselves.

    lexer : finds the longest match. Its grammar's layout and ignored terminals apply.
    modes : the lexing modes of the tables' states.
    tables : of the parser.
    """

    def __init__(self, lexer: reference.Lexer, modes: Modes, tables: LrTables) -> None:
        parser = Parser(tables, lexer.grammar.name, MAX_STACKS, is_cut=True)
        super().__init__(lexer.grammar, parser, modes.of_state.tolist())
        self.lexer = lexer

    def read(self, text: bytes) -> Reading:
        """Read a text from its start. The first thread that accepts ends the search.

        text : bytes.
        """
        agenda = [(0, self.start)]
        best = agenda[0]
        is_unfinished = False
        for at, configuration in agenda:  # grows while it is read
            if at > best[0]:
                best = at, configuration
            if at == len(text):
                if isinstance(self.close(configuration), Configuration):
                    return Reading(True, at, configuration.terminals())
                continue
            if len(agenda) > MAX_THREADS:
                break
            for mode, thread in self.by_mode(configuration):
                terminal, end = self.lexer.longest(mode, text, at, is_whole=True)
                if terminal >= 0:
                    after = self._after(thread, terminal, text[at:end], end == len(text))
                    agenda += [(end, after)] if isinstance(after, Configuration) else []
                elif self.lexer.scan(mode, text, at)[2] >= 0:
                    is_unfinished = True
        return Reading(False, best[0], best[1].terminals(), is_unfinished)

    def _after(self, thread: Configuration, terminal: int, lexeme: bytes, is_last: bool) -> Configuration | Refusal:
        """The configuration after a lexeme. is_last : whether it ends the text."""
        if terminal in self.grammar.ignored or (terminal == self.newline and thread.depth):
            return thread
        if self.grammar.layout is not None and terminal == self.newline:
            # Blanks that end the text have no column.
            column = FIRST_COLUMN if is_last else self.grammar.layout.column_after(lexeme)
            thread = thread._replace(column=column)
        return self.emit(thread, (terminal,))

    def stacks_after(self, terminals: tuple[int, ...]) -> Stacks:
        """The parser's stacks after a terminal sequence; () if no sentence begins with it.

        terminals : with those that the layout inserts; number n_terminals is the end of the text.
        """
        return self.parser.shift_all((self.parser.start,), terminals)

    def next_terminals(self, terminals: tuple[int, ...]) -> set[int]:
        """The terminals that the parser takes after a terminal sequence."""
        return set(self.acceptable(self.stacks_after(terminals), range(self.grammar.n_terminals)))
