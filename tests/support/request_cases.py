"""What tests of requests share: whether a store takes a text."""

from __future__ import annotations

from typing import Any

import maskwright as mw


def takes(store: Any, text: str) -> bool:
    """Whether a text is a whole text of a store."""
    matcher = store.matcher()
    try:
        matcher.advance_bytes(text.encode())
    except mw.IllegalTokenError:
        return False
    return bool(matcher.is_accepting())
