"""Masks where the logits are. In: logits, and masks as words, as numbers of rows, or as ids. Out: -inf where a token is refused.

The same functions three times: compiled for the CPU (`apply_cpu`), in Triton for CUDA (`apply_triton`), in PyTorch operations for the
rest (`apply_torch`); `apply` checks what is passed and chooses. `rows` keeps masks on the device, so that a step sends their numbers only.
"""

from __future__ import annotations

from maskwright.decoding.logits.apply import apply_ids, apply_rows, apply_words, mend_rows
from maskwright.decoding.logits.optional import need_torch
from maskwright.decoding.logits.rows import ResidentRows

apply_mask = apply_words
"""The name outside."""

__all__ = ["ResidentRows", "apply_ids", "apply_mask", "apply_rows", "apply_words", "mend_rows", "need_torch"]
