"""Write analysis/loading/library/unicode.lark: character classes of identifiers that Python's `re` has no name for.

Run with the Python whose Unicode version is wanted; the file says which. Assigned characters only.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from pathlib import Path

TARGET = Path(__file__).parents[1] / "analysis" / "loading" / "library" / "unicode.lark"

CLASSES: dict[str, tuple[str, Callable[[str], bool]]] = {
    "ID_START": ("XID_Start and the underscore: what begins an identifier of Python", str.isidentifier),
    "ID_CONTINUE": ("XID_Continue: what goes on with one", lambda c: ("a" + c).isidentifier()),
    "LETTER": (
        "general categories Lu, Ll, Lt, Lm, Lo, and the underscore: a letter of Go",
        lambda c: c == "_" or unicodedata.category(c)[0] == "L",
    ),
    "DIGIT": ("general category Nd: a digit of an identifier of Go", lambda c: unicodedata.category(c) == "Nd"),
}


def ranges(holds: Callable[[str], bool]) -> str:
    found: list[list[int]] = []
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000 or not holds(chr(code)):
            continue
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return "".join(spell(a) if a == b else f"{spell(a)}-{spell(b)}" for a, b in found)


def spell(code: int) -> str:
    if code < 128:
        return chr(code)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def main() -> None:
    lines = [
        f"// Character classes of identifiers, Unicode {unicodedata.unidata_version}; written by scripts/make_unicode_grammar.py.",
    ]
    for name, (what, holds) in CLASSES.items():
        lines += ["", f"// {what}", f"{name}: /[{ranges(holds)}]/"]
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
