"""Shows what a store file holds. In: the facts of `store_info`. Out: a table for a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from maskwright.report.constraint_report import index_rows
from maskwright.report.parts import filled, table

_SMALL = 0.01
"""Parts that take a smaller share of the table than this are shown as one row."""
_CONSTRAINT = (
    (
        "grammar",
        "{grammar[name]} ({grammar[terminals]} terminals, {grammar[nonterminals]} nonterminals, {grammar[rules]} rules)",
    ),
    ("grammar sha256", "{grammar[sha256]:.16}"),
    ("pattern", "{pattern[name]} ({pattern[states]:,} states)"),
    ("schema", "{schema[name]} ({schema[bytes]:,} bytes)"),
    (
        "texts",
        "white space {schema[whitespace]}, key order {schema[key_order]}, escapes {schema[escapes]}{lenient}",
    ),
)
_STORE = (
    ("tokenizer", "{vocabulary[name]} ({vocabulary[size]:,} ids)"),
    ("tokenizer sha256", "{vocabulary[sha256]:.16}"),
    ("lexing", "{lexing}"),
    ("conflicts", "{conflicts}"),
    ("streamlined", "{streamlined}"),
    ("lexer states", "{lexer_states:,}"),
    ("parser states", "{parser_states:,}"),
    ("automaton", "{nodes:,} nodes{edges}"),
    ("cells", "{cells:,} with {entries:,} entries"),
    ("masks", "{masks[dense]:,} bitmasks and {masks[sparse]:,} id lists"),
    ("masks", "{masks[all]:,} over {masks[rows]:,} shared rows"),
    ("format version", "{format_version}"),
    ("file", "{bytes:,} bytes, {n_tensors} tensors"),
    ("ready in", "{cpu_seconds:.2f} s of processor time"),
)
"""Rows of the first table; one whose facts a store has not is left out."""


def render_store_facts(facts: dict[str, Any]) -> RenderableType:
    """A store's facts in two columns, followed by a second table that depends on the kind of store.

    The second table has the bytes of each part of the engine's table, or, for a streamlined store
    of entries, the number of entries after each step.

    facts : of `maskwright.maskstore.file.fileformat.store_info`. If they have `cpu_seconds` too,
        that time is shown as "ready in".
    """
    edges = facts.get("counts", {}).get("edges")
    known = {
        **facts,
        "n_tensors": len(facts["tensors"]),
        "edges": "" if edges is None else f", {edges:,} edges",
        "lenient": ", lenient" if facts.get("schema", {}).get("lenient") else "",
    }
    if "is_streamlined" in facts:
        known["streamlined"] = f"on {facts['rules']} rules" if facts["is_streamlined"] else "no"
    index = index_rows(facts["index"]) if "index" in facts else {}
    rows = table("", "", rows=(filled(known, _CONSTRAINT) | index | filled(known, _STORE)).items())
    if facts["kind"] == "automaton":
        return Group(rows, "", _table_parts(facts["table_bytes"]))
    if len(facts.get("steps", ())) < 2:
        return rows
    steps = [f"{count:,}" for count in facts["steps"].values()]
    title = "entries of all lexer states after each step"
    return Group(rows, "", table(*(f">{step}" for step in facts["steps"]), rows=[steps], title=title))


def _table_parts(parts: dict[str, int]) -> Table:
    total = sum(parts.values())
    large = {name: size for name, size in parts.items() if size >= _SMALL * total}
    shown = sorted(large.items(), key=lambda item: -item[1])
    shown.append((f"{len(parts) - len(large)} others", total - sum(large.values())))
    rows = [(name, f"{size:,}", f"{size / total:.0%}") for name, size in (*shown, ("all", total))]
    return table("part", ">bytes", ">share", rows=rows, title="bytes of the engine's table by part")
