"""Applying packed masks to logits: logits[r, i] = -inf wherever bit i of words[r] is 0, in place, in one pass."""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from maskwright.analysis.errors import MaskwrightError, MissingExtraError

MINUS_INFINITY = {"float16": 0xFC00, "bfloat16": 0xFF80, "float32": 0xFF800000, "float64": 0xFFF0000000000000}
"""Bit patterns."""

_EXPECTED = "expected floating point of 16, 32 or 64 bits, of shape (N,) or (B, N)"


def need_torch() -> Any:
    """The module torch. Raises MissingExtraError if it is not installed."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError(
            "PyTorch is not installed, which language models are run with: pip install 'maskwright[hf]'"
        ) from error
    return torch


def apply_mask(logits: Any, words: Any) -> None:
    """Write -inf over the logits of all tokens that a mask does not allow, in place; the others keep every bit.

    logits : (B, N) or (N,), float16, bfloat16, float32 or float64, a torch tensor on any device or a NumPy array.
    words : (B, W) or (W,) int32 or uint32, as `fill` writes them, NumPy or torch, on the CPU or on the device of the logits; copied there
    if need be. Columns past 32 W are masked too (padded embedding rows); words past ceil(N / 32) are not read.

    On the CPU compiled code, on CUDA a Triton kernel, elsewhere (and where Triton is not installed) PyTorch operations.
    Raises MaskwrightError for other shapes or dtypes. Cost: near one copy of the logits.

    >>> logits = np.zeros(4, np.float32)
    >>> apply_mask(logits, np.array([0b1010], np.int32))
    >>> logits
    array([-inf,   0., -inf,   0.], dtype=float32)
    """
    if isinstance(logits, np.ndarray):
        _apply_to_array(logits, _words_array(words), logits.dtype.name)
        return
    torch = need_torch()
    if not isinstance(logits, torch.Tensor):
        raise MaskwrightError(f"the logits are a {type(logits).__name__}; {_EXPECTED}, torch or NumPy")
    kind = str(logits.dtype).removeprefix("torch.")
    if kind not in MINUS_INFINITY or logits.ndim not in (1, 2):
        raise MaskwrightError(f"the logits have dtype {kind} and shape {tuple(logits.shape)}; {_EXPECTED}")
    values = logits.detach()
    if values.device.type == "cpu":
        _apply_on_cpu(torch, values, _words_array(words), kind)
        return
    on_device = _words_tensor(torch, words, values)
    if values.device.type == "cuda" and has_triton():
        from maskwright.decoding.adapters._apply_triton import apply_mask_triton

        apply_mask_triton(values, on_device)
    else:
        apply_mask_torch(values, on_device)


def apply_mask_torch(logits: Any, words: Any) -> None:
    """`apply_mask` in PyTorch operations, on whichever device both tensors are. Cost: some ten passes."""
    torch = need_torch()
    _check_rows(tuple(logits.shape), tuple(words.shape))
    at = torch.arange(logits.shape[-1], device=logits.device)
    inside = at < 32 * words.shape[-1]
    word = words.index_select(-1, torch.where(inside, at, 0) >> 5)
    logits.masked_fill_(~(((word >> (at & 31).to(torch.int32)) & 1).bool() & inside), -float("inf"))


@cache
def has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


def _apply_on_cpu(torch: Any, logits: Any, words: npt.NDArray[np.int32], kind: str) -> None:
    if not logits.is_contiguous():
        whole = logits.contiguous()
        _apply_on_cpu(torch, whole, words, kind)
        logits.copy_(whole)
        return
    integers = {2: torch.int16, 4: torch.int32, 8: torch.int64}[logits.element_size()]
    _apply_to_array(logits.view(integers).numpy(), words, kind)


def _apply_to_array(logits: npt.NDArray[Any], words: npt.NDArray[np.int32], kind: str) -> None:
    if kind not in MINUS_INFINITY or logits.ndim not in (1, 2):
        raise MaskwrightError(f"the logits have dtype {kind} and shape {logits.shape}; {_EXPECTED}")
    _check_rows(logits.shape, words.shape)
    if not logits.flags.c_contiguous or not logits.flags.writeable:
        raise MaskwrightError("the logits are not contiguous, or read-only; give an array of your own")
    size = logits.itemsize
    integer = np.dtype(f"i{size}")
    bits = np.array(MINUS_INFINITY[kind], f"u{size}").view(integer)[()]
    rows, masks = np.atleast_2d(logits).view(integer), np.atleast_2d(words)
    if size == 2 and rows.shape[1] % 4 == 0 and logits.ctypes.data % 8 == 0:
        table = _lanes()
        mask_lanes(rows.view(np.int64), masks, table, np.full(4, bits).view(np.int64)[0])
    else:
        mask_each(rows, masks, bits)


@cache
def _lanes() -> npt.NDArray[np.int64]:
    """table[byte] : (2,) int64, eight times 16 bits, all ones where the byte's bit is 1."""
    ones = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    table = (-ones.astype(np.int16)).view(np.int64)
    table.setflags(write=False)
    return table


@njit(cache=True, nogil=True)
def mask_each(logits, words, minus_infinity):  # type: ignore[no-untyped-def]
    """logits : (B, N) integers of the logits' size. words : (B, W) int32. minus_infinity : its bits as such an integer.

    PERF: 32,000 float32 logits in 30 us, near a copy's time: the inner loop is a selection, which is compiled to vector instructions; a
    store under a condition took 95 to 110, a table of bools with masked_fill_ 450 to 700 (Numba 0.68, x86-64).
    """
    for row in range(logits.shape[0]):
        n = logits.shape[1]
        whole = min(words.shape[1], n >> 5)
        for w in range(whole):
            word = words[row, w]
            begin = w << 5
            if word == -1:
                continue
            if word == 0:
                for j in range(32):
                    logits[row, begin + j] = minus_infinity
            else:
                for j in range(32):
                    allowed = (word >> np.int32(j)) & 1
                    logits[row, begin + j] = logits[row, begin + j] if allowed else minus_infinity
        for i in range(whole << 5, n):
            w = i >> 5
            if w >= words.shape[1] or (words[row, w] >> np.int32(i & 31)) & 1 == 0:
                logits[row, i] = minus_infinity


@njit(cache=True, nogil=True)
def mask_lanes(lanes, words, table, minus_infinity):  # type: ignore[no-untyped-def]
    """`mask_each` of 16-bit logits, four a lane: x = (x and ones) or (-inf and not ones).

    lanes : (B, N / 4) int64. table : (256, 2) int64. minus_infinity : four of them.

    PERF: 32,000 bfloat16 logits in 9 to 20 us, as `mask_each` would take 80 to 160, since 16 bits are not selected by vector instructions.
    """
    for row in range(lanes.shape[0]):
        n = lanes.shape[1]
        whole = min(words.shape[1], n >> 3)
        for w in range(whole):
            word = words[row, w]
            begin = w << 3
            if word == -1:
                continue
            if word == 0:
                for j in range(8):
                    lanes[row, begin + j] = minus_infinity
            else:
                for k in range(4):
                    byte = (word >> np.int32(8 * k)) & 255
                    for j in range(2):
                        ones = table[byte, j]
                        at = begin + 2 * k + j
                        lanes[row, at] = (lanes[row, at] & ones) | (minus_infinity & ~ones)
        for at in range(whole << 3, n):
            w = at >> 3
            byte = (words[row, w] >> np.int32(8 * ((at >> 1) & 3))) & 255 if w < words.shape[1] else 0
            ones = table[byte, at & 1]
            lanes[row, at] = (lanes[row, at] & ones) | (minus_infinity & ~ones)


def first_dead_row(logits: Any, words: npt.NDArray[np.int32], is_judged: npt.NDArray[np.bool_]) -> int:
    """The first judged row in which no allowed token has a finite logit; -1 if there is none. logits : torch, on the CPU.

    Cost: up to the first finite one in each row.
    """
    torch = need_torch()
    kind = str(logits.dtype).removeprefix("torch.")
    size = logits.element_size()
    integers = {2: torch.int16, 4: torch.int32, 8: torch.int64}[size]
    values = logits.detach().contiguous().view(integers).numpy()
    # all bits of the exponent are set in what is not finite: those of -inf without its sign
    exponent = MINUS_INFINITY[kind] & ((1 << (8 * size - 1)) - 1)
    return int(dead_row(values, words, is_judged, np.array(exponent, values.dtype)[()]))


@njit(cache=True, nogil=True)
def dead_row(logits, words, is_judged, exponent):  # type: ignore[no-untyped-def]
    """logits : (B, N) integers of the logits' size. words : (B, W) int32. is_judged : (B,). exponent : the exponent's bits."""
    for row in range(logits.shape[0]):
        if not is_judged[row]:
            continue
        is_dead = True
        for w in range(min(words.shape[1], (logits.shape[1] + 31) >> 5)):
            word = words[row, w]
            if word == 0:
                continue
            for i in range(32 * w, min(32 * w + 32, logits.shape[1])):
                if (word >> np.int32(i & 31)) & 1 and logits[row, i] & exponent != exponent:
                    is_dead = False
                    break
            if not is_dead:
                break
        if is_dead:
            return row
    return -1


def _check_rows(logits: tuple[int, ...], words: tuple[int, ...]) -> None:
    if len(logits) != len(words) or logits[:-1] != words[:-1]:
        raise MaskwrightError(f"the words have shape {words} for logits of shape {logits}; expected a row for each")


def _words_array(words: Any) -> npt.NDArray[np.int32]:
    if not isinstance(words, np.ndarray):
        torch = need_torch()
        if not isinstance(words, torch.Tensor):
            raise MaskwrightError(f"the words are a {type(words).__name__}; expected int32 or uint32, NumPy or torch")
        words = words.detach().cpu().numpy()
    if words.dtype not in (np.dtype(np.int32), np.dtype(np.uint32)):
        raise MaskwrightError(f"the words have dtype {words.dtype}; expected int32 or uint32")
    return np.ascontiguousarray(words).view(np.int32)


def _words_tensor(torch: Any, words: Any, logits: Any) -> Any:
    if isinstance(words, torch.Tensor) and words.device == logits.device and words.dtype == torch.int32:
        return words.contiguous()
    return torch.from_numpy(_words_array(words)).to(logits.device, non_blocking=True)
