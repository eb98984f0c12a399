"""Can a parser whose conflicts were decided still finish some text? In: LR actions, a stack.

Written from the definition, on the parser's own actions. For each LR state on top, the module
collects what the parser may come to do to the states below, until nothing is added.
`analysis.lr.live` decides the same on tables, before any text is parsed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

Stack: TypeAlias = "tuple[int, Stack | None]"
"""The LR state on top, and the stack below it."""
Outcome: TypeAlias = tuple[int, Hashable, Hashable] | None
"""(n, A, t): n states must be popped, then the parser pushes A, with t as the next terminal.

None: the text has been accepted.
"""

TopAndNext: TypeAlias = tuple[int, Hashable]
"""An LR state on top, and the next terminal."""


class Futures:
    """Decides from which stacks of an LR parser some text can be finished.

    shifts : LR state -> symbol -> the state after it, for terminals and nonterminals.
    reduces : LR state -> terminal -> pairs of the number of symbols to reduce and the nonterminal.
    terminals : all terminals, with the one for the end of the text.
    ended : the state after the end of the text.
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
        self.next_terminals = {
            state: [t for t in dict.fromkeys((*to, *reduces[state])) if t in is_terminal]
            for state, to in shifts.items()
        }
        self.outcomes: dict[TopAndNext, set[Outcome]] = {
            (s, t): set() for s, before in self.next_terminals.items() for t in before
        }
        self._readers: dict[TopAndNext, dict[TopAndNext, None]] = {node: {} for node in self.outcomes}
        agenda = dict.fromkeys(self.outcomes)
        while agenda:
            node = next(iter(agenda))
            del agenda[node]
            found = set(self._outcomes(node))
            if not found <= self.outcomes[node]:
                self.outcomes[node] |= found
                agenda.update(self._readers[node])

    def _outcomes(self, node: TopAndNext) -> Iterator[Outcome]:
        """The outcomes of a node, as far as those of the nodes above it are known so far."""
        state, terminal = node
        after = self.shifts[state].get(terminal)
        if after == self.ended:
            yield None
        elif after is not None:
            for before in self.next_terminals[after]:
                yield from self._above(node, (after, before))
        for length, symbol in self.reduces[state].get(terminal, ()):
            if length:
                yield length, symbol, terminal
            else:
                yield from self._above(node, (self.shifts[state][symbol], terminal))

    def _above(self, reader: TopAndNext, node: TopAndNext) -> Iterator[Outcome]:
        """The outcomes of the reader's node when another node is directly above its state."""
        seen = {node}
        agenda = [node]
        for one in agenda:  # grows during the loop
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
        """Whether the parser accepts some text from a stack, whichever terminal comes next."""
        agenda: list[tuple[Stack, TopAndNext]] = [
            (stack, (stack[0], terminal)) for terminal in self.next_terminals[stack[0]]
        ]
        seen = {(id(stack), node) for _, node in agenda}
        # INVARIANT: the state of a node is on top of the stack beside it
        for at, node in agenda:  # grows during the loop
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
