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
from maskwright.analysis.schema.documents import DEFAULT_DRAFT, draft_of
from maskwright.analysis.schema.graph import build_graph
from maskwright.analysis.schema.load import JsonSchema, as_asked, changed_values, found_name, read_schema
from maskwright.analysis.schema.mistakes import (
    Emptiness,
    Place,
    contradiction,
    empty_subschemas,
    idle_keywords,
    in_words,
    places_of,
)
from maskwright.analysis.schema.rewriting import Formats
from maskwright.analysis.schema.spacing import spacing_of
from maskwright.analysis.schema.style import Style, StyleName, read_style
from maskwright.decoding.matcher import Matcher
from maskwright.lint.finding import NO_STORE, SEVERITIES, Finding, Report, codes_of, listed
from maskwright.lint.whitespace import MORE_BLANKS, is_infinite
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
    formats: Formats | None = None,
    style: StyleName | Style = "natural",
    file: str | os.PathLike[str] | None = None,
    allow: Iterable[str] = (),
) -> Report:
    """Report what is wrong with a JSON schema.

    schema : what `load_schema` takes, or what it returns; what says how it is read is then its own.
    vocabulary : what `load_vocabulary` accepts, to see whether its tokens can spell a text.
    documents, lenient, additional_properties, formats, style : as for `load_schema`. What a lenient
        reading leaves out is a warning, else an error.
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
        values, name, (style, lenient, others) = schema.schema, schema.name, schema.options
    else:
        source, changes = as_asked(schema, additional_properties, formats)
        values, others, found_as = changed_values(source, documents, changes)
        name = found_name(values, found_as)
    given = None if vocabulary is None else as_vocabulary(vocabulary)
    where = os.fsdecode(file) if file is not None else name
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
        self.draft = draft_of(schema, DEFAULT_DRAFT)
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
            message = "blanks may stand between any two tokens of JSON, without end"
            yield self.finding("endless-whitespace", "info", "", message, MORE_BLANKS, remedy)
        if self.style.escapes == "any":
            message = r"any character of a string or key may be written as an escape (\u006d for m)"
            decoding = "texts may be legal and hard to read, and where one key is left, its spelling is not forced"
            yield self.finding("needless-escapes", "info", "", message, decoding, remedy)

    def _empty(self, empty: Emptiness) -> Iterator[Finding]:
        schemas = {place.pointer: place for place in self.places}
        here = [pointer for pointer in empty.subschemas if pointer in schemas and not schemas[pointer].is_negated]
        for pointer in here:
            if any(other.startswith(f"{pointer}/") for other in here):
                continue
            message = f"no value satisfies this subschema{self._why_empty(schemas[pointer].schema, pointer)}"
            decoding = "what it is for can never be written: a property never comes, an alternative is never taken"
            yield self.finding("empty-schema", "warning", pointer, message, decoding, f"correct it; {_SAY_SO}")
        for pointers in empty.together:
            message = f"no value satisfies the subschemas {listed(list(pointers))} together, which hold for the same member or item"
            decoding = "the member or item can never be written"
            yield self.finding(
                "empty-schema", "warning", pointers[0], message, decoding, f"correct one of them; {_SAY_SO}"
            )
        if empty.is_empty:
            why = ": it is false" if self.schema is False else self._why_empty(self.schema, "")
            what = "what the other findings name" if here or empty.together else "the keywords that exclude one another"
            decoding = "no text can be written, so no store is made"
            yield self.finding(
                "empty-schema", "error", "", f"no value satisfies the schema{why}", decoding, f"correct {what}"
            )

    def _why_empty(self, schema: Any, pointer: str) -> str:
        return in_words(contradiction(schema, documents=self.documents, default_draft=self.draft), pointer)

    def of_vocabulary(self, vocabulary: Vocabulary) -> Iterator[Finding]:
        """Whether the tokens can spell a text of the schema, and end it."""
        schema = read_schema(self.schema, documents=self.documents, lenient=self.lenient)
        if not vocabulary.eos:
            message = f"vocabulary {vocabulary.name} has no token that ends a text"
            decoding, remedy = "masks cannot say that a text may end: ask is_accepting", "load it with eos=[...]"
            yield self.finding("no-eos", "warning", "", message, decoding, remedy)
        try:
            Matcher(tables_of(schema, vocabulary), 0).shortest_ending()
        except DeadEndError as error:
            decoding, remedy = "no text can be finished", "use a vocabulary that has these bytes"
            yield self.finding("no-text", "error", "", str(error), decoding, remedy)

    def _inexact(self) -> Iterator[Finding]:
        try:
            graph = build_graph(self.schema, documents=self.documents, lenient=True)
        except (LimitError, SchemaError) as error:
            code, pointer, remedy = "too-large", "", "make what the message names smaller"
            if not isinstance(error, LimitError):
                code, pointer, remedy = "inexact-schema", error.pointer, "rewrite what the message names"
            yield self.finding(code, "error", pointer, str(error), NO_STORE, remedy)
            return
        severity, decoding = "warning", "it is left out, so more is allowed than the schema says"
        if not self.lenient:
            severity = "error"
            decoding = (
                "the schema is refused, unless it is read leniently (--lenient, lenient=True), which leaves this out"
            )
        remedy = "rewrite it with other keywords, or leave it out and check what was written afterwards"
        for pointer, reason in graph.left_out:
            message = f"masks cannot say this exactly: {reason}"
            yield self.finding("inexact-schema", severity, pointer, message, decoding, remedy)
