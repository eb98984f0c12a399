"""Other rules for the same terminal language, from which the deciders prove more.

Lark expands ``[x]`` into separate rules, and ``x*`` into left-recursive helper rules. The language
is the same, but a decider must hold for *every* way to read a prefix. There are two rules for
``"{" [x] "}"``, and after ``{`` one of them refuses ``}``. Left-factoring and the removal of direct
left recursion leave one rule instead of several.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Literal

from maskwright.analysis.errors import GrammarError
from maskwright.analysis.grammar.grammar import Grammar, Rule
from maskwright.analysis.graphs import reachable

Rules = Literal["normalised", "lark"]
"""On which rules verdicts are made: as Lark expands them, or normalised here."""

Body = tuple[int, ...]

_MAX_ROUNDS = 8


def deriving(grammar: Grammar, given: Iterable[int]) -> frozenset[int]:
    """The symbols that derive some string of given symbols, these included.

    Cost: O(size of the grammar).
    """
    found = set(given)
    missing = [sum(symbol not in found for symbol in rule.rhs) for rule in grammar.rules]
    uses: dict[int, list[int]] = {}
    for number, rule in enumerate(grammar.rules):
        for symbol in rule.rhs:
            uses.setdefault(symbol, []).append(number)
    agenda = [rule.lhs for rule, count in zip(grammar.rules, missing, strict=True) if count == 0]
    while agenda:
        symbol = agenda.pop()
        if symbol in found:
            continue
        found.add(symbol)
        for number in uses.get(symbol, ()):
            missing[number] -= 1
            if missing[number] == 0:
                agenda.append(grammar.rules[number].lhs)
    return frozenset(found)


def productive_symbols(grammar: Grammar) -> frozenset[int]:
    """The symbols that derive some string of terminals."""
    return deriving(grammar, range(grammar.n_terminals))


def nullable_symbols(grammar: Grammar) -> frozenset[int]:
    """The nonterminals that derive the empty string, as symbol numbers."""
    return deriving(grammar, ())


def unproductive_cycle(grammar: Grammar, productive: frozenset[int]) -> tuple[int, ...]:
    """A cycle of unproductive symbols that the start symbol leads to.

    Each symbol needs the next one, and the last needs the first. A symbol without rules is a cycle
    of its own. The cycle begins with its least number.

    grammar : its start symbol is unproductive.
    productive : the grammar's productive symbols.
    """
    path: dict[int, None] = {}
    symbol = grammar.start
    while symbol not in path:
        path[symbol] = None
        rules = grammar.rules_of.get(symbol, ())
        symbol = next((s for rule in rules for s in rule.rhs if s not in productive), symbol)
    cycle = list(path)[list(path).index(symbol) :]
    first = cycle.index(min(cycle))
    return (*cycle[first:], *cycle[:first])


def reachable_symbols(grammar: Grammar) -> frozenset[int]:
    """The symbols that occur in a sentential form derived from the start symbol.

    Cost: O(size of the grammar).
    """
    rules_of = grammar.rules_of
    return frozenset(reachable([grammar.start], lambda s: [new for rule in rules_of.get(s, ()) for new in rule.rhs]))


def reduce(grammar: Grammar) -> Grammar:
    """The grammar without unproductive and unreachable nonterminals and without duplicate rules.

    The language is the same, and so are the terminals. A grammar that is reduced already, and whose
    nonterminals are numbered as `renumber` does, is returned itself.

    Raises: GrammarError if the start symbol is unproductive, that is, if the language is empty.
    """
    productive = productive_symbols(grammar)
    if grammar.start not in productive:
        name = grammar.symbol_name(grammar.start)
        raise GrammarError(
            f"grammar {grammar.name}: start symbol {name!r} is unproductive: no finite text can be derived from it; "
            f"give one of its rules an alternative that does not lead back to {name!r}"
        )
    kept = dict.fromkeys(rule for rule in grammar.rules if rule.lhs in productive and productive.issuperset(rule.rhs))
    if len(kept) < len(grammar.rules):
        grammar = grammar.with_rules(grammar.nonterminals, tuple(kept), grammar.start)
    reachable = reachable_symbols(grammar)
    rules = [rule for rule in grammar.rules if rule.lhs in reachable]
    order = dict.fromkeys([grammar.start, *(rule.lhs for rule in rules)])
    n_terminals = grammar.n_terminals
    if len(rules) == len(grammar.rules) and list(order) == [*range(n_terminals, n_terminals + grammar.n_nonterminals)]:
        return grammar
    return renumber(grammar, rules, {})


def renumber(grammar: Grammar, rules: Sequence[Rule], new_names: dict[int, str]) -> Grammar:
    """The grammar with just these rules.

    Nonterminals are numbered in the order of their first rule. The start symbol gets the first
    number.

    rules : productions over the old numbers.
    new_names : names of nonterminals whose numbers are past the grammar's own.
    """
    n_terminals = grammar.n_terminals
    order = dict.fromkeys([grammar.start, *(rule.lhs for rule in rules)])
    number = {old: n_terminals + new for new, old in enumerate(order)}
    number |= {terminal: terminal for terminal in range(n_terminals)}
    names = tuple(new_names.get(old) or grammar.symbol_name(old) for old in order)
    renamed = tuple(Rule(number[rule.lhs], tuple(number[s] for s in rule.rhs)) for rule in rules)
    return grammar.with_rules(names, renamed, number[grammar.start])


class _Rewriter:
    """Bodies of rules by their left-hand side, rewritten in place.

    Nonterminals with equal sets of tails share one new nonterminal.
    """

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.bodies: dict[int, list[Body]] = {lhs: [r.rhs for r in rules] for lhs, rules in grammar.rules_of.items()}
        self.names: dict[int, str] = {}
        self.taken = set(grammar.nonterminals)
        self.shared: dict[tuple[Body, ...], int] = {}
        self.next_number = grammar.n_terminals + grammar.n_nonterminals

    def fresh(self, base: int, suffix: str) -> int:
        """A new nonterminal's number; its name is that of `base` with the suffix and a count."""
        number = self.next_number
        self.next_number += 1
        base_name = self.names.get(base) or self.grammar.symbol_name(base)
        fresh_names = (f"{base_name}{suffix}{i}" for i in itertools.count())
        self.names[number] = next(name for name in fresh_names if name not in self.taken)
        self.taken.add(self.names[number])
        return number

    def remove_direct_left_recursion(self) -> None:
        """``A -> A a | b`` becomes ``A -> b R; R -> a R | (empty)``; ``A -> A`` is dropped."""
        for lhs in list(self.bodies):
            bodies = self.bodies[lhs]
            recursive = [body[1:] for body in bodies if body[:1] == (lhs,) and len(body) > 1]
            others = [body for body in bodies if body[:1] != (lhs,)]
            if not recursive:
                self.bodies[lhs] = [body for body in bodies if body != (lhs,)]
                continue
            repetition = self.fresh(lhs, "__rest")
            self.bodies[lhs] = [(*body, repetition) for body in others]
            self.bodies[repetition] = [*((*body, repetition) for body in recursive), ()]

    def left_factor(self) -> None:
        """Bodies of one nonterminal that begin alike share that beginning.

        ``A -> x a | x b`` becomes ``A -> x F; F -> a | b``.
        """
        self.shared.clear()  # merging may have renumbered the symbols of a tail
        agenda = list(self.bodies)
        while agenda:
            lhs = agenda.pop()
            by_first: dict[Body, list[Body]] = {}
            for body in dict.fromkeys(self.bodies[lhs]):
                by_first.setdefault(body[:1], []).append(body)
            factored: list[Body] = []
            for group in by_first.values():
                if len(group) == 1:
                    factored.append(group[0])
                    continue
                prefix = common_prefix(group)
                tails = tuple(sorted(body[len(prefix) :] for body in group))
                tail = self.shared.get(tails)
                if tail is None:
                    tail = self.shared[tails] = self.fresh(lhs, "__tail")
                    self.bodies[tail] = list(tails)
                    agenda.append(tail)
                factored.append((*prefix, tail))
            self.bodies[lhs] = factored

    def merge_equal_nonterminals(self) -> None:
        """Merge nonterminals with the same rules (after merging): they derive the same language."""
        representative = coarsest_congruence(self.bodies)
        merged: dict[int, list[Body]] = {}
        for lhs, bodies in self.bodies.items():
            if representative[lhs] == lhs:
                renamed = (tuple(representative.get(s, s) for s in body) for body in bodies)
                merged[lhs] = list(dict.fromkeys(renamed))
        self.bodies = merged

    def is_normal(self) -> bool:
        """Whether no rule begins with its left side, and no two of one nonterminal begin alike."""
        firsts = {lhs: [body[:1] for body in bodies] for lhs, bodies in self.bodies.items()}
        return all((lhs,) not in first and len(set(first)) == len(first) for lhs, first in firsts.items())

    def result(self) -> Grammar:
        """The rewritten grammar.

        The start symbol keeps its number through merging, because it is the least of its class.
        """
        rules = [Rule(lhs, body) for lhs, bodies in self.bodies.items() for body in bodies]
        return renumber(self.grammar, rules, self.names)


def common_prefix(bodies: Sequence[Body]) -> Body:
    """The longest common prefix of some bodies; there must be at least one."""
    shortest = min(bodies, key=len)
    for i, symbol in enumerate(shortest):
        if any(body[i] != symbol for body in bodies):
            return shortest[:i]
    return shortest


def coarsest_congruence(bodies: dict[int, list[Body]]) -> dict[int, int]:
    """The map from each nonterminal to the least nonterminal of its class.

    Two nonterminals are in one class if they have the same set of bodies once nonterminals of one
    class count as equal (partition refinement). They derive the same language, by induction on the
    height of the derivation tree.

    bodies : the bodies of each nonterminal's rules.
    """
    block = dict.fromkeys(bodies, 0)
    while True:
        signature = {
            lhs: (
                block[lhs],
                tuple(sorted({tuple((s in block, block.get(s, s)) for s in body) for body in alternatives})),
            )
            for lhs, alternatives in bodies.items()
        }
        numbering: dict[object, int] = {}
        refined = {lhs: numbering.setdefault(signature[lhs], len(numbering)) for lhs in bodies}
        if len(numbering) == len(set(block.values())):
            break
        block = refined
    least: dict[int, int] = {}
    for lhs in sorted(bodies):
        least.setdefault(refined[lhs], lhs)
    return {lhs: least[refined[lhs]] for lhs in bodies}


def normalise(grammar: Grammar) -> Grammar:
    """A grammar of the same terminal language with less choice between rules.

    The result is reduced. No rule begins with its own left side, no two rules of one nonterminal
    begin with the same symbol, and nonterminals with equal rules are merged. Merging can bring back
    what the other steps removed, as in ``A -> B x | c; B -> A x | c``. All steps are then repeated,
    at most `_MAX_ROUNDS` times. If that is not enough, the last merging is left out.

    Raises: GrammarError if the start symbol is unproductive.
    Cost: O(rounds n size) for n nonterminals; at most two rounds on grammars of programming
    languages.
    Source: Aho, Lam, Sethi, Ullman, Compilers (2nd ed.), 4.3.3 and 4.3.4.
    """
    rewriter = _Rewriter(reduce(grammar))
    for _ in range(_MAX_ROUNDS):
        rewriter.remove_direct_left_recursion()
        rewriter.left_factor()
        unmerged = dict(rewriter.bodies)
        rewriter.merge_equal_nonterminals()
        if rewriter.is_normal():
            return reduce(rewriter.result())
    rewriter.bodies = unmerged
    return reduce(rewriter.result())


def inline_unit_only(grammar: Grammar) -> Grammar:
    """The same language without nonterminals that occur only as the whole body of rules.

    Each such nonterminal is replaced by its own alternatives. Two terminals that are used alike,
    but through different wrappers (``break_stmt : BREAK``, ``continue_stmt : CONTINUE``), then
    stand in rules of one nonterminal. Each step removes one nonterminal, so the loop ends on mutual
    unit rules too.

    Raises: GrammarError if the start symbol is unproductive.
    Cost: O(n size) for n nonterminals.
    """
    grammar = reduce(grammar)
    bodies: dict[int, list[Body]] = {
        lhs: [rule.rhs for rule in rules if rule.rhs != (lhs,)] for lhs, rules in grammar.rules_of.items()
    }
    while True:
        inner = {s for alternatives in bodies.values() for body in alternatives if len(body) > 1 for s in body}
        unit_only = [lhs for lhs in bodies if lhs != grammar.start and lhs not in inner]
        target = next(iter(unit_only), None)
        if target is None:
            break
        replacement = bodies.pop(target)
        for lhs, alternatives in bodies.items():
            replaced = dict.fromkeys(_replace_unit(alternatives, target, replacement))
            bodies[lhs] = [body for body in replaced if body != (lhs,)]
    rules = [Rule(lhs, body) for lhs, alternatives in bodies.items() for body in alternatives]
    return reduce(renumber(grammar, rules, {}))


def _replace_unit(alternatives: Iterable[Body], target: int, replacement: Sequence[Body]) -> Iterable[Body]:
    for body in alternatives:
        if body == (target,):
            yield from replacement
        else:
            yield body
