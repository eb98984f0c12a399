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


def apply_words(logits: Any, words: Any) -> None:
    """Write -inf where the bit of words[r] is 0, or there is no bit.

    logits : (B, N).
    words : (B, W) int32.
    """
    logits.masked_fill_(~allowed_by(words, logits.shape[1]), -float("inf"))


def apply_rows(logits: Any, row_ids: Any, rows: Any) -> None:
    """Write -inf where the bit of rows[row_ids[r]] is 0, or there is no bit; -1 leaves a row alone.

    logits : (B, N).
    row_ids : (B,) int32 or int64; other ids that are no rows allow nothing.
    rows : (R, W) int32.
    """
    allowed = allowed_by(rows_of(row_ids, rows), logits.shape[1]) | (row_ids == -1)[:, None]
    logits.masked_fill_(~allowed, -float("inf"))


def apply_ids(logits: Any, row_ids: Any, starts: Any, ids: Any) -> None:
    """Write -inf everywhere but at ids[starts[k] : starts[k + 1]], where k = row_ids[r].

    Waits for the device, since only the device knows how many ids there are in all.

    logits : (B, N).
    row_ids : (B,) int32 or int64; -1 leaves a row alone. Other numbers that are no lists allow
        nothing.
    starts : (K + 1,) int32 or int64.
    ids : (n,) int32 or int64; ids outside the columns are skipped.
    """
    torch = need_torch()
    known = (row_ids >= 0) & (row_ids < len(starts) - 1)
    k = torch.where(known, row_ids, 0).long()
    begin = starts[k].long()
    counts = torch.where(known, starts[k + 1].long() - begin, 0)
    row = torch.repeat_interleave(torch.arange(len(row_ids), device=logits.device), counts)
    nth = torch.arange(len(row), device=logits.device) - (counts.cumsum(0) - counts)[row]
    token = ids[begin[row] + nth].long()
    inside = (token >= 0) & (token < logits.shape[1])
    row, token = row[inside], token[inside]
    kept = logits[row, token]
    logits.masked_fill_((row_ids != -1)[:, None], -float("inf"))
    logits[row, token] = kept


def mend_rows(logits: Any, row_ids: Any, rows: Any, is_dead: Any) -> None:
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
