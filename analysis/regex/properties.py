r"""Properties of characters by their names, as in ``\p{Lu}``.

Known are the general categories, in the running Python's version of Unicode; scripts, `Any`,
`ASCII`, `Assigned` and the binary properties of ECMAScript, in that of `unicode_properties.json`.
"""

from __future__ import annotations

import json
import re
import unicodedata
from functools import lru_cache
from itertools import accumulate
from pathlib import Path

import numpy as np
import numpy.typing as npt

from maskwright.analysis.regex.charset import LAST, Ranges, complement, normalise


@lru_cache(maxsize=64)
def property_of(name: str, is_loose: bool = False) -> Ranges | None:
    r"""The characters of ``\p{name}``; None if the name is not known.

    is_loose : whether capitals, blanks, hyphens and underscores make no difference.

    >>> property_of("gc=Line_Separator"), property_of("line separator", is_loose=True)
    (((8232, 8232),), ((8232, 8232),))
    """
    key, _, value = name.rpartition("=")
    key = {"script": "sc", "generalcategory": "gc"}.get(_loose(key), _loose(key)) if is_loose else key
    kinds = ("scripts",) if key in {"Script", "sc"} else ("binary", "scripts")[: 1 + is_loose] if not key else ()
    for kind in kinds:
        table = _table(is_loose)[kind]
        if (written := table.get(_loose(value) if is_loose else value)) is not None:
            bounds = list(accumulate(int(each, 36) for each in written.split()))
            return tuple((begin, end - 1) for begin, end in zip(bounds[::2], bounds[1::2], strict=True))
    if key not in {"", "General_Category", "gc"}:
        return None
    short = _table(is_loose)["categories"].get(_loose(value) if is_loose else value)
    return None if short is None else general_category(short)


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
def _table(is_loose: bool) -> dict[str, dict[str, str]]:
    """Kind of property -> name -> ranges (begin, size, gap, ... in base 36) or a short name."""
    read = json.loads(Path(__file__).with_name("unicode_properties.json").read_text(encoding="utf-8"))
    return {
        kind: {
            _loose(name) if is_loose else name: read[kind][found[1:]] if found[:1] == "=" else found
            for name, found in read[kind].items()
        }
        for kind in ("categories", "binary", "scripts")
    }


def with_classes(pattern: str, flags: str = "") -> str:
    r"""A pattern of Python's `re`, with classes instead of the ``\p{...}`` of the package `regex`.

    Raises: re.error for an unknown one, beside comments, and in classes `re` would read otherwise.
    """
    if "\\p{" not in pattern.lower():
        return pattern
    said = flags + "".join(re.findall(r"\(\?([a-z]+|#)", pattern))
    found, is_inside = "", False
    for match in _PIECE.finditer(pattern):
        name, here = match["name"], match[0]
        is_inside = here[0] == "\\" or here[-1] != "]" if is_inside else here[0] == "["
        if name is None:
            found += here
            continue
        is_not = (here[1] == "P") != name.startswith("^")
        ranges = property_of(name.removeprefix("^"), is_loose=True)
        cannot = "x" in said or "#" in said or (is_inside and (found[-1] == "-" or (is_not and "i" in said)))
        if ranges is None or cannot:
            raise re.error(f"{'misplaced' if ranges else 'unknown'} property {name!r}", pattern, match.start())
        text = "".join(f"\\U{a:08x}-\\U{b:08x}" for a, b in (complement(ranges) if is_inside and is_not else ranges))
        found += text if is_inside else f"[{'^' * is_not}{text}]"
    return found


_PIECE = re.compile(r"\\[pP]\{(?P<name>[^{}]+)\}|\\.|\[\^?\]?|.", re.DOTALL)


def _loose(name: str) -> str:
    return re.sub(r"[ _-]", "", name).lower()
