"""The oracle's answer to: can a parser whose conflicts were decided still come to the end of some text?

From the definition, on the parser's own actions: for a state on top all that it may come to do below itself is collected until nothing
is added. `analysis.lr.live` asks the same of tables, before anything is parsed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

Stack: TypeAlias = "tuple[int, Stack | None]"
Outcome: TypeAlias = tuple[int, Hashable, Hashable] | None
"""n, A, t: n states have been popped, A is to be pushed before the terminal t. None: the text has been accepted."""

Node: TypeAlias = tuple[int, Hashable]
"""A state on top, before a terminal."""


class Futures:
    """What stacks can come to.

    shifts : state -> symbol -> the state after it, terminals and nonterminals alike. reduces : state -> terminal -> how many symbols are
    reduced, and to what. ended : the state after the end of the text.
    """

    def __init__(
        self,
        shifts: Mapping[int, Mapping[Any, int]],
        reduces: Mapping[int, Mapping[Any, Sequence[tuple[int, Hashable]]]],
        terminals: Iterable[Hashable],
        ended: int,
    ) -> None:
        self.shifts, self.reduces, self.ended = shifts, reduces, ended
        is_terminal = frozenset(terminals)
        self.before = {
            state: [t for t in dict.fromkeys((*to, *reduces[state])) if t in is_terminal]
            for state, to in shifts.items()
        }
        self.outcomes: dict[Node, set[Outcome]] = {(s, t): set() for s, before in self.before.items() for t in before}
        self._readers: dict[Node, dict[Node, None]] = {node: {} for node in self.outcomes}
        agenda = dict.fromkeys(self.outcomes)
        while agenda:
            node = next(iter(agenda))
            del agenda[node]
            found = set(self._outcomes(node))
            if not found <= self.outcomes[node]:
                self.outcomes[node] |= found
                agenda.update(self._readers[node])

    def _outcomes(self, node: Node) -> Iterator[Outcome]:
        state, terminal = node
        after = self.shifts[state].get(terminal)
        if after == self.ended:
            yield None
        elif after is not None:
            for before in self.before[after]:
                yield from self._above(node, (after, before))
        for length, symbol in self.reduces[state].get(terminal, ()):
            if length:
                yield length, symbol, terminal
            else:
                yield from self._above(node, (self.shifts[state][symbol], terminal))

    def _above(self, reader: Node, node: Node) -> Iterator[Outcome]:
        """What becomes of the reader's state when the node is above it."""
        seen = {node}
        agenda = [node]
        for one in agenda:  # grows while it is read
            if one not in self.outcomes:
                continue
            self._readers[one][reader] = None
            for outcome in self.outcomes[one]:
                if outcome is None:
                    yield None
                elif outcome[0] > 1:
                    yield outcome[0] - 1, outcome[1], outcome[2]
                else:
                    pushed = self.shifts[reader[0]].get(outcome[1])
                    if pushed is not None and (pushed, outcome[2]) not in seen:
                        seen.add((pushed, outcome[2]))
                        agenda.append((pushed, outcome[2]))

    def is_live(self, stack: Stack) -> bool:
        """Whether some text is accepted from a stack, before whichever terminal."""
        agenda: list[tuple[Stack, Node]] = [(stack, (stack[0], terminal)) for terminal in self.before[stack[0]]]
        seen = {(id(stack), node) for _, node in agenda}
        for at, node in agenda:  # grows while it is read; the node's state is on top of `at`
            for outcome in self.outcomes.get(node, ()):
                if outcome is None:
                    return True
                n, symbol, terminal = outcome
                below: Stack | None = at
                for _ in range(n):
                    below = None if below is None else below[1]
                if below is None or symbol not in self.shifts[below[0]]:
                    continue
                pushed = self.shifts[below[0]][symbol]
                key = id(below), (pushed, terminal)
                if key not in seen:
                    seen.add(key)
                    agenda.append(((pushed, below), (pushed, terminal)))
        return False
