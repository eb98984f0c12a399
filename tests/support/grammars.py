"""Small grammars for tests: written as text, drawn at random, or drawn by hypothesis."""

from __future__ import annotations

import random
import re
from typing import TypeAlias

from hypothesis import strategies as st

from maskwright.analysis.grammar.grammar import Grammar, Rule, Terminal

Rows: TypeAlias = dict[str, list[list[str]]]


def make_grammar(text: str, name: str = "test") -> Grammar:
    """The grammar written as lines ``S : a S b | a b``.

    A name that begins with a capital letter is a nonterminal, every other one a literal terminal; the first line's
    left side is the start symbol. An alternative may be empty; a nonterminal without a line has no rules. Symbols are
    numbered in the order in which they first appear.

    >>> grammar = make_grammar("S : a S b | ")
    >>> [grammar.rule_text(rule) for rule in grammar]
    ['S : a S b', 'S :']
    """
    rows: Rows = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        lhs, separator, alternatives = line.partition(" :")
        if not separator or not lhs[0].isupper():
            raise ValueError(f"expected a line 'S : a b | c' with a capitalised left side, found {line!r}")
        rows.setdefault(lhs, []).extend(alternative.split() for alternative in alternatives.split("|"))
    return _from_rows(rows, name)


def json_text(string: str, number: str, blank: str) -> str:
    """JSON as a grammar's text, with regular expressions for its strings, numbers and blanks."""
    return f"""
start: value
value: object | array | STRING | NUMBER | "true" | "false" | "null"
array: "[" (value ("," value)*)? "]"
object: "{{" (member ("," member)*)? "}}"
member: STRING ":" value
STRING: /{string}/
NUMBER: /{number}/
%ignore /{blank}/
"""


JSON = json_text(
    r'"([^"\\\x00-\x1f]|\\(["\\\/bfnrt]|u[0-9A-Fa-f]{4}))*"',
    r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?",
    r"[ \t\r\n]+",
)
"""All of JSON."""


def random_grammar(seed: int) -> Grammar:
    """A grammar of 2-5 nonterminals and 2-5 terminals, the same one for the same seed on every machine.

    It may have empty rules, unit rules, cycles, left, right and centre recursion, ambiguity, unproductive and
    unreachable nonterminals. The start symbol is productive: the first rule of a nonterminal uses terminals and later
    nonterminals only.
    """
    rng = random.Random(seed)
    nonterminals = ["S", "A", "B", "C", "D"][: rng.randint(2, 5)]
    terminals = list("abcde"[: rng.randint(2, 5)])
    rows: Rows = {}
    for number, lhs in enumerate(nonterminals):
        later = nonterminals[number + 1 :]
        first = [rng.choice(later if later and rng.random() < 0.6 else terminals) for _ in range(rng.randint(1, 3))]
        rows[lhs] = [first] + [_alternative(rng, lhs, nonterminals, terminals) for _ in range(rng.randint(1, 2))]
    if rng.random() < 0.15:
        unproductive = rng.choice(nonterminals)
        rows[unproductive].append([rng.choice(terminals), "U"])
        rows["U"] = [["U", rng.choice(terminals)], [rng.choice(terminals), "U", rng.choice(nonterminals)]]
    if rng.random() < 0.15:
        rows["Z"] = [[rng.choice(terminals), rng.choice(nonterminals), rng.choice(terminals)]]
    return _from_rows(rows, f"random-{seed}")


def random_looping_grammar(seed: int) -> Grammar:
    """A grammar of 1-6 nonterminals, most of which may be empty or lead to each other: most have a text with endless derivations."""
    rng = random.Random(seed)
    nonterminals = ["S", "A", "B", "C", "D", "E"][: rng.randint(1, 6)]
    terminals = list("abc"[: rng.randint(1, 3)])
    share = rng.choice([0.15, 0.3, 0.5])
    rows: Rows = {}
    for number, lhs in enumerate(nonterminals):
        first = [[rng.choice(terminals)], [rng.choice(terminals)], []][rng.randrange(3)]
        rows[lhs] = [first + rng.choices(nonterminals[number + 1 :] or terminals, k=rng.randint(0, 1))]
        for _ in range(rng.randint(1, 3)):
            length = rng.choice([0, 1, 2, 2, 3, 3, 4, 5])
            rows[lhs].append([rng.choice(terminals if rng.random() < share else nonterminals) for _ in range(length)])
    return _from_rows(rows, f"looping-{seed}")


def random_expressions(seed: int) -> Grammar:
    """Rules with operators in front, between and behind, several levels and chains of them, all at random: most are ambiguous."""
    rng = random.Random(seed)
    names = ["E", "F", "G"][: rng.randint(1, 3)]
    marks = list("+-!?:.(")[: rng.randint(2, 5)]
    shapes = ("AmA", "AmA", "AA", "mA", "Am", "AmAmA", "AmAm", "mAm", "A", "n", "mAmA", "mAA", "AmnA", "nA", "An", "AO")
    lines = []
    for at, name in enumerate(names):
        bodies = ["n" if rng.random() < 0.7 or at + 1 == len(names) else names[at + 1]]
        for shape in rng.choices(shapes, k=rng.randint(1, 4)):
            choices = {"A": [name, *names], "m": marks, "n": ["n"], "O": ["O"]}
            bodies.append(" ".join(rng.choice(choices[letter]) for letter in shape))
        lines.append(f"{name} : {' | '.join(bodies)}")
    lines.append(f"O : {' | '.join(rng.choices(marks, k=rng.randint(1, 2)))}{rng.choice(['', '', ' |'])}")
    rng.shuffle(lines)
    start = rng.choice(["E", "E", "E ; E", "E | E + n"])
    return make_grammar("\n".join([f"S : {start}", *lines]), f"expressions-{seed}")


def random_tails(seed: int) -> Grammar:
    """Rules beside rules that go on where they end, as ``if`` with and without ``else``; now and then a tail stands elsewhere too."""
    rng = random.Random(seed)
    names = ["S", "T"][: rng.randint(1, 2)]
    afters = {tail: rng.choice([[], ["S"], ["y"], ["S", "y"], names[-1:]]) for tail in "el"[: rng.randint(1, 2)]}
    lines = []
    for name in names:
        bodies = [["x"]] if rng.random() < 0.9 else [["x"], []]
        for front in rng.choices("iwf", k=rng.randint(1, 3)):
            whole = [front, *rng.choice([[], ["c"], ["T"] if "T" in names else ["S"]]), rng.choice(names)]
            bodies += [whole] if rng.random() < 0.9 else []
            for tail, after in afters.items():
                if rng.random() < 0.7:
                    bodies.append([*whole, tail, *(after if rng.random() < 0.9 else rng.choice([[], ["S"], ["x"]]))])
        if rng.random() < 0.3:
            bodies.append(
                rng.choice([["S", ";", "S"], ["a", "S", "z"], ["a", "S", "e", "S"], ["T"] if "T" in names else ["q"]])
            )
        lines.append(f"{name} : " + " | ".join(" ".join(body) for body in dict.fromkeys(map(tuple, bodies))))
    return make_grammar("\n".join(lines), f"tails-{seed}")


def grammars() -> st.SearchStrategy[Grammar]:
    """`random_grammar` over all seeds; a failing example prints the grammar with its seed."""
    return st.integers(0, 2**32 - 1).map(random_grammar)


def _alternative(rng: random.Random, lhs: str, nonterminals: list[str], terminals: list[str]) -> list[str]:
    """One more right side for `lhs`, of a shape chosen at random."""
    a, b = rng.choice(terminals), rng.choice(terminals)
    match rng.choice(["empty", "unit", "left", "right", "centre", "terminals", "mixed", "mixed", "mixed"]):
        case "empty":
            return []
        case "unit":
            return [rng.choice(nonterminals)]
        case "left":
            return [lhs, a]
        case "right":
            return [a, lhs]
        case "centre":
            return [a, lhs, b]
        case "terminals":
            return rng.choices(terminals, k=rng.randint(1, 3))
        case _:
            return rng.choices(nonterminals + terminals, k=rng.randint(2, 4))


def _from_rows(rows: Rows, name: str) -> Grammar:
    """The grammar of left side -> alternatives, without repeated rules."""
    symbols = dict.fromkeys(symbol for lhs in rows for symbol in (lhs, *(s for rhs in rows[lhs] for s in rhs)))
    terminals = tuple(symbol for symbol in symbols if not symbol[0].isupper())
    nonterminals = tuple(symbol for symbol in symbols if symbol[0].isupper())
    number = {symbol: i for i, symbol in enumerate(terminals + nonterminals)}
    rules = dict.fromkeys(Rule(number[lhs], tuple(number[s] for s in rhs)) for lhs in rows for rhs in rows[lhs])
    return Grammar(
        name=name,
        terminals=tuple(Terminal(name=t, pattern=re.escape(t), literal=t) for t in terminals),
        nonterminals=nonterminals,
        rules=tuple(rules),
        start=number[next(iter(rows))],
        text="\n".join(f"{lhs} : {' | '.join(map(' '.join, rows[lhs]))}" for lhs in rows),
    )
