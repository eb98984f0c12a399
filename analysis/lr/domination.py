"""Superfluous actions of ambiguous grammars: another action of the cell does all that they can.

A parser that follows all actions of conflicts reads ``1+1+1+1`` with `e : e "+" e | N` on as many
stacks as there are ways to begin to bracket it. A mask asks for one thing only: what can come next.
So all stacks but one can be left out. The one that we keep is the one on which everything is
reduced that can be reduced. Three relations of stacks justify this. A stack is written as its
symbols; the states follow from them.

**Contraction.** Let p be a state, and P any stack with p on top. Let c be the state after P G,
where G are one or more symbols. For a nonterminal C the stack P G C T *contracts* to P C T (T: any
symbols) if C is in a set K of nonterminals with the following property. For each C of K let
u = goto(c, C) and u' = goto(p, C), which must exist. Every kernel item of u must be

(a) A -> C . w, its rule begun in c, where A is expected in p too (A is in p's closure) and is in K;
    or
(b) A -> G' C . with |G'| = |G|, its rule begun in p, where A in p can only become C: A is C, or the
    only kernel item of goto(p, A) is some B -> A . and B can only become C (a *chain*); or
(c) A -> G' C . w with |G'| = |G| and w not empty, where there is a rule B -> C w and A in p can
    only become B.

Lemma 1. Suppose that S contracts to S', and that the LR(0) parser, which reduces whatever comes,
can read a terminal t on S (some reductions, then a shift) or accept, in n steps. Then it can do the
same on S' in at most n steps, and the resulting stacks contract or are equal.

Proof, by induction on n. Consider an item of the state on top of S. If its rule began above c, or
in c by (a), the item is in the state on top of S' as well. If it is an item of (c), its counterpart
is there, the item of B -> C w. Both follow by induction over T, because what a state's closure adds
depends on what comes after its dots. So

- (1) a shift on S is a shift on S', and the stacks contract with T one longer;
- (2) a reduction that pops a part of T is a reduction on S', and the stacks contract with another
  T;
- (3) a reduction by A -> C T leads to P G A and P A, which contract, as A is in K;
- (4) a reduction of (b) needs an empty T and leads to P A; then nothing is possible but the
  reductions of the chain, which lead to P C = S';
- (5) a reduction of (c) leads to P A and by a chain to P B, to which the counterpart's reduction
  leads in one step.

An acceptance needs a stack of one symbol. S has more, so an acceptance comes after (4) or (5).
There is no other step. QED.

**Simulation.** s <= s' is the greatest relation of states such that

- for each symbol X with a transition from s there is one from s', and delta(s, X) <= delta(s', X);
- for each rule completed in s a rule of equal left side and length is completed in s'; and
- s' accepts if s does.

Take two stacks of equal length such that each state of the one is <= the state at the same height
of the other. For them Lemma 1 holds with equal numbers of steps.

**Covering.** A terminal t *continues* if there are symbols w such that each rule with t in it is A
-> u t w, with t neither in u nor in w, and has a *companion*, the rule A -> u. (The ``else`` of C
does: ``S : if c S else S`` has the companion ``S : if c S``.) Let q complete A -> u and shift t. If
A -> u t w is a rule, its item is in q too, since both rules began together. Let q be on top of a
stack Q u. Suppose that from Q A the LR(0) parser comes, by reductions alone, to a stack on which it
can shift t: some W v, for rules B -> v t w and B -> v. Then W v t T *is covered by* Q u t T (T: any
symbols).

Lemma 2. If S is covered by S' and the LR(0) parser can read a terminal on S or accept, it can do
the same on S', in some number of steps, and the resulting stacks are covered in the same way or are
equal.

Proof. Behind t both stacks expect w and nothing else, so each step within T is the same on both.
Once w is whole, S becomes W B and S' becomes Q A. From Q A the reductions above lead to W v, and
the companion leads to W B. QED.

**What is pruned.** Let state q complete r: A -> G B, |G| > 0, and let another action share a cell
with r.

(1) Suppose that for all p from which G B leads to q, the stack P G B contracts to P B, and A in p
    can only become B. Then only r is kept in the cell.
(2) Suppose that q completes another rule r2: A2 -> w of the same length as a rule r1: A1 -> w. For
    each p from which w leads to q, let C2 be the last nonterminal on the chain of A2 in p. If
    always goto(p, C2) <= goto(p, C1) for some C1 on the chain of A1 in p, then r2 is dropped where
    r1 is kept.
(3) If r is A -> u and q shifts a t that continues, by A -> u t w, then r is dropped before t,
    unless (1) drops the shift.

Theorem. The pruned parser reads the same texts as the LR(0) parser, and after each of them it can
read the same terminals.

Proof. Let R be the reflexive and transitive closure of contraction, simulation and covering. If
S R S', then by the lemmas the LR(0) parser can read on S' whatever it can read on S.

Claim: if the LR(0) parser can read t on S in n steps, coming to S1, then the pruned parser can read
t on S, coming to some S2 with S1 R S2. The proof is by induction on (n, |S|). If the first step was
not dropped, n - 1 steps are left. Otherwise the first step is a dropped action:

- Dropped by (3): the shift, which is kept, leads from S = Q u to Q u t, by which S1 is covered. How
  many steps S1 takes does not matter, since the claim is about one terminal.
- Dropped by (1): the kept r and the chain lead from S = P G B to P B. By Lemma 1 the LR(0) parser
  can read t on P B in at most n steps, and P B is shorter than S.
- Dropped by (2): the kept r1 and its chain lead to a stack on which the remaining steps, at most
  n - 1, can be done. Where (3) drops r1, the case of (3) applies to r1.

Cells of chains have one action and are never pruned. So the induction holds.

LALR(1) lookahead sets never lack an action that leads to a shift of t, so the parser with lookahead
sets and the LR(0) parser read the same. By induction over the text, each stack of the LR(0) parser
is related by R to a stack of the pruned parser. And the pruned parser does nothing that the other
cannot do. QED.

Where the parser's state decides how a text is lexed (`exact_tops`), we prune less: the states on
top must be the same after each terminal. The first two relations then require
delta(u, X) = delta(u', X), and the third requires that t leads to one state only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np

from maskwright.analysis.deadline import look
from maskwright.analysis.grammar.grammar import Rule
from maskwright.analysis.graphs import reachable
from maskwright.analysis.lr.automaton import Automaton
from maskwright.analysis.lr.bisimulation import Partition, Rows, write_tables
from maskwright.analysis.lr.encoding import ACCEPT, CONFLICT, Alternatives, LrTables

Base = tuple[int, int]
"""The states p, where a rule's body begins, and c, before the last symbol of the body."""

MAX_PAIRS = 20_000
"""The most pairs of states looked at to compare one pair; past it we assume that they differ."""


def prune(automaton: Automaton, tables: LrTables) -> LrTables:
    """The tables without superfluous actions, and without states that only such actions lead to.

    tables : all actions of the automaton (`tables_of`). The grammar must not be endless (`loops`).

    Cost: nothing without conflicts; else O(conflicting rules * states), and the pairs of states
        that are compared.
    """
    if not tables.n_conflicts:
        return tables
    domination = Domination(automaton)
    cells = tables.action.copy()
    alternatives = Alternatives()
    kept: dict[tuple[int, int], int] = {}
    for state, column in zip(*(found.tolist() for found in np.nonzero(tables.action >= CONFLICT)), strict=True):
        key = state, int(tables.action[state, column])
        if key not in kept:
            kept[key] = alternatives.encode(domination.kept(state, tables.actions(state, column)))
        cells[state, column] = kept[key]
    fewer = replace(tables, action=cells, alternatives=np.array(alternatives.values, np.int32))
    actions = [_actions(fewer, state) for state in range(tables.n_states)]
    goto = tables.goto.copy()
    # nothing is ever pushed on states that only reduce, by rules that are not empty
    goto[[bool(row) and all(a < 0 and tables.rule_length[-a - 1] for a in row) for row in actions]] = -1

    def after(state: int) -> list[int]:
        return [*goto[state][goto[state] >= 0].tolist(), *(a - 1 for a in actions[state] if 0 < a < ACCEPT)]

    reached = np.array(sorted(reachable([0], after)), np.int32)
    number = np.full(tables.n_states, -1, np.int32)
    number[reached] = np.arange(len(reached), dtype=np.int32)
    rows = Rows.of_tables(replace(fewer, goto=goto))
    return write_tables(rows, Partition.of_states(number, rows))


def _actions(tables: LrTables, state: int) -> set[int]:
    """The plain actions of a state, before any terminal."""
    _, columns = np.unique(tables.action[state], return_index=True)
    return {action for column in columns.tolist() for action in tables.actions(state, column)}


class Domination:
    """Which actions of a cell another action makes superfluous, as the module defines it."""

    def __init__(self, automaton: Automaton) -> None:
        self.automaton = automaton
        grammar = automaton.grammar
        self.exact_tops = grammar.lexing == "contextual" or bool(grammar.verbatim)
        self.items = automaton.items
        self.rules = automaton.grammar.rules
        self.n_terminals = automaton.grammar.n_terminals
        self._bodies = {(rule.lhs, rule.rhs) for rule in self.rules}
        self._bases: dict[int, dict[int, list[Base]]] = {}
        self._contracts = cache(self.contracts)
        self._simulates: dict[tuple[int, int], bool] = {}
        self._uses: dict[int, list[Rule]] = {}
        for rule in self.rules:
            for symbol in set(rule.rhs):
                self._uses.setdefault(symbol, []).append(rule)
        self._companions_of = cache(self._find_companions)

    def kept(self, state: int, actions: tuple[int, ...]) -> tuple[int, ...]:
        """The plain actions of a cell (`LrTables`) that must be followed, in the same order."""
        reductions = [-action - 1 for action in actions if action < 0]
        for rule in reductions:
            if self._contracts(state, rule):
                return (-rule - 1,)
        best = [
            rule
            for rule in reductions
            if not any(
                other != rule
                and self.covers(state, other, rule)
                and (other < rule or not self.covers(state, rule, other))
                for other in reductions
            )
        ]
        dropped = {
            rule for rule in reductions if rule not in best and any(self.covers(state, other, rule) for other in best)
        }
        shifted = [self.automaton.accessing[action - 1] for action in actions if 0 < action < ACCEPT]
        dropped.update(rule for rule in reductions for terminal in shifted if self.is_continued(rule, terminal))
        return tuple(action for action in actions if -action - 1 not in dropped)

    def contracts(self, state: int, rule: int) -> bool:
        """Whether after the reduction all that the state could do can still be done: case (1)."""
        body, lhs = self.rules[rule].rhs, self.rules[rule].lhs
        if len(body) < 2 or body[-1] < self.n_terminals:
            return False
        return all(
            body[-1] in self.chain(below, lhs) and self._contracts_over(below, before, len(body) - 1, body[-1])
            for below, before in self.bases(state, rule)
        )

    def covers(self, state: int, rule: int, other: int) -> bool:
        """Whether reducing by `rule` allows all that reducing by `other` does: case (2)."""
        if len(self.rules[rule].rhs) != len(self.rules[other].rhs):
            return False
        for below, _ in self.bases(state, other):
            last = int(self.automaton.transitions[below, self.chain(below, self.rules[other].lhs)[-1]])
            if not any(
                self.simulates(last, int(self.automaton.transitions[below, symbol]))
                for symbol in self.chain(below, self.rules[rule].lhs)
            ):
                return False
        return True

    def is_continued(self, rule: int, terminal: int) -> bool:
        """Whether shifting `terminal` does all that reducing by `rule` before it does: case (3)."""
        return (self.rules[rule].lhs, self.rules[rule].rhs) in self._companions_of(terminal)

    def _find_companions(self, terminal: int) -> frozenset[tuple[int, tuple[int, ...]]]:
        """The rules A -> u that the terminal continues, as left side and body.

        Empty if the terminal does not *continue*, or if it leads to several states under
        `exact_tops`.
        """
        cut = [(rule.lhs, rule.rhs, rule.rhs.index(terminal)) for rule in self._uses[terminal]]
        before = frozenset((lhs, rhs[:at]) for lhs, rhs, at in cut)
        after = {rhs[at + 1 :] for _, rhs, at in cut}
        continues = len(after) == 1 and terminal not in next(iter(after)) and before <= self._bodies
        targets = self.automaton.transitions[:, terminal]
        is_one = not self.exact_tops or len(np.unique(targets[targets >= 0])) == 1
        return before if continues and is_one else frozenset()

    def bases(self, state: int, rule: int) -> list[Base]:
        """For each state p from which a rule's body leads to `state`: p and c.

        c is the state before the last symbol of the body; for an empty body c is p. The state must
        complete the rule.
        """
        known = self._bases.get(rule)
        if known is None:
            known = self._bases[rule] = {}
            transitions = self.automaton.transitions
            here = before = below = np.flatnonzero(transitions[:, self.rules[rule].lhs] >= 0)
            for symbol in self.rules[rule].rhs:
                before, here = here, transitions[here, symbol]
            for end, *base in zip(here.tolist(), below.tolist(), before.tolist(), strict=True):
                known.setdefault(end, []).append((base[0], base[1]))
        return known[state]

    def chain(self, below: int, nonterminal: int) -> list[int]:
        """`nonterminal` and what it can only become over state `below`, in order."""
        found = [nonterminal]
        while True:
            kernel = self.automaton.kernels[self.automaton.transitions[below, found[-1]]]
            item = kernel[0]
            rule = self.items.rule[item]
            if (
                len(kernel) > 1
                or self.items.symbol[item] >= 0
                or rule == len(self.rules)
                or len(self.rules[rule].rhs) != 1
            ):
                return found
            found.append(self.rules[rule].lhs)

    def _contracts_over(self, below: int, before: int, n_left_out: int, first: int) -> bool:
        """Whether a stack P G C contracts, with p = `below` and c = `before`.

        n_left_out : |G|. first : C.
        """
        closure = self.automaton.closures[below]
        transitions = self.automaton.transitions
        found = {first}
        agenda = [first]
        for symbol in agenda:  # grows while it is read
            look()
            long, short = int(transitions[before, symbol]), int(transitions[below, symbol])
            if short < 0:
                return False
            for item in self.automaton.kernels[long]:
                rule = self.items.rule[item]
                dot, lhs = item - self.items.first[rule], self.rules[rule].lhs
                if dot == 1:
                    if not closure >> (lhs - self.n_terminals) & 1:
                        return False
                    if lhs not in found:
                        found.add(lhs)
                        agenda.append(lhs)
                elif dot != n_left_out + 1:
                    return False
                else:
                    chain, left = self.chain(below, lhs), self.rules[rule].rhs[dot:]
                    if not (
                        any((other, (symbol, *left)) in self._bodies for other in chain) if left else symbol in chain
                    ):
                        return False
            if self.exact_tops and not self._same_targets(long, short):
                return False
        return True

    def _same_targets(self, state: int, other: int) -> bool:
        """Whether `other` has each transition of `state`, to the same target."""
        row = self.automaton.transitions[state]
        return bool((row[row >= 0] == self.automaton.transitions[other][row >= 0]).all())

    def simulates(self, state: int, other: int) -> bool:
        """Whether state <= other. True is a proof, False is not (MAX_PAIRS)."""
        known = self._simulates.get((state, other))
        if known is None:
            known = self._simulates[state, other] = self._compare(state, other)
        return known

    def _compare(self, state: int, other: int) -> bool:
        seen = {(state, other)}
        agenda = [(state, other)]
        for pair in agenda:  # grows while it is read
            look()
            if pair[0] == pair[1] or self._simulates.get(pair, False):
                continue
            if len(seen) > MAX_PAIRS or not self._steps_agree(*pair):
                return False
            for after in self._targets(*pair):
                if after[1] < 0:
                    return False
                if after not in seen:
                    seen.add(after)
                    agenda.append(after)
        return True

    def _steps_agree(self, state: int, other: int) -> bool:
        shapes = [
            {(self.rules[rule].lhs, len(self.rules[rule].rhs)) for rule in self.automaton.completed[s]}
            for s in (state, other)
        ]
        is_accepting = self.automaton.accepting in (state, other)
        return shapes[0] <= shapes[1] and not is_accepting and (not self.exact_tops or self._same_targets(state, other))

    def _targets(self, state: int, other: int) -> Iterator[Base]:
        row = self.automaton.transitions[state]
        symbols = np.flatnonzero(row >= 0)
        targets: list[int] = self.automaton.transitions[other][symbols].tolist()
        return zip(row[symbols].tolist(), targets, strict=True)
