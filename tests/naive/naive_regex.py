"""Terminals from their definition: Brzozowski's derivatives over bytes. Patterns are plain ones (no look-arounds, no lazy repeats).

Source: Brzozowski, "Derivatives of regular expressions" (1964).
"""

from __future__ import annotations

import importlib
from functools import lru_cache, reduce
from typing import Any, TypeAlias

sre: Any = importlib.import_module("re._parser")  # the parse trees of Python's own `re`

Regex: TypeAlias = tuple[Any, ...]
NONE: Regex = ("none",)
EMPTY: Regex = ("empty",)


def one_of(members: frozenset[int]) -> Regex:
    return ("set", members) if members else NONE


@lru_cache(maxsize=1 << 16)
def cat(a: Regex, b: Regex) -> Regex:
    if NONE in (a, b):
        return NONE
    if a == EMPTY:
        return b
    if b == EMPTY:
        return a
    return ("cat", a[1], cat(a[2], b)) if a[0] == "cat" else ("cat", a, b)


@lru_cache(maxsize=1 << 16)
def alt(a: Regex, b: Regex) -> Regex:
    members = {m for one in (a, b) for m in (one[1] if one[0] == "alt" else (one,)) if m != NONE}
    return next(iter(members)) if len(members) == 1 else ("alt", frozenset(members)) if members else NONE


def star(a: Regex) -> Regex:
    return a if a[0] == "star" else EMPTY if a in (NONE, EMPTY) else ("star", a)


@lru_cache(maxsize=1 << 16)
def is_nullable(a: Regex) -> bool:
    match a[0]:
        case "cat":
            return is_nullable(a[1]) and is_nullable(a[2])
        case "alt":
            return any(map(is_nullable, a[1]))
        case "within":
            return is_nullable(a[1]) and _fits(*a[2:])
        case kind:
            return kind in ("empty", "star")


@lru_cache(maxsize=1 << 18)
def derivative(a: Regex, byte: int) -> Regex:
    """What may follow `byte` in the strings of a; NONE iff no string begins with it."""
    match a[0]:
        case "set":
            return EMPTY if byte in a[1] else NONE
        case "cat":
            first = cat(derivative(a[1], byte), a[2])
            return alt(first, derivative(a[2], byte)) if is_nullable(a[1]) else first
        case "alt":
            return reduce(alt, sorted((derivative(m, byte) for m in a[1]), key=repr), NONE)
        case "star":
            return cat(derivative(a[1], byte), a)
        case "within":
            begins = not 0x80 <= byte < 0xC0
            least, most = max(a[2] - begins, 0), None if a[3] is None else max(a[3] - begins, -1)
            return of_lengths(derivative(a[1], byte), least, most, a[4])
        case _:
            return NONE


def _fits(least: int, most: int | None, is_beyond: bool) -> bool:
    return (least == 0 and (most is None or most >= 0)) != is_beyond


@lru_cache(maxsize=1 << 16)
def of_lengths(a: Regex, least: int, most: int | None, is_beyond: bool) -> Regex:
    """The strings of a with `least` to `most` characters; all others if `is_beyond`."""
    start: Regex = ("within", a, least, most, is_beyond)
    found, agenda = {start}, [start]
    while agenda:
        _, inner, fewest, fullest, _ = here = agenda.pop()
        if is_nullable(here):
            return start
        for byte in range(256):
            begins, after = not 0x80 <= byte < 0xC0, derivative(inner, byte)
            place = (
                "within",
                after,
                max(fewest - begins, 0),
                None if fullest is None else max(fullest - begins, -1),
                is_beyond,
            )
            if after != NONE and place not in found:
                found.add(place)
                agenda.append(place)
    return NONE


def spelled(text: str) -> Regex:
    return reduce(cat, (one_of(frozenset({byte})) for byte in text.encode()), EMPTY)


def characters(members: frozenset[int]) -> Regex:
    """One character of a set of code points, as UTF-8."""
    return reduce(alt, (spelled(chr(c)) for c in sorted(members) if c >= 128), one_of(members & frozenset(range(128))))


_LAST = frozenset(range(0x80, 0xC0))
NOT_ASCII = reduce(
    alt,
    (
        reduce(cat, [one_of(frozenset(range(low, high + 1))), *map(one_of, more)])
        for low, high, more in [
            (0xC2, 0xDF, [_LAST]),
            (0xE0, 0xE0, [frozenset(range(0xA0, 0xC0)), _LAST]),
            (0xE1, 0xEC, [_LAST, _LAST]),
            (0xED, 0xED, [frozenset(range(0x80, 0xA0)), _LAST]),
            (0xEE, 0xEF, [_LAST, _LAST]),
            (0xF0, 0xF0, [frozenset(range(0x90, 0xC0)), _LAST, _LAST]),
            (0xF1, 0xF3, [_LAST, _LAST, _LAST]),
            (0xF4, 0xF4, [frozenset(range(0x80, 0x90)), _LAST, _LAST]),
        ]
    ),
)
"""Any character past ASCII, as UTF-8."""


def compile_pattern(pattern: str) -> Regex:
    return _sequence(sre.parse(pattern))


def _sequence(nodes: Any) -> Regex:
    return reduce(cat, (_node(str(op), argument) for op, argument in nodes), EMPTY)


def _node(op: str, argument: Any) -> Regex:
    if op == "LITERAL":
        return spelled(chr(argument))
    if op == "ANY":
        return alt(one_of(frozenset(range(128)) - {10}), NOT_ASCII)
    if op == "NOT_LITERAL":
        return alt(one_of(frozenset(range(128)) - {argument}), NOT_ASCII)
    if op == "IN":
        members: set[int] = set()
        for kind, value in argument:
            if str(kind) == "RANGE":
                members |= set(range(value[0], value[1] + 1))
            elif str(kind) == "LITERAL":
                members.add(value)
            elif str(kind) != "NEGATE":
                raise NotImplementedError(f"the naive engine does not know {kind}")
        if str(argument[0][0]) == "NEGATE":
            if max(members) >= 128:
                raise NotImplementedError("the naive engine negates sets of ASCII characters only")
            return alt(one_of(frozenset(range(128)) - members), NOT_ASCII)
        return characters(frozenset(members))
    if op == "BRANCH":
        return reduce(alt, map(_sequence, argument[1]), NONE)
    if op == "SUBPATTERN":
        return _sequence(argument[3])
    if op == "MAX_REPEAT":
        least, most, nodes = argument
        once = _sequence(nodes)
        if most == sre.MAXREPEAT:
            return reduce(cat, [once] * least, star(once))
        return (
            reduce(lambda after, _: alt(EMPTY, cat(once, after)), range(most - least), EMPTY)
            if least == 0
            else cat(once, _node(op, (least - 1, most - 1, nodes)))
        )
    raise NotImplementedError(f"the naive engine does not know {op}")
