"""From a grammar and a vocabulary to the engine's table, and whether a table is of its grammar."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import StoreError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.maskstore.automaton.stack_automaton import StackAutomaton, build_automaton, prepare_automaton
from maskwright.maskstore.table import schema
from maskwright.maskstore.table.check import part_bytes
from maskwright.maskstore.table.compiled import EngineTable, Progress
from maskwright.maskstore.table.write import engine_table, part_of
from maskwright.maskstore.vocabulary import Vocabulary


def prepare_engine_table(
    grammar: Grammar, vocabulary: Vocabulary, progress: Progress | None = None
) -> tuple[EngineTable, Callable[[Progress], EngineTable]]:
    """The table of an open automaton, and a function that closes it.

    progress : see `Progress`. The function gets one too.

    The function may be called in another thread. Its table gives the same masks, and numbers
    the states of lexer and parser in the same way. It is open if the automaton goes over its
    budget.

    Raises: as `build_automaton` and `engine_table`.

    Cost: a fifth to two thirds of `build_engine_table`.
    """
    builder = prepare_automaton(grammar, vocabulary, progress)

    def table(automaton: StackAutomaton) -> EngineTable:
        return EngineTable(grammar, vocabulary, engine_table(grammar, vocabulary, automaton), automaton.counts)

    return table(builder.opened()), lambda progress: table(builder.closed(progress))


def build_engine_table(grammar: Grammar, vocabulary: Vocabulary, progress: Progress | None = None) -> EngineTable:
    """Compile a grammar and a vocabulary completely.

    progress : see `Progress`.

    Raises: as `build_automaton` and `engine_table`.

    Cost: 2 CPU-s for python.lark at V = 32k.
    """
    automaton = build_automaton(grammar, vocabulary, progress)
    return EngineTable(grammar, vocabulary, engine_table(grammar, vocabulary, automaton), automaton.counts)


_ENTRIES = [offset for section in list(schema.SECTIONS.values())[:3] for offset in section]
"""Of the parser, the lexer, and what a lexeme may become."""

OF_GRAMMAR = [offset for offset in _ENTRIES if offset in schema.PARTS]
"""The parts of closed tables that no vocabulary changes."""

NUMBERS_OF_GRAMMAR = [*(offset for offset in _ENTRIES if offset in schema.NUMBERS), schema.AFTER_NEWLINE, schema.AGAIN]
"""Numbers and settings of closed tables that no vocabulary changes."""

ONE_TOKEN = Vocabulary("one token", (b"\n",), {}, ())


@lru_cache(maxsize=1)
def byte_vocabulary() -> Vocabulary:
    """The 256 bytes, with an end of text as token 0."""
    return Vocabulary("bytes", (b"", *(bytes([byte]) for byte in range(256))), {0: "</s>"}, (0,))


def check_made_anew(where: str, grammar: Grammar, table: npt.NDArray[np.int32]) -> None:
    """Refuse a closed table whose parser and lexer are not those that we make of its grammar.

    They, and what a lexeme may become, follow from the grammar alone. The vocabulary has no part in
    them, so a vocabulary of one token is enough to make them. This is the builder once more: it
    finds a table that was changed, and no mistake of the builder (`maskstore/verify/trusted.py`
    looks for those).

    where : what the table belongs to, as errors name it.
    table : (n,) int32.

    Raises: StoreError naming the first part that differs, or as `part_bytes`; what
        `build_engine_table` raises if this version refuses the grammar.

    Cost: that of parser and lexer; some seconds for the library's python.
    """
    part_bytes(where, table)
    own = build_engine_table(grammar, ONE_TOKEN).table
    for offset in NUMBERS_OF_GRAMMAR:
        if table[offset] != own[offset]:
            entry = schema.NUMBERS.get(offset) or schema.SETTINGS[offset]
            raise _differs(where, f"{entry.name} is {int(table[offset])}, expected {int(own[offset])}")
    for offset in OF_GRAMMAR:
        found, expected = part_of(table, offset), part_of(own, offset)
        name = schema.PARTS[offset].name
        if len(found) != len(expected):
            raise _differs(where, f"part {name} has {len(found)} integers, expected {len(expected)}")
        if not np.array_equal(found, expected):
            at = int((found != expected).argmax())
            raise _differs(where, f"part {name} holds {int(found[at])} at {at}, expected {int(expected[at])}")


def _differs(where: str, found: str) -> StoreError:
    return StoreError(
        f"{where}: parser and lexer are not those that this version makes of the grammar: the table's {found}; "
        "build the store again"
    )
