r"""Properties of characters by their names, as in ``\p{Lu}``.

Known are the general categories, `Any`, `ASCII`, and `Assigned`, in the running Python's version of
Unicode.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from maskwright.analysis.regex.charset import LAST, Ranges, complement, normalise

_LONG_NAMES = {
    "Letter": "L", "Cased_Letter": "LC", "Uppercase_Letter": "Lu", "Lowercase_Letter": "Ll", "Titlecase_Letter": "Lt",
    "Modifier_Letter": "Lm", "Other_Letter": "Lo", "Mark": "M", "Combining_Mark": "M", "Nonspacing_Mark": "Mn",
    "Spacing_Mark": "Mc", "Enclosing_Mark": "Me", "Number": "N", "Decimal_Number": "Nd", "digit": "Nd",
    "Letter_Number": "Nl", "Other_Number": "No", "Punctuation": "P", "punct": "P", "Connector_Punctuation": "Pc",
    "Dash_Punctuation": "Pd", "Open_Punctuation": "Ps", "Close_Punctuation": "Pe", "Initial_Punctuation": "Pi",
    "Final_Punctuation": "Pf", "Other_Punctuation": "Po", "Symbol": "S", "Math_Symbol": "Sm",
    "Currency_Symbol": "Sc", "Modifier_Symbol": "Sk", "Other_Symbol": "So", "Separator": "Z",
    "Space_Separator": "Zs", "Line_Separator": "Zl", "Paragraph_Separator": "Zp", "Other": "C", "Control": "Cc",
    "cntrl": "Cc", "Format": "Cf", "Surrogate": "Cs", "Private_Use": "Co", "Unassigned": "Cn",
}  # fmt: skip
_NO_CATEGORIES = {"Any", "ASCII", "Assigned"}


@lru_cache(maxsize=64)
def property_of(name: str, is_loose: bool = False) -> Ranges | None:
    r"""The characters of ``\p{name}``; None if the name is not known.

    is_loose : whether capitals, blanks, hyphens and underscores make no difference.

    >>> property_of("gc=Line_Separator"), property_of("line separator", is_loose=True)
    (((8232, 8232),), ((8232, 8232),))
    """
    key, _, value = name.rpartition("=")
    if key not in {"", "General_Category", "gc"}:
        return None
    short = _short_names(is_loose).get(_loose(value) if is_loose else value)
    if short is None or (key and short in _NO_CATEGORIES):
        return None
    if short == "ASCII":
        return ((0, 127),)
    return complement(general_category("Cn")) if short == "Assigned" else general_category(short)


@lru_cache(maxsize=64)
def general_category(name: str) -> Ranges:
    """The characters of a general category, such as "L" or "Lu"; "Any" has all."""
    names, numbers = _categories()
    begins = {"LC": ("Lu", "Ll", "Lt"), "Any": ("",)}.get(name, (name,))
    has = np.isin(numbers, [number for number, known in enumerate(names) if known.startswith(begins)])
    bounds = np.flatnonzero(np.diff(has, prepend=False, append=False)).tolist()
    return normalise(zip(bounds[::2], [end - 1 for end in bounds[1::2]], strict=True))


@lru_cache(maxsize=1)
def _categories() -> tuple[tuple[str, ...], npt.NDArray[np.uint8]]:
    """The names of general categories, and (0x110000,) uint8: the number of each character's."""
    numbers: dict[str, int] = {}
    found = [numbers.setdefault(unicodedata.category(chr(code)), len(numbers)) for code in range(LAST + 1)]
    return tuple(numbers), np.array(found, np.uint8)


@lru_cache(maxsize=2)
def _short_names(is_loose: bool) -> dict[str, str]:
    """The short name of each property by each of its names."""
    short = {"LC", *_NO_CATEGORIES, *(name[:n] for name in _categories()[0] for n in (1, 2))}
    names = _LONG_NAMES | {name: name for name in short}
    return {_loose(name): short for name, short in names.items()} if is_loose else names


def _loose(name: str) -> str:
    return re.sub(r"[ _-]", "", name).lower()
