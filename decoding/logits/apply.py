"""Masks on logits, in place: -inf over what is refused; every bit of the other logits is kept.

Compiled code works on the CPU, Triton on CUDA, and PyTorch operations elsewhere. The device of the
logits decides.

logits : (B, N) float16, bfloat16, float32 or float64; a torch tensor, or on the CPU also a NumPy
    array. Rows may lie anywhere in memory but may not share it. If the logits of a row do not lie
    side by side, they are copied there and back.

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
        values, words = values[None, :], words[None, :] if given else words
    if not values.shape[0]:
        return
    is_on_cpu = _is_on_cpu(values)
    if not is_on_cpu:
        need_dense("the logits", values)
    torch = None if isinstance(words, np.ndarray) else need_torch()
    if torch and isinstance(words, torch.Tensor):
        words = need_dense("the words", words)
        if not is_on_cpu and words.device == values.device and words.dtype == torch.int32:
            _check_columns(values, words, False)
            _run(values, lambda rows: _backend(values).apply(rows, None, words.contiguous()))
            return
        words = words.cpu()
    masks = _masks_array(words, "words")
    _check_columns(values, masks, True)
    if is_on_cpu:
        _apply_on_cpu(values, np.arange(len(masks), dtype=np.int32), masks)
    else:
        there = need_torch().from_numpy(masks).to(values.device, non_blocking=True)
        _run(values, lambda rows: _backend(values).apply(rows, None, there))


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
    ids, masks = _numbered(values, row_ids, rows)
    if _is_on_cpu(values):
        _apply_on_cpu(values, ids, masks)
    else:
        _run(values, lambda view: _backend(values).apply(view, ids, masks))


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
    ids, masks = _numbered(values, row_ids, rows)
    is_dead = torch.zeros(values.shape[0], dtype=torch.uint8, device=values.device)
    if _is_on_cpu(values):
        dead, ones = is_dead.numpy(), _integer_of(values, EXPONENT)
        _run_on_cpu(values, lambda flat, stride, n: apply_cpu.mend_each(flat, stride, n, ids, masks, dead, ones))
    else:
        _run(values, lambda view: _backend(values).mend(view, ids, masks, is_dead))
    return is_dead


def _apply_on_cpu(logits: Any, row_ids: Int32, rows: Int32) -> None:
    bits = _integer_of(logits, MINUS_INFINITY)
    _run_on_cpu(logits, lambda flat, stride, n: apply_cpu.apply(flat, stride, n, row_ids, rows, bits))


def _backend(logits: Any) -> Any:
    """The module for logits that are not on the CPU."""
    if logits.device.type == "cuda" and has_triton():
        from maskwright.decoding.logits import apply_triton

        return apply_triton
    from maskwright.decoding.logits import apply_torch

    return apply_torch


# -- logits


def _checked(logits: Any, dimensions: tuple[int, ...]) -> Any:
    """The logits, without their gradient. Raises MaskwrightError for other types and shapes."""
    if not isinstance(logits, np.ndarray):
        torch = need_torch()
        if not isinstance(logits, torch.Tensor):
            raise MaskwrightError(f"the logits are {a_type(logits)}; {_EXPECTED}, torch or NumPy")
        logits = _detached(torch, logits, "logits")
    kind = _kind_of(logits.dtype)
    if kind not in SIZES or logits.ndim not in dimensions:
        raise MaskwrightError(
            f"the logits have dtype {kind} and shape {tuple(logits.shape)}; {_EXPECTED}{' or (N,)' if 1 in dimensions else ''}"
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


@cache
def _kind_of(dtype: Any) -> str:
    """The name of a dtype, without `torch.`. PERF: NumPy takes 3 us for it."""
    return str(dtype).removeprefix("torch.")


def _is_on_cpu(logits: Any) -> bool:
    return isinstance(logits, np.ndarray) or logits.device.type == "cpu"


def _integer_of(logits: Any, bits: dict[str, int]) -> Any:
    """Some bits as an integer of the logits' size, as compiled code gets it."""
    kind = _kind_of(logits.dtype)
    return _INTEGERS[kind].type(bits[kind])


_INTEGERS = {name: np.dtype(f"i{size}") for name, size in SIZES.items()}


def _need_own_rows(logits: Any, distance: int) -> None:
    if len(logits) > 1 and not distance:
        raise MaskwrightError(
            "the rows of the logits share their memory (an expanded tensor); give them memory of their own"
        )


def _run(logits: Any, apply: Callable[[Any], Any]) -> None:
    """Call a function on logits with contiguous rows: these, or a copy that is written back."""
    if logits.is_meta:
        need_dense("the logits", logits)
    rows, columns = logits.shape
    if not rows or not columns:
        return
    _need_own_rows(logits, logits.stride(0))
    if (columns == 1 or logits.stride(1) == 1) and (rows == 1 or logits.stride(0) >= columns):
        apply(logits)
        return
    whole = logits.contiguous()
    apply(whole)
    logits.copy_(whole)


def _run_on_cpu(logits: Any, apply: Callable[[npt.NDArray[Any], int, int], Any]) -> None:
    """Call a function on the memory of logits, or of a copy that is written back.

    It gets the logits as flat integers, from the first to the last, the distance between rows, and
    the number of columns.
    """
    given = isinstance(logits, np.ndarray)
    values: npt.NDArray[Any] = logits.view(_INTEGERS[_kind_of(logits.dtype)]) if given else bits_of(logits).numpy()
    if not values.flags.writeable:
        raise MaskwrightError("the logits are read-only; give an array of your own")
    if not values.size:
        return
    rows, columns = values.shape
    if values.flags.c_contiguous:
        apply(values.reshape(-1), columns, columns)
        return
    (down, across), size = values.strides, values.itemsize
    _need_own_rows(values, down)
    if (columns == 1 or across == size) and (rows == 1 or (down >= columns * size and not down % size)):
        stride = down // size if rows > 1 else columns
        span = ((rows - 1) * stride + columns,)
        apply(np.lib.stride_tricks.as_strided(values, span, (size,)), stride, columns)
        return
    whole = np.ascontiguousarray(values)
    apply(whole.reshape(-1), columns, columns)
    values[...] = whole


# -- masks and their numbers


def _numbered(logits: Any, row_ids: Any, rows: Any) -> tuple[Any, Any]:
    """Masks, and the number of each row's, checked: where the logits are, as backends take them."""
    if not _is_on_cpu(logits):
        return _row_ids(row_ids, logits), _rows(rows, logits)
    masks = _masks_array(rows, "rows")
    return _ids_array(row_ids, logits.shape[0], len(masks)), masks


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


def _masks_array(masks: Any, what: str) -> Int32:
    array = _array(masks, what, "int32 or uint32")
    # PERF: the checks below cost as much as a small batch's masks, so the usual case skips them
    if array.dtype == np.int32 and array.ndim == 2 and array.size and array.flags.c_contiguous:
        return array
    if array.dtype not in (np.dtype(np.int32), np.dtype(np.uint32)) or array.ndim != 2 or not array.size:
        raise MaskwrightError(
            f"the {what} have dtype {array.dtype} and shape {array.shape}; expected int32 or uint32, of shape (R, W)"
        )
    return np.ascontiguousarray(array).view(np.int32)


def _ids_array(row_ids: Any, n: int, n_rows: int) -> Int32:
    array = _array(row_ids, "row_ids", "int32 or int64")
    if array.dtype != np.int32 or array.ndim != 1 or not array.flags.c_contiguous:
        if array.dtype.kind not in "iu" or array.ndim != 1:
            raise MaskwrightError(
                f"the row_ids have dtype {array.dtype} and shape {array.shape}; expected integers in one dimension"
            )
        if array.dtype != np.int32 and array.size and not -(1 << 31) <= int(array.min()) <= int(array.max()) < 1 << 31:
            raise MaskwrightError(f"the row_ids go from {array.min()} to {array.max()}; expected integers of 32 bits")
        array = np.ascontiguousarray(array, np.int32)
    if len(array) != n:
        raise MaskwrightError(f"{len(array)} row_ids are given for {n} rows of logits; expected one for each")
    if apply_cpu.is_outside(array, n_rows):
        raise MaskwrightError(
            f"the row_ids go from {array.min()} to {array.max()}, but there are {n_rows} rows; expected 0 to {n_rows - 1}, -1 for idle"
        )
    return array


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


def _row_ids(row_ids: Any, logits: Any) -> Any:
    torch = need_torch()
    ids = _same_device(row_ids, logits, "row_ids")
    if ids.dtype not in (torch.int32, torch.int64) or ids.ndim != 1:
        raise MaskwrightError(
            f"the row_ids have dtype {_kind_of(ids.dtype)} and shape {tuple(ids.shape)}; expected int32 or int64 in one dimension"
        )
    if len(ids) != len(logits):
        raise MaskwrightError(f"{len(ids)} row_ids are given for {len(logits)} rows of logits; expected one for each")
    return ids.contiguous()


def _rows(rows: Any, logits: Any) -> Any:
    torch = need_torch()
    rows = _same_device(rows, logits, "rows")
    if rows.dtype != torch.int32 or rows.ndim != 2 or not rows.numel():
        raise MaskwrightError(
            f"the rows have dtype {_kind_of(rows.dtype)} and shape {tuple(rows.shape)}; expected int32, of shape (R, W)"
        )
    return rows if rows.stride(1) == 1 or rows.shape[1] == 1 else rows.contiguous()
