"""JSON schemas as users have them: values, files, texts, and Python types."""

from __future__ import annotations

import json
import marshal
import math
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from pathlib import Path
from types import MappingProxyType, UnionType
from typing import Any, ClassVar, Literal, NamedTuple
from urllib.parse import quote, urljoin

from maskwright.analysis.arguments import a_type, as_boolean, clip, printable
from maskwright.analysis.errors import EmptySchemaError, LimitError, MaskwrightWarning, MissingExtraError, SchemaError
from maskwright.analysis.files import is_tensors, read_file_bytes
from maskwright.analysis.kept import Cache
from maskwright.analysis.nesting import MOST_NESTED_JSON, on_own_stack, read_json
from maskwright.analysis.schema.documents import identifier, refuse_deep
from maskwright.analysis.schema.formats import WRITTEN
from maskwright.analysis.schema.graph import build_graph
from maskwright.analysis.schema.mistakes import contradiction, in_words, misspelled
from maskwright.analysis.schema.rewriting import Change, Formats, changed, choose_by_tag, close_object, formats_as
from maskwright.analysis.schema.shapes import Escapes, SchemaGraph, Texts
from maskwright.analysis.schema.spacing import spacing_of
from maskwright.analysis.schema.style import KeyOrder, Style, StyleName, read_style
from maskwright.analysis.schema.text_patterns import meant

MOST_BYTES = 1 << 28
"""BOUND: the bytes of a schema's file."""
MOST_DOCUMENTS = 10_000
"""BOUND: the documents of a folder."""


class SchemaOptions(NamedTuple):
    """How a schema is read: the arguments of `load_schema`."""

    style: Style = Style()
    lenient: bool = False
    documents: Mapping[str, Any] = MappingProxyType({})


class Narrowing(NamedTuple):
    """What is taken of a schema's values: of a node of its graph those of some kinds (empty: all)
    of which no string and no key says what is excluded; `is_tight` without white space.
    """

    node: int
    kinds: tuple[str, ...]
    excluded: tuple[str, ...]
    is_tight: bool


@dataclass(frozen=True, repr=False, eq=False)
class JsonSchema:
    """A JSON schema that was read: what `load_schema` returns, and stores are built of.

    name : what errors call it.
    schema : the schema, as Python values; not to be changed.
    texts : the JSON texts of its instances.
    options : how it was read.
    narrowing : which of the schema's texts `texts` are; None for all.
    """

    kind: ClassVar[Literal["schema"]] = "schema"
    """Which kind of constraint it is, as reports and files name it."""

    name: str
    schema: Any
    texts: Texts
    options: SchemaOptions
    narrowing: Narrowing | None = None

    @property
    def left_out(self) -> tuple[tuple[str, str], ...]:
        """What a lenient reading left out, or a `$schema` is read as: JSON pointers and reasons."""
        return self.texts.graph.left_out

    def __repr__(self) -> str:
        left_out = f", {len(self.left_out)} left out" if self.left_out else ""
        return f"<JsonSchema {printable(self.name)}: {len(self.texts.graph.nodes)} nodes{left_out}>"


def load_schema(
    source: Any,
    *,
    style: StyleName | Style = "natural",
    documents: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    whitespace: str | int | None = None,
    key_order: KeyOrder | None = None,
    escapes: Escapes | None = None,
    lenient: bool = False,
    additional_properties: bool | None = None,
    formats: Formats | None = None,
    name: str | None = None,
) -> JsonSchema:
    """A JSON schema, for `build_store`.

    source : a schema as Python values (a dict or a bool), as JSON text or as the path of a file; or
        a pydantic model, a dataclass, a TypedDict, another type or a function, whose schema
        pydantic makes (`pip install 'maskwright[schema]'`). What says that it is of OpenAPI 3.0, by
        `openapi` or `$schema`, is read as draft 4 with `nullable` and `discriminator`.
    documents : URI -> schema, for references to other documents; or a folder, whose `.json` files
        they are: each under its identifier and its path in the folder. Nothing is loaded from
        elsewhere.
    style : how the JSON is written. "natural": as people and programs write it, on one line or
        indented, all characters that need no escape without one, integers without a point;
        "compact": without white space; "json.dumps" and "indent2": with the white space of Python's
        `json.dumps`, and with that of `json.dumps(..., indent=2)`; "any": whatever RFC 8259 allows,
        as a thousand blanks, `\\u006d` for `m` or `1.000` for 1. The next three say otherwise of a
        part of the style.
    whitespace : what may stand between the tokens of JSON: "natural", that is nothing before a
        comma or a colon, a blank or nothing behind a colon, and elsewhere nothing, one blank, or a
        line break with at most 128 blanks or tabs; none ("compact"); "json.dumps"; "indent2" or
        another number of blanks up to 16; "any" white space; at most so many characters in a row
        (a number); or a regular expression.
    key_order : "schema" for objects whose members keep the order of `properties`, as those of types
        do unless `style` is a `Style`; "any" for all.
    escapes : which escapes strings and keys may have: "natural", those that `json.dumps` and
        `JSON.stringify` write, that is only what JSON wants escaped and what is no printable ASCII;
        "minimal", only what JSON wants escaped: then no string has two spellings; "any" of JSON's,
        and any spelling of numbers whose value matters: `1.0` for an integer, `-0`.
    lenient : whether to leave out what cannot be said exactly. `JsonSchema.left_out` has it.
    additional_properties : False to read each subschema with `properties` or `patternProperties`,
        and without `additionalProperties`, as if it had ``"additionalProperties": false``, in
        `documents` too. Each subschema is closed by itself, so two parts of an `allOf` with other
        names each leave no member that both allow. True to leave all open. By default a schema is
        left as it is; in that of a type the objects of its classes are closed, and what
        `json_schema_extra` adds is left as it is.
    formats : what `format` says. "assert": what its document says; "natural": the same, but dates,
        times and durations as pydantic, Python and JavaScript write them, with no offset for local
        times and no year 0; "annotate": nothing; or format -> a regular expression of ECMA 262 for
        the whole string, None for nothing, and other formats as by default. That is "assert", and
        for types "natural".
    name : what errors call the schema; by default its `title` or its file.

    Raises: SchemaError for a schema that is malformed, or that asks for what no mask can say
    exactly, with the JSON pointer; EmptySchemaError, which is one, for a schema that nothing
    satisfies, with the keywords that contradict one another; UnknownNameError for another option;
    MissingExtraError where pydantic is needed and missing.
    Warns: MaskwrightWarning for an unknown keyword or format that is nearly a known one.
    Cost: 0.3 ms for a schema of 1 kB; one that was read before is looked up.

    Example:
        >>> load_schema({"title": "age", "type": "integer", "minimum": 0})
        <JsonSchema age: 1 nodes>
    """
    if is_type(source) and not isinstance(style, Style):
        key_order = key_order or "schema"
    written = read_style(style, whitespace, key_order, escapes)
    source, changes = as_asked(source, additional_properties, formats)
    try:
        found = read_schema(source, style=written, documents=documents, lenient=lenient, name=name, changes=changes)
    except EmptySchemaError as error:
        values, others, _ = changed_values(source, documents, changes)
        error.args = (f"{error}{in_words(contradiction(values, documents=others))}",)
        raise
    for said in misspelled(found.schema):
        warnings.warn(f"{printable(found.name)}: {said}", MaskwrightWarning, stacklevel=2)
    return found


@on_own_stack
def read_schema(
    source: Any,
    *,
    style: Style = Style(),  # noqa: B008 - it cannot change
    documents: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    lenient: bool = False,
    name: str | None = None,
    changes: Sequence[Change] = (),
) -> JsonSchema:
    """`load_schema`, without a word on misspelled keywords: for what others send or hold."""
    lenient = as_boolean("lenient", lenient)
    schema, others, found = changed_values(source, documents, changes)
    name = found_name(schema, found) if name is None else name
    if others:
        refuse_deep(schema, *others.values())
        graph = _built(schema, others, style.key_order, style.escapes != "any", lenient)
    else:
        graph = _graph(schema, style.key_order, style.escapes != "any", lenient)
    texts = Texts(graph, spacing_of(style.whitespace), style.escapes)
    return JsonSchema(name, schema, texts, SchemaOptions(style, lenient, others))


def as_asked(source: Any, additional_properties: Any, formats: Formats | None) -> tuple[Any, list[Change]]:
    """A source, a type's values where it is to be open, and what becomes of its subschemas."""
    is_made = is_type(source)
    changes: list[Change] = [choose_by_tag] if is_made else []
    is_open = additional_properties is None or as_boolean("additional_properties", additional_properties)
    if not is_open:
        changes.append(close_object)
    if formats is None:
        formats = "natural" if is_made else "assert"
    elif isinstance(formats, Mapping) and is_made:
        formats = {**WRITTEN, **formats}
    if formats != "assert":
        changes.append(formats_as(formats))
    return (read_values(source, is_open=True)[0] if is_made and additional_properties else source), changes


def changed_values(
    source: Any, documents: Mapping[str, Any] | str | os.PathLike[str] | None, changes: Sequence[Change]
) -> tuple[Any, dict[str, Any], str | None]:
    """The schema and the documents by URI, all of them changed; and what `read_values` calls it."""
    schema, found = read_values(source)
    return (*changed(schema, given_documents(documents, schema), changes), found)


def found_name(schema: Any, found: str | None) -> str:
    """What messages call a schema that nobody has named. found : as of `read_values`."""
    title = schema.get("title") if isinstance(schema, dict) else None
    return found or (title[:60] if isinstance(title, str) and title.isprintable() and title else "schema")


def given_documents(documents: Mapping[str, Any] | str | os.PathLike[str] | None, schema: Any) -> dict[str, Any]:
    """URI -> schema, of what `load_schema` takes as `documents`.

    schema : which refers to them. Files of a folder are known by their `$id`, by their path in the
        folder, and by that path beside the `$id` of this schema. Left out are files that hold no
        schema.

    Raises: SchemaError for what is neither, and for a folder or a file that cannot be read.
    """
    if documents is None or isinstance(documents, Mapping):
        return dict(documents or {})
    if not isinstance(documents, str | os.PathLike):
        raise SchemaError(f"documents is {a_type(documents)}; expected URI -> schema, or a folder")
    folder = Path(os.fsdecode(documents))
    if not os.path.isdir(folder):  # unlike `Path.is_dir` no error for a name that is too long
        raise SchemaError(f"documents is {clip(str(folder))}, which is no folder; expected one, or URI -> schema")
    paths = sorted(islice(folder.rglob("*.json"), MOST_DOCUMENTS + 1))
    if len(paths) > MOST_DOCUMENTS:
        raise SchemaError(f"the folder {clip(str(folder))} holds more than {MOST_DOCUMENTS:,} documents")
    base = identifier(schema)
    found: dict[str, Any] = {}
    for path in paths:
        other = parse_schema(_read(path), str(path))
        if isinstance(other, bool | dict):
            name = quote(path.relative_to(folder).as_posix())
            for uri in {name, urljoin(base, name) if base else name, identifier(other) or name}:
                found.setdefault(uri, other)
    return dict(sorted(found.items()))


def _spelled(schema: Any) -> str:
    """A schema as JSON text. Raises: SchemaError for what is not JSON."""
    try:
        return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise SchemaError(f"the schema cannot be written as JSON: {error}") from error


GRAPHS: Cache[tuple[bytes, KeyOrder, bool, bool], SchemaGraph] = Cache()
"""A schema's content, and how it was read -> its graph, which holds no values of the caller."""


def _graph(schema: Any, key_order: KeyOrder, is_natural: bool, lenient: bool) -> SchemaGraph:
    """The graph of a schema without other documents; one that was made before is looked up.

    Raises: SchemaError for what is not JSON and is no plain Python value.
    """
    try:
        # PERF: a fifth of what the JSON text takes. Version 2 writes every value out, also one that
        # has been there before
        data = marshal.dumps(schema, 2)
    except ValueError:  # types of a user, or values too deep
        refuse_deep(schema)
        spelled = _spelled(schema)
        data, schema = spelled.encode("utf-8", "surrogatepass"), json.loads(spelled)
    key = data, key_order, is_natural, lenient
    found: SchemaGraph | None = GRAPHS.get(key)
    if found is None:
        # PERF: each dict, list and tuple begins with a bracket; few of them are not too deep, which
        # is a microsecond where the look takes ten
        if sum(map(data.count, (b"{", b"[", b"("))) > MOST_NESTED_JSON:
            refuse_deep(schema)
        found = GRAPHS.put(key, _built(schema, {}, key_order, is_natural, lenient))
    return found


def _built(schema: Any, documents: dict[str, Any], key_order: KeyOrder, is_natural: bool, lenient: bool) -> SchemaGraph:
    """As `build_graph`, but a tuple is an array in a schema, and a key that is no string is one."""
    try:
        return build_graph(schema, documents=documents, key_order=key_order, is_natural=is_natural, lenient=lenient)
    except SchemaError as error:
        if isinstance(error.__cause__, LimitError):
            raise  # and no copy of what is large
        refused = error.with_traceback(None)  # or it would hold all that was built
    values = schema, list(documents.values())
    again, others = json.loads(_spelled(values))
    if (again, others) == values:
        raise refused
    documents = dict(zip(documents, others, strict=True))
    return build_graph(again, documents=documents, key_order=key_order, is_natural=is_natural, lenient=lenient)


def _read(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a schema's file. Raises: SchemaError."""
    try:
        return read_file_bytes(path, MOST_BYTES, "a JSON schema", SchemaError)
    except SchemaError:
        raise
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise SchemaError(f"the schema {clip(os.fsdecode(path))} cannot be read: {why}") from error


def read_values(source: Any, is_open: bool = False) -> tuple[Any, str | None]:
    """A schema as Python values, and the name of its file or type, if it has one.

    source : as for `load_schema`.
    is_open : whether objects of classes may have other members than these name.

    Raises: as `load_schema`, for what is not JSON or cannot be read.
    """
    if isinstance(source, dict | bool):
        return source, None
    if (isinstance(source, str) and source.lstrip()[:1] == "{") or source in ("true", "false"):
        return parse_schema(source), None
    if isinstance(source, str | os.PathLike):
        where = os.fspath(source)
        if isinstance(source, str) and (
            "\0" in source or source.strip() in ("", "null") or source.lstrip()[0] in '["-0123456789'
        ):
            raise SchemaError(
                f"the schema is {clip(source)}; expected the JSON text of an object or a bool, or the path of a file"
                + meant(source, "load_schema")
            )
        if not os.path.exists(where) and (hint := meant(source, "load_schema")):
            raise SchemaError(f"the schema is {clip(source)}, which is neither JSON text nor a file{hint}")
        return parse_schema(_read(where), where), os.path.basename(where)
    if is_type(source):
        made = _of_type(source)
        for one in () if is_open else (made, *made.get("$defs", {}).values()):
            if "properties" in one:  # a class's own object, and not what a user adds, as a `not`
                one.setdefault("additionalProperties", False)
        return made, getattr(source, "__name__", None)
    raise SchemaError(
        f"the schema is {a_type(source)}; expected a dict, a bool, JSON text, a path, or a type or function that pydantic knows"
        + meant(source, "load_schema")
    )


def is_type(source: Any) -> bool:
    """Whether pydantic makes the schema."""
    return isinstance(source, type | UnionType) or callable(source) or hasattr(source, "__origin__")


def parse_schema(text: str | bytes, where: str = "the schema") -> Any:
    """The values of a schema's JSON text. Raises: SchemaError with line and column."""

    def no_constant(name: str) -> Any:
        raise SchemaError(f"{where}: {name} is not JSON")

    def exact(spelled: str) -> float:
        found = float(spelled)
        if not math.isfinite(found) or Decimal(repr(found)) != Decimal(spelled):
            raise SchemaError(
                f"{where}: the number {clip(spelled)} has more digits, or a greater exponent, than a float holds; round it, so that no "
                "value is allowed or refused that the schema does not name"
            )
        return found

    try:
        return read_json(text, parse_constant=no_constant, parse_float=exact)
    except json.JSONDecodeError as error:
        if not error.doc.strip():
            raise SchemaError(f"{where} is empty; expected a JSON schema, such as {{}} for any JSON") from None
        quotes = error.doc.startswith("'", error.pos)
        hint = "; JSON wants double quotes, and a dict of Python is taken as it is" if quotes else ""
        raise SchemaError(
            f"{where}:{error.lineno}:{error.colno}: this is not JSON: {error.msg}{hint}{meant(where, 'load_schema')}"
        ) from error
    except LimitError as error:
        raise SchemaError(f"{where}: {error}") from None
    except ValueError as error:
        if isinstance(error, SchemaError):
            raise
        if is_tensors(where):
            raise SchemaError(
                f"{where} is a safetensors file, as stores are, not a JSON schema; a store is read by load_store"
            ) from None
        raise SchemaError(f"{where}: this is not JSON: {error}") from error


def _of_type(source: Any) -> Any:
    """The schema that pydantic tells of a type or a function."""
    try:
        from pydantic import PydanticUserError, TypeAdapter
        from pydantic.json_schema import GenerateJsonSchema
    except ImportError as error:
        raise MissingExtraError(
            f"the schema of {clip(getattr(source, '__name__', source))} is made by pydantic, which is not installed: "
            "pip install 'maskwright[schema]'"
        ) from error

    class WithOffsets(GenerateJsonSchema):
        """Says which dates and times have an offset, what pydantic's own schemas leave out."""

        def generate_inner(self, schema: Any) -> Any:
            found, zone = super().generate_inner(schema), schema.get("tz_constraint")
            pattern = "(?:T|^)[^Z+-]*$" if zone == "naive" else r"(?:Z|[+-]\d\d:\d\d)$"
            return found if zone is None else {**found, "pattern": pattern}

    try:
        return TypeAdapter(source).json_schema(schema_generator=WithOffsets)
    except (PydanticUserError, TypeError, NameError) as error:
        raise SchemaError(f"pydantic tells no schema of {clip(source)}: {str(error).partition(chr(10))[0]}") from error
