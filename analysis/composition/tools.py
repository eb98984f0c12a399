"""Tools as chat APIs list them: the texts in which a model calls them.

A list of tools becomes the values of a structural tag, whose contents are languages that were read
already: so errors tell where in the list something is wrong.

Source: OpenAI's API reference, the `tools` and `tool_choice` of chat completions and responses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from maskwright.analysis.arguments import a_type, clip, need_type
from maskwright.analysis.composition.compose import Composition, compose, in_json_string
from maskwright.analysis.composition.structural_tags import FormatReader
from maskwright.analysis.composition.structural_tags_host import HostRules, characters
from maskwright.analysis.errors import GrammarError, MaskwrightError, SchemaError, UnknownNameError
from maskwright.analysis.fronts import parse_llguidance
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.grammar.lark_files import suggestion
from maskwright.analysis.loading.lark_loader import parse_grammar
from maskwright.analysis.loading.names import meant
from maskwright.analysis.nesting import on_own_stack, read_json
from maskwright.analysis.regex.dfa import intersect
from maskwright.analysis.regex.whole import without
from maskwright.analysis.schema.load import JsonSchema, read_schema
from maskwright.analysis.schema.shapes import Escapes
from maskwright.analysis.schema.spacing import CLOSES
from maskwright.analysis.schema.style import KeyOrder, Style, StyleName, read_style
from maskwright.analysis.schema.text_patterns import Regex, load_regex

Family = Literal["hermes", "qwen", "llama", "llama-tag"]

_HERMES = ('<tool_call>\n{"name": "{name}", "arguments": ', "}\n</tool_call>")
_FAMILIES: dict[str, tuple[str, str]] = {
    "hermes": _HERMES,
    "qwen": _HERMES,
    "llama": ('{"name": "{name}", "parameters": ', "}"),
    "llama-tag": ("<function={name}>", "</function>"),
}
"""What stands before and behind a call's arguments, as the families' chat templates write it."""
_FREE = {"type": "any_text"}
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
_TEMPLATE = "a str, in which {name} is the tool's name"


@on_own_stack
def read_tools(
    tools: str | Sequence[Mapping[str, Any]],
    *,
    family: Family = "hermes",
    begin: str | None = None,
    end: str | None = None,
    choice: str | Mapping[str, Any] = "auto",
    custom: Literal["json", "raw"] = "json",
    custom_begin: str | None = None,
    custom_end: str | None = None,
    triggers: Sequence[str] | None = None,
    separator: str | None = "\n",
    style: StyleName | Style = "natural",
    whitespace: str | int | None = None,
    escapes: Escapes | None = None,
    key_order: KeyOrder = "schema",
) -> Composition:
    r"""The texts in which a model calls tools, for `build_store`.

    tools : a list of tools, or its JSON text, as chat completions or responses have them:
        ``{"type": "function", "function": {"name": ..., "parameters": SCHEMA}}`` or
        ``{"type": "function", "name": ..., "parameters": SCHEMA}``, and likewise ``"custom"`` with
        a `format`; or as Anthropic's API and MCP have them: ``{"name": ..., "input_schema":
        SCHEMA}``, ``{"name": ..., "inputSchema": SCHEMA}``. The type may be left out. Functions
        without parameters take ``{}``. `strict` changes nothing: arguments follow the schema.
    family : how the model writes a call, where `begin` and `end` do not say: "hermes", and "qwen",
        which is the same, as Hermes 2 and 3, Qwen 2.5 and Qwen 3 do; "llama" as Llama 3.1 to 3.3;
        "llama-tag" as these do for tools of one's own (``<function=NAME>...</function>``). Families
        whose marks are special tokens, such as Mistral's, need `read_structural_tag`.
    begin, end : what stands before and behind a call's arguments. ``{name}`` in them is the tool's
        name. Both or neither.
    choice : "auto" for free text around and between any number of calls; "required" for calls
        alone, at least one; "none" for free text alone; a tool's name, or a `tool_choice` that
        names one, for one call of it.
    custom : the input of a custom tool: "json" as ``{"input": "..."}``, or "raw" as it is.
    custom_begin, custom_end : in place of `begin` and `end` for custom tools.
    triggers : what free text must not hold. Each `begin` begins with one of them. By default what
        stands there before the name, up to the end of its first line.
    separator : what stands between calls where free text may not; None: there is at most one call.
    style : how JSON is written, as for `load_schema`; whitespace and escapes say otherwise of a
        part of it. But with "any" escapes, names of arguments in ASCII can be forced tokens. The
        input of a custom tool may have all escapes.
    key_order : of the arguments' members, as for `load_schema`: by default the schema's.

    A custom tool's grammar is a regular expression, as `load_regex` reads it, or Lark in the
    dialect of llguidance (`parse_llguidance`), which is OpenAI's; with an option such as
    ``// maskwright: lexing = contextual`` it is Lark as `parse_grammar` reads it. It opens no
    files. A raw input that is text or of a regular expression does not hold the `end`; that of a
    grammar may, and then the text can be cut in several ways.

    Raises: UnknownNameError for a family or a choice that there is none of; GrammarError for what
        is malformed, with its JSON pointer in the tools; and for their schemas and grammars as
        `load_schema`, `load_regex` and the readers of grammars. (A SchemaError's `pointer` leads
        from the top of the tools.)

    Example:
        >>> read_tools([{"type": "function", "name": "now"}])
        <Composition tools: now, free text>
    """
    begin, end = _template(family, begin, end)
    templates = {
        "function": (_unicode_text("begin", begin, _TEMPLATE), _unicode_text("end", end, _TEMPLATE)),
        "custom": (
            _unicode_text("custom_begin", begin if custom_begin is None else custom_begin, _TEMPLATE),
            _unicode_text("custom_end", end if custom_end is None else custom_end, _TEMPLATE),
        ),
    }
    if not isinstance(custom, str) or custom not in ("json", "raw"):
        raise GrammarError(f"custom is {clip(custom)}; expected 'json' or 'raw'")
    written = read_style(style, whitespace, key_order, escapes)
    if separator is not None:
        _unicode_text("separator", separator, "a str or None")
    found: list[_Tool] = []
    for i, values in enumerate(_listed(tools)):
        tool = _read_tool(
            values,
            f"tools, /{i}",
            written,
            templates["custom"][1] if custom == "raw" else None,
        )
        if any(one.name == tool.name for one in found):
            raise GrammarError(f"{tool.where}/name: a tool before has the name {clip(tool.name)} too")
        found.append(tool)
    called, mode = _chosen(found, choice)
    tags = []
    for tool in called:
        first, last = (text.replace("{name}", tool.name) for text in templates[tool.kind])
        if tool.content is None and not last and mode != "one":
            raise GrammarError(f"{tool.where}: nothing ends a raw input that may be any text; give custom_end")
        tags.append(
            {"type": "tag", "begin": first, "content": _FREE if tool.content is None else tool.content, "end": last}
        )
        if any(one["begin"] == first for one in tags[:-1]):
            raise GrammarError(
                f"{tool.where}: another tool's calls begin with {clip(first)} too; put {{name}} into begin"
            )
    kinds = sorted({tool.kind for tool in called}, reverse=True)
    form = _form(mode, tags, [templates[kind][0] for kind in kinds], triggers, separator)
    host = HostRules()
    made = host.composition(FormatReader(host, written).read(form, ""), "tools")
    shown = [next((tool.name for tool in called if tool.content is part.inner), "free text") for part in made.parts]
    return replace(made, parts=tuple(replace(part, name=name) for part, name in zip(made.parts, shown, strict=True)))


def _template(family: Any, begin: Any, end: Any) -> tuple[Any, Any]:
    """What stands around a call's arguments."""
    if family not in _FAMILIES:
        raise UnknownNameError(
            f"no family is named {clip(family)}{suggestion(str(family)[:60], list(_FAMILIES))}; or give begin and end"
        )
    if (begin is None) != (end is None):
        raise GrammarError(f"{'end' if end is None else 'begin'} is missing: give both begin and end, or name a family")
    return _FAMILIES[family] if begin is None else (begin, end)


def _form(
    mode: str, tags: list[dict[str, Any]], begins: list[str], triggers: Sequence[str] | None, separator: str | None
) -> dict[str, Any]:
    """The format of a structural tag. mode : "auto", "required", "none", or "one" for one tag."""
    if mode == "one":
        return tags[0]
    if mode == "required":
        return {
            "type": "tags_with_separator",
            "tags": tags,
            "separator": separator or "",
            "at_least_one": True,
            "stop_after_first": separator is None,
        }
    found = _triggers(tags, begins, triggers)
    if mode == "none":
        return {**_FREE, "excludes": found}
    return {"type": "triggered_tags", "triggers": found, "tags": tags, "stop_after_first": separator is None}


def _triggers(tags: list[dict[str, Any]], begins: list[str], said: Sequence[str] | None) -> list[str]:
    """What free text must not hold: none of it begins with another."""
    if said is None:
        triggers = [re.match(r"\n*[^\n]*", begin.partition("{name}")[0])[0] for begin in begins]  # type: ignore[index]
        hint = "calls begin with the tool's name, so free text cannot end before them: let begin begin with a mark"
    else:
        if isinstance(said, str) or not isinstance(said, Sequence) or not all(isinstance(one, str) for one in said):
            raise GrammarError(f"triggers is {clip(said)}; expected a list of strings")
        triggers = list(said)
        hint = "a trigger is empty, so there is no free text: take it out"
    if "" in triggers:
        raise GrammarError(hint)
    found = [one for one in dict.fromkeys(triggers) if not any(one != of and one.startswith(of) for of in triggers)]
    for tag in tags:
        if not tag["begin"].startswith(tuple(found)):
            raise GrammarError(
                f"calls that begin with {clip(tag['begin'])} begin with none of the triggers {clip(found)}"
            )
    return found


def _chosen(tools: list[_Tool], choice: Any) -> tuple[list[_Tool], str]:
    """The tools that may be called, and how: see `_form`."""
    if isinstance(choice, str):
        if choice in ("auto", "required", "none"):
            return tools, choice
        found = [tool for tool in tools if tool.name == choice]
    elif isinstance(choice, Mapping) and choice.get("type") == "tool":  # Anthropic's
        found = [tool for tool in tools if tool.name == choice.get("name")]
    else:
        kind, fields, _ = _kind_and_fields(choice, "choice") if isinstance(choice, Mapping) else ("", {}, "")
        found = [tool for tool in tools if (tool.kind, tool.name) == (kind, fields.get("name"))]
    if not found:
        known = ["auto", "required", "none", *(tool.name for tool in tools[:12])]
        shown = choice if isinstance(choice, str) else ""
        raise UnknownNameError(f"choice is {clip(choice)}, which names no choice{suggestion(shown, known)}")
    return found, "one"


def _listed(tools: Any) -> list[Any]:
    """The values of a list of tools."""
    if isinstance(tools, str):
        try:
            tools = read_json(tools)
        except ValueError as error:
            raise GrammarError(f"the tools are no JSON: {error}{meant(tools, 'read_tools')}") from error
    if not isinstance(tools, list | tuple) or not tools:
        is_one = isinstance(tools, Mapping) and not tools.keys().isdisjoint(("name", "function", "custom"))
        hint = ": write [tool]" if is_one else meant(tools, "read_tools")
        raise GrammarError(f"the tools are {clip(tools)}; expected a list of at least one tool{hint}")
    if all(isinstance(tool, str) for tool in tools):
        raise GrammarError(f"the tools are texts; expected objects{meant(tools, 'read_tools')}")
    return list(tools)


# -- single tools: their names, and the languages of what they take


class _Tool(NamedTuple):
    """A tool that was read.

    kind, name : "function" or "custom", and its name.
    where : where it stands, for messages.
    content : the language of what it takes; None for any text up to what ends a call.
    """

    kind: str
    name: str
    where: str
    content: Language | None


def _read_tool(values: Any, where: str, style: Style, raw_end: str | None) -> _Tool:
    """A tool.

    where : where it stands, for messages.
    style : of JSON.
    raw_end : what ends a custom tool's input that stands there as it is, with ``{name}`` for the
        name; None for inputs in JSON.

    Raises: GrammarError for what is malformed; and as the readers of its schema or grammar.
    """
    kind, fields, where = _kind_and_fields(values, where)
    name = fields.get("name")
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise GrammarError(
            f"{where}/name is {clip(name)}; expected a name of at most 128 letters, digits, underscores, hyphens and dots"
        )
    if not isinstance(fields.get("description"), str | None):
        raise GrammarError(f"{where}/description is {a_type(fields['description'])}; expected a string")
    if kind == "function":
        return _Tool(kind, name, where, _arguments(fields, where, style))
    end = None if raw_end is None else raw_end.replace("{name}", name)
    return _Tool(kind, name, where, _input(fields, where, style, end))


def _kind_and_fields(values: Any, where: str) -> tuple[str, Mapping[str, Any], str]:
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
    around = rules.space(spacing, spacing.outer)
    opened, before_colon, behind_colon = (
        rules.space(spacing, state, level=1) for state in (spacing.opened, spacing.before_colon, spacing.behind_colon)
    )
    begin = around + characters("{") + opened + characters('"input"') + before_colon
    text = characters(":") + behind_colon + rules.part("input", in_json_string(language))
    closed = rules.space(spacing, 0, CLOSES, 1)
    return rules.composition(begin + text + closed + characters("}") + around, "input")


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
    text = _unicode_text(where, definition, "a string")
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


def _unicode_text(what: str, value: Any, expected: str) -> str:
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
