"""The syntax of llguidance's Lark dialect: a text to trees, without meaning.

In: a text. Out: a `Document` with the rules, terminals and directives that we support. What we do
not support is refused here, with its name and place. Other languages inside (``%json``, ``%lark``,
``@name``, special tokens) are atoms of the kind "part".

Source: llguidance, parser/src/lark/lexer.rs and parser.rs; docs/syntax.md.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from maskwright.analysis.fronts.reading import Reader
from maskwright.analysis.nesting import read_json_at

AtomKind = Literal["group", "maybe", "not", "string", "range", "regex", "name", "substring", "words", "part"]


@dataclass(frozen=True, slots=True)
class Atom:
    """One element of a definition.

    at : its offset. text : of a string, what it matches; of a name, the name; of a pattern, its
    flags; of words, the whole; of a part, its kind: json, lark, grammar, token or max_tokens.
    last : of a range, its last character; of tokens, how they are written. ignores_case : of a
    string. span : of a pattern, its offsets. inner : of a group. of : of a negation, what is
    negated. chunks : of a substring. value : of a part, the schema, the `Document`, the name, the
    tokens (as `tokens_of`), or a rule's name, the automaton of its texts and how many tokens they
    have at most.
    """

    kind: AtomKind
    at: int
    text: str = ""
    last: str = ""
    ignores_case: bool = False
    span: tuple[int, int] = (0, 0)
    inner: Alternatives = ()
    of: Atom | None = None
    chunks: tuple[str, ...] = ()
    value: Any = None


class Element(NamedTuple):
    """An element, and how often it stands: most None for any number."""

    atom: Atom
    least: int
    most: int | None


Alternatives = tuple[tuple[tuple[Element, ...], ...], ...]
"""Options; each is one or more sequences, all of which must match (``&``)."""


class Attributes(NamedTuple):
    """What stands in brackets behind a rule's name, as far as it says something of the texts.

    at : its offset. is_lazy : whether the body's shortest text counts. ending : what follows the
    body in the same lexeme, of `stop` or `suffix`. is_stop : whether that is a `stop`. is_one :
    whether the body is one lexeme. most_tokens : how many tokens it has at most; None for any
    number. others : the names of attributes that say nothing of the texts.
    """

    at: int
    is_lazy: bool = False
    ending: Atom | None = None
    is_stop: bool = False
    is_one: bool = False
    most_tokens: int | None = None
    others: tuple[str, ...] = ()


class Definition(NamedTuple):
    """A rule or terminal, and where its name stands."""

    name: str
    at: int
    body: Alternatives
    attributes: Attributes | None = None


@dataclass(slots=True)
class Document:
    """What a text says.

    rules, terminals : by name. ignored : what is ignored. imports : the terminal's name -> the name
    in `common`, and where it stands. initial_skip : whether what is ignored may begin a text.
    skips_once : whether it stands at most once in one place. at : where the text begins.
    """

    rules: dict[str, Definition] = field(default_factory=dict)
    terminals: dict[str, Definition] = field(default_factory=dict)
    ignored: list[Definition] = field(default_factory=list)
    imports: dict[str, tuple[str, int]] = field(default_factory=dict)
    initial_skip: bool = False
    skips_once: bool = False
    at: int = 0


MAX_TOKENS = 1_000_000
"""The most tokens that all ``<[...]>`` of a text may name."""

_BLANKS = re.compile(r"(?:[ \t]+|#[^\n]*|//[^\n]*)*")
_LINES = re.compile(r"(?:[ \t\r\n]+|#[^\n]*|//[^\n]*)*")
_RULE = re.compile(r"!?[_?]?[a-z][_a-z0-9-]*")
_TERMINAL = re.compile(r"_?[A-Z][_A-Z0-9-]*")
_STRING = re.compile(r'"((?:\\(?:["\\/bfnrt]|u[a-fA-F0-9]{4}|x[a-fA-F0-9]{2})|[^"\\\x00-\x1f\x7f])*)"(i?)')
_PATTERN = re.compile(r"/((?:\\.|[^/\\])+)/([imslux]*)", re.DOTALL)
_SPECIAL = re.compile(r"<[^<>\s]+>")
_REFERENCE = re.compile(r"@[a-zA-Z0-9_-]+")
_TOKENS = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_DIRECTIVE = re.compile(r"%[a-z]+")
_ALIAS = re.compile(r"->[ \t]*[!?_]*[a-z][_a-z0-9-]*")
_VBAR = re.compile(r"(?:[ \t\r\n]++|#[^\n]*+|//[^\n]*+)*+\|")
_HEX = re.compile(r"\\(?:x([a-fA-F0-9]{2})|(.))", re.DOTALL)
_WORD = re.compile(r"[a-z_]+")
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{0,9})?")
_PRIORITY = re.compile(r"\.-?[0-9]+")


def read_document(reader: Reader, closing: str = "") -> Document:
    """The definitions and directives of a text.

    closing : what ends the text, for one that stands inside another.

    Raises: GrammarError, with the place, for bad syntax and for what is not supported.
    """
    found = Document(at=reader.at)
    reader.match(_LINES)
    while reader.next and reader.next != closing:
        if reader.next == "%":
            _directive(reader, found)
        else:
            _definition(reader, found)
        reader.match(_BLANKS)
        if reader.next not in ("", "\r", "\n", closing):
            raise reader.error(f"expected the end of the definition or its line, found {reader.found}")
        reader.match(_LINES)
    return found


def _definition(reader: Reader, found: Document) -> None:
    at = reader.at
    name = reader.match(_RULE) or reader.match(_TERMINAL)
    if name is None:
        raise reader.error(f"expected a rule, a terminal or a directive, found {reader.found}")
    is_rule = name.re is _RULE
    if reader.starts("::"):
        raise reader.error(f"a parametric rule is not supported: {name[0]}::...; write out a rule for each value")
    if reader.next == "{":
        raise reader.error(f"a template is not supported, nor is it in llguidance: {name[0]}{{...}}")
    if reader.match(_PRIORITY) is not None:
        raise reader.error(f"a priority is not supported, nor is it in llguidance: of {name[0]}", at)
    reader.match(_BLANKS)
    attributes = _attributes(reader) if is_rule and reader.next == "[" else None
    reader.match(_BLANKS)
    reader.expect(":", f"behind the name {name[0][:60]}")
    plain = name[0].removeprefix("!").removeprefix("?")
    table = found.rules if is_rule else found.terminals
    if plain in table or plain in found.imports:
        what = "rule" if is_rule else "terminal"
        raise reader.error(f"{what} {plain!r} is defined twice", at)
    table[plain] = Definition(plain, at, _alternatives(reader), attributes)


def _attributes(reader: Reader) -> Attributes:
    """The attributes of a rule. Raises GrammarError for what is malformed."""
    found = Attributes(reader.at)
    reader.expect("[", "before the attributes")
    while reader.match(_BLANKS) is not None and not reader.take("]"):
        at = reader.at
        word = reader.match(_WORD)
        key = word[0] if word else ""
        reader.match(_BLANKS)
        if key == "lazy":
            found = found._replace(is_lazy=True)
        elif key == "capture":
            if reader.take("="):
                reader.match(_BLANKS)
                _one_string(reader)
            found = found._replace(others=(*found.others, key))
        elif key in ("stop", "suffix", "stop_capture", "max_tokens", "temperature"):
            reader.expect("=", f"behind {key}")
            reader.match(_BLANKS)
            found = _attribute(reader, found, key, at)
        else:
            known = "capture, lazy, stop, suffix, stop_capture, max_tokens and temperature"
            raise reader.error(
                f"expected an attribute of a rule, which are {known}, found {reader.text[at : at + 20]!r}", at
            )
        reader.match(_BLANKS)
        if not reader.take(",") and reader.next != "]":
            raise reader.error(f"expected a comma or ']' behind the attribute {key}, found {reader.found}")
    return found


def _attribute(reader: Reader, found: Attributes, key: str, at: int) -> Attributes:
    """The attributes with one more, whose value comes next. at : where its name stands."""
    if key == "stop_capture":
        _one_string(reader)
        return found._replace(others=(*found.others, key))
    if key in ("max_tokens", "temperature"):
        number = reader.match(_NUMBER)
        if number is None:
            raise reader.error(f"expected a number behind {key}=, found {reader.found}")
        if key == "temperature":
            return found._replace(others=(*found.others, key), is_one=True)
        if "." in number[0]:
            raise reader.error(f"{key}={number[0]} is no whole number", at)
        return found._replace(most_tokens=int(number[0]))
    if found.ending is not None:
        raise reader.error("stop= and suffix= of one rule cannot be used together, nor twice", at)
    ending = _atom(reader)
    if ending.kind not in ("string", "range", "regex", "name", "substring", "words"):
        raise reader.error(f"{key}= takes a text, a pattern or a terminal", ending.at)
    is_none = ending.kind == "string" and not ending.text
    return found._replace(ending=ending, is_stop=key == "stop", is_lazy=found.is_lazy or not is_none)


def _directive(reader: Reader, found: Document) -> None:
    at = reader.at
    name = reader.match(_DIRECTIVE)
    word = name[0] if name else "%"
    reader.match(_BLANKS)
    if word == "%ignore":
        found.ignored.append(Definition("%ignore", at, _alternatives(reader)))
    elif word == "%import":
        _import(reader, found, at)
    elif word == "%llguidance":
        _options(reader, found, at)
    else:
        known = "%ignore, %import and %llguidance"
        raise reader.error(f"the directive {word} is not supported here; supported are {known}", at)


def _import(reader: Reader, found: Document, at: int) -> None:
    path = reader.match(re.compile(r"[.\w-]+(?:\.[\w-]+)*"))
    module, _, name = (path[0] if path else "").rpartition(".")
    pairs: list[tuple[str, str]] = []
    reader.match(_BLANKS)
    if reader.take("("):
        module = path[0] if path else ""
        names = reader.match(re.compile(r"[^)\n]*"))
        pairs = [(part.strip(),) * 2 for part in str(names[0] if names else "").split(",")]
        reader.expect(")", "at the end of the imported names")
    else:
        alias = reader.match(re.compile(r"->[ \t]*([\w-]+)"))
        pairs = [(alias[1] if alias else name, name)]
    if module != "common":
        raise reader.error(
            f"only terminals of common can be imported, as in %import common.INT; not from {module!r}", at
        )
    for local, known in pairs:
        if local in found.terminals or local in found.imports:
            raise reader.error(f"terminal {local!r} is defined twice", at)
        found.imports[local] = known, at


def _options(reader: Reader, found: Document, at: int) -> None:
    options = _json(reader, "%llguidance")
    if not isinstance(options, dict) or not all(isinstance(value, bool) for value in options.values()):
        raise reader.error("%llguidance takes an object of options that are true or false", at)
    for key, value in options.items():
        if key == "allow_initial_skip":
            found.initial_skip = value
        elif key == "ignore_once":
            found.skips_once = value
        elif key != "no_forcing" and value:
            raise reader.error(f"the option {key!r} of %llguidance is not supported", at)


def _json(reader: Reader, what: str) -> Any:
    start = reader.at
    try:
        value, reader.at = read_json_at(reader.text, reader.at)
    except ValueError as error:
        raise reader.error(f"{what} is followed by no valid JSON: {str(error)[:100]}", start) from error
    return value


def _alternatives(reader: Reader) -> Alternatives:
    reader.enter()
    options = [_option(reader)]
    while reader.match(_VBAR) is not None:
        options.append(_option(reader))
    reader.leave()
    return tuple(options)


def _option(reader: Reader) -> tuple[tuple[Element, ...], ...]:
    conjuncts = [_sequence(reader)]
    while reader.take("&"):
        conjuncts.append(_sequence(reader))
    reader.match(_ALIAS)
    reader.match(_BLANKS)
    if reader.starts("%if"):
        raise reader.error("a condition %if of a parametric rule is not supported")
    return tuple(conjuncts)


def _sequence(reader: Reader) -> tuple[Element, ...]:
    elements: list[Element] = []
    while True:
        reader.match(_BLANKS)
        if reader.next in ("", "\r", "\n", "|", ")", "]", "}", "&") or reader.starts("->") or reader.starts("%if"):
            return tuple(elements)
        elements.append(_element(reader))


def _element(reader: Reader) -> Element:
    atom = _atom(reader)
    reader.match(_BLANKS)
    for sign, counts in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
        if reader.take(sign):
            return Element(atom, *counts)
    start = reader.at
    most: int | None
    if (found := reader.match(re.compile(r"~[ \t]*([0-9]+)(?:[ \t]*\.\.[ \t]*([0-9]+))?"))) is not None:
        least, most = reader.number(found[1], start), reader.number(found[2] or found[1], start)
    elif (found := reader.match(re.compile(r"\{[ \t]*([0-9]*)[ \t]*(,?)[ \t]*([0-9]*)[ \t]*\}"))) is not None:
        if not (found[1] or found[2]):
            raise reader.error("expected a number of repetitions", start)
        least = reader.number(found[1] or "0", start)
        most = reader.number(found[3], start) if found[3] else None if found[2] else least
    elif reader.next == "{":
        raise reader.error("a template is not supported, nor is it in llguidance")
    else:
        return Element(atom, 1, 1)
    if most is not None and (most < least or most == 0):
        raise reader.error("this repetition has fewer at most than at least, or none at most", start)
    return Element(atom, least, most)


def _atom(reader: Reader) -> Atom:
    at = reader.at
    if reader.take("~"):
        reader.enter()
        inner = _atom(reader)
        reader.leave()
        return Atom("not", at, of=inner)
    kinds: tuple[tuple[str, str, AtomKind], ...] = (("(", ")", "group"), ("[", "]", "maybe"))
    for opening, closing, kind in kinds:
        if reader.take(opening):
            body = _alternatives(reader)
            reader.match(_LINES)
            reader.expect(closing, f"to close the group of line {reader.place(at)[0]}")
            return Atom(kind, at, inner=body)
    if reader.next == '"':
        return _string(reader)
    if (pattern := reader.match(_PATTERN)) is not None:
        return Atom("regex", at, text=pattern[2], span=pattern.span(1))
    if (special := reader.match(_SPECIAL)) is not None:
        return Atom("part", at, text="token", last=special[0], value=tokens_of(reader, special[0], at))
    if (grammar := reader.match(_REFERENCE)) is not None:
        return Atom("part", at, text="grammar", value=grammar[0][1:])
    if (word := reader.match(_DIRECTIVE)) is not None:
        return _inline(reader, word[0], at)
    name = reader.match(_RULE) or reader.match(_TERMINAL)
    if name is None:
        raise reader.error(f"expected an element of a definition, found {reader.found}")
    if reader.starts("::"):
        raise reader.error(f"a parametric rule is not supported: {name[0]}::...; write out a rule for each value", at)
    return Atom("name", at, text=name[0].removeprefix("!").removeprefix("?"))


def _inline(reader: Reader, word: str, at: int) -> Atom:
    reader.match(_LINES)
    if word == "%json":
        return Atom("part", at, text="json", value=_json(reader, word))
    if word == "%lark":
        reader.expect("{", "before the grammar that %lark stands for")
        reader.enter()
        inner = read_document(reader, "}")
        reader.leave()
        reader.expect("}", f"to close the grammar of line {reader.place(at)[0]}")
        return Atom("part", at, text="lark", value=inner)
    if word != "%regex":
        raise reader.error(f"{word} is not supported inside a definition; write its rules here", at)
    value = _json(reader, word)
    keys = ("substring_chunks", "substring_words", "substring_chars")
    if not isinstance(value, dict) or len(value) != 1 or next(iter(value)) not in keys:
        raise reader.error(f"%regex takes an object with one of {', '.join(keys)}", at)
    key, content = next(iter(value.items()))
    if key == "substring_chunks":
        if not (isinstance(content, list) and all(isinstance(chunk, str) for chunk in content)):
            raise reader.error("substring_chunks is a list of texts", at)
        return Atom("substring", at, chunks=tuple(content))
    if not isinstance(content, str):
        raise reader.error(f"{key} is a text", at)
    return Atom("substring" if key == "substring_chars" else "words", at, text=content, chunks=tuple(content))


def tokens_of(reader: Reader, text: str, at: int) -> str | tuple[tuple[int, ...], bool]:
    """The name in ``<name>``; or the ids in ``<[ids]>``, and whether any other token is meant."""
    if not (text.startswith("<[") and text.endswith("]>")):
        return text
    if text == "<[*]>":
        return (), True
    is_excluding = text[2] == "^"
    found: dict[int, None] = {}
    for one in text[2 + is_excluding : -2].split(","):
        ends = _TOKENS.fullmatch(one)
        if ends is None or int(ends[2] or ends[1]) < int(ends[1]):
            raise reader.error(f"{text} is not read: expected ids and ranges, as in <[5,7-9]>, <[^5]> or <[*]>", at)
        reader.n_tokens += int(ends[2] or ends[1]) - int(ends[1]) + 1
        if reader.n_tokens > MAX_TOKENS:
            raise reader.error(
                f"more than {MAX_TOKENS:,} tokens are named up to {text}; say which are not meant, as in <[^5]>", at
            )
        found |= dict.fromkeys(range(int(ends[1]), int(ends[2] or ends[1]) + 1))
    return tuple(found), is_excluding


def _string(reader: Reader) -> Atom:
    at = reader.at
    text, ignores_case = _one_string(reader)
    reader.check_literal(len(text), at)
    reader.match(_BLANKS)
    if not reader.take(".."):
        return Atom("string", at, text=text, ignores_case=ignores_case)
    reader.match(_BLANKS)
    last, also = _one_string(reader)
    if ignores_case or also:
        raise reader.error("a range takes no flags", at)
    if len(text) != 1 or len(last) != 1 or text > last:
        raise reader.error('a range needs one character on each side, in order, as in "a".."z"', at)
    return Atom("range", at, text=text, last=last)


def _one_string(reader: Reader) -> tuple[str, bool]:
    start = reader.at
    found = reader.match(_STRING)
    if found is None:
        what = "a text in quotes without line breaks, with the escapes of JSON and \\xHH"
        raise reader.error(f"expected {what}, found {reader.text[start : start + 20]!r}", start)
    inner = _HEX.sub(lambda escape: f"\\u00{escape[1]}" if escape[1] else escape[0], found[1])
    text = str(json.loads(f'"{inner}"'))
    if any(0xD800 <= ord(c) <= 0xDFFF for c in text):
        raise reader.error("this text has a lone surrogate, which is no character", start)
    return text, bool(found[2])
