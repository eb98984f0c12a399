"""Masks on logits, in place: -inf over what is refused; every bit of the other logits is kept.

Compiled code works on the CPU, Triton on CUDA, and PyTorch operations elsewhere. The device of the
logits decides.

logits : (B, N) float16, bfloat16, float32 or float64; a torch tensor, or on the CPU also a NumPy
    array. Rows may lie anywhere in memory but may not share it. If the logits of a row do not lie
    side by side, a torch tensor is copied there and back, and a NumPy array is an error.

Columns for which a mask has no bit are refused (padded vocabularies). Bits past the columns are not
looked at, except by `apply_words`.

On CUDA a call is one launch, waits for nothing, and may be part of a CUDA graph once it has run
(Triton compiles at the first call). The exception is `apply_words` with words that are wider than
the logits, or that must be copied.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import a_type
from maskwright.analysis.errors import MaskwrightError
from maskwright.decoding.logits import apply_cpu
from maskwright.decoding.logits.bits import EXPONENT, MINUS_INFINITY, SIZES, bits_of
from maskwright.decoding.logits.optional import has_triton, need_dense, need_torch

Int32 = npt.NDArray[np.int32]

_EXPECTED = "expected floating point of 16, 32 or 64 bits, of shape (B, N)"


def apply_words(logits: Any, words: Any) -> None:
    """Write -inf over the logits of all tokens that a mask refuses, in place.

    logits : (B, N), a row for each of B texts, or (N,); floats of 16, 32 or 64 bits.
    words : (B, W) or (W,) int32 or uint32, as `fill` writes them; NumPy or torch, on the CPU or on
        the device of the logits. Copied to that device if necessary.

    Words that are on the logits' device already are not copied if they are int32. If none of them
    lies wholly past the columns, their bits past the columns are not looked at either: that would
    wait for the device.

    Raises: MaskwrightError for other shapes or dtypes, and if words allow a token for which the
    logits have no column.
    Cost: close to one copy of the logits.

    >>> import maskwright as mw
    >>> logits = np.zeros(4, np.float32)
    >>> mw.apply_mask(logits, np.array([0b1010], np.int32))
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
    """Write -inf over what mask rows[row_ids[r]] refuses in logits[r], in place.

    logits : (B, N), as above.
    row_ids : (B,) int32 or int64; -1 leaves the logits of that row as they are.
    rows : (R, W) int32, or on the CPU also uint32; bit i of word w is column 32 w + i.

    All must be where the logits are.

    Raises: MaskwrightError for other shapes, dtypes or devices, and on the CPU for ids that are no
    rows. Elsewhere such ids allow nothing, because looking at them would wait for the device.

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
    """Write -inf over logits[r] but for the columns in list row_ids[r], in place.

    Like `apply_rows`, for masks that allow few tokens.

    logits : (B, N), as above.
    row_ids : (B,) int32 or int64; -1 leaves the logits of that row as they are.
    starts : (K + 1,) int32 or int64; list k is ids[starts[k] : starts[k + 1]].
    ids : (n,) int32 or int64; ids that are no columns are skipped. INVARIANT: each list ascends.

    All must be where the logits are.

    Raises: as `apply_rows`; MaskwrightError on the CPU if a list in use does not ascend, or the
    starts do not fit the ids. Elsewhere neither is checked.

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
                f"the starts are not ascending offsets into {len(tokens)} ids; expected where each list begins, and where the last one ends"
            )
        numbers = _ids_array(row_ids, values.shape[0], len(begins) - 1, "row_ids", "lists")
        wrong = _run_on_cpu(
            values, lambda flat, stride, n, bits: apply_cpu.apply_ids(flat, stride, n, numbers, begins, tokens, bits)
        )
        if wrong is not None and wrong >= 0:
            raise MaskwrightError(f"the ids of list {wrong} do not ascend; sort them, and give each once")
        return
    numbers = _row_ids(row_ids, values)
    begins, tokens = _integers(starts, values, "starts"), _integers(ids, values, "ids")
    _run(values, lambda view: _backend(values).apply_ids(view, numbers, begins, tokens))


def mend_rows(logits: Any, row_ids: Any, rows: Any) -> Any:
    """Set the allowed logits of a row to 0 if none of them is finite, in place.

    Returns (B,) uint8 on the logits' device: 1 for the rows that were changed.

    Called after `apply_rows`. It ensures that no row is all -inf, or NaN, when it is sampled,
    although the host does not wait to see whether it was. Rows that allow nothing, and idle ones,
    are left as they are.

    logits : (B, N); a torch tensor.
    row_ids, rows : as for `apply_rows`.

    Raises: as `apply_rows`.
    Cost: up to the first finite allowed logit in each row.
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
    """The logits, without their gradient. Raises MaskwrightError for other types and shapes."""
    if not isinstance(logits, np.ndarray):
        torch = need_torch()
        if not isinstance(logits, torch.Tensor):
            raise MaskwrightError(f"the logits are {a_type(logits)}; {_EXPECTED}, torch or NumPy")
        logits = _detached(torch, logits, "logits")
    if _kind(logits) not in MINUS_INFINITY or logits.ndim not in dimensions:
        raise MaskwrightError(
            f"the logits have dtype {_kind(logits)} and shape {tuple(logits.shape)}; {_EXPECTED}{' or (N,)' if 1 in dimensions else ''}"
        )
    return logits


def _check_columns(logits: Any, words: Any, is_on_host: bool) -> None:
    """Raise MaskwrightError if words allow a token past the columns.

    words : (B, W) int32; a tensor on a device, or a NumPy array on the host.
    """
    # PERF: bits are looked at (on a device: waited for) only if the shapes say that words past the
    # columns exist; on the host also if the last word has fewer columns than bits, which takes
    # 0.1 us for a row and 1.5 us for 64
    columns, n_words = logits.shape[1], words.shape[1]
    whole, remainder = columns >> 5, columns & 31
    used = whole + (remainder != 0)
    allows = n_words > used and bool((words[:, used:] != 0).any())
    if remainder and n_words >= used and not allows:
        if is_on_host:
            last = words.item(whole) if len(words) == 1 else int(np.bitwise_or.reduce(words[:, whole]))
            allows = last >> remainder != 0
        elif n_words > used:
            allows = bool((words[:, whole] >> remainder != 0).any())
    if allows:
        raise MaskwrightError(
            f"the logits have {columns} columns, but the words are for up to {32 * words.shape[1]} tokens and allow some beyond the "
            "columns: the mask was made for a different tokenizer than the model's"
        )


def _detached(torch: Any, values: Any, what: str) -> Any:
    """A dense tensor without its gradient, on any device."""
    # PERF: `need_dense` itself takes half a microsecond
    if values.layout is not torch.strided or values.is_nested:
        need_dense(f"the {what}", values)
    return values.detach()


def _kind(values: Any) -> str:
    """The name of a dtype, without `torch.`."""
    return _kind_of(values.dtype)


@cache
def _kind_of(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")  # PERF: NumPy takes 3 us for it


def _is_on_cpu(logits: Any) -> bool:
    return isinstance(logits, np.ndarray) or logits.device.type == "cpu"


_INTEGERS = {name: np.dtype(f"i{size}") for name, size in SIZES.items()}
_MINUS_INFINITY = {name: dtype.type(MINUS_INFINITY[name]) for name, dtype in _INTEGERS.items()}
_EXPONENT = {name: dtype.type(EXPONENT[name]) for name, dtype in _INTEGERS.items()}
"""The numbers that compiled code gets: integers of the logits' size."""


def _run(logits: Any, apply: Callable[[Any], Any]) -> Any:
    """Call a function on logits with contiguous rows: these, or a copy that is written back."""
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
    """Call a function on the memory of logits.

    It gets the logits as flat integers, the distance between rows, the number of columns, and -inf
    as such an integer.
    """
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
    """The memory from the first logit to the last, the distance between rows, and the columns."""
    rows, columns = values.shape
    stride = values.strides[0] // values.itemsize if rows > 1 else columns
    if values.flags.c_contiguous:
        return values.reshape(-1), columns, columns
    span = ((rows - 1) * stride + columns,)
    return np.lib.stride_tricks.as_strided(values, span, (values.itemsize,)), stride, columns


def _array(values: Any, what: str, expected: str) -> npt.NDArray[Any]:
    """The values as a NumPy array; it shares the memory of a torch tensor on the CPU."""
    if not isinstance(values, np.ndarray):
        torch = need_torch()
        if not isinstance(values, torch.Tensor):
            raise MaskwrightError(f"the {what} are {a_type(values)}; expected {expected}, NumPy or torch")
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
    # PERF: the checks below cost as much as a small batch's masks, so the usual case skips them
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


def _same_device(values: Any, logits: Any, what: str) -> Any:
    """The tensor without its gradient. Raises MaskwrightError unless it is where the logits are."""
    torch = need_torch()
    if not isinstance(values, torch.Tensor):
        raise MaskwrightError(f"the {what} are {a_type(values)}; expected a tensor on {logits.device}")
    if values.device != logits.device:
        raise MaskwrightError(
            f"the {what} are on {values.device}, the logits on {logits.device}; keep them where the logits are, or every step waits"
        )
    return _detached(torch, values, what)


def _integers(values: Any, logits: Any, what: str) -> Any:
    """A contiguous tensor (n,) int32 or int64 on the device of the logits."""
    torch = need_torch()
    values = _same_device(values, logits, what)
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
    rows = _same_device(rows, logits, "rows")
    if rows.dtype != torch.int32 or rows.ndim != 2 or not rows.numel():
        raise MaskwrightError(
            f"the rows have dtype {_kind(rows)} and shape {tuple(rows.shape)}; expected int32, of shape (R, W)"
        )
    return rows if rows.stride(1) == 1 or rows.shape[1] == 1 else rows.contiguous()
