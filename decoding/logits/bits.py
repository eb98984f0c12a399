"""Floating-point numbers as integers: a number that is kept keeps every bit, even a NaN."""

from __future__ import annotations

from typing import Any

from maskwright.decoding.logits.optional import need_torch

SIZES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
"""Bytes of each dtype that logits may have."""

MINUS_INFINITY = {"float16": -0x400, "bfloat16": -0x80, "float32": -0x800000, "float64": -0x10000000000000}
"""The bits of -inf as a signed integer: ones in the sign and the exponent."""

EXPONENT = {name: bits + (1 << (8 * SIZES[name] - 1)) for name, bits in MINUS_INFINITY.items()}
"""The bits of the exponent: those of -inf without its sign.

All of them are 1 in a number that is not finite.
"""


def bits_of(logits: Any) -> Any:
    """A view of logits, a floating-point tensor, as integers of the same size."""
    torch = need_torch()
    return logits.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[logits.element_size()])
