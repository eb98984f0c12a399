"""What is said of a hole in a file: is there a middle, the shortest one, what may come first."""

from __future__ import annotations

import re
from typing import Any

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import DeadEndError, LimitError, MaskwrightError
from maskwright.decoding.engine.state import listed_bytes
from maskwright.decoding.infill.text import open_middle
from maskwright.decoding.matcher import Matcher


def offset_of(text: str, place: str) -> int:
    """The offset of a place, as editors count.

    place : LINE:COLUMN, from 1, in characters; the column may be the one behind the line's last.

    Raises: MaskwrightError if it is none, or the text lacks it.
    """
    found = re.fullmatch(r"([1-9]\d{0,8}):([1-9]\d{0,8})", place)
    if found is None:
        raise MaskwrightError(f"{clip(place)} is no place in a file; expected LINE:COLUMN, both from 1, such as 12:8")
    line, column = int(found[1]), int(found[2])
    lines = text.split("\n")
    if line > len(lines) or column > len(lines[line - 1]) + 1:
        there = (
            f"line {line} has {len(lines[line - 1])} characters" if line <= len(lines) else f"it has {len(lines)} lines"
        )
        raise MaskwrightError(f"the file has no place {place}: {there}")
    return sum(len(each) + 1 for each in lines[: line - 1]) + column - 1


def around(text: str, at: str, to: str | None = None) -> tuple[str, str]:
    """What stands before and behind the hole of a text from `at` up to `to`.

    at, to : as `offset_of` has it; without `to` the hole is empty, a cursor.

    Raises: as `offset_of`.
    """
    begin = offset_of(text, at)
    end = begin if to is None else offset_of(text, to)
    if end < begin:
        raise MaskwrightError(f"the hole ends at {to}, before it begins at {at}")
    return text[:begin], text[end:]


def check_hole(store: Any, text: str, at: str, to: str | None = None) -> dict[str, Any]:
    """What can stand in the hole of a text from `at` up to `to`, JSON-ready.

    store : of the text's grammar, or schema. at, to : as of `around`.

    has_middle : None if it cannot be told (`open_middle`). words : all of it, for people.

    Raises: IllegalTokenError if no text begins with what comes before; as `around`.
    """
    before, after = (part.encode() for part in around(text, at, to))
    facts: dict[str, Any] = {"at": at, "to": to or at, "has_middle": False, "may_be_empty": False, "left_out": None}
    facts |= {"shortest": None, "next": None, "words": ""}
    try:
        middle = open_middle(store, 0, prefix=before, suffix=after)
    except DeadEndError as error:
        middle = open_middle(store, 0, prefix=before, suffix=after, if_broken="cut")
        facts["left_out"] = middle.left_out.decode(errors="replace")
        facts["words"] = f"{error}\n"
    else:
        facts["has_middle"] = True if middle.hole is not None else None
    facts["may_be_empty"] = middle.can_end()
    facts["next"] = listed_bytes(middle.next_bytes())
    try:
        facts["shortest"] = Matcher.of(middle).shortest_ending().data.decode(errors="replace")
    except (LimitError, DeadEndError) as error:
        facts["words"] += f"no middle was found: {error}\n"
    else:
        facts["has_middle"] = facts["left_out"] is None
    facts["words"] += _said(facts)
    return facts


def _said(facts: dict[str, Any]) -> str:
    shortest = facts["shortest"]
    if shortest is None:
        found = "whether there is a middle was not found out"
    elif facts["left_out"] is not None:
        found = f"all but the last {len(facts['left_out'])} characters can follow {shortest!r}"
    elif facts["may_be_empty"]:
        found = "the text is whole as it stands"
    else:
        found = f"the shortest middle is {shortest!r}"
    return f"{found}; what may come first: {facts['next']}"
