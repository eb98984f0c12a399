"""A `Grammar` of lowered rules and their terminals."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from maskwright.analysis.errors import LimitError
from maskwright.analysis.fronts.lowering import Body, Lowered
from maskwright.analysis.grammar.grammar import Grammar, Lexing, Rule, Terminal
from maskwright.analysis.marks import MOST_PARTS, PART_FLAGS, mark

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


def part_terminal(name: str, number: int, line: int = 0, column: int = 0) -> Terminal:
    """The terminal that is the mark of a part. line, column : see `Terminal`."""
    literal = mark(number).decode("utf-8", "surrogateescape")
    return Terminal(name, str(number), PART_FLAGS, literal, line=line, column=column)


def without_unused(grammar: Grammar) -> tuple[Grammar, list[int]]:
    """The grammar without terminals that neither a rule nor `ignored` has.

    Returns also the numbers of the parts that it has, which are numbered without gaps in it.

    Raises: LimitError if it has more than MOST_PARTS parts.
    """
    used = sorted({s for rule in grammar.rules for s in rule.rhs if s < grammar.n_terminals} | grammar.ignored)
    number = {old: new for new, old in enumerate(used)}
    number |= {grammar.n_terminals + i: len(used) + i for i in range(grammar.n_nonterminals)}
    terminals = [grammar.terminals[t] for t in used]
    parts = [at for at, one in enumerate(terminals) if one.flags == PART_FLAGS]
    if len(parts) > MOST_PARTS:
        raise LimitError(f"grammar {grammar.name} has {len(parts):,} parts, more than {MOST_PARTS:,}")
    found = [int(terminals[at].pattern or 0) for at in parts]
    for new, at in enumerate(parts):
        terminals[at] = part_terminal(terminals[at].name, new, terminals[at].line, terminals[at].column)
    made = replace(
        grammar,
        terminals=tuple(terminals),
        rules=tuple(Rule(number[rule.lhs], tuple(number[s] for s in rule.rhs)) for rule in grammar.rules),
        start=number[grammar.start],
        ignored=frozenset(number[t] for t in grammar.ignored),
    )
    return made, found
