"""Remedies that are tried before they are offered: the changed grammar is linted again.

A remedy is offered if it lowers the number of errors and warnings together and does not raise the
number of errors. What only the author can do, such as making two patterns differ, is offered
untried. Informational findings do not count. Conflicts do not count either, except those that leave
a grammar without a store.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from maskwright.analysis.grammar.grammar import Grammar, Terminal
from maskwright.analysis.lr.splits import default_conflicts

MAX_TRIALS = 12
"""Changed grammars that are linted for all findings together. Later remedies are not offered."""

Counts = tuple[int, int]
"""Number of errors, number of warnings."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """Something that may help.

    text : what to do.
    changed : the grammar with the remedy applied; None if it cannot be applied.
    """

    text: str
    changed: Grammar | None


class Trials:
    """The remedies tried so far.

    grammar : as it is.
    count : returns the errors and warnings of a grammar, or None if its checks cannot all be run.
    """

    def __init__(self, grammar: Grammar, count: Callable[[Grammar], Counts | None]) -> None:
        self._grammar = grammar
        self._count = count
        self._before: Counts | None = None
        self._known: dict[Grammar, bool] = {}

    def helps(self, remedy: Remedy) -> bool:
        """Whether a remedy lowers the number of errors and warnings without adding errors.

        False too if it cannot be applied, or once MAX_TRIALS grammars have been linted.
        """
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
    """Give a terminal a higher priority than some others."""
    priority = 1 + max(grammar.terminals[other].priority for other in above)
    terminals = list(grammar.terminals)
    terminals[terminal] = replace(terminals[terminal], priority=priority)
    name = terminals[terminal].name
    return Remedy(f"give {name} a higher priority ({name}.{priority})", replace(grammar, terminals=tuple(terminals)))


def contextual(grammar: Grammar) -> Remedy:
    """Let only those terminals compete that the parser can take. For lexing "longest" only."""
    text = "let only those terminals compete that the parser can take (--lexing contextual"
    if grammar.lexing != "longest":
        return Remedy(f"{text})", None)
    changed = replace(grammar, lexing="contextual")
    changed = replace(changed, conflicts=default_conflicts(changed) if grammar.conflicts == "all" else "shift")
    more = " --conflicts shift" if changed.conflicts != grammar.conflicts else ""
    return Remedy(f"{text}{more})", changed)


def one_lexing(grammar: Grammar) -> Remedy:
    """Let the same terminals compete everywhere. For lexing "contextual" only."""
    changed = replace(grammar, lexing="longest") if grammar.lexing == "contextual" else None
    return Remedy("let the same terminals compete everywhere (--lexing longest)", changed)


def one_action(grammar: Grammar) -> Remedy:
    """Let the parser shift rather than reduce. For conflicts "all" only."""
    changed = replace(grammar, conflicts="shift") if grammar.conflicts == "all" else None
    return Remedy("load the grammar with conflicts='shift' (--conflicts shift)", changed)


def ignored_blanks(grammar: Grammar) -> Remedy:
    """Let blanks stand between lexemes. Not if the grammar has a blank as a terminal."""
    text = 'let blanks stand between them (%ignore " ")'
    n = grammar.n_terminals
    if any(terminal.literal == " " for terminal in grammar.terminals):
        return Remedy(text, None)

    def moved(symbol: int) -> int:
        return symbol + (symbol >= n)

    names = {terminal.name for terminal in grammar.terminals}
    blank = next(name for i in range(n + 1) if (name := f"BLANK_{i}") not in names)
    changed = replace(
        grammar,
        terminals=(*grammar.terminals, Terminal(blank, " ", literal=" ")),
        rules=tuple(replace(rule, lhs=moved(rule.lhs), rhs=tuple(map(moved, rule.rhs))) for rule in grammar.rules),
        start=moved(grammar.start),
        ignored=grammar.ignored | {n},
    )
    return Remedy(text, changed)
