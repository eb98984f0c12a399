"""Selective multiplication: logits of the tokens that a mask allows, and -inf for all others.

The logit of a token i that row r's mask allows is logits[r, i] = <hidden[r], weight[i]> + bias[i].
If a mask allows few tokens, nearly all of the last matrix product is computed and not used. Here
only the allowed rows of the unembedding matrix are read. How close the result is to the full
product:

- Which logits are finite is exact: those of the ids, no others.
- Each finite logit is the same dot product, rounded to the logits' type once. But it is summed in
  another order, so the last bits may differ, as they do between batch sizes of the full product.
  Greedy and seeded sampling agree with the full product unless two logits (or a draw and its bound)
  are closer to each other than that rounding. In bfloat16 the best two tokens may be.
- The Triton kernel sums in float32, in an order that depends only on the hidden size. So a logit's
  bits do not depend on the other ids and rows. PyTorch's products do not promise that.

The host, which makes the masks, chooses the product by the number of ids, so nothing waits for the
device. It chooses for the whole batch: the full product of some rows reads the whole matrix, as
that of all rows does, and the other rows' product would come on top.

Source: Chaudhari, Quernheim, Willard, "Making Structured Generation Faster Than Unstructured"
(.txt, 2024).
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arrays import Int32, Int32_2D
from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.jit import kernel
from maskwright.decoding.logits.optional import need_torch

try:
    import triton  # type: ignore[import-not-found,import-untyped,unused-ignore]
    import triton.language as tl  # type: ignore[import-not-found,import-untyped,unused-ignore]
except ImportError:  # PyTorch's operations do it then
    triton = None

CHUNK = 512
"""Rows gathered at once by PyTorch's operations.

PERF: 8,192 rows of 2,048 float32 are multiplied in 36 ms in such chunks, and in 240 ms in one piece
(one busy core of an EPYC, torch 2.13), since one piece is larger than the caches and in fresh
pages.
"""
BLOCK_IDS, BLOCK_HIDDEN = 4, 512
"""What a program of the Triton kernel reads at once.

These are two loads of 16 bytes a thread for 16-bit weights.
"""


class IdLists(NamedTuple):
    """The tokens that each row may go on with, one row's behind the other's.

    ids : (n,) int32; those of a row ascend.
    count : (B,) int32; the ids of each row.
    """

    ids: npt.NDArray[np.int32]
    count: npt.NDArray[np.int32]


def id_lists(words: npt.NDArray[np.int32], n_columns: int, limit: int) -> IdLists | None:
    """The ids of masks, or None if there are more than `limit` in all.

    words : (B, W) int32, as `fill` writes them.
    n_columns : ids from this one on have no logit, and are left out.

    Cost: O(B W), 2 us for V = 50,000.

    >>> id_lists(np.array([[0b1010], [1]], np.int32), 32, 5).ids
    array([1, 3, 0], dtype=int32)
    """
    ids, count = np.empty(limit, np.int32), np.zeros(len(words), np.int32)
    n = write_ids(words, n_columns, ids, count)
    return None if n < 0 else IdLists(ids[:n], count)


@kernel(entry=True)
def write_ids(words: Int32_2D, n_columns: int, ids: Int32, count: Int32) -> int:
    """Write the ids of masks. Returns their number, or -1 if `ids` is too short.

    words : (B, W) int32.
    n_columns : ids from this one on are left out.
    ids : (limit,) int32; written.
    count : (B,) int32; written, the ids of each row.
    """
    n = 0
    for row in range(words.shape[0]):
        begin = n
        for w in range(min(words.shape[1], (n_columns + 31) >> 5)):
            word = words[row, w]
            if word == 0:
                continue
            for bit in range(min(32, n_columns - 32 * w)):
                if (word >> np.int32(bit)) & 1:
                    if n == len(ids):
                        return -1
                    ids[n] = 32 * w + bit
                    n += 1
        count[row] = n - begin
    return n


def selective_logits(hidden: Any, weight: Any, lists: IdLists, bias: Any = None) -> Any:
    """The logits of the listed tokens, -inf for the others: (B, V).

    hidden : (B, H) float32, bfloat16, float16 or float64.
    weight : (V, H), as of a torch.nn.Linear.
    lists : for B rows.
    bias : (V,), as of a torch.nn.Linear; None for none.

    All tensors are on one device and have the dtype of `hidden`.

    Scaling and soft caps come afterwards, as after the full product. A soft cap makes -inf finite:
    mask again then, as the logits processor does. On CUDA one Triton kernel reads each listed
    weight. Elsewhere, and without Triton or for float64, rows with equal lists are multiplied
    together. The host does not wait for the device.

    Raises: MaskwrightError for shapes or dtypes that do not fit, and for ids out of range.
    Cost: O(ids x H) and one write of the logits.
    """
    torch = need_torch()
    _check(hidden, weight, lists, bias)
    out = hidden.new_full((len(hidden), len(weight)), -float("inf"))
    if len(lists.ids):
        is_fused = hidden.device.type == "cuda" and triton is not None and hidden.dtype != torch.float64
        (_fused if is_fused else _grouped)(torch, hidden, weight, lists, bias, out)
    return out


def _check(hidden: Any, weight: Any, lists: IdLists, bias: Any) -> None:
    if hidden.ndim != 2 or weight.ndim != 2 or hidden.shape[1] != weight.shape[1]:
        raise MaskwrightError(
            f"hidden has shape {tuple(hidden.shape)} and weight {tuple(weight.shape)}; expected (B, H) and (V, H)"
        )
    if bias is not None and tuple(bias.shape) != (len(weight),):
        raise MaskwrightError(f"bias has shape {tuple(bias.shape)}; expected {(len(weight),)}")
    for name, tensor in {"hidden": hidden, "weight": weight, "bias": hidden if bias is None else bias}.items():
        if tensor.dtype != hidden.dtype or not tensor.dtype.is_floating_point or tensor.device != hidden.device:
            raise MaskwrightError(
                f"{name} is {tensor.dtype} on {tensor.device}, hidden {hidden.dtype} on {hidden.device}; "
                "expected one floating point dtype and one device"
            )
    ids = lists.ids
    if len(lists.count) != len(hidden):
        raise MaskwrightError(f"there are lists for {len(lists.count)} rows, but hidden has {len(hidden)}")
    if len(ids) and not 0 <= ids.min() <= ids.max() < len(weight):
        raise MaskwrightError(f"ids go from {ids.min()} to {ids.max()}; expected 0 to {len(weight) - 1}")


def _grouped(torch: Any, hidden: Any, weight: Any, lists: IdLists, bias: Any, out: Any) -> None:
    """`selective_logits` in PyTorch operations: a product for each group of equal lists."""
    groups: dict[bytes, list[int]] = {}
    for row, ids in enumerate(np.split(lists.ids, np.cumsum(lists.count)[:-1])):
        groups.setdefault(ids.tobytes(), []).append(row)
    for key, rows in groups.items():
        all_rows = len(rows) == len(hidden)
        at_rows = torch.tensor(rows).to(hidden.device, non_blocking=True)
        some = hidden if all_rows else hidden.index_select(0, at_rows)
        listed = torch.from_numpy(np.frombuffer(key, np.int32).astype(np.int64)).to(hidden.device, non_blocking=True)
        for chunk in listed.split(CHUNK):
            few = None if bias is None else bias.index_select(0, chunk)
            out[at_rows[:, None], chunk] = torch.nn.functional.linear(some, weight.index_select(0, chunk), few)


if triton is not None:

    @triton.jit  # type: ignore[untyped-decorator,unused-ignore]
    def _gather_dot(  # type: ignore[no-untyped-def]
        hidden, weight, bias, out, ids, begin, count, n_columns, n_hidden, hidden_stride, weight_stride, out_stride,
        HAS_BIAS: tl.constexpr, BLOCK_IDS: tl.constexpr, BLOCK_HIDDEN: tl.constexpr,
    ):  # fmt: skip
        """Ids BLOCK_IDS * x .. of row y. Strides are in elements."""
        # BOUND: V times H may pass 2^31
        row = tl.program_id(1).to(tl.int64)
        at = tl.program_id(0) * BLOCK_IDS + tl.arange(0, BLOCK_IDS)
        here = at < tl.load(count + row)
        token = tl.load(ids + tl.load(begin + row) + at, mask=here, other=-1).to(tl.int64)
        here = here & (token >= 0) & (token < n_columns)
        sums = tl.zeros((BLOCK_IDS, BLOCK_HIDDEN), tl.float32)
        if tl.program_id(0) * BLOCK_IDS < tl.load(count + row):
            for first in range(0, n_hidden, BLOCK_HIDDEN):
                k = first + tl.arange(0, BLOCK_HIDDEN)
                x = tl.load(hidden + row * hidden_stride + k, mask=k < n_hidden, other=0.0).to(tl.float32)
                w = tl.load(
                    weight + token[:, None] * weight_stride + k[None, :],
                    mask=here[:, None] & (k < n_hidden)[None, :],
                    other=0.0,
                )
                sums += w.to(tl.float32) * x[None, :]
            logit = tl.sum(sums, axis=1)
            if HAS_BIAS:
                logit += tl.load(bias + token, mask=here, other=0.0).to(tl.float32)
            tl.store(out + row * out_stride + token, logit.to(out.dtype.element_ty), mask=here)


def _fused(torch: Any, hidden: Any, weight: Any, lists: IdLists, bias: Any, out: Any) -> None:
    """`selective_logits` in one Triton kernel."""
    hidden = hidden.contiguous()
    weight = weight if weight.stride(1) == 1 else weight.contiguous()
    # in one copy, for which the host does not wait
    begin, rows = (np.cumsum(lists.count) - lists.count).astype(np.int32), len(hidden)
    packed = torch.from_numpy(np.concatenate((begin, lists.count, lists.ids)))
    if hidden.device.type == "cuda":
        packed = packed.pin_memory()  # the allocator keeps it until the copy is done
    packed = packed.to(hidden.device, non_blocking=True)
    # BOUND: the grid has at most 65,535 rows
    grid = triton.cdiv(int(lists.count.max()), BLOCK_IDS), rows
    _gather_dot[grid](
        hidden, weight, hidden if bias is None else bias.contiguous(), out, packed[2 * rows :], packed[:rows],
        packed[rows : 2 * rows], len(weight), hidden.shape[1], hidden.stride(0), weight.stride(0), out.stride(0),
        HAS_BIAS=bias is not None, BLOCK_IDS=BLOCK_IDS, BLOCK_HIDDEN=BLOCK_HIDDEN,
    )  # fmt: skip


# ---- Where does it pay?

_clock = time.perf_counter if sys.platform == "win32" else time.thread_time
"""Windows counts a thread's time in steps of 16 ms."""
_crossovers: dict[tuple[Any, ...], int] = {}


def measure_crossover(weight: Any, batch: int = 1, bias: Any = None) -> int:
    """The most ids a row for which `selective_logits` beats the full product; 0 if none do.

    weight : (V, H).
    batch : the number of rows, which have different ids.
    bias : (V,), or None.

    Measured once in a process for each device, dtype, shape, batch and number of threads. It is 0
    on devices other than the CPU and CUDA. The time includes copying the lists, and ids change from
    run to run, as they do between steps. A number counts as faster if the least of six runs is at
    least a tenth faster than the least of as many full products, run in turn. (Three, if the full
    product takes more than 0.1 s.) What else the machine does makes little difference: see
    `seconds`.

    Raises: MaskwrightError if `batch` is below 1, or `weight` is not (V, H).
    Cost: some 30 full products.
    """
    torch = need_torch()
    if batch < 1 or weight.ndim != 2:
        raise MaskwrightError(f"batch {batch} and a weight of shape {tuple(weight.shape)}; expected 1 or more, (V, H)")
    threads = torch.get_num_threads() if weight.device.type == "cpu" else 0
    key = (str(weight.device), weight.dtype, tuple(weight.shape), weight.stride(), batch, bias is not None, threads)
    if weight.device.type not in ("cpu", "cuda"):
        return 0
    if key not in _crossovers:
        with torch.no_grad():
            _crossovers[key] = _measured(torch, weight, batch, bias)
    return _crossovers[key]


def _measured(torch: Any, weight: Any, batch: int, bias: Any) -> int:
    rng = np.random.default_rng(0)
    hidden = torch.from_numpy(rng.standard_normal((batch, weight.shape[1]))).to(weight.device, weight.dtype)

    def full() -> Any:
        return torch.nn.functional.linear(hidden, weight, bias)

    full()  # the first is a slow one
    repeats = 3 if seconds(torch, full, weight.device) > 0.1 else 6

    def is_faster(n: int) -> bool:
        lists = [
            IdLists(
                np.sort(rng.integers(0, len(weight), (batch, n), dtype=np.int32), axis=1).ravel(),
                np.full(batch, n, np.int32),
            )
            for _ in range(4)
        ]
        turn = itertools.cycle(lists)

        def some() -> Any:
            return selective_logits(hidden, weight, next(turn), bias)

        some()
        times = [[seconds(torch, call, weight.device) for call in (some, full)] for _ in range(repeats)]
        least_some, least_full = map(min, zip(*times, strict=True))
        return 1.1 * least_some < least_full

    ladder = sorted({n for power in range(31) for n in (1 << power, 3 << power) if n <= len(weight)})
    low, high = 0, len(ladder)
    while low < high:  # all below `low` are faster, none from `high` on
        middle = (low + high) // 2
        if is_faster(ladder[middle]):
            low = middle + 1
        else:
            high = middle
    return ladder[low - 1] if low else 0


def seconds(torch: Any, call: Callable[[], Any], device: Any, n: int = 10) -> float:
    """How long a call takes, in seconds.

    On CUDA it is the mean of n calls in a row on the device's clock, launches included; elsewhere
    the time of one call: CPU time of the thread that calls. That one has its share of each product
    of several threads, so it is the wall time of a machine that does nothing else.
    """
    if device.type != "cuda":
        begin = _clock()
        call()
        return _clock() - begin
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize(device)
    first.record()
    for _ in range(n):
        call()
    last.record()
    last.synchronize()
    return float(first.elapsed_time(last)) / 1e3 / n


__all__ = ["IdLists", "id_lists", "measure_crossover", "selective_logits"]
