"""The byte automata of expressions, which are made without what looks around, against those of terminals."""

from __future__ import annotations

import random

import pytest
from random_patterns import random_pattern
from shares import share

from maskwright.analysis.fronts.expressions import automaton_of, from_pattern
from maskwright.analysis.lexing.terminals import compile_pattern

SINGLES = ("a", "b", "[a-c]", "[^a]", ".", "é", r"[\s\S]", r"\x00", "(?=a)", r"\b")


@pytest.mark.parametrize("seed", share(range(60), 5))
def test_automata_are_those_of_terminals(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        expr = from_pattern(random_pattern(rng, 3, SINGLES))
        if not expr.is_never:
            assert automaton_of(expr, 20_000) == compile_pattern(str(expr.pattern), max_states=20_000)
