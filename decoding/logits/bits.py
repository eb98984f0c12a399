"""Floating-point numbers as integers: what is only kept or replaced keeps every bit, and a NaN is no exception."""

from __future__ import annotations

from typing import Any

from maskwright.decoding.logits.optional import need_torch

SIZES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
"""Bytes of each dtype that logits may have."""

MINUS_INFINITY = {"float16": -0x400, "bfloat16": -0x80, "float32": -0x800000, "float64": -0x10000000000000}
"""The bits of -inf as a signed integer: sign and exponent are ones."""

EXPONENT = {name: bits + (1 << (8 * SIZES[name] - 1)) for name, bits in MINUS_INFINITY.items()}
"""The exponent's bits, which are those of -inf without its sign: all are ones in what is not finite."""


def bits_of(logits: Any) -> Any:
    """A view of a tensor as integers of its size."""
    torch = need_torch()
    return logits.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[logits.element_size()])
