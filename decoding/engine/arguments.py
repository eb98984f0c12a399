"""Arguments that an engine's callers pass: bytes that are bytes, and arrays of integers.

Anything else is a MaskwrightError that says what was found and what was expected.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import a_type, as_integer, clip, need_type, refuse_argument
from maskwright.analysis.errors import IllegalTokenError, MaskwrightError

GREATEST = (1 << 63) - 1
"""The greatest int64."""


def plain_bytes(what: str, value: object) -> bytes:
    """Bytes, a bytearray or a memoryview as bytes.

    what : the argument's name, for the error.
    value : the argument.

    Raises: MaskwrightError if it is anything else; text must be encoded first.
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    remedy = "; encode it: text.encode()" if isinstance(value, str) else ""
    raise MaskwrightError(f"{what} is {clip(value)}, {a_type(value)}; expected bytes{remedy}")


def text_bytes(what: str, value: object, expected: str) -> bytes:
    """A str in UTF-8; bytes, a bytearray or a memoryview as bytes.

    what, value : the argument's name, for the error, and the argument.
    expected : what the error says was expected.

    Raises: MaskwrightError if it is anything else, or a str with half a surrogate pair.
    """
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError:
            raise MaskwrightError(
                f"{what} is {clip(value)}, which holds half a surrogate pair; expected {expected}"
            ) from None
    need_type(what, value, (bytes, bytearray, memoryview), expected)
    return bytes(value)  # type: ignore[call-overload, no-any-return]


def texts(what: str, values: object, expected: str) -> tuple[bytes, ...]:
    """One text or several, as bytes.

    what, values : the argument's name, for the error, and the argument: a text as `text_bytes`
        takes it, or an iterable of texts.
    expected : what the error says was expected.

    Raises: MaskwrightError if it is neither, or a member is no text.
    """
    if isinstance(values, str | bytes | bytearray | memoryview):
        return (text_bytes(what, values, expected),)
    if not isinstance(values, Iterable):
        refuse_argument(what, values, expected)
    return tuple(text_bytes(f"a member of {what}", value, expected) for value in values)


def as_id(token: object) -> int:
    """A token id that compiled code can take; -1 for integers out of its range.

    Raises: IllegalTokenError if it is no integer.
    """
    try:
        if isinstance(token, bool | np.bool_):
            raise TypeError
        found = operator.index(token)  # type: ignore[arg-type]
    except TypeError:
        raise IllegalTokenError(f"token {clip(token)} is {a_type(token)}, not an id; expected an integer") from None
    return found if -1 <= found < 1 << 31 else -1


def as_rollback(max_rollback: object) -> int:
    """`max_rollback`, checked. Raises: MaskwrightError if it is no integer or negative."""
    found = as_integer("max_rollback", max_rollback)
    if found < 0:
        raise MaskwrightError(f"max_rollback is {clip(found)}; expected at least 0")
    return found


def integers(what: str, values: Any, expected: str) -> npt.NDArray[Any]:
    """An array of integers, with the shape and dtype that were given.

    what, values : the argument's name, for the error, and the argument. An empty array may have any
        dtype.
    expected : what the error says was expected.

    Raises: MaskwrightError if NumPy cannot make an array of it, or of another dtype than signed or
    unsigned integers.
    """
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        # lists of different lengths, a tensor on another device, or an object whose own methods
        # fail
        raise MaskwrightError(f"{what} cannot be read as an array ({clip(str(error))}); expected {expected}") from error
    if array.size and array.dtype.kind not in "iu":
        raise MaskwrightError(f"{what} have shape {array.shape} and dtype {array.dtype}; expected {expected}")
    return array


def integer_row(what: str, values: Any) -> npt.NDArray[Any]:
    """`integers` of shape (n,).

    Raises: MaskwrightError for other shapes, and as `integers`.
    """
    expected = "(n,) integers"
    array = integers(what, values, expected)
    if array.ndim != 1:
        raise MaskwrightError(f"{what} have shape {array.shape} and dtype {array.dtype}; expected {expected}")
    return array


def as_int64(array: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """An array of integers as a contiguous, writable array of int64; copied only if need be.

    array : any shape and integer dtype. Values greater than any int64 become -2, which no
        vocabulary has.

    PERF: of one dtype only, since compiled code would be compiled again for another, which takes a
    minute.
    """
    if array.dtype == np.int64 and array.flags.carray:
        return array
    found = array.astype(np.int64, order="C")
    if array.dtype.kind == "u" and array.dtype.itemsize == 8:
        found[array > np.uint64(GREATEST)] = -2
    return found


NO_BITMASK: object = object()
"""What stands for the bitmask that was checked last where there is none. No caller can pass it."""


_UINT32, _INT32 = np.dtype(np.uint32), np.dtype(np.int32)


def check_words(bitmask: Any, leading: tuple[int, ...], n_words: int) -> npt.NDArray[np.int32]:
    """A caller's bitmask as int32, in the same memory, after checks.

    bitmask : (*leading, >= n_words) uint32 or int32; a NumPy array or a torch tensor on the CPU.
    leading : the axes before the words.
    n_words : the words of a mask.

    Returns (*leading, >= n_words) int32.

    Raises: MaskwrightError if the bitmask is no such array, not C-contiguous, not aligned or
    read-only.
    """
    if type(bitmask) is np.ndarray and _fits(bitmask, leading, n_words):
        return bitmask.view(_INT32)
    expected = (
        f"expected shape {(*leading, n_words)} or wider, dtype uint32 or int32, C-contiguous and writable, on the CPU"
    )
    if type(bitmask).__module__.partition(".")[0] == "torch":
        if bitmask.device.type != "cpu":
            raise MaskwrightError(f"the bitmask is on device {bitmask.device}; {expected}")
        try:
            bitmask = bitmask.detach().numpy()
        except (TypeError, RuntimeError) as error:
            raise MaskwrightError(
                f"the bitmask cannot be written to by NumPy ({clip(str(error))}); {expected}"
            ) from error
    if not isinstance(bitmask, np.ndarray):
        raise MaskwrightError(f"the bitmask is {a_type(bitmask)}; {expected}")
    array: npt.NDArray[Any] = bitmask
    if array.dtype not in (_UINT32, _INT32):
        raise MaskwrightError(f"the bitmask has dtype {array.dtype}; {expected}")
    if array.ndim != len(leading) + 1 or array.shape[:-1] != leading or array.shape[-1] < n_words:
        raise MaskwrightError(f"the bitmask has shape {array.shape}; {expected}")
    if not array.flags.c_contiguous or not array.flags.writeable or not array.flags.aligned:
        raise MaskwrightError(f"the bitmask is not contiguous, not writable or not aligned; {expected}")
    return array.view(np.ndarray).view(_INT32)


def _fits(array: npt.NDArray[Any], leading: tuple[int, ...], n_words: int) -> bool:
    """Whether an array is all that `check_words` asks for.

    PERF: decoders that pass a new view at each step wait for this, and for no message.
    """
    shape = array.shape
    return (
        array.dtype in (_UINT32, _INT32)
        and shape[:-1] == leading
        and len(shape) == len(leading) + 1
        and shape[-1] >= n_words
        and array.flags.carray
    )
