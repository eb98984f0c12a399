"""The full LR tables of a grammar, as the checks of this folder read tables.

In: rules, and LR tables of whatever builder. Out: `FullParser` and `FullColumns`, or what makes
these no tables of the rules. *Full* tables have a column for each terminal, a goto for each
nonterminal, and a state for each set of items; those of a store are merged (`merged`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from maskwright.analysis.grammar.grammar import Grammar
from maskwright.maskstore.table import schema
from maskwright.maskstore.verify.trusted import ACCEPTS, Int32


class FullTables(Protocol):
    """Full LR tables, as `analysis.lr.encoding.LrTables` has them, whose words these are."""

    @property
    def n_terminals(self) -> int:
        """The number of terminals."""

    @property
    def action(self) -> Int32:
        """(n_states, n_terminals + 1)"""

    @property
    def goto(self) -> Int32:
        """(n_states, n_nonterminals)"""

    @property
    def rule_lhs(self) -> Int32:
        """(n_rules,)"""

    @property
    def rule_length(self) -> Int32:
        """(n_rules,)"""

    @property
    def terminal_column(self) -> Int32:
        """(n_terminals,)"""

    def actions(self, state: int, column: int) -> tuple[int, ...]:
        """All actions of a cell."""


def read_full_tables(rules: Grammar, tables: FullTables) -> tuple[FullParser, FullColumns] | str:
    """The parser and the columns of tables; in words what is wrong, if anything is.

    Right are tables with every entry in range, and a goto for every reduction.
    """
    columns: list[int] = tables.terminal_column.tolist()
    if tables.n_terminals != rules.n_terminals:
        return f"there are columns for {tables.n_terminals} terminals, expected {rules.n_terminals}"
    parser = FullParser.of(tables)
    fault = parser.what_is_no_table(rules, columns)
    if not fault:
        parser.find_below()
        fault = parser.what_is_torn()
    return fault or (parser, FullColumns.of(rules, columns))


@dataclass(frozen=True)
class FullParser:
    """The actions of full LR tables, as `trusted.Actions`."""

    n_states: int
    n_columns: int
    acts: list[tuple[int, ...]]
    goto: list[list[int]]
    lhs: list[int]
    length: list[int]
    below: list[list[int]] = field(default_factory=list)

    @classmethod
    def of(cls, tables: FullTables) -> FullParser:
        """The parser without `below`, whatever the entries are."""
        n_states, n_columns = tables.action.shape
        acts = [tables.actions(state, column) for state in range(n_states) for column in range(n_columns)]
        return cls(
            n_states, n_columns, acts, tables.goto.tolist(), tables.rule_lhs.tolist(), tables.rule_length.tolist()
        )

    def row(self, state: int) -> list[tuple[int, ...]]:
        """The actions of a state, by column."""
        return self.acts[state * self.n_columns : (state + 1) * self.n_columns]

    def find_below(self) -> None:
        """Fill in `below`. The targets must be states."""
        below: list[set[int]] = [set() for _ in range(self.n_states)]
        for state in range(self.n_states):
            shifts = {action - 1 for actions in self.row(state) for action in actions if 0 < action < ACCEPTS}
            for after in shifts | {after for after in self.goto[state] if after >= 0}:
                below[after].add(state)
        self.below.extend(map(sorted, below))

    def what_is_no_table(self, rules: Grammar, columns: list[int]) -> str:
        """The first entry that is out of range, in words; ""."""
        if self.n_columns != rules.n_terminals + 1 or len(columns) != rules.n_terminals:
            return f"there are {self.n_columns} columns for {rules.n_terminals} terminals and the end of the text"
        if any(len(row) != rules.n_nonterminals for row in self.goto) or len(self.goto) != self.n_states:
            return f"the gotos are not those of {rules.n_nonterminals} nonterminals"
        if any(column not in (-1, terminal) for terminal, column in enumerate(columns)):
            return "a terminal has the column of another one"
        for number, (lhs, length) in enumerate(zip(self.lhs, self.length, strict=True)):
            if not 0 <= lhs < rules.n_nonterminals or length < 0:
                return f"rule {number} reduces {length} symbols to nonterminal {lhs}"
        for state in range(self.n_states):
            for actions in self.row(state):
                for action in actions:
                    if action != ACCEPTS and not -len(self.lhs) <= action <= self.n_states:
                        return f"state {state} has the action {action}"
            if max(self.goto[state], default=-1) >= self.n_states:
                return f"state {state} goes to state {max(self.goto[state])}, and there is none"
        return ""

    def what_is_torn(self) -> str:
        """The first reduction that pops the bottom, or has no goto, in words; ""."""
        bases: dict[tuple[int, int], set[int]] = {}
        for state in range(self.n_states):
            for rule in sorted({-1 - action for actions in self.row(state) for action in actions if action < 0}):
                key = state, self.length[rule]
                if key not in bases:
                    found = {state}
                    for _ in range(self.length[rule]):
                        if 0 in found:
                            return f"state {state} reduces {self.length[rule]} symbols, and the stack may have less"
                        found = {under for above in found for under in self.below[above]}
                    bases[key] = found
                for base in sorted(bases[key]):
                    if self.goto[base][self.lhs[rule]] < 0:
                        return f"state {base} has no goto for what state {state} reduces by rule {rule}"
        return ""


@dataclass(frozen=True)
class FullColumns:
    """The columns of full LR tables, one for each terminal, as `trusted.Columns`."""

    column: list[int]
    indent: int
    dedent: int
    newline: int

    @classmethod
    def of(cls, rules: Grammar, columns: list[int]) -> FullColumns:
        """The columns, and those of the layout."""
        layout = rules.layout
        if layout is None:
            return cls(columns, schema.NONE, schema.NONE, schema.NONE)
        return cls(columns, columns[layout.indent], columns[layout.dedent], layout.newline)
