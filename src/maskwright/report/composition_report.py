"""What a composition is made of: its host, its parts, where each stands, and how large they are.

In: a composition, perhaps a vocabulary. Out: a report for terminals, JSON and programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maskwright.analysis.composition import Composition, InJsonString, SpecialToken
from maskwright.analysis.composition.token_parts import AtMostTokens, TokenSet
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.schema.load import JsonSchema
from maskwright.analysis.schema.text_patterns import Regex
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.report.parts import Report, Words, counted, table
from maskwright.report.schema_report import schema_facts
from maskwright.stores.build import build_store

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from maskwright.maskstore.table.compiled import Progress


@dataclass(frozen=True)
class CompositionReport(Report):
    """What a composition is made of."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        facts = self.facts
        head = f"composition {facts['name']}: {counted(facts['n_parts'], 'part')}"
        if facts["depth"] > 1:
            head += f", {facts['depth']} languages deep"
        yield Text(head, style="bold")
        has_tables = "vocabulary" in facts
        rows = (
            (
                "  " * indent + name,
                _language(one),
                _place(one),
                _size(one),
                f"{one['table_bytes']:,}" if "table_bytes" in one else "",
            )
            for indent, name, one in _rows(facts)
        )
        heads = ("", "language", "stands", "size", ">table bytes")
        yield table(*heads[: 4 + has_tables], rows=(row[: 4 + has_tables] for row in rows))
        if has_tables:
            yield Text(f"vocabulary {facts['vocabulary']}, {facts['table_bytes']:,} bytes of tables in all")


def analyze_composition(
    composition: Composition, vocabulary: Vocabulary | None = None, progress: Progress | None = None
) -> CompositionReport:
    """Report what a composition is made of.

    vocabulary : None for a report without the tables' sizes, which takes no time.
    progress : of building the stores.

    Raises: as `build_store`.
    """
    store = None if vocabulary is None else build_store(composition, vocabulary, progress=progress)
    facts = {"kind": "composition", **_composition(composition, store)}
    if vocabulary is not None:
        facts["vocabulary"] = vocabulary.name
        facts["table_bytes"] = sum(one.get("table_bytes", 0) for _, _, one in _rows(facts))
    return CompositionReport(facts)


def _composition(composition: Composition, store: Any) -> dict[str, Any]:
    """The facts of a composition. store : its `ComposedStore`, or None."""
    stores = [getattr(part, "store", None) for part in (composition if store is None else store).parts]
    return {
        "name": composition.name,
        "depth": composition.depth,
        "n_parts": len(composition.parts),
        "host": _language_facts(composition.host, None if store is None else store.host),
        "parts": [
            {
                "name": part.name,
                "in_json_string": isinstance(part.inner, InJsonString),
                **_uses(composition.host, part.name),
                **_language_facts(part.inner, of_part),
            }
            for part, of_part in zip(composition.parts, stores, strict=True)
        ],
    }


def _language_facts(language: Any, store: Any) -> dict[str, Any]:
    """What one language is, and the size of its table.

    language : of a host or a part.
    store : made of it; None if there is none.
    """
    facts: dict[str, Any]
    match language:
        case InJsonString(inner):
            return _language_facts(inner, store)
        case Composition():
            return {"kind": "composition", "composition": _composition(language, store)}
        case Grammar():
            facts = {
                "kind": "grammar",
                "grammar": language.name,
                "lexing": language.lexing,
                "terminals": language.n_terminals,
                "rules": len(language.rules),
            }
        case JsonSchema():
            facts = {"kind": "schema", "schema": language.name, **schema_facts(language)}
        case Regex():
            facts = {"kind": "pattern", "pattern": language.name, "states": language.automaton.n_states}
        case SpecialToken(token):
            facts = {"kind": "token", "token": token}
        case TokenSet(tokens, is_excluding):
            facts = {"kind": "tokens", "tokens": list(tokens), "is_excluding": is_excluding}
        case AtMostTokens(inner, most):
            facts = {**_language_facts(inner, store), "at_most_tokens": most}
        case _:
            raise AssertionError(language)
    arrays = [getattr(store, name, None) for name in ("table", "automata")]
    if store is not None and arrays[0] is not None:
        facts["table_bytes"] = sum(array.nbytes for array in arrays if array is not None)
    return facts


def _uses(host: Grammar | JsonSchema, name: str) -> dict[str, Any]:
    """Where a part stands: in the rules of how many nonterminals. The name says it in a schema."""
    if host.kind != "grammar":
        return {}
    number = next(i for i, terminal in enumerate(host.terminals) if terminal.name == name)
    return {"in_rules": len({rule.lhs for rule in host.rules if number in rule.rhs})}


def _rows(facts: Mapping[str, Any], indent: int = 0) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    """Host and parts, those of parts of parts behind them: indentation, name, facts."""
    yield indent, "(host)", facts["host"]
    for part in facts["parts"]:
        yield indent, part["name"], part
        if part["kind"] == "composition":
            yield from _rows(part["composition"], indent + 1)


def _language(one: Mapping[str, Any]) -> str:
    kind = one["kind"]
    if kind == "composition":
        said = f"composition {one['composition']['name']}"
    elif kind == "token":
        said = f"token {one['token']}"
    elif kind == "tokens":
        said = _tokens(len(one["tokens"]), one["is_excluding"])
    else:
        said = f"{kind} {one[kind]}"
    limit = f", at most {counted(one['at_most_tokens'], 'token')}" if "at_most_tokens" in one else ""
    return said + limit


def _tokens(n: int, is_excluding: bool) -> str:
    """A set of n tokens, or of all but n."""
    if is_excluding:
        return f"any token but {n:,}" if n else "any token"
    return "one token" if n == 1 else f"one of {n:,} tokens"


def _place(one: Mapping[str, Any]) -> str:
    places = [f"in {counted(one['in_rules'], 'rule')}"] if "in_rules" in one else []
    return ", ".join(places + ["in a JSON string"] * one.get("in_json_string", False))


_SIZES = {
    "grammar": "{terminals:terminal}, {rules:rule}, lexing {lexing}",
    "schema": "{nodes:node}, {keys:key}",
    "pattern": "{states:state}",
}


def _size(one: Mapping[str, Any]) -> str:
    return Words().vformat(_SIZES.get(one["kind"], ""), (), one)
