"""The constructs of llama.cpp's example grammars, written anew: they load, and round trips keep the language."""

from __future__ import annotations

import random

import numpy as np
import pytest
from front_cases import GBNF

import maskwright as mw
from maskwright.analysis.fronts import parse_gbnf, parse_llguidance, to_gbnf, to_llguidance

GRAMMARS = {name: GBNF[name] for name in ("list", "arithmetic", "json", "chess", "japanese")}
BYTES = mw.load_vocabulary([*(bytes([i]) for i in range(256)), b""], eos=[256], name="bytes")


def walk(store, rng) -> list[int]:
    """A beginning of a text of a store."""
    matcher, words, found = store.matcher(), np.zeros(9, np.uint32), []
    for _ in range(rng.randint(1, 40)):
        matcher.fill(words)
        allowed = [i for i in range(256) if words[i >> 5] >> (i & 31) & 1]
        if not allowed:
            break
        found.append(rng.choice(allowed))
        matcher.advance(found[-1])
    return found


def verdict(store, tokens) -> int | bool:
    """Where a text is refused, or whether it may end."""
    matcher = store.matcher()
    for place, token in enumerate(tokens):
        if not matcher.is_allowed(token):
            return -1 - place
        matcher.advance(token)
    return matcher.is_accepting()


@pytest.mark.parametrize("write", ["gbnf", "llguidance"])
@pytest.mark.parametrize("name", GRAMMARS)
def test_round_trips_keep_the_language(name: str, write: str) -> None:
    rng = random.Random(5)
    grammar = parse_gbnf(GRAMMARS[name], name)
    again = parse_gbnf(to_gbnf(grammar)) if write == "gbnf" else parse_llguidance(to_llguidance(grammar))
    stores = [mw.build_store(one, BYTES) for one in (grammar, again)]
    for _ in range(40):
        tokens = walk(rng.choice(stores), rng)
        if tokens and rng.random() < 0.5:
            tokens[rng.randrange(len(tokens))] = rng.choice(tokens)
        assert verdict(stores[0], tokens) == verdict(stores[1], tokens), bytes(tokens)
