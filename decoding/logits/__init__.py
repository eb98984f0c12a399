"""How do masks meet logits?

In: logits, and masks as words, or as numbers of rows. Out: -inf where a token is refused.

The same functions exist three times: compiled for the CPU (`apply_cpu`), in Triton for CUDA
(`apply_triton`), and in PyTorch operations for other devices (`apply_torch`). `apply` checks the
arguments and chooses. `rows` keeps masks on the device, so that a step sends only the numbers of
rows.
"""

from __future__ import annotations

from maskwright.decoding.logits.apply import apply_rows, apply_words, mend_rows
from maskwright.decoding.logits.optional import need_torch
from maskwright.decoding.logits.rows import ResidentRows

apply_mask = apply_words
"""The public name of `apply_words`."""

__all__ = ["ResidentRows", "apply_mask", "apply_rows", "apply_words", "mend_rows", "need_torch"]
