"""What tests of requests share: a compiler that is never short of time, and whether a store takes a text."""

from __future__ import annotations

from typing import Any

import maskwright as mw
from maskwright.serving.options import RequestLimits
from maskwright.serving.requests import RequestCompiler


def patient_compiler() -> RequestCompiler:
    """On a busy machine the check would leave to the compilation what it finds in a second elsewhere."""
    return RequestCompiler("python-tiny", limits=RequestLimits(check_seconds=60))


def takes(store: Any, text: str) -> bool:
    """Whether a text is a whole text of a store."""
    matcher = store.matcher()
    try:
        matcher.advance_bytes(text.encode())
    except mw.IllegalTokenError:
        return False
    return matcher.is_accepting()
