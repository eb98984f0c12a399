"""Masks on logits in plain PyTorch operations, on whichever device: where there is no kernel for it, and as a check of those there are.

Arguments as of the functions of `apply.py`, checked there, all tensors on one device. Cost: some ten passes over the logits.
"""

from __future__ import annotations

from typing import Any

from maskwright.decoding.logits.optional import need_torch


def allowed_by(words: Any, columns: int) -> Any:
    """words : (B, W) int32. (B, columns) bool: whether bit i of words[r] is 1; not where there is none."""
    torch = need_torch()
    at = torch.arange(columns, device=words.device)
    inside = at < 32 * words.shape[1]
    word = words.index_select(1, torch.where(inside, at, 0) >> 5)
    return ((word >> (at & 31).to(torch.int32)) & 1).bool() & inside


def rows_of(row_ids: Any, rows: Any) -> Any:
    """rows[row_ids[r]], nothing allowed for ids that there are not, everything for -1."""
    known = (row_ids >= 0) & (row_ids < len(rows))
    words = rows.index_select(0, need_torch().where(known, row_ids, 0).long())
    return words.masked_fill(~known[:, None], 0)


def apply_words(logits: Any, words: Any) -> None:
    """-inf wherever bit i of words[r] is 0, or there is none. logits : (B, N). words : (B, W)."""
    logits.masked_fill_(~allowed_by(words, logits.shape[1]), -float("inf"))


def apply_rows(logits: Any, row_ids: Any, rows: Any) -> None:
    """-inf wherever bit i of rows[row_ids[r]] is 0, or there is none; -1 leaves a row alone."""
    allowed = allowed_by(rows_of(row_ids, rows), logits.shape[1]) | (row_ids == -1)[:, None]
    logits.masked_fill_(~allowed, -float("inf"))


def apply_ids(logits: Any, row_ids: Any, starts: Any, ids: Any) -> None:
    """-inf everywhere but at ids[starts[k] : starts[k + 1]], k = row_ids[r]; -1 leaves a row alone.

    Waits for the device, which alone knows how many ids there are in all.
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
    """Rows that allow something, but nothing of a finite logit: is_dead[r] = 1, and what is allowed becomes 0. is_dead : (B,) uint8."""
    torch = need_torch()
    allowed = allowed_by(rows_of(row_ids, rows), logits.shape[1])
    dead = allowed.any(-1) & ~(allowed & torch.isfinite(logits)).any(-1)
    logits.masked_fill_(allowed & dead[:, None], 0.0)
    is_dead.copy_(dead)
