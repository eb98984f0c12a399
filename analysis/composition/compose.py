"""Compositions: a host language in which parts of other languages stand.

Lines of a Lark grammar may name its parts: ``%schema``, ``%grammar``, ``%regex``, ``%token``.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping, Sized
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any, ClassVar, Literal, TypeAlias

from maskwright.analysis.arguments import a_type, clip
from maskwright.analysis.composition.directives import Directive, read_directive, read_directives
from maskwright.analysis.composition.tag_rules import TagRules
from maskwright.analysis.composition.token_parts import AtMostTokens, TokenParts, special_token, token_part
from maskwright.analysis.errors import GrammarError, LimitError, SchemaError, UnusedPartError, within
from maskwright.analysis.fronts.assembly import HostGrammar
from maskwright.analysis.fronts.llguidance_syntax import Atom
from maskwright.analysis.fronts.sources import read_host
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.kept import cached_property
from maskwright.analysis.loading.lark_loader import load_grammar, parse_grammar
from maskwright.analysis.loading.names import DIRECTIVE, Source, find_source, has_directives, library_names
from maskwright.analysis.marks import MOST_PARTS, PART_FLAGS, part_format
from maskwright.analysis.nesting import on_own_stack
from maskwright.analysis.schema.known_keywords import WITH_LIST, WITH_NAMED, WITH_ONE
from maskwright.analysis.schema.load import JsonSchema, is_type, load_schema, read_values
from maskwright.analysis.schema.text_patterns import Regex, load_regex

_SAID_OF_STRINGS = frozenset(
    {"title", "description", "examples", "default", "$comment", "deprecated", "readOnly", "writeOnly"}
)
_NEGATED = frozenset({"propertyNames", "not", "if", "contains"})
_HOLD_SCHEMAS = WITH_NAMED | (WITH_LIST - {"items"})
_ARE_SCHEMAS = WITH_ONE - _NEGATED

DEEPEST = 4
"""BOUND: compositions inside one another, each of which multiplies the time of a mask."""


@dataclass(frozen=True, eq=False)
class InJsonString:
    """A part that stands inside a JSON string: quoted, and spelled with JSON's escapes.

    inner : the language of what the string says.
    """

    inner: Inner


@dataclass(frozen=True, eq=False)
class Part:
    """What stands in a host under a name.

    name : the terminal of a grammar, or the JSON pointer of a subschema.
    inner : its language.
    """

    name: str
    inner: Inner | InJsonString | TokenParts


@dataclass(frozen=True, repr=False, eq=False)
class Composition:
    """A host with its parts: what `compose` returns, and stores are built of.

    name : what errors call it.
    host : a grammar, a schema or the rules of a structural tag, in whose texts part k is the text
        ``mark(k)``.
    parts : the parts, by number.

    A text is legal if it is a legal text of the host in which a legal text of its part stands for
    each mark. A text that can be cut into host and parts in several ways is followed in all of
    them.
    """

    kind: ClassVar[Literal["composition"]] = "composition"
    """Which kind of constraint it is, as reports and files name it."""

    name: str
    host: Grammar | JsonSchema | TagRules
    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        if self.depth > DEEPEST:
            raise LimitError(f"{self.name}: more than {DEEPEST} compositions stand inside one another; compose flatter")
        for part, inner in zip(self.parts, self._inner, strict=True):
            if isinstance(inner, Composition) and inner.has_budgets:
                raise GrammarError(
                    f"{self.name}: part {part.name} has a budget of tokens, which a composition inside another cannot count: take "
                    "the budget out, or put its parts into this composition"
                )

    @cached_property
    def depth(self) -> int:
        """How many compositions stand inside one another, this one included."""
        return 1 + max((one.depth for one in self._inner if isinstance(one, Composition)), default=0)

    @cached_property
    def has_tokens(self) -> bool:
        """Whether a part, or a part of a part, is made of tokens."""
        return any(
            isinstance(one, TokenParts) or (isinstance(one, Composition) and one.has_tokens) for one in self._inner
        )

    @property
    def has_budgets(self) -> bool:
        """Whether a part takes at most so many tokens."""
        return any(isinstance(one, AtMostTokens) for one in self._inner)

    @property
    def _inner(self) -> list[Inner | TokenParts]:
        return [part.inner.inner if isinstance(part.inner, InJsonString) else part.inner for part in self.parts]

    def __repr__(self) -> str:
        return f"<Composition {self.name}: {', '.join(part.name for part in self.parts)}>"


Inner: TypeAlias = Grammar | JsonSchema | Regex | Composition


@on_own_stack
def in_json_string(part: Any) -> InJsonString:
    """A part that stands inside a JSON string of its host, quoted and escaped.

    part : as a part of `compose`.

    Raises: as `compose`.
    """
    inner = as_part(part)
    if isinstance(inner, Composition) and inner.has_tokens:
        raise GrammarError(f"{inner.name} has parts that are tokens or count them: they cannot be in a JSON string")
    if not isinstance(inner, Grammar | JsonSchema | Regex | Composition):
        raise GrammarError(f"in_json_string takes a grammar, a schema, a pattern or a composition, not {a_type(part)}")
    return InJsonString(inner)


@on_own_stack
def compose(host: Any, parts: Mapping[str, Any], *, name: str | None = None) -> Composition:
    """A host language in which parts of other languages stand, for `build_store`.

    host : a Lark grammar, as text or path, that declares each part (`%declare SQL`) and uses it as
        a terminal; or a JSON schema, as `load_schema` takes it, or what that returned.
    parts : the name of such a terminal -> its language; for a schema, the JSON pointer of a
        subschema ``{"type": "string"}`` -> the language of what the string says. A language is a
        grammar, a schema or a pattern (objects, or what `load_grammar` and `load_schema` take: a
        str or a path is a grammar, a dict a schema), `in_json_string(...)`, `special_token(...)`,
        or another composition.
    name : what errors call it; by default the host's name.

    Raises: GrammarError, SchemaError and others as `load_grammar` and `load_schema`; GrammarError
    for a part that the host does not use or defines itself, and SchemaError for a pointer that
    leads to something else than a string, or into what no part can be in (`not`, `if`, `contains`,
    `propertyNames`).

    Example:
        >>> compose('start: "x=" NUMBER\\n%declare NUMBER', {"NUMBER": {"type": "integer"}})
        <Composition <text>: NUMBER>
    """
    if not isinstance(parts, Mapping) or not all(isinstance(key, str) for key in parts):
        raise GrammarError(f"the parts are {a_type(parts)}; expected a dict: name of a part -> its language")
    check_number(parts)
    if isinstance(host, Grammar):
        raise GrammarError(
            f"grammar {host.name} was loaded already, without its parts: give compose its text or its path instead"
        )
    found = []
    for key, value in parts.items():
        with within(f"part {clip(key)}"):
            found.append(Part(key, as_part(value)))
    if isinstance(host, JsonSchema | Mapping | bool) or (isinstance(host, str) and host.lstrip()[:1] == "{"):
        return _in_schema(host, found, name)
    if isinstance(host, str | os.PathLike):
        return _in_grammar(host, found, name)
    return _in_schema(load_schema(host), found, name)


def composed(name: str, host: Grammar | JsonSchema | TagRules, parts: tuple[Part, ...]) -> Composition:
    """The composition that has this name, host and parts. Raises: as `compose`."""
    check_number(parts)
    return _in_schema(host, list(parts), name) if isinstance(host, JsonSchema) else Composition(name, host, parts)


def of_host(host: HostGrammar, language: Callable[[Atom], Inner | TokenParts] = token_part) -> Grammar | Composition:
    """The composition of a grammar with its parts; without any, the grammar.

    language : what a part stands for.
    """
    if not host.parts:
        return host.grammar
    marks = [one.name for one in host.grammar.terminals if one.flags == PART_FLAGS]
    return Composition(host.grammar.name, host.grammar, tuple(map(Part, marks, map(language, host.parts))))


def check_number(parts: Sized) -> None:
    """Raises LimitError for more parts than there are marks."""
    if len(parts) > MOST_PARTS:
        raise LimitError(f"{len(parts):,} parts are more than {MOST_PARTS:,}; compose some first, or take fewer")


def as_part(source: Any) -> Inner | InJsonString | TokenParts:
    """The language of a part, as `compose` takes it.

    Raises: as `compose`.
    """
    if isinstance(source, Grammar | JsonSchema | Regex | Composition | InJsonString | TokenParts):
        return source
    if isinstance(source, str | os.PathLike):
        if has_directives(source):
            return read_composition(source)
        suffix = PurePath(os.fspath(source)).suffix.lower() if "\n" not in os.fspath(source) else ""
        if suffix == ".json":
            return load_schema(source)
        if suffix in (".gbnf", ".ebnf") or (isinstance(source, str) and "::=" in source):
            return of_host(read_host(source))
        return load_grammar(source)
    return load_schema(dict(source) if isinstance(source, Mapping) else source)


@on_own_stack
def read_composition(source: str | os.PathLike[str], *, name: str | None = None, paths: bool = True) -> Composition:
    """The composition of a Lark grammar whose text names its parts.

    A line names a terminal and its language::

        %schema ARGUMENTS {"type": "object"}
        %schema ANSWER answer.json
        %grammar SQL sql
        %grammar QUERY query.lark in json string
        %regex DATE /[0-9]{4}-[0-9]{2}/
        %token CALL <|tool_call|>

    Paths are relative to the grammar's file.

    source : a path, or the grammar's text.
    name : what errors call it.
    paths : whether parts may be files. False for texts that come from anyone: a part is then a
        schema in the line itself, a grammar of the library, a pattern or a token.

    Raises: GrammarError with the line of a directive that is malformed; and as `compose`.
    """
    found = find_source(source)
    around = _around.get()
    if found.text in around:
        raise GrammarError(
            f"{found.display or found.name} is a part of itself, by way of its %grammar lines: a part must be another text"
        )
    if len(around) >= DEEPEST:
        raise LimitError(f"{found.display or found.name}: more than {DEEPEST} grammars name one another as parts")
    token = _around.set((*around, found.text))
    try:
        return _read_composition(found, name, paths)
    finally:
        _around.reset(token)


def read_used_parts(source: str | os.PathLike[str]) -> tuple[Composition | Grammar, list[tuple[str, int]]]:
    """The composition of a grammar's text without the parts that no rule uses, for lint.

    source : as for `read_composition`, which refuses such parts.

    Returns the composition, or the host alone if no part is used; and name and line of each part
        that is not used.
    Raises: as `read_composition`, but for parts that are not used.
    """
    found = find_source(source)
    try:
        return read_composition(source), []
    except UnusedPartError as error:
        if not str(error).startswith(f"{found.display or found.name}:"):
            raise  # a part's part
    text, unused = found.text, []
    for one in read_directives(found.text, found.display or found.name)[1]:
        try:
            _host(found, read_directives(found.text, "")[0], [one.name], None)
        except UnusedPartError:
            line = int(one.where.removeprefix(f"{found.display or found.name}:").partition(":")[0])
            unused.append((one.name, line))
        except GrammarError:
            continue  # the other parts have no meaning here; what is wrong otherwise is found below
    for name, _ in unused:
        text = _without(text, name)
    found = replace(found, text=text)
    if DIRECTIVE.search(text) is None:
        return _host(found, text, [], None), unused
    return _read_composition(found, None, True), unused


def _without(text: str, name: str) -> str:
    """A grammar's text without the directive of a part; its lines stay where they are."""
    begin = next(one for one in DIRECTIVE.finditer(text) if one[2] == name)
    end = read_directive(begin[1], begin[2], f"%{begin[1]} {begin[2]}", text, begin.end())[1]
    return text[: begin.start()] + "\n" * text.count("\n", begin.start(), end) + text[end:]


_around: ContextVar[tuple[str, ...]] = ContextVar("_around", default=())
"""The texts whose directives are being read."""


def _read_composition(found: Source, name: str | None, paths: bool) -> Composition:
    text, directives = read_directives(found.text, found.display or found.name)
    if not directives:
        raise GrammarError(f"{found.name} names no parts: expected lines such as %schema ARGUMENTS arguments.json")
    folder = Path(os.fsdecode(found.folder)) if found.folder is not None else None
    parts = {one.name: _named_part(one, folder, paths) for one in directives}
    host = _host(found, text, list(parts), name)
    return _of_grammar(host, [Part(each, as_part(value)) for each, value in parts.items()])


def _host(found: Source, text: str, parts: list[str], name: str | None) -> Grammar:
    """The grammar of a host whose text declares its parts. found : where the text comes from."""
    return parse_grammar(
        text,
        name=name or found.name,
        start=found.start,
        lexing=found.lexing,
        soft=found.soft,
        folder=found.folder,
        display=found.display,
        parts=parts,
    )


def _named_part(one: Directive, folder: Path | None, paths: bool) -> Any:
    """The language that a directive names."""
    with within(one.where):
        try:
            found = _language(one, folder, paths)
            return in_json_string(found) if one.is_inside else found
        except OSError as error:
            raise GrammarError(f"{clip(one.said)} cannot be read: {error.strerror or error}") from error


def _language(one: Directive, folder: Path | None, paths: bool) -> Any:
    if one.kind == "token":
        is_id = one.said.isascii() and one.said.isdecimal() and len(one.said) < 10
        return special_token(int(one.said) if is_id else one.said)
    if one.values is not None:
        return load_schema(one.values)
    if one.kind == "regex":
        return load_regex(one.said, flags=one.flags)
    if not paths:
        if one.kind == "schema" or one.said not in library_names():
            raise GrammarError(
                f"{clip(one.said)} is a file, which may not be read here; expected a schema in the line itself, or the name of a grammar "
                "that comes along"
            )
        return load_grammar(one.said)
    path = folder / one.said if folder is not None and os.path.exists(folder / one.said) else one.said
    return load_schema(path) if one.kind == "schema" else as_part(path)


def _in_grammar(host: str | os.PathLike[str], parts: list[Part], name: str | None) -> Composition:
    source = find_source(host)
    return _of_grammar(_host(source, source.text, [part.name for part in parts], name), parts)


def _of_grammar(grammar: Grammar, parts: list[Part]) -> Composition:
    check_number(parts)
    if grammar.lexing == "nfa":
        raise GrammarError(
            f"grammar {grammar.name} has lexing 'nfa', which has no engine: a host needs 'contextual' or 'longest'"
        )
    return Composition(grammar.name, grammar, tuple(parts))


def _in_schema(host: Any, parts: list[Part], name: str | None) -> Composition:
    host = load_schema(host) if is_type(host) else host
    if isinstance(host, JsonSchema):
        if host.narrowing is not None:
            raise SchemaError(f"{host.name} is what a structural tag takes of a schema: compose the schema itself")
        values, options, found = host.schema, host.options._asdict(), host.name
    else:
        values, of = read_values(dict(host) if isinstance(host, Mapping) else host)
        options, found = {}, of or ""
    schema = copy.deepcopy(values)
    for number, part in enumerate(parts):
        schema = _replaced(schema, part.name, part_format(number))
    if parts and "style" in options and options["style"].escapes == "minimal":
        raise SchemaError(
            f"{found}: a part in a JSON string may use all escapes, and the host was loaded with escapes='minimal': load it with "
            "escapes='any'"
        )
    made = load_schema(schema, name=name or found or None, **options)
    inside = [
        part if isinstance(part.inner, InJsonString | TokenParts) else Part(part.name, InJsonString(part.inner))
        for part in parts
    ]
    return Composition(made.name, replace(made, schema=values), tuple(inside))


def _replaced(schema: Any, pointer: str, form: str) -> Any:
    """The schema, whose subschema at a JSON pointer is now a part."""
    keys = [key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")[1:]]
    if pointer and not pointer.startswith("/"):
        raise SchemaError(f"{clip(pointer)} is not a JSON pointer: one begins with /, as in /properties/query", pointer)
    made = {"type": "string", "format": form}
    at: Any = schema
    is_schema = True  # else what holds schemas by names or numbers
    for i, key in enumerate(keys):
        so_far = "/" + "/".join(pointer.split("/")[1 : i + 2])
        if is_schema and key not in _HOLD_SCHEMAS and key not in _ARE_SCHEMAS:
            what = f"where it would be negated: {key}" if key in _NEGATED else f"as there is none at {so_far}"
            raise SchemaError(f"{pointer}: a part can only stand in place of a subschema, and not {what}", pointer)
        where: Any = int(key) if isinstance(at, list) and key.isdecimal() and key.isascii() and len(key) < 10 else key
        if not isinstance(at, dict | list) or not (where in at if isinstance(at, dict) else where in range(len(at))):
            raise SchemaError(f"{pointer}: the schema has nothing at {so_far}, so no part can stand there", pointer)
        is_schema = not is_schema or (key in _ARE_SCHEMAS and not isinstance(at[where], list))
        if i == len(keys) - 1:
            if not is_schema:
                raise SchemaError(
                    f"{pointer}: a part can only stand in place of a subschema, and {so_far} holds several", pointer
                )
            _check_string(at[where], pointer)
            at[where] = made
            return schema
        at = at[where]
    _check_string(schema, pointer)
    return made


def _check_string(schema: Any, pointer: str) -> None:
    """Refuse a subschema that says more than that a value is a string."""
    if schema is True:
        return
    if not isinstance(schema, dict) or schema.get("type", "string") != "string":
        raise SchemaError(
            f'{pointer or "/"}: a part of a schema is a string; expected {{"type": "string"}} there', pointer
        )
    more = sorted(set(schema) - _SAID_OF_STRINGS - {"type"})
    if more:
        raise SchemaError(
            f"{pointer or '/'}: the part says what the string may be, so {', '.join(more)} cannot be asked as well: take it out, or say "
            "it in the part",
            pointer,
        )
