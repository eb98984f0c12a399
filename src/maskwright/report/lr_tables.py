"""Are LR tables those of a grammar? Asked of the tables that deciders of terminal sequences read.

In: rules, LR tables, of whatever builder. Out: what is wrong with them, and what was not shown.

Three conditions are checked, by code that shares nothing with the builder of the tables:

- *sound*: what the parser accepts, the grammar derives (`maskstore/verify/tables.py`);
- *complete*: what the grammar derives, the parser accepts (`maskstore/verify/complete.py`);
- *viable*: each stack begins a sentential form (`maskstore/verify/viable.py`). With soundness, the
  text that the parser has read can then still become a word.

They make `analysis.legality.exact` right for the grammar's language, whoever made the tables. Let P
be the prefixes of its words. If a text is in P, some run of the parser reads it, by completeness;
if the parser reads it, it is in P, by the other two. So a stack that accepts a sequence stands for
texts of P, and a text of P that no stack accepts does not exist.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.lr.automaton import build_automaton
from maskwright.analysis.lr.encoding import ACCEPT, Array, LrTables
from maskwright.analysis.lr.lookaheads import lookaheads
from maskwright.analysis.lr.merging import has_conflicts
from maskwright.maskstore.table import schema
from maskwright.maskstore.verify.complete import missing_entries
from maskwright.maskstore.verify.tables import Certificate, unsound_reductions
from maskwright.maskstore.verify.viable import stuck_states

MOST_STEPS = 2_500_000
"""Steps of the search for missing entries, some two microseconds each: the library's python takes
1,820,000, sql 690,000."""
MOST_KEPT = 64
"""Results that are kept, the least recently made dropped first."""

_KEPT: dict[str, Validation] = {}


@dataclass(frozen=True)
class Validation:
    """What was found of LR tables.

    faults : what is wrong, in words; a verdict on these tables means nothing.
    not_shown : why it is not known that the parser accepts all that the grammar derives, or
        anything of the tables, in words; "" if the tables are validated.
    is_sound : whether what the parser has read is known to begin a word.
    """

    faults: tuple[str, ...] = ()
    not_shown: str = ""
    is_sound: bool = True

    @property
    def is_complete(self) -> bool:
        """Whether the tables are shown to be those of the grammar."""
        return self.is_sound and not self.faults and not self.not_shown

    def __str__(self) -> str:
        if self.faults:
            return "WRONG"
        if self.is_complete:
            return "validated"
        return "sound, but not shown to be complete" if self.is_sound else "not validated"


def validate_lr_tables(rules: Grammar, tables: LrTables) -> Validation:
    """Whether tables are sound, viable and complete for rules.

    rules : what the tables are made of, as `parsed_grammar` gives it.
    tables : of these rules, a column for each terminal and a goto for each nonterminal, as
        `build_lr_tables` makes them, before any merging.

    Where the rules have conflicts, tables leave actions out on purpose. Then entries that are
    missing are `not_shown`, and no faults. A limit is told in `not_shown` too.

    Cost: python (2038 states) 5 s, sql and java 2 s, json some ms; once for equal tables.
    """
    key = tables_digest(rules, tables)
    found = _KEPT.get(key)
    if found is None:
        found = _validate(rules, tables)
        while len(_KEPT) >= MOST_KEPT:
            _KEPT.pop(next(iter(_KEPT)), None)
        _KEPT[key] = found
    return found


def tables_digest(rules: Grammar, tables: LrTables) -> str:
    """SHA-256 (hex) of rules and tables. Equal ones have equal digests on every machine."""
    state = hashlib.sha256(f"maskwright LR tables 1\n{rules.digest}\n{tables.n_terminals}\n".encode())
    arrays: tuple[Array, ...] = (
        tables.action,
        tables.goto,
        tables.rule_lhs,
        tables.rule_length,
        tables.alternatives,
        tables.terminal_column,
    )
    for array in arrays:
        state.update(f"{array.shape}\n".encode())
        state.update(array.astype("<i4", copy=False).tobytes())
    return state.hexdigest()


@dataclass(frozen=True)
class _Parser:
    """The tables as `trusted.Actions`."""

    n_states: int
    n_columns: int
    acts: list[tuple[int, ...]]
    goto: list[list[int]]
    lhs: list[int]
    length: list[int]
    below: list[list[int]] = field(default_factory=list)

    @classmethod
    def of(cls, tables: LrTables) -> _Parser:
        n_states, n_columns = tables.action.shape
        acts = [tables.actions(state, column) for state in range(n_states) for column in range(n_columns)]
        return cls(
            n_states, n_columns, acts, tables.goto.tolist(), tables.rule_lhs.tolist(), tables.rule_length.tolist()
        )

    def row(self, state: int) -> list[tuple[int, ...]]:
        return self.acts[state * self.n_columns : (state + 1) * self.n_columns]

    def find_below(self) -> None:
        """Fill in `below`. The targets must be states."""
        below: list[set[int]] = [set() for _ in range(self.n_states)]
        for state in range(self.n_states):
            shifts = {action - 1 for actions in self.row(state) for action in actions if 0 < action < ACCEPT}
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
                    if action != ACCEPT and not -len(self.lhs) <= action <= self.n_states:
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
class _Columns:
    """The terminals' columns as `trusted.Columns`."""

    column: list[int]
    indent: int
    dedent: int
    newline: int

    @classmethod
    def of(cls, rules: Grammar, columns: list[int]) -> _Columns:
        layout = rules.layout
        if layout is None:
            return cls(columns, schema.NONE, schema.NONE, schema.NONE)
        return cls(columns, columns[layout.indent], columns[layout.dedent], layout.newline)


def _validate(rules: Grammar, tables: LrTables) -> Validation:
    columns: list[int] = tables.terminal_column.tolist()
    if tables.n_terminals != rules.n_terminals:
        return Validation((f"there are columns for {tables.n_terminals} terminals, expected {rules.n_terminals}",))
    parser = _Parser.of(tables)
    fault = parser.what_is_no_table(rules, columns)
    if not fault:
        parser.find_below()
        fault = parser.what_is_torn()
    if fault:
        return Validation((fault,))
    lexer = _Columns.of(rules, columns)
    certificate = Certificate(rules, tuple(range(rules.n_nonterminals)))
    try:
        faults = unsound_reductions(certificate, parser, lexer)
    except LimitError as error:
        return Validation(not_shown=str(error), is_sound=False)
    faults = faults or stuck_states(rules, parser, lexer)
    if faults:
        return Validation(faults)

    def report(done: int, known: int) -> None:
        if done > MOST_STEPS:
            raise LimitError(f"the search for missing entries takes more than {MOST_STEPS:,} steps")

    try:
        missing = missing_entries(certificate, parser, lexer, report)
    except LimitError as error:
        return Validation(not_shown=str(error))
    if not missing:
        return Validation()
    return Validation(not_shown=missing[0]) if _may_leave_out(rules) else Validation(missing)


def _may_leave_out(rules: Grammar) -> bool:
    """Whether the rules have conflicts, so that right tables may lack entries.

    This asks the builder. It says whether a missing entry is a fault, never that none is missing.
    """
    try:
        automaton = build_automaton(rules)
        return has_conflicts(automaton, lookaheads(automaton))
    except LimitError:
        return True
