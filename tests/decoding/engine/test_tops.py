"""The closing of a stack automaton looks at no other states on top of a stack than those that decoders can have there."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from engine_cases import MAKERS, random_vocabulary
from mask_bits import row
from shares import share

from maskwright.analysis.errors import MaskwrightError
from maskwright.decoding.engine import constants
from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.automaton.stack_automaton import build_automaton
from maskwright.maskstore.table.write import engine_table
from maskwright.stores.store import Store


def tops(matcher: Matcher) -> set[int]:
    """The LR states on top of the stacks."""
    memory = matcher.text.texts._memory
    arena, stacks = int(memory[constants.ARENA]), int(memory[constants.STACKS])
    frames = [stacks] if stacks >= 0 else []
    member = -1 if stacks >= 0 else constants.LIST - stacks
    while member >= 0:
        record = arena + constants.RECORD * member
        frames.append(int(memory[record]))
        member = int(memory[record + 1])
    return {int(memory[arena + constants.RECORD * frame]) & int(constants.NATURAL) for frame in frames}


@pytest.mark.parametrize("n", share([7, 20], 1))
@pytest.mark.parametrize("make", MAKERS)
def test_a_terminal_was_shifted_last(make: Any, n: int) -> None:
    met = 0
    for seed in range(n):
        grammar = make(seed)
        vocabulary = random_vocabulary(grammar, seed)
        try:
            automaton = build_automaton(grammar, vocabulary)
        except MaskwrightError:
            continue
        store = Store(grammar, vocabulary, engine_table(grammar, vocabulary, automaton), {})
        tables = automaton.tables
        shifted = np.flatnonzero((tables.accessing == -2) | (tables.accessing < tables.n_terminals)).tolist()
        rng = random.Random(seed)
        for _ in range(6):
            matcher = store.matcher()
            for _ in range(20):
                found = tops(matcher)
                assert found <= {0, *shifted} and found, seed
                assert tables.accessing[0] == -1
                met += len(found - {0})
                try:
                    allowed = sorted(row(matcher) - set(vocabulary.eos))
                except MaskwrightError:
                    break
                if not allowed:
                    break
                matcher.advance(rng.choice(allowed))
    assert met > 5 * n
