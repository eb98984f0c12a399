"""Store files of kind "automaton": the one array of an `EngineTable`."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import StoreError
from maskwright.maskstore.damaged import refuse
from maskwright.maskstore.file.fileheader import AUTOMATON, TABLE, Content, Header, grammar_facts
from maskwright.maskstore.table.check import check_table, part_bytes, table_sizes
from maskwright.maskstore.table.compiled import EngineTable

Array = npt.NDArray[Any]

_BLOCK = 1 << 14
"""PERF: integers of the table that the checksum takes at a time.

They fit into a core's cache: 2.5 ms for the 10 MB of python.lark's table.
"""


def written(store: EngineTable) -> tuple[dict[str, Any], dict[str, Array]]:
    """The store's own members of the JSON, and its tensor. A lazy store is closed first."""
    store.close()
    table = np.ascontiguousarray(store.table, np.int32)
    facts = {
        "kind": AUTOMATON,
        "counts": [[name, int(count)] for name, count in store.counts.items()],
        "table_checksum": table_checksum(table),
        **grammar_facts(store.grammar),
    }
    return facts, {TABLE: table}


def read(file: Content) -> EngineTable:
    """The table in a file. Raises: StoreError if it is damaged or no safe one."""
    facts, table = file.header.facts, file.table
    assert table is not None and file.grammar is not None  # of this kind each has both
    found, expected = table_checksum(table), facts["table_checksum"]
    if found != expected:
        raise refuse(file.where, f"its table has checksum {found}, expected {clip(expected)}")
    check_table(file.where, file.header.grammar, file.own_vocabulary, table)
    return EngineTable(file.grammar, file.vocabulary, table, MappingProxyType(dict(facts["counts"])))


def info(where: str, header: Header, table: Array | None) -> dict[str, Any]:
    """What a file says about its automaton, ready for JSON. Raises: StoreError without a table."""
    if table is None:
        raise StoreError(f"{where} was replaced while it was read; ask again when its writers have finished")
    parts = part_bytes(where, table)
    sizes = table_sizes(table)
    return {
        "conflicts": header.grammar.conflicts,
        "counts": dict(header.facts["counts"]),
        "lexer_states": sizes["lexer states"],
        "parser_states": sizes["states"],
        "nodes": sizes["nodes"],
        "masks": {"all": sizes["masks"], "rows": parts["rows"] // max(1, 4 * sizes["words"])},
        "table_bytes": parts,
    }


def table_checksum(table: Array) -> str:
    """The `table_checksum` of the format.

    The weights are odd, so a change of a single integer always changes the sum.
    """
    integers = table.view(np.uint32)
    weights = np.arange(1, 2 * _BLOCK, 2, dtype=np.uint64)
    total = 0
    for begin in range(0, len(integers), _BLOCK):
        block = integers[begin : begin + _BLOCK].astype(np.uint64)
        # sums of arrays are modulo 2^64
        total += int(np.dot(block, weights[: len(block)])) + 2 * begin * int(block.sum())
    return f"{total % (1 << 64):016x}"
