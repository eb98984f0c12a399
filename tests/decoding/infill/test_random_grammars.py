"""Random grammars, whose terminals are bytes: ends, masks and least bridges are what the rules say."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from naive_infill import can_be_filled

import maskwright as mw

LETTERS = "abcd"
TOKENS = [
    b"</s>",
    *(bytes([b]) for b in range(256)),
    *(x.encode() for x in ("ab", "ba", "aa", "cd", "abc", "bb", "dd")),
]
VOCABULARY = mw.Vocabulary.from_tokens(TOKENS, eos=[0])
BRIDGE = 6
"""The longest bridge that is compared."""


def random_grammar(rng: random.Random) -> str:
    names = ["start", *(f"r{i}" for i in range(1, rng.randint(1, 4)))]
    terminals = list("ABCD"[: rng.randint(1, 4)])
    lines = []
    for name in names:
        choices = {
            " ".join(rng.choice(terminals * 2 + names) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 3, 4])))
            for _ in range(rng.randint(1, 4))
        }
        lines.append(f"{name}: " + " | ".join(sorted(choices)))
    return "\n".join(lines + [f'{each}: "{each.lower()}"' for each in terminals]) + "\n"


class Case:
    """A random grammar, and what its rules say of texts."""

    def __init__(self, rng: random.Random, lexing: Any) -> None:
        self.grammar = mw.parse_grammar(random_grammar(rng), lexing=lexing)
        self.store = mw.build_store(self.grammar, VOCABULARY)
        self.rules = [(rule.lhs, tuple(rule.rhs)) for rule in self.grammar.rules]
        self.number = {each.name.lower(): n for n, each in enumerate(self.grammar.terminals)}
        self.letters = [letter for letter in LETTERS if letter in self.number]

    def fills(self, before: bytes, after: bytes, most: int | None = None) -> bool:
        if any(chr(byte) not in self.number for byte in before + after):
            return False
        numbers = [[self.number[chr(byte)] for byte in data] for data in (before, after)]
        return can_be_filled(
            self.rules, self.grammar.start, *numbers, (sorted(self.number[each] for each in self.letters), most)
        )


def cases(seed: int, n: int, lexing: Any) -> Any:
    rng = random.Random(seed)
    while n:
        try:
            case = Case(rng, lexing)
        except mw.MaskwrightError:
            continue
        if case.letters:
            n -= 1
            yield rng, case


@pytest.mark.parametrize("lexing", ["longest", "contextual"])
@pytest.mark.parametrize("seed", range(3))
def test_ends_masks_and_bridges(seed: int, lexing: Any) -> None:
    asked, dead = np.zeros(2, int), 0
    for rng, case in cases(seed, 8, lexing):
        for _ in range(4):
            suffix = "".join(rng.choice(case.letters) for _ in range(rng.choice([0, 1, 1, 2, 3, 4]))).encode()
            if not case.fills(b"", suffix):
                with pytest.raises(mw.DeadEndError, match="no middle leads to the suffix"):
                    case.store.matcher(suffix=suffix)
                dead += 1
                continue
            with suppress(mw.LimitError):  # a text with too many parses
                asked += follow(rng, case, suffix)
    assert dead and asked[0] > 4_000 and asked[1] > 4


def follow(rng: random.Random, case: Case, suffix: bytes) -> Any:
    """Compare along one text. Returns how many tokens were asked about, and refused for the suffix alone."""
    matcher, plain = case.store.matcher(suffix=suffix), case.store.matcher()
    text = b""
    asked = np.zeros(2, int)
    for _ in range(4):
        assert matcher.is_accepting() == case.fills(text, suffix, 0)
        wanted = [n for n, token in enumerate(TOKENS) if n and case.fills(text + token, suffix)]
        wanted += [0] * case.fills(text, suffix, 0)
        found = matcher.allowed_tokens()
        bridge = matcher.shortest_ending().data
        assert sorted(wanted) == found
        assert [n for n in range(len(TOKENS)) if matcher.is_allowed(n)] == found
        asked += len(TOKENS), len(set(plain.allowed_tokens()) - set(found) - {0})
        assert case.fills(text + bridge, suffix, 0)
        assert matcher.min_bytes_left() == len(bridge)
        assert not bridge or len(bridge) > BRIDGE or not case.fills(text, suffix, len(bridge) - 1)
        tokens = [n for n in found if n]
        if not tokens:
            break
        token = rng.choice(tokens)
        matcher.advance(token)
        plain.advance(token)
        text += TOKENS[token]
    n = rng.randint(0, matcher.remembered())
    rest = b"".join(TOKENS[each] for each in matcher.text.said[: matcher.remembered() - n])
    matcher.rollback(n)
    assert matcher.said() == rest
    assert matcher.is_accepting() == case.fills(rest, suffix, 0)
    return asked
