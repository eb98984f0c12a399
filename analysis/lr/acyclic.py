"""Rules of the same language on which reductions end, where they might not end (`loops`).

N+ is a nonterminal that derives what N derives, except the empty text. Where N+ is needed, N gets
the rules N : (empty) | N+, and N+ gets variants of N's rules. A rule has one variant for each
choice of its first symbol that is not empty. Example: if x and y may be empty, N : x y gives
N+ : x+ y | y+. The rules that close a cycle are of two kinds:

- A : x B y, where x and y may be empty and B leads back to A in the same way. It becomes
  A : B | m+ B | B n+ for the symbols m of x and n of y. A and B have the same texts, so these
  rules, one after the other, derive all of x B y. If B may be empty, so may A, and
  A+ : B+ | m+ | n+ | m+ B+ | B+ n+.
- A : x B v, where x may be empty and B begins with A. It becomes A : B v, and one rule for each
  choice of the first symbol of x that is not empty, with B v at its end. B is the last such symbol
  of the rule.

Nonterminals that then derive each other by rules of one symbol are merged. Rules outside cycles
stay as they are, with two exceptions: N+ takes over the rules of N, and rules that say nothing new
(A : v beside A : N v) are dropped.

On the new rules all reductions end. Proof: say that A begins with B if there is a rule A : x B y
where x may be empty. Suppose that nonterminals of the new rules begin with each other in a cycle.
None of them stands for the tail of a rule (named "rest"), since a tail stands behind a symbol that
is not empty, or behind more of the tail. If we read N for N+, each step A : x B y of the cycle is a
step of the old rules, or one from N to N+. So B leads back to A in the old rules too.

- x has no symbols. Otherwise B is behind the last symbol of an old rule that leads back, or the new
  rule begins with a symbol that is not empty.
- If y may be empty in every step, then y has no symbols. Otherwise the old rule was of the first
  kind, since B led back in that way, and each of its new rules is B+ alone, or has another symbol
  that is not empty.

So no recursion is hidden, and a cycle A =>+ A consists of rules of one symbol, which merging
removes. Merging makes no new cycle, since only nonterminals that are on one cycle become one
nonterminal. QED.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from maskwright.analysis.deadline import look
from maskwright.analysis.grammar.grammar import Conflicts, Grammar, Rule
from maskwright.analysis.grammar.normalise import nullable_symbols, reduce, renumber
from maskwright.analysis.graphs import unions
from maskwright.analysis.lr.loops import endless_cycle, first_terminals, follow_graphs

Body = tuple[int, ...]
"""The right side of a rule, as symbol numbers."""


def parsed_grammar(grammar: Grammar, conflicts: Conflicts) -> Grammar:
    """The rules that a parser's tables are made of.

    They are the reduced rules; under "all" those of `without_endless`.

    Raises: GrammarError if the language is empty.
    """
    grammar = reduce(grammar)
    return without_endless(grammar) if conflicts == "all" else grammar


def without_endless(grammar: Grammar) -> Grammar:
    """A reduced grammar with the same terminal sequences and without an `endless_cycle`.

    grammar : reduced. It is returned itself if it has no such cycle.

    A new nonterminal is named after the nonterminal N that it belongs to: "N (not empty)" is N+, "N
    (rest)" the tail of one of its rules. `rule_name` finds the author's rule.

    >>> from maskwright.analysis.grammar.grammar import Terminal
    >>> rules = (Rule(1, (1, 2)), Rule(1, (2,)), Rule(2, (0,)), Rule(2, ()))
    >>> found = without_endless(Grammar("g", (Terminal("A", "a"),), ("s", "n"), rules, start=1))
    >>> for rule in found.rules:
    ...     print(found.rule_text(rule))
    s :
    s : s (not empty)
    s (not empty) : s (not empty) n (not empty)
    s (not empty) : n (not empty)
    n (not empty) : A

    Cost: O(size of the grammar), and for the cycles O(edges) unions of bits.
    """
    return grammar if endless_cycle(grammar) is None else _Rewriter(grammar).result()


class _Rewriter:
    """Makes the new rules. Numbers past the grammar's own are new nonterminals.

    bodies : left-hand side -> the bodies of its rules.
    left, whole : for each nonterminal's index a class. Nonterminals that lead to each other in the
        `FollowGraphs` have equal classes.
    void : the nonterminals that derive only the empty text. some : N -> N+.
    tails : body -> the new nonterminal with this one rule. It stands for a rule's tail.
    """

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.n_terminals = grammar.n_terminals
        self.nullable = nullable_symbols(grammar)
        first = first_terminals(grammar, self.nullable)
        self.void = {nonterminal for nonterminal in self.nullable if not first[nonterminal]}
        graphs = follow_graphs(grammar, self.nullable)
        self.left, self.whole = (_classes(list(map(list, graph))) for graph in (graphs.left, graphs.whole))
        self.bodies: dict[int, list[Body]] = {}
        self.names: dict[int, str] = {}
        self.taken = set(grammar.nonterminals)
        self.next_number = grammar.n_terminals + grammar.n_nonterminals
        self.some: dict[int, int] = {}
        self.tails: dict[Body, int] = {}
        self.agenda: list[tuple[int, int]] = []
        """(N+, N) for each N+ whose rules must still be made."""

    def result(self) -> Grammar:
        """The grammar of the new rules, reduced."""
        for lhs, rules in self.grammar.rules_of.items():
            bodies = [rule.rhs for rule in rules]
            if not any(self._is_looping(lhs, body) for body in bodies):
                self.bodies.setdefault(lhs, bodies)
            elif lhs in self.void:
                self.bodies[lhs] = [()]
            elif lhs in self.nullable:
                self._non_empty(lhs)
            else:
                self.bodies[lhs] = [new for body in bodies for new in self._variants(lhs, body)]
        for new, lhs in self.agenda:  # grows while it is read
            look()
            self.bodies[new] = [body for rule in self.grammar.rules_of[lhs] for body in self._variants(lhs, rule.rhs)]
        self._merge_units()
        self._drop_covered()
        found = [Rule(lhs, body) for lhs in sorted(self.bodies) for body in self.bodies[lhs]]
        return reduce(renumber(self.grammar, found, self.names))

    # ---------------------------------------------------------------------------- which rules loop

    def _leads_back(self, lhs: int, symbol: int, classes: list[int]) -> bool:
        """Whether a symbol and `lhs` lead to each other. classes : `left` or `whole`."""
        return symbol >= self.n_terminals and classes[symbol - self.n_terminals] == classes[lhs - self.n_terminals]

    def _inner(self, lhs: int, body: Body) -> int | None:
        """The first position of a symbol that leads back to `lhs` while all others may be empty."""
        required = [at for at, symbol in enumerate(body) if symbol not in self.nullable]
        indices = range(len(body)) if not required else required if len(required) == 1 else ()
        return next((at for at in indices if self._leads_back(lhs, body[at], self.whole)), None)

    def _hidden(self, lhs: int, body: Body) -> int | None:
        """The last position past the first of a symbol that leads back to `lhs` (`left`).

        The symbols before it may be empty.
        """
        n = sum(1 for _ in itertools.takewhile(self.nullable.__contains__, body))
        indices = range(min(n, len(body) - 1), 0, -1)
        return next((at for at in indices if self._leads_back(lhs, body[at], self.left)), None)

    def _is_looping(self, lhs: int, body: Body) -> bool:
        """Whether a rule closes a cycle on which reductions may not end."""
        return self._hidden(lhs, body) is not None or (len(body) > 1 and self._inner(lhs, body) is not None)

    # ----------------------------------------------------------------------------------- new rules

    def _variants(self, lhs: int, body: Body) -> Iterator[Body]:
        """The bodies that replace a rule's; if `lhs` may be empty, for the texts that are not.

        Their total length is linear in that of the rule.
        """
        symbols = tuple(symbol for symbol in body if symbol not in self.void)
        inner, hidden = self._inner(lhs, symbols), self._hidden(lhs, symbols)
        is_nullable = all(symbol in self.nullable for symbol in symbols)
        if inner is not None:
            same = self._non_empty(symbols[inner])
            yield (same,)
            for at, symbol in enumerate(symbols):
                if at != inner:
                    part = self._non_empty(symbol)
                    yield (part, same) if at < inner else (same, part)
                    if is_nullable:
                        yield (part,)
        elif is_nullable:
            yield from self._from_first(lhs, symbols, len(symbols))
        elif hidden is not None:
            yield from self._from_first(lhs, symbols, hidden)
            yield symbols[hidden:]
        else:
            yield symbols

    def _from_first(self, lhs: int, symbols: Body, end: int) -> Iterator[Body]:
        """One body for each first symbol that is not empty, chosen before `end`."""
        # For each symbol what follows it, the last first: the symbols themselves if there are at
        # most two, else a nonterminal.
        tails: list[Body] = [()]
        for at in range(len(symbols) - 1, 0, -1):
            part = (symbols[at], *tails[-1])
            if len(symbols) - at > 2:
                if part not in self.tails:
                    self.tails[part] = self._fresh(lhs, "rest")
                    self.bodies[self.tails[part]] = [part]
                part = (self.tails[part],)
            tails.append(part)
        for at, tail in zip(range(end), reversed(tails), strict=False):
            yield self._non_empty(symbols[at]), *tail

    def _non_empty(self, symbol: int) -> int:
        """N+ of a nonterminal that may be empty; any other symbol itself."""
        if symbol not in self.nullable:
            return symbol
        if symbol not in self.some:
            self.some[symbol] = self._fresh(symbol, "not empty")
            self.bodies[symbol] = [(), (self.some[symbol],)]
            self.agenda.append((self.some[symbol], symbol))
        return self.some[symbol]

    def _fresh(self, base: int, what: str) -> int:
        """A new nonterminal, named after `base` and `what`."""
        number = self.next_number
        self.next_number += 1
        name = self.grammar.symbol_name(base)
        names = itertools.chain([f"{name} ({what})"], (f"{name} ({what} {i})" for i in itertools.count(2)))
        self.names[number] = next(name for name in names if name not in self.taken)
        self.taken.add(self.names[number])
        return number

    def _merge_units(self) -> None:
        """Merges nonterminals that derive each other by rules of one symbol.

        Their texts are the same. The least of them stays.
        """
        members = sorted(self.bodies)
        at = {lhs: i for i, lhs in enumerate(members)}
        classes = _classes(
            [[at[body[0]] for body in self.bodies[lhs] if len(body) == 1 and body[0] in at] for lhs in members]
        )
        least: dict[int, int] = {}
        merged: dict[int, dict[Body, None]] = {}
        one = {lhs: least.setdefault(found, lhs) for lhs, found in zip(members, classes, strict=True)}
        for lhs in members:
            look()
            bodies = (tuple(one.get(symbol, symbol) for symbol in body) for body in self.bodies[lhs])
            merged.setdefault(one[lhs], {}).update(dict.fromkeys(body for body in bodies if body != (one[lhs],)))
        self.bodies = {lhs: list(bodies) for lhs, bodies in merged.items()}

    def _drop_covered(self) -> None:
        """Drops A : u v beside A : u N v where N may be empty and has changed.

        Lark writes such pairs for ``N? v`` and ``N* v``. A rule whose symbols may all be empty
        stays, so that A can still be empty.
        """
        changed = {lhs for lhs in self.nullable & self.bodies.keys() if tuple(self.bodies[lhs]) != self._authors(lhs)}
        for lhs, bodies in self.bodies.items():
            covered = {
                body[:at] + body[at + 1 :] for body in bodies for at, symbol in enumerate(body) if symbol in changed
            }
            self.bodies[lhs] = [body for body in bodies if body not in covered or self.nullable.issuperset(body)]

    def _authors(self, lhs: int) -> tuple[Body, ...]:
        """The bodies of a nonterminal's rules as the grammar has them."""
        return tuple(rule.rhs for rule in self.grammar.rules_of.get(lhs, ()))


def _classes(successors: list[list[int]]) -> list[int]:
    """Equal numbers for nodes that lead to each other: all nodes that a node reaches, as bits."""
    return unions(successors, [1 << i for i in range(len(successors))])
