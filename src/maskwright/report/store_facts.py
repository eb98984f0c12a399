"""What a store file holds, for a terminal. In: the facts of `maskwright.maskstore.fileformat.store_info`. Out: a rich table."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table


def render_store_facts(facts: dict[str, Any]) -> RenderableType:
    """The facts in two columns, and the entries after each streamlining step."""
    grammar, vocabulary, masks = facts["grammar"], facts["vocabulary"], facts["masks"]
    table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    rows = {
        "grammar": f"{grammar['name']} ({grammar['terminals']} terminals, {grammar['nonterminals']} nonterminals, "
        f"{grammar['rules']} rules)",
        "grammar sha256": grammar["sha256"][:16],
        "tokenizer": f"{vocabulary['name']} ({vocabulary['size']:,} ids)",
        "tokenizer sha256": vocabulary["sha256"][:16],
        "lexing": facts["lexing"],
        "streamlined": f"on {facts['rules']} rules" if facts["is_streamlined"] else "no",
        "lexer states": f"{facts['lexer_states']:,}",
        "cells": f"{facts['cells']:,} with {facts['entries']:,} entries",
        "masks": f"{masks['dense']:,} bitmasks and {masks['sparse']:,} id lists",
        "format version": str(facts["format_version"]),
        "file": f"{facts['bytes']:,} bytes, {len(facts['tensors'])} tensors",
    }
    for name, value in rows.items():
        table.add_row(name, value)
    if len(facts["steps"]) == 1:
        return table
    steps = Table(title="entries of all lexer states after each step", title_justify="left", box=None, pad_edge=False)
    for step in facts["steps"]:
        steps.add_column(step, justify="right")
    steps.add_row(*(f"{count:,}" for count in facts["steps"].values()))
    return Group(table, "", steps)
