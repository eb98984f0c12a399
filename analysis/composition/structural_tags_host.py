"""The host of a structural tag: rules of single characters, and the parts that stand in them.

An *expression* is the right side of a rule, as Lark writes it; "" is the empty text. Rules end in
what shows, as far as they can: a parser with one character of lookahead need not know which of two
formats goes on before they differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from maskwright.analysis.composition.token_parts import AtMostTokens, TokenSet, token_set
from maskwright.analysis.kept import Kept
from maskwright.analysis.regex.dfa import Dfa, difference, intersect
from maskwright.analysis.regex.whole import regex_automaton
from maskwright.analysis.schema.strings import literals
from maskwright.analysis.schema.text_patterns import Regex


class HostRules:
    """The rules and parts of a host, while it is being made.

    rules : the lines of the grammar.
    parts : the name of a terminal -> its language.
    """

    def __init__(self) -> None:
        self.rules: list[str] = []
        self.parts: dict[str, Any] = {}
        self._texts: dict[tuple[tuple[str, ...], int | None, int | None], str] = {}
        self._tokens: dict[TokenSet, str] = {}
        self._rule_of: dict[tuple[str, ...], str] = {}
        self._n_names = 0

    def name(self) -> str:
        """A name for a rule that is still to be defined."""
        self._n_names += 1
        return f"rule_{self._n_names - 1}"

    def define(self, name: str, options: list[str]) -> str:
        """Let a name stand for one of some expressions; returns the name."""
        self.rules.append(f"{name}: {' | '.join(options)}")
        return name

    def either(self, options: list[str]) -> str:
        """A rule for one of some expressions. Characters with which several begin are there once.

        Tools differ in their names alone: what stands around these is most of a host's text.
        """
        groups: dict[str, list[list[str]]] = {}
        for option in options:
            pieces = option.split(" ")
            groups.setdefault(pieces[0] if _is_character(pieces[0]) else option, []).append(pieces)
        found = []
        for group in groups.values():
            n = 0
            if len(group) > 1:
                least, greatest = min(group), max(group)
                while n < len(least) and least[n] == greatest[n] and _is_character(least[n]):
                    n += 1
            begin, rest = group[0][:n], [" ".join(one[n:]) for one in group]
            found += [" ".join([*begin, self._same(rest)])] if begin else rest
        return self._same(found)

    def _same(self, options: list[str]) -> str:
        """The rule for one of some expressions, the same each time."""
        key = tuple(options)
        if key not in self._rule_of:
            self._rule_of[key] = self.define(self.name(), options)
        return self._rule_of[key]

    def part(self, kind: str, value: Any) -> str:
        """A new part. kind : how its name begins."""
        name = f"{kind}_{len(self.parts)}"
        self.parts[name] = value
        return name

    def free(self, excluded: tuple[str, ...], most: int | None, most_tokens: int | None = None) -> str:
        """Any text that holds none of some strings, of at most so many characters and tokens."""
        key = tuple(sorted(set(excluded) - {""})), most, most_tokens
        if key not in self._texts:
            limit = "+" if most is None else f"{{1,{most}}}"
            dfa = literals([]) if 0 in (most, most_tokens) else regex_automaton(f"[\\s\\S]{limit}")
            if key[0] and not dfa.is_empty:
                dfa = intersect(dfa, without(key[0]))
            text = Regex("free text", dfa)
            value = text if most_tokens is None else AtMostTokens(text, most_tokens)
            self._texts[key] = "" if dfa.is_empty else f"{self.part('TEXT', value)}?"
        return self._texts[key]

    def token(self, tokens: TokenSet) -> str:
        """One token of a set."""
        if tokens not in self._tokens:
            self._tokens[tokens] = self.part("TOKEN", tokens)
        return self._tokens[tokens]

    def free_tokens(self, excluded: Iterable[int | str], most: int | None) -> str:
        """Tokens that are none of some, at most so many."""
        tokens = token_set(excluded, is_excluding=True)
        if most is None:
            return f"{self.token(tokens)}*"
        return f"{self.part('TOKENS', AtMostTokens(tokens, most))}?" if most else ""

    def grammar(self, start: str) -> str:
        """The text of the grammar, and no part that it does not use. start : its expression."""
        rules = "\n".join(["// maskwright: lexing = longest", f"start: {start}", *self.rules])
        used = set(re.findall(r"\b[A-Z]+_[0-9]+\b", rules))
        self.parts = {name: value for name, value in self.parts.items() if name in used}
        return rules + "\n" + "".join(f"%declare {name}\n" for name in self.parts)


def _is_character(piece: str) -> bool:
    """Whether a piece of an expression, between blanks, is a character: see `characters`."""
    return piece[:1] == piece[-1:] == '"'


@Kept
def without(excluded: tuple[str, ...]) -> Dfa:
    """The texts that hold none of some strings."""
    everything = regex_automaton(r"[\s\S]*")
    if not excluded:
        return everything
    holding = regex_automaton(f"[\\s\\S]*(?:{'|'.join(map(quoted, excluded))})[\\s\\S]*")
    return difference(everything, holding)


def quoted(text: str) -> str:
    """A pattern of exactly a text."""
    return "".join(f"\\U{ord(character):08x}" for character in text)


def characters(text: str) -> str:
    """A text as an expression of single characters."""
    return " ".join(f'"\\U{ord(c):08x}"' if not c.isalnum() or ord(c) > 126 else f'"{c}"' for c in text)


def space_part(rules: HostRules, space: Dfa) -> str:
    """The expression of white space, with a new part for it; "" if there may be none."""
    some = difference(space, Dfa.literal(b""))
    if some.is_empty:
        return ""
    part = rules.part("SPACE", Regex("white space", some))
    return f"{part}?" if space.matches(b"") else part
