"""Errors of store files that nobody wrote as they are: one wording for all that read them."""

from __future__ import annotations

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import StoreError

EXPORT_AGAIN = "the file is damaged or was not written by maskwright: export the store again"


def refuse(where: str, found: str) -> StoreError:
    """The error for what no maskwright writes."""
    return StoreError(f"{where}: {found}; {EXPORT_AGAIN}")


def reason(error: Exception) -> str:
    """An error's message, shortened and quoted if the file could have filled it with whatever it likes."""
    text = getattr(error, "strerror", None) or str(error)
    return text if text.isprintable() and len(text) <= 300 else clip(text)
