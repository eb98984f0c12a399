"""Which tokens may stand side by side, against a BPE that merges both together."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from shares import parts, share

from maskwright.analysis.errors import VocabularyError
from maskwright.maskstore.canonical.spines import Merges, Neighbours


def random_merges(rng: random.Random) -> tuple[Merges, list[bytes]]:
    """A BPE of at most three letters, whose merges need not come of any training."""
    symbols = [bytes([letter]) for letter in b"abc"[: rng.randint(1, 3)]]
    by_pairs = rng.random() < 0.5
    pairs: dict[tuple[bytes, bytes], int] = {}
    for _ in range(rng.randint(1, 14)):
        left, right = rng.choice(symbols), rng.choice(symbols)
        if len(left + right) > 8 or (left, right) in pairs:
            continue
        pairs[left, right] = len(pairs)
        if left + right not in symbols:
            symbols.append(left + right)
    ids = {symbol: token for token, symbol in enumerate(symbols)}
    return (Merges(ids, pairs=pairs) if by_pairs else Merges(ids, ranks=ids)), symbols


def allowed(neighbours: Neighbours, token: int, size: int) -> list[bool]:
    return np.unpackbits(neighbours.after(token).view(np.uint8), bitorder="little")[:size].astype(bool).tolist()


@pytest.mark.parametrize("seeds", share(parts(2_000, 100), 2))
def test_neighbours_are_those_that_merge_to_themselves(seeds: range) -> None:
    compared = 0
    for seed in seeds:
        rng = random.Random(seed)
        merges, symbols = random_merges(rng)
        try:
            neighbours = Neighbours(merges, len(symbols))
        except VocabularyError:
            continue  # merges in no order
        rows = {token: allowed(neighbours, token, len(symbols)) for token in range(len(symbols))}
        for token, left in enumerate(symbols):
            assert neighbours.made[token] == (merges.encode(left) == [left])
            for other, right in enumerate(symbols):
                is_made = bool(neighbours.made[token] and neighbours.made[other])
                assert rows[token][other] == (is_made and merges.encode(left + right) == [left, right])
                compared += 1
        for _ in range(40):
            tokens = [rng.randrange(len(symbols)) for _ in range(rng.randint(1, 5))]
            texts = [symbols[token] for token in tokens]
            by_pairs = all(rows[a][b] for a, b in itertools.pairwise(tokens)) and all(neighbours.made[tokens])
            assert by_pairs == (merges.encode(b"".join(texts)) == texts)
    assert compared > 1_000


def test_merges_out_of_order_are_refused() -> None:
    # `ab` is made of `a` and `b` late, and `abc` of `ab` and `c` early
    merges = Merges({b"a": 0, b"b": 1, b"c": 2, b"ab": 3, b"abc": 4}, pairs={(b"ab", b"c"): 0, (b"a", b"b"): 1})
    with pytest.raises(VocabularyError, match="order of their ranks"):
        Neighbours(merges, 5)


def test_a_token_that_no_merges_make_stands_nowhere() -> None:
    merges = Merges({b"a": 0, b"b": 1, b"ab": 2, b"ba": 3}, pairs={(b"a", b"b"): 0})
    neighbours = Neighbours(merges, 4)
    assert neighbours.made.tolist() == [True, True, True, False]
    assert allowed(neighbours, 0, 4) == [True, False, True, False]
    assert not neighbours.after(3).any()
