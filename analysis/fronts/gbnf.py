r"""GBNF, the grammar language of llama.cpp, and EBNF, that of xgrammar: a text to a `Grammar`.

A rule of GBNF is ``name ::= alternatives``. Its elements are texts ``"..."``, sets of characters
``[...]`` and ``[^...]``, ``.`` for any character, names of rules, and groups. Behind an element
stand ``*``, ``+``, ``?``, ``{m}``, ``{m,}`` or ``{m,n}``. The escapes are ``\n \r \t \\ \" \[ \] \-
\xHH \uHHHH \UHHHHHHHH``. A rule ends with its line, but not inside a group or behind ``|`` and
``::=``. The texts are those of the rule ``root``, character by character: there is no lexer
(`scannerless`).

Where llama.cpp's parser goes a way of its own, we say so instead of following it:

- a rule that is defined twice is an error (there, the last definition wins);
- ``[]``, ``[^]`` and a range such as ``[z-a]`` are errors;
- a repetition of more than 2,000 is read as it is written (there, it has no upper limit);
- recursion on the left is read (there, it is an error);
- a character U+0000 is one like all others (there, a text ends at it).

``<name>`` and ``<[id]>`` are one token of the vocabulary, ``!<name>`` and ``!<[id]>`` any other one
that does not end the text; ids may be sets, as in ``<[5,7-9]>``, which newer versions write. They
are parts of a composition (`analysis.composition`). A name, which holds no line break, is with its
``<`` and ``>`` that of a special token, or the text of another one (there, a text of which the
tokenizer makes one token). A special token has no text here (there, ``"<think>"`` and ``.`` may
spell it).

xgrammar's EBNF looks like GBNF, with these differences. Line breaks mean nothing, but a rule's name
is the first word on its line. A name may have dots, and no digit first. A class ``[^]`` is any
character; there is no ``.``. An alternative is not empty; ``""`` and ``()`` say the empty text. An
element has at most one repetition, and ``{m, -1}`` is ``{m,}``. More escapes exist: ``\' \? \/ \a
\b \f \v \0 \e``, and in classes those of signs; ``\x`` takes all hexadecimal digits that follow.
Tokens are ``Token(id, ...)`` and ``ExcludeToken(id, ...)``, and there is ``TokenTagDispatch``.

Refused there by name: other macros (``TagDispatch``, ``Regex``, ``Substring``), look-ahead
assertions ``(= ...)``, and options of rules (``name[max_tokens=3] ::= ...``).

Source: llama.cpp, grammars/README.md and src/llama-grammar.cpp; xgrammar,
docs/defining_structures/ebnf_grammar.md and cpp/grammar_parser.cc.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from maskwright.analysis.arguments import need_type
from maskwright.analysis.errors import GrammarError
from maskwright.analysis.fronts.assembly import TERMINAL, HostGrammar
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
from maskwright.analysis.fronts.llguidance_syntax import Atom, tokens_of
from maskwright.analysis.fronts.reading import Reader, suggested, undefined
from maskwright.analysis.fronts.scannerless import RuleSet, compile_rules
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.nesting import MOST_NESTED, on_own_stack
from maskwright.analysis.regex.charset import EVERYTHING, complement, normalise

SPACE = re.compile(r"(?:[ \t\r\n]+|#[^\r\n]*)*")
_BLANKS = re.compile(r"(?:[ \t]+|#[^\r\n]*)*")
_TOKEN = re.compile(r"(!?)(<[^>\r\n]*>)")
_ID = re.compile(r"[0-9]{1,9}(?![0-9])")
_GO_ON = tuple('|"[(.*+?{<!')
"""What a line begins with that goes on with the rule before it, were it not for the line break."""
_HELD = "as llama.cpp reads it; put what it stands for into parentheses, or write the | at the end of the line"


def parse_gbnf(text: str, name: str = "<gbnf>") -> Grammar:
    r"""The grammar of a text in GBNF.

    name : the grammar's name, which error messages show.

    Raises: as `read_rules`; GrammarError for a token, which makes the text a composition.

    >>> print(parse_gbnf('root ::= "(" root ")" | [0-9]+'))
    <Grammar <gbnf>: 3 terminals, 1 nonterminals, 2 rules, start 'root'>
    """
    return read_rules(text, name).alone()


def parse_ebnf(text: str, name: str = "<ebnf>", root_rule: str = "root") -> Grammar:
    r"""The grammar of a text in xgrammar's EBNF.

    name : the grammar's name, which error messages show. root_rule : the rule of whole texts.

    Raises: as `read_rules`; GrammarError for a token, which makes the text a composition.

    >>> print(parse_ebnf('main ::= "a" main | "b"', root_rule="main"))
    <Grammar <ebnf>: 1 terminals, 1 nonterminals, 1 rules, start 'main'>
    """
    return read_rules(text, name, "ebnf", root_rule).alone()


@on_own_stack
def read_rules(text: str, name: str, syntax: Literal["gbnf", "ebnf"] = "gbnf", root: str = "root") -> HostGrammar:
    """The grammar of a text in GBNF or EBNF, whose parts are tokens.

    name : the grammar's name, which error messages show. root : the rule of whole texts.

    Raises: GrammarError, with the place, for bad syntax, an undefined rule, a rule defined twice,
    and for what is refused (see the module); EmptyLanguageError if the root rule has no finite
    text; LimitError if repetitions unfold to too many rules.
    """
    reader = Reader(text, name)
    need_type("root_rule", root, str, "the name of a rule", GrammarError)
    return compile_rules((EbnfReader if syntax == "ebnf" else RuleReader)(reader).read(root), reader)


class RuleReader:
    """Reads the rules of a text in GBNF.

    `EbnfReader` reads a language that differs in some of it: in the attributes here, and in the
    methods that it overrides.
    """

    name_of_rule = re.compile(r"[A-Za-z0-9_-]+")
    blanks = _BLANKS
    """What may stand between the elements of a rule, outside all groups."""
    signs: Mapping[str, str] = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "[": "[", "]": "]", "-": "-"}
    """The letter of an escape -> its character."""
    signs_of_class = signs
    hexadecimal: Mapping[str, int | None] = {"x": 2, "u": 4, "U": 8}
    """The letter of an escape -> how many hexadecimal digits it has; None: all that follow."""
    known_escapes = r"; known are \n \r \t \\ \" \[ \] \- \xHH \uHHHH \UHHHHHHHH"
    closed_on_line = ""
    """The characters that may not stand in a text in quotes or a class, line breaks or none."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self._uses: list[Expr] = []
        self._tokens: dict[str, Atom] = {}

    def read(self, root: str) -> RuleSet:
        """The rules of the text. Raises: GrammarError. root : the rule of whole texts."""
        reader = self.reader
        rules: dict[str, Expr] = {}
        places: dict[str, int] = {}
        name = ""
        reader.match(SPACE)
        while reader.next:
            start = reader.at
            found = reader.match(self.name_of_rule)
            if found is None:
                ended = f"; rule {name[:60]!r} ended with its line, {_HELD}" if name and reader.next in _GO_ON else ""
                raise reader.error(f"expected the name of a rule, found {reader.found}{ended}")
            name = found[0]
            self.check_name(name, start)
            reader.match(self.blanks)
            reader.expect("::=", f"behind the name {name[:60]!r}")
            if name in rules:
                line, _ = reader.place(places[name])
                raise reader.error(f"rule {name!r} is defined twice, first in line {line}", start)
            places[name] = start
            reader.match(SPACE)
            rules[name] = self._alternatives(self.blanks)
            self.check_end(name)
            reader.match(SPACE)
        if root not in rules:
            what = f"there is no rule {root[:60]!r}, where the texts begin"
            raise reader.error(what + suggested(root, list(rules)), 0)
        for use in self._uses:
            if use.name not in rules:
                raise undefined(reader, use.name, use.offset, rules)
        return RuleSet(rules, root, places, self._tokens)

    def check_name(self, name: str, start: int) -> None:
        """Raise GrammarError if a rule cannot have this name at this offset, or what comes next."""

    def check_end(self, name: str) -> None:
        """Raise GrammarError if a rule cannot end here."""
        if self.reader.next not in ("", "\r", "\n"):
            raise self.reader.error(
                f"expected an element of rule {name[:60]!r} or the end of its line, found {self.reader.found}"
            )

    def _alternatives(self, space: re.Pattern[str]) -> Expr:
        options = [self.sequence(space)]
        while self.reader.take("|"):
            self.reader.match(SPACE)
            options.append(self.sequence(space))
        return choice(options)

    def sequence(self, space: re.Pattern[str]) -> Expr:
        """Elements with what repeats them. space : what may stand between them."""
        reader = self.reader
        parts: list[Expr] = []
        while True:
            is_group = reader.next == "("
            if (part := self.element()) is None:
                break
            is_there = is_group or part is not EMPTY  # llama.cpp's parser repeats an empty group, but not ""
            reader.match(space)
            while reader.next and reader.next in "*+?{":
                start = reader.at
                if not is_there:
                    raise reader.error("there is nothing to repeat before this")
                least, most = reader.counts(SPACE)
                part, is_there = repetition(part, least, most), most != 0
                if part.depth > 4 * MOST_NESTED:
                    raise reader.error("too many repetitions of repetitions", start)
                reader.match(space)
            parts.append(part)
        if reader.next and reader.next in "*+?{":
            raise reader.error("there is nothing to repeat before this")
        return sequence(parts)

    def element(self) -> Expr | None:
        """The next element without what repeats it; None if none comes next."""
        reader = self.reader
        start = reader.at
        if (found := self.common_element()) is not None:
            return found
        if reader.take("."):
            return characters(EVERYTHING)
        if (token := reader.match(_TOKEN)) is not None:
            said = tokens_of(reader, token[2], start)
            of, is_excluding = ((said,), False) if isinstance(said, str) else said
            if is_excluding and token[1]:
                raise reader.error(f"{token[0]} says twice that other tokens are meant", start)
            return self.token(token[0], of, is_excluding or bool(token[1]), start)
        if reader.next in ("<", "!"):
            raise reader.error("expected a token, which is written <name>, <[id]>, !<name> or !<[id]> on one line")
        name = reader.match(self.name_of_rule)
        return None if name is None else self.use(name[0], start)

    def token(self, written: str, tokens: Sequence[int | str], is_excluding: bool, start: int) -> Expr:
        """The element that is one token of a set, or of all others."""
        self._tokens.setdefault(
            written, Atom("part", start, text="token", last=written, value=(tuple(tokens), is_excluding))
        )
        return reference(TERMINAL + written, start)

    def use(self, name: str, start: int) -> Expr:
        """The element that is a rule."""
        self._uses.append(reference(name, start))
        return self._uses[-1]

    def common_element(self) -> Expr | None:
        """A text, a class or a group, if one comes next."""
        reader = self.reader
        start = reader.at
        if reader.take('"'):
            return self._text(start)
        if reader.take("["):
            return self._class(start)
        if not reader.take("("):
            return None
        reader.enter()
        reader.match(SPACE)
        inner = self.group()
        reader.expect(")", f"to close the group of line {reader.place(start)[0]}")
        reader.leave()
        return inner

    def group(self) -> Expr:
        """What stands in parentheses."""
        return self._alternatives(SPACE)

    def _text(self, start: int) -> Expr:
        reader = self.reader
        found = []
        while not reader.take('"'):
            self._check_open("text", "quote", start)
            found.append(chr(self._character(self.signs)))
        reader.check_literal(len(found), start)
        return literal("".join(found))

    def _check_open(self, what: str, closing: str, start: int) -> None:
        """Raise GrammarError where a text in quotes or a class ends too early."""
        if self.reader.next and self.reader.next not in self.closed_on_line:
            return
        where = (" on its line" + r"; write \n for a line feed" * (what == "text")) if self.closed_on_line else ""
        raise self.reader.error(f"this {what} has no closing {closing}{where}", start)

    def _class(self, start: int) -> Expr:
        reader = self.reader
        is_negated = reader.take("^")
        pairs: list[tuple[int, int]] = []
        while not reader.take("]"):
            at = reader.at
            low = high = self.class_character(start)
            if reader.starts("-") and not reader.starts("-]"):
                reader.take("-")
                high = self.class_character(start)
            if low > high:
                raise reader.error(
                    f"the range {reader.text[at : reader.at]} is empty: its ends are the wrong way round", at
                )
            pairs.append((low, high))
        if not pairs:
            return self.empty_class(is_negated, start)
        ranges = normalise(pairs)
        return characters(complement(ranges) if is_negated else ranges)

    def empty_class(self, is_negated: bool, start: int) -> Expr:
        """What a class without characters means. Raises: GrammarError."""
        raise self.reader.error("this set of characters is empty; write . for any character", start)

    def class_character(self, start: int) -> int:
        """The next character of a class that begins at an offset."""
        self._check_open("set of characters", "bracket", start)
        return self._character(self.signs_of_class)

    def _character(self, signs: Mapping[str, str]) -> int:
        reader = self.reader
        start = reader.at
        if not reader.take("\\"):
            reader.at += 1
            return ord(reader.text[start])
        letter = reader.next
        reader.at += len(letter)
        if letter in signs:
            return ord(signs[letter])
        if letter in self.hexadecimal:
            return reader.hexadecimal(self.hexadecimal[letter], start)
        raise reader.error(f"unknown escape {reader.text[start : start + 2]!r}{self.known_escapes}", start)


_OF_TOKENS = ("Token", "ExcludeToken", "TokenTagDispatch")
MACROS = (*_OF_TOKENS, "TagDispatch", "Regex", "Substring")
"""Names that are calls in xgrammar, not rules."""

_NAME = r"[A-Za-z_.-][A-Za-z0-9_.-]*+"
_TAG = re.compile(rf"\(\s*+([0-9]{{1,9}})\s*+,\s*+({_NAME})\s*+,?\s*+\)")
_EXCLUDES = re.compile(r"excludes\s*+=")
_GOES_ON = re.compile(r"loop_after_dispatch\s*+=\s*+(true|false)\b")
_RULE = re.compile(_NAME + r"(?:\[[^\]\r\n]*\][ \t]*|(?:[ \t\r\n]++|#[^\r\n]*+)*+)::=")
_OPTIONS = re.compile(r"\[[^\]\r\n]*\][ \t]*::=")
_SIGNS = {
    **{sign: sign for sign in "'\"?\\/"},
    **{"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0", "e": "\x1b"},
}


class EbnfReader(RuleReader):
    """Reads the rules of a text in xgrammar's EBNF."""

    name_of_rule = re.compile(_NAME)
    blanks = SPACE
    signs = _SIGNS
    signs_of_class = _SIGNS | {sign: sign for sign in "^$\\.*+?()[]{}|/-"}
    hexadecimal: Mapping[str, int | None] = {"x": None, "u": 4, "U": 8}
    known_escapes = ""
    closed_on_line = "\r\n"

    def check_name(self, name: str, start: int) -> None:
        """Raise GrammarError if a rule cannot have this name at this offset, or what comes next."""
        reader, text = self.reader, self.reader.text
        if reader.next == "[" and (found := _OPTIONS.match(reader.text, reader.at)) is not None:
            shown = found[0].partition("]")[0] + "]"
            raise reader.error(
                f"options of a rule are not supported: {shown[:60]} of rule {name[:60]!r}; leave them out"
            )
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
        if found[0] in _OF_TOKENS:
            return self._macro(found[0], start)
        if found[0] in MACROS:
            raise reader.error(f"the macro {found[0]}(...) is not supported; say what it means by rules", start)
        if found[0] in ("true", "false"):
            raise reader.error(f'{found[0]} is a value and no element; write "{found[0]}" for the text', start)
        return self.use(found[0], start)

    def _list(self, what: str) -> Iterator[None]:
        """Stop before each value of a list in parentheses, which the caller reads. what : it is."""
        reader = self.reader
        reader.match(SPACE)
        reader.expect("(", f"before {what}")
        reader.match(SPACE)
        while not reader.take(")"):
            yield
            reader.match(SPACE)
            if not reader.take(",") and reader.next != ")":
                raise reader.error(f"expected a comma or ')' in {what}, found {reader.found}")
            reader.match(SPACE)

    def _id(self) -> int:
        if (found := self.reader.match(_ID)) is None:
            raise self.reader.error(f"expected the id of a token, found {self.reader.found}")
        return int(found[0])

    def _of_ids(self, ids: Iterable[int], is_excluding: bool, start: int) -> Expr:
        """As `token`. However some ids are written, they are one terminal."""
        ordered = sorted(set(ids))
        written = f"{'ExcludeToken' if is_excluding else 'Token'}({', '.join(map(str, ordered))})"
        return self.token(written, ordered, is_excluding, start)

    def _macro(self, name: str, start: int) -> Expr:
        """What a macro of tokens stands for. It is read from behind its name on."""
        reader = self.reader
        if name != "TokenTagDispatch":
            if not (ids := [self._id() for _ in self._list(f"the ids of {name}")]):
                raise reader.error(f"{name}() names no token", start)
            return self._of_ids(ids, name == "ExcludeToken", start)
        tags: list[Expr] = []
        triggers, excluded, goes_on = set[int](), set[int](), True
        for _ in self._list(f"what {name} takes"):
            at = reader.at
            if (key := reader.match(_EXCLUDES)) is not None:
                excluded.update(self._id() for _ in self._list("what is excluded"))
            elif (key := reader.match(_GOES_ON)) is not None:
                goes_on = key[1] == "true"
            elif (key := reader.match(_TAG)) is not None:
                triggers.add(int(key[1]))
                tags.append(sequence((self._of_ids([int(key[1])], False, at), self.use(key[2], key.start(2)))))
            else:
                raise reader.error("expected (id, rule), excludes=(id, ...) or loop_after_dispatch=true or false")
        if both := triggers & excluded:
            raise reader.error(f"token {min(both)} is a trigger of {name} and excluded, too", start)
        free, tag = self._of_ids(triggers | excluded, True, start), choice(tags)
        if goes_on:
            return repetition(choice((free, tag)), 0, None)
        return sequence((repetition(free, 0, None), repetition(tag, 0, 1)))

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
