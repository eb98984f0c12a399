"""Errors of store files that maskwright cannot have written: one wording for all readers."""

from __future__ import annotations

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import StoreError

EXPORT_AGAIN = "the file is damaged or was not written by maskwright: export the store again"
"""How each of these messages ends."""


def refuse(where: str, found: str) -> StoreError:
    """The error for content that no maskwright writes.

    where : the file.
    found : what is wrong there.
    """
    return StoreError(f"{where}: {found}; {EXPORT_AGAIN}")


def reason(error: Exception) -> str:
    """An error's message; shortened and quoted if a file may have put arbitrary text into it.

    Text of more than 300 characters, or with characters that are not printable, counts as such.
    """
    text = getattr(error, "strerror", None) or str(error)
    return text if text.isprintable() and len(text) <= 300 else clip(text)
