r"""llguidance's Lark dialect with other languages inside: a text to a `Grammar` or a `Composition`.

``%json {...}`` is a JSON schema whose objects keep the order of `properties`, as in llguidance;
``%lark {...}`` and ``@name`` are grammars; ``<|name|>`` is a special token, ``<[5-9]>``, ``<[^5]>``
and ``<[*]>`` are one token of a set; a rule with `max_tokens` ends behind so many. Each is a part
of a composition (`analysis.composition`), whose texts are exact: where a text can be cut into host
and part in several ways, all are followed. So more is allowed here than in llguidance where that
takes one way and drops the others:

- llguidance reads as much into a part as it can: `11z` is no ``%json {"type": "integer"} "1z"``.
- It ignores nothing directly before a part, and behind it what the host ignores, or the part.
- Its JSON strings have the short escapes only (``\n``, ``\"``; not ``\/``, ``\u00e9``), and its
  objects may say one key twice, which ours may not; ``1.0`` is no integer there.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any

from maskwright.analysis.arguments import a_type, clip
from maskwright.analysis.composition import Composition, Inner
from maskwright.analysis.composition.compose import DEEPEST, as_part, of_host
from maskwright.analysis.composition.token_parts import AtMostTokens, TokenParts, token_part
from maskwright.analysis.dialects.x_guidance import read_guided
from maskwright.analysis.errors import GrammarError, LimitError, within
from maskwright.analysis.fronts.assembly import HostGrammar
from maskwright.analysis.fronts.llguidance import host_grammar
from maskwright.analysis.fronts.llguidance_syntax import Atom, read_document
from maskwright.analysis.fronts.reading import Reader
from maskwright.analysis.grammar.grammar import Grammar, Lexing
from maskwright.analysis.grammar.lark_files import read_file, suggestion
from maskwright.analysis.nesting import on_own_stack, read_json
from maskwright.analysis.schema.load import JsonSchema
from maskwright.analysis.schema.style import read_style
from maskwright.analysis.schema.text_patterns import Regex

_HOW = 'give it as grammars={...}, or send a list: {"grammars": [{"lark_grammar": ...}, {"name": ..., "lark_grammar": ...}]}'
_STYLE = read_style("any", key_order="schema")
MOST_GRAMMARS = 1000
"""BOUND: the grammars of a list."""


@on_own_stack
def read_llguidance(
    source: str | os.PathLike[str] | Mapping[str, Any],
    *,
    name: str = "<llguidance>",
    grammars: Mapping[str, Any] | None = None,
    lexing: Lexing = "contextual",
) -> Grammar | Composition:
    """What a text in llguidance's Lark dialect stands for, for `build_store`.

    source : the text; a path object, of a file with one; or llguidance's list of grammars, as JSON
        text or values: ``{"grammars": [{"lark_grammar": ...}, {"name": ..., "json_schema": ...}]}``
    name : what errors call it.
    grammars : name -> the language of ``@name``: as a part of `compose`, but that a str is a text
        in this dialect.
    lexing : as for `parse_llguidance`.

    Raises: as `parse_llguidance`; GrammarError for ``@name`` that is not known or that leads back
    to itself; SchemaError and others for a part that cannot be read, with its place.

    Example:
        >>> read_llguidance('start: "x=" %json {"type": "integer"}')
        <Composition <llguidance>: %json (1:13)>
    """
    texts: dict[str, Any] = {}
    if isinstance(source, os.PathLike):
        source = read_file(os.fsdecode(source))
    if isinstance(source, Mapping) or (isinstance(source, str) and source.lstrip()[:1] == "{"):
        source, texts = _listed(source, name)
    if grammars is not None:
        if not isinstance(grammars, Mapping) or not all(isinstance(key, str) for key in grammars):
            raise GrammarError(f"the grammars are {a_type(grammars)}; expected a dict: name -> its language")
        texts |= grammars
    return _Reading(texts, lexing).read(source, name)


def is_list_of_grammars(text: str) -> bool:
    """Whether a text is llguidance's JSON of several grammars."""
    return re.match(r'\s*\{\s*"grammars"\s*:', text) is not None


def _listed(source: str | Mapping[str, Any], name: str) -> tuple[Any, dict[str, Any]]:
    """The first grammar of a list, and the others by their names."""
    values: Any = source
    if isinstance(source, str):
        try:
            values = read_json(source)
        except ValueError as error:
            raise GrammarError(f"{name}: this is not JSON, as a list of grammars is: {clip(str(error))}") from error
    found = values.get("grammars") if isinstance(values, Mapping) else None
    if not isinstance(found, list) or not found or len(found) > MOST_GRAMMARS:
        raise GrammarError(f'{name}: expected {{"grammars": [...]}} with 1 to {MOST_GRAMMARS:,} grammars')
    named: dict[str, Any] = {}
    for number, one in enumerate(found):
        if not isinstance(one, Mapping):
            raise GrammarError(f"{name}: grammar {number} is {a_type(one)}; expected an object")
        texts = [one.get("lark_grammar"), one.get("json_schema")]
        if sum(each is not None for each in texts) != 1 or not isinstance(one.get("lark_grammar", ""), str):
            raise GrammarError(f"{name}: grammar {number} has neither lark_grammar, a text, nor json_schema, or both")
        if not isinstance(one.get("json_schema", {}), dict | bool | None):
            raise GrammarError(f"{name}: grammar {number} has as json_schema {a_type(texts[1])}; expected a schema")
        if number == 0:
            named[""] = texts[0] if texts[0] is not None else f"start: %json {json.dumps(texts[1])}"
        if (key := one.get("name")) is not None:
            if not isinstance(key, str) or key in named:
                raise GrammarError(f"{name}: grammar {number} has the name {clip(key)}, no text or not its own")
            named[key] = texts[0] if texts[0] is not None else read_guided(texts[1], _STYLE)
    return named.pop(""), named


class _Reading:
    """The languages of one list of grammars; each is read once."""

    def __init__(self, texts: Mapping[str, Any], lexing: Lexing) -> None:
        self.texts, self.lexing = texts, lexing
        self.known: dict[str, Inner] = {}
        self.under_way: list[str] = []

    def read(self, text: Any, name: str) -> Grammar | Composition:
        """The language of a text."""
        reader = Reader(text, name)
        return self.composed(reader, host_grammar(reader, read_document(reader), self.lexing), 1)

    def composed(self, reader: Reader, host: HostGrammar, depth: int) -> Grammar | Composition:
        """A grammar with its parts. depth : of the text that it stands in, counted from 1."""
        if host.parts and depth > DEEPEST:
            where = "{}:{}:{}".format(reader.name, *reader.place(host.parts[0].at))
            raise LimitError(f"{where}: more than {DEEPEST} grammars stand inside one another; write them flatter")
        return of_host(host, lambda part: self.language(reader, part, depth))

    def language(self, reader: Reader, part: Atom, depth: int) -> Inner | TokenParts:
        """The language of a part."""
        if part.text == "token":
            return token_part(part)
        if part.text == "max_tokens":
            return AtMostTokens(Regex(*part.value[:2]), part.value[2])
        if part.text == "lark":
            return self.composed(reader, host_grammar(reader, part.value, self.lexing), depth + 1)
        if part.text == "grammar":
            return self.named(reader, part)
        if not isinstance(part.value, dict | bool):  # `load_schema` would take a str for the path of a file
            raise reader.error(f"%json is followed by {a_type(part.value)}; expected a schema", part.at)
        with within("{}:{}:{}: %json".format(reader.name, *reader.place(part.at))):
            return read_guided(part.value, _STYLE)

    def named(self, reader: Reader, part: Atom) -> Inner:
        """The language of a grammar that others name."""
        key = str(part.value)
        if key not in self.texts:
            hint = suggestion(key, list(self.texts)) if self.texts else f": {_HOW}"
            raise reader.error(f"no grammar is named {key!r}{hint}", part.at)
        if key in self.under_way:
            raise reader.error(f"grammar @{key} needs itself: {' -> '.join([*self.under_way, key])}", part.at)
        if len(self.under_way) >= DEEPEST:
            raise LimitError(str(reader.error(f"more than {DEEPEST} grammars name one another", part.at)))
        if key not in self.known:
            source = self.texts[key]
            if isinstance(source, str):
                self.under_way.append(key)
                self.known[key] = self.read(source, f"@{key}")
                self.under_way.pop()
            else:
                found = as_part(source)
                if not isinstance(found, Grammar | JsonSchema | Regex | Composition):
                    raise reader.error(f"grammar @{key} is {a_type(found)}; expected a language of texts", part.at)
                self.known[key] = found
        return self.known[key]
