"""Decides fast which terminal sequences can never, always or jointly follow a context.

This works for any context-free grammar. X and Y are terminals, S and T are sequences of terminals,
L is the grammar's language, and P is the set of prefixes of its words.

- never_legal(X, S): no word of P ends in X S. Decided exactly.
- always_legal(X, S): every word of P that ends in X can go on with S. True is a proof, False means
  unknown.
- jointly_legal(X, S, T): after every word of P that ends in X, S and T are both legal or both not.
  True is a proof, False means unknown.

How: an occurrence of X in a rule is followed by the symbols after it in that rule, then by the
symbols after the rule's left-hand side in another rule, and so on up to the start symbol. This is a
*derivation path*. The remainders of S that are left along a path depend only on the occurrences
that the path has passed (`_kernels.advance`). S is legal after a prefix if and only if some
derivation path of some parse of that prefix reads all of S. Therefore:

- S is never legal if and only if no derivation path accepts it;
- S is always legal if all derivation paths accept it;
- two sequences are jointly legal if the same derivation paths accept them.

`judge` decides never and always in just this way, for very many sequences. The methods for single
questions can prove more, since they also begin one terminal earlier (`Prover`).

Example: ``S : a S b | a b``. From the `a` of the first rule, every path goes on into S and reads
`a` next. From the `a` of the second rule, every path reads `b` next. So neither `a` nor `b` is
accepted on all paths from `a`, though both are always legal after it. Only the start one terminal
earlier proves this: a path that reads an `a` can always take either rule.

Source: Tran-Thien's streamlining post (2025), its exploration with unlimited credit in an unbounded
form, and with the subset construction instead of a nondeterministic automaton.
`proofs/always_legal.v`, `proofs/never_legal.v`. `exploration.py` has the post's own form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar.normalise import reduce
from maskwright.analysis.kept import cached_property
from maskwright.analysis.legality import _kernels
from maskwright.analysis.legality.verdict import START, Context, TerminalSequence
from maskwright.analysis.loading.sources import GrammarSource, as_grammar

NEVER, SOMETIMES, ALWAYS = 0, 1, 2
"""Values of `Deciders.judge`: never legal; legal somewhere, perhaps always; always legal."""

ANYWHERE = -2
"""As a left symbol: the sequence may begin anywhere in a word."""

MAX_LENGTH = _kernels.MAX_LENGTH
"""The most terminals that are judged at once: a sequence and the context's members after the first.

Longer sequences are judged by their parts, see `Deciders.judge`.
"""

Tree: TypeAlias = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int32]]
"""Sequences as a tree of suffixes, see `_suffix_tree`."""

_CHUNK = 4096
"""The queries that are judged in one call, with one scratch space."""
_N_SLOTS = 1 << 13
_PATH_DEPTH = 512


@dataclass(frozen=True)
class Query:
    """A question: can the sequence follow the left symbol, never, sometimes or always?

    left : a terminal, START or ANYWHERE.
    sequence : terminals.
    """

    left: int
    sequence: TerminalSequence


class Deciders:
    """The deciders of one grammar. Thread-safe: each call has its own scratch space.

    grammar : a grammar, or what `load_grammar` takes. As an attribute: its reduced rules.
    erased : terminals that count as the empty string: layout's indent and dedent, which no text
        spells.
    table : the rules as flat arrays.

    Raises: GrammarError if the language is empty; whatever `load_grammar` raises.
    """

    def __init__(self, grammar: GrammarSource, *, erased: Iterable[int] = ()) -> None:
        erased = frozenset(erased)
        reduced = reduce(as_grammar(grammar))
        self.grammar = reduced
        symbol: list[int] = []
        lhs: list[int] = []
        rule_end: list[int] = []
        bodies = dict.fromkeys((rule.lhs, tuple(s for s in rule.rhs if s not in erased)) for rule in reduced.rules)
        for head, body in bodies:
            symbol += [*body, -1]
            lhs += [head] * (len(body) + 1)
            rule_end.append(len(symbol) - 1)
        n_symbols = reduced.n_terminals + reduced.n_nonterminals
        symbols = np.array(symbol, np.int32)
        order = np.argsort(symbols, kind="stable").astype(np.int32)
        occurrences = order[symbols[order] >= 0]
        self.table = _kernels.RuleTable(
            next_symbol=symbols,
            lhs=np.array(lhs, np.int32),
            rule_end=np.array(rule_end, np.int32),
            occurrences=occurrences,
            occurrence_start=np.searchsorted(symbols[occurrences], np.arange(n_symbols + 1)).astype(np.int32),
            sizes=np.array([reduced.n_terminals, reduced.start], np.int32),
        )
        self._n_symbols = n_symbols

    def _new_levels(self, depth: int = MAX_LENGTH) -> _kernels.Levels:
        n_items = self.table.next_symbol.shape[0]
        return _kernels.Levels(
            first=np.zeros(depth + 1, np.int32),
            span=np.zeros((depth + 1, self._n_symbols), np.uint64),
            tail=np.zeros((depth + 1, n_items), np.uint64),
            can_follow=np.zeros((depth + 1, self._n_symbols), np.int32),
        )

    @staticmethod
    def _new_scratch() -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
        return np.zeros((_N_SLOTS, 3), np.uint64), np.zeros(_N_SLOTS, np.int64), np.zeros((_N_SLOTS, 3), np.uint64)

    def levels(self, sequence: TerminalSequence) -> _kernels.Levels:
        """The tables of `_kernels.Levels` for every suffix of the sequence.

        Raises: LimitError if the sequence is longer than MAX_LENGTH.

        Cost: O(rounds * items * length^2), the rounds of each level being those of a fixed point.
        """
        if len(sequence) > MAX_LENGTH:
            raise LimitError(
                f"a sequence of {len(sequence)} terminals cannot be judged at once; the limit is {MAX_LENGTH}"
            )
        levels = self._new_levels(len(sequence))
        for n, terminal in enumerate(reversed(sequence), start=1):
            _kernels.add_level(self.table, levels, n, terminal)
        return levels

    def judge(self, queries: Sequence[Query], progress: Callable[[int], None] | None = None) -> npt.NDArray[np.int8]:
        """NEVER, SOMETIMES or ALWAYS for each query: (n_queries,) int8.

        NEVER is exact; ALWAYS is a proof; SOMETIMES means legal somewhere, perhaps always. An empty
        sequence is ALWAYS. After ANYWHERE a sequence is NEVER or SOMETIMES. For a sequence longer
        than MAX_LENGTH, NEVER is a proof and SOMETIMES means unknown: it is NEVER if one of its
        windows of MAX_LENGTH terminals can occur nowhere.

        progress : called with the number of queries judged since the last call.

        Cost: O(distinct suffixes * size of the grammar), about 30 us a suffix and 10 us a query for
        python.lark.
        """
        verdicts = np.full(len(queries), SOMETIMES, np.int8)
        short: list[int] = []
        for number, query in enumerate(queries):
            if len(query.sequence) > MAX_LENGTH:
                windows = range(0, len(query.sequence) - MAX_LENGTH + 1, MAX_LENGTH // 2)
                parts = [Query(ANYWHERE, query.sequence[i : i + MAX_LENGTH]) for i in windows]
                if (self.judge(parts) == NEVER).any():
                    verdicts[number] = NEVER
            elif query.sequence:
                short.append(number)
            else:
                verdicts[number] = ALWAYS
        # sorting by the reversed sequence puts a suffix tree into depth-first order
        short.sort(key=lambda number: queries[number].sequence[::-1])
        for begin in range(0, len(short), _CHUNK):
            chunk = short[begin : begin + _CHUNK]
            order, tree, levels = self._tree([queries[number] for number in chunk])
            found = np.zeros(len(chunk), np.int8)
            _kernels.judge_tree(self.table, levels, *tree, found, *self._new_scratch())
            verdicts[np.array(chunk, np.int64)[order]] = found
            if progress is not None:
                progress(len(chunk))
        return verdicts

    def _tree(self, queries: Sequence[Query]) -> tuple[npt.NDArray[np.int64], Tree, _kernels.Levels]:
        """The order of queries in a tree of their suffixes, the tree, and room for its levels."""
        order = sorted(range(len(queries)), key=lambda number: queries[number].sequence[::-1])
        tree = _suffix_tree([queries[number] for number in order])
        return np.array(order, np.int64), tree, self._new_levels(int(tree[0].max(initial=1)))

    @cached_property
    def pairs(self) -> npt.NDArray[np.int8]:
        """NEVER, SOMETIMES or ALWAYS for each pair of terminals.

        (n_terminals + 1, n_terminals) int8, read-only, by left and right terminal. The last row is
        for the start of the text. Terminals that occur in no word have NEVER everywhere. NEVER is
        exact, ALWAYS is a proof.

        Cost: O(terminals * size of the grammar) at the first use.
        """
        n = self.grammar.n_terminals
        table = np.full((n + 1, n), NEVER, np.int8)
        rights = np.array(self.live_terminals, np.int32)
        lefts = np.append(rights, np.int32(START))  # START = -1 is the last row
        for some in np.array_split(rights, 1 + len(rights) * len(lefts) // _CHUNK):
            found = np.zeros((len(some), len(lefts)), np.int8)
            starts = np.arange(len(some) + 1, dtype=np.int64) * len(lefts)
            left_of = np.tile(lefts, len(some))
            tree = np.ones(len(some), np.int32), some, starts, left_of
            _kernels.judge_tree(self.table, self._new_levels(1), *tree, found.reshape(-1), *self._new_scratch())
            table[np.ix_(lefts, some)] = found.T
        table.flags.writeable = False
        return table

    def signatures(
        self, queries: Sequence[Query], pool: Sequence[int], paths: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.uint64]:
        """Which derivation paths of a pool accept each sequence.

        Sequences that all derivation paths treat alike (`Prover.is_jointly_legal`) have equal
        signatures in one pool. Equal signatures prove nothing.

        queries : their left symbols are not used. Sequences have 1 to MAX_LENGTH terminals.
        pool : (n_queries,); for each query the first index of `paths`.
        paths : (n_pools, n_paths, depth) int32; derivation paths as `witness_paths` gives them.

        Returns (n_queries, ceil(n_paths / 64)) uint64; bit p % 64 of word p // 64 is set if path p
        accepts the query's sequence.

        Cost: O(distinct suffixes * size of the grammar + queries * n_paths * depth).
        """
        order, tree, levels = self._tree(queries)
        found = np.zeros((len(queries), -(-paths.shape[1] // 64)), np.uint64)
        pools = np.array(pool, np.int32)[order]
        _kernels.sign_tree(self.table, levels, *tree, pools, paths, found)
        signatures = np.empty_like(found)
        signatures[order] = found
        return signatures

    def witness_paths(self, queries: Sequence[Query]) -> npt.NDArray[np.int32]:
        """For each query a derivation path from its left terminal that accepts its sequence.

        queries : their left symbols are terminals. Sequences have 1 to MAX_LENGTH terminals.

        Returns (n_queries, depth) int32; each path as the items after the occurrences passed, then
        -1. All -1 where the sequence is never legal, or the path found is longer than _PATH_DEPTH.
        """
        order, tree, levels = self._tree(queries)
        found = np.full((len(queries), _PATH_DEPTH), -1, np.int32)
        lengths = np.zeros(len(queries), np.int32)
        _kernels.witness_tree(self.table, levels, *tree, self._shortest_paths, found, lengths)
        found[lengths < 0] = -1
        paths = np.empty_like(found)
        paths[order] = found
        return paths[:, : max(1, int(lengths.max(initial=1)))]

    @cached_property
    def _shortest_paths(self) -> npt.NDArray[np.int32]:
        """The item before each symbol on its shortest derivation path: (n_symbols,) int32."""
        table, start = self.table, int(self.table.sizes[1])
        distance = np.full(self._n_symbols, 1 << 40, np.int64)
        shortest = np.zeros(self._n_symbols, np.int32)
        distance[start] = 0
        before = np.flatnonzero(table.next_symbol >= 0)
        while True:
            reached = distance[table.lhs[before]] + 1
            better = before[reached < distance[table.next_symbol[before]]]
            if not len(better):
                return shortest
            # the nearest last: where several reach one symbol, the last assignment below stays
            better = better[np.argsort(-distance[table.lhs[better]], kind="stable")]
            shortest[table.next_symbol[better]] = better
            distance[table.next_symbol[better]] = distance[table.lhs[better]] + 1

    def is_never_legal(self, context: Context, sequence: TerminalSequence) -> bool:
        """No word of P ends in the context followed by the sequence.

        Exact (proofs/never_legal.v). Where the context's later terminals and the sequence are
        longer than MAX_LENGTH together, True is a proof and False means unknown.

        context : terminals, the nearest last. () means anywhere: the sequence is no factor of any
            word. START as the first member means the start of the text.
        """
        if len(context) == 1 and not sequence:
            return context[0] not in (START, *self.live_terminals)
        return bool(self.judge([_as_query(context, sequence)])[0] == NEVER)

    def is_always_legal(self, context: Context, sequence: TerminalSequence) -> bool:
        """Every word of P that ends in the context can go on with the sequence.

        True is a proof (proofs/always_legal.v, always_legal_sound; proofs/implication.v;
        from_before.v). The answer is True wherever `judge` says ALWAYS or the post's exploration
        proves it (`Prover.implies_from_before`). False means unknown. For a context that begins
        with START, up to MAX_LENGTH terminals, False is exact too.

        context : as in `is_never_legal`; () means after every word of P.
        """
        if not sequence:
            return True
        if not context:
            return all(self.is_always_legal((left,), sequence) for left in (START, *self.live_terminals))
        if context == (START,):
            return bool(self.judge([Query(START, sequence)])[0] == ALWAYS)
        return self._implies(context[0], context[1:], context[1:] + sequence)

    def is_jointly_legal(self, context: Context, first: TerminalSequence, second: TerminalSequence) -> bool:
        """After every word of P that ends in the context, both sequences are legal or neither is.

        True is a proof, False means unknown.

        context : as in `is_never_legal`; () means after every word of P.
        """
        if first == second:
            return True
        if not context:
            return all(self.is_jointly_legal((left,), first, second) for left in (START, *self.live_terminals))
        remainder = context[1:]
        return self._implies(context[0], remainder + first, remainder + second) and self._implies(
            context[0], remainder + second, remainder + first
        )

    @cached_property
    def live_terminals(self) -> tuple[int, ...]:
        """The terminals that occur in some word of the language."""
        items = self.table.next_symbol
        return tuple(int(t) for t in np.unique(items[(items >= 0) & (items < self.table.sizes[0])]))

    def prover(self) -> Prover:
        """A new `Prover`, for many proofs about few sequences."""
        return Prover(self)

    def _implies(self, left: int, premise: TerminalSequence, conclusion: TerminalSequence) -> bool:
        """After every word of P that ends in `left`, `conclusion` is legal if `premise` is.

        True is a proof. At START, up to MAX_LENGTH terminals, False is exact.
        """
        if left == START:
            verdicts = self.judge([Query(START, premise), Query(START, conclusion)])
            return bool(verdicts[0] == NEVER or verdicts[1] == ALWAYS)
        prover = self.prover()
        return prover.implies(left, premise, conclusion) or prover.implies_from_before(left, premise, conclusion)


class Prover:
    """Proves that one sequence is legal wherever another is.

    A prover keeps the levels of the sequences that it has met, and its scratch space. It is not
    thread-safe.
    """

    def __init__(self, deciders: Deciders) -> None:
        self._deciders = deciders
        self.table = deciders.table
        self._slots, self._stamps, self._stack = deciders._new_scratch()
        self._stamp = 0
        self.levels = cache(deciders.levels)

    def implies(self, left: int, premise: TerminalSequence, conclusion: TerminalSequence) -> bool:
        """Every derivation path from the symbol `left` that accepts `premise` accepts `conclusion`.

        True is a proof. False means unknown; it is the answer if a sequence is longer than
        MAX_LENGTH or the search needs more than `_N_SLOTS` states.

        left : a terminal or a nonterminal.
        """
        if conclusion == premise[: len(conclusion)]:
            return True  # prefixes of a legal sequence are legal; the kernel takes none that is empty
        if max(len(premise), len(conclusion)) > MAX_LENGTH:
            return False
        holds, wanted = self.levels(premise), self.levels(conclusion)
        self._stamp += 1
        return bool(
            _kernels.implies(
                self.table,
                holds,
                len(premise),
                wanted,
                len(conclusion),
                left,
                self._slots,
                self._stamps,
                self._stamp,
                self._stack,
            )
        )

    def implies_from_before(self, left: int, premise: TerminalSequence, conclusion: TerminalSequence) -> bool:
        """After every word of P that ends in `left`, `conclusion` is legal if `premise` is.

        True is a proof, False means unknown. This starts one terminal earlier than `implies`. It
        therefore sees rules side by side which paths from `left` have already chosen between.
        Example: with ``S : a S b | a b``, `a` can always follow `a`, though not in the second rule.

        A word of P that ends in `left` is `left` alone, or has some terminal Y just before it. In
        the second case `left` and the premise are read on a derivation path from Y. So it suffices
        that, at the start of the text and on all paths from every terminal Y, whatever accepts
        `left` and the premise accepts `left` and the conclusion.

        left : a terminal.

        Cost: as `implies`, times the number of terminals that `left` can follow.
        Source: proofs/from_before.v, from_before_sound.
        """
        premise, conclusion = (left, *premise), (left, *conclusion)
        if max(len(premise), len(conclusion)) > MAX_LENGTH:
            return False
        start, accepted = self.table.sizes[1], np.uint64(1)
        holds, wanted = self.levels(premise), self.levels(conclusion)
        if holds.span[len(premise), start] & accepted and not wanted.span[len(conclusion), start] & accepted:
            return False
        befores = np.flatnonzero(holds.can_follow[len(premise), : self.table.sizes[0]])
        return all(self.implies(int(terminal), premise, conclusion) for terminal in befores)

    def is_jointly_legal(self, left: int, first: TerminalSequence, second: TerminalSequence) -> bool:
        """The same derivation paths from the symbol `left` accept the two sequences.

        True is a proof, False means unknown.
        """
        return first == second or (self.implies(left, first, second) and self.implies(left, second, first))


def _suffix_tree(queries: Sequence[Query]) -> Tree:
    """The queries' sequences as a tree of suffixes in depth-first order, for `_kernels.judge_tree`.

    queries : sorted by their reversed sequences, so that queries of one sequence are neighbours.
        They belong to the node of the whole sequence; nodes added above it have no queries.

    Returns `lengths`, `firsts`, `query_start` and `query_left` of `judge_tree`.
    """
    lengths: list[int] = []
    firsts: list[int] = []
    starts: list[int] = []
    previous: TerminalSequence = ()
    for position, query in enumerate(queries):
        reverse = query.sequence[::-1]
        if reverse == previous:
            continue
        shorter = min(len(previous), len(reverse))
        common = 0
        while common < shorter and previous[common] == reverse[common]:
            common += 1
        for length in range(common + 1, len(reverse) + 1):
            lengths.append(length)
            firsts.append(reverse[length - 1])
            starts.append(position)
        previous = reverse
    return (
        np.array(lengths, np.int32),
        np.array(firsts, np.int32),
        np.array([*starts, len(queries)], np.int64),
        np.array([query.left for query in queries], np.int32),
    )


def _as_query(context: Context, sequence: TerminalSequence) -> Query:
    """The sequence after the context's first member; later members are put before it."""
    if not context:
        return Query(ANYWHERE, sequence)
    return Query(context[0], context[1:] + sequence)
