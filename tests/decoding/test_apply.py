"""Applying masks to logits: compiled, PyTorch and Triton against the definition, bit by bit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from maskwright.analysis.errors import MaskwrightError
from maskwright.decoding.adapters import _apply
from maskwright.decoding.adapters._apply import apply_mask, apply_mask_torch, first_dead_row

torch = pytest.importorskip("torch")

DTYPES = ["float16", "bfloat16", "float32", "float64"]
SHAPES = [
    (1, 32, 1),
    (3, 64, 2),
    (2, 100, 4),
    (4, 1000, 32),
    (2, 1001, 32),
    (3, 1002, 31),
    (2, 1004, 40),
    (1, 7, 1),
    (2, 33, 1),
    (5, 1, 1),
]
"""Rows, columns, words: whole and broken words, fewer words than columns need, and more."""


def naive(logits: Any, words: npt.NDArray[np.int32]) -> Any:
    """The definition."""
    found = logits.clone()
    for row in range(logits.shape[0]):
        for i in range(logits.shape[1]):
            if i >> 5 >= words.shape[1] or not int(words[row, i >> 5]) >> (i & 31) & 1:
                found[row, i] = -torch.inf
    return found


def random_words(rng: np.random.Generator, rows: int, n_words: int) -> npt.NDArray[np.int32]:
    """Random bits, and among them words of ones only and of zeros only."""
    words = rng.integers(0, 1 << 32, (rows, n_words), dtype=np.uint32)
    words[rng.random((rows, n_words)) < 0.3] = 0
    words[rng.random((rows, n_words)) < 0.2] = 0xFFFFFFFF
    return words.view(np.int32)


def bits_of(tensor: Any) -> bytes:
    return bytes(tensor.contiguous().view(torch.uint8).numpy().tobytes())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_way_is_the_definition(dtype: str, shape: tuple[int, int, int]) -> None:
    rows, columns, n_words = shape
    rng = np.random.default_rng(columns)
    logits = torch.randn(rows, columns, dtype=torch.float64).to(getattr(torch, dtype))
    logits[0, 0] = torch.nan  # kept bits are kept as they are
    words = random_words(rng, rows, n_words)
    expected = bits_of(naive(logits, words))
    for given in (words, words.view(np.uint32), torch.from_numpy(words.copy())):
        found = logits.clone()
        apply_mask(found, given)
        assert bits_of(found) == expected
    found = logits.clone()
    apply_mask_torch(found, torch.from_numpy(words.copy()))
    assert bits_of(found) == expected
    if dtype != "bfloat16":
        array = logits.numpy().copy()
        apply_mask(array, words)
        assert array.tobytes() == expected
    one = logits[0].clone()
    apply_mask(one, words[0])
    assert bits_of(one) == expected[: len(bits_of(one))]


def test_views_are_written_through() -> None:
    """What is not contiguous, or begins at an odd place: the rest of the memory stays as it was."""
    words = random_words(np.random.default_rng(0), 2, 4)
    for dtype in DTYPES:
        whole = torch.randn(2, 3, 101).to(getattr(torch, dtype))
        for view in (whole[:, 1, :], whole[:, 1, 1:], whole[0, :2, 3:], whole.transpose(1, 2)[:, :100, 0]):
            before = whole.clone()
            expected = naive(view, words)
            apply_mask(view, words)
            assert torch.equal(view, expected)
            restored = whole.clone()
            view.copy_(torch.zeros_like(view))
            mine = whole == 0
            assert torch.equal(restored[~mine], before[~mine])
            whole = before


def test_what_cannot_be_masked_is_said() -> None:
    words = np.zeros((1, 1), np.int32)
    for logits, message in (
        (torch.zeros(1, 4, dtype=torch.int32), "the logits have dtype int32 and shape"),
        (torch.zeros(1, 1, 4), r"shape \(1, 1, 4\)"),
        (np.zeros((1, 4), np.int32), "the logits have dtype int32"),
        ([0.0], "the logits are a list"),
        (torch.zeros(2, 4), "expected a row for each"),
        (torch.zeros(4), "expected a row for each"),
        (np.zeros((4, 1), np.float32).T[:, ::2], "not contiguous"),
    ):
        with pytest.raises(MaskwrightError, match=message):
            apply_mask(logits, words)
    for given, message in ((words.astype(np.int64), "the words have dtype int64"), ([0], "the words are a list")):
        with pytest.raises(MaskwrightError, match=message):
            apply_mask(torch.zeros(1, 4), given)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_without_a_finite_allowed_logit_are_found(dtype: str) -> None:
    for value, is_finite in ((1.0, True), (-1e4, True), (torch.inf, False), (-torch.inf, False), (torch.nan, False)):
        logits = torch.zeros(2, 70).to(getattr(torch, dtype))
        logits[1, 65] = value
        words = np.zeros((2, 3), np.int32)
        words[0, 0], words[1, 2] = 1, 2
        judged = np.array([True, True])
        assert first_dead_row(logits, words, judged) == (-1 if is_finite else 1)
        assert first_dead_row(logits, words, np.array([True, False])) == -1
        words[0, 0] = 0
        assert first_dead_row(logits, words, judged) == 0


TRITON = """
import sys
import numpy as np, torch
from maskwright.decoding.adapters import _apply_triton
_apply_triton.BLOCK = 128
sys.path.insert(0, {folder!r})
from test_apply import DTYPES, SHAPES, bits_of, naive, random_words
for dtype in DTYPES:
    for rows, columns, n_words in SHAPES[1:8:2]:
        logits = torch.randn(rows, columns, dtype=torch.float64).to(getattr(torch, dtype))
        words = random_words(np.random.default_rng(columns), rows, n_words)
        expected = naive(logits, words)
        _apply_triton.apply_mask_triton(logits, torch.from_numpy(words))
        assert bits_of(logits) == bits_of(expected), (dtype, rows, columns)
whole = torch.randn(2, 200)
words = random_words(np.random.default_rng(1), 2, 4)
expected = naive(whole[:, ::2], words)
words = torch.from_numpy(words)
_apply_triton.apply_mask_triton(whole[:, ::2], words)
assert torch.equal(whole[:, ::2], expected) and torch.isfinite(whole[:, 1::2]).all()
try:
    _apply_triton.apply_mask_triton(whole, words[:1])
except ValueError as error:
    assert "a row for each" in str(error)
print("same")
"""


def test_the_triton_kernel_under_its_interpreter() -> None:
    """In a process of its own: Triton reads the variable when it is first imported."""
    pytest.importorskip("triton")
    run = subprocess.run(
        [sys.executable, "-c", TRITON.format(folder=str(Path(__file__).parent))],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0 and run.stdout.strip().endswith("same"), run.stderr[-2000:]


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"pip install 'maskwright\[hf\]'"):
        _apply.need_torch()
    array = np.zeros(4, np.float32)
    apply_mask(array, np.array([5], np.int32))  # arrays need no torch
    assert np.isneginf(array).tolist() == [False, True, False, True]
