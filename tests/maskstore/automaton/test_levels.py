"""The order of exploration, and the items of roots, against the naive twins."""

from __future__ import annotations

import random
from typing import Any

import naive_compile
import numpy as np
import pytest
from engine_cases import MAKERS, random_vocabulary, settled
from shares import share

from maskwright.analysis.errors import GrammarError, LimitError
from maskwright.analysis.loading import load_grammar
from maskwright.maskstore.automaton import closure_tables, configuration_sets, equivalence, levels
from maskwright.maskstore.automaton._pool_kernels import DepthCase
from maskwright.maskstore.automaton.closure import MaskCollector
from maskwright.maskstore.automaton.configuration_sets import NEVER_LEGAL
from maskwright.maskstore.tokens.continuations import WHATEVER
from maskwright.maskstore.vocabulary import load_vocabulary
from maskwright.stores.build import compile_store


@pytest.mark.parametrize("seed", share(range(8), 3))
@pytest.mark.parametrize("make", MAKERS)
def test_levels_are_those_of_one_continuation_after_the_other(
    make: Any, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:
        monkeypatch.setattr(levels, "FIRST_ROOM", 1)
        monkeypatch.setattr(equivalence, "FIRST_RUNS", 1)
    grammar = make(seed)
    vocabulary = random_vocabulary(grammar, seed)
    try:
        found = compile_store(settled(grammar), vocabulary)
    except (GrammarError, LimitError):
        pytest.skip("the grammar has no store")
    monkeypatch.setattr(configuration_sets, "Levels", naive_compile.Levels)
    expected = compile_store(settled(grammar), vocabulary)
    assert found.counts == expected.counts
    assert (found.table == expected.table).all()


def test_levels_of_a_real_grammar(monkeypatch: pytest.MonkeyPatch) -> None:
    grammar, vocabulary = load_grammar("json.indent2"), load_vocabulary("python-tiny")
    found = compile_store(grammar, vocabulary)
    monkeypatch.setattr(configuration_sets, "Levels", naive_compile.Levels)
    expected = compile_store(grammar, vocabulary)
    assert found.counts == expected.counts and (found.table == expected.table).all()


@pytest.mark.parametrize("seed", range(20))
def test_items_of_a_root_are_the_unions_of_its_groups(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    if seed % 2:
        monkeypatch.setattr(closure_tables, "FIRST_IDS", 8)
    n_classes, n_groups, n_continuations, n_sets = rng.randint(1, 300), rng.randint(1, 30), rng.randint(0, 9), 3
    groups = [sorted(rng.sample(range(n_classes), rng.randint(1, n_classes))) for _ in range(n_groups)]
    distinct = [rng.choice([NEVER_LEGAL, *range(6)]) for _ in range(n_continuations + n_sets + 1)]
    rows = [(rng.randrange(3), rng.randrange(-n_sets, n_continuations), rng.randrange(n_groups)) for _ in range(60)]
    case = DepthCase(
        *(np.array(column, np.int32) for column in zip(*rows, strict=True)),
        np.array([one for group in groups for one in group], np.int32),
        np.concatenate([[0], np.cumsum([len(group) for group in groups])]).astype(np.int64),
    )
    collector = MaskCollector(n_classes)

    def members(mask: int) -> set[int]:
        masks = collector.without_nodes()
        begin, count = int(masks.mask_at[mask]), int(masks.mask_count[mask])
        if count >= 0:
            return set(masks.mask_ids[begin : begin + count].tolist())
        return set(np.flatnonzero(np.unpackbits(masks.dense[begin].view(np.uint8), bitorder="little")).tolist())

    for breaks in range(3):
        roots, masks, own = collector.find_items(case, breaks, np.array(distinct, np.int32), n_continuations)
        free: set[int] = set()
        expected: dict[int, set[int]] = {}
        for line_breaks, continuation, group in rows:
            if line_breaks != breaks:
                continue
            at = continuation if continuation >= 0 else n_continuations - continuation - 1
            if continuation == WHATEVER:
                free.update(groups[group])
            elif distinct[at] != NEVER_LEGAL:
                expected.setdefault(distinct[at], set()).update(groups[group])
        assert members(own) == free
        found = [(root, members(mask)) for root, mask in zip(roots.tolist(), masks.tolist(), strict=True)]
        assert found == sorted(expected.items(), key=lambda item: item[0])
