"""Compositions from the definition: regular hosts with regular parts are one regular expression.

The host's pattern, with each part's pattern in its place, is compiled by `compile_pattern`, which knows
nothing of compositions. A token is allowed if the automaton lives behind it.
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass
from functools import lru_cache

from maskwright.analysis.lexing.terminals import compile_pattern
from maskwright.analysis.regex.dfa import Dfa

LETTERS = "abc"


@dataclass(frozen=True)
class Case:
    """A host as a Lark grammar, its parts as patterns, and all of it as one pattern."""

    host: str
    parts: dict[str, str]
    pattern: str


def random_pattern(rng: random.Random, depth: int = 2) -> str:
    """A pattern over LETTERS."""
    if depth == 0 or rng.random() < 0.3:
        return rng.choice([*LETTERS, "[ab]", "[^a]" if rng.random() < 0.2 else "[bc]", "ab", "ca"])
    a, b = random_pattern(rng, depth - 1), random_pattern(rng, depth - 1)
    return rng.choice([f"(?:{a}|{b})", f"{a}{b}", f"(?:{a})*", f"(?:{a})?{b}", f"(?:{a})+", f"(?:{b}){{1,2}}"])


def random_case(rng: random.Random) -> Case:
    """A random host over a few literals and parts."""
    parts = {f"P{i}": random_pattern(rng) for i in range(rng.randrange(1, 4))}

    def host(depth: int) -> tuple[str, str]:
        """A rule's right side in Lark, and the pattern of its texts."""
        if depth == 0 or rng.random() < 0.3:
            if rng.random() < 0.6:
                name = rng.choice(sorted(parts))
                return name, f"(?:{parts[name]})"
            text = rng.choice(["a", "x", "b", "ab", "xc"])
            return json.dumps(text), re.escape(text)
        (a, p), (b, q) = host(depth - 1), host(depth - 1)
        kind = rng.randrange(4)
        if kind == 0:
            return f"({a} | {b})", f"(?:{p}|{q})"
        if kind == 1:
            return f"({a})*", f"(?:{p})*"
        if kind == 2:
            return f"({a})? {b}", f"(?:{p})?{q}"
        return f"{a} {b}", f"{p}{q}"

    body, pattern = host(3)
    used = {name: each for name, each in parts.items() if re.search(rf"\b{name}\b", body)}
    if not used:
        name = sorted(parts)[0]
        used = {name: parts[name]}
        body, pattern = f"{name} {body}", f"(?:{parts[name]}){pattern}"
    declared = "".join(f"%declare {name}\n" for name in used)
    return Case(f"start: {body}\n{declared}", used, pattern)


def automaton_of(case: Case) -> Dfa:
    """All texts of a case."""
    return compile_pattern(case.pattern)


def json_prefix_lives(dfa: Dfa, spelled: str) -> bool:
    """Whether a text, behind the opening quote, begins a JSON string whose value an automaton accepts.

    By `json`; for an escape under way by trying all characters below U+0250, and one of 128 above.
    """
    whole = re.fullmatch(
        r'((?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*)((?:\\(?:u[0-9a-fA-F]{0,3})?)?)("?)', spelled
    )
    if whole is None:
        return False
    body, pending, quote = whole.groups()
    if quote and pending:
        return False
    if (high := re.search(r"(?<!\\)(?:\\\\)*(\\u[dD][89abAB][0-9a-fA-F]{2})$", body)) is not None:
        body, pending = body[: high.start(1)], high[1] + pending
        if quote:
            return False
    try:
        value = json.loads(f'"{body}"')
        state = dfa.run(value.encode())
    except (ValueError, UnicodeEncodeError):
        return False
    if quote:
        return state >= 0 and bool(dfa.is_accepting[state])
    if not pending or state < 0:
        return state >= 0
    return any(
        dfa.run(character.encode(), state) >= 0 for character in [*_tried().get(pending.lower(), ()), *_near(pending)]
    )


def _near(pending: str) -> list[str]:
    """The characters of an escape that lacks one or two digits."""
    lacking = 4 - (len(pending) - 2) % 6 if len(pending) > 2 else 4
    if not 0 < lacking <= 2:
        return []
    found = []
    for code in range(16**lacking):
        try:
            character = json.loads(f'"{pending}{code:0{lacking}x}"')
        except ValueError:
            continue
        found += [character] if not 0xD800 <= ord(character[0]) < 0xE000 else []
    return found


def _spellings(character: str) -> list[str]:
    """The escapes of a character, in lower case."""
    units = character.encode("utf-16-be")
    found = ["".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))]
    return found + [f"\\{short}" for short in '"\\/bfnrt' if json.loads(f'"\\{short}"') == character]


@lru_cache(maxsize=1)
def _tried() -> dict[str, list[str]]:
    """Characters by the beginnings of their escapes: of those without two digits or more some of each."""
    found: dict[str, list[str]] = {}
    codes = [*range(0x250), *range(0x250, 0xD800, 0x80), *range(0xE000, 0x10000, 0x80), *range(0x10000, 0x110000, 0x80)]
    for character in map(chr, [*codes, 0x20AC, 0xFFFF, 0x1F600, 0x1F601, 0x10FFFF]):
        for spelled in _spellings(character):
            for n in range(1, len(spelled)):
                found.setdefault(spelled[:n], []).append(character)
    return {beginning: characters[:2000] for beginning, characters in found.items()}
