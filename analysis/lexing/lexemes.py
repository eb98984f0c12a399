"""Lexemes under way: what they may become, what wins where they end, what survives if they fail.

The states are those of the union automaton of a lexer's modes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import replace
from functools import cache

import numpy as np
import numpy.typing as npt
from lark.utils import get_regexp_width

from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar.columns import column_bytes
from maskwright.analysis.grammar.grammar import Grammar, Terminal
from maskwright.analysis.graphs import reachable, unions
from maskwright.analysis.kept import Kept, cached_property
from maskwright.analysis.lexing import _survival_kernels as kernels
from maskwright.analysis.lexing.modes import Modes
from maskwright.analysis.lexing.terminal_nfa import build_terminal_nfa, build_union_dfa
from maskwright.analysis.lexing.terminals import compile_lexemes, is_refused_at_once, refused_before
from maskwright.analysis.regex.bounds import n_beginnings
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.regex.properties import with_classes

FIRST_PAIRS, PAUSE = 1 << 8, 1 << 16
"""Pairs that there is room for at first, a power of two, and between pauses for Ctrl-C."""

CanFollow = Callable[[int, int], bool]
"""`can_follow(first, second)`: whether the parser may see `second` directly after `first`."""


def terminal_rank(terminals: Sequence[Terminal]) -> tuple[int, ...]:
    """For each terminal its rank in the order that decides ties: the least wins. A permutation.

    Higher priority comes first, then literals before patterns, then the greater maximal width, then
    the longer pattern, then the name (Lark's order). A terminal of other lengths
    (`Terminal.beyond`) stands behind the one that it belongs to: no third one wins over just one.
    """

    def key(number: int) -> tuple[int, bool, int, int, str, bool]:
        terminal = terminals[number]
        pattern = terminal.pattern or ""
        width = len(terminal.literal) if terminal.literal is not None else _greatest_width(pattern, terminal.flags)
        return (
            -terminal.priority,
            terminal.literal is None,
            -width,
            -len(pattern),
            terminal.beyond or terminal.name,
            bool(terminal.beyond),
        )

    return tuple(np.argsort(sorted(range(len(terminals)), key=key)).tolist())


@Kept
def _greatest_width(pattern: str, flags: str) -> int:
    return int(get_regexp_width(with_classes(f"(?{flags}:{pattern})" if flags else pattern))[1]) if pattern else 0


def check_literals(grammar: Grammar, limit: int) -> None:
    """Refuses more string literals than a lexer has states, or such with more beginnings.

    Each ends, and each beginning leads, to a state of its own. limit : the most states. Literals
    that ignore case are not counted. Raises: LimitError.

    PERF: called before anything is compiled.
    """
    literals = {t.literal for t in grammar.terminals if t.literal is not None and "i" not in t.flags}
    check_texts(grammar.name, literals, limit)


def check_texts(name: str, literals: Set[str], limit: int) -> None:
    """`check_literals` for some of the literals of a grammar. name : the grammar's."""
    if len(literals) > limit:
        raise LimitError(
            f"grammar {name} has {len(literals)} string literals, but a lexer has at most {limit} states; write literals that "
            "the rules treat alike as one terminal with a regular expression"
        )
    found = n_beginnings_of(literals)
    if found > limit:
        longest = max(map(len, literals))
        raise LimitError(
            f"grammar {name} has string literals with {found} different beginnings, the longest literal with {longest} "
            f"characters, but a lexer has at most {limit} states; write fewer or shorter ones"
        )


def n_beginnings_of(literals: Iterable[str]) -> int:
    """How many different byte strings, not empty, some literals begin with."""
    return n_beginnings(literal.encode("utf-8", "surrogatepass").decode("latin-1") for literal in literals)


class Lexemes:
    """What is known of a lexeme under way, by state of the union automaton.

    grammar : the grammar whose terminals are lexed. newline : the layout's newline, -1 without a
        layout.
    modes : for each mode the set of terminals that compete. A lexeme of mode m begins in state
        `union.starts[m]`.
    union : the union automaton (`UnionDfa`).
    winner : for each state the terminal that wins there, or -1.
    choices : for each state whose winner is refused before some bytes (`refused_before`): what
        may win there, the strongest first, up to the first that is not refused; with each, for each
        class of bytes, and last for the end of the text, whether it is refused there, bool.
    may_be_refused : for each state whether before some bytes none of its choices wins.
    at_once : terminals of which all lexemes that begin alike are refused at once.
    live : for each state the terminals that win there or further on, ascending.
    byte_class : (256,) uint8; the class of each byte. Bytes of one class have the same transitions.
        Each byte that moves a layout's column is a class of its own.
    byte_of_class : for each class one of its bytes.
    after_class : (n_states, n_classes) int32; for each state the next state by byte class, -1 for
        none. next_by_class : the same as lists.
    reads_on : for each state whether any byte leads on.
    starts_after, reachable : `_starts_after` and `_reachable`, each answer of which is kept.
    automata : of the terminals' lexemes; by default as `compile_lexemes`.

    Raises: as `build_transducer`.
    """

    def __init__(
        self,
        grammar: Grammar,
        can_follow: CanFollow,
        modes: Modes | None,
        limit: int,
        automata: Sequence[Dfa | None] | None = None,
    ) -> None:
        self.grammar = grammar
        self.newline = grammar.layout.newline if grammar.layout else -1
        self._can_follow = can_follow
        check_literals(grammar, limit)
        automata = compile_lexemes(grammar) if automata is None else automata
        competing = [t for t, dfa in enumerate(automata) if dfa is not None and t != self.newline]
        refused = [(t, *each) for t in competing for each in refused_before(grammar.terminals[t])]
        self.at_once = {t for t, _, _ in refused if is_refused_at_once(grammar.terminals[t])}
        nfa = build_terminal_nfa([*automata, *(dfa for _, _, dfa in refused)])
        n = grammar.n_terminals
        names = [grammar.terminals[t].name for t in [*range(n), *(t for t, _, _ in refused)]]
        every = frozenset(t for t, dfa in enumerate(automata) if dfa is not None)
        self.modes = [every] if modes is None else [mode & every for mode in modes.competing]
        self._may_follow = np.ones((grammar.n_terminals, 1), np.bool_) if modes is None else modes.may_follow
        with_refused = [[*mode, *(n + i for i, (t, _, _) in enumerate(refused) if t in mode)] for mode in self.modes]
        starts = [tuple(int(nfa.initial[t]) for t in sorted(mode)) for mode in with_refused]
        union = build_union_dfa(nfa, names, limit, starts)
        self.union = replace(union, accepting=tuple(tuple(t for t in each if t < n) for each in union.accepting))
        # PERF: of those that never end where another one does, no width is asked
        tied = sorted({terminal for found in self.union.accepting if len(found) > 1 for terminal in found})
        rank = [-1] * n
        for terminal, own in zip(tied, terminal_rank([grammar.terminals[t] for t in tied]), strict=True):
            rank[terminal] = own
        self.winner = [min(found, key=rank.__getitem__, default=-1) for found in self.union.accepting]
        by_byte = _choices(refused, union.accepting, rank)
        byte_class = union.byte_class.copy()
        if by_byte:  # bytes of one class are refused alike
            rows = [union.byte_class, *(row[:256] for each in by_byte.values() for _, row in each)]
            byte_class = np.unique(np.array(rows, np.intp), axis=1, return_inverse=True)[1].reshape(256)
        # The layout counts these bytes, so each has a class of its own.
        for byte in column_bytes(grammar.layout.tabs) if grammar.layout else ():
            if (byte_class == byte_class[byte]).sum() > 1:
                byte_class[byte] = byte_class.max() + 1
        self.byte_class = byte_class.astype(np.uint8)
        self._class_of_byte: list[int] = byte_class.tolist()
        self.byte_of_class: list[int] = np.unique(byte_class, return_index=True)[1].tolist()
        self.after_class = union.next_state[:, self.byte_of_class]
        self.next_by_class: list[list[int]] = self.after_class.tolist()
        self.reads_on: list[bool] = np.any(self.after_class >= 0, axis=1).tolist()
        of_class = [*self.byte_of_class, 256]
        self.choices = {u: [(t, row[of_class]) for t, row in each] for u, each in by_byte.items()}
        self.may_be_refused = [u in by_byte and bool(by_byte[u][-1][1].any()) for u in range(len(self.winner))]
        self._may_win = [
            tuple(t for t, _ in self.choices[u]) if u in by_byte else (winner,) * (winner >= 0)
            for u, winner in enumerate(self.winner)
        ]
        wins = [sum(1 << terminal for terminal in each) for each in self._may_win]
        self.live = [members(found) for found in unions([list(set(row) - {-1}) for row in self.next_by_class], wins)]
        self.starts_after = cache(self._starts_after)
        self.reachable = cache(self._reachable)
        self._survives: dict[tuple[int, int, int], bool] = {}
        self._pairs = _no_pairs(FIRST_PAIRS)
        self._may_follow_at = cache(self._find_may_follow_at)

    def after(self, state: int, byte: int) -> int:
        """The union automaton's state after a byte, -1 for none."""
        return self.next_by_class[state][self._class_of_byte[byte]]

    @cached_property
    def lookahead(self) -> list[frozenset[int] | None]:
        """For each state the lookahead set: one of its members must come next. None: anything.

        The members are the terminals that the lexeme may become. If it may become an ignored
        terminal, the terminals that may begin behind that one are members too, except verbatim
        ones. The number `n_terminals` stands for the end of the text.

        Example: a comment that ends with its line can only be followed by what a line feed begins.
        """
        n = self.grammar.n_terminals
        every = {
            t for rule in self.grammar.rules for t in rule.rhs if t < n and not self.grammar.terminals[t].is_declared
        }
        successors = [set(row) - {-1} for row in self.next_by_class]
        own = [0] * len(self.winner)
        for state, winners in enumerate(self._may_win):
            for winner in winners:
                is_ignored = winner in self.grammar.ignored
                own[state] |= 1 << (n if is_ignored else winner)
                successors[state] |= self._begun_behind(state, winner) if is_ignored else set()
        anything = sum(1 << terminal for terminal in every - self.grammar.verbatim) | 1 << n
        return [
            None if found & anything == anything else frozenset(members(found))
            for found in unions(list(map(list, successors)), own)
        ]

    def _begun_behind(self, state: int, winner: int) -> set[int]:
        """The states one byte into a lexeme behind the ignored terminal that wins at `state`."""
        found = set()
        for start in set(self.union.starts):  # the mode stays
            if state not in self.reachable(start):
                continue
            for after, begun, byte in zip(
                self.next_by_class[state], self.next_by_class[start], self.byte_of_class, strict=True
            ):
                if begun < 0 or (after >= 0 and self.winner[after] >= 0 and not self.may_be_refused[after]):
                    continue
                others = self._read(winner, (start, True), byte)
                if after < 0 or any(self.can_survive(winner, after, *other) for other in others):
                    found.add(begun)
        return found

    def _reachable(self, start: int) -> set[int]:
        """The union automaton's states that are one byte or more into a lexeme from `start`."""
        rows = self.next_by_class
        return set(reachable(set(rows[start]) - {-1}, lambda state: set(rows[state]) - {-1}))

    def emitted(self, winner: int) -> tuple[int, ...]:
        """What a lexeme of `winner` emits at its end: (winner,), or () if it is ignored."""
        return () if winner in self.grammar.ignored else (winner,)

    def follows(self, winner: int, first: int) -> bool:
        """Whether `first` may come directly behind `winner`. False is a proof, True is not."""
        return (
            winner in self.grammar.ignored
            or first in self.grammar.ignored
            or self.newline in (winner, first)
            or self._can_follow(winner, first)
        )

    def readings(self, winner: int, data: bytes) -> set[tuple[int, bool]]:
        """Where a lexer may be that begins behind `winner` and reads `data`.

        Returns pairs: the union automaton's state, and whether this is still the first lexeme. The
        lexer may end its lexemes anywhere, so some pairs may be wrong, but none is missing.
        """
        current = {(start, True) for start in self.starts_after((winner,))}
        for byte in data:
            current = {found for reading in current for found in self._read(winner, reading, byte)}
        return current

    def _read(self, winner: int, reading: tuple[int, bool], byte: int) -> list[tuple[int, bool]]:
        state, is_first = reading
        after = self.after(state, byte)
        if after < 0:
            return []
        found = [(after, is_first)]
        accepting = self.union.accepting[after]
        if accepting and (not is_first or any(self.follows(winner, terminal) for terminal in accepting)):
            found += [(start, False) for start in self.starts_after(accepting)]
        return found

    def _starts_after(self, terminals: tuple[int, ...]) -> list[int]:
        """The states in which a lexeme may begin directly after one of `terminals`, by mode."""
        modes = np.flatnonzero(self._may_follow[list(terminals)].any(axis=0))
        return [self.union.starts[mode] for mode in modes.tolist()]

    def can_survive(self, winner: int, under_way: int, state: int, is_first: bool) -> bool:
        """Whether some bytes make the lexeme under way fail while another reading survives them.

        The lexeme must fail before it could have ended. False is a proof, True is not: the other
        reading may end its lexemes anywhere, and only its first terminal is compared with `winner`.

        winner : the terminal that the other reading comes directly behind.
        under_way : the union automaton's state of the lexeme. state : that of the other reading.
        is_first : whether the other reading is still in its first lexeme.
        """
        # Behind its first lexeme `winner` does not matter: all share what is found, as number -1.
        first = winner if is_first else -1
        known = self._survives.get((first, under_way, state))
        if known is None:
            n_states = len(self.winner)
            may_end, may_live, may_go_on = self._may_follow_at(winner) if is_first else (self._is_end,) * 3
            if is_first and not may_go_on[state]:  # PERF: else a pair for each two copies of a repetition
                return False
            key = 1 + ((first + 1) * n_states + under_way) * n_states + state
            while (found := kernels.survives(key, self._automaton, may_end, may_live, self._pairs, PAUSE)) < 0:
                if found == kernels.FULL:
                    old, self._pairs = self._pairs, _no_pairs(2 * len(self._pairs.keys))
                    kernels.refill(old, self._pairs)
            known = self._survives[first, under_way, state] = bool(found)
        return known

    @cached_property
    def _automaton(self) -> kernels.Union:
        """The union automaton for `can_survive`."""
        starts = [self.starts_after(ended) if ended else [] for ended in self.union.accepting]
        return kernels.Union(
            np.ascontiguousarray(self.after_class),
            np.where(self.may_be_refused, -1, self.winner).astype(np.int32),
            self._is_end,
            np.concatenate([[0], np.cumsum([len(each) for each in starts])]).astype(np.int32),
            np.array([start for each in starts for start in each], np.int32),
            max(map(len, starts)),
        )

    @cached_property
    def _is_end(self) -> npt.NDArray[np.bool_]:
        """For each state whether some terminal can end there: (n_states,) bool."""
        return np.array([bool(ended) for ended in self.union.accepting], np.bool_)

    @cached_property
    def _terminals_at(self) -> npt.NDArray[np.bool_]:
        """(3, n_states, n_terminals) bool: what can end there, wins there or later, can end so."""
        ends = [sum(1 << terminal for terminal in each) for each in self.union.accepting]
        later = map(members, unions([list(set(row) - {-1}) for row in self.next_by_class], ends))
        found = np.zeros((3, len(self.live), self.grammar.n_terminals), np.bool_)
        for row, each in zip(
            found.reshape(-1, found.shape[2]), (*self.union.accepting, *self.live, *later), strict=True
        ):
            row[list(each)] = True
        return found

    def _find_may_follow_at(self, winner: int) -> npt.NDArray[np.bool_]:
        """(3, n_states) bool: can one behind `winner` end there, win there or later, end so?"""
        may = np.array([self.follows(winner, terminal) for terminal in range(self.grammar.n_terminals)])
        found: npt.NDArray[np.bool_] = (self._terminals_at & may).any(axis=2)
        return found


def _choices(
    refused: Sequence[tuple[int, tuple[int, ...], Dfa]], accepting: Sequence[tuple[int, ...]], rank: Sequence[int]
) -> dict[int, list[tuple[int, npt.NDArray[np.bool_]]]]:
    """`Lexemes.choices`, but by byte: (257,) bool with each terminal.

    refused : terminals, bytes before which they are refused, and the lexemes that are.
    accepting : for each state the terminals that end there, then the numbers of what is refused.
    """
    n = len(rank)
    found: dict[int, list[tuple[int, npt.NDArray[np.bool_]]]] = {}
    for state, ended in enumerate(accepting):
        here = [refused[number - n] for number in ended if number >= n]
        for terminal in sorted(ended[: len(ended) - len(here)], key=rank.__getitem__) if here else ():
            row = np.zeros(257, np.bool_)
            for some in [some for other, some, _ in here if other == terminal]:
                row[list(some)] = True
            found.setdefault(state, []).append((terminal, row))
            if not row.any():
                break
    return found


def _no_pairs(capacity: int) -> kernels.Pairs:
    """An empty table of pairs. capacity : a power of two."""
    keys, met = np.zeros((2, capacity), np.int64)
    return kernels.Pairs(keys, np.zeros(capacity, np.uint8), met, np.zeros(3, np.int64))


@Kept
def members(found: int) -> tuple[int, ...]:
    """The positions of the one bits, ascending."""
    data = np.frombuffer(found.to_bytes((found.bit_length() + 7) // 8, "little"), np.uint8)
    return tuple(np.flatnonzero(np.unpackbits(data, bitorder="little")).tolist())
