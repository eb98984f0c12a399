"""Applying masks to logits: compiled, PyTorch and Triton against the definition, bit by bit."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from apply_cases import (
    DTYPES,
    SHAPES,
    bits_of,
    check_backend,
    naive_rows,
    naive_words,
    placed,
    random_logits,
    random_row_ids,
    random_words,
)
from paths import TESTS

from maskwright.analysis.errors import MaskwrightError, MissingExtraError
from maskwright.decoding import logits as kernels
from maskwright.decoding.logits import apply, apply_mask, apply_rows, apply_words, mend_rows, optional

torch = pytest.importorskip("torch")
IDS = np.array([0], np.int32)
ROW = np.zeros((1, 1), np.int32)


def fitting(words: Any, columns: int) -> Any:
    """The same words, allowing nothing where no column is."""
    words = words.copy()
    words[..., (columns + 31) // 32 :] = 0
    if columns & 31 and words.shape[-1] > columns >> 5:
        words[..., columns >> 5] &= (1 << (columns & 31)) - 1
    return words


def chosen() -> Any:
    """The functions that choose a backend, as a backend: they return what died, and take no place to write it."""

    def mend(logits: Any, row_ids: Any, rows: Any, is_dead: Any) -> None:
        is_dead.copy_(mend_rows(logits, row_ids, rows))

    def apply_fitting(logits: Any, row_ids: Any, words: Any) -> None:
        if row_ids is not None:
            apply_rows(logits, row_ids, words)
            return
        kept = torch.from_numpy(fitting(np.asarray(words), logits.shape[1]))
        if not np.array_equal(kept, words):
            before = logits.clone()
            with pytest.raises(MaskwrightError, match="and allow some beyond the columns"):
                apply_words(logits, words)
            assert bits_of(logits) == bits_of(before)
        apply_words(logits, kept)

    return SimpleNamespace(apply=apply_fitting, mend=mend)


def test_compiled_code_is_the_definition() -> None:
    assert check_backend(chosen(), SHAPES, (0, 1, 2, 3)) > 500


def test_pytorch_operations_are_the_definition() -> None:
    from maskwright.decoding.logits import apply_torch

    assert check_backend(apply_torch, SHAPES, (0, 3)) > 300


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype != "bfloat16"])
def test_numpy_arrays_are_taken(dtype: str) -> None:
    for rows, columns, n_words in SHAPES:
        rng = np.random.default_rng(columns)
        logits = random_logits(rows, columns, dtype)
        words = fitting(random_words(rng, rows, n_words), columns)
        for given in (words, words.view(np.uint32), torch.from_numpy(words.copy())):
            array = logits.numpy().copy()
            apply_mask(array, given)
            assert array.tobytes() == bits_of(naive_words(logits, words))
        one = logits.numpy()[0].copy()
        apply_mask(one, words[0])
        assert one.tobytes() == bits_of(naive_words(logits, words))[: one.nbytes]
        row_ids = random_row_ids(rng, rows, rows)
        for how in (0, 1, 2):
            array = placed(logits, how).numpy()
            apply_rows(array, row_ids, words.view(np.uint32))
            assert array.tobytes() == bits_of(naive_rows(logits, row_ids, words))


def test_views_are_written_through() -> None:
    """What is not contiguous, or begins at an odd place: the rest of the memory stays as it was."""
    drawn = random_words(np.random.default_rng(0), 2, 4)
    for dtype in DTYPES:
        whole = torch.randn(2, 3, 101).to(getattr(torch, dtype))
        for view in (whole[:, 1, :], whole[:, 1, 1:], whole[0, :2, 3:], whole.transpose(1, 2)[:, :100, 0]):
            before, words = whole.clone(), fitting(drawn, view.shape[1])
            expected = naive_words(view, words)
            apply_mask(view, words)
            assert torch.equal(view, expected)
            restored = whole.clone()
            view.copy_(torch.zeros_like(view))
            mine = whole == 0
            assert torch.equal(restored[~mine], before[~mine])
            whole = before


def test_rows_that_lie_apart_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = torch.zeros(6, 50)
    copied = []
    contiguous = np.ascontiguousarray
    monkeypatch.setattr(np, "ascontiguousarray", lambda *given: copied.append(1) or contiguous(*given))
    for view in (whole[::2, 3:40], whole[:, :33], whole[4:5, ::1]):
        apply_words(view, np.zeros((len(view), 2), np.int32))
        assert torch.isneginf(view).all()
    assert not copied and torch.isfinite(whole[1::2, 40:]).all()
    for view in (whole[:2, ::2], whole.numpy()[2:4, ::2], whole.numpy()[5:3:-1]):
        copied.clear()
        apply_words(view, np.zeros((2, 2), np.int32))
        assert copied and np.isneginf(np.asarray(view)).all()
    assert torch.isfinite(whole[:4, 1::2][::2]).any()


def test_rows_more_than_2_to_the_31_places_apart() -> None:
    """Memory that is not written to is not taken."""
    try:
        whole = torch.empty((1 << 31) + 64, dtype=torch.bfloat16)
    except RuntimeError:
        pytest.skip("no 4 GiB of addresses")
    logits = torch.as_strided(whole, (2, 64), (1 << 31, 1))
    logits.zero_()
    apply_rows(logits, np.array([-1, 0]), np.full((1, 2), 3, np.int32))
    assert torch.isneginf(logits).sum(1).tolist() == [0, 60] and torch.isfinite(logits[1, :2]).all()


def test_nothing_to_mask() -> None:
    for shape in ((0, 5), (5, 0)):
        n_rows = shape[0]
        for logits in (torch.zeros(shape), np.zeros(shape, np.float32)):
            apply_words(logits, np.zeros((n_rows, 1), np.int32))
            apply_rows(logits, np.zeros(n_rows, np.int32), ROW)
        assert len(mend_rows(torch.zeros(shape), np.zeros(n_rows, np.int32), ROW)) == n_rows


def test_a_gradient_is_no_hindrance() -> None:
    logits = torch.zeros(1, 40, requires_grad=True)
    apply_words(logits, np.array([[1, 0]], np.int32))
    assert torch.isfinite(logits).nonzero().tolist() == [[0, 0]]


def test_what_cannot_be_masked_is_said() -> None:
    for logits, message in (
        (torch.zeros(1, 4, dtype=torch.int32), "the logits have dtype int32 and shape"),
        (torch.zeros(1, 1, 4), r"shape \(1, 1, 4\)"),
        (np.zeros((1, 4), np.int32), "the logits have dtype int32"),
        ([0.0], "the logits are a list"),
        (torch.zeros(2, 4), "expected a row for each"),
        (torch.zeros(4), "expected a row for each"),
        (torch.zeros(1, 4).expand(2, 4), "share their memory"),
        (np.lib.stride_tricks.as_strided(np.zeros(4, np.float32), (2, 4), (0, 4)), "share their memory"),
        (np.broadcast_to(np.float32(0), (1, 4)), "read-only"),
    ):
        with pytest.raises(MaskwrightError, match=message):
            n = len(logits) if "memory" in message else 1
            apply_words(logits, np.zeros((n, 1), np.int32))
    for given, message in (
        (ROW.astype(np.int64), "the words have dtype int64"),
        ([0], "the words are a list"),
        (ROW[:, :0], r"the words have shape \(1, 0\)"),
    ):
        with pytest.raises(MaskwrightError, match=message):
            apply_words(torch.zeros(1, 4), given)


def test_rows_and_ids_that_do_not_fit_are_said() -> None:
    meta = torch.zeros(1, dtype=torch.int32, device="meta")
    for row_ids, rows, message in (
        (np.array([1]), ROW, "row_ids go from 1 to 1, but there are 1 rows; expected 0 to 0, -1 for idle"),
        (np.array([-2]), ROW, "row_ids go from -2 to -2"),
        (np.array([1 << 40]), ROW, "expected integers of 32 bits"),
        (np.array([0, 0]), ROW, "2 row_ids are given for 1 rows of logits"),
        (np.array([0.0]), ROW, "row_ids have dtype float64"),
        (np.array([[0]]), ROW, r"row_ids have dtype int64 and shape \(1, 1\)"),
        ([0], ROW, "row_ids are a list; expected int32 or int64, NumPy or torch"),
        (meta, ROW, "row_ids are on meta, the logits on the CPU"),
        (IDS, ROW.astype(np.int64), "the rows have dtype int64"),
        (IDS, ROW[0], r"shape \(1,\); expected int32 or uint32, of shape \(R, W\)"),
        (IDS, ROW[:0], r"shape \(0, 1\)"),
        (IDS, meta[None], "the rows are on meta"),
    ):
        for function in (apply_rows, mend_rows):
            with pytest.raises(MaskwrightError, match=message):
                function(torch.zeros(1, 4), row_ids, rows)
    with pytest.raises(
        MaskwrightError, match=r"shape \(4,\); expected floating point of 16, 32 or 64 bits, of shape \(B, N\)$"
    ):
        apply_rows(torch.zeros(4), IDS, ROW)


@pytest.mark.parametrize("n_allowed", [30, 257, 288])
def test_logits_that_are_fewer_than_the_words_allow(n_allowed: int) -> None:
    """Words for 257 ids: what they allow past the columns is said, not cut off; nothing allowed there is nothing lost."""
    words = np.zeros((2, 9), np.uint32)
    words[1, (n_allowed - 1) >> 5] = 1 << ((n_allowed - 1) & 31)
    for columns in (1, 29, 30, 31, 32, 255, 256, 257, 287, 288, 300):
        for given, masks in (
            (torch.zeros(2, columns), torch.from_numpy(words.view(np.int32).copy())),
            (np.zeros((2, columns), np.float32), words),
            (torch.zeros(columns), words[1]),
            (torch.zeros(columns), words[1:].view(np.int32)[0]),
            (torch.zeros(1, columns), torch.from_numpy(words[1:].copy())),
        ):
            if n_allowed > columns:
                with pytest.raises(
                    MaskwrightError, match=f"have {columns} columns, but the words are for up to 288 tokens"
                ):
                    apply_mask(given, masks)
                assert bool((given == 0).all())
            else:
                apply_mask(given, masks)
                assert int((given == 0).sum()) == 1


def test_tensors_without_numbers_of_their_own() -> None:
    words = torch.full((2, 1), -1, dtype=torch.int32)
    rows = torch.zeros(2, dtype=torch.int32)
    for wrong, message in (
        (
            torch.zeros(2, 4).to_sparse(),
            "^the logits: the tensor has the layout torch.sparse_coo; expected a dense one",
        ),
        (torch.zeros(2, 4).to_sparse_csr(), "^the logits: the tensor has the layout torch.sparse_csr"),
        (torch.zeros(2, 4, device="meta"), "^the logits: the tensor is on device meta, which holds no numbers"),
        (torch.nested.nested_tensor([torch.zeros(4), torch.zeros(3)]), "^the logits: the tensor is nested"),
    ):
        with pytest.raises(MaskwrightError, match=message):
            apply_mask(wrong, words)
        place = wrong.device
        with pytest.raises(MaskwrightError, match=message):
            apply_rows(wrong, rows.to(place), words.to(place))
    for given in (words.to_sparse(), words.to("meta")):
        with pytest.raises(MaskwrightError, match=r"^the words: the tensor (has the layout|is on device meta)"):
            apply_mask(torch.zeros(2, 4), given)


def test_what_is_not_where_the_logits_are_is_said() -> None:
    """A device of its own that all have: meta, which holds no numbers."""
    logits = torch.zeros(2, 4, device="meta")
    ids, rows = torch.zeros(2, dtype=torch.int32, device="meta"), torch.zeros(1, 1, dtype=torch.int32, device="meta")
    for row_ids, given, message in (
        (
            ids.new_zeros(2, device="cpu"),
            rows,
            "row_ids are on cpu, the logits on meta; keep them where the logits are",
        ),
        (ids, rows.new_zeros(1, 1, device="cpu"), "the rows are on cpu, the logits on meta"),
        (ids, ROW, "the rows are a ndarray; expected a tensor on meta"),
        (ids[:1], rows, "1 row_ids are given for 2 rows"),
        (ids.float(), rows, "row_ids have dtype float32"),
        (ids, rows.long(), "the rows have dtype int64"),
        (ids, rows[0], r"the rows have dtype int32 and shape \(1,\)"),
    ):
        with pytest.raises(MaskwrightError, match=message):
            apply_rows(logits, row_ids, given)


def test_the_backend_follows_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    for device, triton, expected in (
        ("cuda", True, "apply_triton"),
        ("cuda", False, "apply_torch"),
        ("mps", True, "apply_torch"),
    ):
        if triton:
            pytest.importorskip("triton")
        monkeypatch.setattr(apply, "has_triton", lambda triton=triton: triton)
        found = apply._backend(SimpleNamespace(device=SimpleNamespace(type=device)))
        assert found.__name__ == f"maskwright.decoding.logits.{expected}"


INTERPRETED = """
import sys, warnings
warnings.simplefilter("ignore")
import numpy as np, torch
from maskwright.decoding.logits import apply_triton
sys.path.insert(0, {folder!r})
from apply_cases import SHAPES, check_backend
plans = [apply_triton.plan_for]
if {thorough}:
    def cut(block, is_eager, lane=None):
        def plan(logits):
            found = apply_triton.Plan(*plans[0](logits))
            return found._replace(block=block, is_eager=is_eager, lane=lane or found.lane)
        return plan
    plans += [cut(128, False), cut(128, True), cut(64, False, 1)]
compared = 0
for plan in plans:
    apply_triton.plan_for = plan
    compared += check_backend(apply_triton, {shapes}, {ways})
apply_triton.plan_for = plans[0]
words = torch.full((2, 2), -1, dtype=torch.int32)
for wrong in (2, 7, -2, 1 << 20):
    logits = torch.zeros(1, 64)
    apply_triton.apply(logits, torch.tensor([wrong]), words)
    assert torch.isneginf(logits).all()
far = torch.as_strided(torch.empty((1 << 31) + 64, dtype=torch.bfloat16), (2, 64), (1 << 31, 1)).zero_()
apply_triton.apply(far, torch.tensor([-1, 0]), words & 3)
assert torch.isneginf(far).sum(1).tolist() == [0, 60]
print("same", compared)
"""


def interpreted(shapes: Any, ways: Any, thorough: bool) -> int:
    """In a process of its own: Triton reads the variable when it is first imported."""
    pytest.importorskip("triton")
    program = INTERPRETED.format(folder=str(TESTS / "support"), shapes=shapes, ways=ways, thorough=thorough)
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0 and run.stdout.startswith("same"), run.stderr[-2000:]
    return int(run.stdout.split()[1])


@pytest.mark.slow
def test_the_triton_kernels_under_their_interpreter() -> None:
    assert interpreted([(3, 64, 2), (2, 97, 4)], (0, 1), thorough=False) > 60


@pytest.mark.slow
def test_the_triton_kernels_however_they_are_cut() -> None:
    """Shapes of each kind: whole words, fewer than columns need, more, and less than one."""
    assert interpreted([SHAPES[i] for i in (2, 5, 7, 10)], (0, 1), thorough=True) > 500


def test_without_triton_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "maskwright.decoding.logits.apply_triton"
    monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.delattr(kernels, "apply_triton", raising=False)
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(MissingExtraError, match=r"Triton is not installed.*pip install triton"):
        importlib.import_module(name)


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"pip install 'maskwright\[hf\]'"):
        optional.need_torch()
    array = np.zeros((1, 4), np.float32)
    apply_mask(array, np.array([[5]], np.int32))  # arrays need no torch
    apply_rows(array, IDS, np.array([[7]], np.int32))
    assert np.isneginf(array).tolist() == [[False, True, False, True]]
