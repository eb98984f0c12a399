"""Expressions as plain rules over terminals: which parts are terminals, and what stays a rule.

The largest regular parts of the rules become *leaves*; each is to be one terminal. A leaf whose
pattern is in `split` becomes rules over its own parts instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import NamedTuple

from maskwright.analysis.deadline import look
from maskwright.analysis.errors import LimitError
from maskwright.analysis.fronts.expressions import EMPTY, Expr, choice, sequence
from maskwright.analysis.nesting import on_own_stack

MAX_RULES = 50_000
"""The most rules."""
TERMINAL = "\0"
"""A reference whose name begins so is a terminal by itself."""
MAX_DEPTH = 60
"""The deepest nesting of a leaf."""


class Item(NamedTuple):
    """One symbol of a rule's body: a leaf by its pattern or name, or a nonterminal by its name."""

    is_leaf: bool
    key: str


Body = tuple[Item, ...]


class Lowered(NamedTuple):
    """Rules over leaves.

    bodies : for each nonterminal its rules' bodies, in order; the start symbol comes first.
    leaves : pattern -> the regular expression; it may match the empty text.
    optional : nonterminal -> the item that it is, or nothing.
    """

    bodies: dict[str, list[Body]]
    leaves: dict[str, Expr]
    optional: dict[str, Item]


def lower(rules: Mapping[str, Expr], split: Set[str], where: str) -> Lowered:
    """The rules over leaves.

    rules : their bodies; the first is that of the start symbol.
    split : patterns of leaves that are not to be terminals.
    where : what messages call the grammar.

    Raises: LimitError if there are more than MAX_RULES rules.
    """
    lowering = _Lowering(split, where)
    for name in rules:
        lowering.bodies[name] = []
    for name, expr in rules.items():
        look()
        lowering.base = name
        lowering.bodies[name] = lowering.alternatives(expr)
    return Lowered(lowering.bodies, lowering.leaves, lowering.optional)


def _flat(expr: Expr) -> list[Expr]:
    """The parts of a sequence, with the parts of those sequences in it that are not regular."""
    found: list[Expr] = []
    agenda = [expr]
    while agenda:
        one = agenda.pop()
        if one.kind == "sequence" and not one.is_regular:
            agenda += reversed(one.parts)
        else:
            found.append(one)
    return found


class _Lowering:
    """Makes the rules. base : the author's rule, after which new nonterminals are named."""

    def __init__(self, split: Set[str], where: str) -> None:
        self.split, self.where, self.base = split, where, ""
        self.bodies: dict[str, list[Body]] = {}
        self.leaves: dict[str, Expr] = {}
        self.optional: dict[str, Item] = {}
        self.known: dict[str, str] = {}
        self.n_rules = 0

    def is_leaf(self, expr: Expr) -> bool:
        """Whether an expression is to be a terminal, or a terminal or nothing."""
        return expr.pattern is not None and expr.pattern not in self.split and expr.depth <= MAX_DEPTH

    def leaf(self, expr: Expr) -> Item:
        """The item of a leaf."""
        self.leaves.setdefault(str(expr.pattern), expr)
        return Item(True, str(expr.pattern))

    def fresh(self, bodies: list[Body], expr: Expr | None = None) -> Item:
        """A new nonterminal with these rules. expr : a regular one is looked up and remembered."""
        name = f"{self.base} ({len(self.bodies)})"
        self.bodies[name] = bodies
        self.count(bodies)
        if len(bodies) == 2 and bodies[0] == () and len(bodies[1]) == 1:
            self.optional[name] = bodies[1][0]
        if expr is not None and expr.pattern is not None:
            self.known[expr.pattern] = name
        return Item(False, name)

    def count(self, bodies: list[Body]) -> None:
        """Counts rules and their symbols. Raises LimitError past MAX_RULES."""
        self.n_rules += sum(1 + len(body) // 8 for body in bodies)
        if self.n_rules > MAX_RULES:
            raise LimitError(
                f"grammar {self.where}: it unfolds to more than {MAX_RULES} rules, the last ones in rule {self.base!r}; "
                "make its repetitions smaller"
            )

    @on_own_stack
    def alternatives(self, expr: Expr) -> list[Body]:
        """The bodies of the rules of a nonterminal that matches what the expression matches."""
        if expr.is_never:
            return []
        if self.is_leaf(expr):
            return [self.symbols(expr)]
        if expr.kind != "choice":
            body = self.symbols(expr)
            self.count([body])
            return [body]
        options = list(expr.parts)
        if expr.pattern is None:
            regular = choice(option for option in options if option.is_regular)
            if not regular.is_never and self.is_leaf(regular):
                options = [regular, *(option for option in options if not option.is_regular)]
        found = [body for option in options for body in self.alternatives(option)]
        self.count(found)
        return list(dict.fromkeys(found))

    def symbols(self, expr: Expr) -> Body:
        """The items that match what the expression matches."""
        if expr is EMPTY:
            return ()
        if self.is_leaf(expr):
            return (self.leaf(expr),)
        if expr.kind == "reference":
            if expr.name.startswith(TERMINAL):
                self.leaves.setdefault(expr.name, expr)
                return (Item(True, expr.name),)
            return (Item(False, expr.name),)
        if expr.kind == "sequence":
            return self._sequence(expr)
        if expr.pattern is not None and expr.pattern in self.known:
            return (Item(False, self.known[expr.pattern]),)
        if expr.kind == "choice":
            return (self.fresh(self.alternatives(expr), expr),)
        if expr.kind == "repeat":
            return self._repeat(expr)
        raise AssertionError(expr.kind)  # a class is always a leaf

    def _sequence(self, expr: Expr) -> Body:
        """A sequence; neighbours that are regular become one leaf, unless it is to be split."""
        if expr.is_regular:
            return tuple(item for part in expr.parts for item in self.symbols(part))
        found: list[Item] = []
        run: list[Expr] = []
        for part in (*_flat(expr), None):
            if part is not None and part.is_regular:
                run.append(part)
                continue
            if run:
                found += self.symbols(sequence(run))
                run = []
            if part is not None:
                found += self.symbols(part)
        return tuple(found)

    def _repeat(self, expr: Expr) -> Body:
        body = expr.parts[0]
        unit = self.symbols(body)
        if len(unit) > 1:
            unit = (self.fresh([unit], body),)
        if expr.most is None:
            name = f"{self.base} ({len(self.bodies)})"
            many = self.fresh([])
            self.bodies[name] += [unit, (many, *unit)]
            if expr.least == 0:
                return (self.fresh([(), (many,)], expr),)
            found = (*unit * (expr.least - 1), many)
        else:
            found = unit * expr.least
            more: Body = ()
            for _ in range(expr.most - expr.least):
                more = (self.fresh([(), (*unit, *more)]),)
            found += more
        self.count([found])
        return found
