"""The tokens of a lexer state, in groups that require the same of the parser."""

from __future__ import annotations

from dataclasses import dataclass

from maskwright.analysis.arrays import Int32, Int64
from maskwright.maskstore.tokens.events import Move

LineBreak = tuple[tuple[int, ...], Move]
"""Symbols read before a newline that ends in the token, and what the token does to its column."""
LineBreaks = tuple[LineBreak, ...]

NO_LINE_BREAKS = 0


@dataclass(frozen=True)
class DepthCase:
    """A lexer state's tokens while a certain number of brackets is open.

    The tokens of group[i] are allowed where the parser accepts continuation group_continuation[i]
    behind line breaks group_line_breaks[i]. A group may occur more than once: one of its
    continuations is enough.

    line_breaks : the numbers of the lists of line breaks that occur, ascending.
    group_line_breaks : (n,) int32; the number of a list of line breaks.
    group_continuation : (n,) int32; a continuation, see `Continuations`.
    group : (n,) int32; a group, see `StateTokens`.
    """

    line_breaks: tuple[int, ...]
    group_line_breaks: Int32
    group_continuation: Int32
    group: Int32


@dataclass(frozen=True)
class StateTokens:
    """The groups of tokens that do the same in a lexer state, and its depth cases.

    members : (n_allowed,) int32; classes of tokens (`Requirements.classes`), sorted by group.
    member_start : (n_groups + 1,) int64; group i is members[member_start[i] : member_start[i + 1]].
    depth_cases : depth_cases[d] is for d open brackets, the last one for any more.
    """

    members: Int32
    member_start: Int64
    depth_cases: tuple[DepthCase, ...]
