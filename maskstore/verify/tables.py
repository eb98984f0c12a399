"""Are a table's LALR tables sound and complete for its grammar?

In: a certificate, and parser and columns read from a table. Out: reductions that derive nothing,
and entries that are missing.

*Sound*: what the parser accepts, the grammar derives. Each edge between two LR states has *labels*:
the symbols that may stand there, which the shifts and gotos say. The condition asks of each
reduction: whatever labels stand on the cells that it pops, some nonterminal that may stand on the
edge that it adds derives them, in one rule, with renaming rules (of one symbol) before and behind
it. Merged states and terminals, reductions that do the work of several, and dropped actions all
meet it.

*Complete*: what the grammar derives, the parser accepts. An *Earley item* is a rule that was begun
in one LR state, how much of it has been read, the state where the parser then is, and the columns
that may come behind the rule. (Earley's own items name places of a text; these name LR states.) The
start state begins the rules of the start symbol. Where a nonterminal comes next, its rules begin.
Where a rule is whole, its reduction says where the parser *arrives* above the state that began it;
the items that wait there for the nonterminal go on. The reduction may do the work of several rules,
one after the other. A rule of one symbol may need no reduction: then the parser has arrived
already. So items ask for shifts and reductions. If none is missing, and the text may end wherever
the start symbol arrives, every word is accepted. Tables pass with merged states and terminals, and
with several reductions in one.

Source: proofs/tables.v, tables_sound and tables_complete; after Jourdan, Pottier and Leroy,
Validating LR(1) parsers (ESOP 2012).
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

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


MOST_ITEMS = 5_000_000
"""The most items: one to two gigabytes."""
PAUSE = 1 << 12
"""Steps between two reports of progress."""


class TooManyItems(LimitError):
    """There are more than MOST_ITEMS items."""


class EarleyItem(NamedTuple):
    """A rule under way.

    base : the LR state that began it. item : the rule, and how much of it has been read, as a
    number (`EarleyItems`). state : the LR state on top.
    """

    base: int
    item: int
    state: int


def missing_entries(
    certificate: Certificate, parser: Actions, lexer: Columns, report: Report = lambda done, known: None
) -> tuple[str, ...]:
    """The entries that a table lacks so as to accept every word of the grammar, in words.

    report : called now and then; what it raises ends the search.

    Returns (): the parser accepts every word.

    Raises: TooManyItems.
    Cost: some ten us an item, of which `python` has some 100,000. Rules that are nested n deep, and
    begin with one another, have n * n of them.
    """
    items = EarleyItems(certificate, parser, lexer)
    items.find(report)
    return tuple(dict.fromkeys(items.missing))


class EarleyItems:
    """All items, the least that are closed under what the module says.

    columns : the columns behind each item, as bits.
    arrivals : for each state and nonterminal that may come next in it, the states above it where
        the parser may arrive, each with the columns that come then, as bits.
    missing : what the items ask for and the table lacks, in words.
    firsts, can_be_empty : for each nonterminal the columns that it may begin with, as bits, and
        whether it derives the empty text.

    The items of rule r are the numbers from ``begin[r]`` on, by how many symbols have been read.
    """

    def __init__(self, certificate: Certificate, parser: Actions, lexer: Columns) -> None:
        self.grammar, self._column_of_goto = certificate.grammar, certificate.columns
        self.parser, self._column_of = parser, lexer.column
        self._end = 1 << parser.n_columns - 1
        self.begin: list[int] = []
        self.rule_of: list[int] = []
        """For each item its rule."""
        self._symbol: list[int] = []
        """For each item the symbol that comes next, -1 where the rule is whole."""
        self._rules: dict[int, list[int]] = {}
        for number, rule in enumerate(self.grammar.rules):
            self.begin.append(len(self._symbol))
            self._symbol += [*rule.rhs, -1]
            self.rule_of += [number] * (len(rule.rhs) + 1)
            self._rules.setdefault(rule.lhs, []).append(number)
        self.firsts, self.can_be_empty = [0] * self.grammar.n_nonterminals, [False] * self.grammar.n_nonterminals
        self._begin_with = [0] * len(self._symbol)
        """For each item the columns that the symbols to come may begin with, as bits."""
        self._may_end = [True] * len(self._symbol)
        """For each item whether the symbols to come may be empty."""
        self.missing: list[str] = []
        self._find_firsts()
        self.columns: dict[EarleyItem, int] = {}
        self.arrivals: dict[tuple[int, int], dict[int, int]] = {}
        self._expected: dict[tuple[int, int], int] = {}
        """For each state and nonterminal that may come next in it, the columns behind it."""
        self._waiting: dict[tuple[int, int], dict[EarleyItem, None]] = {}
        """For each state and nonterminal the items in which it comes next."""
        self._reductions: dict[tuple[int, int], list[tuple[int, int]]] = {}
        """What `_reductions_of` has found, by state and length."""
        self._agenda: list[EarleyItem] = []
        self._is_due: set[EarleyItem] = set()

    def _find_firsts(self) -> None:
        n_terminals, rules = self.grammar.n_terminals, self.grammar.rules
        for symbol in sorted({symbol for rule in rules for symbol in rule.rhs if symbol < n_terminals}):
            if self._column_of[symbol] < 0:  # no item stands behind such a terminal, and none would ask for it
                self.missing.append(f"{self.grammar.symbol_name(symbol)} has no column")
        users: dict[int, set[int]] = defaultdict(set)
        """For each symbol the rules in which it stands."""
        for number, rule in enumerate(rules):
            for symbol in rule.rhs:
                users[symbol].add(number)
        due = set(range(len(rules)))
        while due:
            now, due = sorted(due, reverse=True), set()
            for number in now:
                begin, head = self.begin[number], rules[number].lhs - n_terminals
                columns, is_empty = 0, True
                for at in range(begin + len(rules[number].rhs) - 1, begin - 1, -1):
                    symbol = self._symbol[at]
                    if symbol < n_terminals:
                        column = self._column_of[symbol]
                        columns, is_empty = 1 << column if column >= 0 else 0, False
                    else:
                        may_be_empty = self.can_be_empty[symbol - n_terminals]
                        columns = self.firsts[symbol - n_terminals] | (columns if may_be_empty else 0)
                        is_empty = is_empty and may_be_empty
                    self._begin_with[at], self._may_end[at] = columns, is_empty
                if columns & ~self.firsts[head] or is_empty > self.can_be_empty[head]:
                    self.firsts[head] |= columns
                    self.can_be_empty[head] = self.can_be_empty[head] or is_empty
                    due |= users[rules[number].lhs]

    # --------------------------------------------------------------------------------- the search

    def find(self, report: Report) -> None:
        """Find all items, and what is missing. Raises: TooManyItems."""
        self._expect(0, self.grammar.start, self._end)
        n_done = 0
        while self._agenda:
            one = self._agenda.pop()
            self._is_due.discard(one)
            self._follow(one)
            n_done += 1
            if n_done % PAUSE == 0:
                report(n_done, n_done + len(self._agenda))
        for state, columns in self.arrivals.get((0, self.grammar.start), {}).items():
            if columns & self._end and ACCEPTS not in self.parser.row(state)[-1]:
                self.missing.append(f"state {state} does not accept the text")
        for n_checked, (one, columns) in enumerate(self.columns.items()):
            self._check(one, columns)
            if n_checked % PAUSE == 0:
                report(n_done + n_checked, n_done + len(self.columns))

    def _expect(self, state: int, nonterminal: int, columns: int) -> None:
        """A nonterminal may come next in a state, and one of some columns behind it."""
        known = self._expected.get((state, nonterminal))
        if known is None or columns & ~known:
            self._expected[state, nonterminal] = (known or 0) | columns
            for rule in self._rules.get(nonterminal, ()):
                self._add(EarleyItem(state, self.begin[rule], state), columns)

    def _add(self, one: EarleyItem, columns: int) -> None:
        known = self.columns.get(one)
        if known is None:
            if len(self.columns) >= MOST_ITEMS:
                raise TooManyItems(f"there are more than {MOST_ITEMS:,} ways to be inside a rule")
        elif not columns & ~known:
            return
        self.columns[one] = (known or 0) | columns
        self._ask(one)

    def _ask(self, one: EarleyItem) -> None:
        if one not in self._is_due:
            self._is_due.add(one)
            self._agenda.append(one)

    def _follow(self, one: EarleyItem) -> None:
        base, item, state = one
        symbol, columns = self._symbol[item], self.columns[one]
        if symbol < 0:
            self._arrive(one, columns)
            return
        if symbol < self.grammar.n_terminals:
            for after in self.parser.shifts_to(state, self._column_of[symbol]):
                self._add(EarleyItem(base, item + 1, after), columns)
            return
        begins, may_end = self._begin_with[item + 1], self._may_end[item + 1]
        self._expect(state, symbol, begins | (columns if may_end else 0))
        self._waiting.setdefault((state, symbol), {})[one] = None
        for after, then in self.arrivals.get((state, symbol), {}).items():
            if then & begins:
                self._add(EarleyItem(base, item + 1, after), columns)
            elif may_end and then & columns:
                self._add(EarleyItem(base, item + 1, after), then & columns)

    def _arrive(self, one: EarleyItem, columns: int) -> None:
        """Note where the parser arrives by a whole rule, before some columns."""
        base, item, _ = one
        rule = self.grammar.rules[self.rule_of[item]]
        found = self.arrivals.setdefault((base, rule.lhs), {})
        is_new = False
        for after, then in self._ends(one, columns):
            if after >= 0 and then & ~found.get(after, 0):
                found[after] = found.get(after, 0) | then
                is_new = True
        if is_new:
            for other in self._waiting.get((base, rule.lhs), ()):
                self._ask(other)

    def _ends(self, one: EarleyItem, columns: int) -> list[tuple[int, int]]:
        """Where a whole rule leads: states, -1 for a missing entry, each with columns.

        Before each column the first reduction that fits is taken, the rule's own if it is there: it
        suffices that the parser may go on by one of them. Without any, a rule of one symbol is
        taken for one that needs no reduction. If that was wrong, an entry is missing further on.
        """
        base, item, state = one
        rule = self.grammar.rules[self.rule_of[item]]
        found = []
        own = self._column_of_goto[rule.lhs - self.grammar.n_terminals]
        reductions = self._reductions_of(state, len(rule.rhs))
        for column, before in sorted(reductions, key=lambda each: each[0] != own):
            after = self.parser.goto[base][column]
            if before & columns and after >= 0:
                found.append((after, before & columns))
                columns &= ~before
        if columns:
            found.append((state if len(rule.rhs) == 1 else -1, columns))
        return found

    def _reductions_of(self, state: int, length: int) -> list[tuple[int, int]]:
        """The reductions of a state that pop so many cells: gotos, and before which columns."""
        key = state, length
        if key not in self._reductions:
            found: dict[int, int] = {}
            for column, actions in enumerate(self.parser.row(state)):
                for action in actions:
                    if action < 0 and self.parser.length[-1 - action] == length:
                        side = self.parser.lhs[-1 - action]
                        found[side] = found.get(side, 0) | 1 << column
            self._reductions[key] = list(found.items())
        return self._reductions[key]

    # ------------------------------------------------------------------------------- what is asked

    def _check(self, one: EarleyItem, columns: int) -> None:
        """Note what an item asks for and the table lacks."""
        base, item, state = one
        symbol = self._symbol[item]
        if 0 <= symbol < self.grammar.n_terminals:
            if not self.parser.shifts_to(state, self._column_of[symbol]):
                self.missing.append(f"state {state} does not shift {self.grammar.symbol_name(symbol)}")
        elif symbol < 0:
            for after, then in self._ends(one, columns):
                if after < 0:
                    rule = self.grammar.rules[self.rule_of[item]]
                    name = self.grammar.symbol_name(rule.lhs)
                    before = self._column_name((then & -then).bit_length() - 1)
                    self.missing.append(
                        f"state {state} does not reduce {len(rule.rhs)} symbols to {name} on state {base} before {before}"
                    )

    def _column_name(self, column: int) -> str:
        """The first terminal of a column."""
        if column == self.parser.n_columns - 1:
            return "the end of the text"
        return next(
            (self.grammar.symbol_name(terminal) for terminal, own in enumerate(self._column_of) if own == column),
            f"column {column}",
        )
