"""Remedies that are tried before they are offered: the grammar is changed as they say and linted again.

A remedy is offered if there are fewer errors and warnings then, and no more errors. What only the author can do (to make two patterns
differ) is offered untried. What is information only is not counted, nor are conflicts, but those that leave a grammar without a store.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from maskwright.analysis.grammar.grammar import Grammar, Terminal
from maskwright.analysis.lr.splits import default_conflicts

MAX_TRIALS = 12
"""Grammars that are linted to try remedies, for all findings together; what comes after them is not offered."""

Counts = tuple[int, int]
"""Errors, warnings."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """text : what to do. changed : the grammar with it done, None if it cannot be."""

    text: str
    changed: Grammar | None


class Trials:
    """The remedies tried so far. count : how many errors and warnings a grammar has; None where its checks cannot all be run."""

    def __init__(self, grammar: Grammar, count: Callable[[Grammar], Counts | None]) -> None:
        self._grammar = grammar
        self._count = count
        self._before: Counts | None = None
        self._known: dict[Grammar, bool] = {}

    def helps(self, remedy: Remedy) -> bool:
        """Whether a remedy lowers the number of findings."""
        changed = remedy.changed
        if changed is None:
            return False
        if changed not in self._known:
            if len(self._known) == MAX_TRIALS:
                return False
            if self._before is None:
                self._before = self._count(self._grammar) or (0, 0)
            after = self._count(changed)
            self._known[changed] = after is not None and after[0] <= self._before[0] and sum(after) < sum(self._before)
        return self._known[changed]


def higher_priority(grammar: Grammar, terminal: int, above: list[int]) -> Remedy:
    """A terminal above some others."""
    priority = 1 + max(grammar.terminals[other].priority for other in above)
    terminals = list(grammar.terminals)
    terminals[terminal] = replace(terminals[terminal], priority=priority)
    name = terminals[terminal].name
    return Remedy(f"give {name} a higher priority ({name}.{priority})", replace(grammar, terminals=tuple(terminals)))


def contextual(grammar: Grammar) -> Remedy:
    """Only terminals compete that the parser can take."""
    options = "--lexing contextual"
    changed = None
    if grammar.lexing == "longest":
        changed = replace(grammar, lexing="contextual")
        changed = replace(changed, conflicts=default_conflicts(changed) if grammar.conflicts == "all" else "shift")
        if changed.conflicts != grammar.conflicts:
            options += " --conflicts shift"
    return Remedy(f"let only those terminals compete that the parser can take ({options})", changed)


def one_lexing(grammar: Grammar) -> Remedy:
    changed = replace(grammar, lexing="longest") if grammar.lexing == "contextual" else None
    return Remedy("let the same terminals compete everywhere (--lexing longest)", changed)


def one_action(grammar: Grammar) -> Remedy:
    changed = replace(grammar, conflicts="shift") if grammar.conflicts == "all" else None
    return Remedy("load the grammar with conflicts='shift' (--conflicts shift)", changed)


def ignored_blanks(grammar: Grammar) -> Remedy:
    """Blanks between lexemes."""
    text = 'let blanks stand between them (%ignore " ")'
    n = grammar.n_terminals
    if any(grammar.terminals[t].literal == " " for t in range(n)):
        return Remedy(text, None)

    def moved(symbol: int) -> int:
        return symbol + (symbol >= n)

    names = {terminal.name for terminal in grammar.terminals}
    blank = next(name for i in range(n + 1) if (name := f"BLANK_{i}") not in names)
    rules = tuple(replace(rule, lhs=moved(rule.lhs), rhs=tuple(map(moved, rule.rhs))) for rule in grammar.rules)
    changed = replace(
        grammar,
        terminals=(*grammar.terminals, Terminal(blank, " ", literal=" ")),
        rules=rules,
        start=moved(grammar.start),
        ignored=grammar.ignored | {n},
    )
    return Remedy(text, changed)
