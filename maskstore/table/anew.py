"""The parts of a table that follow from its grammar alone, made anew and compared.

They are the parser, the lexer, and what a lexeme may become. The vocabulary has no part in them, so
a vocabulary of one token is enough to make them. This is the builder once more: it finds a table
that was changed, and no mistake of the builder (`maskstore/verify/trusted.py` looks for those).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import StoreError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.maskstore.table import schema
from maskwright.maskstore.table.build import build_engine_table
from maskwright.maskstore.table.check import part_bytes
from maskwright.maskstore.table.write import part_of
from maskwright.maskstore.vocabulary import Vocabulary

_ENTRIES = [offset for section in list(schema.SECTIONS.values())[:3] for offset in section]
"""Of the parser, the lexer, and what a lexeme may become."""

OF_GRAMMAR = [offset for offset in _ENTRIES if offset in schema.PARTS]
"""The parts of closed tables that no vocabulary changes."""

NUMBERS_OF_GRAMMAR = [*(offset for offset in _ENTRIES if offset in schema.NUMBERS), schema.AFTER_NEWLINE, schema.AGAIN]
"""Numbers and settings of closed tables that no vocabulary changes."""

ONE_TOKEN = Vocabulary("one token", (b"\n",), {}, ())


def check_made_anew(where: str, grammar: Grammar, table: npt.NDArray[np.int32]) -> None:
    """Refuse a closed table whose parser and lexer are not those that we make of its grammar.

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
