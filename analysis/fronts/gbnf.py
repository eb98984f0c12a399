r"""GBNF, the grammar language of llama.cpp: a text to a `Grammar`.

A rule is ``name ::= alternatives``. Its elements are texts ``"..."``, sets of characters ``[...]``
and ``[^...]``, ``.`` for any character, names of rules, and groups. Behind an element stand ``*``,
``+``, ``?``, ``{m}``, ``{m,}`` or ``{m,n}``. The escapes are ``\n \r \t \\ \" \[ \] \- \xHH \uHHHH
\UHHHHHHHH``. A rule ends with its line, but not inside a group or behind ``|`` and ``::=``. The
texts are those of the rule ``root``, character by character: there is no lexer (`scannerless`).

Where llama.cpp's parser goes a way of its own, we say so instead of following it:

- a rule that is defined twice is an error (there, the last definition wins);
- ``[]``, ``[^]`` and a range such as ``[z-a]`` are errors;
- a repetition of more than 2,000 is read as it is written (there, it has no upper limit);
- recursion on the left is read (there, it is an error);
- a character U+0000 is one like all others (there, a text ends at it).

Tokens, ``<name>`` and ``<[id]>``, stand for no text and are refused.

Source: llama.cpp, grammars/README.md and src/llama-grammar.cpp.
"""

from __future__ import annotations

import re

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
from maskwright.analysis.nesting import MOST_NESTED, on_own_stack
from maskwright.analysis.regex.charset import EVERYTHING, complement, normalise

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_BLANKS = re.compile(r"(?:[ \t]+|#[^\r\n]*)*")
_SPACE = re.compile(r"(?:[ \t\r\n]+|#[^\r\n]*)*")
_PLAIN = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "[": "[", "]": "]", "-": "-"}
_HEXADECIMAL = {"x": 2, "u": 4, "U": 8}


@on_own_stack
def parse_gbnf(text: str, name: str = "<gbnf>") -> Grammar:
    r"""The grammar of a text in GBNF.

    name : the grammar's name, which error messages show.

    Raises: GrammarError, with the place, for bad syntax, an undefined rule, a rule defined twice,
    or a token; EmptyLanguageError if `root` has no finite text; LimitError if repetitions unfold to
    too many rules.

    >>> print(parse_gbnf('root ::= "(" root ")" | [0-9]+'))
    <Grammar <gbnf>: 3 terminals, 1 nonterminals, 2 rules, start 'root'>
    """
    reader = Reader(text, name)
    return compile_rules(read_gbnf(reader), reader)


def read_gbnf(reader: Reader) -> RuleSet:
    """The rules of a text in GBNF.

    Raises: GrammarError as `parse_gbnf`.
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
        if found[0] in rules:
            line, _ = reader.place(places[found[0]])
            raise reader.error(f"rule {found[0]!r} is defined twice, first in line {line}", start)
        places[found[0]] = start
        reader.match(_BLANKS)
        reader.expect("::=", f"behind the name {found[0][:60]!r}")
        reader.match(_SPACE)
        rules[found[0]] = _alternatives(reader, uses, False)
        if reader.next not in ("", "\r", "\n"):
            raise reader.error(
                f"expected an element of rule {found[0][:60]!r} or the end of its line, found {reader.found}"
            )
        reader.match(_SPACE)
    for use in uses:
        if use.name not in rules:
            raise undefined(reader, use.name, use.offset, rules)
    if "root" not in rules:
        raise reader.error("there is no rule 'root', where the texts begin", 0)
    return RuleSet(rules, "root", places)


def _alternatives(reader: Reader, uses: list[Expr], is_nested: bool) -> Expr:
    options = [_sequence(reader, uses, is_nested)]
    while reader.take("|"):
        reader.match(_SPACE)
        options.append(_sequence(reader, uses, is_nested))
    return choice(options)


def _sequence(reader: Reader, uses: list[Expr], is_nested: bool) -> Expr:
    space = _SPACE if is_nested else _BLANKS
    parts: list[Expr] = []
    while True:
        is_group = reader.next == "("
        if (part := _element(reader, uses)) is None:
            break
        is_there = is_group or part is not EMPTY  # llama.cpp's parser repeats an empty group, but not ""
        reader.match(space)
        while reader.next and reader.next in "*+?{":
            start = reader.at
            if not is_there:
                raise reader.error("there is nothing to repeat before this")
            least, most = reader.counts(_SPACE)
            part, is_there = repetition(part, least, most), most != 0
            _check_size(reader, part, start)
            reader.match(space)
        parts.append(part)
    if reader.next and reader.next in "*+?{":
        raise reader.error("there is nothing to repeat before this")
    return sequence(parts)


def _element(reader: Reader, uses: list[Expr]) -> Expr | None:
    """The next element without what repeats it; None if none comes next."""
    start, character = reader.at, reader.next
    if character == '"':
        return _text(reader)
    if character == "[":
        return _class(reader)
    if reader.take("."):
        return characters(EVERYTHING)
    if reader.take("("):
        reader.enter()
        reader.match(_SPACE)
        inner = _alternatives(reader, uses, True)
        reader.expect(")", f"to close the group of line {reader.place(start)[0]}")
        reader.leave()
        return inner
    if character in ("<", "!"):
        shown = reader.text[start : start + 40].split(">")[0] + ">"
        raise reader.error(
            f"the token {shown} stands for no text, and masks here are over texts; say its text as a string, or leave it out"
        )
    found = reader.match(_NAME)
    if found is None:
        return None
    uses.append(reference(found[0], start))
    return uses[-1]


def _text(reader: Reader) -> Expr:
    start = reader.at
    reader.take('"')
    found = []
    while not reader.take('"'):
        if not reader.next:
            raise reader.error("this text has no closing quote", start)
        found.append(chr(_character(reader)))
    reader.check_literal(len(found), start)
    return literal("".join(found))


def _class(reader: Reader) -> Expr:
    start = reader.at
    reader.take("[")
    is_negated = reader.take("^")
    pairs: list[tuple[int, int]] = []
    while not reader.take("]"):
        if not reader.next:
            raise reader.error("this set of characters has no closing bracket", start)
        at = reader.at
        low = high = _character(reader)
        if reader.starts("-") and not reader.starts("-]"):
            reader.take("-")
            if not reader.next:
                raise reader.error("this set of characters has no closing bracket", start)
            high = _character(reader)
        if low > high:
            raise reader.error(
                f"the range {reader.text[at : reader.at]} is empty: its ends are the wrong way round", at
            )
        pairs.append((low, high))
    if not pairs:
        raise reader.error("this set of characters is empty; write . for any character", start)
    ranges = normalise(pairs)
    return characters(complement(ranges) if is_negated else ranges)


def _character(reader: Reader) -> int:
    start = reader.at
    if not reader.take("\\"):
        reader.at += 1
        return ord(reader.text[start])
    letter = reader.next
    reader.at += len(letter)
    if letter in _HEXADECIMAL:
        return reader.hexadecimal(_HEXADECIMAL[letter], start)
    if letter not in _PLAIN:
        known = r"\n \r \t \\ \" \[ \] \- \xHH \uHHHH \UHHHHHHHH"
        raise reader.error(f"unknown escape {reader.text[start : start + 2]!r}; known are {known}", start)
    return ord(_PLAIN[letter])


def _check_size(reader: Reader, part: Expr, at: int) -> None:
    if part.depth > 4 * MOST_NESTED:
        raise reader.error("too many repetitions of repetitions", at)
