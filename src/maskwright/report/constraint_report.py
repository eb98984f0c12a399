"""What a schema, a pattern or a composition has become, and what a store's file holds.

In: a constraint that is no grammar, perhaps a vocabulary; or the facts of `store_info`. Out: a
report for terminals, JSON and programs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maskwright.analysis.composition import Composition, InJsonString, SpecialToken
from maskwright.analysis.composition.tag_rules import TagRules
from maskwright.analysis.composition.token_parts import AtMostTokens, TokenSet
from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.graphs import components
from maskwright.analysis.schema.load import JsonSchema
from maskwright.analysis.schema.shapes import Arrays, Numbers, Objects, SchemaGraph, Strings
from maskwright.analysis.schema.text_patterns import Regex
from maskwright.maskstore.index import build_index
from maskwright.maskstore.schema.write import tables_of
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.report.parts import Words, counted, filled, table
from maskwright.stores.build import build_store

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from maskwright.maskstore.table.compiled import Progress

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
_INDEX_ROWS = (
    ("token states", "{states:,}, {final_states:,} of them final"),
    ("transitions", "{transitions:,}, by {token_classes:,} classes of tokens"),
    (
        "forced",
        "{forced_states:,} states ({share:.0%}), {states_with_one_token:,} of them with one token; {chains:,} chains",
    ),
)
_LANGUAGES = {
    "composition": "composition {composition[name]}",
    "token": "token {token}",
    "grammar": "grammar {grammar}",
    "schema": "schema {schema}",
    "pattern": "pattern {pattern}",
    "tag": "rules of {tag}",
}
_SIZES = {
    "grammar": "{terminals:terminal}, {rules:rule}, lexing {lexing}",
    "schema": "{nodes:node}, {keys:key}",
    "pattern": "{states:state}",
    "tag": "{rules:rule}",
}


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
    ("composition", "{composition[name]}"),
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


@dataclass(frozen=True)
class ConstraintReport:
    """What a constraint has become. facts : ready for JSON."""

    facts: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The facts, ready for JSON."""
        return dict(self.facts)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        return self._composition() if self.facts["kind"] == "composition" else self._schema()

    def _schema(self) -> RenderResult:
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

    def _composition(self) -> RenderResult:
        from rich.text import Text

        facts = self.facts
        deep = f", {facts['depth']} languages deep" if facts["depth"] > 1 else ""
        yield Text(f"composition {facts['name']}: {counted(facts['n_parts'], 'part')}{deep}", style="bold")
        rows = []
        for indent, name, one in _parts(facts):
            places = [f"in {counted(one['in_rules'], 'rule')}"] if "in_rules" in one else []
            places += ["in a JSON string"] * one.get("in_json_string", False)
            size = Words().vformat(_SIZES.get(one["kind"], ""), (), one)
            n_bytes = f"{one['table_bytes']:,}" if "table_bytes" in one else ""
            rows.append(("  " * indent + name, _language(one), ", ".join(places), size, n_bytes))
        n_columns = 5 if "vocabulary" in facts else 4
        heads = ("", "language", "stands", "size", ">table bytes")
        yield table(*heads[:n_columns], rows=(row[:n_columns] for row in rows))
        if "vocabulary" in facts:
            yield Text(f"vocabulary {facts['vocabulary']}, {facts['table_bytes']:,} bytes of tables in all")


def analyze_constraint(
    constraint: JsonSchema | Regex | Composition,
    vocabulary: Vocabulary | None = None,
    progress: Progress | None = None,
) -> ConstraintReport:
    """Report what a schema or a pattern has become, or what a composition is made of.

    vocabulary : None for a report without the tables' sizes, which takes no time.
    progress : of building the stores of a composition.

    Raises: as `build_store`.
    """
    facts: dict[str, Any] = {"kind": constraint.kind}
    if isinstance(constraint, Composition):
        store = None if vocabulary is None else build_store(constraint, vocabulary, progress=progress)
        facts |= _composition_facts(constraint, store)
        if vocabulary is not None:
            n_bytes = sum(one.get("table_bytes", 0) for _, _, one in _parts(facts))
            facts |= {"vocabulary": vocabulary.name, "table_bytes": n_bytes}
        return ConstraintReport(facts)
    facts["name"] = constraint.name
    if isinstance(constraint, JsonSchema):
        facts |= schema_facts(constraint)
    else:
        facts["automata"] = _sizes([constraint.automaton.n_states])
    if vocabulary is not None:
        tables = tables_of(constraint, vocabulary)
        facts |= {
            "vocabulary": vocabulary.name,
            "table_bytes": tables.table.nbytes + tables.automata.nbytes,
            "automata_bytes": tables.automata.nbytes,
        }
        if isinstance(constraint, Regex):
            facts["index"] = index_facts(constraint, vocabulary)
    return ConstraintReport(facts)


def schema_facts(schema: JsonSchema) -> dict[str, Any]:
    """The sizes of what a schema has become, ready for JSON."""
    graph, options = schema.texts.graph, schema.options
    shapes = [shape for node in graph.nodes for shape in node]
    kinds = Counter(type(shape).__name__ for shape in shapes)
    objects = [shape for shape in shapes if isinstance(shape, Objects)]
    automata: dict[int, int] = {}  # those of equal content are one
    for shape in shapes:
        if isinstance(shape, Numbers | Strings) and shape.automaton is not None:
            automata[id(shape.automaton)] = shape.automaton.n_states
        elif isinstance(shape, Objects) and shape.key_automaton is not None:
            automata[id(shape.key_automaton)] = len(shape.key_automaton.ends)
    return {
        **options.style._asdict(),
        "lenient": options.lenient,
        "nodes": len(graph.nodes),
        "recursive_nodes": _n_recursive(graph),
        "shapes": {kind: kinds[kind] for kind in sorted(kinds)},
        "keys": sum(len(one.keys) for one in objects),
        "required_keys": sum(sum(one.required) for one in objects),
        "automata": _sizes(list(automata.values())),
        "left_out": [{"pointer": pointer, "reason": reason} for pointer, reason in schema.left_out],
    }


def _sizes(states: list[int]) -> dict[str, int]:
    return {"count": len(states), "states": sum(states), "largest": max(states, default=0)}


def _n_recursive(graph: SchemaGraph) -> int:
    """The number of nodes that may stand inside themselves: those on cycles. Cost: O(edges)."""
    inner: list[list[int]] = [[] for _ in graph.nodes]
    for node, found in zip(graph.nodes, inner, strict=True):
        for shape in node:
            held = shape.member_nodes if isinstance(shape, Objects) else ()
            held = shape.item_nodes if isinstance(shape, Arrays) else held
            found += [one for one in held if one >= 0]
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
    longest = sorted(index.chains, key=lambda chain: (-len(chain.text), chain.start))[:MOST_CHAINS]
    return {
        "states": index.n_states,
        "final_states": len(index.final_states),
        "transitions": index.n_transitions,
        "token_classes": index.n_classes,
        "forced_states": len(forced),
        "states_with_one_token": sum(is_only for _, is_only in forced),
        "chains": len(index.chains),
        "longest_chains": [
            {
                "start": chain.start,
                "end": chain.end,
                "tokens": list(chain.tokens),
                "text": chain.text.decode("utf-8", "backslashreplace"),
                "is_only": chain.is_only,
            }
            for chain in longest
        ],
    }


def index_rows(facts: dict[str, Any]) -> dict[str, str]:
    """Rows that show the facts of `index_facts`: name -> text."""
    if "too_large" in facts:
        return {"token states": "not counted, the index is large"}
    rows = filled({**facts, "share": facts["forced_states"] / facts["states"]}, _INDEX_ROWS)
    for longest in facts["longest_chains"][:1]:
        shown = longest["text"] if len(longest["text"]) <= 40 else f"{longest['text'][:37]}..."
        rows["longest chain"] = f"{shown!r}, {len(longest['tokens'])} tokens"
    return rows


def _composition_facts(composition: Composition, store: Any) -> dict[str, Any]:
    """The facts of a composition. store : its `ComposedStore`, or None."""
    stores = [getattr(part, "store", None) for part in (composition if store is None else store).parts]
    parts: list[dict[str, Any]] = []
    for part, of_part in zip(composition.parts, stores, strict=True):
        parts.append({"name": part.name, "in_json_string": isinstance(part.inner, InJsonString)})
        if isinstance(host := composition.host, Grammar):  # elsewhere the part's name says where it stands
            number = host.terminal_number[part.name]
            parts[-1]["in_rules"] = len({rule.lhs for rule in host.rules if number in rule.rhs})
        parts[-1] |= _language_facts(part.inner, of_part)
    return {
        "name": composition.name,
        "depth": composition.depth,
        "n_parts": len(composition.parts),
        "host": _language_facts(composition.host, None if store is None else store.host),
        "parts": parts,
    }


def _language_facts(language: Any, store: Any) -> dict[str, Any]:
    """What the language of a host or a part is, and the size of its table, if there is a store."""
    facts: dict[str, Any]
    match language:
        case InJsonString(inner):
            return _language_facts(inner, store)
        case Composition():
            return {"kind": "composition", "composition": _composition_facts(language, store)}
        case Grammar():
            facts = {"kind": "grammar", "grammar": language.name, "lexing": language.lexing}
            facts |= {"terminals": language.n_terminals, "rules": len(language.rules)}
        case JsonSchema():
            facts = {"kind": "schema", "schema": language.name, **schema_facts(language)}
        case Regex():
            facts = {"kind": "pattern", "pattern": language.name, "states": language.automaton.n_states}
        case TagRules():
            facts = {"kind": "tag", "tag": language.name, "rules": len(language.rules)}
        case SpecialToken(token):
            facts = {"kind": "token", "token": token}
        case TokenSet(tokens, is_excluding):
            facts = {"kind": "tokens", "tokens": list(tokens), "is_excluding": is_excluding}
        case AtMostTokens(inner, most):
            facts = {**_language_facts(inner, store), "at_most_tokens": most}
        case _:
            raise AssertionError(language)
    arrays = [array for name in ("table", "automata") if (array := getattr(store, name, None)) is not None]
    return {**facts, "table_bytes": sum(array.nbytes for array in arrays)} if arrays else facts


def _parts(facts: Mapping[str, Any], indent: int = 0) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    """Host and parts, those of parts of parts behind them: indentation, name, facts."""
    yield indent, "(host)", facts["host"]
    for part in facts["parts"]:
        yield indent, part["name"], part
        if part["kind"] == "composition":
            yield from _parts(part["composition"], indent + 1)


def _language(one: Mapping[str, Any]) -> str:
    if one["kind"] == "tokens":
        n = len(one["tokens"])
        said = "one token" if n == 1 else f"one of {n:,} tokens"
        if one["is_excluding"]:
            said = f"any token but {n:,}" if n else "any token"
    else:
        said = _LANGUAGES[one["kind"]].format(**one)
    return said + (f", at most {counted(one['at_most_tokens'], 'token')}" if "at_most_tokens" in one else "")


def render_store_facts(facts: dict[str, Any]) -> RenderableType:
    """A store's facts in two columns, followed by a second table that depends on the kind of store.

    The second table has the bytes of each part of the engine's table, the parts of a composition,
    or, for a streamlined store of entries, the number of entries after each step.

    facts : of `maskwright.maskstore.file.fileformat.store_info`. If they have `cpu_seconds` too,
        that time is shown as "ready in".
    """
    from rich.console import Group

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
    if facts["kind"] == "composition":
        parts = [(part["name"], part["kind"]) for part in facts["composition"]["parts"]]
        return Group(rows, "", table("part", "kind", rows=parts))
    if len(facts.get("steps", ())) < 2:
        return rows
    steps = [f"{count:,}" for count in facts["steps"].values()]
    title = "entries of all lexer states after each step"
    return Group(rows, "", table(*(f">{step}" for step in facts["steps"]), rows=[steps], title=title))


def _table_parts(parts: dict[str, int]) -> RenderableType:
    total = sum(parts.values())
    large = {name: size for name, size in parts.items() if size >= _SMALL * total}
    shown = sorted(large.items(), key=lambda item: -item[1])
    shown.append((f"{len(parts) - len(large)} others", total - sum(large.values())))
    rows = [(name, f"{size:,}", f"{size / total:.0%}") for name, size in (*shown, ("all", total))]
    return table("part", ">bytes", ">share", rows=rows, title="bytes of the engine's table by part")
