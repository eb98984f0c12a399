"""A parser on stacks of which only the top part is known: what it can do before it needs the rest.

A *fragment* is such a part: states, the top last. On it the parser shifts and reduces as always,
until a reduction pops the whole fragment. That reduction is *pending*: it pops some more states,
which are not known, and pushes a nonterminal on the one below them.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from maskwright.analysis.deadline import look
from maskwright.analysis.lr.encoding import ACCEPT, LrTables

MAX_FRAGMENTS = 1 << 13
"""The most fragments that reading one terminal leads to. Only conflicts make several."""

Fragment = tuple[int, ...]


class TooManyFragmentsError(Exception):
    """A terminal is read on more than MAX_FRAGMENTS fragments: the grammar is too ambiguous."""


class Reading(NamedTuple):
    """What becomes of a fragment when the parser reads a terminal, with all actions followed.

    shifted : the fragments after the shift.
    pending : the reductions that pop the whole fragment: how many states below it they pop, too,
        and the index of the nonterminal that they push on the state below these.
    """

    shifted: tuple[Fragment, ...]
    pending: tuple[tuple[int, int], ...]


class Fragments:
    """Reads terminals on fragments of one parser's stacks, each question once.

    read : (fragment, column) -> `Reading`. Neither is there where the terminal is refused whatever
        lies below. Raises: TooManyFragmentsError.
    """

    def __init__(self, tables: LrTables) -> None:
        # PERF: single entries of lists take a third of the time that those of arrays take
        self._lengths: list[int] = tables.rule_length.tolist()
        self._symbols: list[int] = tables.rule_lhs.tolist()
        self.goto: list[list[int]] = tables.goto.tolist()
        self._actions = cache(tables.actions)
        self.read = cache(self._read)

    def _read(self, fragment: Fragment, column: int) -> Reading:
        shifted: dict[Fragment, None] = {}
        pending: dict[tuple[int, int], None] = {}
        met = {fragment: None}
        agenda = [fragment]
        for stack in agenda:  # grows while it is read
            look()
            for action in self._actions(stack[-1], column):
                if 0 < action < ACCEPT:
                    shifted[(*stack, action - 1)] = None
                elif action < 0:
                    kept, symbol = len(stack) - self._lengths[-action - 1], self._symbols[-action - 1]
                    if kept <= 0:
                        pending[-kept, symbol] = None
                        continue
                    after = (*stack[:kept], self.goto[stack[kept - 1]][symbol])
                    if after[-1] >= 0 and after not in met:
                        met[after] = None
                        agenda.append(after)
            if len(agenda) > MAX_FRAGMENTS:
                raise TooManyFragmentsError
        return Reading(tuple(shifted), tuple(pending))
