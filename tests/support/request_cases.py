"""What tests of requests share: whether a store takes a text."""

from __future__ import annotations

from typing import Any


def takes(store: Any, text: str) -> bool:
    """Whether a text is a whole text of a store."""
    matcher = store.matcher()
    return bool(matcher.try_bytes(text.encode()) and matcher.is_accepting())
