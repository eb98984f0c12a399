"""Random layers and lists of ids for selective multiplication, and the definition that a result is checked against."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from maskwright.decoding.logits.selective import IdLists  # noqa: E402

DTYPES = ["float32", "bfloat16", "float16"]
SHAPES = [(1, 40, 16, 8), (3, 200, 70, 30), (4, 1000, 513, 9), (2, 33, 1, 33)]
"""Rows, columns, hidden size, most ids a row."""


def random_lists(rng: np.random.Generator, rows: int, columns: int, most: int) -> IdLists:
    """Lists of different lengths: the first row has most, the last one none if there are three rows; the last two of four are equal."""
    lists = [np.sort(rng.permutation(columns)[: rng.integers(1, most + 1)]) for _ in range(rows)]
    lists[0] = np.sort(rng.permutation(columns)[:most])
    if rows == 3:
        lists[-1] = lists[-1][:0]
    if rows == 4:
        lists[-1] = lists[-2]
    count = np.array([len(ids) for ids in lists], np.int32)
    return IdLists(np.concatenate(lists).astype(np.int32), count)


def random_layer(rng: np.random.Generator, shape: tuple[int, int, int, int], dtype: str, has_bias: bool) -> Any:
    rows, columns, size, _ = shape
    arrays = (
        rng.standard_normal((rows, size)),
        rng.standard_normal((columns, size)),
        rng.standard_normal(columns) if has_bias else None,
    )
    return [None if array is None else torch.from_numpy(array).to(getattr(torch, dtype)) for array in arrays]


def check(found: Any, hidden: Any, weight: Any, bias: Any, lists: IdLists) -> None:
    """Finite are the listed ids, and each logit is the definition in float64 within the bound of a float32 sum, rounded once."""
    steps = max(torch.finfo(torch.float32).eps, torch.finfo(found.dtype).eps) if found.dtype != torch.float64 else 1e-15
    for row, listed in enumerate(np.split(lists.ids, np.cumsum(lists.count)[:-1])):
        ids = torch.from_numpy(listed.astype(np.int64))
        is_listed = torch.zeros(found.shape[1], dtype=torch.bool).index_fill(0, ids, True)
        assert torch.equal(torch.isfinite(found[row]), is_listed) and torch.isneginf(found[row][~is_listed]).all()
        terms = hidden[row].double() * weight[ids].double()
        exact = terms.sum(1) + (0 if bias is None else bias[ids].double())
        sum_error = weight.shape[1] * (torch.finfo(torch.float32).eps if found.dtype != torch.float64 else 1e-15)
        size = terms.abs().sum(1) + (0 if bias is None else bias[ids].double().abs())
        assert ((found[row][ids].double() - exact).abs() <= sum_error * size + steps * exact.abs()).all()
