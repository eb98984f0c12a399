"""Are a table's LALR tables complete for its grammar? What the grammar derives, the parser accepts.

In: a certificate, and parser and columns read from a table. Out: the entries that are missing.

An *Earley item* is a rule that was begun in one LR state, how much of it has been read, the state
where the parser then is, and the columns that may come behind the rule. (Earley's own items name
places of a text; these name LR states.) The start state begins the rules of the start symbol. Where
a nonterminal comes next, its rules begin. Where a rule is whole, its reduction says where the
parser *arrives* above the state that began it; the items that wait there for the nonterminal go on.
The reduction may do the work of several rules, one after the other. A rule of one symbol may need
no reduction: then the parser has arrived already. So items ask for shifts and reductions. If none
is missing, and the text may end wherever the start symbol arrives, every word is accepted. Tables
pass with merged states and terminals, and with several reductions in one.

Source: proofs/tables.v, tables_complete; after Jourdan, Pottier and Leroy, Validating LR(1) parsers
(ESOP 2012).
"""

from __future__ import annotations

from typing import NamedTuple

from maskwright.analysis.errors import LimitError
from maskwright.maskstore.verify.tables import Certificate, Report
from maskwright.maskstore.verify.trusted import ACCEPTS, Actions, Columns

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
        grew = True
        while grew:
            grew = False
            for begin, rule in zip(reversed(self.begin), reversed(rules), strict=True):
                columns, is_empty = 0, True
                for at in range(begin + len(rule.rhs) - 1, begin - 1, -1):
                    symbol = self._symbol[at]
                    if symbol < n_terminals:
                        column = self._column_of[symbol]
                        columns, is_empty = 1 << column if column >= 0 else 0, False
                    else:
                        may_be_empty = self.can_be_empty[symbol - n_terminals]
                        columns = self.firsts[symbol - n_terminals] | (columns if may_be_empty else 0)
                        is_empty = is_empty and may_be_empty
                    self._begin_with[at], self._may_end[at] = columns, is_empty
                head = rule.lhs - n_terminals
                if columns & ~self.firsts[head] or is_empty > self.can_be_empty[head]:
                    self.firsts[head] |= columns
                    self.can_be_empty[head] = self.can_be_empty[head] or is_empty
                    grew = True

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
