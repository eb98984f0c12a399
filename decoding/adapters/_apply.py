"""Where these used to be, for those that still import them from here."""

from __future__ import annotations

from maskwright.decoding.kernels import apply_mask, need_torch

__all__ = ["apply_mask", "need_torch"]
