"""Which calls are quick: those that keep the GIL, see `_quick_kernels.py` of each engine."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

NOT_QUICK = 9
"""What a quick call returns if a token or a mask is left to be done: it would take long, or another
thread works in what it needs. The words of the mask may be spoilt. No other result has this number.
"""

NOTHING_QUICK: Any = SimpleNamespace(
    quick_fill=lambda addresses: NOT_QUICK,
    quick_read=lambda addresses, token: NOT_QUICK,
    quick_step=lambda addresses, token: 2 * NOT_QUICK,
)
"""The quick calls where there are none: Numba would compile the engine twice for them."""

_HAS_GIL: bool = getattr(sys, "_is_gil_enabled", lambda: True)()
"""Whether one thread at a time runs Python, as quick calls need it."""


def quick_calls(entries: Any, otherwise: Any = NOTHING_QUICK) -> Any:
    """An engine's `quick_fill`, `quick_read` and `quick_step`.

    entries : its entry points.
    otherwise : what has calls of these names, for where there are no quick ones.
    """
    return entries if entries.is_compiled_ahead and _HAS_GIL else otherwise
