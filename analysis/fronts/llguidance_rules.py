"""The terminals of llguidance's Lark dialect as regular expressions, and its rules over them.

A lazy terminal ends as soon as it matches: it has the texts of its pattern that begin with no other
text of it. Where it competes with another terminal, it ends that one too: the lexer stops at the
first place at which a lazy terminal matches, and takes that one. So the other terminal loses all
texts that begin with a text of the lazy one. (If it is lazy too, it loses only those that go on
behind that text.)

Source: llguidance, parser/src/earley/regexvec.rs, lowest_match_inner.
"""

from __future__ import annotations

import itertools
import unicodedata
import warnings
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import GrammarError, LimitError, NestingError
from maskwright.analysis.fronts.assembly import TERMINAL, Lowered, assemble
from maskwright.analysis.fronts.expressions import (
    EMPTY,
    Expr,
    automaton_of,
    characters,
    choice,
    in_both,
    literal,
    non_empty,
    reference,
    repetition,
    sequence,
    without,
)
from maskwright.analysis.fronts.llguidance_syntax import Alternatives, Atom, Attributes, Definition, Document, Element
from maskwright.analysis.fronts.reading import Reader, suggested
from maskwright.analysis.fronts.rust_regex import perl_class, read_rust_regex, without_case
from maskwright.analysis.grammar.grammar import Grammar, Terminal
from maskwright.analysis.grammar.normalise import productive_symbols, reduce
from maskwright.analysis.graphs import reachable
from maskwright.analysis.lr.tables import build_merged_tables
from maskwright.analysis.nesting import MOST_NESTED
from maskwright.analysis.regex.charset import EVERYTHING
from maskwright.analysis.regex.dfa import MAX_STATES

MAX_SIZE = 100_000
"""The most positions of a terminal's expression."""
MAX_CHUNKS = 300
"""The most chunks of a substring."""

COMMON = {
    "DIGIT": r"[0-9]",
    "HEXDIGIT": r"[a-fA-F0-9]",
    "INT": r"[0-9]+",
    "SIGNED_INT": r"[+-]?[0-9]+",
    "DECIMAL": r"[0-9]+\.[0-9]*|\.[0-9]+",
    "_EXP": r"[eE][+-]?[0-9]+",
    "FLOAT": r"([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+",
    "SIGNED_FLOAT": r"[+-]?(([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)",
    "NUMBER": r"[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+",
    "SIGNED_NUMBER": r"[+-]?([0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)",
    "ESCAPED_STRING": r'"([^"\\]|\\.)*"',
    "LCASE_LETTER": r"[a-z]",
    "UCASE_LETTER": r"[A-Z]",
    "LETTER": r"[A-Za-z]",
    "WORD": r"[A-Za-z]+",
    "CNAME": r"[_A-Za-z][_A-Za-z0-9]*",
    "WS_INLINE": r"[ \t]+",
    "WS": r"[ \t\f\r\n]+",
    "CR": r"\r",
    "LF": r"\n",
    "NEWLINE": r"(\r?\n)+",
    "SH_COMMENT": r"#[^\n]*",
    "CPP_COMMENT": r"//[^\n]*",
    "C_COMMENT": r"/\*[^*]*\*+([^/*][^*]*\*+)*/",
    "SQL_COMMENT": r"--[^\n]*",
}
"""The terminals that `%import common.X` has in llguidance, by pattern."""


class Terminals:
    """The terminals of a document, by name; each is worked out when it is first needed."""

    def __init__(self, reader: Reader, document: Document) -> None:
        self.reader, self.document = reader, document
        self.known: dict[str, Expr] = {}
        self.under_way: list[str] = []
        for name, at in document.imports.values():
            if name not in COMMON:
                raise reader.error(f"common has no terminal {name!r}{suggested(name, list(COMMON))}", at)

    def knows(self, name: str) -> bool:
        """Whether a terminal has this name."""
        return name in self.document.terminals or name in self.document.imports

    def named(self, name: str, at: int) -> Expr:
        """The expression of a terminal. Raises GrammarError if it is not defined, or circular."""
        if name in self.known:
            return self.known[name]
        if not self.knows(name):
            known = [*self.document.terminals, *self.document.imports]
            hint = f"; {name} is a rule, and a terminal has no rules in it" if name in self.document.rules else ""
            raise self.reader.error(f"terminal {name!r} is not defined{hint or suggested(name, known)}", at)
        if name in self.under_way:
            raise self.reader.error(f"terminal {name!r} needs itself: {' -> '.join([*self.under_way, name][-6:])}", at)
        if len(self.under_way) >= MOST_NESTED:
            raise NestingError(
                f"grammar {self.reader.name}: more than {MOST_NESTED} terminals stand inside one another, {name} in the last; "
                "write them flatter"
            )
        if name in self.document.imports:
            source = COMMON[self.document.imports[name][0]]
            found = read_rust_regex(Reader(source, f"common.{name}"), 0, len(source), "")
        else:
            self.under_way.append(name)
            found = self.alternatives(self.document.terminals[name].body)
            self.under_way.pop()
        self.known[name] = found
        return found

    def alternatives(self, body: Alternatives) -> Expr:
        """The expression of a body: each option has the texts of all of its sequences."""
        options = []
        for conjuncts in body:
            plain = [sequence(map(self.element, one)) for one in conjuncts if not _is_negated(one)]
            negated = [one[0] for one in conjuncts if _is_negated(one)]
            if not plain:
                at = negated[0].atom.at
                raise self.reader.error(
                    "~ alone also matches what is no text in UTF-8; join it with a pattern by &, as in /(?s:.*)/ & ~/.../",
                    at,
                )
            found = plain[0]
            for other in plain[1:]:
                found = in_both(found, other)
            for one in negated:
                if one.atom.of is not None:
                    found = without(found, self.atom(one.atom.of))
            options.append(self.checked(found))
        return choice(options)

    def checked(self, expr: Expr) -> Expr:
        """The expression itself. Raises LimitError if it is too large."""
        if expr.size > MAX_SIZE or len(str(expr.pattern)) > 10 * MAX_SIZE:
            where = f" of {self.under_way[-1]}" if self.under_way else ""
            raise LimitError(f"grammar {self.reader.name}: the pattern{where} has more than {MAX_SIZE} positions")
        return expr

    def element(self, element: Element) -> Expr:
        """The expression of an element."""
        return self.checked(repetition(self.atom(element.atom), element.least, element.most))

    def atom(self, atom: Atom) -> Expr:
        """The expression of an atom."""
        match atom.kind:
            case "group":
                return self.alternatives(atom.inner)
            case "maybe":
                return repetition(self.alternatives(atom.inner), 0, 1)
            case "name":
                return self.named(atom.text, atom.at)
            case "string":
                return without_case(atom.text) if atom.ignores_case else literal(atom.text)
            case "range":
                return characters(((ord(atom.text), ord(atom.last)),))
            case "regex":
                return read_rust_regex(self.reader, *atom.span, atom.text)
            case "substring" | "words":
                return self.substring(atom)
            case "part":
                what = {"token": "a special token", "grammar": "another grammar"}.get(atom.text, f"%{atom.text}")
                raise self.reader.error(f"{what} stands in rules only, and this is a terminal", atom.at)
        raise self.reader.error("~ is supported only as a whole side of &, as in /[a-z]+/ & ~/if|else/", atom.at)

    def words(self, atom: Atom) -> tuple[str, ...]:
        """A text cut into runs of blanks, of letters and digits, and of other characters."""
        for character in atom.text:
            if unicodedata.category(character)[0] == "M" or 0x24B6 <= ord(character) <= 0x24E9:
                raise self.reader.error(
                    f"substring_words with {character!r} is not supported, which Rust may take for a letter; use substring_chunks",
                    atom.at,
                )
        return tuple("".join(group) for _, group in itertools.groupby(atom.text, _kind_of_character))

    def substring(self, atom: Atom) -> Expr:
        """What joins neighbouring chunks, none of them included."""
        chunks = atom.chunks if atom.kind == "substring" else self.words(atom)
        if len(chunks) > MAX_CHUNKS:
            raise self.reader.error(f"a substring of {len(chunks)} chunks is not supported; {MAX_CHUNKS} are", atom.at)
        options = [EMPTY]
        following: Expr = EMPTY
        for chunk in reversed(chunks):
            following = sequence((literal(chunk), repetition(following, 0, 1)))
            options.append(following)
        return choice(options[::-1])


def _kind_of_character(character: str) -> str:
    if any(low <= ord(character) <= high for low, high in perl_class("s")):
        return "blank"
    return "word" if character == "_" or unicodedata.category(character)[0] in "LN" else "other"


def _is_negated(elements: tuple[Element, ...]) -> bool:
    return len(elements) == 1 and elements[0].atom.kind == "not" and elements[0].least == elements[0].most == 1


# -- rules

_ANY = characters(EVERYTHING)


class Rules:
    """The rules as expressions over terminals and parts.

    terminals : the name or source of each terminal that a rule uses -> its expression.
    parts : the same of other languages -> where it stands.
    lazy : the terminals whose shortest text counts.
    last : the terminals behind which nothing may come, of ``stop=""`` -> where that stands.
    """

    def __init__(self, reader: Reader, document: Document, terminals: Terminals) -> None:
        self.reader, self.document, self.named = reader, document, terminals
        self.terminals: dict[str, Expr] = {}
        self.parts: dict[str, Atom] = {}
        self.lazy: set[str] = set()
        self.last: dict[str, int] = {}
        self.by_pattern: dict[str, str] = {}

    def reachable(self, start: str) -> Mapping[str, Expr]:
        """The rules that a rule leads to, itself first.

        Warns: UserWarning for attributes that say nothing of the texts.
        """
        found: dict[str, Expr] = {}
        self.agenda = {start: None}
        self.others: set[str] = set()
        while len(found) < len(self.agenda):
            name = list(self.agenda)[len(found)]
            one = self.document.rules[name]
            found[name] = self.rule(one, one.attributes) if one.attributes is not None else self.alternatives(one.body)
        if self.others:
            warnings.warn(
                f"grammar {self.reader.name}: {', '.join(sorted(self.others))} of rules say nothing of the texts, so masks ignore them",
                UserWarning,
                stacklevel=2,
            )
        return found

    def rule(self, one: Definition, attributes: Attributes) -> Expr:
        """The expression of a rule with attributes."""
        self.others.update(attributes.others)
        ending, most = attributes.ending, attributes.most_tokens
        if most == 0:
            return EMPTY
        if most is not None:
            if ending is not None or attributes.is_lazy:
                raise self.reader.error("max_tokens= beside lazy, stop= or suffix= is not supported", attributes.at)
            body = self.named.alternatives(one.body)
            texts = automaton_of(non_empty(body), MAX_STATES)
            atom = Atom("part", one.at, text="max_tokens", value=(one.name, texts, most))
            return repetition(self.part(atom), 0 if body.is_nullable else 1, 1)
        if ending is not None or attributes.is_lazy:
            body = self.named.alternatives(one.body)
            if ending is not None:
                body = sequence((body, self.named.atom(ending)))
            found = self.terminal(
                f"{one.name} (lazy)" if attributes.is_lazy else one.name, body, one.at, attributes.is_lazy
            )
            if not attributes.is_lazy:
                self.last[self.by_pattern[str(non_empty(body).pattern)]] = attributes.at
            return found
        if attributes.is_one and not _is_one_part(one.body):
            return self.terminal(one.name, self.named.alternatives(one.body), one.at, False)
        return self.alternatives(one.body)

    def alternatives(self, body: Alternatives) -> Expr:
        """The expression of a body."""
        options = []
        for conjuncts in body:
            if len(conjuncts) > 1:
                at = conjuncts[1][0].atom.at if conjuncts[1] else None
                raise self.reader.error("& joins terminals only; give this definition a name in upper case", at)
            elements = conjuncts[0]
            options.append(
                sequence(
                    self.element(element)
                    for i, element in enumerate(elements)
                    if not (i and self._is_own_stop(elements[i - 1], element))
                )
            )
        return choice(options)

    def _is_own_stop(self, before: Element, element: Element) -> bool:
        """Whether an element is the text of the `stop` of a rule directly before it.

        The text stands there once: llguidance takes it away from the first one.
        """
        rule = self.document.rules.get(before.atom.text) if before.atom.kind == "name" else None
        if rule is None or rule.attributes is None or not rule.attributes.is_stop or before[1:] != (1, 1):
            return False
        stop = rule.attributes.ending
        return (
            stop is not None
            and (stop.kind, stop.text, stop.ignores_case)
            == (element.atom.kind, element.atom.text, element.atom.ignores_case)
            and stop.kind in ("string", "name")
            and stop.text != ""
            and element[1:] == (1, 1)
        )

    def element(self, element: Element) -> Expr:
        """The expression of an element."""
        return repetition(self.atom(element.atom), element.least, element.most)

    def atom(self, atom: Atom) -> Expr:
        """The expression of an atom; whatever is no group, no rule and no part is a terminal."""
        if atom.kind == "group":
            return self.alternatives(atom.inner)
        if atom.kind == "maybe":
            return repetition(self.alternatives(atom.inner), 0, 1)
        if atom.kind == "part":
            return self.part(atom)
        if atom.kind == "name" and atom.text in self.document.rules:
            attributes = self.document.rules[atom.text].attributes
            if attributes is not None and attributes.is_lazy:
                # in place: behind a rule of its own, what follows all of its uses would compete
                return self.rule(self.document.rules[atom.text], attributes)
            self.agenda.setdefault(atom.text)
            return reference(atom.text, atom.at)
        if atom.kind == "name" and not self.named.knows(atom.text):
            known = [*self.document.rules, *self.document.terminals, *self.document.imports]
            raise self.reader.error(f"{atom.text!r} is not defined{suggested(atom.text, known)}", atom.at)
        return self.terminal(atom.text if atom.kind == "name" else None, self.named.atom(atom), atom.at, False)

    def terminal(self, name: str | None, expr: Expr, at: int, is_lazy: bool) -> Expr:
        """A terminal in a rule.

        name : by which messages call it; None for a text or a pattern.
        is_lazy : whether only the texts count that begin with no other text of it.
        """
        filled = non_empty(expr)
        if filled.is_never:
            return filled if not expr.is_nullable else sequence(())
        if is_lazy:
            filled = shortest(filled)
        pattern = f"lazy {filled.pattern}" if is_lazy else str(filled.pattern)
        key = self.by_pattern.get(pattern)
        if key is None:
            key = name or (f'"{filled.pattern}"' if filled.text else f"/{filled.pattern}/")
            self.by_pattern[pattern] = key
            self.terminals[key] = filled
            if is_lazy:
                self.lazy.add(key)
        found = reference(TERMINAL + key, at)
        return repetition(found, 0, 1) if expr.is_nullable else found

    def part(self, atom: Atom) -> Expr:
        """Another language in a rule."""
        name = {"token": atom.last, "grammar": f"@{atom.value}"}.get(atom.text)
        key = name or f"%{atom.text} at {atom.at}"
        self.parts.setdefault(key, atom)
        return reference(TERMINAL + key, atom.at)


def _is_one_part(body: Alternatives) -> bool:
    """Whether a body is another language and nothing else."""
    if len(body) != 1 or len(body[0]) != 1 or len(body[0][0]) != 1:
        return False
    element = body[0][0][0]
    return element.atom.kind == "part" and element[1:] == (1, 1)


def shortest(expr: Expr) -> Expr:
    """The texts of a regular expression of which no beginning is a text of it.

    expr : does not match the empty text.

    Raises: LimitError as `without`.
    """
    return without(expr, sequence((expr, repetition(_ANY, 1, None))))


def cut_by_lazy(reader: Reader, rules: Rules, lowered: Lowered, ignored: Expr) -> list[Expr]:
    """The terminals' expressions, without what lazy terminals end before.

    lowered : the rules. ignored : what is ignored; NEVER if nothing is.

    Raises: GrammarError if a terminal competes with a lazy one that ends it in some places and not
    in others, or if something may come behind ``stop=""``; LimitError as `without`.
    """
    found = list(rules.terminals.values())
    if not rules.lazy and not rules.last:
        return found
    keys = list(rules.terminals)
    plain = _plain_grammar(reader, [*keys, *rules.parts], lowered)
    if plain is None:
        return found  # it has no finite text, which is an error later on
    for key, at in rules.last.items():
        if not _is_last(plain, keys.index(key)):
            raise reader.error(
                'something may come behind a rule with stop="", which ends with the text; leave stop="" out', at
            )
    if not rules.lazy:
        return found
    tables = build_merged_tables(plain, "all").tables
    stands: list[npt.NDArray[np.bool_]] = [
        tables.action[:, column] != 0 if column >= 0 else np.zeros(len(tables.action), np.bool_)
        for column in tables.terminal_column.tolist()
    ]
    for z, lazy in enumerate(keys):
        if lazy not in rules.lazy:
            continue
        first = rules.terminals[lazy]
        for t, key in enumerate(keys):
            if t == z or not (stands[t] & stands[z]).any():
                continue
            ended = sequence((first, repetition(_ANY, 1 if key in rules.lazy else 0, None)))
            if in_both(rules.terminals[key], ended).is_never:
                continue
            if (stands[t] & ~stands[z]).any():
                raise _refused(
                    reader,
                    key,
                    f"the lazy rule {lazy} ends {key} in some places, and in others it does not stand there",
                )
            found[t] = without(found[t], ended)
            if found[t].is_never:
                raise _refused(reader, key, f"the lazy rule {lazy} takes all texts of {key}")
        if not ignored.is_never and not in_both(ignored, sequence((first, repetition(_ANY, 0, None)))).is_never:
            raise _refused(reader, lazy, f"the lazy rule {lazy} matches beginnings of what is ignored")
    return found


def _refused(reader: Reader, key: str, what: str) -> GrammarError:
    return GrammarError(f"grammar {reader.name}: {what}: give {key} a pattern that does not begin so")


def _plain_grammar(reader: Reader, keys: list[str], lowered: Lowered) -> Grammar | None:
    """The grammar in which each terminal and part is one, whatever its texts; None if empty."""
    grammar = assemble(
        lowered,
        [Terminal(f"t{i}", "a") for i in range(len(keys))],
        {TERMINAL + key: (i,) for i, key in enumerate(keys)},
        "longest",
        reader.name,
        "",
    )
    return reduce(grammar) if grammar.start in productive_symbols(grammar) else None


def _is_last(grammar: Grammar, terminal: int) -> bool:
    """Whether a terminal stands last in every text that has it."""

    def inside(state: tuple[int, bool]) -> Iterator[tuple[int, bool]]:
        symbol, is_inner = state
        for rule in grammar.rules_of.get(symbol, ()) if symbol >= grammar.n_terminals else ():
            for i, one in enumerate(rule.rhs):
                yield one, is_inner or i + 1 < len(rule.rhs)

    return (terminal, True) not in reachable([(grammar.start, False)], inside)
