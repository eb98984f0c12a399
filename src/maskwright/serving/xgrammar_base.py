"""What of xgrammar's interface is not here, and says so; its errors; its bitmasks, and logits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import MaskwrightError
from maskwright.decoding.logits import apply_rows, need_torch

_SERIALISED = dict.fromkeys(
    ("serialize_json", "deserialize_json"),
    "constraints and tokenizers cannot be written as JSON here: keep the texts that they are made of",
)
_MISSING: Mapping[str, Mapping[str, str]] = {
    "Grammar": {
        "concat": "write the texts as one grammar",
        "union": "write the texts as one grammar",
        **_SERIALISED,
    },
    "CompiledGrammar": {"grammar": "keep the Grammar that was compiled", **_SERIALISED},
    "GrammarMatcher": {"get_captures": "captures are not kept: parse the whole text"},
    "BatchGrammarMatcher": {"batch_fill_temperature": "grammars do not choose temperatures here"},
    "TokenizerInfo": {
        "prepend_space_in_tokenization": "ask for add_prefix_space",
        **dict.fromkeys(("dump_metadata", "from_vocab_and_metadata"), _SERIALISED["serialize_json"]),
        **_SERIALISED,
    },
}
"""Class -> public name of xgrammar 0.2.9 that is not here -> what to do instead."""


class RefusedError(MaskwrightError, RuntimeError):
    """What xgrammar would have raised as a RuntimeError; the message says what to do."""


class MissingError(RefusedError, AttributeError):
    """A name of xgrammar that is not here. `hasattr` is False for it."""


class _Partial(type):
    def __getattr__(cls, name: str) -> Any:
        _refuse(cls, name)


class Partial(metaclass=_Partial):
    """A class of xgrammar, without some of its names. Who asks for these gets a MissingError."""

    def __getattr__(self, name: str) -> Any:
        _refuse(type(self), name)


def _refuse(of: type, name: str) -> NoReturn:
    for each in of.__mro__:
        remedy = _MISSING.get(each.__name__, {}).get(name)
        if remedy is not None:
            raise MissingError(f"maskwright stands in for xgrammar here, and has no {each.__name__}.{name}: {remedy}")
    raise AttributeError(f"{of.__name__} has no attribute {name!r}")


def as_words(bitmask: Any) -> npt.NDArray[np.int32]:
    """The bitmask's own memory. Raises: RefusedError if it is elsewhere or of another dtype."""
    if isinstance(bitmask, np.ndarray):
        array: npt.NDArray[Any] = bitmask
    else:
        try:
            array = bitmask.numpy() if hasattr(bitmask, "numpy") else np.from_dlpack(bitmask, copy=False)
        except (TypeError, RuntimeError, ValueError, AttributeError, BufferError) as error:
            raise RefusedError(f"the bitmask cannot be written to ({error}); expected int32 on the CPU") from None
    if array.dtype != np.int32 or not array.flags.writeable:
        raise RefusedError(f"the bitmask has dtype {array.dtype}; expected int32, writable, on the CPU")
    return array


def row_of(bitmask: Any, index: int, n_words: int) -> npt.NDArray[np.int32]:
    """A row of a bitmask, in its own memory. n_words : how many it has at least.

    Raises: RefusedError as `as_words`, for another shape, and for a row that is out of range.
    """
    array = as_words(bitmask)
    if array.ndim == 1:
        array = array[None, :]
    if array.ndim != 2 or array.shape[1] < n_words:
        raise RefusedError(f"the bitmask has shape {array.shape}; expected (B, {n_words}) or wider")
    if not 0 <= index < len(array):
        raise RefusedError(f"row {index} is out of range: the bitmask has {len(array)}")
    row: npt.NDArray[np.int32] = array[index]
    return row


def get_bitmask_shape(batch_size: int, vocab_size: int) -> tuple[int, int]:
    """(batch_size, ceil(vocab_size / 32))."""
    return batch_size, -(-vocab_size // 32)


def allocate_token_bitmask(batch_size: int, vocab_size: int) -> Any:
    """A bitmask that allows all: a tensor of `get_bitmask_shape`, int32, on the CPU."""
    torch = need_torch()
    return torch.full(get_bitmask_shape(batch_size, vocab_size), -1, dtype=torch.int32)


def reset_token_bitmask(bitmask: Any) -> None:
    """Let a bitmask allow all."""
    bitmask.fill_(-1)


def apply_token_bitmask_inplace(
    logits: Any,
    bitmask: Any,
    *,
    vocab_size: int | None = None,
    indices: Sequence[int] | None = None,
    backend: str = "auto",
) -> None:
    """Write -inf over the logits of refused tokens.

    logits : (B, N) or (N,).
    bitmask : (B, W) or (W,) int32, on the same device.
    vocab_size : how many columns are looked at; None for all. Columns past the bitmask are refused
        then, where xgrammar leaves them.
    indices : the rows to look at, of both; None for all.
    backend : no meaning here; the device of the logits decides.

    Raises: RefusedError if the devices differ, a row is out of range, there are more logits than
    rows, or the logits or the bitmask are of another kind (`apply_rows`).
    """
    if logits.device != bitmask.device:
        raise RefusedError(f"logits are on {logits.device}, the bitmask on {bitmask.device}; move one of them")
    torch = need_torch()
    values, words = (each[None] if each.ndim == 1 else each for each in (logits, bitmask))
    if vocab_size is not None:
        values, words = values[:, :vocab_size], words[:, : -(-vocab_size // 32)]
    rows = list(range(len(values)) if indices is None else indices)
    most = min(len(values), len(words))
    if any(not 0 <= row < most for row in rows):
        raise RefusedError(
            f"rows {rows[:8]} are given for {len(values)} rows of logits and {len(words)} of the bitmask"
        )
    numbers = torch.full((len(values),), -1, dtype=torch.int32)
    if rows:
        numbers[rows] = torch.tensor(rows, dtype=torch.int32)
        try:
            apply_rows(values, numbers.to(logits.device), words.contiguous())
        except MaskwrightError as error:
            raise RefusedError(str(error)) from error
