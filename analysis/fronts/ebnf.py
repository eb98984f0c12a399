r"""EBNF, the grammar language of xgrammar: a text to a `Grammar`.

It looks like GBNF (`gbnf`), with these differences. Line breaks mean nothing, but a rule's name is
the first word on its line. A name may have dots, and no digit first. A class ``[^]`` is any
character; there is no ``.``. An alternative is not empty; ``""`` and ``()`` say the empty text. An
element has at most one repetition, and ``{m, -1}`` is ``{m,}``. More escapes exist: ``\' \? \/ \a
\b \f \v \0 \e``, and in classes those of signs; ``\x`` takes all hexadecimal digits that follow.
The texts are those of the root rule, character by character: there is no lexer (`scannerless`).

Refused by name: macros (``TagDispatch``, ``Token``, ``ExcludeToken``, ``TokenTagDispatch``,
``Regex``, ``Substring``), look-ahead assertions ``(= ...)``, and options of rules
(``name[max_tokens=3] ::= ...``).

Source: xgrammar, docs/defining_structures/ebnf_grammar.md and cpp/grammar_parser.cc.
"""

from __future__ import annotations

import re

from maskwright.analysis.arguments import need_type
from maskwright.analysis.errors import GrammarError
from maskwright.analysis.fronts.expressions import (
    EMPTY,
    Expr,
    characters,
    choice,
    literal,
    reference,
    repetition,
    sequence,
)
from maskwright.analysis.fronts.reading import Reader, undefined
from maskwright.analysis.fronts.scannerless import RuleSet, compile_rules
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.nesting import on_own_stack
from maskwright.analysis.regex.charset import complement, normalise

MACROS = ("TagDispatch", "TokenTagDispatch", "Token", "ExcludeToken", "Regex", "Substring")
"""Names that are calls in xgrammar, not rules."""

_NAME = re.compile(r"[A-Za-z_.-][A-Za-z0-9_.-]*")
_SPACE = re.compile(r"(?:[ \t\r\n]+|#[^\r\n]*)*")
_RULE = re.compile(r"[A-Za-z_.-][A-Za-z0-9_.-]*+(?:\[[^\]\r\n]*\][ \t]*|(?:[ \t\r\n]++|#[^\r\n]*+)*+)::=")
_OPTIONS = re.compile(r"\[[^\]\r\n]*\][ \t]*::=")
_ESCAPES = {
    **{sign: sign for sign in "'\"?\\/"},
    **{"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0", "e": "\x1b"},
}
_CLASS_ESCAPES = _ESCAPES | {sign: sign for sign in "^$\\.*+?()[]{}|/-"}
_HEXADECIMAL = {"x": None, "u": 4, "U": 8}


@on_own_stack
def parse_ebnf(text: str, name: str = "<ebnf>", root_rule: str = "root") -> Grammar:
    r"""The grammar of a text in xgrammar's EBNF.

    name : the grammar's name, which error messages show. root_rule : the rule of whole texts.

    Raises: GrammarError, with the place, for bad syntax, an undefined rule, a rule defined twice,
    and for what is refused (see the module); EmptyLanguageError if the root rule has no finite
    text; LimitError if repetitions unfold to too many rules.

    >>> print(parse_ebnf('main ::= "a" main | "b"', root_rule="main"))
    <Grammar <ebnf>: 1 terminals, 1 nonterminals, 1 rules, start 'main'>
    """
    reader = Reader(text, name)
    need_type("root_rule", root_rule, str, "the name of a rule", GrammarError)
    return compile_rules(read_ebnf(reader, root_rule), reader)


def read_ebnf(reader: Reader, root_rule: str) -> RuleSet:
    """The rules of a text in xgrammar's EBNF.

    Raises: GrammarError as `parse_ebnf`.
    """
    rules: dict[str, Expr] = {}
    places: dict[str, int] = {}
    uses: list[Expr] = []
    reader.match(_SPACE)
    while reader.next:
        start = reader.at
        found = reader.match(_NAME)
        if found is None:
            raise reader.error(f"expected the name of a rule, found {reader.found}")
        _refuse_options(reader, found[0])
        reader.match(_SPACE)
        reader.expect("::=", f"behind the name {found[0][:60]!r}")
        if found[0] in rules:
            line, _ = reader.place(places[found[0]])
            raise reader.error(f"rule {found[0]!r} is defined twice, first in line {line}", start)
        if found[0] in ("true", "false"):
            raise reader.error(f"{found[0]} is a value in xgrammar's EBNF, and no name of a rule", start)
        if not _is_first_on_line(reader, start):
            raise reader.error(f"the name of rule {found[0][:60]!r} must be the first word on its line", start)
        places[found[0]] = start
        reader.match(_SPACE)
        rules[found[0]] = _alternatives(reader, uses)
        if reader.starts("(="):
            raise reader.error("a look-ahead assertion (= ...) is not supported; leave it out if it is only a hint")
        if reader.next == ")":
            raise reader.error("this closing parenthesis closes no group")
    for use in uses:
        if use.name not in rules:
            raise undefined(reader, use.name, use.offset, rules)
    if root_rule not in rules:
        raise undefined(reader, root_rule, 0, rules)
    return RuleSet(rules, root_rule, places)


def _is_first_on_line(reader: Reader, at: int) -> bool:
    line = reader.text[max(reader.text.rfind("\n", 0, at), reader.text.rfind("\r", 0, at)) + 1 : at]
    return not line.strip(" \t")


def _refuse_options(reader: Reader, name: str) -> None:
    if reader.next == "[" and (found := _OPTIONS.match(reader.text, reader.at)) is not None:
        shown = found[0].partition("]")[0] + "]"
        raise reader.error(f"options of a rule are not supported: {shown[:60]} of rule {name[:60]!r}; leave them out")


def _alternatives(reader: Reader, uses: list[Expr]) -> Expr:
    options = [_sequence(reader, uses)]
    while reader.take("|"):
        reader.match(_SPACE)
        options.append(_sequence(reader, uses))
    return choice(options)


def _sequence(reader: Reader, uses: list[Expr]) -> Expr:
    """At least one element with what repeats it, up to ``|``, ``)``, ``(=`` or the next rule."""
    parts: list[Expr] = []
    while True:
        ends = reader.next in ("", "|", ")") or reader.starts("(=")
        if parts and (ends or _begins_rule(reader)):
            return sequence(parts)
        if ends or _begins_rule(reader):
            raise reader.error(f'expected an element, found {reader.found}; an empty alternative is written ""')
        part = _element(reader, uses)
        reader.match(_SPACE)
        if reader.next and reader.next in "*+?{":
            part = repetition(part, *reader.counts(_SPACE, endless="-1"))
            reader.match(_SPACE)
        parts.append(part)


def _begins_rule(reader: Reader) -> bool:
    return _RULE.match(reader.text, reader.at) is not None


def _element(reader: Reader, uses: list[Expr]) -> Expr:
    start, character = reader.at, reader.next
    if character == '"':
        return _text(reader)
    if character == "[":
        return _class(reader)
    if reader.take("("):
        reader.enter()
        reader.match(_SPACE)
        if reader.take(")"):
            reader.leave()
            return EMPTY
        inner = _alternatives(reader, uses)
        reader.expect(")", f"to close the group of line {reader.place(start)[0]}")
        reader.leave()
        return inner
    found = reader.match(_NAME)
    if found is None:
        raise reader.error(f"expected an element of a rule, found {reader.found}")
    if found[0] in MACROS:
        raise reader.error(f"the macro {found[0]}(...) is not supported; say what it means by rules", start)
    if found[0] in ("true", "false"):
        raise reader.error(f'{found[0]} is a value and no element; write "{found[0]}" for the text', start)
    uses.append(reference(found[0], start))
    return uses[-1]


def _text(reader: Reader) -> Expr:
    start = reader.at
    reader.take('"')
    found = []
    while not reader.take('"'):
        if reader.next in ("", "\n", "\r"):
            raise reader.error(r"this text has no closing quote on its line; write \n for a line feed", start)
        found.append(chr(_character(reader, _ESCAPES)))
    reader.check_literal(len(found), start)
    return literal("".join(found))


def _class(reader: Reader) -> Expr:
    start = reader.at
    reader.take("[")
    is_negated = reader.take("^")
    pairs: list[tuple[int, int]] = []
    while not reader.take("]"):
        at = reader.at
        low = high = _class_character(reader, start)
        if reader.starts("-") and reader.text[reader.at + 1 : reader.at + 2] not in ("]", ""):
            reader.take("-")
            high = _class_character(reader, start)
        if low > high:
            raise reader.error(
                f"the range {reader.text[at : reader.at]} is empty: its ends are the wrong way round", at
            )
        pairs.append((low, high))
    if not (pairs or is_negated):
        raise reader.error("this set of characters is empty; write [^] for any character", start)
    ranges = normalise(pairs)
    return characters(complement(ranges) if is_negated else ranges)


def _class_character(reader: Reader, start: int) -> int:
    if reader.next in ("", "\n", "\r"):
        raise reader.error("this set of characters has no closing bracket on its line", start)
    letter = reader.text[reader.at + 1 : reader.at + 2]
    if reader.next == "\\" and letter and letter in "dDsSwW":
        raise reader.error(f"\\{letter} is not supported in a set of characters; write the ranges, as in [0-9]")
    return _character(reader, _CLASS_ESCAPES)


def _character(reader: Reader, escapes: dict[str, str]) -> int:
    start = reader.at
    if not reader.take("\\"):
        reader.at += 1
        return ord(reader.text[start])
    letter = reader.next
    reader.at += len(letter)
    if letter in escapes:
        return ord(escapes[letter])
    if letter in _HEXADECIMAL:
        return reader.hexadecimal(_HEXADECIMAL[letter], start)
    raise reader.error(f"unknown escape {reader.text[start : start + 2]!r}", start)
