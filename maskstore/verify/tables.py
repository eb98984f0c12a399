"""Are a table's LALR tables sound for its grammar? What the parser accepts, the grammar derives.

In: a certificate, and parser and columns read from a table. Out: reductions that derive nothing.

Each edge between two LR states has *labels*: the symbols that may stand there, which the shifts and
gotos say. The condition asks of each reduction: whatever labels stand on the cells that it pops,
some nonterminal that may stand on the edge that it adds derives them, in one rule, with renaming
rules (of one symbol) before and behind it. Merged states and terminals, reductions that do the work
of several, and dropped actions all meet it. What the parser refuses is no matter here, but in
`complete`.

Source: proofs/tables.v, tables_sound; after Jourdan, Pottier and Leroy, Validating LR(1) parsers
(ESOP 2012), the half on soundness.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.maskstore.table import schema
from maskwright.maskstore.verify.trusted import ACCEPTS, Actions, Columns, FullTables

MOST_SHOWN = 20
"""Most faults that are listed."""
MOST_CHOICES = 1 << 20
"""Most choices of labels for one reduction, and most ways to pop its cells."""

Report = Callable[[int, int], None]
"""Called with how many steps are done, and how many are known."""
Labels = frozenset[int]
"""Symbols of the grammar."""


class TooManyChoices(LimitError):
    """There are more than MOST_CHOICES choices."""


@dataclass(frozen=True)
class Certificate:
    """What the builder of tables says of them.

    grammar : the rules that the tables are made of. That they derive what the author's rules derive
        is taken as right.
    has_conflicts : whether tables may leave entries out on purpose. Then entries that are missing
        are no faults, and it is not known what the parser refuses.
    columns : for each of its nonterminals the column of the gotos. This proves nothing: a wrong
        column makes right tables fail, and never wrong ones pass.
    full : the full LR tables of the rules, of which the others are merged. They too are looked at
        (`viable`), not believed. None: what is read is not asked about.
    """

    grammar: Grammar
    columns: tuple[int, ...]
    has_conflicts: bool = True
    full: FullTables | None = None


def unsound_reductions(
    certificate: Certificate, parser: Actions, lexer: Columns, report: Report = lambda done, known: None
) -> tuple[str, ...]:
    """What makes the tables unsound, in words; () if they are sound.

    report : called for each state; what it raises ends the check.

    Raises: TooManyChoices if a reduction has too many labels to choose from.
    Cost: O(reductions * states below them), a second for grammars of programming languages.
    """
    tables = _Tables(certificate, parser, lexer)
    return tuple(itertools.islice(tables.faults(report), MOST_SHOWN))


class _Tables:
    """The labels of the edges, and what derives what."""

    def __init__(self, certificate: Certificate, parser: Actions, lexer: Columns) -> None:
        self.parser, self.lexer = parser, lexer
        self.grammar = certificate.grammar
        self.layout = self.grammar.layout
        self._known: dict[tuple[Labels, tuple[Labels, ...]], bool] = {}
        self._labels: dict[tuple[int, int], Labels] = {}
        self._renamed: dict[int, Labels] = {}
        self._bodies: dict[int, list[tuple[int, ...]]] = {}
        for rule in self.grammar.rules:
            self._bodies.setdefault(rule.lhs, []).append(rule.rhs)
        self._of_goto: dict[int, list[int]] = {}
        for number, column in enumerate(certificate.columns):
            self._of_goto.setdefault(column, []).append(self.grammar.n_terminals + number)
        self._of_column: dict[int, list[int]] = {}
        for terminal, column in enumerate(lexer.column):
            if column >= 0:
                self._of_column.setdefault(column, []).append(terminal)

    def faults(self, report: Report) -> Iterator[str]:
        """What is wrong, in words."""
        yield from self._wrong_columns()
        if self.parser.below[0]:
            yield "the start state has states below it"
        for state in range(self.parser.n_states):
            report(state, self.parser.n_states)
            for action in sorted({action for actions in self.parser.row(state) for action in actions}):
                length = self.parser.length[-1 - action] if action < 0 else 0
                if action < 0 and not self._is_sound(state, self.parser.lhs[-1 - action], length):
                    yield f"state {state} reduces {length} symbols to what does not derive them, by rule {-1 - action}"
                elif action == ACCEPTS and not self._accepts_a_word(state):
                    yield f"state {state} accepts what is not the start symbol"

    def _wrong_columns(self) -> Iterator[str]:
        """Inserted terminals whose columns are others than the lexer's."""
        if self.layout is None:
            return
        for terminal, column in ((self.layout.indent, self.lexer.indent), (self.layout.dedent, self.lexer.dedent)):
            if column != schema.NONE and self.lexer.column[terminal] != column:
                yield f"{self.grammar.symbol_name(terminal)} has column {column}, expected {self.lexer.column[terminal]}"
        if self.lexer.newline != self.layout.newline:
            yield f"the newline is terminal {self.lexer.newline}, expected {self.layout.newline}"

    # ------------------------------------------------------------------------------------ labels

    def labels(self, below: int, state: int) -> Labels:
        """The symbols that may stand between a state and one on it."""
        key = below, state
        if key not in self._labels:
            gotos = (column for column, after in enumerate(self.parser.goto[below]) if after == state)
            shifts = (column for column, acts in enumerate(self.parser.row(below)) if state + 1 in acts)
            self._labels[key] = frozenset(
                [symbol for column in gotos for symbol in self._of_goto.get(column, ())]
                + [symbol for column in shifts for symbol in self._of_column.get(column, ())]
            )
        return self._labels[key]

    def _paths(self, state: int, length: int) -> set[tuple[int, tuple[Labels, ...]]]:
        """The last edges of stacks with a state on top: the state below them, and their labels."""
        found: set[tuple[int, tuple[Labels, ...]]] = {(state, ())}
        for _ in range(length):
            found = {
                (under, (self.labels(under, above), *more))
                for above, more in found
                for under in self.parser.below[above]
            }
            if len(found) > MOST_CHOICES:
                raise TooManyChoices(f"a reduction of {length} symbols has too many stacks: nothing was decided")
        return found

    # ------------------------------------------------------------------------------- derivations

    def _is_sound(self, state: int, pushed: int, length: int) -> bool:
        for base, popped in self._paths(state, length):
            after = self.parser.goto[base][pushed]
            if after < 0:
                continue  # no stack comes to this: `check_table` has seen to it
            heads = frozenset(symbol for symbol in self.labels(base, after) if self.grammar.is_nonterminal(symbol))
            key = heads, popped
            if key not in self._known:
                self._known[key] = self._derive_all(heads, popped)
            if not self._known[key]:
                return False
        return True

    def _derive_all(self, heads: Labels, popped: tuple[Labels, ...]) -> bool:
        """Whether for each choice of labels some head derives them."""
        if math.prod(map(len, popped)) > MOST_CHOICES:
            raise TooManyChoices(f"a reduction of {len(popped)} symbols has too many labels: nothing was decided")
        bodies = [
            [self._renames(symbol) for symbol in body]
            for renamed in sorted(frozenset[int]().union(*map(self._renames, heads)))
            for body in self._bodies.get(renamed, ())
            if len(body) == len(popped)
        ]
        if len(popped) == 1:
            bodies += [[self._renames(head)] for head in sorted(heads)]
        if any(all(label <= one for label, one in zip(popped, body, strict=True)) for body in bodies):
            return True
        return all(
            any(all(symbol in one for symbol, one in zip(choice, body, strict=True)) for body in bodies)
            for choice in itertools.product(*popped)
        )

    def _renames(self, symbol: int) -> Labels:
        """What a symbol becomes by rules of one symbol, itself included."""
        if symbol not in self._renamed:
            found = [symbol]
            for one in found:  # grows while it is read
                found += {body[0] for body in self._bodies.get(one, ()) if len(body) == 1} - {*found}
            self._renamed[symbol] = frozenset(found)
        return self._renamed[symbol]

    def _accepts_a_word(self, state: int) -> bool:
        start = self._renames(self.grammar.start)
        below = self.parser.below[state]
        return below == [0] and self.labels(0, state) <= start
