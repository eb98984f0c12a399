"""Streamlining: fewer entries in every lexer state, the same masks.

An entry (lexer state, sequence) allows its tokens if the parser accepts the sequence. Each step
maps sequences to other sequences, or deletes them. It relies on facts about the grammar that hold
in every context in which the lexer state can occur:

    ignored   drops ignored terminals, which never reach the parser
    classes   replaces each interchangeable terminal by the least one of its class
    follow    deletes a sequence that is no path of the follow graph
    pairs     drops a last terminal that can always follow the one before it
    never     deletes a sequence that is never legal
    always    drops a whole suffix that can always follow what stands before it
    joint     merges sequences that are legal after the same prefixes
    exact     decides never, always and joint again: not by approximations, but on all stacks on
              which an LR parser can stand

If an entry's sequence is mapped to T, its tokens move to the entry of T. They are allowed in the
same contexts as before (proofs/streamlining.v). The empty sequence needs no parser at all.

Example: if WS is ignored, the tokens of the entry (q, WS NAME) move to the entry (q, NAME).

Source: Tran-Thien's streamlining post (2025). The order of the steps is the post's; `joint` and
`exact` go beyond it.

A store keyed by the last two terminals, the first "future work" of the post, has a cell for each
lexer state and each terminal before the state's own: `build_entry_table` with context 2.
`pair_savings` only counts what that gives.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import GrammarError, LimitError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.legality.deciders import ALWAYS
from maskwright.analysis.legality.interchange import interchange_classes, representatives
from maskwright.analysis.legality.judge import Case, Judge, joint_representatives
from maskwright.analysis.legality.verdict import START
from maskwright.maskstore.entries.exact_outcomes import ExactOutcomes, exact_groups
from maskwright.maskstore.entries.walk import Entries, SequenceTable, Symbols, spoken_sequence
from maskwright.maskstore.tokens.events import EventCodes

STEPS = ("ignored", "classes", "follow", "pairs", "never", "always", "joint", "exact")

DELETED = -1


@dataclass(frozen=True)
class SequencesAfter:
    """Sequences that are judged after one left symbol.

    left : what stands just before the sequences: a terminal, START, or ANYWHERE where the lexer
        state does not tell. That is so inside ignored terminals, and inside a newline, which the
        parser drops if brackets are open.
    sequences : (n,) int64; numbers in the `SequenceTable`.
    """

    left: int
    sequences: npt.NDArray[np.int64]


@dataclass
class Streamlined:
    """The result of each step, for each left symbol.

    table : the sequences by number, those that the steps made included.

    mapping : left symbol -> step -> (n_sequences,) int32; sequence number -> sequence number, or
        DELETED. Steps are cumulative: each maps the n_sequences original sequences. A sequence that
        does not occur after a left symbol is DELETED there.

    seconds : step -> CPU seconds.

    classes : the interchange classes that the step `classes` used.

    exact_verdicts : verdict -> the number of pairs (left symbol, sequence) that only the step
        `exact` decided: "never", the sequence is never legal; "always", it ends in a suffix that is
        always legal; "jointly", it is legal exactly where another one is. None if the step was
        skipped.
    """

    table: SequenceTable
    mapping: dict[int, dict[str, npt.NDArray[np.int32]]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    classes: tuple[tuple[int, ...], ...] = ()
    exact_verdicts: dict[str, int] | None = None

    def final(self, left: int) -> npt.NDArray[np.int32]:
        """`mapping` of a left symbol after the last step: (n_sequences,) int32."""
        return self.mapping[left][STEPS[-1]]


def streamline(
    grammar: Grammar,
    codes: EventCodes,
    table: SequenceTable,
    contexts: Iterable[SequencesAfter],
    judge: Judge,
    progress: Callable[[str, int, int], None] | None = None,
    *,
    exact: bool = True,
) -> Streamlined:
    """Run all steps, and keep the result of each.

    codes : the meaning of the symbols in the sequences.

    table : the sequences. The steps add new ones.

    contexts : the sequences to streamline, with their left symbols. Contexts with one left symbol
        are streamlined together.

    judge : the grammar's judge. Its `rules` also say which interchange classes are used.

    progress : called with the step's name, how much of it is done, and how much there is: cases,
        in `exact` steps of `explore`. The steps `never`, `always`, `joint` and `exact` call it.

    exact : False skips the step `exact`, so that its mapping is that of `joint`. The step is also
        skipped if the grammar's LALR tables cannot be built, or if it would exceed a limit: too
        many reductions or readings of one sequence, or more than EXACT_BYTES.

    Cost for python.lark at V = 32k: 1.6 CPU s for the steps up to `joint`, 1.2 for `exact`
    (reports/bench/streamlining.py).
    """
    return _Streamliner(grammar, codes, table, contexts, judge, progress, exact).run()


class _Streamliner:
    """One call of `streamline`.

    current : left symbol -> (n,) int64; for each original sequence the one it is mapped to so far.
    """

    def __init__(
        self,
        grammar: Grammar,
        codes: EventCodes,
        table: SequenceTable,
        contexts: Iterable[SequencesAfter],
        judge: Judge,
        progress: Callable[[str, int, int], None] | None,
        exact: bool,
    ) -> None:
        self.grammar = grammar
        self.codes = codes
        self.table = table
        self.judge = judge
        self.progress = progress
        self.is_exact = exact
        needed: dict[int, npt.NDArray[np.int64]] = {}
        for context in contexts:
            known = needed.get(context.left)
            needed[context.left] = context.sequences if known is None else np.union1d(known, context.sequences)
        self.original = needed
        self.n_original = len(table)
        self.current: dict[int, npt.NDArray[np.int64]] = {left: ids.copy() for left, ids in needed.items()}
        self.result = Streamlined(table)
        self._spoken: dict[int, Symbols] = {}

    def run(self) -> Streamlined:
        """Run the steps in order, and record the mapping after each."""
        steps = (
            ("ignored", self.drop_ignored),
            ("classes", self.merge_classes),
            ("follow", self.delete_non_paths),
            ("pairs", self.fold_pairs),
            ("never", self.delete_never),
            ("always", self.fold_always),
            ("joint", self.merge_joint),
            ("exact", self.merge_exact),
        )
        for name, step in steps:
            begin = time.process_time()
            step()
            self.result.seconds[name] = time.process_time() - begin
            for left, ids in self.original.items():
                mapping = np.full(self.n_original, DELETED, np.int32)
                mapping[ids] = self.current[left]
                self.result.mapping.setdefault(left, {})[name] = mapping
        return self.result

    def spoken(self, number: int) -> Symbols:
        """`spoken_sequence` of a sequence in the table, computed once."""
        found = self._spoken.get(number)
        if found is None:
            found = self._spoken[number] = spoken_sequence(self.codes, self.table[number])
        return found

    def _map_all(self, change: Callable[[Symbols], Symbols]) -> None:
        """Map every sequence in use, in the same way after every left symbol."""
        used = np.unique(np.concatenate([ids[ids >= 0] for ids in self.current.values()]))
        target = np.full(len(self.table), DELETED, np.int64)
        for number in used.tolist():
            target[number] = self.table.number(change(self.table[number]))
        for left, ids in self.current.items():
            self.current[left] = np.where(ids >= 0, target[ids], DELETED)

    def drop_ignored(self) -> None:
        """Drop ignored terminals, which never reach the parser."""
        ignored = self.grammar.ignored
        self._map_all(lambda symbols: tuple(s for s in symbols if s not in ignored))

    def merge_classes(self) -> None:
        """Replace each terminal by the least one of its interchange class."""
        self.result.classes = interchange_classes(self.grammar, rewrite=self.judge.rules == "normalised")
        least = representatives(self.grammar.n_terminals, self.result.classes)
        n = self.grammar.n_terminals
        self._map_all(lambda symbols: tuple(least[s] if s < n else s for s in symbols))

    def delete_non_paths(self) -> None:
        """Delete sequences that are no path of the follow graph."""
        pairs = self._pairs_in_use()
        self._map({(left, n): DELETED for left, n in pairs if not self.judge.is_path(left, self.spoken(n))})

    def _can_stand_left(self, symbol: int) -> bool:
        """Whether a suffix after this symbol may be dropped.

        The symbol must be a terminal other than the newline: an indent or dedents may follow a
        newline, so the parser's state after it is not certain.
        """
        return 0 <= symbol < self.grammar.n_terminals and symbol != self.judge.newline

    def fold_pairs(self) -> None:
        """Drop the last terminal as long as it can always follow the symbol before it."""
        always = self.judge.always_deciders.pairs == ALWAYS

        def folded(left: int, symbols: Symbols) -> Symbols:
            while symbols and symbols[-1] < self.grammar.n_terminals:
                before = symbols[-2] if len(symbols) > 1 else left
                if not (self._can_stand_left(before) or before == START) or not always[before, symbols[-1]]:
                    break
                symbols = symbols[:-1]
            return symbols

        self._map({(left, n): self.table.number(folded(left, self.table[n])) for left, n in self._pairs_in_use()})

    def _map(self, target: dict[tuple[int, int], int]) -> None:
        """Map sequences, by left symbol and number, to others or DELETED. The rest stays."""
        for left, ids in self.current.items():
            self.current[left] = np.array([target.get((left, n), n) for n in ids.tolist()], np.int64)

    def _pairs_in_use(self) -> list[tuple[int, int]]:
        """The distinct pairs of a left symbol and the number of a sequence that is not empty."""
        return [(left, int(n)) for left, ids in self.current.items() for n in np.unique(ids[ids > 0])]

    def _ticker(self, step: str, total: int) -> Callable[[int], None] | None:
        """A function that adds to the cases done, and reports progress; None if nobody listens."""
        if self.progress is None:
            return None
        done = 0
        report = self.progress

        def tick(count: int) -> None:
            nonlocal done
            done = min(total, done + count)  # a judge counts queries; a case needs several, or none
            report(step, done, total)

        return tick

    def delete_never(self) -> None:
        """Delete sequences that are proved never legal after their left symbol."""
        pairs = self._pairs_in_use()
        cases = list(dict.fromkeys((left, self.spoken(number)) for left, number in pairs))
        never = dict(zip(cases, self.judge.never(cases, self._ticker("never", len(cases))).tolist(), strict=True))
        self._map({(left, n): DELETED for left, n in pairs if never[left, self.spoken(n)]})

    def fold_always(self) -> None:
        """Drop the longest suffix that is proved always legal after the symbol before it."""
        continuations: dict[tuple[int, int], list[tuple[int, Case]]] = {}
        for left, number in self._pairs_in_use():
            symbols = self.table[number]
            found = []
            for kept in range(len(symbols)):
                before = symbols[kept - 1] if kept else left
                continuation = symbols[kept:]
                if not (self._can_stand_left(before) or (kept == 0 and left == START)):
                    continue
                # BOUND: only the first symbol can be a "leave" event, which spoken_sequence would
                # drop. It stands after the newline or ANYWHERE, which _can_stand_left refuses.
                found.append((kept, (before, spoken_sequence(self.codes, continuation))))
            continuations[left, number] = found
        cases = list(dict.fromkeys(case for found in continuations.values() for _, case in found))
        always = dict(zip(cases, self.judge.always(cases, self._ticker("always", len(cases))).tolist(), strict=True))
        proved = {pair: [kept for kept, case in found if always[case]] for pair, found in continuations.items()}
        self._map({pair: self.table.number(self.table[pair[1]][: kept[0]]) for pair, kept in proved.items() if kept})

    def merge_joint(self) -> None:
        """Merge sequences that are proved legal after the same prefixes."""
        # sequences with events differ in columns, which the judge does not see
        pairs = [(left, n) for left, n in self._pairs_in_use() if max(self.table[n]) < self.grammar.n_terminals]
        cases = [(left, self.table[number]) for left, number in pairs]
        leaders = joint_representatives(self.judge, cases, self._ticker("joint", len(cases)))
        self._map({pair: pairs[leader][1] for pair, leader in zip(pairs, leaders, strict=True)})

    def merge_exact(self) -> None:
        """Delete, shorten and merge sequences by what an LR parser does with them on all stacks."""
        if not self.is_exact:
            return
        progress = self.progress
        report = None if progress is None else (lambda done, total: progress("exact", done, total))
        try:
            groups = exact_groups(self.table, self.codes, self.judge, self._pairs_in_use())
            found = ExactOutcomes(self.grammar, self.judge, groups, report)
        except (GrammarError, LimitError):
            return  # no LALR tables, or a limit was exceeded: keep the result of the approximations
        counts = self.result.exact_verdicts = {"never": 0, "always": 0, "jointly": 0}
        target: dict[tuple[int, int], int] = {}
        for group in groups:
            for number, verdict, kept in found.verdicts(group):
                if verdict:
                    counts[verdict] += 1
                is_never = verdict == "never"
                target[group.left, number] = DELETED if is_never else self.table.number((*group.head, *kept))
        self._map(target)


def count_entries(
    result: Streamlined, states: Sequence[tuple[int, npt.NDArray[np.int64]]]
) -> dict[str, npt.NDArray[np.int32]]:
    """The number of entries of each lexer state, before streamlining and after each step.

    states : for each of n_states lexer states its left symbol and the numbers of its sequences,
        (n,) int64.

    Returns "original" -> (n_states,) int32, then the same for the name of each step in order.
    """
    counts = {"original": np.array([len(ids) for _, ids in states], np.int32)}
    for step in STEPS:
        found = []
        for left, ids in states:
            mapped = result.mapping[left][step][ids]
            found.append(len(np.unique(mapped[mapped >= 0])))
        counts[step] = np.array(found, np.int32)
    return counts


def pair_savings(grammar: Grammar, entries: Entries, result: Streamlined, judge: Judge) -> tuple[int, float, float]:
    """Count the entries that never- and always-verdicts after two terminals leave.

    entries, result, judge : as of `pair_mappings`.

    Returns the number of pairs of a lexer state and a terminal that can stand before the state's
    own, and means over these: the entries after the state's own terminal, and after both. States
    inside ignored terminals and newlines have none, and are left out.

    Cost: about 5 us for each (pair of terminals, sequence); 2 s for python.lark at V = 32k.
    """
    counts = [
        [len(np.unique(mapped[mapped >= 0])) for mapped in (result.final(left)[used], mapping[used])]
        for _, left, mapping in pair_mappings(grammar, entries, result, judge)
        for used in (state.sequences for state in entries.states if state.left == left)
    ]
    one, two = np.mean(counts or [[0, 0]], axis=0).tolist()
    return len(counts), one, two


def pair_mappings(
    grammar: Grammar, entries: Entries, result: Streamlined, judge: Judge
) -> Iterator[tuple[int, int, npt.NDArray[np.int32]]]:
    """What never- and always-verdicts after two terminals make of the sequences.

    entries : the entries before streamlining.
    result : how they were streamlined.
    judge : the grammar's judge.

    Yields each terminal that can stand before a state's own, the state's own, and the mapping of
    the sequences after both, as `Streamlined.final` has it after the state's own.
    """
    used: dict[int, set[int]] = {}
    for state in entries.states:
        if state.left >= 0:
            used.setdefault(state.left, set()).update(result.final(state.left)[state.sequences].tolist())
    pairs = [
        (second, left)
        for left in used
        for second in np.flatnonzero(judge.follow[:-1, left]).tolist()
        if second not in grammar.ignored
    ]
    numbers = {left: sorted(number for number in found if number > 0) for left, found in used.items()}
    cases: list[Case] = [
        (second, (left, *spoken_sequence(entries.walk.codes, result.table[number])))
        for second, left in pairs
        for number in numbers[left]
    ]
    never = iter(judge.never(cases).tolist())
    prover = judge.always_deciders.prover()
    each = iter(cases)
    for second, left in pairs:
        outcome = np.arange(len(result.table), dtype=np.int32)
        for number in numbers[left]:
            _, sequence = next(each)
            plain = judge.newline not in (second, *sequence) and min(sequence) >= 0
            if next(never):
                outcome[number] = DELETED
            elif plain and prover.implies(second, sequence[:1], sequence):
                outcome[number] = 0
        mapping = result.final(left)
        yield second, left, np.where(mapping >= 0, outcome[mapping], DELETED)
