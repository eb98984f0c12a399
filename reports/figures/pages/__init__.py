"""The pages, each with its figures."""

from __future__ import annotations

import importlib
import pkgutil

from ..page import Page


def pages() -> dict[str, Page]:
    """All pages of which something is said, by name."""
    found: dict[str, Page] = {}
    for module in pkgutil.iter_modules(__path__):
        for page in importlib.import_module(f"{__name__}.{module.name}").PAGES:
            assert page.name not in found
            found[page.name] = page
    return found
