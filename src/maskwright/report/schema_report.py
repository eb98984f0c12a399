"""What a JSON schema or a pattern has become: nodes, shapes, automata, tables.

In: a schema or a pattern, perhaps a vocabulary. Out: a report for terminals, JSON and programs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maskwright.analysis.graphs import components
from maskwright.analysis.schema.load import JsonSchema
from maskwright.analysis.schema.shapes import Arrays, Numbers, Objects, SchemaGraph, Strings
from maskwright.analysis.schema.text_patterns import Regex
from maskwright.maskstore.schema.build import tables_of
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.report.index_report import index_facts, index_rows

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

MOST_SHOWN = 10
"""Parts that were left out that are shown in a terminal."""


@dataclass(frozen=True)
class SchemaReport:
    """What a schema or a pattern has become.

    facts : ready for JSON.
    """

    facts: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The facts, ready for JSON."""
        return dict(self.facts)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.table import Table
        from rich.text import Text

        facts = self.facts
        rows = {facts["kind"]: facts["name"]}
        if "nodes" in facts:
            shapes = ", ".join(f"{count:,} {kind}" for kind, count in facts["shapes"].items())
            rows["texts"] = (
                f"white space {facts['whitespace']}, key order {facts['key_order']}, escapes {facts['escapes']}"
            )
            rows["nodes"] = f"{facts['nodes']:,}, {facts['recursive_nodes']:,} of them inside themselves"
            rows["shapes"] = f"{sum(facts['shapes'].values()):,}: {shapes}"
            rows["keys"] = f"{facts['keys']:,} named, {facts['required_keys']:,} of them required"
        automata = facts["automata"]
        rows["automata"] = (
            f"{automata['count']:,} with {automata['states']:,} states, {automata['largest']:,} in the largest"
        )
        if "table_bytes" in facts:
            rows["tables"] = f"{facts['table_bytes']:,} bytes, {facts['automata_bytes']:,} of them automata"
            rows["tokenizer"] = facts["vocabulary"]
        if "index" in facts:
            rows |= index_rows(facts["index"])
        table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for name, value in rows.items():
            table.add_row(name, Text(str(value)))
        yield table
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


__all__ = ["SchemaReport", "analyze_schema", "schema_facts"]
