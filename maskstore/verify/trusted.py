"""The parser and the lexer as an engine's table holds them; and full LR tables, read alike.

In: a table that has passed `check_table`. Out: lists, for the other modules here. The walks take
them as right. `maskstore/table/build.py` compares them with those that the grammar gives, and
`tables` asks whether the parser's are sound (docs/verify.md).

A table says some things twice, to save engines time: parts that follow from others, or from the
grammar. No walk meets them, so `check_repeated` works each out from the definition, without the
builder, even where `maskstore/table/build.py` compares the part too: a mistake of the builder shows
here only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from maskwright.analysis.grammar.grammar import Grammar
from maskwright.maskstore.damaged import refuse
from maskwright.maskstore.table import schema

Int32 = npt.NDArray[np.int32]
FullTables: TypeAlias = Any
"""An `LrTables` of `analysis.lr.encoding`, of which this folder imports nothing."""

ACCEPTS = 1 << 29
"""The action that accepts the text (`schema.ACTION`)."""
CONFLICT_FROM = 1 << 30
"""An action from here on stands for several."""


def run_of(table: Int32, part: int, *shape: int) -> Int32:
    """The first integers of a part of the table, in a shape. part : its offset in the header."""
    begin = int(table[part])
    return table[begin : begin + int(np.prod(shape, dtype=np.int64))].reshape(shape)


def runs_of(table: Int32, starts: int, part: int, n: int) -> list[list[int]]:
    """The runs of a part, whose starts are another part. n : how many runs there are."""
    begin = int(table[part])
    at = run_of(table, starts, n + 1).tolist()
    members: list[int] = table[begin : begin + at[-1]].tolist()
    return [members[first:last] for first, last in pairwise(at)]


class Actions:
    """What an LR parser does.

    n_states, n_columns : of the parser. The last column is the end of the text.
    acts : acts[state * n_columns + column] are the plain actions there, () for an error. A state
        with a default rule has this one action before every column.
    goto, lhs, length : as in `LrTables`, as lists.
    below : for each state the states that can lie directly below it on a stack, ascending.
    shifts : for each state the columns that it shifts, as bits.
    entered : for each column the states that its shift leads to.
    """

    def __init__(
        self, n_columns: int, acts: list[tuple[int, ...]], goto: list[list[int]], lhs: list[int], length: list[int]
    ) -> None:
        self.n_states, self.n_columns = len(goto), n_columns
        self.acts, self.goto, self.lhs, self.length = acts, goto, lhs, length
        self._deep_below: dict[int, list[frozenset[int]]] = {}
        self.shifts = [0] * self.n_states
        self.entered: list[set[int]] = [set() for _ in range(n_columns)]
        below: list[set[int]] = [set() for _ in goto]
        for state, row in enumerate(goto):
            for after in row:
                if after >= 0:
                    below[after].add(state)
            for column, actions in enumerate(self.row(state)):
                for action in actions:
                    if 0 < action <= self.n_states:
                        self.shifts[state] |= 1 << column
                        self.entered[column].add(action - 1)
                        below[action - 1].add(state)
        self.below = [sorted(each) for each in below]

    def row(self, state: int) -> list[tuple[int, ...]]:
        """The actions of a state, by column."""
        return self.acts[state * self.n_columns : (state + 1) * self.n_columns]

    def shifts_to(self, state: int, column: int) -> list[int]:
        """The states that shifts lead to, none for column -1; several only with conflicts."""
        actions = self.acts[state * self.n_columns + column] if column >= 0 else ()
        return [action - 1 for action in actions if 0 < action <= self.n_states]

    def deep_below(self, state: int, depth: int) -> frozenset[int]:
        """The states that can lie some cells below a state."""
        known = self._deep_below.setdefault(state, [frozenset([state])])
        while len(known) <= depth:
            known.append(frozenset(under for above in known[-1] for under in self.below[above]))
        return known[depth]


class Parser(Actions):
    """The LALR tables as an engine reads them.

    has_conflicts : whether a cell has several actions, so that a text may have several stacks.
    """

    def __init__(self, table: Int32) -> None:
        n_states, n_columns = int(table[schema.N_STATES]), int(table[schema.N_COLUMNS])
        n_nonterminals, n_rules = int(table[schema.N_NONTERMINALS]), int(table[schema.N_RULES])
        super().__init__(
            n_columns,
            _acts(table, n_states, n_columns),
            run_of(table, schema.GOTO, n_states, n_nonterminals).tolist(),
            run_of(table, schema.RULE_LHS, n_rules).tolist(),
            run_of(table, schema.RULE_LENGTH, n_rules).tolist(),
        )
        self.has_conflicts = any(len(actions) > 1 for actions in self.acts)


def _acts(table: Int32, n_states: int, n_columns: int) -> list[tuple[int, ...]]:
    action: list[list[int]] = run_of(table, schema.ACTION, n_states, n_columns).tolist()
    default: list[int] = run_of(table, schema.DEFAULT, n_states).tolist()
    begin = int(table[schema.ALTERNATIVES])
    found: list[tuple[int, ...]] = []
    known: dict[int, tuple[int, ...]] = {0: ()}
    for row, rule in zip(action, default, strict=True):
        if rule >= 0:
            found += [(-1 - rule,)] * n_columns
            continue
        for cell in row:
            if cell not in known:
                known[cell] = (cell,)
                if cell >= CONFLICT_FROM:
                    at = begin + cell - CONFLICT_FROM
                    known[cell] = tuple(table[at + 1 : at + 1 + int(table[at])].tolist())
            found.append(known[cell])
    return found


@dataclass
class Columns:
    """The columns of a parser's terminals.

    column : for each terminal its column, -1 for none.
    newline, indent, dedent : the layout's terminal, and the columns of the others; NONE without.
    """

    column: list[int]
    newline: int = schema.NONE
    indent: int = schema.NONE
    dedent: int = schema.NONE


class Lexer(Columns):
    """The transducer, the layout and what lexemes under way may become, as an engine reads them.

    byte_class, next_state, output, outputs, end_output : as in `Transducer`, as lists.
    is_newline : for each state whether the lexeme under way may become the layout's newline.
    bracket : for each terminal 1 or -1 for a bracket of the layout, else 0.
    newline_column : the column of the newline.
    mode_state : the state in which lexemes begin, by mode. mode_of : the mode of each LR state.
    fallback : for each state the terminals emitted where the lexer backs up, none or one.
    pending : for each state the bytes that are then read anew.
    endings : for each state its alternatives: the terminals that come first, and a code, as in
        `schema.ENDINGS`.
    sets : the sets of columns, as bits. after_newline : the one behind a line break, by number.
    again : the most bytes that wait to be read anew.
    """

    def __init__(self, table: Int32, n_terminals: int) -> None:
        n = self.n_states = int(table[schema.N_LEXER_STATES])
        n_classes, n_modes = int(table[schema.N_CLASSES]), int(table[schema.N_MODES])
        n_outputs = int(table[schema.OUTPUT_SYMBOLS]) - int(table[schema.OUTPUT_START]) - 1
        self.byte_class: list[int] = run_of(table, schema.BYTE_CLASS, 256).tolist()
        self.next_state: list[list[int]] = run_of(table, schema.NEXT_STATE, n, n_classes).tolist()
        self.output: list[list[int]] = run_of(table, schema.OUTPUT, n, n_classes).tolist()
        self.outputs = runs_of(table, schema.OUTPUT_START, schema.OUTPUT_SYMBOLS, n_outputs)
        self.end_output: list[int] = run_of(table, schema.END_OUTPUT, n).tolist()
        flags: list[int] = run_of(table, schema.STATE_FLAGS, n).tolist()
        self.is_newline = [bool(flag & schema.IS_NEWLINE) for flag in flags]
        settings = [int(table[offset]) for offset in (schema.NEWLINE, schema.INDENT, schema.DEDENT)]
        super().__init__(run_of(table, schema.SYMBOL_COLUMN, n_terminals).tolist(), *settings)
        self.bracket: list[int] = run_of(table, schema.SYMBOL_DEPTH, n_terminals).tolist()
        self.newline_column = self.column[self.newline] if self.newline >= 0 else schema.NONE
        self.tab_length, self.tabs = int(table[schema.TAB_LENGTH]), int(table[schema.TABS])
        self.mode_state: list[int] = run_of(table, schema.MODE_STATE, n_modes).tolist()
        self.mode_of: list[int] = run_of(table, schema.MODE_OF_STATE, int(table[schema.N_STATES])).tolist()
        emitted = int(table[schema.OUTPUT_SYMBOLS])
        self.fallback = [
            [] if at < 0 else [int(table[emitted + at])] for at in run_of(table, schema.FALLBACK, n).tolist()
        ]
        self.pending = [bytes(each) for each in runs_of(table, schema.PENDING_START, schema.PENDING, n)]
        self.endings = [list(_endings(run)) for run in runs_of(table, schema.ENDING_START, schema.ENDINGS, n)]
        n_words = int(table[schema.N_SET_WORDS])
        n_sets = (int(table[schema.SHIFT_BITS]) - int(table[schema.SET_BITS])) // max(1, n_words)
        words = run_of(table, schema.SET_BITS, n_sets, n_words)
        self.sets = [int.from_bytes(row.astype("<i4").tobytes(), "little") for row in words]
        self.after_newline = int(table[schema.AFTER_NEWLINE])
        self.again = int(table[schema.AGAIN])


def _endings(run: list[int]) -> Iterator[tuple[tuple[int, ...], int]]:
    """The alternatives of a run of ENDINGS: terminals, and a code."""
    at = 0
    while at < len(run):
        n = run[at + 1]
        yield tuple(run[at + 2 : at + 2 + n]), run[at]
        at += 2 + n


# ---------------------------------------------------------------------------------- full LR tables


def read_full_tables(rules: Grammar, tables: FullTables) -> tuple[Actions, Columns] | str:
    """The full LR tables of rules, of whatever builder; in words what is wrong, if anything is.

    *Full* tables have a column for each terminal, a goto for each nonterminal, and a state for each
    set of items; those of a store are merged (`viable`). Right are tables with every entry in
    range, and a goto for every reduction.
    """
    columns: list[int] = tables.terminal_column.tolist()
    if tables.n_terminals != rules.n_terminals:
        return f"there are columns for {tables.n_terminals} terminals, expected {rules.n_terminals}"
    n_states, n_columns = tables.action.shape
    acts = [tables.actions(state, column) for state in range(n_states) for column in range(n_columns)]
    goto, lhs, length = tables.goto.tolist(), tables.rule_lhs.tolist(), tables.rule_length.tolist()
    if n_columns != rules.n_terminals + 1 or len(columns) != rules.n_terminals:
        return f"there are {n_columns} columns for {rules.n_terminals} terminals and the end of the text"
    if any(len(row) != rules.n_nonterminals for row in goto) or len(goto) != n_states:
        return f"the gotos are not those of {rules.n_nonterminals} nonterminals"
    if any(column not in (-1, terminal) for terminal, column in enumerate(columns)):
        return "a terminal has the column of another one"
    for number, (side, n_symbols) in enumerate(zip(lhs, length, strict=True)):
        if not 0 <= side < rules.n_nonterminals or n_symbols < 0:
            return f"rule {number} reduces {n_symbols} symbols to nonterminal {side}"
    for at, actions in enumerate(acts):
        for action in actions:
            if action != ACCEPTS and not -len(lhs) <= action <= n_states:
                return f"state {at // n_columns} has the action {action}"
    for state, targets in enumerate(goto):
        if max(targets, default=-1) >= n_states:
            return f"state {state} goes to state {max(targets)}, and there is none"
    parser = Actions(n_columns, acts, goto, lhs, length)
    layout = rules.layout
    inserted = (layout.newline, columns[layout.indent], columns[layout.dedent]) if layout else ()
    return _what_is_torn(parser) or (parser, Columns(columns, *inserted))


def _what_is_torn(parser: Actions) -> str:
    """The first reduction that pops the bottom, or has no goto, in words; ""."""
    bases: dict[tuple[int, int], frozenset[int]] = {}
    for state in range(parser.n_states):
        for rule in sorted({-1 - action for actions in parser.row(state) for action in actions if action < 0}):
            length = parser.length[rule]
            if (state, length) not in bases:
                if any(0 in parser.deep_below(state, depth) for depth in range(length)):
                    return f"state {state} reduces {length} symbols, and the stack may have less"
                bases[state, length] = parser.deep_below(state, length)
            for base in sorted(bases[state, length]):
                if parser.goto[base][parser.lhs[rule]] < 0:
                    return f"state {base} has no goto for what state {state} reduces by rule {rule}"
    return ""


def check_repeated(where: str, grammar: Grammar, table: Int32, lexer: Lexer, parser: Parser) -> None:
    """Refuse a table that contradicts its own parser, or its grammar's layout.

    where : what the table belongs to, as errors name it.

    Raises: StoreError, which names the part.
    """
    _check_header(where, table)
    _check_brackets(where, grammar, lexer)
    if lexer.newline >= 0:
        _check_after_newline(where, lexer, parser)
    _check_predecessors(where, table, parser)
    _check_shifts(where, table, parser)


def _check_header(where: str, table: Int32) -> None:
    """Integers of the header that stand for nothing are 0."""
    for offset in range(schema.HEADER):
        is_used = offset in schema.NUMBERS or offset in schema.SETTINGS or offset in schema.PARTS
        if not is_used and table[offset]:
            raise refuse(
                where, f"the table's header holds {int(table[offset])} at {offset}, which no one uses; expected 0"
            )


def _check_brackets(where: str, grammar: Grammar, lexer: Lexer) -> None:
    """Brackets are those of the layout."""
    expected = [0] * grammar.n_terminals
    for opening, closing in grammar.layout.brackets if grammar.layout else ():
        expected[opening], expected[closing] = 1, -1
    for terminal, (found, own) in enumerate(zip(lexer.bracket, expected, strict=True)):
        if found != own:
            raise refuse(where, f"the table's part symbol_depth holds {found} at [{terminal}], expected {own}")


def _check_after_newline(where: str, lexer: Lexer, parser: Parser) -> None:
    """Behind a line break comes anything but an indent, which the line break has brought itself."""
    expected = (1 << parser.n_columns) - 1
    if lexer.indent >= 0:
        expected &= ~(1 << lexer.indent)
    if lexer.sets[lexer.after_newline] != expected:
        raise refuse(where, "the table's set after a newline is not that of all columns but the indent's")


def _check_predecessors(where: str, table: Int32, parser: Parser) -> None:
    """Each state that can lie directly below another is among its predecessors."""
    claimed = runs_of(table, schema.PREDECESSOR_START, schema.PREDECESSORS, parser.n_states)
    for state, (found, below) in enumerate(zip(claimed, parser.below, strict=True)):
        if not set(below) <= set(found):
            missing = min(set(below) - set(found))
            raise refuse(
                where, f"the table's part predecessors lacks state {missing}, which can lie below state {state}"
            )


def _check_shifts(where: str, table: Int32, parser: Parser) -> None:
    """A column that is claimed to be shifted is: at once, or after a reduction, on all stacks.

    The parser never reduces for ever. So it is enough that each claim rests on other claims.
    """
    n_words = int(table[schema.N_SET_WORDS])
    words = run_of(table, schema.SHIFT_BITS, parser.n_states, n_words)
    claims = [int.from_bytes(row.astype("<i4").tobytes(), "little") for row in words]
    for state, claimed in enumerate(claims):
        for column in range(parser.n_columns):
            if claimed >> column & 1 and not any(
                _leads_to_shift(action, state, column, claims, parser)
                for action in parser.acts[state * parser.n_columns + column]
            ):
                raise refuse(
                    where,
                    f"the table's part shift_bits has column {column} of state {state}, which not every stack shifts",
                )


def _leads_to_shift(action: int, state: int, column: int, claims: list[int], parser: Parser) -> bool:
    """Whether an action is a shift, or comes to a state with this claim on every stack."""
    if action > 0:
        return action != ACCEPTS
    pushed = [
        parser.goto[under][parser.lhs[-action - 1]] for under in parser.deep_below(state, parser.length[-action - 1])
    ]
    return all(claims[after] >> column & 1 for after in pushed if after >= 0)
