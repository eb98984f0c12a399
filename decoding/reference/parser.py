"""LR parsing in plain Python, on stacks that several readings share.

A stack is a linked list of LR states. Equal stacks of a parser are one object, so what a terminal
does to a stack is worked out once. Where a cell of the tables has several actions, all of them are
followed, on several stacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from maskwright.analysis.errors import LimitError
from maskwright.analysis.lr.encoding import ACCEPT, CONFLICT, ERROR, LrTables

MOST_STACKS = 10_000
"""Stacks after one terminal above which a text counts as too ambiguous, by default."""
MOST_AT_ONCE = 65_536
"""Stacks that reductions before one terminal may make, of all stacks together."""


class Stack:
    """A parser stack. Compare with `is`; `push` makes them.

    top : the LR state on top.
    below : the stack under it; None at the bottom.
    pushed : the known stacks with one more state, by that state.
    after : what is known of terminals on this stack, by their columns.
    """

    __slots__ = ("after", "below", "pushed", "top")

    def __init__(self, top: int, below: Stack | None) -> None:
        self.top = top
        self.below = below
        self.pushed: dict[int, Stack] = {}
        self.after: dict[int, Shifted] = {}

    def push(self, state: int) -> Stack:
        """The stack with one more state on top."""
        found = self.pushed.get(state)
        if found is None:
            found = self.pushed[state] = Stack(state, self)
        return found

    def states(self) -> list[int]:
        """The LR states, from the bottom."""
        found = []
        here: Stack | None = self
        while here is not None:
            found.append(here.top)
            here = here.below
        return found[::-1]


Stacks = tuple[Stack, ...]


class Shifted(NamedTuple):
    """What becomes of stacks before a terminal.

    stacks : those after it; `ENDED` is one of them if the whole text is accepted. () if the
        terminal is refused.
    refusing : those that refuse it, after all possible reductions.
    dead : those of them that could shift it, but then no text could be completed.
    """

    stacks: Stacks
    refusing: Stacks
    dead: Stacks = ()


ENDED = Stack(-1, None)
"""Stands for a stack after the parser has accepted the whole text."""


class Parser:
    """The parser that some tables describe.

    Default reductions are done whatever comes next, even where no terminal fits.

    tables : their columns are the terminals here, and the last one the end of the text.
    name : of the grammar, for messages.
    most : stacks after one terminal above which a text counts as too ambiguous.
    advice : what to do about that, for messages.
    is_cut : whether stacks past the limits are left out, without an error.
    is_dead : whether no text can be completed once a stack shifts to a state; None if there are no
        dead ends.
    start : the stack before the text.
    """

    def __init__(
        self,
        tables: LrTables,
        name: str,
        most: int = MOST_STACKS,
        *,
        advice: str = "make its rules less ambiguous",
        is_cut: bool = False,
        is_dead: Callable[[Stack, int], bool] | None = None,
    ) -> None:
        self.tables = tables
        self._name, self._most, self._advice = name, most, advice
        self._is_cut, self._is_dead = is_cut, is_dead
        self._most_at_once = most if is_cut else MOST_AT_ONCE
        self._action: list[list[int]] = tables.action.tolist()
        self._goto: list[list[int]] = tables.goto.tolist()
        self._default_rule: list[int] = tables.default_rule.tolist()
        self._rule_lhs: list[int] = tables.rule_lhs.tolist()
        self._rule_length: list[int] = tables.rule_length.tolist()
        self.end_column = tables.n_terminals
        self.start = Stack(0, None)

    def shift(self, stacks: Sequence[Stack], column: int) -> Shifted:
        """What becomes of some stacks before a terminal.

        column : of the terminal in the tables, or `end_column`; -1 if no state takes it.

        Raises: LimitError if the text has too many readings.
        Cost: O(reductions), once for each stack and terminal.
        """
        if len(stacks) == 1 and (known := stacks[0].after.get(column)) is not None:
            return known
        room = [self._most_at_once]
        parts = [self._shift(stack, column, room) for stack in stacks]
        if len(parts) == 1:
            return parts[0]
        found = Shifted(*(tuple(dict.fromkeys(one for part in parts for one in part[i])) for i in range(3)))
        return found._replace(stacks=found.stacks[: self._most]) if self._is_past(len(found.stacks)) else found

    def shift_all(self, stacks: Sequence[Stack], columns: Iterable[int]) -> Stacks:
        """The stacks after several terminals; () if they are refused.

        columns : of the terminals, as in `shift`.

        Raises: as `shift`.
        """
        found = tuple(stacks)
        for column in columns:
            found = self.shift(found, column).stacks
        return found

    def accepts_end(self, stacks: Sequence[Stack]) -> bool:
        """Whether the text may end with some of these stacks. Raises: as `shift`."""
        return bool(self.shift(stacks, self.end_column).stacks)

    def _shift(self, stack: Stack, column: int, room: list[int]) -> Shifted:
        """What becomes of one stack.

        room : one number, the stacks that reductions may still make; it becomes less.
        """
        known = stack.after.get(column)
        if known is not None:
            return known
        found: dict[Stack, None] = {}
        refusing: dict[Stack, None] = {}
        dead: dict[Stack, None] = {}
        agenda = [stack]
        seen = {stack}
        is_cut = False
        while agenda and not is_cut:
            here = agenda.pop()
            actions = self._actions(here.top, column)
            if not actions:
                refusing[here] = None
            for action in actions:
                if action == ACCEPT:
                    found[ENDED] = None
                elif action < 0:
                    after = self._reduced(here, -action - 1)
                    if after not in seen:
                        seen.add(after)
                        agenda.append(after)
                elif self._is_dead is not None and self._is_dead(here, action - 1):
                    refusing[here] = dead[here] = None
                else:
                    found[here.push(action - 1)] = None
            is_cut = self._is_past(len(found), len(seen) - room[0])
        room[0] -= len(seen)
        shifted = Shifted(tuple(found)[: self._most], tuple(refusing), tuple(dead))
        if not is_cut:
            stack.after[column] = shifted
        return shifted

    def _actions(self, state: int, column: int) -> tuple[int, ...]:
        if state < 0:  # nothing comes after `ENDED`
            return ()
        default = self._default_rule[state]
        if default >= 0:
            return (-default - 1,)
        action = self._action[state][column] if column >= 0 else ERROR
        if action >= CONFLICT:
            return self.tables.actions(state, column)
        return () if action == ERROR else (action,)

    def _reduced(self, stack: Stack, rule: int) -> Stack:
        """The stack after a reduction."""
        here = stack
        for _ in range(self._rule_length[rule]):
            assert here.below is not None  # INVARIANT: a rule's symbols are on the stack when it is reduced
            here = here.below
        return here.push(self._goto[here.top][self._rule_lhs[rule]])

    def _is_past(self, n: int, n_past: int = 0) -> bool:
        """Whether there are too many stacks, and those past the limit are to be left out.

        n : the stacks after a terminal.
        n_past : by how many the reductions before it have made too many.

        Raises: LimitError if there are too many, and none may be left out.
        """
        if not self._is_cut and n > self._most:
            raise LimitError(
                f"grammar {self._name} has more than {self._most} readings of the text: their number grows with its length; "
                + self._advice
            )
        if not self._is_cut and n_past > 0:
            raise LimitError(
                f"grammar {self._name} takes more than {self._most_at_once} steps to read one terminal; {self._advice}"
            )
        return n > self._most or n_past > 0


__all__ = ["ENDED", "Parser", "Shifted", "Stack", "Stacks"]
