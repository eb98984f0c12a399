"""Expressions as plain rules over terminals, and a `Grammar` of these.

The largest regular parts of the rules become *leaves*; each is to be one terminal. A leaf whose
pattern is in `split` becomes rules over its own parts instead.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from maskwright.analysis.deadline import look
from maskwright.analysis.errors import LimitError
from maskwright.analysis.fronts.expressions import EMPTY, Expr, choice, non_empty, sequence
from maskwright.analysis.fronts.llguidance_syntax import Atom
from maskwright.analysis.fronts.reading import Reader
from maskwright.analysis.grammar.grammar import Grammar, Lexing, Rule, Terminal
from maskwright.analysis.marks import MOST_PARTS, PART_FLAGS, mark
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
        body = non_empty(expr.parts[0])
        least = 0 if expr.parts[0].is_nullable else expr.least
        unit = self.symbols(body)
        if len(unit) > 1:
            unit = (self.fresh([unit], body),)
        # Copies are counted as in binary, the largest power first: 13 are 8 and 4 and 1. After each
        # copy what comes next decides, as in copies written out: one more, or the end.
        counted = (least - 1 if expr.most is None else expr.most).bit_length()
        powers = [unit]  # 1, 2, 4, ... copies
        while len(powers) < counted:
            powers.append((self.fresh([powers[-1] * 2]),))

        def copies(n: int) -> Body:
            return tuple(item for k in reversed(range(counted)) if n >> k & 1 for item in powers[k])

        @cache
        def some(most: int) -> Body:
            """The items that match 1 to `most` copies."""
            k = most.bit_length() - 1
            if k == 0:
                return unit
            fewer, more = some((1 << k) - 1), most - (1 << k)
            longer = [(*powers[k], *some(more))] if more else []
            return (self.fresh([fewer, powers[k], *longer]),)

        if expr.most is None:
            name = f"{self.base} ({len(self.bodies)})"
            many = self.fresh([])
            self.bodies[name] += [unit, (many, *unit)]
            if least == 0:
                return (self.fresh([(), (many,)], expr),)
            found = (*copies(least - 1), many)
        else:
            found = copies(least)
            if expr.most > least:
                found += (self.fresh([(), some(expr.most - least)]),)
        self.count([found])
        return found


# -- the grammar of lowered rules

MAX_VARIANTS = 3
"""Optional symbols of a body up to which it is written out with and without each."""


def assemble(
    lowered: Lowered,
    terminals: Sequence[Terminal],
    alternatives: Mapping[str, tuple[int, ...]],
    lexing: Lexing,
    name: str,
    text: str,
) -> Grammar:
    """The grammar of lowered rules. Its start symbol is their first nonterminal.

    alternatives : for each leaf the numbers of the terminals that its texts are.
    name, text : of the grammar.
    """
    symbols = _Symbols(lowered, len(terminals), alternatives)
    rules = [
        Rule(symbols.number[lhs], variant)
        for lhs, bodies in lowered.bodies.items()
        for body in bodies
        for variant in symbols.variants(body)
        if variant != (symbols.number[lhs],)
    ]
    return Grammar(
        name=name,
        terminals=tuple(terminals),
        nonterminals=tuple(symbols.number),
        rules=tuple(dict.fromkeys([*rules, *symbols.rules])),
        start=len(terminals),
        lexing=lexing,
        text=text,
        conflicts="all",
    )


class _Symbols:
    """Numbers of symbols.

    number : nonterminal -> its number. rules : those of nonterminals made here.
    """

    def __init__(self, lowered: Lowered, n_terminals: int, alternatives: Mapping[str, tuple[int, ...]]) -> None:
        self.lowered, self.n_terminals = lowered, n_terminals
        self.number = {name: n_terminals + i for i, name in enumerate(lowered.bodies)}
        self.rules: list[Rule] = []
        self.leaf: dict[str, int | None] = {}
        self.optional: dict[int, int] = {}
        one_of: dict[tuple[int, ...], int] = {}
        for key in lowered.leaves:
            found = alternatives[key]
            if len(found) > 1 and found not in one_of:
                one_of[found] = self._fresh("one of")
                self.rules += [Rule(one_of[found], (terminal,)) for terminal in found]
            self.leaf[key] = one_of[found] if len(found) > 1 else found[0] if found else None

    def _fresh(self, name: str) -> int:
        number = self.n_terminals + len(self.number)
        self.number[f"{name} ({len(self.number)})"] = number
        return number

    def variants(self, body: Body) -> list[tuple[int, ...]]:
        """A body over symbol numbers, with and without each symbol that may be left out."""
        leaves = self.lowered.leaves
        inner = [item if item.is_leaf else self.lowered.optional.get(item.key, item) for item in body]
        can_be_left_out = [
            item is not own or (item.is_leaf and leaves[item.key].is_nullable)
            for item, own in zip(inner, body, strict=True)
        ]
        is_written_out = sum(can_be_left_out) <= MAX_VARIANTS
        options: list[tuple[tuple[int, ...], ...]] = []
        for item, own, is_optional in zip(inner, body, can_be_left_out, strict=True):
            if item is not own and not is_written_out:
                options.append(((self.number[own.key],),))
                continue
            symbol = self.leaf[item.key] if item.is_leaf else self.number[item.key]
            if symbol is None:
                options.append(((),))  # it has no text but the empty one
            elif not is_optional:
                options.append(((symbol,),))
            elif is_written_out:
                options.append(((symbol,), ()))
            else:
                options.append(((self._or_nothing(symbol),),))
        return [tuple(itertools.chain(*chosen)) for chosen in itertools.product(*options)]

    def _or_nothing(self, symbol: int) -> int:
        if symbol not in self.optional:
            new = self.optional[symbol] = self._fresh("optional")
            self.rules += [Rule(new, ()), Rule(new, (symbol,))]
        return self.optional[symbol]


# -- other languages inside


class HostGrammar(NamedTuple):
    """A grammar, and the parts for which its marks (`analysis.marks`) stand, by number."""

    grammar: Grammar
    parts: tuple[Atom, ...] = ()

    def alone(self) -> Grammar:
        """The grammar. Raises: GrammarError, with the place, if it has parts."""
        if self.parts:
            raise Reader(self.grammar.text, self.grammar.name).error(
                f"{_named(self.parts[0])} makes this a composition of languages and no grammar alone; read it with "
                "mw.read_constraint",
                self.parts[0].at,
            )
        return self.grammar


def part_terminals(reader: Reader, parts: Collection[Atom]) -> list[Terminal]:
    """The terminals that are the marks of parts, which are numbered as they come."""
    places = [reader.place(part.at) for part in parts]
    return [
        part_terminal(f"{_named(part)} ({line}:{column})", number, line, column)
        for number, (part, (line, column)) in enumerate(zip(parts, places, strict=True))
    ]


def _named(part: Atom) -> str:
    """A part as its author wrote it, as far as that is short."""
    if part.text == "max_tokens":
        return f"{part.value[0]}[max_tokens={part.value[2]}]"
    return {"token": part.last[:60], "grammar": f"@{part.value}"}.get(part.text, f"%{part.text}")


def part_terminal(name: str, number: int, line: int = 0, column: int = 0) -> Terminal:
    """The terminal that is the mark of a part. line, column : see `Terminal`."""
    literal = mark(number).decode("utf-8", "surrogateescape")
    return Terminal(name, str(number), PART_FLAGS, literal, line=line, column=column)


def without_unused(grammar: Grammar, parts: Iterable[Atom]) -> HostGrammar:
    """The grammar without terminals that neither a rule nor `ignored` has, and the parts it has.

    parts : by the numbers that they have in the grammar given.

    Raises: LimitError if it has more than MOST_PARTS parts.
    """
    used = sorted({s for rule in grammar.rules for s in rule.rhs if s < grammar.n_terminals} | grammar.ignored)
    number = {old: new for new, old in enumerate(used)}
    number |= {grammar.n_terminals + i: len(used) + i for i in range(grammar.n_nonterminals)}
    terminals = [grammar.terminals[t] for t in used]
    marks = [at for at, one in enumerate(terminals) if one.flags == PART_FLAGS]
    if len(marks) > MOST_PARTS:
        raise LimitError(f"grammar {grammar.name} has {len(marks):,} parts, more than {MOST_PARTS:,}")
    atoms = list(parts)
    left = tuple(atoms[int(terminals[at].pattern or 0)] for at in marks)
    for new, at in enumerate(marks):
        terminals[at] = part_terminal(terminals[at].name, new, terminals[at].line, terminals[at].column)
    made = replace(
        grammar,
        terminals=tuple(terminals),
        rules=tuple(Rule(number[rule.lhs], tuple(number[s] for s in rule.rhs)) for rule in grammar.rules),
        start=number[grammar.start],
        ignored=frozenset(number[t] for t in grammar.ignored),
    )
    return HostGrammar(made, left)
