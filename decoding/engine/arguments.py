"""What callers pass to an engine: bytes that are bytes, arrays that are arrays; else a MaskwrightError that says so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import clip, need_type, refuse_argument
from maskwright.analysis.errors import MaskwrightError

GREATEST = (1 << 63) - 1


def plain_bytes(what: str, value: object) -> bytes:
    """Bytes of any type. Raises MaskwrightError: text has to be encoded first."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    remedy = "; encode it: text.encode()" if isinstance(value, str) else ""
    raise MaskwrightError(f"{what} is {clip(value)}, a {type(value).__name__}; expected bytes{remedy}")


def text_bytes(what: str, value: object, expected: str) -> bytes:
    """Text in UTF-8, or bytes as they are. Raises MaskwrightError."""
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
    """One text or a list of them, as bytes. Raises MaskwrightError."""
    if isinstance(values, str | bytes | bytearray | memoryview):
        return (text_bytes(what, values, expected),)
    if not isinstance(values, Iterable):
        refuse_argument(what, values, expected)
    return tuple(text_bytes(f"a member of {what}", value, expected) for value in values)


def integers(what: str, values: Any, expected: str) -> npt.NDArray[Any]:
    """An array of integers, as they are given: of any integer dtype, or empty. Raises MaskwrightError."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        # a list of lists of different lengths, a tensor on another device, something whose own methods fail
        raise MaskwrightError(f"{what} cannot be read as an array ({clip(str(error))}); expected {expected}") from error
    if array.size and array.dtype.kind not in "iu":
        raise MaskwrightError(f"{what} have shape {array.shape} and dtype {array.dtype}; expected {expected}")
    return array


def as_int64(array: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Contiguous int64 that may be written to, copied if need be; what is greater than any int64 becomes -2, which no vocabulary has.

    PERF: of one kind only, since compiled code would be made anew for another, which takes a minute.
    """
    if array.dtype == np.int64 and array.flags.carray:
        return array
    found = array.astype(np.int64, order="C")
    if array.dtype.kind == "u" and array.dtype.itemsize == 8:
        found[array > np.uint64(GREATEST)] = -2
    return found
