"""The host of a structural tag while it is made: its rules, and the parts that stand in them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lark.utils import small_factors

from maskwright.analysis.arguments import clip
from maskwright.analysis.composition.compose import Composition, Part, as_part, check_number
from maskwright.analysis.composition.tag_rules import START, Body, tag_rules
from maskwright.analysis.composition.token_parts import AtMostTokens, TokenSet, token_set
from maskwright.analysis.errors import GrammarError
from maskwright.analysis.kept import Kept
from maskwright.analysis.regex.dfa import Dfa, difference, intersect
from maskwright.analysis.regex.whole import regex_automaton, without
from maskwright.analysis.schema.spacing import GOES_ON, Spacing
from maskwright.analysis.schema.strings import literals
from maskwright.analysis.schema.text_patterns import Regex


class HostRules:
    """The rules and parts of a host, while it is being made.

    rules : the name of a rule -> the expressions that it stands for.
    """

    def __init__(self) -> None:
        self.rules: dict[str, list[Body]] = {START: []}
        self.where = ""  # the JSON pointer of the format that is read
        self._parts: list[tuple[str, Any]] = []
        self._texts: dict[tuple[tuple[str, ...], int | None, int | None], Body] = {}
        self._tokens: dict[TokenSet, Body] = {}
        self._patterns: dict[tuple[str, Dfa], Body] = {}
        self._rule_of: dict[tuple[Body, ...], Body] = {}

    def name(self) -> Body:
        """A rule that is still to be defined."""
        name = f"rule_{len(self.rules) - 1}"
        self.rules[name] = []
        return (name,)

    def define(self, rule: Body, options: list[Body]) -> Body:
        """Let a rule of `name` stand for one of some expressions; returns it."""
        self.rules[str(rule[0])] = options
        return rule

    def either(self, options: list[Body]) -> Body:
        """The rule for one of some expressions, the same each time."""
        key = tuple(options)
        if key not in self._rule_of:
            self._rule_of[key] = self.define(self.name(), options)
        return self._rule_of[key]

    def optional(self, body: Body) -> Body:
        """An expression, or nothing."""
        return self.either([(), body]) if body else ()

    def one(self, body: Body) -> Body:
        """An expression as one item."""
        return body if len(body) == 1 else self.either([body])

    def repeated(self, body: Body, least: int, most: int | None = None) -> Body:
        """An expression some times; most None: at least so often.

        A few rules for each digit of the numbers: the parser's stack has the count.

        Source: lark 1.3, `lark.load_grammar`, `EBNF_to_BNF._generate_repeats`.
        """
        if not body or most == 0:
            return ()
        options = self.rules[body[0]] if isinstance(body[0], str) and len(body) == 1 else []
        if options[:1] == [()] and len(options) == 2:
            body, least = options[1], 0  # so that what is left out is not counted in all ways
        item = self.one(body)
        begin = item if least else ()
        for a, b in small_factors(least, 5) if least > 1 else ():
            begin = self.one(begin * a + item * b)
        if most is None:
            many = self.name()
            return begin + self.define(many, [(), item + many])
        n_times = item
        fewer: Body = ()
        for a, b in small_factors(most - least + 1, 5) if most > least else ():
            fewer = self.either([n_times * i + fewer for i in range(a)] + [n_times * a + item * i for i in range(b)])
            n_times = self.one(n_times * a + item * b)
        return begin + fewer

    def part(self, kind: str, value: Any) -> Body:
        """A new part. kind : what it is, in messages."""
        self._parts.append((f"{kind} at {self.where}" if self.where else kind, value))
        return (len(self._parts) - 1,)

    def pattern(self, kind: str, value: Regex) -> Body:
        """The part of a pattern, the same each time: where many begin there is one to read."""
        key = kind, value.automaton
        if key not in self._patterns:
            self._patterns[key] = self.part(kind, value)
        return self._patterns[key]

    def space(self, spacing: Spacing, state: int, ends: int = GOES_ON, level: int = 0) -> Body:
        """The expression of white space (`Spacing.language`); () if there may be none."""
        some, may_be_none = _space(spacing, state, ends, level)
        if some.is_empty:
            return ()
        part = self.pattern("white space", Regex("white space", some))
        return self.optional(part) if may_be_none else part

    def free(self, excluded: tuple[str, ...], most: int | None, most_tokens: int | None = None) -> Body:
        """Any text that holds none of some strings, of at most so many characters and tokens."""
        key = tuple(sorted(set(excluded) - {""})), most, most_tokens
        if key not in self._texts:
            dfa = literals([]) if 0 in (most, most_tokens) else _free(key[0], most)
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
        self.rules[START] = [start]
        host, used = tag_rules(name, self.rules)
        check_number(used)
        parts = [self._parts[number] for number in used]
        return Composition(name, host, tuple(Part(said, as_part(value)) for said, value in parts))


@Kept
def _free(excluded: tuple[str, ...], most: int | None) -> Dfa:
    """Texts of at least one character, and at most so many, that hold none of some strings."""
    return intersect(regex_automaton(f"[\\s\\S]{{1,{'' if most is None else most}}}"), without(excluded))


def characters(text: str) -> Body:
    """A text as an expression. Raises: GrammarError for half a surrogate pair."""
    try:
        return (text.encode(),) if text else ()
    except UnicodeEncodeError:
        raise GrammarError(f"{clip(text)} holds half a surrogate pair, which no text has") from None


@Kept
def _space(spacing: Spacing, state: int, ends: int, level: int) -> tuple[Dfa, bool]:
    """White space that is not empty (`Spacing.language`), and whether there may be none."""
    space = spacing.language(state, ends, level)
    return difference(space, Dfa.literal(b"")), space.matches(b"")
