"""Streamlining: fewer entries in every lexer state, the same masks.

An entry (lexer state, sequence) says: these tokens are allowed if the parser accepts this sequence. Each step maps sequences to other
sequences, or deletes them, by facts about the grammar that hold in every context in which the lexer state can occur:

    ignored   ignored terminals never reach the parser: they are left out
    classes   interchangeable terminals: each is replaced by the least of its class
    follow    a sequence that is no path of the follow graph is deleted
    pairs     a last terminal that can always follow the one before is left out
    never     a sequence that is never legal is deleted
    always    a rest that can always follow is left out, whole
    joint     sequences that are legal after the same prefixes become one
    exact     never, always and joint once more, on all stacks on which an LR parser can stand instead of by approximations

If the entry's sequence is mapped to T, its tokens go to T's entry: they are allowed in the same contexts (proofs/streamlining.v).
The empty sequence needs no parser at all.

Source: Tran-Thien's streamlining post (2025); the steps' order is his, `joint` and `exact` go beyond.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import GrammarError, LimitError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.legality.deciders import ALWAYS, ANYWHERE
from maskwright.analysis.legality.follow import pair_verdicts
from maskwright.analysis.legality.interchange import interchange_classes, representatives
from maskwright.analysis.legality.joint import joint_representatives
from maskwright.analysis.legality.judge import ENDED_NEWLINE, Case, Judge
from maskwright.analysis.legality.verdict import START
from maskwright.analysis.lr.encoding import LrTables
from maskwright.analysis.lr.tables import build_lr_tables
from maskwright.maskstore.automaton.configuration_sets import NEVER_LEGAL, ConfigurationSets, explore
from maskwright.maskstore.automaton.exploration_tables import ACCEPTED
from maskwright.maskstore.tokens.continuations import WHATEVER, Continuations
from maskwright.maskstore.tokens.events import EventCodes

STEPS = ("ignored", "classes", "follow", "pairs", "never", "always", "joint", "exact")

Symbols = tuple[int, ...]
DELETED = -1

EXACT_BYTES = 1 << 28
"""Memory that the step `exact` may take; a grammar that needs more keeps what `joint` left."""


class SequenceTable:
    """Sequences by number, each once. Number 0 is the empty sequence."""

    def __init__(self) -> None:
        self.sequences: list[Symbols] = [()]
        self._number: dict[Symbols, int] = {(): 0}

    def __getitem__(self, number: int) -> Symbols:
        return self.sequences[number]

    def __len__(self) -> int:
        return len(self.sequences)

    def number(self, sequence: Symbols) -> int:
        found = self._number.get(sequence)
        if found is None:
            found = self._number[sequence] = len(self.sequences)
            self.sequences.append(sequence)
        return found


@dataclass(frozen=True)
class Context:
    """The contexts in which some lexer states occur: what stands to the left, and the sequences that begin there.

    left : a terminal, START, or ANYWHERE where the lexer state does not tell (inside ignored terminals, and inside a newline that
        brackets may have made the parser drop).
    """

    left: int
    sequences: npt.NDArray[np.int64]


@dataclass
class Streamlined:
    """The result of each step, for each left symbol.

    mapping[left][step] : (n_sequences,) int32; sequence number -> sequence number, or DELETED. Steps are cumulative: each maps the
        original sequences. Sequences that do not occur with a left symbol are DELETED there.
    seconds : CPU seconds of each step. classes : the interchange classes used.
    exact_verdicts : how many pairs of a left symbol and a sequence `exact` found never legal, to end in an always legal rest ("always")
        and to be legal with another ("jointly"), that the steps before it had not; None if it was left out.
    """

    table: SequenceTable
    mapping: dict[int, dict[str, npt.NDArray[np.int32]]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    classes: tuple[tuple[int, ...], ...] = ()
    exact_verdicts: dict[str, int] | None = None

    def final(self, left: int) -> npt.NDArray[np.int32]:
        return self.mapping[left][STEPS[-1]]


def streamline(
    grammar: Grammar,
    codes: EventCodes,
    table: SequenceTable,
    contexts: Iterable[Context],
    judge: Judge,
    progress: Callable[[str, int, int], None] | None = None,
    *,
    exact: bool = True,
) -> Streamlined:
    """Run all steps. progress : called with the step's name, and the cases judged and to be judged in it.

    exact : False leaves the last step out: it changes nothing then. So it does where the grammar has no LALR tables that decide
        (too many stacks or states).

    Cost for python.lark at V = 32k: 1.6 CPU s for the steps up to `joint`, 1.2 for `exact` (reports/bench/streamlining.py).
    """
    return _Streamliner(grammar, codes, table, contexts, judge, progress, exact).run()


def spoken_sequence(codes: EventCodes, sequence: Symbols) -> Symbols:
    """A sequence as a judge reads it: columns forgotten, the end of the newline under way left out."""
    if not sequence or max(sequence) < codes.n_terminals:
        return sequence
    symbols = []
    for symbol in sequence:
        kind, value = codes.decode(symbol)
        if kind == "terminal":
            symbols.append(value)
        elif kind == "newline_at":
            symbols.append(ENDED_NEWLINE)
    return tuple(symbols)


class _Streamliner:
    def __init__(
        self,
        grammar: Grammar,
        codes: EventCodes,
        table: SequenceTable,
        contexts: Iterable[Context],
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
        """`spoken_sequence` of a sequence in the table."""
        found = self._spoken.get(number)
        if found is None:
            found = self._spoken[number] = spoken_sequence(self.codes, self.table[number])
        return found

    def _map_all(self, change: Callable[[Symbols], Symbols]) -> None:
        """Map every sequence in use, whatever stands to its left."""
        used = np.unique(np.concatenate([ids[ids >= 0] for ids in self.current.values()]))
        target = np.full(len(self.table), DELETED, np.int64)
        for number in used.tolist():
            target[number] = self.table.number(change(self.table[number]))
        for left, ids in self.current.items():
            self.current[left] = np.where(ids >= 0, target[ids], DELETED)

    def drop_ignored(self) -> None:
        ignored = self.grammar.ignored
        self._map_all(lambda symbols: tuple(s for s in symbols if s not in ignored))

    def merge_classes(self) -> None:
        self.result.classes = interchange_classes(self.grammar, rewrite=self.judge.rules == "normalised")
        least = representatives(self.grammar.n_terminals, self.result.classes)
        n = self.grammar.n_terminals
        self._map_all(lambda symbols: tuple(least[s] if s < n else s for s in symbols))

    def delete_non_paths(self) -> None:
        for left, ids in self.current.items():
            used, inverse = np.unique(ids, return_inverse=True)
            kept = [number >= 0 and self.judge.is_path(left, self.spoken(number)) for number in used.tolist()]
            ids[~np.array(kept, np.bool_)[inverse]] = DELETED

    def _can_stand_left(self, symbol: int) -> bool:
        """Whether something may be folded into a sequence that ends in this symbol: a terminal whose parser state is certain."""
        return 0 <= symbol < self.grammar.n_terminals and symbol != self.judge.newline

    def fold_pairs(self) -> None:
        always = pair_verdicts(self.judge.always_deciders) == ALWAYS

        def folded(left: int, symbols: Symbols) -> Symbols:
            while symbols and symbols[-1] < self.grammar.n_terminals:
                before = symbols[-2] if len(symbols) > 1 else left
                if not (self._can_stand_left(before) or before == START) or not always[before, symbols[-1]]:
                    break
                symbols = symbols[:-1]
            return symbols

        self._map_each(folded)

    def _map_each(self, change: Callable[[int, Symbols], Symbols]) -> None:
        """Map every (left symbol, sequence) in use."""
        for left, ids in self.current.items():
            known: dict[int, int] = {DELETED: DELETED}
            for number in np.unique(ids[ids >= 0]).tolist():
                known[number] = self.table.number(change(left, self.table[number]))
            self.current[left] = np.array([known[number] for number in ids.tolist()], np.int64)

    def _pairs_in_use(self) -> list[tuple[int, int]]:
        return [(left, int(n)) for left, ids in self.current.items() for n in np.unique(ids[ids > 0])]

    def _ticker(self, step: str, total: int) -> Callable[[int], None] | None:
        if self.progress is None:
            return None
        done = 0
        report = self.progress

        def tick(count: int) -> None:
            nonlocal done
            done = min(total, done + count)  # a case may take several questions, or none
            report(step, done, total)

        return tick

    def delete_never(self) -> None:
        pairs = self._pairs_in_use()
        cases = list(dict.fromkeys((left, self.spoken(number)) for left, number in pairs))
        never = dict(zip(cases, self.judge.never(cases, self._ticker("never", len(cases))).tolist(), strict=True))
        gone = {(left, number) for left, number in pairs if never[left, self.spoken(number)]}
        for left, ids in self.current.items():
            for index in np.flatnonzero(ids > 0).tolist():
                if (left, int(ids[index])) in gone:
                    ids[index] = DELETED

    def fold_always(self) -> None:
        continuations: dict[tuple[int, int], list[tuple[int, Case]]] = {}
        for left, number in self._pairs_in_use():
            symbols = self.table[number]
            found = []
            for kept in range(len(symbols)):
                before = symbols[kept - 1] if kept else left
                continuation = symbols[kept:]
                if not (self._can_stand_left(before) or (kept == 0 and left == START)):
                    continue
                # BOUND: only the first symbol can be the end of the newline under way, and nothing is folded across that
                found.append((kept, (before, spoken_sequence(self.codes, continuation))))
            continuations[left, number] = found
        cases = list(dict.fromkeys(case for found in continuations.values() for _, case in found))
        always = dict(zip(cases, self.judge.always(cases, self._ticker("always", len(cases))).tolist(), strict=True))
        target = {
            pair: next((kept for kept, case in found if always[case]), len(self.table[pair[1]]))
            for pair, found in continuations.items()
        }
        for left, ids in self.current.items():
            known = {n: self.table.number(self.table[n][: target[left, n]]) for n in np.unique(ids[ids > 0]).tolist()}
            self.current[left] = np.array([known.get(n, n) for n in ids.tolist()], np.int64)

    def merge_joint(self) -> None:
        # sequences whose newlines have ended are told apart by columns that the judge does not see
        pairs = [(left, n) for left, n in self._pairs_in_use() if max(self.table[n]) < self.grammar.n_terminals]
        cases = [(left, self.table[number]) for left, number in pairs]
        leaders = joint_representatives(self.judge, cases, self._ticker("joint", len(cases)))
        target = {pair: pairs[leader][1] for pair, leader in zip(pairs, leaders, strict=True)}
        for left, ids in self.current.items():
            self.current[left] = np.array([target.get((left, n), n) for n in ids.tolist()], np.int64)

    def merge_exact(self) -> None:
        if not self.is_exact:
            return
        progress = self.progress
        report = None if progress is None else (lambda done, total: progress("exact", done, total))
        try:
            groups = _exact_groups(self.table, self.codes, self.judge, self._pairs_in_use())
            found = _ExactOutcomes(self.grammar, self.judge, groups, report)
        except (GrammarError, LimitError):
            return  # no LALR tables, or none that decide: the approximations must do
        counts = self.result.exact_verdicts = {"never": 0, "always": 0, "jointly": 0}
        target: dict[tuple[int, int], int] = {}
        for group in groups:
            for number, verdict, kept in found.verdicts(group):
                if verdict:
                    counts[verdict] += 1
                is_never = verdict == "never"
                target[group.left, number] = DELETED if is_never else self.table.number((*group.head, *kept))
        for left, ids in self.current.items():
            self.current[left] = np.array([target.get((left, n), n) for n in ids.tolist()], np.int64)


@dataclass(frozen=True)
class _Group:
    """Sequences in use after one left symbol that are equal up to the last newline that has ended; what comes then are the tails.

    The parser is in one state before all tails of a group: the newlines before them have ended at the same columns. `lasts` says what it
    can have seen last then: terminals (START), or None if anything.

    tails : sequence number -> tail, not empty. No newline is inside a tail, so the layout adds nothing there.
    """

    left: int
    head: Symbols
    lasts: tuple[int, ...] | None
    tails: dict[int, Symbols]


def _exact_groups(
    table: SequenceTable, codes: EventCodes, judge: Judge, pairs: Sequence[tuple[int, int]]
) -> list[_Group]:
    groups: dict[tuple[int, Symbols], _Group] = {}
    for left, number in pairs:
        symbols = table[number]
        n_head = max((i + 1 for i, symbol in enumerate(symbols) if symbol >= codes.n_terminals), default=0)
        head, tail = symbols[:n_head], symbols[n_head:]
        if not tail or judge.newline in tail[:-1]:
            continue
        group = groups.get((left, head))
        if group is None:
            group = groups[left, head] = _Group(left, head, _lasts(codes, judge, left, head), {})
        group.tails[number] = tail
    return list(groups.values())


def _lasts(codes: EventCodes, judge: Judge, left: int, head: Symbols) -> tuple[int, ...] | None:
    """What the parser can have seen last after a left symbol and a head that ends with an ended newline, or is empty."""
    layout = judge.layout
    if layout is None:
        return None if left == ANYWHERE else (left,)
    after_newline = (layout.newline, layout.indent, layout.dedent)
    if not head:
        # after a newline that was kept and has ended; brackets are closed there
        return after_newline if left == layout.newline else None if left == ANYWHERE else (left,)
    if left == layout.newline and len(head) == 1 and codes.decode(head[0])[0] != "newline_at":
        return after_newline
    before = head[-2] if len(head) > 1 else left
    if not 0 <= before < codes.n_terminals or before == layout.newline:
        return None
    return (*after_newline, before)  # the last: brackets are open, and the newline is dropped


_Outcome = tuple[bytes, bytes]
_REFUSED: _Outcome = (b"", b"")
_ACCEPTED: _Outcome = (b"", b"accepted")


class _ExactOutcomes:
    """What an LR parser makes of the tails of some groups, on all stacks: equal if and only if they are accepted on the same.

    The stacks are the paths of the LR(0) graph whose top one of the group's `lasts` gives; each stack on which a parser can stand is one
    of them. So two tails with equal outcomes in every variant are legal together after all texts, those refused in every variant are
    never legal, and a tail with the outcome of its own beginning can always go on from there to its end. `ExactDeciders` decides
    the same one question at a time, with certificates; here all sequences are told apart at once (`configuration_sets`).
    """

    def __init__(
        self, grammar: Grammar, judge: Judge, groups: Sequence[_Group], progress: Callable[[int, int], None] | None
    ) -> None:
        """Raises GrammarError and LimitError where the grammar has no tables that decide."""
        self.judge = judge
        tables = build_lr_tables(grammar)
        column = tables.terminal_column.tolist()
        continuations = Continuations(tables.action.shape[1])
        self._kind = {lasts: kind for kind, lasts in enumerate(dict.fromkeys(group.lasts for group in groups))}
        allowed = [_tops(tables, lasts) for lasts in self._kind]
        acts = [(tables.action[tops] != 0).any(axis=0).tolist() for tops in allowed]
        self._outcome: dict[tuple[int, Symbols], _Outcome] = {(kind, ()): _ACCEPTED for kind in self._kind.values()}
        asked: list[tuple[int, Symbols]] = []
        roots: list[tuple[int, int]] = []
        for group in groups:
            kind = self._kind[group.lasts]
            for word in dict.fromkeys(word for words in self._variants(group).values() for word in words):
                if (kind, word) in self._outcome:
                    continue
                self._outcome[kind, word] = _REFUSED
                columns = [column[terminal] for terminal in word]
                # terminals without a column are in no word of the language
                if min(columns) >= 0 and acts[kind][columns[0]]:
                    asked.append((kind, word))
                    roots.append((continuations.before(columns, WHATEVER), kind))
        if roots:
            modes = np.zeros(len(tables.action), np.int32)
            configuration_sets = explore(tables, modes, continuations, roots, np.stack(allowed), progress, EXACT_BYTES)
            for root, (kind, word) in enumerate(asked):
                self._outcome[kind, word] = _outcome(configuration_sets, root, int(allowed[kind].sum()))

    def _variants(self, group: _Group) -> dict[Symbols, list[Symbols]]:
        """Of each tail and each of its beginnings: one variant for each number of brackets that may be open."""
        judge = self.judge
        left = ANYWHERE if group.head else group.left
        tails = list(dict.fromkeys(tail[:n] for tail in group.tails.values() for n in range(len(tail) + 1)))
        if not any(judge.newline in tail for tail in tails):
            return {tail: [tail] for tail in tails}
        depths = judge.depths(left, *tails)
        return {tail: [judge.variant(left, tail, depth) for depth in depths] for tail in tails}

    def verdicts(self, group: _Group) -> list[tuple[int, str, Symbols]]:
        """Of each sequence of a group: its number, what is found ("" if nothing new), and the tail that is to stand for its own."""
        kind = self._kind[group.lasts]
        outcomes = {
            tail: tuple(self._outcome[kind, word] for word in words) for tail, words in self._variants(group).items()
        }
        folded = {}
        for tail in group.tails.values():
            n = next(n for n in range(len(tail) + 1) if outcomes[tail[:n]] == outcomes[tail])
            folded[tail] = tail[:n]
        leader: dict[tuple[_Outcome, ...], Symbols] = {}
        for tail in sorted(folded.values(), key=len):
            leader.setdefault(outcomes[tail], tail)
        found = []
        for number, tail in group.tails.items():
            outcome = outcomes[tail]
            verdict = "always" if folded[tail] != tail else "jointly" if leader[outcome] != tail else ""
            if all(one == _REFUSED for one in outcome):
                verdict = "never"
            found.append((number, verdict, leader[outcome]))
        return found


def _outcome(configuration_sets: ConfigurationSets, root: int, n_tops: int) -> _Outcome:
    """What a root becomes on each top: the tops that do not refuse it, and the class of what is left to see below."""
    distinct = int(configuration_sets.root_of[root])
    if distinct == NEVER_LEGAL:
        return _REFUSED
    begin, end = configuration_sets.root_start[distinct : distinct + 2].tolist()
    cells, states = configuration_sets.root_cell[begin:end], configuration_sets.root_state[begin:end]
    if end - begin == n_tops and (states == ACCEPTED).all():
        return _ACCEPTED
    return cells.tobytes(), states.tobytes()


def _tops(tables: LrTables, lasts: tuple[int, ...] | None) -> npt.NDArray[np.bool_]:
    """(n_states,) bool; the states on top of a stack when the parser has seen one of some terminals last, START for none."""
    accessing = tables.accessing
    if lasts is None:
        found = (accessing >= 0) & (accessing < tables.n_terminals)
        found[0] = True
        return np.asarray(found, np.bool_)
    columns = [int(tables.terminal_column[last]) for last in lasts if last != START]
    found = np.isin(accessing, [column for column in columns if column >= 0])
    found[0] = START in lasts
    return found


def count_entries(
    result: Streamlined, states: Sequence[tuple[int, npt.NDArray[np.int64]]]
) -> dict[str, npt.NDArray[np.int32]]:
    """Entries of each lexer state, (n_states,) int32, originally and after each step. states : left symbol and sequence numbers."""
    counts = {"original": np.array([len(ids) for _, ids in states], np.int32)}
    for step in STEPS:
        found = []
        for left, ids in states:
            mapped = result.mapping[left][step][ids]
            found.append(len(np.unique(mapped[mapped >= 0])))
        counts[step] = np.array(found, np.int32)
    return counts
