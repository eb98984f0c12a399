"""LR parsing by the definitions: canonical LR(1) states merged by core, Lark's own analysis, and parsers on plain tuples."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from lark.common import ParserConf
from lark.grammar import NonTerminal
from lark.grammar import Rule as LarkRule
from lark.grammar import Terminal as LarkTerminal
from lark.parsers.lalr_analysis import LALR_Analyzer

from maskwright.analysis.grammar import Grammar
from maskwright.analysis.grammar.grammar import Conflicts
from maskwright.analysis.grammar.normalise import reduce
from maskwright.analysis.lr.automaton import build_automaton
from maskwright.analysis.lr.encoding import ACCEPT, LrTables
from maskwright.analysis.lr.lookaheads import lookaheads
from maskwright.analysis.lr.tables import tables_of

Item: TypeAlias = tuple[int, int]  # rule, dot; the root rule's number is -1
Item1: TypeAlias = tuple[int, int, int]  # with a look-ahead
Core: TypeAlias = frozenset[Item]
Stack: TypeAlias = tuple[int, ...]


@dataclass
class Machine:
    """For each state, named anyhow: where symbols lead, and which rules it reduces by before a terminal (-1 = accepts)."""

    start: object
    go: Mapping[object, Mapping[int, object]]
    reductions: Mapping[object, Mapping[int, set[int]]]


def unchecked_tables(grammar: Grammar, conflicts: Conflicts = "all") -> LrTables:
    """`build_lr_tables`, for grammars that it refuses as well."""
    automaton = build_automaton(reduce(grammar))
    return tables_of(automaton, lookaheads(automaton), conflicts)


def first_sets(grammar: Grammar) -> tuple[dict[int, set[int]], set[int]]:
    """FIRST of each symbol, and the nullable symbols."""
    first: dict[int, set[int]] = {t: {t} for t in range(grammar.n_terminals)}
    first |= {lhs: set() for lhs in grammar.rules_of}
    nullable: set[int] = set()
    while True:
        before = {symbol: set(s) for symbol, s in first.items()}, set(nullable)
        for rule in grammar.rules:
            for symbol in rule.rhs:
                first[rule.lhs] |= first[symbol]
                if symbol not in nullable:
                    break
            else:
                nullable.add(rule.lhs)
        if (first, nullable) == before:
            return first, nullable


def merged_lr1(grammar: Grammar) -> Machine:
    """The canonical LR(1) automaton of a reduced grammar, states with equal cores merged: LALR(1) by definition."""
    end = grammar.n_terminals
    first, nullable = first_sets(grammar)

    def body(rule: int) -> tuple[int, ...]:
        return (grammar.start,) if rule < 0 else grammar.rules[rule].rhs

    def closure(items: frozenset[Item1]) -> frozenset[Item1]:
        found = set(items)
        agenda = list(items)
        while agenda:
            rule, dot, lookahead = agenda.pop()
            if dot == len(body(rule)) or not grammar.is_nonterminal(body(rule)[dot]):
                continue
            after: set[int] = set()
            for symbol in body(rule)[dot + 1 :]:
                after |= first[symbol]
                if symbol not in nullable:
                    break
            else:
                after.add(lookahead)
            for number, other in enumerate(grammar.rules):
                if other.lhs == body(rule)[dot]:
                    for new in {(number, 0, t) for t in after} - found:
                        found.add(new)
                        agenda.append(new)
        return frozenset(found)

    def core(state: frozenset[Item1]) -> Core:
        return frozenset((rule, dot) for rule, dot, _ in state)

    start = closure(frozenset({(-1, 0, end)}))
    go: dict[object, dict[int, object]] = {}
    reductions: dict[object, dict[int, set[int]]] = {}
    seen = {start}
    agenda = [start]
    while agenda:
        state = agenda.pop()
        targets = go.setdefault(core(state), {})
        reduced = reductions.setdefault(core(state), {})
        moved: dict[int, set[Item1]] = {}
        for rule, dot, lookahead in state:
            if dot == len(body(rule)):
                reduced.setdefault(lookahead, set()).add(rule)
            else:
                moved.setdefault(body(rule)[dot], set()).add((rule, dot + 1, lookahead))
        for symbol, kernel in moved.items():
            target = closure(frozenset(kernel))
            targets[symbol] = core(target)
            if target not in seen:
                seen.add(target)
                agenda.append(target)
    return Machine(core(start), go, reductions)


class MendedAnalyzer(LALR_Analyzer):
    """Lark's analysis with `includes` as it is defined.

    Lark 1.3 lets every item of a state take part, also those whose dot has moved (A : x . A y, where only items A : . z should), and gets
    look-aheads that are not LALR(1)'s: some are too large, none too small.
    """

    def compute_includes_lookback(self) -> None:
        whole = {itemset: itemset.closure for itemset in self.lr0_itemsets}
        for itemset, closure in whole.items():
            itemset.closure = frozenset(item for item in closure if item.index == 0 or item.is_satisfied)
        super().compute_includes_lookback()  # type: ignore[no-untyped-call]
        for itemset, closure in whole.items():
            itemset.closure = closure


def lark_machine(grammar: Grammar, analyzer: type[LALR_Analyzer] = LALR_Analyzer) -> Machine:
    """Lark's automaton and look-aheads for the rules of a reduced grammar."""
    nonterminals = [NonTerminal(f"n{i}") for i in range(grammar.n_nonterminals)]
    symbols = [*(LarkTerminal(f"t{t}") for t in range(grammar.n_terminals)), *nonterminals]
    number = {symbol.name: i for i, symbol in enumerate(symbols)} | {"$END": grammar.n_terminals}
    rules = [
        LarkRule(nonterminals[r.lhs - grammar.n_terminals], [symbols[s] for s in r.rhs], order=i)
        for i, r in enumerate(grammar.rules)
    ]
    rule_number = {rule: i for i, rule in enumerate(rules)}
    analyser = analyzer(ParserConf(rules, {}, [symbols[grammar.start].name]))
    analyser.compute_lr0_states()
    analyser.compute_reads_relations()  # type: ignore[no-untyped-call]
    analyser.compute_includes_lookback()  # type: ignore[no-untyped-call]
    analyser.compute_lookaheads()  # type: ignore[no-untyped-call]
    (root,) = analyser.lr0_start_states.values()
    go: dict[object, dict[int, object]] = {}
    reductions: dict[object, dict[int, set[int]]] = {}
    for itemset in analyser.lr0_itemsets:
        go[itemset] = {number[s.name]: target for s, target in itemset.transitions.items()}
        reductions[itemset] = {number[s.name]: {rule_number[r] for r in rs} for s, rs in itemset.lookaheads.items()}
        if any(p.is_satisfied and p.rule.origin.name.startswith("$root") for p in itemset.closure):
            reductions[itemset].setdefault(grammar.n_terminals, set()).add(-1)
    return Machine(root, go, reductions)


def assert_same(tables: LrTables, machine: Machine, grammar: Grammar, *, may_reduce_more: bool = False) -> int:
    """The tables are the machine, up to the names of states. Returns by how many reductions the machine has more, if it may."""
    surplus = 0
    state_of: dict[object, int] = {machine.start: 0}
    agenda = deque([machine.start])
    nt = grammar.n_terminals
    while agenda:
        theirs = agenda.popleft()
        mine = state_of[theirs]
        for symbol, target in machine.go[theirs].items():
            if symbol < nt:
                shifts = [a - 1 for a in tables.actions(mine, symbol) if 0 < a < ACCEPT]
                assert len(shifts) == 1
                to = shifts[0]
            else:
                to = int(tables.goto[mine, symbol - nt])
            if target not in state_of:
                state_of[target] = to
                agenda.append(target)
            assert state_of[target] == to
        for column in range(nt + 1):
            actions = tables.actions(mine, column)
            assert any(0 < a < ACCEPT for a in actions) == (column < nt and column in machine.go[theirs])
            reduced = {-1 if a == ACCEPT else -a - 1 for a in actions if a < 0 or a == ACCEPT}
            expected = machine.reductions[theirs].get(column, set())
            assert reduced <= expected if may_reduce_more else reduced == expected
            surplus += len(expected) - len(reduced)
        assert (tables.goto[mine] >= 0).sum() == sum(symbol >= nt for symbol in machine.go[theirs])
    assert sorted(state_of.values()) == list(range(tables.n_states)), "not one to one"
    return surplus


class TooMany(Exception):
    """More stacks than a test can afford: the reductions have no end."""


def reduced_stacks(tables: LrTables, stacks: Iterable[Stack], column: int, limit: int = 2000) -> list[Stack]:
    """The stacks and all that reductions before a terminal make of them."""
    seen = dict.fromkeys(stacks)
    agenda = list(seen)
    for stack in agenda:  # grows while it is read
        for action in tables.actions(stack[-1], column):
            if action < 0:
                length = int(tables.rule_length[-action - 1])
                assert length < len(stack)
                base = stack[: len(stack) - length]
                state = int(tables.goto[base[-1], tables.rule_lhs[-action - 1]])
                assert state >= 0
                after = (*base, state)
                if after not in seen:
                    seen[after] = None
                    agenda.append(after)
                    if len(agenda) > limit:
                        raise TooMany
    return agenda


def reductions_end(tables: LrTables, stacks: Iterable[Stack], column: int, limit: int = 300) -> bool:
    """Whether there is no infinite sequence of reductions before a terminal: no cycle of stacks, and no more than `limit` of them."""
    after: dict[Stack, list[Stack]] = {}
    agenda = list(stacks)
    while agenda:
        stack = agenda.pop()
        if stack in after:
            continue
        if len(after) > limit:
            return False
        after[stack] = []
        for action in tables.actions(stack[-1], column):
            if action < 0:
                base = stack[: len(stack) - int(tables.rule_length[-action - 1])]
                after[stack].append((*base, int(tables.goto[base[-1], tables.rule_lhs[-action - 1]])))
        agenda += after[stack]
    while ended := {stack for stack, targets in after.items() if not any(target in after for target in targets)}:
        after = {stack: targets for stack, targets in after.items() if stack not in ended}
    return not after


def shift(tables: LrTables, stacks: Iterable[Stack], column: int) -> list[Stack]:
    """The stacks after a terminal."""
    found = [
        (*stack, action - 1)
        for stack in reduced_stacks(tables, stacks, column)
        for action in tables.actions(stack[-1], column)
        if 0 < action < ACCEPT
    ]
    return list(dict.fromkeys(found))


def accepts_end(tables: LrTables, stacks: Iterable[Stack]) -> bool:
    end = tables.n_terminals
    return any(ACCEPT in tables.actions(stack[-1], end) for stack in reduced_stacks(tables, stacks, end))


def all_words(n_terminals: int, max_length: int) -> Iterable[tuple[int, ...]]:
    return itertools.chain.from_iterable(itertools.product(range(n_terminals), repeat=n) for n in range(max_length + 1))


def first_loop(tables: LrTables, n_stacks: int) -> int | None:
    """How many stacks a parser with one action a cell comes to, in the order of the words it reads, until it reduces for ever.

    None: it does not on any of `n_stacks` stacks, or on all that there are.
    """
    seen: dict[Stack, None] = {(0,): None}
    agenda = list(seen)
    for number, start in enumerate(agenda):  # grows while it is read
        for column in range(tables.n_terminals + 1):
            stack, before = start, set()
            while (action := int(tables.action[stack[-1], column])) < 0:
                # a stack that comes back, or one with a state twice among those pushed since `start`
                if stack in before or len(stack) > len(start) + tables.n_states:
                    return number
                before.add(stack)
                base = stack[: len(stack) - int(tables.rule_length[-action - 1])]
                stack = (*base, int(tables.goto[base[-1], tables.rule_lhs[-action - 1]]))
            if 0 < action < ACCEPT and (after := (*stack, action - 1)) not in seen and len(agenda) < n_stacks:
                seen[after] = None
                agenda.append(after)
    return None
