"""What is wrong with a JSON schema: parts without a value, idle keywords, what is inexact.

In: a schema. Out: a report, as of grammars; a finding's place is a JSON pointer.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from maskwright.analysis.arguments import need_path
from maskwright.analysis.errors import DeadEndError, LimitError, SchemaError
from maskwright.analysis.nesting import on_own_stack
from maskwright.analysis.schema.additional_properties import closed_objects
from maskwright.analysis.schema.contradiction import Emptiness, contradiction, empty_subschemas, in_words
from maskwright.analysis.schema.documents import DEFAULT_DRAFT, draft_named
from maskwright.analysis.schema.graph import build_graph
from maskwright.analysis.schema.idle_keywords import Place, idle_keywords, places_of
from maskwright.analysis.schema.load import JsonSchema, found_name, given_documents, read_schema, read_values
from maskwright.analysis.schema.spacing import spacing_of
from maskwright.analysis.schema.style import Style, StyleName, read_style
from maskwright.decoding.matcher import Matcher
from maskwright.lint.finding import NO_STORE, SEVERITIES, Finding, Report, codes_of, listed
from maskwright.lint.whitespace import is_infinite
from maskwright.maskstore.schema.write import tables_of
from maskwright.maskstore.vocabulary import Vocabulary, VocabularySource, as_vocabulary

_SAY_SO = "if it is meant, write false in its place, or leave it out"


@on_own_stack
def lint_schema(
    schema: Any,
    vocabulary: VocabularySource | None = None,
    *,
    documents: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    lenient: bool = False,
    additional_properties: bool | None = None,
    style: StyleName | Style = "natural",
    file: str | os.PathLike[str] | None = None,
    allow: Iterable[str] = (),
) -> Report:
    """Report what is wrong with a JSON schema.

    schema : what `load_schema` takes, or what it returns; the next four are then its own.
    vocabulary : what `load_vocabulary` accepts, to see whether its tokens can spell a text.
    documents, lenient, additional_properties, style : as for `load_schema`. What a lenient reading
        leaves out is a warning, else an error.
    file : what findings call the schema; by default its name.
    allow : codes of findings to leave out.

    Returns a `Report`, whose findings have JSON pointers for places, in the order of the schema.
    Raises: SchemaError for a schema that is malformed; UnknownNameError if `allow` has an unknown
        code.
    Cost: several times that of `load_schema`.
    """
    wanted = codes_of(allow)
    if file is not None:
        need_path("the schema", file)
    if isinstance(schema, JsonSchema):
        values, name = schema.schema, schema.name
        documents, lenient, style = schema.options.documents, schema.options.lenient, schema.options.style
    else:
        values, found_as = read_values(schema, additional_properties is True)
        name = found_name(values, found_as)
    given = None if vocabulary is None else as_vocabulary(vocabulary)
    where = os.fsdecode(file) if file is not None else name
    others: Mapping[str, Any] = given_documents(documents, values)
    if additional_properties is False and not isinstance(schema, JsonSchema):
        values, others = closed_objects(values), {uri: closed_objects(other) for uri, other in others.items()}
    lint = _Lint(values, others, lenient, read_style(style), where)
    found = list(dict.fromkeys(lint.findings()))
    if given is not None and any(one.severity == "error" for one in found):
        lint.skipped.append("the vocabulary: no store can be built")
    elif given is not None:
        found += lint.of_vocabulary(given)
    kept = [one for one in found if one.code not in wanted]
    order = {place.pointer: number for number, place in enumerate(lint.places)}
    kept.sort(key=lambda one: (order.get(_parent(one.pointer, order), -1), SEVERITIES.index(one.severity), one.pointer))
    return Report(
        name, "", "", None if given is None else given.name, tuple(kept), tuple(lint.skipped), len(found) - len(kept)
    )


def _parent(pointer: str, order: Mapping[str, int]) -> str:
    """The pointer itself, or that of the subschema around it."""
    while pointer and pointer not in order:
        pointer = pointer.rpartition("/")[0]
    return pointer


class _Lint:
    def __init__(self, schema: Any, documents: Mapping[str, Any], lenient: bool, style: Style, file: str) -> None:
        self.schema, self.documents, self.lenient, self.style, self.file = schema, documents, lenient, style, file
        self.draft = (draft_named(schema.get("$schema")) if isinstance(schema, dict) else None) or DEFAULT_DRAFT
        self.places: list[Place] = list(places_of(schema, self.draft))
        self.skipped: list[str] = []

    def finding(self, code: str, severity: Any, pointer: str, message: str, decoding: str, remedy: str) -> Finding:
        return Finding(code, severity, self.file, 0, 0, message, decoding, remedy, "", pointer)

    def findings(self) -> Iterator[Finding]:
        """All findings. Raises: SchemaError for a malformed schema."""
        empty = empty_subschemas(self.schema, documents=self.documents)
        yield from self._empty(empty)
        for place, keyword, severity, message, remedy in idle_keywords(self.places):
            code = "unknown-keyword" if keyword.startswith("?") else "idle-keyword"
            pointer = f"{place.pointer}/{keyword.removeprefix('?')}"
            yield self.finding(code, severity, pointer, message, "none: the keyword says nothing of any value", remedy)
        if not empty.is_empty:
            yield from self._inexact()
        yield from self._loose_style()

    def _loose_style(self) -> Iterator[Finding]:
        """What a style allows that nobody wants of a model."""
        remedy = "use the default style, 'natural'"
        if is_infinite(spacing_of(self.style.whitespace).around()):
            yield self.finding(
                "endless-whitespace",
                "info",
                "",
                "blanks may stand between any two tokens of JSON, without end",
                "a model that has begun to emit blanks may go on until the token limit: every mask allows more of them",
                remedy,
            )
        if self.style.escapes == "any":
            yield self.finding(
                "needless-escapes",
                "info",
                "",
                r"any character of a string or key may be written as an escape (\u006d for m)",
                "texts may be legal and hard to read, and where one key is left, its spelling is not forced",
                remedy,
            )

    def _empty(self, empty: Emptiness) -> Iterator[Finding]:
        schemas = {place.pointer: place for place in self.places}
        here = [pointer for pointer in empty.subschemas if pointer in schemas and not schemas[pointer].is_negated]
        inner = [one for one in here if not any(other.startswith(f"{one}/") for other in here)]
        for pointer in inner:
            yield self.finding(
                "empty-schema",
                "warning",
                pointer,
                f"no value satisfies this subschema{self._why_empty(schemas[pointer].schema, pointer)}",
                "what it is for can never be written: a property never comes, an alternative is never taken",
                f"correct it; {_SAY_SO}",
            )
        for pointers in empty.together:
            yield self.finding(
                "empty-schema",
                "warning",
                pointers[0],
                f"no value satisfies the subschemas {listed(list(pointers))} together, which hold for the same member or item",
                "the member or item can never be written",
                f"correct one of them; {_SAY_SO}",
            )
        if empty.is_empty:
            why = ": it is false" if self.schema is False else self._why_empty(self.schema, "")
            what = (
                "what the other findings name" if inner or empty.together else "the keywords that exclude one another"
            )
            yield self.finding(
                "empty-schema",
                "error",
                "",
                f"no value satisfies the schema{why}",
                "no text can be written, so no store is made",
                f"correct {what}",
            )

    def _why_empty(self, schema: Any, pointer: str) -> str:
        found = contradiction(schema, documents=self.documents, default_draft=self.draft)
        return in_words(found, pointer)

    def of_vocabulary(self, vocabulary: Vocabulary) -> Iterator[Finding]:
        """Whether the tokens can spell a text of the schema, and end it."""
        schema = read_schema(self.schema, documents=self.documents, lenient=self.lenient)
        if not vocabulary.eos:
            yield self.finding(
                "no-eos",
                "warning",
                "",
                f"vocabulary {vocabulary.name} has no token that ends a text",
                "masks cannot say that a text may end: ask is_accepting",
                "load it with eos=[...]",
            )
        try:
            Matcher(tables_of(schema, vocabulary), 0).shortest_ending()
        except DeadEndError as error:
            yield self.finding(
                "no-text", "error", "", str(error), "no text can be finished", "use a vocabulary that has these bytes"
            )

    def _inexact(self) -> Iterator[Finding]:
        try:
            graph = build_graph(self.schema, documents=self.documents, lenient=True)
        except (LimitError, SchemaError) as error:
            code, pointer, remedy = "too-large", "", "make what the message names smaller"
            if not isinstance(error, LimitError):
                code, pointer, remedy = "inexact-schema", error.pointer, "rewrite what the message names"
            yield self.finding(code, "error", pointer, str(error), NO_STORE, remedy)
            return
        for pointer, reason in graph.left_out:
            yield self.finding(
                "inexact-schema",
                "warning" if self.lenient else "error",
                pointer,
                f"masks cannot say this exactly: {reason}",
                "it is left out, so more is allowed than the schema says"
                if self.lenient
                else "the schema is refused, unless it is read leniently (--lenient, lenient=True), which leaves this out",
                "rewrite it with other keywords, or leave it out and check what was written afterwards",
            )


__all__ = ["lint_schema"]
