"""Single tools of a list of tools: their names, and the languages of what they take."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias, TypeVar

from maskwright.analysis.arguments import a_type, clip, need_type
from maskwright.analysis.composition.compose import Composition, compose, in_json_string
from maskwright.analysis.composition.structural_tags_host import HostRules, characters, space_part, without
from maskwright.analysis.errors import GrammarError, MaskwrightError, SchemaError
from maskwright.analysis.fronts import parse_llguidance
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.loading.lark_loader import parse_grammar
from maskwright.analysis.regex.dfa import intersect
from maskwright.analysis.schema.load import JsonSchema, read_schema
from maskwright.analysis.schema.spacing import CLOSES, GOES_ON
from maskwright.analysis.schema.style import Style
from maskwright.analysis.schema.text_patterns import Regex, load_regex

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_KNOWN = {
    "function": ("name", "description", "parameters", "strict"),
    "custom": ("name", "description", "format"),
}
_SCHEMAS = ("parameters", "input_schema", "inputSchema")
"""What a tool calls the schema of its arguments: in OpenAI's APIs, in Anthropic's, and in MCP."""
_FORMS = (
    'an object of the type "function" or "custom", as OpenAI\'s APIs have them, {"name": ..., "input_schema": ...} '
    'as Anthropic\'s has, or {"name": ..., "inputSchema": ...} as MCP has'
)
_ANY_TEXT = r"[\s\S]*"
_OPTIONS = re.compile(r"^[ \t]*//[ \t]*maskwright:", re.MULTILINE)
Language: TypeAlias = Grammar | JsonSchema | Composition | Regex
Read = TypeVar("Read")


class Tool(NamedTuple):
    """A tool that was read.

    kind, name : "function" or "custom", and its name.
    where : where it stands, for messages.
    content : the language of what it takes; None for any text up to what ends a call.
    """

    kind: str
    name: str
    where: str
    content: Language | None


def read_tool(values: Any, where: str, style: Style, raw_end: str | None) -> Tool:
    """A tool.

    where : where it stands, for messages.
    style : of JSON.
    raw_end : what ends a custom tool's input that stands there as it is, with ``{name}`` for the
        name; None for inputs in JSON.

    Raises: GrammarError for what is malformed; and as the readers of its schema or grammar.
    """
    kind, fields, where = kind_and_fields(values, where)
    name = fields.get("name")
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise GrammarError(
            f"{where}/name is {clip(name)}; expected a name of at most 128 letters, digits, underscores, hyphens and dots"
        )
    if not isinstance(fields.get("description"), str | None):
        raise GrammarError(f"{where}/description is {a_type(fields['description'])}; expected a string")
    if kind == "function":
        return Tool(kind, name, where, _arguments(fields, where, style))
    end = None if raw_end is None else raw_end.replace("{name}", name)
    return Tool(kind, name, where, _input(fields, where, style, end))


def kind_and_fields(values: Any, where: str) -> tuple[str, Mapping[str, Any], str]:
    """The kind of a tool, what is said of it, and where. Raises: GrammarError for other values."""
    kind = values.get("type") if isinstance(values, Mapping) else ""
    schemas = [key for key in _SCHEMAS if isinstance(values, Mapping) and key in values]
    if len(schemas) > 1:
        raise GrammarError(f"{where} has both {schemas[0]} and {schemas[1]}; expected one schema of its arguments")
    if kind in (None, "function", "custom") and schemas and schemas[0] != "parameters":
        return "function", values, where  # what else stands there says nothing of calls
    if kind is None:
        kind = next((one for one in _KNOWN if one in values), "custom" if "format" in values else "function")
        kind = kind if kind in values or "name" in values else None
    if not isinstance(kind, str) or kind not in _KNOWN:
        raise GrammarError(f"{where} is {clip(values)}; expected {_FORMS}")
    if kind not in values:
        return kind, _object(values, ("type", *_KNOWN[kind]), where), where
    inside = _object(values, ("type", kind), where)[kind]
    return kind, _object(inside, _KNOWN[kind], f"{where}/{kind}"), f"{where}/{kind}"


def _object(values: Any, known: tuple[str, ...], where: str) -> Mapping[str, Any]:
    """The values of an object that has no other members than the known ones."""
    if not isinstance(values, Mapping):
        raise GrammarError(f"{where} is {a_type(values)}; expected an object")
    for key in values:
        if key not in known:
            raise GrammarError(f"{where}: {clip(key)} is not known there; expected {', '.join(known)}")
    return values


def _arguments(fields: Mapping[str, Any], where: str, style: Style) -> JsonSchema:
    """The language of a function's arguments."""
    if not isinstance(fields.get("strict"), bool | None):
        raise GrammarError(f"{where}/strict is {clip(fields['strict'])}; expected true or false")
    key = next((key for key in _SCHEMAS if key in fields), "parameters")
    schema = fields.get(key)
    if schema is None:
        schema = {"type": "object", "additionalProperties": False}
    where = f"{where}/{key}"
    if not isinstance(schema, Mapping):
        raise GrammarError(f"{where} is {a_type(schema)}; expected the schema of an object")
    if schema.get("type", "object") != "object":
        raise GrammarError(f"{where}/type is {clip(schema['type'])}; expected 'object': arguments are an object")
    values = {**schema, "type": "object"}
    return _reading(where, lambda: read_schema(values, style=style))


def _input(fields: Mapping[str, Any], where: str, style: Style, raw_end: str | None) -> Language | None:
    """The language of a custom tool's input; None for any text.

    style : its escapes are those of the key `input`. The input itself may have all.
    """
    said = fields.get("format")
    where = f"{where}/format"
    language = None if said is None else _language(said, where)
    if raw_end is not None:
        return _reading(where, lambda: _ending(language, raw_end)) if isinstance(language, Regex) else language
    text = {"type": "string"}
    host = {"type": "object", "properties": {"input": text}, "required": ["input"], "additionalProperties": False}
    schema = read_schema(host, style=style)
    if style.escapes == "minimal":
        inside = load_regex(_ANY_TEXT) if language is None else language
        return _reading(where, lambda: _with_plain_key(schema, inside))
    if language is None:
        return schema
    return _reading(where, lambda: compose(schema, {"/properties/input": language}))


def _with_plain_key(schema: JsonSchema, language: Language) -> Composition:
    """The objects ``{"input": TEXT}`` whose key has no escapes. schema : has their white space."""
    rules = HostRules()
    spacing = schema.texts.spacing
    around = space_part(rules, spacing.around())
    opened = space_part(rules, spacing.language(spacing.opened, GOES_ON, 1))
    closing = space_part(rules, spacing.language(0, CLOSES, 1))
    colon = [
        space_part(rules, spacing.language(one, GOES_ON, 1)) for one in (spacing.before_colon, spacing.behind_colon)
    ]
    text = rules.part("input", in_json_string(language))
    pieces = (
        around,
        characters("{"),
        opened,
        characters('"input"'),
        colon[0],
        characters(":"),
        colon[1],
        text,
        closing,
        characters("}"),
        around,
    )
    return rules.composition(sum(pieces, ()), "input")


def _ending(language: Regex, end: str) -> Regex:
    """The texts of a pattern that do not hold an end."""
    if not end:
        return language
    kept = intersect(language.automaton, without((end,)))
    if kept.is_empty:
        raise GrammarError(f"all texts of the pattern hold {clip(end)}, which ends the input")
    return Regex(language.name, kept)


def _language(form: Any, where: str) -> Grammar | Regex | None:
    """The language of a custom tool's format; None for any text."""
    kind = form.get("type") if isinstance(form, Mapping) else None
    if kind == "text":
        _object(form, ("type",), where)
        return None
    if kind != "grammar":
        raise GrammarError(f'{where} is {clip(form)}; expected {{"type": "text"}} or {{"type": "grammar", ...}}')
    if "grammar" in form:
        form, where = _object(form, ("type", "grammar"), where)["grammar"], f"{where}/grammar"
        _object(form, ("syntax", "definition"), where)
    else:
        _object(form, ("type", "syntax", "definition"), where)
    syntax, definition = form.get("syntax"), form.get("definition")
    if not isinstance(syntax, str) or syntax not in ("lark", "regex"):
        raise GrammarError(f"{where}/syntax is {clip(syntax)}; expected 'lark' or 'regex'")
    where = f"{where}/definition"
    text = unicode_text(where, definition, "a string")
    return _reading(where, lambda: load_regex(text) if syntax == "regex" else _lark(text))


def _lark(definition: str) -> Grammar:
    """The grammar of a definition, which is never taken for a path."""
    if _OPTIONS.search(definition) is None:
        return parse_llguidance(definition, "<definition>")
    found = parse_grammar(definition, name="<definition>")
    if found.lexing == "nfa":
        raise GrammarError(
            "the grammar asks for lexing 'nfa', which parts do not have; ask for 'contextual' or 'longest'"
        )
    return found


def unicode_text(what: str, value: Any, expected: str) -> str:
    """A str without half surrogate pairs. Raises: GrammarError for other values."""
    need_type(what, value, str, expected, GrammarError)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise GrammarError(f"{what} holds half a surrogate pair, which no text has") from None
    return str(value)


def _reading(where: str, read: Callable[[], Read]) -> Read:
    """What `read` returns. Its errors say the place."""
    try:
        return read()
    except MaskwrightError as error:
        error.args = (f"{where}: {error}", *error.args[1:])
        if isinstance(error, SchemaError):
            error.pointer = where.removeprefix("tools, ") + error.pointer
        raise
