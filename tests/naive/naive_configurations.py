"""What a parser says that knows only the upper cells of its stack, from the definition: nothing is shared, numbered or remembered.

A configuration is how many more cells to discard, the nonterminal to push then, and what is left to read: symbols (columns, or modes from
`n_columns` on), and the set of columns of which one comes next (WHATEVER for none). `ACCEPTED` instead of a set of configurations accepts
every stack; the empty set refuses all.
"""

from __future__ import annotations

from collections.abc import Iterable

from maskwright.maskstore.verify.configurations import WHATEVER
from maskwright.maskstore.verify.trusted import ACCEPTS, Lexer, Parser

Left = tuple[tuple[int, ...], int]
"""Symbols still to be read, and the number of the set of columns behind them, or WHATEVER."""
Configuration = tuple[int, int, Left]
NOTHING: Left = (), WHATEVER
ACCEPTED = "accepted"
Said = frozenset[Configuration] | str


class NaiveConfigurations:
    def __init__(self, parser: Parser, lexer: Lexer) -> None:
        self.parser = parser
        self.sets = lexer.sets
        self.mode_of = lexer.mode_of

    def first(self, asked: Iterable[tuple[list[int], int]], top: int) -> Said:
        """What is said of one of some continuations when the top of the stack is read."""
        return self.alive(union(self.run((top,), (tuple(symbols), ahead)) for symbols, ahead in asked), top)

    def after(self, said: Said, cell: int) -> Said:
        """What is said after one more cell, which lies below those read so far."""
        return said if isinstance(said, str) else self.alive(union(self.moved(one, cell) for one in said), cell)

    def moved(self, one: Configuration, cell: int) -> Said:
        """A configuration after one more cell."""
        discard, nonterminal, left = one
        if discard:
            return frozenset([(discard - 1, nonterminal, left)])
        waiting: set[Configuration] = set()
        seen, agenda = {(nonterminal, left)}, [(nonterminal, left)]
        while agenda:
            nonterminal, left = agenda.pop()
            pushed = self.parser.goto[cell][nonterminal]
            said = self.run((pushed,), left) if pushed >= 0 else frozenset()
            if isinstance(said, str):
                return said
            for discard, further, rest in said:
                if discard:
                    waiting.add((discard - 1, further, rest))
                elif (further, rest) not in seen:
                    seen.add((further, rest))
                    agenda.append((further, rest))
        return frozenset(waiting)

    def run(self, known: tuple[int, ...], left: Left) -> Said:
        """A parser on the cells that it knows, as far as it comes."""
        parser = self.parser
        waiting: set[Configuration] = set()
        seen, agenda = {(known, left)}, [(known, left)]
        while agenda:
            cells, left = agenda.pop()
            symbols, ahead = left
            if not symbols:
                if ahead == WHATEVER:
                    return ACCEPTED
                new = [
                    (cells, ((column,), WHATEVER))
                    for column in range(parser.n_columns)
                    if self.sets[ahead] >> column & 1
                ]
            elif symbols[0] >= parser.n_columns:
                is_mode = self.mode_of[cells[-1]] == symbols[0] - parser.n_columns
                new = [(cells, (symbols[1:], ahead))] if is_mode else []
            else:
                new = []
                for action in parser.acts[cells[-1] * parser.n_columns + symbols[0]]:
                    rest = symbols[1:], ahead
                    if action == ACCEPTS:
                        if rest == NOTHING:
                            return ACCEPTED
                    elif action > 0:
                        new.append(((*cells, action - 1), rest))
                    else:
                        kept, nonterminal = len(cells) - parser.length[-action - 1], parser.lhs[-action - 1]
                        if kept <= 0:
                            waiting.add((-kept, nonterminal, left))
                        elif (pushed := parser.goto[cells[kept - 1]][nonterminal]) >= 0:
                            new.append(((*cells[:kept], pushed), left))
            agenda += [each for each in new if each not in seen]
            seen.update(new)
        return frozenset(waiting)

    def alive(self, said: Said, cell: int) -> Said:
        """Without the configurations that refuse every stack below a cell."""
        return said if isinstance(said, str) else frozenset(one for one in said if self.accepts_some(one, cell))

    def accepts_some(self, one: Configuration, cell: int) -> bool:
        """Whether a configuration accepts some stack below a cell: all cells that can lie below are tried."""
        seen, agenda = {(one, cell)}, [(one, cell)]
        while agenda:
            one, cell = agenda.pop()
            for under in self.parser.below[cell]:
                said = self.moved(one, under)
                if isinstance(said, str):
                    return True
                new = {(each, under) for each in said} - seen
                seen |= new
                agenda += new
        return False


def union(each: Iterable[Said]) -> Said:
    found: set[Configuration] = set()
    for said in each:
        if isinstance(said, str):
            return said
        found |= said
    return frozenset(found)
