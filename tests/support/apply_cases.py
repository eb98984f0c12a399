"""Masks on logits by definition, and cases: what every backend is held against, also where Triton's interpreter needs its own process."""

from __future__ import annotations

from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

torch = pytest.importorskip("torch")

DTYPES = ["float16", "bfloat16", "float32", "float64"]
SHAPES = [
    (1, 32, 1), (3, 64, 2), (2, 100, 4), (4, 1000, 32), (2, 1001, 32), (3, 1002, 31), (2, 1004, 40), (1, 7, 1),
    (2, 33, 1), (5, 1, 1), (3, 1100, 34),
]  # fmt: skip
"""Rows, columns, words: whole and broken words, fewer words than columns need, and more."""

Int32 = npt.NDArray[np.int32]


def naive_words(logits: Any, words: Int32) -> Any:
    """The definition."""
    found = logits.clone()
    for row, given in enumerate(words.tolist()):
        refused = [i >> 5 >= len(given) or not given[i >> 5] >> (i & 31) & 1 for i in range(logits.shape[1])]
        found[row, torch.tensor(refused)] = -torch.inf
    return found


def naive_rows(logits: Any, row_ids: Int32, rows: Int32) -> Any:
    found = logits.clone()
    for row, number in enumerate(row_ids.tolist()):
        if number != -1:
            found[row : row + 1] = naive_words(logits[row : row + 1], rows[number : number + 1])
    return found


def random_words(rng: np.random.Generator, rows: int, n_words: int) -> Int32:
    """Random bits, and among them words of ones only and of zeros only."""
    words = rng.integers(0, 1 << 32, (rows, n_words), dtype=np.uint32)
    words[rng.random((rows, n_words)) < 0.3] = 0
    words[rng.random((rows, n_words)) < 0.2] = 0xFFFFFFFF
    return words.view(np.int32)


def random_row_ids(rng: np.random.Generator, rows: int, n: int) -> Int32:
    """One in four idle."""
    return np.where(rng.random(rows) < 0.25, -1, rng.integers(n, size=rows)).astype(np.int32)


def random_logits(rows: int, columns: int, dtype: str) -> Any:
    logits = torch.randn(rows, columns, dtype=torch.float64).to(getattr(torch, dtype))
    logits[0, 0] = torch.nan  # kept bits are kept as they are
    integers = {2: torch.int16, 4: torch.int32, 8: torch.int64}[logits.element_size()]
    logits.view(integers)[-1, -1] += 0 if columns == 1 else 1
    return logits


def placed(logits: Any, how: int) -> Any:
    """The same logits in other memory: as they are, at odd places, with rows apart, and (3) not side by side."""
    rows, columns = logits.shape
    if how == 0:
        return logits.clone()
    wide = torch.full((rows, 2 * columns + 48), 7.0, dtype=logits.dtype)
    view = {1: wide[:, 3 : 3 + columns], 2: wide[:, 16 : 16 + columns], 3: wide[:, 1 : 1 + 2 * columns : 2]}[how]
    view.copy_(logits)
    return view


def bits_of(tensor: Any) -> bytes:
    return bytes(tensor.contiguous().view(torch.uint8).numpy().tobytes())


def check_backend(backend: ModuleType, shapes: list[tuple[int, int, int]], ways: tuple[int, ...]) -> int:
    """A module's functions on tensors, against the definition, bit by bit; how many results were compared."""
    n = 0
    for dtype, (rows, columns, n_words), how in product(DTYPES, shapes, ways):
        rng = np.random.default_rng(columns + how)
        logits = random_logits(rows, columns, dtype)
        table = random_words(rng, 5, n_words)
        table[0], table[1] = 0, -1
        where = (dtype, rows, columns, how)

        words = table[rng.integers(5, size=rows)]
        found = placed(logits, how)
        backend.apply(found, None, torch.from_numpy(words))
        assert bits_of(found) == bits_of(naive_words(logits, words)), where

        for index in (torch.int32, torch.int64):
            row_ids = random_row_ids(rng, rows, 5)
            found = placed(logits, how)
            backend.apply(found, torch.from_numpy(row_ids).to(index), torch.from_numpy(table))
            assert bits_of(found) == bits_of(naive_rows(logits, row_ids, table)), where

        check_mending(backend, dtype, max(columns, 33), how)
        n += 4
    return n


def check_mending(backend: ModuleType, dtype: str, columns: int, how: int) -> None:
    """Rows: alive at its last allowed logit only, dead in three ways, idle, allowing nothing, and a value that is large."""
    values = [1.0, -torch.inf, torch.inf, torch.nan, torch.nan, -torch.inf, -1e4]
    logits = torch.full((7, columns), -torch.inf, dtype=getattr(torch, dtype))
    logits[:, columns - 1] = torch.tensor(values)
    rows = np.zeros((2, (columns + 31) // 32), np.int32)
    rows[0, 0] = 5
    rows[0, (columns - 1) >> 5] |= np.int32((1 << ((columns - 1) & 31)) - (1 << 32 if (columns - 1) & 31 == 31 else 0))
    row_ids = np.array([0, 0, 0, 0, -1, 1, 0], np.int32)
    found = placed(logits, how)
    is_dead = torch.full((7,), 9, dtype=torch.uint8)
    backend.mend(found, torch.from_numpy(row_ids), torch.from_numpy(rows), is_dead)
    assert is_dead.tolist() == [0, 1, 1, 1, 0, 0, 0]
    expected = logits.clone()
    for i in (0, 2, columns - 1):
        expected[1:4, i] = 0.0
    assert bits_of(found) == bits_of(expected), (dtype, columns, how)
