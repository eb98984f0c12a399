"""Which terminal sequences can never, always or jointly follow a context: fast, for any context-free grammar.

X, Y are terminals, S sequences of terminals, L the grammar's language, P the prefixes of its words.

- never_legal(X, S): no word of P ends in X S. Decided exactly.
- always_legal(X, S): every word of P that ends in X can go on with S. True is a proof, False means unknown.
- jointly_legal(X, S, T): after every word of P that ends in X, S and T are both legal or both not. True is a proof.

How: an occurrence of X in a rule is followed by the rest of that rule, then by what follows the
rule's left-hand side, and so on up to the start symbol. This is a *derivation path*. The remainders
of S that are left along it are a deterministic function of the occurrences passed
(`_kernels.advance`). S is legal after a prefix if and only if some derivation path of some parse of
that prefix reads all of S. Hence: if no derivation path accepts, S is never legal (and conversely);
if all accept, it is always legal; two sequences that are accepted on the same paths are jointly legal.
`judge` asks just that, for very many sequences; the methods for single questions also begin one terminal earlier (`Prover`).

Source: the unbounded form of the unlimited-credit exploration of Tran-Thien's streamlining post (2025), with the subset construction
in place of its nondeterministic automaton; `proofs/always_legal.v`, `proofs/never_legal.v`. `exploration.py` has the post's own form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar.normalise import reduce
from maskwright.analysis.legality import _kernels
from maskwright.analysis.legality.verdict import START, Context, TerminalSequence
from maskwright.analysis.loading.sources import GrammarSource, as_grammar

NEVER, SOMETIMES, ALWAYS = 0, 1, 2
"""Values of `Deciders.judge`: never legal, legal somewhere (and not proved always), always legal."""

ANYWHERE = -2
MAX_LENGTH = _kernels.MAX_LENGTH
"""Longest sequence, context included, that can be judged; longer ones are judged by their parts (`Deciders.judge`)."""

_N_SLOTS = 1 << 13
_PATH_DEPTH = 512


@dataclass(frozen=True)
class Query:
    """A left symbol (a terminal, START or ANYWHERE) and the sequence that is to follow it."""

    left: int
    sequence: TerminalSequence


class Deciders:
    """The deciders of one grammar. Thread-safe: all scratch space belongs to a call."""

    def __init__(self, grammar: GrammarSource, *, erased: Iterable[int] = ()) -> None:
        """erased : terminals that count as the empty string (layout's indent and dedent, which no text spells)."""
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
            symbol=symbols,
            lhs=np.array(lhs, np.int32),
            rule_end=np.array(rule_end, np.int32),
            occurrences=occurrences,
            occurrence_start=np.searchsorted(symbols[occurrences], np.arange(n_symbols + 1)).astype(np.int32),
            sizes=np.array([reduced.n_terminals, reduced.start], np.int32),
        )
        self._n_symbols = n_symbols

    def _new_levels(self, depth: int = MAX_LENGTH) -> _kernels.Levels:
        n_items = self.table.symbol.shape[0]
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
        """What every suffix of the sequence can do. Raises LimitError for a sequence longer than MAX_LENGTH."""
        if len(sequence) > MAX_LENGTH:
            raise LimitError(
                f"a sequence of {len(sequence)} terminals cannot be judged at once; the limit is {MAX_LENGTH}"
            )
        levels = self._new_levels(len(sequence))
        for n, terminal in enumerate(reversed(sequence), start=1):
            _kernels.add_level(self.table, levels, n, terminal)
        return levels

    def judge(self, queries: Sequence[Query], progress: Callable[[int], None] | None = None) -> npt.NDArray[np.int8]:
        """NEVER, SOMETIMES or ALWAYS for each query; (n_queries,) int8.

        A query longer than MAX_LENGTH is NEVER when one of its windows can occur nowhere, else SOMETIMES.
        progress : called with the number of queries judged since the last call.

        Cost: O(distinct suffixes * size of the grammar), about 30 us a suffix and 10 us a query for python.lark.
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
        # a suffix tree in depth-first order: sort by the reversed sequence
        short.sort(key=lambda number: queries[number].sequence[::-1])
        for begin in range(0, len(short), 4096):
            self._judge_chunk(queries, short[begin : begin + 4096], verdicts)
            if progress is not None:
                progress(len(short[begin : begin + 4096]))
        return verdicts

    def _judge_chunk(self, queries: Sequence[Query], numbers: Sequence[int], verdicts: npt.NDArray[np.int8]) -> None:
        found = np.zeros(len(numbers), np.int8)
        tree = _suffix_tree([queries[number] for number in numbers])
        slots, stamps, stack = self._new_scratch()
        levels = self._new_levels(int(tree[0].max(initial=1)))
        _kernels.judge_tree(self.table, levels, *tree, found, slots, stamps, stack)
        verdicts[np.array(numbers, np.int64)] = found

    def signatures(
        self, queries: Sequence[Query], pool: Sequence[int], paths: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.uint64]:
        """On which derivation paths each sequence is accepted: (n_queries, ceil(n_paths / 64)) uint64.

        Sequences that are accepted on the same paths (`Prover.is_jointly_legal`) have equal signatures; the converse is to be proved.

        pool : for each query which of paths[pool], (n_pools, n_paths, depth) int32, to use. See `witness_paths`.
        """
        order = sorted(range(len(queries)), key=lambda number: queries[number].sequence[::-1])
        found = np.zeros((len(queries), -(-paths.shape[1] // 64)), np.uint64)
        tree = _suffix_tree([queries[number] for number in order])
        levels = self._new_levels(int(tree[0].max(initial=1)))
        pools = np.array([pool[number] for number in order], np.int32)
        _kernels.sign_tree(self.table, levels, *tree, pools, paths, found)
        signatures = np.empty_like(found)
        signatures[np.array(order, np.int64)] = found
        return signatures

    def witness_paths(self, queries: Sequence[Query]) -> npt.NDArray[np.int32]:
        """For each query a derivation path from its left terminal that accepts its sequence: (n_queries, depth) int32, -1 behind its end.

        A path is the items after the occurrences passed. All -1 where the sequence is never legal, or its path is longer than _PATH_DEPTH.
        """
        order = sorted(range(len(queries)), key=lambda number: queries[number].sequence[::-1])
        tree = _suffix_tree([queries[number] for number in order])
        levels = self._new_levels(int(tree[0].max(initial=1)))
        found = np.full((len(queries), _PATH_DEPTH), -1, np.int32)
        lengths = np.zeros(len(queries), np.int32)
        _kernels.witness_tree(self.table, levels, *tree, self._shortest_paths, found, lengths)
        found[lengths < 0] = -1
        paths = np.empty_like(found)
        paths[np.array(order, np.int64)] = found
        return paths[:, : max(1, int(lengths.max(initial=1)))]

    @cached_property
    def _shortest_paths(self) -> npt.NDArray[np.int32]:
        """(n_symbols,) int32: for each symbol the item before it that its shortest derivation path begins with."""
        table, start = self.table, int(self.table.sizes[1])
        distance = np.full(self._n_symbols, 1 << 40, np.int64)
        shortest = np.zeros(self._n_symbols, np.int32)
        distance[start] = 0
        before = np.flatnonzero(table.symbol >= 0)
        while True:
            reached = distance[table.lhs[before]] + 1
            better = before[reached < distance[table.symbol[before]]]
            if not len(better):
                return shortest
            # the nearest last, so that it is the one that stays where several reach one symbol
            better = better[np.argsort(-distance[table.lhs[better]], kind="stable")]
            shortest[table.symbol[better]] = better
            distance[table.symbol[better]] = distance[table.lhs[better]] + 1

    def is_never_legal(self, context: Context, sequence: TerminalSequence) -> bool:
        """No word of P ends in the context followed by the sequence. Exact (proofs/never_legal.v).

        An empty context means anywhere: the sequence is no factor of any word. `START` as the first member means the start of the text.
        Longer than MAX_LENGTH: True is still a proof.
        """
        if len(context) == 1 and not sequence:
            return context[0] not in (START, *self.live_terminals)
        return bool(self.judge([_as_query(context, sequence)])[0] == NEVER)

    def is_always_legal(self, context: Context, sequence: TerminalSequence) -> bool:
        """Every word of P that ends in the context can go on with the sequence.

        True is a proof (proofs/always_legal.v, always_legal_sound; proofs/implication.v, from_before.v), and holds wherever
        `judge` says ALWAYS or the post's exploration proves it (`Prover.implies_from_before`). False means
        unknown, except at the start of the text, where the answer is exact (up to MAX_LENGTH terminals).
        """
        if not sequence:
            return True
        if not context:
            return all(self.is_always_legal((left,), sequence) for left in (START, *self.live_terminals))
        if context == (START,):
            return bool(self.judge([Query(START, sequence)])[0] == ALWAYS)
        return self._implies(context[0], context[1:], context[1:] + sequence)

    def is_jointly_legal(self, context: Context, first: TerminalSequence, second: TerminalSequence) -> bool:
        """After every word of P that ends in the context, `first` and `second` are both legal or both not. True is a proof."""
        if first == second:
            return True
        if not context:
            return all(self.is_jointly_legal((left,), first, second) for left in (START, *self.live_terminals))
        rest = context[1:]
        return self._implies(context[0], rest + first, rest + second) and self._implies(
            context[0], rest + second, rest + first
        )

    @cached_property
    def live_terminals(self) -> tuple[int, ...]:
        """The terminals that occur in some word of the language."""
        items = self.table.symbol
        return tuple(int(t) for t in np.unique(items[(items >= 0) & (items < self.table.sizes[0])]))

    def prover(self) -> Prover:
        """For many proofs about few sequences. Not thread-safe."""
        return Prover(self)

    def _implies(self, left: int, premise: TerminalSequence, conclusion: TerminalSequence) -> bool:
        """Every derivation path from `left` on which `premise` is legal accepts `conclusion`."""
        if left == START:
            verdicts = self.judge([Query(START, premise), Query(START, conclusion)])
            return bool(verdicts[0] == NEVER or verdicts[1] == ALWAYS)
        prover = self.prover()
        return prover.implies(left, premise, conclusion) or prover.implies_from_before(left, premise, conclusion)


class Prover:
    """Proofs that one sequence is legal wherever another is. Keeps what it finds out about sequences, and its scratch space."""

    def __init__(self, deciders: Deciders) -> None:
        self._deciders = deciders
        self.table = deciders.table
        self._slots, self._stamps, self._stack = deciders._new_scratch()
        self._stamp = 0
        self._levels: dict[TerminalSequence, _kernels.Levels] = {}

    def implies(self, left: int, premise: TerminalSequence, conclusion: TerminalSequence) -> bool:
        """Every derivation path from the symbol `left` that accepts `premise` accepts `conclusion`.

        True is a proof. False past MAX_LENGTH.
        """
        if conclusion == premise[: len(conclusion)]:
            return True  # legality is closed under prefixes; the kernel asks for a conclusion that is not empty
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
        """After every word of P that ends in the terminal `left`, `conclusion` is legal if `premise` is. True is a proof.

        This begins one terminal earlier than `implies`, and so sees alternatives side by side that `left`
        has parted. Example: with ``S : a S b | a b`` an `a` can always be followed by an `a`, though not
        in the second rule.

        A word of P that ends in `left` begins with it, or some terminal Y stands just before it. Then
        `left` and the premise are read on a derivation path from Y. So this is enough: at the start of
        the text and from every terminal Y, all that reads `left` and the premise reads `left` and the
        conclusion.

        Cost: as `implies`, times the terminals that `left` can follow. Source: proofs/from_before.v, from_before_sound.
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

    def levels(self, sequence: TerminalSequence) -> _kernels.Levels:
        """`Deciders.levels`, each sequence's once."""
        if sequence not in self._levels:
            self._levels[sequence] = self._deciders.levels(sequence)
        return self._levels[sequence]

    def is_jointly_legal(self, left: int, first: TerminalSequence, second: TerminalSequence) -> bool:
        """The two sequences are accepted on the same derivation paths from the terminal `left`. True is a proof."""
        return first == second or (self.implies(left, first, second) and self.implies(left, second, first))


def _suffix_tree(
    queries: Sequence[Query],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """The queries' sequences as a tree of suffixes in depth-first order, for `_kernels.judge_tree`.

    queries : sorted by their reversed sequences, so that queries of one sequence are neighbours: they belong to the node made last,
        and nodes made on the way to it have none.
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
    if not context:
        return Query(ANYWHERE, sequence)
    return Query(context[0], context[1:] + sequence)
