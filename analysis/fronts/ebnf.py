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
from collections.abc import Mapping

from maskwright.analysis.arguments import need_type
from maskwright.analysis.errors import GrammarError
from maskwright.analysis.fronts.expressions import (
    EMPTY,
    Expr,
    characters,
    repetition,
    sequence,
)
from maskwright.analysis.fronts.gbnf import SPACE, RuleReader
from maskwright.analysis.fronts.reading import Reader
from maskwright.analysis.fronts.scannerless import compile_rules
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.nesting import on_own_stack
from maskwright.analysis.regex.charset import EVERYTHING

MACROS = ("TagDispatch", "TokenTagDispatch", "Token", "ExcludeToken", "Regex", "Substring")
"""Names that are calls in xgrammar, not rules."""

_NAME = r"[A-Za-z_.-][A-Za-z0-9_.-]*+"
_RULE = re.compile(_NAME + r"(?:\[[^\]\r\n]*\][ \t]*|(?:[ \t\r\n]++|#[^\r\n]*+)*+)::=")
_OPTIONS = re.compile(r"\[[^\]\r\n]*\][ \t]*::=")
_SIGNS = {
    **{sign: sign for sign in "'\"?\\/"},
    **{"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0", "e": "\x1b"},
}


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
    return compile_rules(EbnfReader(reader).read(root_rule), reader)


class EbnfReader(RuleReader):
    """Reads the rules of a text in xgrammar's EBNF."""

    name_of_rule = re.compile(_NAME)
    blanks = SPACE
    signs = _SIGNS
    signs_of_class = _SIGNS | {sign: sign for sign in "^$\\.*+?()[]{}|/-"}
    hexadecimal: Mapping[str, int | None] = {"x": None, "u": 4, "U": 8}
    known_escapes = ""
    closed_on_line = "\r\n"

    def refuse_options(self, name: str) -> None:
        """Raise GrammarError where options of a rule come next."""
        reader = self.reader
        if reader.next == "[" and (found := _OPTIONS.match(reader.text, reader.at)) is not None:
            shown = found[0].partition("]")[0] + "]"
            raise reader.error(
                f"options of a rule are not supported: {shown[:60]} of rule {name[:60]!r}; leave them out"
            )

    def check_name(self, name: str, start: int) -> None:
        """Raise GrammarError if a rule cannot have this name at this offset."""
        text = self.reader.text
        if name in ("true", "false"):
            raise self.reader.error(f"{name} is a value in xgrammar's EBNF, and no name of a rule", start)
        if text[max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1 : start].strip(" \t"):
            raise self.reader.error(f"the name of rule {name[:60]!r} must be the first word on its line", start)

    def check_end(self, name: str) -> None:
        """Raise GrammarError if a rule cannot end here."""
        if self.reader.starts("(="):
            raise self.reader.error(
                "a look-ahead assertion (= ...) is not supported; leave it out if it is only a hint"
            )
        if self.reader.next == ")":
            raise self.reader.error("this closing parenthesis closes no group")

    def sequence(self, space: re.Pattern[str]) -> Expr:
        """One element or more with what repeats it, up to ``|``, ``)``, ``(=`` or the next rule."""
        reader = self.reader
        parts: list[Expr] = []
        while True:
            ends = reader.next in ("", "|", ")") or reader.starts("(=") or _RULE.match(reader.text, reader.at)
            if ends and parts:
                return sequence(parts)
            if ends:
                raise reader.error(f'expected an element, found {reader.found}; an empty alternative is written ""')
            part = self.element()
            reader.match(SPACE)
            if reader.next and reader.next in "*+?{":
                part = repetition(part, *reader.counts(SPACE, endless="-1"))
                reader.match(SPACE)
            parts.append(part)

    def element(self) -> Expr:
        """The next element without what repeats it."""
        reader = self.reader
        start = reader.at
        if (common := self.common_element()) is not None:
            return common
        found = reader.match(self.name_of_rule)
        if found is None:
            raise reader.error(f"expected an element of a rule, found {reader.found}")
        if found[0] in MACROS:
            raise reader.error(f"the macro {found[0]}(...) is not supported; say what it means by rules", start)
        if found[0] in ("true", "false"):
            raise reader.error(f'{found[0]} is a value and no element; write "{found[0]}" for the text', start)
        return self.use(found[0], start)

    def group(self) -> Expr:
        """What stands in parentheses."""
        return EMPTY if self.reader.next == ")" else super().group()

    def empty_class(self, is_negated: bool, start: int) -> Expr:
        """What a class without characters means. Raises: GrammarError."""
        if not is_negated:
            raise self.reader.error("this set of characters is empty; write [^] for any character", start)
        return characters(EVERYTHING)

    def class_character(self, start: int) -> int:
        """The next character of a class that begins at an offset."""
        reader = self.reader
        letter = reader.text[reader.at + 1 : reader.at + 2]
        if reader.next == "\\" and letter and letter in "dDsSwW":
            raise reader.error(f"\\{letter} is not supported in a set of characters; write the ranges, as in [0-9]")
        return super().class_character(start)
