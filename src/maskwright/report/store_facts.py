"""Shows what a store file holds. In: the facts of `store_info`. Out: a table for a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from maskwright.report.index_report import index_rows

_SMALL = 0.01
"""Parts that take a smaller share of the table than this are shown as one row."""


def render_store_facts(facts: dict[str, Any]) -> RenderableType:
    """A store's facts in two columns, followed by a second table that depends on the kind of store.

    The second table has the bytes of each part of the engine's table, or, for a streamlined store
    of entries, the number of entries after each step.

    facts : of `maskwright.maskstore.file.fileformat.store_info`. If they have `cpu_seconds` too,
        that time is shown as "ready in".
    """
    vocabulary = facts["vocabulary"]
    rows = {
        **(_grammar_rows(facts["grammar"]) if "grammar" in facts else _schema_rows(facts)),
        "tokenizer": f"{vocabulary['name']} ({vocabulary['size']:,} ids)",
        "tokenizer sha256": vocabulary["sha256"][:16],
        **_ROWS.get(facts["kind"], _no_rows)(facts),
        "format version": str(facts["format_version"]),
        "file": f"{facts['bytes']:,} bytes, {len(facts['tensors'])} tensors",
    }
    if "cpu_seconds" in facts:
        rows["ready in"] = f"{facts['cpu_seconds']:.2f} s of processor time"
    table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name, value in rows.items():
        table.add_row(name, Text(value))
    more = _table_parts(facts) if facts["kind"] == "automaton" else _steps(facts) if "steps" in facts else None
    return table if more is None else Group(table, "", more)


def _grammar_rows(grammar: dict[str, Any]) -> dict[str, str]:
    sizes = f"{grammar['terminals']} terminals, {grammar['nonterminals']} nonterminals, {grammar['rules']} rules"
    return {"grammar": f"{grammar['name']} ({sizes})", "grammar sha256": grammar["sha256"][:16]}


def _schema_rows(facts: dict[str, Any]) -> dict[str, str]:
    """What the file of a schema or a pattern says of it."""
    if "pattern" in facts:
        name = f"{facts['pattern']['name']} ({facts['pattern']['states']:,} states)"
        return {"pattern": name, **(index_rows(facts["index"]) if "index" in facts else {})}
    schema = facts["schema"]
    left_out = ", lenient" if schema["lenient"] else ""
    return {
        "schema": f"{schema['name']} ({schema['bytes']:,} bytes)",
        "texts": f"white space {schema['whitespace']}, key order {schema['key_order']}, escapes {schema['escapes']}{left_out}",
    }


def _no_rows(facts: dict[str, Any]) -> dict[str, str]:
    return {}


def _entries_rows(facts: dict[str, Any]) -> dict[str, str]:
    masks = facts["masks"]
    return {
        "lexing": facts["lexing"],
        "streamlined": f"on {facts['rules']} rules" if facts["is_streamlined"] else "no",
        "lexer states": f"{facts['lexer_states']:,}",
        "cells": f"{facts['cells']:,} with {facts['entries']:,} entries",
        "masks": f"{masks['dense']:,} bitmasks and {masks['sparse']:,} id lists",
    }


def _automaton_rows(facts: dict[str, Any]) -> dict[str, str]:
    masks, counts = facts["masks"], facts["counts"]
    edges = f", {counts['edges']:,} edges" if "edges" in counts else ""
    return {
        "lexing": facts["lexing"],
        "conflicts": facts["conflicts"],
        "lexer states": f"{facts['lexer_states']:,}",
        "parser states": f"{facts['parser_states']:,}",
        "automaton": f"{facts['nodes']:,} nodes{edges}",
        "masks": f"{masks['all']:,} over {masks['rows']:,} shared rows",
    }


_ROWS = {"automaton": _automaton_rows, "entries": _entries_rows}


def _steps(facts: dict[str, Any]) -> Table | None:
    """The entries after each streamlining step; None for a store that is not streamlined."""
    if len(facts["steps"]) == 1:
        return None
    steps = Table(title="entries of all lexer states after each step", title_justify="left", box=None, pad_edge=False)
    for step in facts["steps"]:
        steps.add_column(step, justify="right")
    steps.add_row(*(f"{count:,}" for count in facts["steps"].values()))
    return steps


def _table_parts(facts: dict[str, Any]) -> Table:
    parts = facts["table_bytes"]
    total = sum(parts.values())
    table = Table(title="bytes of the engine's table by part", title_justify="left", box=None, pad_edge=False)
    table.add_column("part")
    table.add_column("bytes", justify="right")
    table.add_column("share", justify="right")
    large = {name: size for name, size in parts.items() if size >= _SMALL * total}
    others = total - sum(large.values())
    for name, size in [
        *sorted(large.items(), key=lambda item: -item[1]),
        (f"{len(parts) - len(large)} others", others),
    ]:
        table.add_row(name, f"{size:,}", f"{size / total:.0%}")
    table.add_row("all", f"{total:,}", "100%")
    return table
