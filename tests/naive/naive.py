"""What legality means, by brute force: sets of words, straight from the definitions and from no fast code.

Words are tuples of terminal numbers. L is the language of the grammar's start symbol, P the set of prefixes of its
words. A context is () for the start of the text, (X,) for "after X", (Y, X) for "after Y X", and so on. What is
decided for *every* context (`is_prefix`, `is_factor`, `never_legal`) is exact; what needs a search over contexts says
up to which length it looked.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TypeAlias

from maskwright.analysis.grammar.grammar import Grammar, Rule
from maskwright.analysis.lr.encoding import ACCEPT, LrTables

Word: TypeAlias = tuple[int, ...]
Item: TypeAlias = tuple[Rule, int, int]  # a rule, how much of it is read, the column in which it began
Column: TypeAlias = frozenset[Item]


def words(grammar: Grammar, max_length: int) -> frozenset[Word]:
    """All words of L of at most `max_length` terminals."""
    return words_of(grammar, max_length)[grammar.start]


@lru_cache(maxsize=64)
def words_of(grammar: Grammar, max_length: int) -> dict[int, frozenset[Word]]:
    """The same for each symbol."""
    found: dict[int, frozenset[Word]] = {t: frozenset({(t,)}) for t in range(grammar.n_terminals)}
    found |= {lhs: frozenset() for lhs in grammar.rules_of}
    while True:
        before = dict(found)
        for rule in grammar:
            heads: set[Word] = {()}
            for symbol in rule.rhs:
                heads = {h + tail for h in heads for tail in found[symbol] if len(h) + len(tail) <= max_length}
            found[rule.lhs] |= heads
        if found == before:
            return found


def productive(grammar: Grammar) -> frozenset[int]:
    """The symbols from which some word of terminals can be derived."""
    found = set(range(grammar.n_terminals))
    while new := {rule.lhs for rule in grammar if found.issuperset(rule.rhs)} - found:
        found |= new
    return frozenset(found)


class Earley:
    """Earley's recogniser, unrefined: the columns after a word, the last of which is empty iff the word is not in P.

    Only rules whose symbols are all productive are used, so every item left can be completed to a word of L.
    Source: Earley, "An efficient context-free parsing algorithm" (1970).
    """

    def __init__(self, grammar: Grammar) -> None:
        alive = productive(grammar)
        self.grammar = grammar
        self.rules = [rule for rule in grammar if alive.issuperset(rule.rhs)]
        self.start = self._complete({(rule, 0, 0) for rule in self.rules if rule.lhs == grammar.start}, ())

    def read(self, columns: tuple[Column, ...], terminal: int) -> tuple[Column, ...]:
        """The columns after one more terminal."""
        kernel = {
            (rule, dot + 1, origin)
            for rule, dot, origin in columns[-1]
            if dot < len(rule.rhs) and rule.rhs[dot] == terminal
        }
        return (*columns, self._complete(kernel, columns))

    def read_word(self, word: Word) -> tuple[Column, ...]:
        columns: tuple[Column, ...] = (self.start,)
        for terminal in word:
            columns = self.read(columns, terminal)
        return columns

    def is_word(self, columns: tuple[Column, ...]) -> bool:
        """Is what was read a word of L?"""
        return any(
            rule.lhs == self.grammar.start and dot == len(rule.rhs) and origin == 0 for rule, dot, origin in columns[-1]
        )

    def _complete(self, items: set[Item], columns: tuple[Column, ...]) -> Column:
        """The least set over `items` closed under predicting and completing, as the newest column."""
        here = len(columns)
        while True:
            waiting = {rule.rhs[dot] for rule, dot, _ in items if dot < len(rule.rhs)}
            new = {(rule, 0, here) for rule in self.rules if rule.lhs in waiting}
            for lhs, origin in {(done.lhs, origin) for done, dot, origin in items if dot == len(done.rhs)}:
                new |= {
                    (rule, k + 1, o)
                    for rule, k, o in (items if origin == here else columns[origin])
                    if k < len(rule.rhs) and rule.rhs[k] == lhs
                }
            if new <= items:
                return frozenset(items)
            items = items | new


_earley = lru_cache(maxsize=64)(Earley)


def is_prefix(grammar: Grammar, word: Word) -> bool:
    """word in P, exactly."""
    return bool(_earley(grammar).read_word(word)[-1])


def is_word(grammar: Grammar, word: Word) -> bool:
    """word in L, exactly."""
    return _earley(grammar).is_word(_earley(grammar).read_word(word))


@lru_cache(maxsize=64)
def prefixes(grammar: Grammar, max_length: int) -> frozenset[Word]:
    """All words of P of at most `max_length` terminals."""
    earley = _earley(grammar)
    level: dict[Word, tuple[Column, ...]] = {(): (earley.start,)} if earley.start else {}
    found = set(level)
    for _ in range(max_length):
        longer = {
            (*word, t): earley.read(columns, t) for word, columns in level.items() for t in range(grammar.n_terminals)
        }
        level = {word: columns for word, columns in longer.items() if columns[-1]}
        found |= level.keys()
    return frozenset(found)


def affordable_length(grammar: Grammar, n_words: int) -> int:
    """The greatest length (at most 8) up to which P has no more than `n_words` words."""
    length = 1
    while length < 8 and len(prefixes(grammar, length + 1)) <= n_words:
        length += 1
    return length


@lru_cache(maxsize=64)
def suffix_grammar(grammar: Grammar) -> Grammar:
    """A grammar of all suffixes of words of L: A' derives what is left of a word of A after some prefix was dropped.

    For every rule A : X1 .. Xn and every i a rule A' : Xi' Xi+1 .. Xn, where t' derives t or nothing.
    """
    alive = productive(grammar)
    primed = {symbol: grammar.n_terminals + grammar.n_nonterminals + symbol for symbol in sorted(alive)}
    rules = [rule for rule in grammar if alive.issuperset(rule.rhs)]
    new = [
        Rule(primed[rule.lhs], (primed[rule.rhs[i]], *rule.rhs[i + 1 :]))
        for rule in rules
        for i in range(len(rule.rhs))
    ]
    new += [Rule(primed[rule.lhs], ()) for rule in rules]
    new += [Rule(primed[t], rhs) for t in range(grammar.n_terminals) for rhs in ((t,), ())]
    names = [grammar.symbol_name(s) + "'" for s in range(grammar.n_terminals + grammar.n_nonterminals)]
    start = primed.get(grammar.start, grammar.start)
    return grammar.with_rules((*grammar.nonterminals, *names), (*rules, *new), start)


def is_factor(grammar: Grammar, word: Word) -> bool:
    """u word v in L for some u, v; exactly: the factors are the prefixes of the suffixes."""
    return is_prefix(suffix_grammar(grammar), word)


def never_legal(grammar: Grammar, context: Word, sequence: Word) -> bool:
    """No word of P ends in context sequence (context (): sequence is not in P); exactly."""
    return not (is_factor(grammar, context + sequence) if context else is_prefix(grammar, sequence))


def contexts(grammar: Grammar, context: Word, max_length: int) -> Iterator[Word]:
    """The words of P of at most `max_length` terminals that end in `context`, shortest first; for () only ()."""
    for word in sorted(prefixes(grammar, max_length), key=lambda word: (len(word), word)):
        if word[len(word) - len(context) :] == context if context else word == ():
            yield word


def legal_context(grammar: Grammar, context: Word, sequence: Word, max_length: int) -> Word | None:
    """The first word of P, at most `max_length` terminals, that ends in context sequence; None if there is none."""
    whole = context + sequence
    if not context:
        return whole if len(whole) <= max_length and is_prefix(grammar, whole) else None
    return next(contexts(grammar, whole, max_length), None)


def refutes_always(grammar: Grammar, context: Word, sequence: Word, max_length: int) -> Word | None:
    """The first word of P ending in `context`, at most `max_length` terminals, that cannot go on with `sequence`."""
    known = prefixes(grammar, max_length + len(sequence))
    return next((w for w in contexts(grammar, context, max_length) if w + sequence not in known), None)


def refutes_joint(grammar: Grammar, context: Word, first: Word, second: Word, max_length: int) -> Word | None:
    """The first word of P ending in `context`, at most `max_length` terminals, that can go on with only one of them."""
    known = prefixes(grammar, max_length + max(len(first), len(second)))
    return next(
        (w for w in contexts(grammar, context, max_length) if (w + first in known) != (w + second in known)), None
    )


def refutes_interchange(grammar: Grammar, x: int, y: int, max_length: int) -> tuple[Word, Word] | None:
    """(u, v), |u x v| <= `max_length`, with just one of u x v and u y v in L; None if there is none."""
    known = words(grammar, max_length)
    for word in sorted(known, key=lambda word: (len(word), word)):
        for i, terminal in enumerate(word):
            other = {x: y, y: x}.get(terminal)
            if other is not None and (*word[:i], other, *word[i + 1 :]) not in known:
                return word[:i], word[i + 1 :]
    return None


def always_legal(grammar: Grammar, context: Word, sequence: Word, max_length: int) -> bool:
    """Every word of P ending in `context`, at most `max_length` terminals, can go on with `sequence`."""
    return refutes_always(grammar, context, sequence, max_length) is None


def jointly_legal(grammar: Grammar, context: Word, first: Word, second: Word, max_length: int) -> bool:
    """After every word of P ending in `context`, at most `max_length` terminals, both are legal or both are not."""
    return refutes_joint(grammar, context, first, second, max_length) is None


def interchangeable(grammar: Grammar, x: int, y: int, max_length: int) -> bool:
    """u x v in L iff u y v in L, for all |u x v| <= `max_length`."""
    return refutes_interchange(grammar, x, y, max_length) is None


def states_below(tables: LrTables, states: set[int]) -> set[int]:
    return {
        p
        for s in states
        for p in tables.predecessors[tables.predecessor_start[s] : tables.predecessor_start[s + 1]].tolist()
    }


def states_after(tables: LrTables, states: set[int], column: int) -> set[int]:
    """The states on top once a terminal is shifted, whatever lies below those that are there now."""
    reached, agenda, found = set(states), sorted(states), set()
    while agenda:
        state = agenda.pop()
        for action in tables.actions(state, column):
            if 0 < action < ACCEPT:
                found.add(action - 1)
            elif action < 0:
                here = {state}
                for _ in range(int(tables.rule_length[-action - 1])):
                    here = states_below(tables, here)
                targets = {int(tables.goto[s, tables.rule_lhs[-action - 1]]) for s in here} - {-1}
                agenda += sorted(targets - reached)
                reached |= targets
    return found
