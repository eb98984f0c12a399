"""`Lexemes.can_survive` against reading byte by byte, pair by pair."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from engine_cases import MAKERS
from naive_compile import survives
from shares import share

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.lexing import lexemes as module
from maskwright.analysis.lexing.lexemes import Lexemes
from maskwright.analysis.lexing.modes import lexing_modes
from maskwright.analysis.lr.tables import build_merged_tables


@pytest.mark.parametrize("seed", share(range(10), 3))
@pytest.mark.parametrize("make", MAKERS)
def test_what_survives(make: Any, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 2:
        monkeypatch.setattr(module, "PAUSE", 1)
    if seed % 3 == 1:
        monkeypatch.setattr(module, "FIRST_PAIRS", 2)
    grammar = make(seed)
    try:
        merged = build_merged_tables(grammar, grammar.conflicts)
        tables = merged.tables
        modes = lexing_modes(grammar, tables.action != 0, tables.terminal_column, tables.accessing)
        lexemes = Lexemes(grammar, merged.can_follow, modes, 1000)
    except MaskwrightError:
        pytest.skip("the grammar has no lexer")
    rng = random.Random(seed)
    states = range(len(lexemes.winner))
    winners = sorted({winner for winner in lexemes.winner if winner >= 0})
    questions = list(itertools.product(winners, states, states, (True, False)))
    for question in rng.sample(questions, min(len(questions), 300)):
        assert lexemes.can_survive(*question) == survives(lexemes, *question), question
