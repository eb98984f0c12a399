"""Tools as chat APIs list them: the texts in which a model calls them.

A list of tools becomes the values of a structural tag, whose contents are languages that were read
here: so errors tell where in the list something is wrong.

Source: OpenAI's API reference, the `tools` and `tool_choice` of chat completions and responses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from maskwright.analysis.arguments import a_type, clip, need_type
from maskwright.analysis.composition.compose import Composition, compose, read_composition
from maskwright.analysis.composition.structural_tags import FormatReader
from maskwright.analysis.composition.structural_tags_host import HostRules, without
from maskwright.analysis.errors import GrammarError, MaskwrightError, SchemaError
from maskwright.analysis.fronts import detect, parse_llguidance
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.loading.lark_loader import parse_grammar
from maskwright.analysis.loading.names import DIRECTIVE
from maskwright.analysis.regex.dfa import intersect
from maskwright.analysis.schema.load import load_schema
from maskwright.analysis.schema.text_patterns import Regex, load_regex

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_FREE = {"type": "any_text"}
_KNOWN = {
    "function": ("name", "description", "parameters", "strict"),
    "custom": ("name", "description", "format"),
}
Read = TypeVar("Read")


class _Tool(NamedTuple):
    """A tool that was read. where : its JSON pointer. content : a format, or a language."""

    kind: str
    name: str
    where: str
    content: Any


def read_tools(
    tools: str | Sequence[Mapping[str, Any]],
    *,
    begin: str,
    end: str,
    choice: str | Mapping[str, Any] = "auto",
    custom: Literal["json", "raw"] = "json",
    custom_begin: str | None = None,
    custom_end: str | None = None,
    triggers: Sequence[str] | None = None,
    separator: str | None = "\n",
    whitespace: str | int = "any",
) -> Composition:
    r"""The texts in which a model calls tools, for `build_store`.

    tools : a list of tools, or its JSON text, as chat completions or responses have them:
        ``{"type": "function", "function": {"name": ..., "parameters": SCHEMA}}`` or
        ``{"type": "function", "name": ..., "parameters": SCHEMA}``, and likewise ``"custom"`` with
        a `format`. Functions without parameters take ``{}``. `strict` changes nothing: arguments
        follow the schema, in its order of members.
    begin, end : what stands before and behind a call's arguments. ``{name}`` in them is the tool's
        name.
    choice : "auto" for free text around and between any number of calls; "required" for calls
        alone, at least one; "none" for free text alone; a tool's name, or a `tool_choice` that
        names one, for one call of it.
    custom : the input of a custom tool: "json" as ``{"input": "..."}``, or "raw" as it is.
    custom_begin, custom_end : in place of `begin` and `end` for custom tools.
    triggers : what free text must not hold. Each `begin` begins with one of them. By default what
        stands there before the name, up to the end of its first line.
    separator : what stands between calls where free text may not; None: there is at most one call.
    whitespace : what may stand in JSON, as for `load_schema`.

    A custom tool's grammar is a regular expression, as `load_regex` reads it, or Lark (llguidance's
    dialect of it too). It opens no files. A raw input that is text or of a regular expression does
    not hold the `end`; that of a grammar may, so that it can be cut in several ways.

    Raises: GrammarError for what is malformed, with its JSON pointer in the tools; and for their
        schemas and grammars as `load_schema`, `load_regex` and `parse_grammar`, a SchemaError's
        `pointer` leading from the top of the tools.

    Example:
        >>> read_tools([{"type": "function", "name": "now"}], begin="<{name}>", end="</{name}>")
        <Composition tools: TEXT_1, PART_0>
    """
    templates = {
        "function": (_template("begin", begin), _template("end", end)),
        "custom": (
            _template("custom_begin", begin if custom_begin is None else custom_begin),
            _template("custom_end", end if custom_end is None else custom_end),
        ),
    }
    if not isinstance(custom, str) or custom not in ("json", "raw"):
        raise GrammarError(f"custom is {clip(custom)}; expected 'json' or 'raw'")
    if separator is not None:
        _template("separator", separator)
    found: list[_Tool] = []
    for i, values in enumerate(_listed(tools)):
        tool = _tool(values, f"/{i}", whitespace, templates["custom"][1] if custom == "raw" else None)
        if any(one.name == tool.name for one in found):
            raise GrammarError(f"tools, {tool.where}/name: a tool before has the name {clip(tool.name)} too")
        found.append(tool)
    called, mode = _chosen(found, choice)
    tags = []
    for tool in called:
        first, last = (text.replace("{name}", tool.name) for text in templates[tool.kind])
        tags.append({"type": "tag", "begin": first, "content": tool.content, "end": last})
        if any(one["begin"] == first for one in tags[:-1]):
            raise GrammarError(
                f"tools, {tool.where}: another tool's calls begin with {clip(first)} too; put {{name}} into begin"
            )
    kinds = sorted({tool.kind for tool in called}, reverse=True)
    form = _form(mode, tags, [templates[kind][0] for kind in kinds], triggers, separator)
    host = HostRules()
    return compose(host.grammar(FormatReader(host, whitespace, True).read(form, "", ())), host.parts, name="tools")


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


def _template(what: str, value: Any) -> str:
    need_type(what, value, str, "a str, in which {name} is the tool's name", GrammarError)
    return _unicode(value, what)


def _unicode(value: str, what: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise GrammarError(f"{what} holds half a surrogate pair, which no text has") from None
    return value


def _listed(tools: Any) -> list[Any]:
    """The values of a list of tools."""
    if isinstance(tools, str):
        try:
            tools = json.loads(tools)
        except (ValueError, RecursionError) as error:
            raise GrammarError(f"the tools are no JSON: {error}") from error
    if not isinstance(tools, list | tuple) or not tools:
        raise GrammarError(f"the tools are {clip(tools)}; expected a list of at least one tool")
    return list(tools)


def _tool(values: Any, where: str, whitespace: str | int, raw_end: str | None) -> _Tool:
    """A tool. raw_end : what ends a raw input; None for inputs in JSON."""
    kind, fields, where = _fields(values, where)
    if unknown := sorted(str(key) for key in fields if key not in _KNOWN[kind]):
        raise GrammarError(f"tools, {where}: {clip(unknown[0])} is not known; expected {', '.join(_KNOWN[kind])}")
    name = fields.get("name")
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise GrammarError(
            f"tools, {where}/name is {clip(name)}; expected a name of at most 128 letters, digits, underscores, hyphens and dots"
        )
    if not isinstance(fields.get("description"), str | None):
        raise GrammarError(f"tools, {where}/description is {a_type(fields['description'])}; expected a string")
    content = (
        _arguments(fields, where, whitespace) if kind == "function" else _input(fields, where, whitespace, raw_end)
    )
    return _Tool(kind, name, where, content)


def _fields(values: Any, where: str) -> tuple[str, Mapping[str, Any], str]:
    """The kind of a tool, what is said of it, and the pointer of that."""
    if not isinstance(values, Mapping):
        raise GrammarError(f"tools, {where} is {a_type(values)}; expected an object")
    kind = values.get("type")
    if not isinstance(kind, str) or kind not in _KNOWN:
        raise GrammarError(f"tools, {where}/type is {clip(kind)}; expected 'function' or 'custom'")
    if kind not in values:
        return kind, {key: value for key, value in values.items() if key != "type"}, where
    if more := sorted(str(key) for key in values if key not in ("type", kind)):
        raise GrammarError(f"tools, {where}: {clip(more[0])} stands beside {kind}; expected it inside")
    if not isinstance(values[kind], Mapping):
        raise GrammarError(f"tools, {where}/{kind} is {a_type(values[kind])}; expected an object")
    return kind, values[kind], f"{where}/{kind}"


def _arguments(fields: Mapping[str, Any], where: str, whitespace: str | int) -> Any:
    """The language of a function's arguments."""
    if not isinstance(fields.get("strict"), bool | None):
        raise GrammarError(f"tools, {where}/strict is {clip(fields['strict'])}; expected true or false")
    schema = fields.get("parameters")
    if schema is None:
        schema = {"type": "object", "additionalProperties": False}
    where = f"{where}/parameters"
    if not isinstance(schema, Mapping):
        raise GrammarError(f"tools, {where} is {a_type(schema)}; expected the schema of an object")
    if schema.get("type", "object") != "object":
        raise GrammarError(f"tools, {where}/type is {clip(schema['type'])}; expected 'object': arguments are an object")
    values = {**schema, "type": "object"}
    return _reading(where, lambda: load_schema(values, whitespace=whitespace, key_order="schema"))


def _input(fields: Mapping[str, Any], where: str, whitespace: str | int, raw_end: str | None) -> Any:
    """The language of a custom tool's input, or its format."""
    form = fields.get("format")
    where = f"{where}/format"
    language = None if form is None else _language(form, where)
    if raw_end is not None:
        if language is None:
            return _FREE
        return _reading(where, lambda: _ending(language, raw_end)) if isinstance(language, Regex) else language
    text = {"type": "string"}
    host = {"type": "object", "properties": {"input": text}, "required": ["input"], "additionalProperties": False}
    schema = load_schema(host, whitespace=whitespace)
    if language is None:
        return schema
    return _reading(where, lambda: compose(schema, {"/properties/input": language}))


def _ending(language: Regex, end: str) -> Regex:
    """The texts of a pattern that do not hold an end."""
    if not end:
        return language
    kept = intersect(language.automaton, without((end,)))
    if kept.is_empty:
        raise GrammarError(f"all texts of the pattern hold {clip(end)}, which ends the input")
    return Regex(language.name, kept)


def _language(form: Any, where: str) -> Grammar | Composition | Regex | None:
    """The language of a custom tool's format; None for any text."""
    kind = form.get("type") if isinstance(form, Mapping) else None
    if not isinstance(form, Mapping) or kind not in ("text", "grammar"):
        raise GrammarError(f'tools, {where} is {clip(form)}; expected {{"type": "text"}} or {{"type": "grammar", ...}}')
    known: tuple[str, ...] = ("type",)
    if kind == "grammar":
        known = ("type", "grammar") if "grammar" in form else ("type", "syntax", "definition")
    said: Any = form
    if more := sorted(str(key) for key in form if key not in known):
        raise GrammarError(f"tools, {where}: {clip(more[0])} is not known; expected {', '.join(known)}")
    if kind == "text":
        return None
    if "grammar" in form:
        said, where = form["grammar"], f"{where}/grammar"
        if not isinstance(said, Mapping) or (
            more := sorted(str(key) for key in said if key not in ("syntax", "definition"))
        ):
            raise GrammarError(f"tools, {where} is {clip(said)}; expected an object of syntax and definition")
    syntax, definition = said.get("syntax"), said.get("definition")
    if not isinstance(syntax, str) or syntax not in ("lark", "regex"):
        raise GrammarError(f"tools, {where}/syntax is {clip(syntax)}; expected 'lark' or 'regex'")
    where = f"{where}/definition"
    if not isinstance(definition, str):
        raise GrammarError(f"tools, {where} is {a_type(definition)}; expected a string")
    _unicode(definition, f"tools, {where}")
    return _reading(where, lambda: load_regex(definition) if syntax == "regex" else _lark(definition))


def _lark(definition: str) -> Grammar | Composition:
    """The grammar of a definition, which is never taken for a path."""
    text = definition + "\n"
    if detect(text) == "llguidance":
        found = parse_llguidance(text, "<definition>")
    elif DIRECTIVE.search(text):
        return read_composition(text, name="<definition>", paths=False)
    else:
        found = parse_grammar(text, name="<definition>")
    if found.lexing == "nfa":
        raise GrammarError(
            "the grammar asks for lexing 'nfa', which parts do not have; ask for 'contextual' or 'longest'"
        )
    return found


def _reading(where: str, read: Callable[[], Read]) -> Read:
    """What `read` returns. Its errors get the pointer of the place."""
    try:
        return read()
    except MaskwrightError as error:
        error.args = (f"tools, {where}: {error}", *error.args[1:])
        if isinstance(error, SchemaError):
            error.pointer = where + error.pointer
        raise


def _chosen(tools: list[_Tool], choice: Any) -> tuple[list[_Tool], str]:
    """The tools that may be called, and how: see `_form`."""
    if isinstance(choice, str):
        if choice in ("auto", "required", "none"):
            return tools, choice
        found = [tool for tool in tools if tool.name == choice]
    else:
        kind, fields, _ = _fields(choice, "choice") if isinstance(choice, Mapping) else ("", {}, "")
        found = [tool for tool in tools if (tool.kind, tool.name) == (kind, fields.get("name"))]
    if not found:
        names = ", ".join(tool.name for tool in tools[:12])
        raise GrammarError(f"choice is {clip(choice)}; expected 'auto', 'required', 'none' or a tool: {names}")
    return found, "one"


__all__ = ["read_tools"]
