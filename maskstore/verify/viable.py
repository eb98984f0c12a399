"""Does each stack of an LR parser spell the beginning of a sentential form?

In: rules, a parser, its columns. Out: LR states on which no rule of the grammar may go on;
of a table with merged states, what may lead to a dead end.

A path of LR states from the start spells symbols, those of its edges. An item, a rule of which some
symbols have been read, is *valid* for a path if the grammar derives a sentential form, by rightmost
steps, in which the symbols of the path come first and end in those that the item has read. The rule
of the whole text is valid for the empty path. If an item is valid for a path, the same with one
symbol more is valid for the path with this symbol more, and where a nonterminal comes next, its
rules begin. For each state we find the most items that all paths to it make valid in this way: what
one edge does not pass on is taken out, until nothing changes. If each state that a path leads to
keeps an item, each path spells the beginning of a sentential form. If every nonterminal derives a
text (`without_text`), a text that the symbols of a stack derive begins a word.

States that are merged have no such items. A table's states and terminals are merged, and some
reductions of one symbol are left out, the reduction before them or the goto having done their work.
So one state of the table stands for several full states, and may be ahead of a full state by such
reductions, *renamings*. We look for a relation between full states and the table's states: the
start states are related; if two states are, then what the table's one shifts, the full one shifts,
and after some renamings two related states come; so do they after a goto of each nonterminal; and
what the table's one reduces, the full one reduces, up to renamings behind it. Then the full parser
can do all that the table's parser does, on stacks of the same height, if it may reduce before any
terminal. That is more than it does, but such a parser too shifts only what may come next.

Source: proofs/viable.v, reads_exact and merged_prefix; valid items and viable prefixes, Aho and
Ullman, "The Theory of Parsing, Translation, and Compiling I" (1972), section 5.2.3.
"""

from __future__ import annotations

from maskwright.analysis.grammar.grammar import Grammar
from maskwright.maskstore.verify.tables import Certificate, Report, unsound_reductions
from maskwright.maskstore.verify.trusted import Actions, Columns, read_full_tables

MOST_SHOWN = 20
"""Most faults that are listed."""

Item = tuple[int, int]
"""A rule, -1 for that of the whole text, and how many of its symbols have been read."""


def dead_ends(
    certificate: Certificate, parser: Actions, lexer: Columns, report: Report = lambda done, known: None
) -> tuple[str, ...]:
    """Why what a table's parser has read may begin no text of the grammar, in words.

    () if each text that it has read begins one. The certificate must have full tables.

    report : called now and then; what it raises ends the check.

    Raises: TooManyChoices as `unsound_reductions`.
    Cost: seconds for grammars of programming languages.
    """
    assert certificate.full is not None
    rules = certificate.grammar
    full = read_full_tables(rules, certificate.full)
    if isinstance(full, str):
        return (f"the full LR tables are none of the grammar: {full}",)
    identity = Certificate(rules, tuple(range(rules.n_nonterminals)))
    faults = without_text(rules) or unsound_reductions(identity, *full, report) or stuck_states(rules, *full, report)
    if faults:
        return tuple(f"of the full LR tables: {fault}" for fault in faults)
    return unlike_full(full, certificate, parser, lexer, report)


def without_text(rules: Grammar) -> tuple[str, ...]:
    """The nonterminals that derive no text, in words."""
    users: dict[int, list[int]] = {}
    left = []  # for each rule how many nonterminals are not known to derive a text
    for number, rule in enumerate(rules.rules):
        inner = {symbol for symbol in rule.rhs if symbol >= rules.n_terminals}
        left.append(len(inner))
        for symbol in inner:
            users.setdefault(symbol, []).append(number)
    found: set[int] = set()
    agenda = [number for number, n in enumerate(left) if not n]
    while agenda:
        head = rules.rules[agenda.pop()].lhs
        if head not in found:
            found.add(head)
            for number in users.get(head, ()):
                left[number] -= 1
                if not left[number]:
                    agenda.append(number)
    every = range(rules.n_terminals, rules.n_terminals + rules.n_nonterminals)
    return tuple(f"{rules.symbol_name(symbol)} derives no text" for symbol in every if symbol not in found)[:MOST_SHOWN]


def stuck_states(
    rules: Grammar, parser: Actions, lexer: Columns, report: Report = lambda done, known: None
) -> tuple[str, ...]:
    """The states with no item that is valid for all paths to them, in words; () if there are none.

    report : as of `dead_ends`.

    The parser has a column for each terminal, and a goto for each nonterminal.

    Cost: O(items of all states), a second for grammars of programming languages.
    """
    stuck = [state for state, items in sorted(kernels(rules, parser, lexer, report).items()) if not items]
    return tuple(f"what leads to state {state} may begin no text of the grammar" for state in stuck[:MOST_SHOWN])


def kernels(
    rules: Grammar, parser: Actions, lexer: Columns, report: Report = lambda done, known: None
) -> dict[int, frozenset[Item]]:
    """For each state on top of some stack the most items that are valid for all stacks."""
    rules_of: dict[int, list[int]] = {}
    for number, rule in enumerate(rules.rules):
        rules_of.setdefault(rule.lhs, []).append(number)
    edges = [_edges(rules, parser, lexer, state) for state in range(parser.n_states)]
    found: dict[int, frozenset[Item]] = {0: frozenset({(-1, 0)})}
    agenda = [0]
    n_done = 0
    while agenda:
        report(n_done, n_done + len(agenda))
        n_done += 1
        state = agenda.pop()
        after = _read(rules, rules_of, found[state])
        for symbol, above in edges[state]:
            passed = frozenset(after.get(symbol, ()))
            known = found.get(above)
            left = passed if known is None else known & passed
            if left != known:
                found[above] = left
                agenda.append(above)
    return found


def _edges(rules: Grammar, parser: Actions, lexer: Columns, state: int) -> list[tuple[int, int]]:
    """What may be read in a state, and the states above it."""
    found = [(rules.n_terminals + number, after) for number, after in enumerate(parser.goto[state]) if after >= 0]
    for terminal, column in enumerate(lexer.column):
        found += [(terminal, after) for after in parser.shifts_to(state, column)]
    return found


def _read(rules: Grammar, rules_of: dict[int, list[int]], kernel: frozenset[Item]) -> dict[int, list[Item]]:
    """For each symbol that may come next the items with this symbol read."""
    after: dict[int, list[Item]] = {}
    agenda = list(kernel)
    begun: set[int] = set()
    while agenda:
        rule, n_read = agenda.pop()
        body = rules.rules[rule].rhs if rule >= 0 else (rules.start,)
        if n_read == len(body):
            continue
        symbol = body[n_read]
        after.setdefault(symbol, []).append((rule, n_read + 1))
        if symbol not in begun:
            begun.add(symbol)
            agenda += [(number, 0) for number in rules_of.get(symbol, ())]
    return after


MOST_SHOWN = 20
"""Most faults that are listed."""

Reduction = tuple[int, int]
"""A nonterminal or a column of the gotos, and how many symbols are popped."""


def unlike_full(
    full: tuple[Actions, Columns],
    certificate: Certificate,
    parser: Actions,
    lexer: Columns,
    report: Report = lambda done, known: None,
) -> tuple[str, ...]:
    """What a table's parser does and the full one does not, in words; () if there is nothing.

    The search may fail on right tables, for it keeps one full state where several might do. No such
    tables are known.

    full : as of `read_full_tables`.
    report : called for each pair of states; what it raises ends the search.

    Cost: O(full states * symbols), half a second for grammars of programming languages.
    """
    comparison = _Comparison(*full, certificate, parser, lexer)
    comparison.run(report)
    return tuple(dict.fromkeys(comparison.faults))[:MOST_SHOWN]


class _Comparison:
    """The relation between full states and states of a table, as far as it is found.

    faults : what only the table's parser does, in words.
    """

    def __init__(
        self, full: Actions, full_columns: Columns, certificate: Certificate, parser: Actions, lexer: Columns
    ) -> None:
        self.full, self.parser, self.lexer = full, parser, lexer
        self._full_column = full_columns.column
        self.grammar = certificate.grammar
        self.columns = certificate.columns
        self.faults: list[str] = []
        self._related = {(0, 0)}
        self._agenda = [(0, 0)]
        self._reductions = [_reductions(parser, state) for state in range(parser.n_states)]
        self._of_full = [_reductions(full, state) for state in range(full.n_states)]
        self._shifting = [_shifts_something(parser, state) for state in range(parser.n_states)]
        self._renaming = [self._renaming_of(state) for state in range(full.n_states)]
        self._known: dict[tuple[int, Reduction], bool] = {}

    def _renaming_of(self, state: int) -> int:
        """The nonterminal that a full state renames its symbol to; -1 if it does anything else."""
        found = self._of_full[state]
        if len(found) != 1 or _shifts_something(self.full, state):
            return -1
        ((nonterminal, length),) = found
        return nonterminal if length == 1 else -1

    def run(self, report: Report) -> None:
        """Find all related states."""
        n_done = 0
        while self._agenda:
            report(n_done, len(self._related))
            n_done += 1
            state, merged = self._agenda.pop()
            for terminal, column in enumerate(self.lexer.column):
                for after in self.parser.shifts_to(merged, column):
                    own = self.full.shifts_to(state, self._full_column[terminal])
                    for one in own:
                        self._relate(state, one, after)
                    if not own:
                        name = self.grammar.symbol_name(terminal)
                        self.faults.append(
                            f"state {merged} shifts {name}, behind which there may be no text of the grammar"
                        )
            for nonterminal, one in enumerate(self.full.goto[state]):
                column = self.columns[nonterminal]
                after = self.parser.goto[merged][column] if column >= 0 else -1
                if one >= 0 and after >= 0:  # else no reduction of the table's parser leads there
                    self._relate(state, one, after)
            for reduction in self._reductions[merged]:
                if not self._is_like_full(state, reduction):
                    self.faults.append(f"state {merged} reduces {reduction[1]} symbols, as no full state does")

    def _relate(self, below: int, state: int, merged: int) -> None:
        """Relate to a state of the table the full state that has renamed as much as it."""
        renamed = set[int]()  # full tables on which reductions go round would do so here
        while self._renaming[state] >= 0 and state not in renamed:
            renamed.add(state)
            nonterminal = self._renaming[state]
            if not self._shifting[merged] and self._reductions[merged] == {(self.columns[nonterminal], 1)}:
                break
            state = self.full.goto[below][nonterminal]
        if (state, merged) not in self._related:
            self._related.add((state, merged))
            self._agenda.append((state, merged))

    def _is_like_full(self, state: int, reduction: Reduction) -> bool:
        """Whether a full state reduces so, on all that may lie below, with renamings behind it."""
        column, length = reduction
        if any(self.columns[nonterminal] == column and n == length for nonterminal, n in self._of_full[state]):
            return True
        key = state, reduction
        if key not in self._known:
            ways = [nonterminal for nonterminal, n in self._of_full[state] if n == length]
            self._known[key] = bool(ways) and all(
                any(self._renames(base, nonterminal, column) for nonterminal in ways)
                for base in self.full.deep_below(state, length)
            )
        return self._known[key]

    def _renames(self, base: int, nonterminal: int, column: int) -> bool:
        """Whether on a full state a nonterminal is renamed to one of a column of the table."""
        found, agenda = {nonterminal}, [nonterminal]
        while agenda:
            one = agenda.pop()
            after = self.full.goto[base][one]
            if after < 0:
                continue
            if self.columns[one] == column:
                return True
            for other, length in self._of_full[after]:
                if length == 1 and other not in found:
                    found.add(other)
                    agenda.append(other)
        return False


def _reductions(parser: Actions, state: int) -> set[Reduction]:
    """What a state reduces, before whatever terminal."""
    actions = {action for actions in parser.row(state) for action in actions if action < 0}
    return {(parser.lhs[-1 - action], parser.length[-1 - action]) for action in actions}


def _shifts_something(parser: Actions, state: int) -> bool:
    """Whether a state shifts a terminal, or accepts."""
    return any(action > 0 for actions in parser.row(state) for action in actions)
