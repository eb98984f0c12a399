"""What stands for a constraint or a composition, or what one is read from."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args, get_origin

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import GrammarError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.grammar.normalise import Rules
from maskwright.analysis.loading.names import has_directives
from maskwright.analysis.loading.sources import as_grammar
from maskwright.maskstore.vocabulary import BUILT_IN, Vocabulary

if TYPE_CHECKING:
    # PERF: a decoder of a grammar is not kept waiting for what reads schemas
    from maskwright.analysis.composition import Composition
    from maskwright.analysis.schema.load import JsonSchema
    from maskwright.analysis.schema.text_patterns import Regex
    from maskwright.stores.entry_store import EntryStore
    from maskwright.stores.store import Store

    Constraint: TypeAlias = Grammar | JsonSchema | Regex
    SchemaSource: TypeAlias = JsonSchema | Regex | Mapping[str, Any] | list[str] | type[Any] | Callable[..., Any]
    BuildGrammar: TypeAlias = Callable[[Grammar, Vocabulary], Store | EntryStore]
    """What makes the store of a grammar, anew or from the cache."""


def as_constraint(source: object) -> Constraint | Composition:
    """The grammar, schema or pattern that an argument stands for.

    source : a `Grammar`, a `JsonSchema`, a `Regex` or a `Composition`; a dict or its JSON text,
        which is a JSON schema; a pydantic model, a dataclass, another type or a function, whose
        schema `load_schema` finds; a list of texts, for `load_choice`; a str or a path, which
        stands for a grammar: a .gbnf or .ebnf file or a text with ``::=`` is read by
        `read_constraint`, one that names parts by `read_composition`, all else by `load_grammar`.

    Raises: as `load_schema`, `read_constraint` and `load_grammar`; GrammarError for the path of a
    JSON file, since `load_schema` has options for it, for a Literal of strings, which may be
    meant with quotes or without, and for a tokenizer, which comes second.
    """
    if isinstance(source, Grammar):
        return source
    is_named = isinstance(source, str) and source in BUILT_IN and not os.path.exists(source)
    if is_named or isinstance(source, Vocabulary) or hasattr(source, "get_vocab"):
        raise GrammarError(
            f"{clip(source)} is a vocabulary, not a grammar; the grammar comes first: mw.build_store(grammar, tokenizer)"
        )
    if isinstance(source, str | os.PathLike):
        return _named(source)
    from maskwright.analysis.composition import Composition
    from maskwright.analysis.schema.load import JsonSchema, load_schema
    from maskwright.analysis.schema.text_patterns import Regex, load_choice

    if isinstance(source, JsonSchema | Regex | Composition):
        return source
    if isinstance(source, list) and source and all(isinstance(text, str | bytes) for text in source):
        return load_choice(source)
    if get_origin(source) is Literal and any(isinstance(value, str) for value in get_args(source)):
        return as_grammar(source)  # type: ignore[arg-type]  # which says what it may mean
    if isinstance(source, Mapping) or callable(source) or hasattr(source, "__origin__"):
        return load_schema(dict(source) if isinstance(source, Mapping) else source)
    return as_grammar(source)  # type: ignore[arg-type]


def _named(source: str | os.PathLike[str]) -> Constraint | Composition:
    name = os.fspath(source)
    suffix = PurePath(name).suffix.lower() if isinstance(name, str) and "\n" not in name else ""
    if suffix == ".json":
        raise GrammarError(
            f"{name} is no grammar: read a JSON schema with mw.load_schema(path), and pass what it returns"
        )
    is_json = isinstance(source, str) and source.lstrip().startswith("{")
    if is_json and '"grammars"' not in name:  # of llguidance
        from maskwright.analysis.schema.load import load_schema

        return load_schema(source)
    if is_json or suffix in (".gbnf", ".ebnf") or (isinstance(source, str) and "::=" in source):
        from maskwright.analysis.dialects import read_constraint

        return read_constraint(source)
    if has_directives(source):
        from maskwright.analysis.composition import read_composition

        return read_composition(source)
    return as_grammar(source)


def store_of(constraint: Constraint | Composition, vocabulary: Vocabulary, build: BuildGrammar) -> Any:
    """The store of a constraint of any kind.

    build : makes the stores of grammars: the constraint itself, or those of a composition.

    Raises: as `build_schema_store` and `build_composed_store`, and as `build` does.
    """
    source: Any = constraint
    if source.kind == "grammar":
        return build(source, vocabulary)
    # PERF: what builds a grammar's store is not kept waiting for what reads schemas
    if source.kind == "composition":
        from maskwright.stores.composed_store import build_composed_store

        return build_composed_store(source, vocabulary, lambda inner, tokens: store_of(inner, tokens, build))
    from maskwright.stores.schema_store import build_schema_store

    return build_schema_store(source, vocabulary)


def refuse_options(constraint: Constraint | Composition, streamlined: bool, rules: Rules, context: int) -> None:
    """Refuse those options of `build_store` that only a store of entries has, for any other.

    Raises: GrammarError for one that is not the default.
    """
    if not streamlined:
        option = "streamlined=False"
    elif rules != "normalised":
        option = f"rules={rules!r}"
    elif context != 1:
        option = f"context={context}"
    else:
        return
    if not isinstance(constraint, Grammar):
        raise GrammarError(
            f"{constraint.name} is no grammar, and its store holds no entries, so {option} does not apply: leave it out"
        )
    if constraint.lexing != "nfa":
        raise GrammarError(
            f"grammar {constraint.name} has lexing {constraint.lexing!r}, whose stores hold no entries, so {option} does not apply: "
            "leave it out, or load the grammar with lexing='nfa'"
        )
