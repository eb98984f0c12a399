r"""From a pattern's text to a tree, by Python's own parser.

A terminal must mean what it means to Lark's lexer, which is `re`, down to ``\w``, case folding,
octal escapes, scoped flags and VERBOSE. `re._parser` *is* that parser. (interegular's parser
refuses look-behinds and reads ``\w`` as ASCII.) The price is a private module. This file alone
knows its opcodes, and an unknown opcode is an error, never a guess.

``^ $ \A \Z \b \B`` become look-arounds here, so that the later steps know one mechanism only.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal, get_args

from maskwright.analysis.errors import LimitError, NestingError, TerminalError
from maskwright.analysis.kept import Kept
from maskwright.analysis.nesting import MOST_NESTED, on_own_stack
from maskwright.analysis.regex import charset
from maskwright.analysis.regex.charset import Ranges
from maskwright.analysis.regex.properties import with_classes
from maskwright.analysis.regex.tree import (
    ANY,
    EMPTY,
    NEVER,
    Atomic,
    Chars,
    Choice,
    Look,
    Node,
    Repeat,
    Source,
    boundary,
    sequence,
)

_sre: Any = importlib.import_module("re._parser")
_LITERAL: Any = _sre.LITERAL
_WHOLE: Any = (_LITERAL, _sre.NOT_LITERAL, _sre.IN, _sre.ANY, _sre.SUBPATTERN)
"""What may be repeated without a group around it, or is one."""

_FLAGS = {"a": re.ASCII, "i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "u": re.UNICODE, "x": re.VERBOSE}
_TYPE_FLAGS = int(re.ASCII | re.UNICODE | re.LOCALE)

_NEWLINE = Chars(((10, 10),))
_NOT_NEWLINE = Chars(charset.complement(((10, 10),)))


class Unsupported(Exception):
    """A construct for which no exact regular form is known; the caller names the terminal.

    what : the construct, in words.
    remedy : what to write instead.
    source : where it stands; None if unknown.
    """

    def __init__(self, what: str, remedy: str, source: Source | None = None) -> None:
        super().__init__(what, remedy)
        self.what, self.remedy, self.source = what, remedy, source


def flag_bits(flags: str) -> int:
    """The bits of `re`'s flags, from their letters.

    Raises: TerminalError for a letter that is none of ``aimsux``.
    """
    bits = 0
    for letter in flags:
        if letter not in _FLAGS:
            raise TerminalError(f"flag {letter!r} is not one of a, i, m, s, u, x (flags {flags!r})")
        bits |= int(_FLAGS[letter])
    return bits


def parse(pattern: str, flags: str = "") -> Node:
    r"""The tree of a pattern.

    Anchors have become look-arounds, groups are gone, and sets are resolved under their flags.

    pattern : source text for Python's `re`; also with ``\p{...}``, as the package `regex` reads it.
    flags : letters of ``aimsux``.

    Raises: Unsupported for back-references, conditional groups, and constructs of `re` that this
    module does not know; `re.error` for what `re` refuses, be it by a ValueError; LimitError for
    repetitions too large for `re`; NestingError for groups more than `MOST_NESTED` deep;
    TerminalError for a bad letter in `flags`.
    """
    bits = flag_bits(flags)
    pattern = with_classes(pattern, flags)
    try:
        parsed = on_own_stack(_sre.parse)(pattern, bits)
        if "(?<" in pattern:
            # PERF: five times as long; what it finds besides is look-behinds of several widths
            on_own_stack(re.compile)(pattern, bits)
    except NestingError:
        raise NestingError(_TOO_DEEP) from None
    except OverflowError as error:
        raise LimitError(f"the pattern's repetition is too large for Python's re: {error}") from error
    except ValueError as error:  # of flags that exclude each other, and of `int`
        if "flag" in str(error):
            raise re.error(str(error)) from error
        raise LimitError("it has a number of too many digits for Python's re") from error
    bits = parsed.state.flags
    return _Reader(pattern, bool(bits & re.VERBOSE)).read(parsed, bits)


_TOO_DEEP = f"its groups are nested more than {MOST_NESTED} deep"


class _Reader:
    """One walk over the output of Python's parser, in the pattern's order.

    The n-th look-around of the walk is therefore the n-th in the text.
    """

    def __init__(self, pattern: str, verbose: bool) -> None:
        self._pattern, self._verbose = pattern, verbose
        self._sources: dict[Kind, Iterator[Source]] | None = None
        self._depth = 0

    def _next(self, kind: Kind, default: str) -> Source:
        if self._sources is None:
            found = constructs(self._pattern, verbose=self._verbose)
            self._sources = {kind: iter(sources) for kind, sources in found.items()}
        return next(self._sources[kind], Source(default))

    def read(self, items: Any, flags: int, is_group: bool = False) -> Node:
        """The tree of what stands side by side. is_group : whether a group has it.

        Raises: NestingError.
        """
        self._depth += is_group
        if self._depth > MOST_NESTED:
            raise NestingError(_TOO_DEEP)
        found: list[Node] = []
        is_plain = not flags & re.IGNORECASE
        for op, argument in items:
            # PERF: most items are letters
            found.append(_letter(argument) if is_plain and op is _LITERAL else self._item(str(op), argument, flags))
        self._depth -= is_group
        return sequence(*found)

    def _item(self, op: str, argument: Any, flags: int) -> Node:
        match op:
            case "LITERAL" | "NOT_LITERAL" | "IN":
                return _characters(op, argument, flags)
            case "ANY":
                return ANY if flags & re.DOTALL else _NOT_NEWLINE
            case "BRANCH":
                return Choice(tuple([self.read(option, flags) for option in argument[1]]))
            case "SUBPATTERN":
                _, added, removed, body = argument
                if added & _TYPE_FLAGS:
                    flags &= ~_TYPE_FLAGS
                return self.read(body, (flags | added) & ~removed, True)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                return self._repeat(op, argument, flags)
            case "ATOMIC_GROUP":
                source = self._next("atomic", "(?>...)")
                return Atomic(self.read(argument, flags, True), source)
            case "ASSERT" | "ASSERT_NOT":
                source = self._next("look", "look-around")
                return Look(self.read(argument[1], flags, True), argument[0] > 0, op == "ASSERT_NOT", source)
            case "AT":
                return _anchor(str(argument), flags)
            case "FAILURE":
                self._next("look", "(?!)")
                return NEVER
            case "GROUPREF":
                raise Unsupported(
                    "a back-reference",
                    "it repeats a text of any length, which a finite automaton cannot do; list the alternatives instead",
                    self._next("backreference", "back-reference"),
                )
            case "GROUPREF_EXISTS":
                raise Unsupported(
                    "a conditional group",
                    "write one alternative for each case of the condition",
                    self._next("conditional", "(?(...)...)"),
                )
            case _:
                version = ".".join(map(str, sys.version_info[:3]))
                raise Unsupported(f"the opcode {op} of Python {version}'s re", "rewrite the pattern without it")

    def _repeat(self, op: str, argument: Any, flags: int) -> Node:
        least, most, items = argument
        # Python leaves out groups that only say what is repeated
        body = self.read(items, flags, len(items) != 1 or items[0][0] not in _WHOLE)
        limit = None if most is _sre.MAXREPEAT else int(most)
        # The quantifier stands behind its body in the text; both walks reach it in that order.
        if op == "MIN_REPEAT":
            return Repeat(body, int(least), limit, "lazy", self._next("lazy", "lazy quantifier"))
        if op == "POSSESSIVE_REPEAT":
            return Repeat(body, int(least), limit, "possessive", self._next("possessive", "possessive quantifier"))
        return Repeat(body, int(least), limit)


@lru_cache(maxsize=4096)
def _letter(code: int) -> Chars:
    """The set of one character."""
    return Chars(charset.normalise([(code, code)]))


def _characters(op: str, argument: Any, flags: int) -> Node:
    if op == "IN":
        items = [(str(kind), value) for kind, value in argument]
    else:
        items = [("NEGATE", None)] * (op == "NOT_LITERAL") + [("LITERAL", argument)]
    return Chars(_resolve(tuple(items), flags & int(re.IGNORECASE | re.ASCII)))


def _category_letter(name: str) -> str:
    negated = "_NOT_" in name
    letter = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}[name.rsplit("_", 1)[1]]
    return letter.upper() if negated else letter


@Kept
def _resolve(items: tuple[tuple[str, Any], ...], flags: int) -> Ranges:
    """The set of a character class under the flags IGNORECASE and ASCII."""
    ascii_only = bool(flags & re.ASCII)
    ranges: list[tuple[int, int]] = []
    negated = False
    source = ""  # the class again, as `re` reads it
    for kind, value in items:
        match kind:
            case "NEGATE":
                negated, source = True, "^"
            case "LITERAL":
                ranges.append((value, value))
                source += f"\\U{value:08x}"
            case "RANGE":
                ranges.append((value[0], value[1]))
                source += f"\\U{value[0]:08x}-\\U{value[1]:08x}"
            case "CATEGORY":
                letter = _category_letter(str(value))
                ranges.extend(charset.category(letter, ascii_only))
                source += f"\\{letter}"
            case _:
                raise Unsupported(f"the class item {kind} of this Python's re", "rewrite the class without it")
    exact = charset.normalise(ranges)
    if negated:
        exact = charset.complement(exact)
    return charset.ignoring_case(exact, f"[{source}]", ascii_only) if flags & re.IGNORECASE else exact


def _anchor(name: str, flags: int) -> Node:
    match name:
        case "AT_BEGINNING" if flags & re.MULTILINE:
            return Look(_NOT_NEWLINE, ahead=False, negated=True, source=Source("^"))
        case "AT_BEGINNING" | "AT_BEGINNING_STRING":
            return Look(ANY, ahead=False, negated=True, source=Source("^"))
        case "AT_END" if flags & re.MULTILINE:
            return Look(_NOT_NEWLINE, ahead=True, negated=True, source=Source("$"))
        case "AT_END":
            end = Look(ANY, ahead=True, negated=True, source=Source("$"))
            body = Choice((EMPTY, _NEWLINE))
            return Look(sequence(body, end), ahead=True, negated=False, source=Source("$"))
        case "AT_END_STRING":
            return Look(ANY, ahead=True, negated=True, source=Source(r"\Z"))
        case "AT_BOUNDARY" | "AT_NON_BOUNDARY":
            is_wanted = name == "AT_BOUNDARY"
            word = charset.category("w", bool(flags & re.ASCII))
            return boundary(word, is_wanted, Source(r"\b" if is_wanted else r"\B"))
        case _:
            raise Unsupported(f"the anchor {name} of this Python's re", "rewrite the pattern without it")


Kind = Literal["look", "lazy", "possessive", "atomic", "backreference", "conditional"]

_ITEM = re.compile(
    r"""
    (?P<comment> \(\?\#[^)]*\) )
  | (?P<backreference> \\[1-9][0-9]? | \(\?P=\w+\) )
  | (?P<escape> \\. )
  | (?P<class> \[\^?\]?(?:\\.|[^\]\\])*\] )
  | (?P<conditional> \(\?\(\w+\) )
  | (?P<look> \(\?<?[=!] )
  | (?P<atomic> \(\?> )
  | (?P<open> \( )
  | (?P<close> \) )
  | (?P<quantifier> (?:[*+?]|\{[0-9]+,?[0-9]*\}|\{,[0-9]*\})(?P<mode>[?+])? )
    """,
    re.VERBOSE | re.DOTALL,
)


def constructs(pattern: str, *, verbose: bool = False) -> dict[Kind, list[Source]]:
    r"""The constructs of each kind, in the order of their first character.

    A group is given with its whole text, a quantifier with its suffix. Python's parser keeps no
    positions; this scan knows escapes, classes, groups, comments and quantifiers, nothing more.

    pattern : a pattern that `re` accepts.
    verbose : whether the flag VERBOSE holds, under which ``#`` begins a comment.

    Example:
        >>> constructs(r"a+?(?!b)")["look"]
        [Source(text='(?!b)', start=3)]
    """
    found: dict[Kind, list[Source]] = {kind: [] for kind in get_args(Kind)}
    open_groups: list[tuple[Kind | None, int, int]] = []
    at = 0
    while at < len(pattern):
        if verbose and pattern[at] == "#":
            at = (pattern.find("\n", at) + 1) or len(pattern)
            continue
        match = _ITEM.match(pattern, at)
        if match is None:
            at += 1
            continue
        match match.lastgroup if match["mode"] is None else "quantifier":
            case "look" | "atomic" | "conditional" as kind:
                open_groups.append((kind, at, len(found[kind])))
                found[kind].append(Source(match[0], at))
            case "open":
                open_groups.append((None, at, 0))
            case "close" if open_groups:
                opened, start, index = open_groups.pop()
                if opened is not None:
                    found[opened][index] = Source(pattern[start : match.end()], start)
            case "backreference":
                found["backreference"].append(Source(match[0], at))
            case "quantifier" if match["mode"] is not None:
                found["lazy" if match["mode"] == "?" else "possessive"].append(Source(match[0], at))
        at = match.end()
    return found
