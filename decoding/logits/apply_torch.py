"""Masks on logits in plain PyTorch operations, on any device.

Used where there is no kernel, and in tests to check the kernels. Arguments are those of the
functions of `apply.py`, which checks them; all tensors are on one device.

Cost: some ten passes over the logits.
"""

from __future__ import annotations

from typing import Any

from maskwright.decoding.logits.optional import need_torch


def allowed_by(words: Any, columns: int) -> Any:
    """(B, columns) bool: whether bit i of words[r] is 1. False where there is no bit.

    words : (B, W) int32.
    columns : the number of logits in a row.
    """
    torch = need_torch()
    at = torch.arange(columns, device=words.device)
    inside = at < 32 * words.shape[1]
    word = words.index_select(1, torch.where(inside, at, 0) >> 5)
    return ((word >> (at & 31).to(torch.int32)) & 1).bool() & inside


def rows_of(row_ids: Any, rows: Any) -> Any:
    """(B, W) int32: the mask rows[row_ids[r]] of each row; 0 for ids that are no rows, such as -1.

    row_ids : (B,) int32 or int64.
    rows : (R, W) int32.
    """
    known = (row_ids >= 0) & (row_ids < len(rows))
    words = rows.index_select(0, need_torch().where(known, row_ids, 0).long())
    return words.masked_fill(~known[:, None], 0)


def apply(logits: Any, row_ids: Any, rows: Any) -> None:
    """Write -inf where the bit of rows[row_ids[r]] is 0, or there is no bit; -1 leaves a row alone.

    logits : (B, N).
    row_ids : (B,) int32 or int64; other ids that are no rows allow nothing. None: 0, 1, ...
    rows : (R, W) int32.
    """
    if row_ids is None:
        row_ids = need_torch().arange(len(rows), device=rows.device)
    allowed = allowed_by(rows_of(row_ids, rows), logits.shape[1]) | (row_ids == -1)[:, None]
    logits.masked_fill_(~allowed, -float("inf"))


def mend(logits: Any, row_ids: Any, rows: Any, is_dead: Any) -> None:
    """Set the allowed logits of a row to 0, and is_dead[r] to 1, if none of them is finite.

    Rows that allow nothing, and idle ones, are left as they are.

    logits : (B, N).
    row_ids : (B,) int32 or int64.
    rows : (R, W) int32.
    is_dead : (B,) uint8; written, 0 or 1 for each row.
    """
    torch = need_torch()
    allowed = allowed_by(rows_of(row_ids, rows), logits.shape[1])
    dead = allowed.any(-1) & ~(allowed & torch.isfinite(logits)).any(-1)
    logits.masked_fill_(allowed & dead[:, None], 0.0)
    is_dead.copy_(dead)
