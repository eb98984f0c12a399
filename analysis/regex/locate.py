"""Where the constructs of a pattern stand in its text, for messages.

Python's parser keeps no positions. The scan here knows escapes, classes, groups, comments and
quantifiers, nothing more. It runs only on patterns that `re` accepts.
"""

from __future__ import annotations

import re
from typing import Literal

from maskwright.analysis.regex.tree import Source

Kind = Literal["look", "lazy", "possessive", "atomic", "backreference", "conditional"]

_ITEM = re.compile(
    r"""
    (?P<comment> \(\?\#[^)]*\) )
  | (?P<backreference> \\[1-9][0-9]? | \(\?P=\w+\) )
  | (?P<escape> \\. )
  | (?P<class> \[\^?\]?(?:\\.|[^\]\\])*\] )
  | (?P<conditional> \(\?\(\w+\) )
  | (?P<look> \(\?<?[=!] )
  | (?P<atomic> \(\?> )
  | (?P<open> \( )
  | (?P<close> \) )
  | (?P<quantifier> (?:[*+?]|\{[0-9]+,?[0-9]*\}|\{,[0-9]*\})(?P<mode>[?+])? )
    """,
    re.VERBOSE | re.DOTALL,
)


def constructs(pattern: str, *, verbose: bool = False) -> dict[Kind, list[Source]]:
    r"""The constructs of each kind, in the order of their first character.

    A group is given with its whole text, a quantifier with its suffix.

    pattern : a pattern that `re` accepts.
    verbose : whether the flag VERBOSE holds, under which ``#`` begins a comment.

    Example:
        >>> constructs(r"a+?(?!b)")["look"]
        [Source(text='(?!b)', start=3)]
    """
    found: dict[Kind, list[Source]] = {
        "look": [],
        "lazy": [],
        "possessive": [],
        "atomic": [],
        "backreference": [],
        "conditional": [],
    }
    open_groups: list[tuple[Kind | None, int, int]] = []
    at = 0
    while at < len(pattern):
        if verbose and pattern[at] == "#":
            at = (pattern.find("\n", at) + 1) or len(pattern)
            continue
        match = _ITEM.match(pattern, at)
        if match is None:
            at += 1
            continue
        match match.lastgroup if match["mode"] is None else "quantifier":
            case "look" | "atomic" | "conditional" as kind:
                open_groups.append((kind, at, len(found[kind])))
                found[kind].append(Source(match[0], at))
            case "open":
                open_groups.append((None, at, 0))
            case "close" if open_groups:
                opened, start, index = open_groups.pop()
                if opened is not None:
                    found[opened][index] = Source(pattern[start : match.end()], start)
            case "backreference":
                found["backreference"].append(Source(match[0], at))
            case "quantifier" if match["mode"] is not None:
                found["lazy" if match["mode"] == "?" else "possessive"].append(Source(match[0], at))
        at = match.end()
    return found
