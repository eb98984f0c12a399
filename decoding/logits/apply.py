"""Masks on logits, in place: compiled code on the CPU, Triton on CUDA, PyTorch operations elsewhere, by where the logits are.

All write -inf over what is not allowed and leave every bit of the rest. Logits : (B, N), float16, bfloat16, float32 or float64, a torch
tensor or (on the CPU) a NumPy array; rows may lie anywhere, logits that do not lie side by side are copied there and back. Columns past
those that a mask has are not allowed (padded vocabularies); bits past the columns are not looked at, but for those of `apply_words`.

On CUDA a call is one launch, waits for nothing, and may be part of a CUDA graph once it has run (Triton compiles at the first call).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import MaskwrightError
from maskwright.decoding.logits import apply_cpu
from maskwright.decoding.logits.bits import EXPONENT, MINUS_INFINITY, SIZES, bits_of
from maskwright.decoding.logits.optional import has_triton, need_dense, need_torch

Int32 = npt.NDArray[np.int32]

_EXPECTED = "expected floating point of 16, 32 or 64 bits, of shape (B, N)"


def apply_words(logits: Any, words: Any) -> None:
    """Write -inf over the logits of all tokens that a mask does not allow, in place; the others keep every bit.

    logits : as above, or (N,).
    words : (B, W) or (W,) int32 or uint32, as `fill` writes them, NumPy or torch, on the CPU or on the device of the logits; copied there
    if need be.

    Raises MaskwrightError for other shapes or dtypes, and for words that allow a token that the logits have no column for. Of words that
    are on the logits' device already, bits of the last word that has columns are not looked at: that would wait for the device.
    Cost: near one copy of the logits.

    >>> logits = np.zeros(4, np.float32)
    >>> apply_words(logits, np.array([0b1010], np.int32))
    >>> logits
    array([-inf,   0., -inf,   0.], dtype=float32)
    """
    values = _checked(logits, (1, 2))
    given = tuple(words.shape) if hasattr(words, "shape") else ()
    if given and (len(given) != values.ndim or given[:-1] != tuple(values.shape[:-1]) or not given[-1]):
        raise MaskwrightError(
            f"the words have shape {given} for logits of shape {tuple(values.shape)}; expected a row for each"
        )
    if values.ndim == 1:
        values = values[None, :]
    if _is_on_cpu(values):
        array = np.atleast_2d(_words_array(words))
        _check_columns(values, array, True)
        _run_on_cpu(values, lambda flat, stride, n, bits: apply_cpu.apply_words(flat, stride, n, array, bits))
        return
    need_dense("the logits", values)
    torch = need_torch()
    if isinstance(words, torch.Tensor) and words.device == values.device and words.dtype == torch.int32:
        tensor = words.contiguous()
        tensor = tensor[None, :] if tensor.ndim == 1 else tensor
        _check_columns(values, tensor, False)
    else:
        array = np.atleast_2d(_words_array(words))
        _check_columns(values, array, True)
        tensor = torch.from_numpy(array).to(values.device, non_blocking=True)
    _run(values, lambda rows: _backend(values).apply_words(rows, tensor))


def apply_rows(logits: Any, row_ids: Any, rows: Any) -> None:
    """Write -inf over what row rows[row_ids[r]] does not allow in logits[r], in place; where the id is -1 all stays as it is.

    row_ids : (B,) int32 or int64. rows : (R, W) int32 or uint32; bit i of word w is column 32 w + i. All where the logits are.

    Raises MaskwrightError for other shapes, dtypes or devices, and on the CPU for ids that are no rows; elsewhere, where ids cannot be
    looked at without waiting, such rows allow nothing.

    >>> logits = np.zeros((3, 4), np.float32)
    >>> apply_rows(logits, np.array([1, -1, 0]), np.array([[0b0001], [0b1100]], np.int32))
    >>> logits
    array([[-inf, -inf,   0.,   0.],
           [  0.,   0.,   0.,   0.],
           [  0., -inf, -inf, -inf]], dtype=float32)
    """
    values = _checked(logits, (2,))
    if _is_on_cpu(values):
        words = _rows_array(rows)
        ids = _ids_array(row_ids, values.shape[0], len(words), "row_ids", "rows")
        _run_on_cpu(values, lambda flat, stride, n, bits: apply_cpu.apply_rows(flat, stride, n, ids, words, bits))
        return
    ids, words = _row_ids(row_ids, values), _rows(rows, values)
    _run(values, lambda view: _backend(values).apply_rows(view, ids, words))


def apply_ids(logits: Any, row_ids: Any, starts: Any, ids: Any) -> None:
    """Write -inf over all but columns ids[starts[k] : starts[k + 1]] of logits[r], k = row_ids[r], in place; -1 leaves a row alone.

    What `apply_rows` does, for rows that allow few tokens. row_ids : (B,), starts : (K + 1,), ids : (n,), int32 or int64, where the
    logits are. INVARIANT: each list ascends. Ids that are no columns are passed over.

    Raises as `apply_rows`; lists that do not ascend are an error on the CPU, and not looked at elsewhere.

    >>> logits = np.zeros((2, 4), np.float32)
    >>> apply_ids(logits, np.array([1, 0]), np.array([0, 1, 3]), np.array([3, 0, 2]))
    >>> logits
    array([[  0., -inf,   0., -inf],
           [-inf, -inf, -inf,   0.]], dtype=float32)
    """
    values = _checked(logits, (2,))
    if _is_on_cpu(values):
        begins, tokens = _int32_array(starts, "starts"), _int32_array(ids, "ids")
        if not len(begins) or begins[0] < 0 or begins[-1] > len(tokens) or (np.diff(begins) < 0).any():
            raise MaskwrightError(
                f"the starts are no places in {len(tokens)} ids in ascending order; expected where each list begins, and the last one's end"
            )
        numbers = _ids_array(row_ids, values.shape[0], len(begins) - 1, "row_ids", "lists")
        wrong = _run_on_cpu(
            values, lambda flat, stride, n, bits: apply_cpu.apply_ids(flat, stride, n, numbers, begins, tokens, bits)
        )
        if wrong is not None and wrong >= 0:
            raise MaskwrightError(f"the ids of list {wrong} do not ascend; sort them, and name none twice")
        return
    numbers = _row_ids(row_ids, values)
    begins, tokens = _integers(starts, values, "starts"), _integers(ids, values, "ids")
    _run(values, lambda view: _backend(values).apply_ids(view, numbers, begins, tokens))


def mend_rows(logits: Any, row_ids: Any, rows: Any) -> Any:
    """Give the allowed logits of a row the value 0 if none of them is finite, in place. Returns which rows that were, (B,) uint8.

    Behind `apply_rows`: so that no row is all -inf, or NaN, when it is drawn from, though nobody waits to see whether it was. Rows that
    allow nothing, and idle ones, are left alone. Arguments as there, torch tensors only. Cost: up to the first finite logit in each row.
    """
    torch = need_torch()
    values = _checked(logits, (2,))
    is_dead = torch.zeros(values.shape[0], dtype=torch.uint8, device=values.device)
    if _is_on_cpu(values):
        words = _rows_array(rows)
        ids = _ids_array(row_ids, values.shape[0], len(words), "row_ids", "rows")
        exponent = _EXPONENT[_kind(values)]
        _run_on_cpu(
            values,
            lambda flat, stride, n, bits: apply_cpu.mend_rows(flat, stride, n, ids, words, is_dead.numpy(), exponent),
        )
        return is_dead
    ids, words = _row_ids(row_ids, values), _rows(rows, values)
    _run(values, lambda view: _backend(values).mend_rows(view, ids, words, is_dead))
    return is_dead


def _backend(logits: Any) -> Any:
    """The module for logits that are not on the CPU."""
    if logits.device.type == "cuda" and has_triton():
        from maskwright.decoding.logits import apply_triton

        return apply_triton
    from maskwright.decoding.logits import apply_torch

    return apply_torch


def _checked(logits: Any, dimensions: tuple[int, ...]) -> Any:
    """The logits, without their gradient."""
    if not isinstance(logits, np.ndarray):
        torch = need_torch()
        if not isinstance(logits, torch.Tensor):
            raise MaskwrightError(f"the logits are a {type(logits).__name__}; {_EXPECTED}, torch or NumPy")
        logits = _detached(torch, logits, "logits")
    if _kind(logits) not in MINUS_INFINITY or logits.ndim not in dimensions:
        raise MaskwrightError(
            f"the logits have dtype {_kind(logits)} and shape {tuple(logits.shape)}; {_EXPECTED}{' or (N,)' if 1 in dimensions else ''}"
        )
    return logits


def _check_columns(logits: Any, words: Any, is_on_host: bool) -> None:
    """Raises MaskwrightError where words allow a token past the columns. words : int32, a tensor on a device, or NumPy on the host."""
    # PERF: bits are looked at (waited for, on a device) only where the shapes say that there are such words; on the host also in a
    # last word that has fewer columns than bits, which takes 0.1 us for a row and 1.5 us for 64
    columns, n_words = logits.shape[1], words.shape[1]
    whole, rest = columns >> 5, columns & 31
    used = whole + (rest != 0)
    allows = n_words > used and bool((words[:, used:] != 0).any())
    if rest and n_words >= used and not allows:
        if is_on_host:
            last = words.item(whole) if len(words) == 1 else int(np.bitwise_or.reduce(words[:, whole]))
            allows = last >> rest != 0
        elif n_words > used:
            allows = bool((words[:, whole] >> rest != 0).any())
    if allows:
        raise MaskwrightError(
            f"the logits have {columns} columns, but the words are for up to {32 * words.shape[1]} tokens and allow some past those: the "
            "mask was made for another tokenizer than the model's"
        )


def _detached(torch: Any, values: Any, what: str) -> Any:
    """A dense tensor without its gradient, on any device."""
    # PERF: `need_dense` itself takes half a microsecond
    if values.layout is not torch.strided or values.is_nested:
        need_dense(f"the {what}", values)
    return values.detach()


def _kind(values: Any) -> str:
    return str(values.dtype).removeprefix("torch.")


def _is_on_cpu(logits: Any) -> bool:
    return isinstance(logits, np.ndarray) or logits.device.type == "cpu"


_INTEGERS = {name: np.dtype(f"i{size}") for name, size in SIZES.items()}
_MINUS_INFINITY = {name: dtype.type(MINUS_INFINITY[name]) for name, dtype in _INTEGERS.items()}
_EXPONENT = {name: dtype.type(EXPONENT[name]) for name, dtype in _INTEGERS.items()}
"""What compiled code is given: integers of the logits' size."""


def _run(logits: Any, apply: Callable[[Any], Any]) -> Any:
    """Call a function on logits of which those of a row lie side by side: these, or a copy that is written back."""
    if logits.is_meta:
        need_dense("the logits", logits)
    rows, columns = logits.shape
    if not rows or not columns:
        return None
    if rows > 1 and logits.stride(0) == 0:
        raise MaskwrightError(
            "the rows of the logits share their memory (an expanded tensor); give them memory of their own"
        )
    if (columns == 1 or logits.stride(1) == 1) and (rows == 1 or logits.stride(0) >= columns):
        return apply(logits)
    whole = logits.contiguous()
    found = apply(whole)
    logits.copy_(whole)
    return found


def _run_on_cpu(logits: Any, apply: Callable[[npt.NDArray[Any], int, int, Any], Any]) -> Any:
    """Call a function on the memory of logits, as flat integers, the distance of rows, columns, and the bits of -inf."""
    minus_infinity = _MINUS_INFINITY[_kind(logits)]
    if not isinstance(logits, np.ndarray):
        return _run(logits, lambda view: apply(*_flat(bits_of(view).numpy()), minus_infinity))
    rows, columns = logits.shape
    if not logits.flags.writeable:
        raise MaskwrightError("the logits are read-only; give an array of your own")
    if not rows or not columns:
        return None
    down, across = logits.strides
    if (columns > 1 and across != logits.itemsize) or (
        rows > 1 and (down < columns * logits.itemsize or down % logits.itemsize)
    ):
        raise MaskwrightError("the logits are not contiguous; give an array whose rows are")
    return apply(*_flat(logits.view(_INTEGERS[_kind(logits)])), minus_infinity)


def _flat(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], int, int]:
    """All between the first place and the last, how far apart rows are, and columns."""
    rows, columns = values.shape
    stride = values.strides[0] // values.itemsize if rows > 1 else columns
    if values.flags.c_contiguous:
        return values.reshape(-1), columns, columns
    span = ((rows - 1) * stride + columns,)
    return np.lib.stride_tricks.as_strided(values, span, (values.itemsize,)), stride, columns


def _array(values: Any, what: str, expected: str) -> npt.NDArray[Any]:
    """As a NumPy array; a torch tensor on the CPU shares its memory."""
    if not isinstance(values, np.ndarray):
        torch = need_torch()
        if not isinstance(values, torch.Tensor):
            raise MaskwrightError(f"the {what} are a {type(values).__name__}; expected {expected}, NumPy or torch")
        values = _detached(torch, values, what)
        if values.device.type != "cpu":
            raise MaskwrightError(f"the {what} are on {values.device}, the logits on the CPU; move one of them")
        values = values.numpy()
    return values  # type: ignore[no-any-return]


def _words_array(words: Any) -> Int32:
    on_device = not isinstance(words, np.ndarray) and hasattr(words, "cpu")
    array = _array(need_dense("the words", words).cpu() if on_device else words, "words", "int32 or uint32")
    if array.dtype not in (np.dtype(np.int32), np.dtype(np.uint32)):
        raise MaskwrightError(f"the words have dtype {array.dtype}; expected int32 or uint32")
    return np.ascontiguousarray(array).view(np.int32)


def _rows_array(rows: Any) -> Int32:
    array = _array(rows, "rows", "int32 or uint32")
    # PERF: checks of what needs nothing cost as much as a small batch's masks
    if array.dtype == np.int32 and array.ndim == 2 and array.size and array.flags.c_contiguous:
        return array
    if array.dtype not in (np.dtype(np.int32), np.dtype(np.uint32)) or array.ndim != 2 or not array.size:
        raise MaskwrightError(
            f"the rows have dtype {array.dtype} and shape {array.shape}; expected int32 or uint32, of shape (R, W)"
        )
    return np.ascontiguousarray(array).view(np.int32)


def _int32_array(values: Any, what: str) -> Int32:
    array = _array(values, what, "int32 or int64")
    if array.dtype == np.int32 and array.ndim == 1 and array.flags.c_contiguous:
        return array
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise MaskwrightError(
            f"the {what} have dtype {array.dtype} and shape {array.shape}; expected integers in one dimension"
        )
    if array.dtype != np.int32 and array.size and not -(1 << 31) <= int(array.min()) <= int(array.max()) < 1 << 31:
        raise MaskwrightError(f"the {what} go from {array.min()} to {array.max()}; expected integers of 32 bits")
    return np.ascontiguousarray(array, np.int32)


def _ids_array(row_ids: Any, n: int, limit: int, what: str, members: str) -> Int32:
    ids = _int32_array(row_ids, what)
    if len(ids) != n:
        raise MaskwrightError(f"{len(ids)} {what} are given for {n} rows of logits; expected one for each")
    if apply_cpu.is_outside(ids, limit):
        raise MaskwrightError(
            f"the {what} go from {ids.min()} to {ids.max()}, but there are {limit} {members}; expected 0 to {limit - 1}, -1 for idle"
        )
    return ids


def _same_place(values: Any, logits: Any, what: str) -> Any:
    torch = need_torch()
    if not isinstance(values, torch.Tensor):
        raise MaskwrightError(f"the {what} are a {type(values).__name__}; expected a tensor on {logits.device}")
    if values.device != logits.device:
        raise MaskwrightError(
            f"the {what} are on {values.device}, the logits on {logits.device}; keep them where the logits are, or every step waits"
        )
    return _detached(torch, values, what)


def _integers(values: Any, logits: Any, what: str) -> Any:
    """int32 or int64, (n,), where the logits are, side by side."""
    torch = need_torch()
    values = _same_place(values, logits, what)
    if values.dtype not in (torch.int32, torch.int64) or values.ndim != 1:
        raise MaskwrightError(
            f"the {what} have dtype {_kind(values)} and shape {tuple(values.shape)}; expected int32 or int64 in one dimension"
        )
    return values.contiguous()


def _row_ids(row_ids: Any, logits: Any) -> Any:
    ids = _integers(row_ids, logits, "row_ids")
    if len(ids) != len(logits):
        raise MaskwrightError(f"{len(ids)} row_ids are given for {len(logits)} rows of logits; expected one for each")
    return ids


def _rows(rows: Any, logits: Any) -> Any:
    torch = need_torch()
    rows = _same_place(rows, logits, "rows")
    if rows.dtype != torch.int32 or rows.ndim != 2 or not rows.numel():
        raise MaskwrightError(
            f"the rows have dtype {_kind(rows)} and shape {tuple(rows.shape)}; expected int32, of shape (R, W)"
        )
    return rows if rows.stride(1) == 1 or rows.shape[1] == 1 else rows.contiguous()
