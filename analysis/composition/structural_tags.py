"""Structural tags: xgrammar's JSON for texts in which constraints begin at tags, as in tool calls.

A structural tag becomes a composition. Its host has rules over literals (`tag_rules`); what is free
text, JSON, a pattern or a grammar is a part. A text may be cut into these in several ways, and is
legal if one of them is.

Source: xgrammar 0.2.8, `xgrammar/structural_tag.py`; the verdicts that are not written there were
asked of its matcher.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from maskwright.analysis.arguments import a_type, clip
from maskwright.analysis.composition.compose import Composition, of_host
from maskwright.analysis.composition.structural_tags_host import HostRules, characters
from maskwright.analysis.composition.structural_tags_schemas import narrowed
from maskwright.analysis.composition.structural_tags_xml import STYLES, xml_arguments
from maskwright.analysis.composition.tag_rules import Body
from maskwright.analysis.composition.token_parts import MOST_TOKENS, TokenSet, check_token, token_set
from maskwright.analysis.errors import GrammarError, LimitError, within
from maskwright.analysis.fronts.gbnf import read_rules
from maskwright.analysis.fronts.llguidance import parse_llguidance
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.loading.names import meant
from maskwright.analysis.nesting import on_own_stack, read_json
from maskwright.analysis.schema.load import JsonSchema, Narrowing, as_asked, read_schema
from maskwright.analysis.schema.rewriting import Formats
from maskwright.analysis.schema.shapes import Escapes
from maskwright.analysis.schema.style import Style, StyleName, read_style
from maskwright.analysis.schema.text_patterns import Regex, load_regex

DEEPEST = 100
"""BOUND: formats inside one another."""
MOST_TEXT = 2_000
"""BOUND: the characters that `max_chars` may allow."""
MOST_REPEATS = 20_000
"""BOUND: the times that `repeat` may ask for; a second each to compile so many."""


class Ends(NamedTuple):
    """What ends the innermost tag, and so what free text and free tokens in it do not hold.

    texts, tokens : its end as strings, or as a token.
    """

    texts: tuple[str, ...] = ()
    tokens: tuple[int | str, ...] = ()


_NO_ENDS = Ends()


@on_own_stack
def read_structural_tag(
    source: str | Mapping[str, Any],
    *,
    style: StyleName | Style = "natural",
    whitespace: str | int | None = None,
    additional_properties: bool = True,
    escapes: Escapes | None = None,
    formats: Formats = "assert",
    read: Callable[..., JsonSchema] = read_schema,
) -> Composition:
    """The texts of a structural tag, for `build_store`.

    source : JSON text or its values: ``{"type": "structural_tag", "format": ...}``, or the older
        form with `structures` and `triggers`.
    style : how its JSON is written, as for `load_schema`, where `max_whitespace_cnt` and
        `any_order` do not say; whitespace and escapes say otherwise of a part of it.
    additional_properties, formats : as for `load_schema`. (xgrammar closes objects.)
    read : reads its schemas; called with one, `style` and `changes`.

    Members of objects keep the schema's order, unless `any_order` is true; `required` holds in both
    cases, and no key comes twice. Free text inside a tag goes up to the tag's end.

    In the XML styles, an argument that the schema does not name has an identifier as its name, and
    may come twice. (In minimax_m3_xml there are none.) A string ends at the first closing tag.

    A token of a token format is taken whole, one with text too. A part with `max_tokens` ends as
    soon as it can once it has taken something of so many tokens. A token counts if the part has
    begun when the token begins; bytes that are added without tokens count as none.

    Raises: GrammarError for what is malformed; SchemaError, LimitError and others as its parts'
    own, and for arguments that a style cannot write. The message says where in the tag.

    Example:
        >>> number = {"type": "regex", "pattern": "[0-9]+"}
        >>> tag = {"type": "tag", "begin": "<n>", "content": number, "end": "</n>"}
        >>> read_structural_tag({"type": "structural_tag", "format": tag})
        <Composition structural tag: REGEX_0>
    """
    if isinstance(source, str):
        try:
            values = read_json(source)
        except ValueError as error:
            # not whether there is such a file: the text may be a stranger's
            hint = "" if source.lstrip()[:1] == "{" else "; expected JSON text, not a file's name"
            hint += meant(source, "read_structural_tag")
            raise GrammarError(f"the structural tag is not JSON: {error}{hint}") from error
    else:
        values = source
    if not isinstance(values, Mapping):
        hint = meant(values, "read_structural_tag")
        raise GrammarError(f"the structural tag is {a_type(values)}; expected an object{hint}")
    if "structures" in values or "triggers" in values:
        form: Any = _of_older(values)
    elif values.get("type", "structural_tag") == "structural_tag" and "format" in values:
        form = values["format"]
    else:
        hint = meant(values, "read_structural_tag")
        expected = f'expected {{"type": "structural_tag", "format": {{...}}}}{hint}'
        raise GrammarError(f"the structural tag has no format; {expected}")
    host = HostRules()
    read = partial(read, changes=as_asked(None, additional_properties, formats)[1])
    body = FormatReader(host, read_style(style, whitespace, escapes=escapes), read).read(form, "/format", _NO_ENDS)
    return host.composition(body, "structural tag")


def _of_older(values: Mapping[str, Any]) -> dict[str, Any]:
    structures = values.get("structures")
    if not isinstance(structures, list) or not all(isinstance(one, Mapping) for one in structures):
        raise GrammarError(
            "the structural tag's structures are no list of objects; expected begin, schema and end in each"
        )
    tags = [
        {
            "type": "tag",
            "begin": one.get("begin"),
            "content": {"type": "json_schema", "json_schema": _schema_of(one.get("schema"))},
            "end": one.get("end"),
        }
        for one in structures
    ]
    return {"type": "triggered_tags", "triggers": values.get("triggers"), "tags": tags}


def _schema_of(schema: Any) -> Any:
    if not isinstance(schema, str):
        return schema
    try:
        return read_json(schema)
    except ValueError as error:
        raise GrammarError(f"a schema of the structural tag is not JSON: {error}") from error


class FormatReader:
    """Makes rules of formats.

    host : where the rules go.
    style : of JSON, but for the order of members.
    read : reads its schemas; called with one, and `style`.
    """

    def __init__(self, host: HostRules, style: Style, read: Callable[..., JsonSchema] = read_schema) -> None:
        self._host, self._style, self._read_schema = host, style, read
        self._depth = 0

    def read(self, form: Any, where: str, ends: Ends = _NO_ENDS) -> Body:
        """The expression of a format, or of a language that was read already (which no JSON says).

        where : a JSON pointer.
        ends : of the tag around it.
        """
        if isinstance(form, Grammar | JsonSchema | Regex | Composition):
            return self._host.part("language", form)
        if not isinstance(form, Mapping) or not isinstance(form.get("type"), str):
            raise GrammarError(f"structural tag, {where}: {clip(form)} is no format; expected an object with a type")
        kind = form["type"]
        if kind not in _FORMATS:
            raise GrammarError(
                f"structural tag, {where}: no format has the type {clip(kind)}; known: {', '.join(_FORMATS)}"
            )
        _check_members(form, kind, where)
        if self._depth >= DEEPEST:
            raise GrammarError(f"structural tag, {where}: more than {DEEPEST} formats stand inside one another")
        self._depth += 1
        self._host.where = where
        with within(f"structural tag, {where}", known="structural tag"):
            found = _FORMATS[kind][0](self, form, where, ends)
        self._depth -= 1
        return found

    # -- single formats

    def _constant(self, form: Mapping[str, Any], where: str, ends: Ends) -> Body:
        return characters(_text(form, "value", where))

    def _json(self, form: Mapping[str, Any], where: str, ends: Ends) -> Body:
        style = form.get("style", "json")
        if style != "json" and not (isinstance(style, str) and style in STYLES):
            raise GrammarError(
                f"structural tag, {where}/style: {clip(style)} is no style; known: json, {', '.join(STYLES)}"
            )
        excluded = _texts(form, "excludes", where)
        spaces = form.get("max_whitespace_cnt")
        schema = form.get("json_schema")
        if not isinstance(schema, Mapping | bool):
            raise GrammarError(f"structural tag, {where}/json_schema is {a_type(schema)}; expected a schema")
        found = self._read_schema(
            dict(schema) if isinstance(schema, Mapping) else schema,
            style=read_style(self._style, spaces, "any" if _flag(form, "any_order", where) else "schema"),
        )
        if style != "json":
            return xml_arguments(self._host, found, style, excluded)
        if excluded:
            found = narrowed(found, Narrowing(found.texts.graph.root, (), excluded, is_tight=False))
        return self._host.part("schema", found)

    def _qwen(self, form: Mapping[str, Any], where: str, ends: Ends) -> Body:
        return self._json({**form, "style": "qwen_xml"}, where, ends)

    def _any_text(self, form: Mapping[str, Any], where: str, ends: Ends) -> Body:
        most = _budget(form, "max_chars", where, MOST_TEXT)
        return self._host.free(
            (*_texts(form, "excludes", where), *ends.texts), most, _budget(form, "max_tokens", where)
        )

    def _grammar(self, form: Mapping[str, Any], where: str, ends: Ends) -> Body:
        syntax, text = form.get("syntax", "ebnf"), _text(form, "grammar", where)
        if syntax not in ("ebnf", "lark"):
            raise GrammarError(f"structural tag, {where}/syntax is {clip(syntax)}; expected 'ebnf' or 'lark'")
        if syntax == "ebnf":
            return self._host.part("grammar", of_host(read_rules(text, "<grammar>", "ebnf")))
        return self._host.part("grammar", parse_llguidance(text, "<grammar>"))

    def _regex(self, form: Mapping[str, Any], where: str, ends: Ends) -> Body:
        return self._host.pattern("pattern", load_regex(_text(form, "pattern", where)))

    def _token(self, form: Mapping[str, Any], where: str, ends: Ends) -> Body:
        return self._host.token(TokenSet(_tokens({"token": [form.get("token")]}, "token", where)))

    def _exclude_token(self, form: Mapping[str, Any], where: str, ends: Ends) -> Body:
        excluded = (*_tokens(form, "exclude_tokens", where), *ends.tokens)
        return self._host.token(token_set(excluded, is_excluding=True))

    def _any_tokens(self, form: Mapping[str, Any], where: str, ends: Ends) -> Body:
        excluded = (*_tokens(form, "exclude_tokens", where), *ends.tokens)
        return self._host.free_tokens(excluded, _budget(form, "max_tokens", where))

    # -- formats of formats

    def _sequence(self, form: Mapping[str, Any], where: str, ends: Ends) -> Body:
        elements = _list(form, "elements", where)
        return sum([self.read(one, f"{where}/elements/{i}", ends) for i, one in enumerate(elements)], ())

    def _or(self, form: Mapping[str, Any], where: str, ends: Ends) -> Body:
        elements = _list(form, "elements", where)
        if not elements:
            raise GrammarError(f"structural tag, {where}/elements is empty; expected at least one format")
        return self._host.either([self.read(one, f"{where}/elements/{i}", ends) for i, one in enumerate(elements)])

    def _tag(self, form: Mapping[str, Any], where: str, ends: Ends) -> Body:
        begin = self._border(form.get("begin"), f"{where}/begin")
        said = form.get("end")
        several = said if isinstance(said, list) else [said]
        if not several:
            raise GrammarError(f"structural tag, {where}/end is empty; expected at least one end")
        end = self._host.either([self._border(one, f"{where}/end") for one in several])
        tokens = tuple(one["token"] for one in several if isinstance(one, Mapping))
        inside = Ends(tuple(one for one in several if isinstance(one, str) and one), tokens)
        return begin + self.read(form.get("content"), f"{where}/content", inside) + end

    def _border(self, said: Any, where: str) -> Body:
        """A tag's begin or end: a string or a token."""
        if isinstance(said, str):
            return characters(said)
        if isinstance(said, Mapping) and said.get("type") == "token":
            _check_members(said, "token", where)
            return self._token(said, where, _NO_ENDS)
        raise GrammarError(f"structural tag, {where} is {clip(said)}; expected a string or a token format")

    def _tags(self, form: Mapping[str, Any], where: str) -> tuple[list[Mapping[str, Any]], Body]:
        tags = _list(form, "tags", where)
        if not tags:
            raise GrammarError(f"structural tag, {where}/tags is empty; expected at least one tag")
        for i, one in enumerate(tags):
            if not isinstance(one, Mapping) or one.get("type", "tag") != "tag":
                raise GrammarError(f"structural tag, {where}/tags/{i} is no tag")
        found = [self.read({**one, "type": "tag"}, f"{where}/tags/{i}", _NO_ENDS) for i, one in enumerate(tags)]
        return tags, self._host.either(found)

    def _triggered(self, form: Mapping[str, Any], where: str, ends: Ends) -> Body:
        triggers = _texts(form, "triggers", where)
        if not triggers or "" in triggers:
            raise GrammarError(f"structural tag, {where}/triggers: expected at least one, and none that is empty")
        tags, either = self._tags(form, where)
        for i, one in enumerate(tags):
            begin = one.get("begin")
            if not isinstance(begin, str) or sum(begin.startswith(trigger) for trigger in triggers) != 1:
                raise GrammarError(
                    f"structural tag, {where}/tags/{i}/begin is {clip(begin)}; expected a string that begins with exactly one trigger"
                )
        excluded = (*triggers, *_texts(form, "excludes", where), *ends.texts)
        return self._among(form, where, either, self._host.free(excluded, None))

    def _token_triggered(self, form: Mapping[str, Any], where: str, ends: Ends) -> Body:
        triggers = _tokens(form, "trigger_tokens", where)
        tags, either = self._tags(form, where)
        for i, one in enumerate(tags):
            begin = one.get("begin")
            if not isinstance(begin, Mapping) or begin.get("token") not in triggers:
                raise GrammarError(
                    f"structural tag, {where}/tags/{i}/begin is {clip(begin)}; expected a token format with one of the triggers, "
                    "by id or by name as there"
                )
        excluded = (*triggers, *_tokens(form, "exclude_tokens", where), *ends.tokens)
        return self._among(form, where, either, self._host.free_tokens(excluded, None))

    def _separated(self, form: Mapping[str, Any], where: str, ends: Ends) -> Body:
        either = self._tags(form, where)[1]
        separator = characters(_text(form, "separator", where))
        some = either
        if not _flag(form, "stop_after_first", where):
            some += self._host.repeated(separator + either, 0)
        return some if _flag(form, "at_least_one", where) else self._host.optional(some)

    def _dispatch(self, form: Mapping[str, Any], where: str, ends: Ends) -> Body:
        rules = _list(form, "rules", where)
        if not all(
            isinstance(one, list | tuple) and len(one) == 2 and isinstance(one[0], str) and one[0] for one in rules
        ):
            raise GrammarError(
                f"structural tag, {where}/rules: expected pairs of a pattern, which is not empty, and a format"
            )
        text = self._host.free((*(pattern for pattern, _ in rules), *_texts(form, "excludes", where)), None)
        return self._dispatched(form, where, ends, text, [characters(pattern) for pattern, _ in rules])

    def _token_dispatch(self, form: Mapping[str, Any], where: str, ends: Ends) -> Body:
        rules = _list(form, "rules", where)
        if not all(isinstance(one, list | tuple) and len(one) == 2 for one in rules):
            raise GrammarError(f"structural tag, {where}/rules: expected pairs of a token and a format")
        triggers = _tokens({"rules": [token for token, _ in rules]}, "rules", where)
        text = self._host.free_tokens((*triggers, *_tokens(form, "exclude_tokens", where)), None)
        return self._dispatched(form, where, ends, text, [self._host.token(TokenSet((one,))) for one in triggers])

    def _dispatched(self, form: Mapping[str, Any], where: str, ends: Ends, free: Body, patterns: list[Body]) -> Body:
        """What is free until a pattern, and the format behind it."""
        loops = _flag(form, "loop", where, default=True)
        if not patterns:
            return free
        either = self._host.either(
            [
                pattern + self.read(form["rules"][i][1], f"{where}/rules/{i}/1", ends)
                for i, pattern in enumerate(patterns)
            ]
        )
        return free + (self._host.repeated(either + free, 0) if loops else self._host.optional(either))

    def _repeat(self, form: Mapping[str, Any], where: str, ends: Ends) -> Body:
        least, most = form.get("min"), form.get("max")
        for name, value in (("min", least), ("max", most)):
            if isinstance(value, bool) or not isinstance(value, int) or value < (0 if name == "min" else -1):
                raise GrammarError(f"structural tag, {where}/{name} is {clip(value)}; expected a number of times")
        if most != -1 and most < least:  # type: ignore[operator]
            raise GrammarError(f"structural tag, {where}: max {most} is less than min {least}")
        times = max(least or 0, most or 0)
        if times > MOST_REPEATS:
            raise LimitError(f"structural tag, {where} repeats {times:,} times; the limit is {MOST_REPEATS:,}")
        return self._repeated(form, where, ends, least=least or 0, most=-1 if most is None else most)

    def _repeated(self, form: Mapping[str, Any], where: str, ends: Ends, *, least: int, most: int) -> Body:
        body = self.read(form.get("content"), f"{where}/content", ends)
        return self._host.repeated(body, least, None if most == -1 else most)

    def _among(self, form: Mapping[str, Any], where: str, tag: Body, free: Body) -> Body:
        """Tags among what is free."""
        at_least_one, stops = _flag(form, "at_least_one", where), _flag(form, "stop_after_first", where)
        if stops:
            return tag if at_least_one else free + self._host.optional(tag)
        return (tag if at_least_one else ()) + free + self._host.repeated(tag + free, 0)


_FORMATS: Mapping[str, tuple[Callable[..., Body], tuple[str, ...]]] = {
    "const_string": (FormatReader._constant, ("value",)),
    "json_schema": (FormatReader._json, ("json_schema", "style", "any_order", "max_whitespace_cnt", "excludes")),
    "qwen_xml_parameter": (FormatReader._qwen, ("json_schema",)),
    "any_text": (FormatReader._any_text, ("excludes", "max_tokens", "max_chars")),
    "grammar": (FormatReader._grammar, ("grammar", "syntax")),
    "regex": (FormatReader._regex, ("pattern",)),
    "token": (FormatReader._token, ("token",)),
    "exclude_token": (FormatReader._exclude_token, ("exclude_tokens",)),
    "any_tokens": (FormatReader._any_tokens, ("exclude_tokens", "max_tokens")),
    "sequence": (FormatReader._sequence, ("elements",)),
    "or": (FormatReader._or, ("elements",)),
    "tag": (FormatReader._tag, ("begin", "content", "end")),
    "triggered_tags": (FormatReader._triggered, ("triggers", "tags", "at_least_one", "stop_after_first", "excludes")),
    "token_triggered_tags": (
        FormatReader._token_triggered,
        ("trigger_tokens", "tags", "exclude_tokens", "at_least_one", "stop_after_first"),
    ),
    "tags_with_separator": (FormatReader._separated, ("tags", "separator", "at_least_one", "stop_after_first")),
    "dispatch": (FormatReader._dispatch, ("rules", "loop", "excludes")),
    "token_dispatch": (FormatReader._token_dispatch, ("rules", "loop", "exclude_tokens")),
    "optional": (partial(FormatReader._repeated, least=0, most=1), ("content",)),
    "plus": (partial(FormatReader._repeated, least=1, most=-1), ("content",)),
    "star": (partial(FormatReader._repeated, least=0, most=-1), ("content",)),
    "repeat": (FormatReader._repeat, ("min", "max", "content")),
}
"""What reads each format, and its members besides its type.

Others are refused: one may be misspelled.
"""


def _check_members(form: Mapping[str, Any], kind: str, where: str) -> None:
    members = _FORMATS[kind][1]
    unknown = sorted(str(name) for name in form if name not in ("type", *members))
    if unknown:
        raise GrammarError(
            f"structural tag, {where}: {kind} has no member {clip(unknown[0])}; known: {', '.join(members)}"
        )


def _flag(form: Mapping[str, Any], key: str, where: str, *, default: bool = False) -> bool:
    value = form.get(key, default)
    if not isinstance(value, bool):
        raise GrammarError(f"structural tag, {where}/{key} is {clip(value)}; expected true or false")
    return value


def _budget(form: Mapping[str, Any], key: str, where: str, largest: int = MOST_TOKENS) -> int | None:
    most = form.get(key)
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or not 0 <= most <= largest):
        raise GrammarError(f"structural tag, {where}/{key} is {clip(most)}; expected 0 to {largest:,}")
    return most


def _tokens(form: Mapping[str, Any], key: str, where: str) -> tuple[int | str, ...]:
    value = form.get(key, [])
    if not isinstance(value, list | tuple):
        raise GrammarError(f"structural tag, {where}/{key} is {clip(value)}; expected a list of tokens")
    for one in value:
        check_token(one, f"structural tag, {where}/{key}: a token")
    return tuple(value)


def _text(form: Mapping[str, Any], key: str, where: str) -> str:
    value = form.get(key)
    if not isinstance(value, str):
        raise GrammarError(f"structural tag, {where}/{key} is {a_type(value)}; expected a string")
    return value


def _texts(form: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    value = form.get(key, [])
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise GrammarError(f"structural tag, {where}/{key} is {clip(value)}; expected a list of strings")
    if key == "excludes" and "" in value:
        at = f"{where}/{key}/{value.index('')}"
        raise GrammarError(
            f"structural tag, {at} is empty, and every text holds it; take it out, or give what to exclude"
        )
    return tuple(value)


def _list(form: Mapping[str, Any], key: str, where: str) -> list[Any]:
    value = form.get(key)
    if not isinstance(value, list | tuple):
        raise GrammarError(f"structural tag, {where}/{key} is {a_type(value)}; expected a list")
    return list(value)
