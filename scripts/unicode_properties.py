"""Writes the table of Unicode's scripts and binary properties that patterns may name.

python scripts/unicode_properties.py [FOLDER]

FOLDER has the files of the Unicode Character Database: by default that of Debian's package `unicode-data`. The properties are those of
ECMAScript (https://tc39.es/ecma262/#table-binary-unicode-properties) and `Script`; of general
categories the table has the names, since Python knows what is in them.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

FOLDER = Path("/usr/share/unicode")
TABLE = Path(__file__).parents[1] / "analysis" / "regex" / "unicode_properties.json"
FILES = (
    "PropList.txt",
    "DerivedCoreProperties.txt",
    "DerivedNormalizationProps.txt",
    "emoji/emoji-data.txt",
    "extracted/DerivedBinaryProperties.txt",
)
BINARY = re.findall(
    r"(\w+)(?:/(\w+))?",
    """
    ASCII_Hex_Digit/AHex Alphabetic/Alpha Bidi_Control/Bidi_C Bidi_Mirrored/Bidi_M Case_Ignorable/CI Cased
    Changes_When_Casefolded/CWCF Changes_When_Casemapped/CWCM Changes_When_Lowercased/CWL
    Changes_When_NFKC_Casefolded/CWKCF Changes_When_Titlecased/CWT Changes_When_Uppercased/CWU Dash
    Default_Ignorable_Code_Point/DI Deprecated/Dep Diacritic/Dia Emoji Emoji_Component/EComp Emoji_Modifier/EMod
    Emoji_Modifier_Base/EBase Emoji_Presentation/EPres Extended_Pictographic/ExtPict Extender/Ext
    Grapheme_Base/Gr_Base Grapheme_Extend/Gr_Ext Hex_Digit/Hex IDS_Binary_Operator/IDSB IDS_Trinary_Operator/IDST
    ID_Continue/IDC ID_Start/IDS Ideographic/Ideo Join_Control/Join_C Logical_Order_Exception/LOE Lowercase/Lower Math
    Noncharacter_Code_Point/NChar Pattern_Syntax/Pat_Syn Pattern_White_Space/Pat_WS Quotation_Mark/QMark Radical
    Regional_Indicator/RI Sentence_Terminal/STerm Soft_Dotted/SD Terminal_Punctuation/Term Unified_Ideograph/UIdeo
    Uppercase/Upper Variation_Selector/VS White_Space/space XID_Continue/XIDC XID_Start/XIDS
    """,
)
"""Names, and short ones."""

LAST = 0x10FFFF
Ranges = list[tuple[int, int]]


def read(file: Path) -> dict[str, Ranges]:
    """Property or script -> its ranges of characters."""
    found: dict[str, Ranges] = defaultdict(list)
    for line in file.read_text(encoding="utf-8").splitlines():
        if match := re.match(r"([0-9A-F]+)(?:\.\.([0-9A-F]+))?\s*;\s*(\w+)\s*(?:#|$)", line):
            found[match[3]].append((int(match[1], 16), int(match[2] or match[1], 16)))
    return found


def written(ranges: Ranges) -> str:
    """Ranges that do not touch, as distances in base 36: begin, size, gap, size, ..."""
    bounds: list[int] = []
    for begin, end in sorted(ranges):
        if bounds and bounds[-1] == begin:
            bounds[-1] = end + 1
        else:
            bounds += [begin, end + 1]
    return " ".join(base36(after - before) for before, after in pairwise([0, *bounds]))


def base36(number: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    return (base36(number // 36) if number >= 36 else "") + digits[number % 36]


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    properties = {name: ranges for file in FILES for name, ranges in read(folder / file).items()}
    names: dict[str, str] = {}
    scripts: dict[str, str] = {}
    categories: dict[str, str] = {}
    for long, short in BINARY:
        names |= {long: written(properties[long])} | ({short: "=" + long} if short else {})
    unassigned = read(folder / "extracted" / "DerivedGeneralCategory.txt")["Cn"]
    bounds = [0, *(bound for begin, end in sorted(unassigned) for bound in (begin, end + 1)), LAST + 1]
    assigned = [(begin, end - 1) for begin, end in zip(bounds[::2], bounds[1::2], strict=True) if begin < end]
    names |= {"Any": written([(0, LAST)]), "ASCII": written([(0, 127)]), "Assigned": written(assigned)}
    ranges = read(folder / "Scripts.txt")
    for line in (folder / "PropertyValueAliases.txt").read_text(encoding="utf-8").splitlines():
        what, short, long, *more = [*line.partition("#")[0].replace(" ", "").split(";"), "", "", ""]
        aliases = [alias for alias in more if alias]
        if what == "sc" and long in ranges:
            scripts |= {long: written(ranges[long])} | {one: "=" + long for one in (short, *aliases) if one != long}
        elif what == "gc":
            categories |= dict.fromkeys((short, long, *aliases), short)
    version = re.search(r"-(\d+\.\d+\.\d+)\.txt", (folder / "Scripts.txt").read_text(encoding="utf-8"))
    assert version is not None
    about = f"Unicode {version[1]}, https://www.unicode.org/license.txt; made by scripts/unicode_properties.py"
    lines = {"about": about, "categories": categories, "binary": names, "scripts": scripts}
    TABLE.write_text(json.dumps(lines, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
