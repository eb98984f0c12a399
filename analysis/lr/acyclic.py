"""Rules of the same language on which reductions end, for grammars on which they might not (`loops`).

N+ stands for a nonterminal that derives what N derives but for the empty text. Where it is needed, N : (empty) | N+ takes the place of N's
rules, and N+ gets them, each from its first part on that is not empty. Of the rules that close a cycle,

- A : x B y, where x and y may be empty and B leads back to A in this way, becomes A : B | m+ B | B n+ for the symbols m of x and n of y.
  The texts of A and B are the same, so that these rules, one after the other, make all of x B y. If B may be empty, so may A, and
  A+ : B+ | m+ | n+ | m+ B+ | B+ n+;
- A : x B v, where x may be empty and B begins with A, becomes A : B v and x from its first part on that is not empty, before B v. B is
  the last such symbol of the rule.

Nonterminals that then derive each other by rules of one part are made one. Rules outside cycles stay as they are, but for N+ and for
rules that say nothing new (A : v beside A : N v).

What is left ends. Say that A begins with B if there is a rule A : x B y where x may be empty. Let nonterminals of the new rules begin with
each other in a cycle. None of them is the rest of a rule, which stands behind what is not empty, or behind more of the rest. With N taken
for N+, each step A : x B y of the cycle is a step of the old rules, or one from N to N+; so B leads back to A in the old rules too.

- x has no symbols. Else B is behind the last symbol of an old rule that leads back, or the new rule begins with what is not empty.
- If y may be empty in every step, then y has no symbols. Else the old rule was of the first kind, since B led back in that way, and each
  of its new rules is B+ alone, or has another part that is not empty.

So no recursion is hidden, and a cycle A =>+ A is one of rules of one part, which are made none. That makes no new cycle, since only what is
on one cycle becomes one nonterminal.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from maskwright.analysis.grammar.grammar import Conflicts, Grammar, Rule
from maskwright.analysis.grammar.normalise import reduce, renumber
from maskwright.analysis.lr.digraph import digraph
from maskwright.analysis.lr.lookaheads import nullable_symbols
from maskwright.analysis.lr.loops import endless_cycle, follow_graphs

Body = tuple[int, ...]


def parsed_grammar(grammar: Grammar, conflicts: Conflicts) -> Grammar:
    """The rules that a parser's tables are of: the reduced ones, under "all" those of `without_endless`.

    Raises GrammarError if the language is empty.
    """
    grammar = reduce(grammar)
    return without_endless(grammar) if conflicts == "all" else grammar


def without_endless(grammar: Grammar) -> Grammar:
    """A reduced grammar with the same texts of terminals and no `endless_cycle`; `grammar` itself, which is reduced, if it has none.

    A new nonterminal is named after the one that it stands for or is the rest of: `rule_name` finds the author's rule.

    >>> from maskwright.analysis.grammar.grammar import Terminal
    >>> rules = (Rule(1, (1, 2)), Rule(1, (2,)), Rule(2, (0,)), Rule(2, ()))
    >>> for rule in (found := without_endless(Grammar("g", (Terminal("A", "a"),), ("s", "n"), rules, start=1))).rules:
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
    """Rule bodies by left-hand side. Numbers past the grammar's own are new nonterminals.

    left, whole : of a nonterminal's index, equal for those that lead to each other in these graphs. void : what derives only the empty
    text. some : N -> N+. rests : body -> the new nonterminal with this one rule, for what is behind the first part of a rule.
    """

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.n_terminals = grammar.n_terminals
        self.nullable = nullable_symbols(grammar)
        self.void = self.nullable - self._with_text()
        graphs = follow_graphs(grammar, self.nullable)
        self.left, self.whole = (_classes(list(map(list, graph))) for graph in (graphs.left, graphs.whole))
        self.bodies: dict[int, list[Body]] = {}
        self.names: dict[int, str] = {}
        self.taken = set(grammar.nonterminals)
        self.next_number = grammar.n_terminals + grammar.n_nonterminals
        self.some: dict[int, int] = {}
        self.rests: dict[Body, int] = {}
        self.agenda: list[tuple[int, int]] = []
        """(N+, N) whose rules are to be made."""

    def result(self) -> Grammar:
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
            self.bodies[new] = [body for rule in self.grammar.rules_of[lhs] for body in self._variants(lhs, rule.rhs)]
        self._merge_units()
        self._drop_covered()
        found = [Rule(lhs, body) for lhs in sorted(self.bodies) for body in self.bodies[lhs]]
        return reduce(renumber(self.grammar, found, self.names))

    def _with_text(self) -> set[int]:
        """The nonterminals that derive some text that is not empty: in a reduced grammar those that lead to a terminal."""
        found: set[int] = set()
        users: dict[int, list[int]] = {}
        for rule in self.grammar.rules:
            for symbol in rule.rhs:
                users.setdefault(symbol, []).append(rule.lhs)
        agenda = [lhs for symbol in range(self.n_terminals) for lhs in users.get(symbol, ())]
        while agenda:
            symbol = agenda.pop()
            if symbol not in found:
                found.add(symbol)
                agenda += users.get(symbol, ())
        return found

    # -------------------------------------------------------------------------------------------- which rules loop

    def _leads_back(self, lhs: int, symbol: int, classes: list[int]) -> bool:
        return symbol >= self.n_terminals and classes[symbol - self.n_terminals] == classes[lhs - self.n_terminals]

    def _inner(self, lhs: int, body: Body) -> int | None:
        """Where a rule has a symbol that leads back to `lhs` with all else empty; the first such place."""
        required = [at for at, symbol in enumerate(body) if symbol not in self.nullable]
        places = range(len(body)) if not required else required if len(required) == 1 else ()
        return next((at for at in places if self._leads_back(lhs, body[at], self.whole)), None)

    def _hidden(self, lhs: int, body: Body) -> int | None:
        """The last place past the first where a rule, what is before being empty, has a symbol that leads back to `lhs`."""
        n = sum(1 for _ in itertools.takewhile(self.nullable.__contains__, body))
        places = range(min(n, len(body) - 1), 0, -1)
        return next((at for at in places if self._leads_back(lhs, body[at], self.left)), None)

    def _is_looping(self, lhs: int, body: Body) -> bool:
        return self._hidden(lhs, body) is not None or (len(body) > 1 and self._inner(lhs, body) is not None)

    # --------------------------------------------------------------------------------------------------- new rules

    def _variants(self, lhs: int, body: Body) -> Iterator[Body]:
        """What takes the place of a rule; if `lhs` may be empty, for the texts that are not. Together they are linear in the rule."""
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
        """The symbols from the first on that is not empty, which is one of those before `end`."""
        rests: list[Body] = [
            ()
        ]  # for what is after each symbol, the last first: as it is where it is short, else a nonterminal
        for at in range(len(symbols) - 1, 0, -1):
            part = (symbols[at], *rests[-1])
            if len(symbols) - at > 2:
                if part not in self.rests:
                    self.rests[part] = self._fresh(lhs, "rest")
                    self.bodies[self.rests[part]] = [part]
                part = (self.rests[part],)
            rests.append(part)
        for at, rest in zip(range(end), reversed(rests), strict=False):
            yield self._non_empty(symbols[at]), *rest

    def _non_empty(self, symbol: int) -> int:
        """N+ of a nonterminal that may be empty, any other symbol itself."""
        if symbol not in self.nullable:
            return symbol
        if symbol not in self.some:
            self.some[symbol] = self._fresh(symbol, "not empty")
            self.bodies[symbol] = [(), (self.some[symbol],)]
            self.agenda.append((self.some[symbol], symbol))
        return self.some[symbol]

    def _fresh(self, base: int, what: str) -> int:
        number = self.next_number
        self.next_number += 1
        name = self.grammar.symbol_name(base)
        names = itertools.chain([f"{name} ({what})"], (f"{name} ({what} {i})" for i in itertools.count(2)))
        self.names[number] = next(name for name in names if name not in self.taken)
        self.taken.add(self.names[number])
        return number

    def _merge_units(self) -> None:
        """One nonterminal, the least, for those that derive each other by rules of one part: their texts are the same."""
        members = sorted(self.bodies)
        at = {lhs: i for i, lhs in enumerate(members)}
        classes = _classes(
            [[at[body[0]] for body in self.bodies[lhs] if len(body) == 1 and body[0] in at] for lhs in members]
        )
        least: dict[int, int] = {}
        merged: dict[int, dict[Body, None]] = {}
        one = {lhs: least.setdefault(found, lhs) for lhs, found in zip(members, classes, strict=True)}
        for lhs in members:
            bodies = (tuple(one.get(symbol, symbol) for symbol in body) for body in self.bodies[lhs])
            merged.setdefault(one[lhs], {}).update(dict.fromkeys(body for body in bodies if body != (one[lhs],)))
        self.bodies = {lhs: list(bodies) for lhs, bodies in merged.items()}

    def _drop_covered(self) -> None:
        """Take A : u v away beside A : u N v where N may be empty and has changed: Lark writes so ``N? v`` and ``N* v``.

        A rule of symbols that may all be empty stays, so that what may be empty still may.
        """
        changed = {lhs for lhs in self.nullable & self.bodies.keys() if tuple(self.bodies[lhs]) != self._authors(lhs)}
        for lhs, bodies in self.bodies.items():
            covered = {
                body[:at] + body[at + 1 :] for body in bodies for at, symbol in enumerate(body) if symbol in changed
            }
            self.bodies[lhs] = [body for body in bodies if body not in covered or self.nullable.issuperset(body)]

    def _authors(self, lhs: int) -> tuple[Body, ...]:
        return tuple(rule.rhs for rule in self.grammar.rules_of.get(lhs, ()))


def _classes(successors: list[list[int]]) -> list[int]:
    """Equal numbers for nodes that lead to each other: what a node leads to, as bits, itself included."""
    return digraph(successors, [1 << i for i in range(len(successors))])
