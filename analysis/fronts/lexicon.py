"""The terminals of a grammar without a lexer, and whether the longest match tells them apart.

In: regular leaves of the rules. Out: terminals, and for each leaf which terminals its texts are. An
`Overlap` names the leaves that cannot be terminals; see `scannerless` for the conditions.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from maskwright.analysis.errors import LimitError, TerminalError
from maskwright.analysis.fronts.expressions import Expr, automaton_of, class_pattern, non_empty
from maskwright.analysis.lexing.lexemes import n_beginnings_of
from maskwright.analysis.lexing.terminal_nfa import TerminalNfa, UnionDfa, build_terminal_nfa, build_union_dfa
from maskwright.analysis.lexing.terminals import compile_pattern
from maskwright.analysis.lr.automaton import bits
from maskwright.analysis.regex.charset import LAST, Ranges, normalise, partition
from maskwright.analysis.regex.dfa import Dfa

MAX_STATES = 10_000
"""The most states of one terminal's automaton, and of that of all."""


MAX_PIECES = 20_000
"""The most disjoint pieces of all sets of characters together."""
MAX_SIZE = 20_000
"""The most positions of a terminal's expression."""
SHORT = 1_000
"""Characters of a text up to which it is certain to be a terminal."""

_PLACE = Dfa.literal(b"?")
"""Stands for an automaton that is not needed."""


class Overlap(Exception):
    """Some leaves cannot be terminals. patterns : those that are to be split."""

    def __init__(self, patterns: set[str]) -> None:
        super().__init__(patterns)
        self.patterns = patterns


class LexicalTerminal(NamedTuple):
    """A terminal that is to be.

    pattern : for `re`. text : of a literal of several characters; else None.
    leaves : the leaves that would be split instead of it; none for a class of characters.
    size : of its expression.
    """

    pattern: str
    text: str | None
    leaves: tuple[str, ...]
    size: int


class Lexicon:
    """The terminals of some leaves. where : what messages call the grammar.

    terminals : by number. own : leaf -> the terminals that it consists of: the disjoint pieces of a
    class, else one; none for a leaf without a text that is not empty.

    Raises: Overlap for leaves whose automaton is too large; LimitError for too many pieces.
    """

    def __init__(self, leaves: Mapping[str, Expr], where: str) -> None:
        self._where = where
        filled = {key: non_empty(leaf) for key, leaf in leaves.items()}
        pieces = _pieces([leaf.ranges for leaf in filled.values() if leaf.kind == "class"])
        if sum(map(len, pieces.values())) > MAX_PIECES:
            raise self._too_many_pieces(MAX_PIECES)
        sharing: dict[str, list[str]] = {}
        for key, leaf in filled.items():
            if leaf.kind != "class" and not leaf.is_never:
                sharing.setdefault(str(leaf.pattern), []).append(key)
        # PERF: of thousands of texts the automata take most of the time; where the union of all is
        # too large in any case, those of short texts are not needed
        texts = {leaf.text for leaf in filled.values() if leaf.kind != "class"}
        are_too_many = n_beginnings_of(text for text in texts if text is not None) > MAX_STATES
        distinct = dict.fromkeys(class_pattern(piece) for group in pieces.values() for piece in group)
        self.terminals = [LexicalTerminal(pattern, None, (), 1) for pattern in distinct]
        automata = [compile_pattern(pattern) for pattern in distinct]
        too_large: set[str] = set()
        for pattern, keys in sharing.items():
            leaf = filled[keys[0]]
            self.terminals.append(LexicalTerminal(pattern, leaf.text, tuple(keys), leaf.size))
            is_known = are_too_many and leaf.text is not None and leaf.size <= SHORT
            automaton = _PLACE if is_known else _automaton(leaf)
            if automaton is None:
                too_large.update(keys)
            automata.append(automaton or _PLACE)
        number = {terminal.pattern: i for i, terminal in enumerate(self.terminals)}
        self.own: dict[str, tuple[int, ...]] = {}
        for key, leaf in filled.items():
            of = map(class_pattern, pieces[leaf.ranges]) if leaf.kind == "class" else [str(leaf.pattern)]
            self.own[key] = () if leaf.is_never else tuple(number[pattern] for pattern in of)
        if too_large:
            raise Overlap(too_large)
        if are_too_many:
            raise self._without_texts()
        self._nfa = build_terminal_nfa(automata)
        try:
            self._union = build_union_dfa(self._nfa, [terminal.pattern for terminal in self.terminals], MAX_STATES)
        except LimitError:
            raise self._without_largest() from None

    def _without_texts(self) -> Overlap:
        """The texts have too many beginnings: the largest are to be split, as many as must be.

        If the largest terminal of all is no text, it alone, which may leave other texts.
        """
        ordered = sorted((t for t in self.terminals if t.leaves), key=lambda terminal: -terminal.size)
        n_texts = next((n for n, terminal in enumerate(ordered) if terminal.text is None), len(ordered))

        def is_enough(n: int) -> bool:
            return n_beginnings_of(t.text for t in ordered[n:] if t.text is not None) <= MAX_STATES

        n = 1 + bisect.bisect_left(range(1, n_texts), True, key=is_enough)
        return Overlap({leaf for terminal in ordered[:n] for leaf in terminal.leaves})

    def _without_largest(self) -> Overlap:
        """The automaton of all is too large: the largest is to be split."""
        largest = max((t for t in self.terminals if t.leaves), key=lambda terminal: terminal.size, default=None)
        if largest is None:  # pieces of sets of characters alone
            raise self._too_many_pieces(MAX_STATES)
        return Overlap(set(largest.leaves))

    def _too_many_pieces(self, most: int) -> LimitError:
        return LimitError(
            f"grammar {self._where}: the sets of characters overlap in so many ways that they have more than {most} pieces; "
            "make them more alike"
        )

    def alternatives(self) -> dict[str, tuple[int, ...]]:
        """For each leaf the terminals that its texts are, with the literals that it matches.

        Raises: Overlap for terminals with common texts, if it is not one pattern and one literal.
        """
        added: dict[int, set[int]] = {}
        split: set[str] = set()
        for accepting in self._union.accepting:
            if len(accepting) < 2:
                continue
            literals = [t for t in accepting if self.terminals[t].text is not None]
            others = [t for t in accepting if self.terminals[t].text is None]
            if len(literals) == 1 and len(others) == 1:
                added.setdefault(others[0], set()).add(literals[0])
                continue
            # The smallest stays: of [0-9]+ and [0-9]+("."[0-9]+)? the second is split.
            others.sort(key=lambda t: (self.terminals[t].size, t))
            for terminal in others[1:]:
                split.update(self.terminals[terminal].leaves)
        if split:
            raise Overlap(split)
        return {
            key: tuple(dict.fromkeys(t for part in own for t in (part, *sorted(added.get(part, ())))))
            for key, own in self.own.items()
        }

    def check_ends(self, follows: Sequence[int]) -> None:
        """Checks that no lexeme runs on into the next one: condition (b).

        follows : for each terminal those that may stand directly behind it, as bits; the
            terminals beyond these are marks, and begin with a byte that no lexeme has.

        Raises: Overlap for the terminals into which a lexeme could run on.
        """
        winners = [self._winner(accepting) for accepting in self._union.accepting]
        split: set[str] = set()
        lexical = (1 << len(self.terminals)) - 1
        follows = [behind & lexical for behind in follows[: len(self.terminals)]]
        for run_on in run_ons(self._nfa, self._union, winners, follows):
            for terminal in run_on.longer:
                split.update(self.terminals[terminal].leaves)
        if split:
            raise Overlap(split)

    def _winner(self, accepting: Sequence[int]) -> int:
        """The terminal that the lexer takes: a literal, if one is among them; -1 for none."""
        return next((t for t in accepting if self.terminals[t].text is not None), min(accepting, default=-1))


def _automaton(leaf: Expr) -> Dfa | None:
    """The automaton of a leaf's texts; None if it is too large."""
    if leaf.size > MAX_SIZE:
        return None
    try:
        return automaton_of(leaf, MAX_STATES)
    except (LimitError, TerminalError):
        return None


class RunOn(NamedTuple):
    """A lexeme that may have ended, and runs on.

    terminal : that may have ended. byte : that may follow it, and leads on. longer : the terminals
    that are alive behind the byte. state : of the automaton behind it.
    """

    terminal: int
    byte: int
    longer: tuple[int, ...]
    state: int


def run_ons(nfa: TerminalNfa, union: UnionDfa, winners: Sequence[int], follows: Sequence[int]) -> Iterator[RunOn]:
    """The places where a lexeme could run on into the next one.

    nfa, union : of all terminals. winners : for each state of the union the terminal that ends
    there, or -1. follows : for each terminal those that may stand directly behind it, as bits.
    """
    owner: list[int] = nfa.terminal.tolist()
    alive = [tuple(sorted({owner[s] for s in members})) for members in union.members]
    first = [0] * len(nfa.initial)
    for byte, state in enumerate(union.next_state[union.starts[0]].tolist()):
        for terminal in alive[state] if state >= 0 else ():
            first[terminal] |= 1 << byte
    behind = [0] * len(first)
    for left, rights in enumerate(follows):
        for right in bits(rights):
            behind[left] |= first[right]
    for state, winner in enumerate(winners):
        if winner < 0 or not behind[winner]:
            continue
        for byte in np.flatnonzero(union.next_state[state] >= 0).tolist():
            if behind[winner] >> byte & 1:
                target = int(union.next_state[state, byte])
                yield RunOn(winner, byte, alive[target], target)


def _pieces(sets: Sequence[Ranges]) -> dict[Ranges, list[Ranges]]:
    """For each set of characters the disjoint pieces that it consists of.

    Two characters are in one piece if the same sets have them.
    """
    bounds, class_of, classes, n_classes = partition(sets)
    pairs: list[list[tuple[int, int]]] = [[] for _ in range(n_classes)]
    for low, after, number in zip(bounds, [*bounds[1:], LAST + 1], class_of, strict=True):
        if number >= 0:
            pairs[number].append((low, after - 1))
    pieces = list(map(normalise, pairs))
    return {ranges: [pieces[number] for number in numbers] for ranges, numbers in classes.items()}
