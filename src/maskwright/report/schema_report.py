"""What a JSON schema or a pattern has become: nodes, shapes, automata, tables, forced texts.

In: a schema or a pattern, perhaps a vocabulary. Out: a report for terminals, JSON and programs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maskwright.analysis.errors import LimitError
from maskwright.analysis.graphs import components
from maskwright.analysis.schema.load import JsonSchema
from maskwright.analysis.schema.shapes import Arrays, Numbers, Objects, SchemaGraph, Strings
from maskwright.analysis.schema.text_patterns import Regex
from maskwright.maskstore.index import build_index
from maskwright.maskstore.schema.write import tables_of
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.report.parts import Report, filled, table

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

MOST_SHOWN = 10
"""Parts that were left out that are shown in a terminal."""
MOST_CHAINS = 100
"""Chains of a pattern's index that the facts list."""
MOST_PAIRS = 1 << 22
"""A larger index is not made for a report: it would take seconds."""


_ROWS = (
    ("texts", "white space {whitespace}, key order {key_order}, escapes {escapes}"),
    ("nodes", "{nodes:,}, {recursive_nodes:,} of them inside themselves"),
    ("shapes", "{n_shapes:,}: {shown}"),
    ("keys", "{keys:,} named, {required_keys:,} of them required"),
    ("automata", "{automata[count]:,} with {automata[states]:,} states, {automata[largest]:,} in the largest"),
    ("tables", "{table_bytes:,} bytes, {automata_bytes:,} of them automata"),
    ("tokenizer", "{vocabulary}"),
)


@dataclass(frozen=True)
class SchemaReport(Report):
    """What a schema or a pattern has become."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        facts, known = self.facts, dict(self.facts)
        if "shapes" in facts:
            known["n_shapes"] = sum(facts["shapes"].values())
            known["shown"] = ", ".join(f"{count:,} {kind}" for kind, count in facts["shapes"].items())
        index = index_rows(facts["index"]) if "index" in facts else {}
        yield table("", "", rows=({facts["kind"]: facts["name"]} | filled(known, _ROWS) | index).items())
        left_out = facts.get("left_out", [])
        if left_out:
            yield Text(f"\nleft out, so that more is allowed: {len(left_out):,}", style="bold")
            for each in left_out[:MOST_SHOWN]:
                yield Text(f"  {each['pointer'] or 'at the root'}: {each['reason']}")
            if len(left_out) > MOST_SHOWN:
                yield Text(f"  and {len(left_out) - MOST_SHOWN:,} more: --json has them all", style="dim")


def analyze_schema(constraint: JsonSchema | Regex, vocabulary: Vocabulary | None = None) -> SchemaReport:
    """Report what a schema or a pattern has become.

    vocabulary : None for a report without the tables' sizes.

    Raises: as `tables_of`.
    """
    facts: dict[str, Any] = {
        "kind": constraint.kind,
        "name": constraint.name,
    }
    if constraint.kind == "schema":
        facts |= schema_facts(constraint)
    else:
        facts |= {"automata": _sizes([constraint.automaton.n_states])}
    if vocabulary is not None:
        tables = tables_of(constraint, vocabulary)
        facts |= {
            "vocabulary": vocabulary.name,
            "table_bytes": tables.table.nbytes + tables.automata.nbytes,
            "automata_bytes": tables.automata.nbytes,
        }
        if isinstance(constraint, Regex):
            facts["index"] = index_facts(constraint, vocabulary)
    return SchemaReport(facts)


def schema_facts(schema: JsonSchema) -> dict[str, Any]:
    """The sizes of what a schema has become, ready for JSON."""
    graph, options = schema.texts.graph, schema.options
    shapes = [shape for node in graph.nodes for shape in node]
    counted = Counter(type(shape).__name__ for shape in shapes)
    objects = [shape for shape in shapes if isinstance(shape, Objects)]
    automata = list(_automata(graph))
    return {
        **options.style._asdict(),
        "lenient": options.lenient,
        "nodes": len(graph.nodes),
        "recursive_nodes": _n_recursive(graph),
        "shapes": {kind: counted[kind] for kind in sorted(counted)},
        "keys": sum(len(one.keys) for one in objects),
        "required_keys": sum(sum(one.required) for one in objects),
        "automata": _sizes(automata),
        "left_out": [{"pointer": pointer, "reason": reason} for pointer, reason in schema.left_out],
    }


def _sizes(states: list[int]) -> dict[str, int]:
    return {"count": len(states), "states": sum(states), "largest": max(states, default=0)}


def _automata(graph: SchemaGraph) -> Iterator[int]:
    """The states of each automaton; those of equal content once."""
    found: dict[int, int] = {}
    for node in graph.nodes:
        for shape in node:
            if isinstance(shape, Numbers | Strings) and shape.automaton is not None:
                found[id(shape.automaton)] = shape.automaton.n_states
            elif isinstance(shape, Objects) and shape.key_automaton is not None:
                found[id(shape.key_automaton)] = len(shape.key_automaton.ends)
    yield from found.values()


def _inside(graph: SchemaGraph, node: int) -> Iterator[int]:
    for shape in graph.nodes[node]:
        if isinstance(shape, Objects):
            yield from (*shape.values, *shape.others)
        elif isinstance(shape, Arrays):
            yield from shape.item_nodes


def _n_recursive(graph: SchemaGraph) -> int:
    """The number of nodes that may stand inside themselves: those on cycles. Cost: O(edges)."""
    inner = [[one for one in _inside(graph, node) if one >= 0] for node in range(len(graph.nodes))]
    return sum(len(part) for part in components(inner) if len(part) > 1 or part[0] in inner[part[0]])


def index_facts(regex: Regex, vocabulary: Vocabulary) -> dict[str, Any]:
    """The facts of a pattern's index, ready for JSON.

    Returns `too_large` and the reason alone where the index is large.
    """
    try:
        index = build_index(regex, vocabulary, most_pairs=MOST_PAIRS)
    except LimitError as error:
        return {"too_large": str(error)}
    forced = [found for state in index.states if (found := index.forced_token(int(state))) is not None]
    chains = index.chains
    return {
        "states": index.n_states,
        "final_states": len(index.final_states),
        "transitions": index.n_transitions,
        "token_classes": index.n_classes,
        "forced_states": len(forced),
        "states_with_one_token": sum(is_only for _, is_only in forced),
        "chains": len(chains),
        "longest_chains": [
            {
                "start": chain.start,
                "end": chain.end,
                "tokens": list(chain.tokens),
                "text": chain.text.decode("utf-8", "backslashreplace"),
                "is_only": chain.is_only,
            }
            for chain in sorted(chains, key=lambda chain: (-len(chain.text), chain.start))[:MOST_CHAINS]
        ],
    }


_INDEX_ROWS = (
    ("token states", "{states:,}, {final_states:,} of them final"),
    ("transitions", "{transitions:,}, by {token_classes:,} classes of tokens"),
    (
        "forced",
        "{forced_states:,} states ({share:.0%}), {states_with_one_token:,} of them with one token; {chains:,} chains",
    ),
)


def index_rows(facts: dict[str, Any]) -> dict[str, str]:
    """Rows that show the facts of `index_facts`: name -> text."""
    if "too_large" in facts:
        return {"token states": "not counted, the index is large"}
    rows = filled({**facts, "share": facts["forced_states"] / facts["states"]}, _INDEX_ROWS)
    if facts["longest_chains"]:
        longest = facts["longest_chains"][0]
        shown = longest["text"] if len(longest["text"]) <= 40 else f"{longest['text'][:37]}..."
        rows["longest chain"] = f"{shown!r}, {len(longest['tokens'])} tokens"
    return rows
