"""GBNF and xgrammar's EBNF by their definitions: a reader of the common syntax, and Earley's recogniser over characters.

No lexer, no automata, and nothing shared with `maskwright.analysis.fronts`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

LAST = 0x10FFFF


@dataclass(frozen=True)
class Set:
    """A set of characters: inclusive pairs, or what is in none of them."""

    pairs: tuple[tuple[int, int], ...]
    negated: bool = False

    def meets(self, low: int, high: int) -> bool:
        """Whether a character of low .. high is in the set."""
        if not self.negated:
            return any(a <= high and low <= b for a, b in self.pairs)
        at = low
        for a, b in sorted(self.pairs):
            if at < a:
                break
            at = max(at, b + 1)
        return at <= high


Symbol = Set | str
Item = tuple[str, tuple[Symbol, ...], int, int]  # rule, body, dot, column where it began
_TOKEN = re.compile(
    r"""\s+ | \#[^\n]* | (?P<rule>[\w-][\w.-]*)\s*::= | (?P<name>[\w-][\w.-]*) | (?P<text>"(?:\\.|[^"\\])*") | (?P<set>\[(?:\\.|[^\]\\])*\])
    | (?P<count>\{\s*\d+\s*(?:,\s*\d*\s*)?\}) | (?P<sign>[|()*+?.])""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)


def _characters(body: str) -> list[tuple[int, bool]]:
    """The characters of a text or set, and whether each was escaped."""
    found = []
    at = 0
    while at < len(body):
        escape = _ESCAPE.match(body, at)
        if escape is None:
            found.append((ord(body[at]), False))
            at += 1
            continue
        code = escape[1] or escape[2] or escape[3]
        plain = {"n": "\n", "r": "\r", "t": "\t"}.get(escape[4] or "", escape[4])
        found.append((int(code, 16) if code else ord(plain), True))
        at = escape.end()
    return found


def _set(body: str) -> Set:
    negated = body.startswith("^")
    characters = _characters(body[negated:])
    pairs = []
    at = 0
    while at < len(characters):
        low = high = characters[at][0]
        if at + 2 < len(characters) and characters[at + 1] == (ord("-"), False):
            high = characters[at + 2][0]
            at += 2
        pairs.append((low, high))
        at += 1
    return Set(tuple(pairs), negated)


@dataclass
class Rules:
    """Plain rules: name -> bodies of sets and names."""

    root: str = "root"
    bodies: dict[str, list[tuple[Symbol, ...]]] = field(default_factory=dict)

    @cached_property
    def alive(self) -> frozenset[str]:
        """The names that derive some text."""
        found: set[str] = set()
        while (
            new := {
                name
                for name, bodies in self.bodies.items()
                if any(all(isinstance(s, Set) or s in found for s in body) for body in bodies)
            }
            - found
        ):
            found |= new
        return frozenset(found)

    def fresh(self, bodies: list[tuple[Symbol, ...]]) -> str:
        name = f"#{len(self.bodies)}"
        self.bodies[name] = bodies
        return name

    def repeated(self, unit: tuple[Symbol, ...], least: int, most: int | None) -> tuple[Symbol, ...]:
        more: tuple[Symbol, ...] = ()
        if most is None:
            name = self.fresh([])
            self.bodies[name] = [(*unit, name), ()]
            more = (name,)
        for _ in range(0 if most is None else most - least):
            more = (self.fresh([(*unit, *more), ()]),)
        return unit * least + more


def read(text: str, root: str = "root") -> Rules:
    """The rules of a text in the common syntax of both languages: a rule's name is followed by ::= ."""
    rules = Rules(root)
    tokens = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match is not None, text[at : at + 40]
        at = match.end()
        if match.lastgroup:
            tokens.append((match.lastgroup, match[match.lastgroup]))
    position = 0

    def alternatives() -> list[tuple[Symbol, ...]]:
        nonlocal position
        found = [sequence()]
        while position < len(tokens) and tokens[position] == ("sign", "|"):
            position += 1
            found.append(sequence())
        return found

    def sequence() -> tuple[Symbol, ...]:
        nonlocal position
        found: tuple[Symbol, ...] = ()
        while position < len(tokens):
            kind, value = tokens[position]
            if kind == "rule" or value in ("|", ")"):
                break
            position += 1
            if kind == "text":
                unit: tuple[Symbol, ...] = tuple(Set(((c, c),)) for c, _ in _characters(value[1:-1]))
            elif kind == "set":
                unit = (_set(value[1:-1]),)
            elif kind == "name":
                unit = (value,)
            elif value == ".":
                unit = (Set((), True),)
            else:
                assert value == "(", value
                unit = (rules.fresh(alternatives()),)
                position += 1
            while position < len(tokens) and (tokens[position][0] == "count" or tokens[position][1] in ("*", "+", "?")):
                kind, value = tokens[position]
                position += 1
                if kind == "count":
                    least, comma, most = value.strip("{}").replace(" ", "").partition(",")
                    unit = rules.repeated(unit, int(least), int(most) if most else None if comma else int(least))
                else:
                    unit = rules.repeated(unit, int(value == "+"), 1 if value == "?" else None)
            found += unit
        return found

    while position < len(tokens):
        kind, name = tokens[position]
        assert kind == "rule", tokens[position]
        position += 1
        rules.bodies[name] = []
        rules.bodies[name] = alternatives()
    return rules


class Recogniser:
    """Earley's recogniser, unrefined, over the characters of a UTF-8 text.

    Source: Earley, "An efficient context-free parsing algorithm" (1970).
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.alive = {
            name: [b for b in bodies if all(isinstance(s, Set) or s in rules.alive for s in b)]
            for name, bodies in rules.bodies.items()
        }
        start: set[Item] = {(rules.root, body, 0, 0) for body in self.alive[rules.root]}
        self.columns = [self._closed([], start)]
        self.known = b"", self.columns

    def _closed(self, before: list[frozenset[Item]], column: set[Item]) -> frozenset[Item]:
        at = len(before)
        while True:
            new: set[Item] = set()
            for name, body, dot, begin in column:
                if dot < len(body) and isinstance(body[dot], str):
                    new |= {(body[dot], other, 0, at) for other in self.alive[body[dot]]}
                if dot == len(body):
                    origin = column if begin == at else before[begin]
                    new |= {(n, b, d + 1, c) for n, b, d, c in origin if d < len(b) and b[d] == name}
            if new <= column:
                return frozenset(column)
            column |= new

    def column_after(self, columns: list[frozenset[Item]], code: int) -> frozenset[Item]:
        """The column after one more character."""
        moved = {
            (n, b, d + 1, c)
            for n, b, d, c in columns[-1]
            if d < len(b) and isinstance(b[d], Set) and b[d].meets(code, code)
        }
        return self._closed(columns, moved)

    def read(self, data: bytes) -> tuple[list[frozenset[Item]], bytes]:
        """The columns of a text, the last one empty if it is no beginning, and the bytes of an unfinished character."""
        begun, columns = self.known if data.startswith(self.known[0]) else (b"", self.columns)
        columns, at = list(columns), len(begun)
        while at < len(data) and columns[-1]:
            n = 1 if data[at] < 0x80 else 2 if data[at] < 0xE0 else 3 if data[at] < 0xF0 else 4
            if len(data) - at < n:
                return columns, data[at:]
            try:
                code = ord(data[at : at + n].decode())
            except UnicodeDecodeError:
                columns.append(frozenset())
                break
            columns.append(self.column_after(columns, code))
            at += n
        return columns, b""

    def remember(self, data: bytes) -> None:
        """Keep the columns of a text, since many that begin with it are asked about next."""
        columns, left = self.read(data)
        self.known = data[: len(data) - len(left)], columns

    def is_beginning(self, data: bytes) -> bool:
        """Whether some text of the language begins with these bytes."""
        columns, left = self.read(data)
        if not left:
            return bool(columns[-1])
        interval = characters_that_begin_with(left)
        return interval is not None and any(
            d < len(b) and isinstance(b[d], Set) and b[d].meets(low, high)
            for _, b, d, _ in columns[-1]
            for low, high in interval
        )

    def matches(self, data: bytes) -> bool:
        """Whether the bytes are a text of the language."""
        columns, left = self.read(data)
        return not left and any(n == self.rules.root and d == len(b) and c == 0 for n, b, d, c in columns[-1])


def characters_that_begin_with(piece: bytes) -> list[tuple[int, int]] | None:
    """The characters whose UTF-8 begins with an unfinished piece, as at most two pairs; None if there are none."""
    first = piece[0]
    n = 2 if 0xC2 <= first < 0xE0 else 3 if 0xE0 <= first < 0xF0 else 4 if 0xF0 <= first < 0xF5 else 0
    if not n or any(not 0x80 <= byte < 0xC0 for byte in piece[1:]):
        return None
    value = first & (0x3F >> (n - 1))
    for byte in piece[1:]:
        value = value << 6 | byte & 0x3F
    shift = 6 * (n - len(piece))
    low, high = max(value << shift, (0, 0, 0x80, 0x800, 0x10000)[n]), min((value + 1 << shift) - 1, LAST)
    pairs = [(low, min(high, 0xD7FF)), (max(low, 0xE000), high)]
    pairs = [(a, b) for a, b in pairs if a <= b]
    return pairs or None
