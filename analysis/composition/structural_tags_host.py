"""The host of a structural tag: rules of single characters, and the parts that stand in them.

An *expression* is a body of rules: items one behind the other, () for the empty text. Rules end in
what shows, as far as they can: a parser with one character of lookahead need not know which of two
formats goes on before they differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from lark.utils import small_factors

from maskwright.analysis.composition.compose import Composition, Part, as_part
from maskwright.analysis.composition.token_parts import AtMostTokens, TokenSet, token_set
from maskwright.analysis.errors import EmptyLanguageError
from maskwright.analysis.fronts.assembly import TERMINAL, Body, Item, Lowered, assemble, part_terminal, without_unused
from maskwright.analysis.fronts.expressions import reference
from maskwright.analysis.grammar.grammar import Terminal
from maskwright.analysis.grammar.normalise import productive_symbols, reduce
from maskwright.analysis.kept import Kept
from maskwright.analysis.regex.dfa import Dfa, difference, intersect
from maskwright.analysis.regex.whole import regex_automaton
from maskwright.analysis.schema.strings import literals
from maskwright.analysis.schema.text_patterns import Regex


class HostRules:
    """The rules and parts of a host, while it is being made.

    rules : the name of a rule -> the expressions that it stands for.
    parts : the name of a terminal -> its language.
    """

    def __init__(self) -> None:
        self.rules: dict[str, list[Body]] = {"start": []}
        self.parts: dict[str, Any] = {}
        self.where = ""  # the JSON pointer of the format that is read
        self._said: dict[str, str] = {}
        self._optional: dict[str, Item] = {}
        self._texts: dict[tuple[tuple[str, ...], int | None, int | None], Body] = {}
        self._tokens: dict[TokenSet, Body] = {}
        self._rule_of: dict[tuple[Body, ...], Body] = {}

    def name(self) -> Body:
        """A rule that is still to be defined."""
        name = f"rule_{len(self.rules) - 1}"
        self.rules[name] = []
        return (Item(False, name),)

    def define(self, rule: Body, options: list[Body]) -> Body:
        """Let a rule of `name` stand for one of some expressions; returns it."""
        self.rules[rule[0].key] = options
        return rule

    def either(self, options: list[Body]) -> Body:
        """A rule for one of some expressions. Characters with which several begin are there once.

        Tools differ in their names alone: what stands around these is most of a host's text.
        """
        groups: dict[Body, list[Body]] = {}
        for option in options:
            groups.setdefault(option[:1] if is_character(option[:1]) else option, []).append(option)
        found = []
        for group in groups.values():
            n = 0
            if len(group) > 1:
                least, greatest = min(group), max(group)
                while n < len(least) and least[n] == greatest[n] and is_character(least[n : n + 1]):
                    n += 1
            rest = [one[n:] for one in group]
            found += [group[0][:n] + self.same(rest)] if n else rest
        return self.same(found)

    def same(self, options: list[Body]) -> Body:
        """The rule for one of some expressions, the same each time."""
        key = tuple(options)
        if key not in self._rule_of:
            self._rule_of[key] = self.define(self.name(), options)
        return self._rule_of[key]

    def optional(self, body: Body) -> Body:
        """An expression, or nothing."""
        if not body:
            return ()
        item = self.one(body)
        rule = self.same([(), item])
        self._optional[rule[0].key] = item[0]
        return rule

    def one(self, body: Body) -> Body:
        """An expression as one item."""
        return body if len(body) == 1 else self.same([body])

    def repeated(self, body: Body, least: int, most: int | None = None) -> Body:
        """An expression some times; most None: at least so often.

        A few rules for each digit of the numbers: the parser's stack has the count.

        Source: lark 1.3, `lark.load_grammar`, `EBNF_to_BNF._generate_repeats`.
        """
        if not body or most == 0:
            return ()
        item = self.one(body)
        begin = item if least else ()
        for a, b in small_factors(least, 5) if least > 1 else ():
            begin = self.one(begin * a + item * b)
        if most is None:
            many = self.name()
            self.define(many, [item, many + item])
            return begin + self.optional(many)
        n_times = item
        fewer: Body = ()
        for a, b in small_factors(most - least + 1, 5) if most > least else ():
            fewer = self.same([n_times * i + fewer for i in range(a)] + [n_times * a + item * i for i in range(b)])
            n_times = self.one(n_times * a + item * b)
        return begin + fewer

    def part(self, kind: str, value: Any) -> Body:
        """A new part. kind : what it is, in messages and before the number of its terminal."""
        name = f"{kind.upper().replace(' ', '_')}_{len(self.parts)}"
        self.parts[name] = value
        self._said[name] = f"{kind} at {self.where}" if self.where else kind
        return (Item(True, name),)

    def free(self, excluded: tuple[str, ...], most: int | None, most_tokens: int | None = None) -> Body:
        """Any text that holds none of some strings, of at most so many characters and tokens."""
        key = tuple(sorted(set(excluded) - {""})), most, most_tokens
        if key not in self._texts:
            limit = "+" if most is None else f"{{1,{most}}}"
            dfa = literals([]) if 0 in (most, most_tokens) else regex_automaton(f"[\\s\\S]{limit}")
            if key[0] and not dfa.is_empty:
                dfa = intersect(dfa, without(key[0]))
            text = Regex("free text", dfa)
            value = text if most_tokens is None else AtMostTokens(text, most_tokens)
            self._texts[key] = () if dfa.is_empty else self.optional(self.part("text", value))
        return self._texts[key]

    def token(self, tokens: TokenSet) -> Body:
        """One token of a set."""
        if tokens not in self._tokens:
            self._tokens[tokens] = self.part("token", tokens)
        return self._tokens[tokens]

    def free_tokens(self, excluded: Iterable[int | str], most: int | None) -> Body:
        """Tokens that are none of some, at most so many."""
        tokens = token_set(excluded, is_excluding=True)
        if most is None:
            return self.repeated(self.token(tokens), 0)
        return self.optional(self.part("tokens", AtMostTokens(tokens, most))) if most else ()

    def composition(self, start: Body, name: str) -> Composition:
        """What the rules say, with the parts that they use. start : the expression of whole texts.

        Raises: EmptyLanguageError if there is no finite text; as `Composition`.
        """
        self.rules["start"] = [start]
        used = dict.fromkeys(
            item.key for bodies in self.rules.values() for body in bodies for item in body if item.is_leaf
        )
        letters = [key for key in used if key not in self.parts]
        terminals = [Terminal(f"__{i}", re.escape(key[1:]), literal=key[1:]) for i, key in enumerate(letters)]
        terminals += [part_terminal(key, number) for number, key in enumerate(self.parts)]
        numbers = {key: (number,) for number, key in enumerate([*letters, *self.parts])}
        lowered = Lowered(self.rules, {key: reference(key, 0) for key in numbers}, self._optional)
        grammar = assemble(lowered, terminals, numbers, "longest", name, "")
        if grammar.start not in productive_symbols(grammar):
            raise EmptyLanguageError(f"{name}: no text is legal, as its rules lead back to themselves", grammar)
        grammar, left = without_unused(reduce(grammar))
        parts = list(self.parts.items())
        return Composition(name, grammar, tuple(Part(self._said[parts[i][0]], as_part(parts[i][1])) for i in left))


def is_character(body: Body) -> bool:
    """Whether an expression is one character: see `characters`."""
    return len(body) == 1 and body[0].key[0] == TERMINAL


@Kept
def without(excluded: tuple[str, ...]) -> Dfa:
    """The texts that hold none of some strings."""
    everything = regex_automaton(r"[\s\S]*")
    if not excluded:
        return everything
    holding = regex_automaton(f"[\\s\\S]*(?:{'|'.join(map(re.escape, excluded))})[\\s\\S]*")
    return difference(everything, holding)


def characters(text: str) -> Body:
    """A text as an expression of single characters."""
    return tuple(Item(True, TERMINAL + character) for character in text)


def space_part(rules: HostRules, space: Dfa) -> Body:
    """The expression of white space, with a new part for it; nothing if there may be none."""
    some = difference(space, Dfa.literal(b""))
    if some.is_empty:
        return ()
    part = rules.part("white space", Regex("white space", some))
    return rules.optional(part) if space.matches(b"") else part
