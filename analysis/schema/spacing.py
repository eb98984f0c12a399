"""White space between the tokens of JSON: one automaton, with a start for each place.

In: what a style says of white space. Out: a `Spacing`. Knows nothing of schemas.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import UnknownNameError
from maskwright.analysis.kept import Kept
from maskwright.analysis.regex.dfa import Dfa, intersect
from maskwright.analysis.regex.whole import regex_automaton

SPACES = b" \t\n\r"

GOES_ON, CLOSES, EITHER = 1, 2, 3
"""What may come where white space ends, as bits: any token but a closing bracket, or the end of the
text; a closing bracket; both."""
MOST_SPACES = 10_000
"""BOUND: the characters of white space that a number may allow in a row."""
DEEPEST_INDENT = 128
"""The blanks and tabs that natural white space may have after a line break: 32 levels of 4."""
WIDEST_INDENT = 16
"""BOUND: the blanks of a level."""

NAMES = "'natural', 'compact', 'json.dumps', 'indent2', 'any', a number or a pattern"
_INDENT = re.compile(r"indent([0-9]{1,2})")


Row: TypeAlias = tuple[int, int, int, int, int, int]


class Spacing(NamedTuple):
    """The white space of JSON texts: an automaton over blank, tab, line feed and carriage return.

    rows : for each state the next one behind these four, and what may come there (`GOES_ON`,
        `CLOSES`), and what may come there or behind more white space. The next one is -1 for none.
        It is -1 - e for a line feed behind which the line is indented, before what e says.
    outer : the state in which white space begins before and behind the whole text.
    opened, behind_comma, before_colon, behind_colon : those behind an opening bracket, a comma, and
        around a colon. That behind a value is 0.
    indent : the blanks that a line is indented by for each level; -1 for at most `DEEPEST_INDENT`
        blanks and tabs.

    States from len(rows) on are within an indentation: len(rows) + 4 * k + e, where k is how many
    may come yet or, where `indent` is not -1, must come.

    INVARIANT: No white space behind a value leads to a comma alone; before a colon and behind it
    all leads to a token. State 0 comes again only if all places begin with it.
    """

    rows: tuple[Row, ...]
    outer: int = 0
    opened: int = 0
    behind_comma: int = 0
    before_colon: int = 0
    behind_colon: int = 0
    indent: int = -1

    def after(self, state: int, byte: int, level: int) -> int:
        """The state behind a byte of `SPACES`, or -1. level : the number of open brackets."""
        n = len(self.rows)
        if state >= n:
            return state - 4 if state - n >= 4 and byte in (b" \t" if self.indent < 0 else b" ") else -1
        found = self.rows[state][SPACES.index(byte)]
        if found >= -1:
            return found
        ends = -1 - found
        left = DEEPEST_INDENT if self.indent < 0 else self.indent * (level - (ends == CLOSES))
        return n + 4 * left + ends

    def ends(self, state: int) -> int:
        """What may come in a state."""
        n = len(self.rows)
        if state < n:
            return self.rows[state][4]
        return (state - n) & 3 if self.indent < 0 or state - n < 4 else 0

    def leads(self, state: int) -> int:
        """What may come in a state, or behind more white space."""
        n = len(self.rows)
        return self.rows[state][5] if state < n else (state - n) & 3

    def around(self) -> Dfa:
        """The white space before and behind the whole text."""
        return self.language(self.outer, GOES_ON)

    def shortest(self, state: int, ends: int, level: int) -> bytes | None:
        """The first of the shortest white space before what `ends` says; None if it cannot come."""
        layer = {state: b""}
        seen: set[int] = set()
        while layer:
            for one, text in layer.items():
                if self.ends(one) & ends:
                    return text
            seen |= {*layer}
            behind = [(self.after(one, b, level), text + bytes([b])) for one, text in layer.items() for b in SPACES]
            layer = {one: text for one, text in behind[::-1] if one >= 0 and self.leads(one) & ends and one not in seen}
        return None

    def language(self, state: int, ends: int = EITHER, level: int = 0) -> Dfa:
        """The white space from a state on, before what `ends` says."""
        numbers, todo = {state: 0}, [state]
        rows: list[list[int]] = []
        for one in todo:  # grows while it is read
            row = [-1] * 256
            for byte in SPACES:
                after = self.after(one, byte, level)
                if after >= 0:
                    if after not in numbers:
                        numbers[after] = len(numbers)
                        todo.append(after)
                    row[byte] = numbers[after]
            rows.append(row)
        return Dfa.minimal(rows, [self.ends(one) & ends != 0 for one in todo])


def everywhere(automaton: Dfa) -> Spacing:
    """The white space of an automaton at all places."""
    columns = automaton.next_state[:, list(SPACES)].tolist()
    ends = [EITHER if accepts else 0 for accepts in automaton.is_accepting.tolist()]
    leads = 0 if automaton.is_empty else EITHER  # a minimal automaton has no dead states
    return Spacing(tuple((*row, end, leads) for row, end in zip(columns, ends, strict=True)))


ANY, NOTHING = Spacing(((0, 0, 0, 0, EITHER, EITHER),)), Spacing(((-1, -1, -1, -1, EITHER, EITHER),))
"""All white space that JSON allows, and none."""


def by_place(places: Sequence[tuple[int, int, int]], indent: int) -> Spacing:
    """White space that is nothing, a blank, or a line break with an indentation.

    places : for behind a value, and for the fields of `Spacing` from `outer` to `behind_colon`,
        what may come behind each of the three; 0 where that may not stand.
    indent : as in `Spacing`. With -1 a carriage return may stand before the line feed.

    The rows: one for each place, n in all; n - 1 + e, the one behind a blank before the end e; and
    n + 2 + e, the one behind a carriage return before it.
    """
    n, may_return = len(places), indent < 0
    starts = [
        (n - 1 + blank if blank else -1, -1, -1 - broken, n + 2 + broken if broken and may_return else -1)
        for _, blank, broken in places
    ]
    rows = [(*row, place[0], place[0] | place[1] | place[2]) for row, place in zip(starts, places, strict=True)]
    rows += [(-1, -1, -1, -1, ends, ends) for ends in (GOES_ON, CLOSES, EITHER)]
    rows += [(-1, -1, -1 - ends, -1, 0, ends) for ends in (GOES_ON, CLOSES, EITHER)]
    return Spacing(tuple(rows), 1, 2, 3, 4, 5, indent)


_ANYHOW, _CLOSING = (GOES_ON, GOES_ON, GOES_ON), (EITHER, CLOSES, CLOSES)
_NONE, _BLANK, _ONE_BLANK = (GOES_ON, 0, 0), (GOES_ON, GOES_ON, 0), (0, GOES_ON, 0)

_NAMED = {
    "any": ANY,
    "compact": NOTHING,
    "natural": by_place((_CLOSING, _ANYHOW, (EITHER, EITHER, EITHER), _ANYHOW, _NONE, _BLANK), -1),
    "json.dumps": by_place(((EITHER, 0, 0), _NONE, (EITHER, 0, 0), _ONE_BLANK, _NONE, _ONE_BLANK), 0),
}


@Kept
def spacing_of(whitespace: str | int) -> Spacing:
    """The white space that a style's part names. Raises: UnknownNameError for another option."""
    if isinstance(whitespace, int):
        if not 0 <= whitespace <= MOST_SPACES:
            raise UnknownNameError(f"whitespace is {clip(whitespace)}; expected 0 to {MOST_SPACES:,} characters")
        return everywhere(regex_automaton(rf"[ \t\n\r]{{0,{whitespace}}}"))
    if whitespace in _NAMED:
        return _NAMED[whitespace]
    indent = _INDENT.fullmatch(whitespace)
    if indent is not None:
        if int(indent[1]) > WIDEST_INDENT:
            raise UnknownNameError(f"whitespace is {clip(whitespace)}; expected at most {WIDEST_INDENT} blanks a level")
        broken = (0, 0, GOES_ON)  # as `json.dumps(..., indent=n)` writes
        rows = (GOES_ON, 0, CLOSES), _NONE, (CLOSES, 0, GOES_ON), broken, _NONE, _ONE_BLANK
        return by_place(rows, int(indent[1]))
    found = intersect(regex_automaton(whitespace), regex_automaton(r"[ \t\n\r]*"))
    if found.is_empty:
        raise UnknownNameError(
            f"whitespace is {clip(whitespace)}, a pattern that matches no white space; expected {NAMES}, of blanks, tabs and line breaks"
        )
    return everywhere(found)
