"""What a table says twice: parts of it that follow from others, or from the grammar.

Engines read them to save time, and no walk of `verify` meets them. So each is worked out here from
the definition, without the builder, even where `maskstore/table/anew.py` compares the part too: a
mistake of the builder shows here only. In: a table that has passed `check_table`. Out: a StoreError
if a part is wrong.
"""

from __future__ import annotations

from maskwright.analysis.grammar.grammar import Grammar
from maskwright.maskstore.damaged import refuse
from maskwright.maskstore.table import schema
from maskwright.maskstore.verify.configurations import Configurations
from maskwright.maskstore.verify.trusted import ACCEPTS, Int32, Lexer, Parser, run_of, runs_of


def check_repeated(where: str, grammar: Grammar, table: Int32, lexer: Lexer, configurations: Configurations) -> None:
    """Refuse a table that contradicts its own parser, or its grammar's layout.

    where : what the table belongs to, as errors name it.

    Raises: StoreError, which names the part.
    """
    _check_header(where, table)
    _check_brackets(where, grammar, lexer)
    if lexer.newline >= 0:
        _check_after_newline(where, lexer, configurations.parser)
    _check_predecessors(where, table, configurations.parser)
    _check_shifts(where, table, configurations)


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


def _check_shifts(where: str, table: Int32, configurations: Configurations) -> None:
    """A column that is claimed to be shifted is: at once, or after a reduction, on all stacks.

    The parser never reduces for ever. So it is enough that each claim rests on other claims.
    """
    parser = configurations.parser
    n_words = int(table[schema.N_SET_WORDS])
    words = run_of(table, schema.SHIFT_BITS, parser.n_states, n_words)
    claims = [int.from_bytes(row.astype("<i4").tobytes(), "little") for row in words]
    for state, claimed in enumerate(claims):
        for column in range(parser.n_columns):
            if claimed >> column & 1 and not any(
                _leads_to_shift(action, state, column, claims, configurations)
                for action in parser.acts[state * parser.n_columns + column]
            ):
                raise refuse(
                    where,
                    f"the table's part shift_bits has column {column} of state {state}, which not every stack shifts",
                )


def _leads_to_shift(action: int, state: int, column: int, claims: list[int], configurations: Configurations) -> bool:
    """Whether an action is a shift, or comes to a state with this claim on every stack."""
    if action > 0:
        return action != ACCEPTS
    parser = configurations.parser
    pushed = [
        parser.goto[under][parser.lhs[-action - 1]]
        for under in configurations.ways.deep_below(state, parser.length[-action - 1])
    ]
    return all(claims[after] >> column & 1 for after in pushed if after >= 0)
