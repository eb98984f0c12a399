"""JSON objects in a model's folder, read without trust."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.files import read_file_bytes
from maskwright.analysis.nesting import read_json

LARGEST = 1 << 26
"""The most bytes of a configuration that is read."""


class UnreadableError(MaskwrightError):
    """A configuration is there, but is not a JSON object."""


def read_object(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file; None if there is no such file.

    Raises: UnreadableError if it is no regular file, too large, no JSON, or other JSON than an
    object. Opening a named pipe does not block.
    """
    if not os.path.lexists(path):
        return None
    try:
        data = read_file_bytes(path, LARGEST, "a configuration", UnreadableError)
        found = read_json(data)
    except OSError as error:
        raise UnreadableError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UnreadableError(f"{path} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise UnreadableError(f"{path} holds {clip(found)}; expected a JSON object")
    return found


__all__ = ["LARGEST", "UnreadableError", "read_object"]
