"""From a grammar and a vocabulary to the closed stack automaton: everything that a decoder looks up.

lexer (transducer), LALR tables -> requirements (what tokens ask of the parser) -> configuration sets -> closure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import GrammarError, LimitError, VocabularyError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.lexing.lexemes import check_literals
from maskwright.analysis.lexing.modes import Modes, lexing_modes
from maskwright.analysis.lexing.transducer import STATE_LIMIT, Transducer, build_transducer
from maskwright.analysis.lr.encoding import LrTables
from maskwright.analysis.lr.live import Live, without_dead_ends
from maskwright.analysis.lr.merging import build_merged_tables
from maskwright.analysis.lr.splits import refuse_split
from maskwright.maskstore.automaton.closure import BYTES_BUDGET, EDGE_BUDGET, Closure, MaskCollector, close
from maskwright.maskstore.automaton.configuration_sets import NEVER_LEGAL, ConfigurationSets, explore
from maskwright.maskstore.automaton.exploration_tables import check_size
from maskwright.maskstore.tokens.continuations import WHATEVER
from maskwright.maskstore.tokens.requirements import LineBreak, Requirements
from maskwright.maskstore.vocabulary import Vocabulary

Int32 = npt.NDArray[np.int32]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Lookup:
    """One question to the automaton: behind `line_breaks` start at node `root`; the tokens of mask `own` are allowed anyway."""

    line_breaks: int
    root: int
    own: int


@dataclass(frozen=True)
class StackAutomaton:
    """depth_cases[q][d] : the look-ups of lexer state q while d brackets are open; the last d for any more.

    open_roots : continuations and their masks, for automata that went over a budget: the parser is asked about each, exactly but slowly. A
        look-up's root is then -1 - n for number n. () where the automaton is closed.
    line_breaks : the lists of line breaks, see `Requirements`; number 0 is empty.
    counts : sizes on the way, for reports.
    """

    required: Requirements
    tables: LrTables
    line_breaks: tuple[tuple[LineBreak, ...], ...]
    depth_cases: tuple[tuple[tuple[Lookup, ...], ...], ...]
    closure: Closure
    open_roots: tuple[tuple[Int32, Int32], ...]
    counts: dict[str, int]


@dataclass(frozen=True)
class LexerAndParser:
    """What reads texts of a grammar.

    tables : its LALR tables, bisimilar states merged, without dead ends. origin : (n_states,) int32; the merged state that each state is,
        several where only some of its stacks lead into dead ends. live : which stacks of the merged tables do; None if none do.
    """

    tables: LrTables
    modes: Modes
    transducer: Transducer
    origin: npt.NDArray[np.int32]
    live: Live | None


def build_lexer_and_parser(grammar: Grammar) -> LexerAndParser:
    """Raises as `build_merged_tables`, `lexing_modes`, `refuse_split` and `build_transducer`, and LimitError as `Live`.

    What competes where is up to the merged tables, as it is for Lark's parser; that dead ends are left out changes no lexeme.
    """
    check_literals(grammar, STATE_LIMIT)
    merged = build_merged_tables(grammar, grammar.conflicts)
    tables = merged.tables
    modes = lexing_modes(grammar, tables.action != 0, tables.terminal_column, tables.accessing)
    refuse_split(grammar, tables, modes)
    transducer = build_transducer(grammar, merged.can_follow, modes)
    origin = np.arange(tables.n_states, dtype=np.int32)
    live = None
    if merged.is_decided:
        try:
            live = Live(tables)
            if not live.accepts_some:
                raise GrammarError(
                    f"grammar {grammar.name}: its conflicts are decided by a shift, and then no text comes to an end; load the grammar "
                    "with conflicts='all', or take the conflicts out of its rules"
                )
            if live.has_dead_ends:
                tables, origin = without_dead_ends(live)
            else:
                live = None
        except LimitError as error:
            raise LimitError(
                f"grammar {grammar.name}: its conflicts are decided by a shift, which may lead texts into dead ends, and {error}; load the "
                "grammar with conflicts='all', or take the conflicts out of its rules"
            ) from error
        modes = replace(modes, of_state=modes.of_state[origin])
    return LexerAndParser(tables, modes, transducer, origin, live)


@dataclass(frozen=True)
class Budget:
    """What a closed automaton may take. edges : of the automaton. bytes : of the tables while it is made."""

    edges: int = EDGE_BUDGET
    bytes: int = BYTES_BUDGET


def build_automaton(
    grammar: Grammar, vocabulary: Vocabulary, progress: Progress | None = None, budget: Budget | None = None
) -> StackAutomaton:
    """Close the stack automaton of a grammar with lexing "longest" or "contextual". Raises as `build_store`."""
    if grammar.lexing == "nfa":
        raise GrammarError(
            f"grammar {grammar.name}: lexing 'nfa' keeps several hypotheses and has no stack automaton; load it with lexing='longest'"
        )
    found = build_lexer_and_parser(grammar)
    tables = found.tables
    check_size(tables)
    ids = vocabulary.text_ids()
    if not len(ids):
        raise VocabularyError(f"vocabulary {vocabulary.name} has no token that stands for text")
    report = (lambda name: None) if progress is None else (lambda name: lambda done, total: progress(name, done, total))
    required = Requirements(
        grammar,
        found.transducer,
        tables,
        found.modes,
        [vocabulary.tokens[i] for i in ids],
        np.array(ids, np.int32),
        vocabulary.eos,
        report("walk"),
    )
    return _Builder(grammar, vocabulary, tables, required, budget or Budget()).build(report)


class _Builder:
    def __init__(
        self, grammar: Grammar, vocabulary: Vocabulary, tables: LrTables, required: Requirements, budget: Budget
    ) -> None:
        self.grammar = grammar
        self.vocabulary = vocabulary
        self.tables = tables
        self.budget = budget
        self.required = required
        self.number: dict[tuple[int, int], int] = {}

    def _root(self, continuation: int, kind: int) -> int:
        return self.number.setdefault((continuation, kind), len(self.number))

    def build(self, report: Callable[[str], Callable[[int, int], None] | None]) -> StackAutomaton:
        required = self.required
        n_entries = 0
        seen: set[tuple[int, int]] = set()
        for state in required.states:
            for depth_case in state.depth_cases:
                n_entries += len(depth_case.group)
                pairs = np.unique(np.stack([depth_case.group_line_breaks > 0, depth_case.group_continuation]), axis=1)
                seen |= set(zip(pairs[1].tolist(), pairs[0].tolist(), strict=True))
        for continuation, kind in sorted(seen):
            if continuation != WHATEVER:
                self._root(continuation, kind)
        gates = [self._gates(breaks) for breaks in range(len(required.line_breaks))]
        allowed = np.ones((2, len(self.tables.action)), np.bool_)
        if self.grammar.layout is not None:
            inserted = (self.grammar.layout.newline, self.grammar.layout.indent, self.grammar.layout.dedent)
            allowed[1] = np.isin(self.tables.accessing, self.tables.terminal_column[list(inserted)])
        configuration_sets: ConfigurationSets | None
        try:
            configuration_sets = explore(
                self.tables, required.modes.of_state, required.continuations, list(self.number), allowed, report("parses"),
                self.budget.bytes,
            )  # fmt: skip
            root_of = configuration_sets.root_of
        except LimitError:
            configuration_sets = None
            root_of = np.arange(len(self.number), dtype=np.int32)
        passable = [all(root_of[gate] != NEVER_LEGAL for gate in breaks) for breaks in gates]
        # distinct root of each continuation, by kind
        n_continuations = len(required.continuations.symbols)
        distinct = np.full((2, n_continuations + len(required.continuations.sets) + 1), NEVER_LEGAL, np.int32)
        for (continuation, kind), root in self.number.items():
            distinct[kind, continuation if continuation >= 0 else n_continuations - continuation - 1] = root_of[root]
        collector = MaskCollector(self.vocabulary.size)
        roots: dict[tuple[bytes, bytes], int] = {}
        items: list[tuple[Int32, Int32]] = []
        depth_cases = []
        for state in required.states:
            of_state = []
            for depth_case in state.depth_cases:
                lookups = []
                for breaks in depth_case.line_breaks:
                    if not passable[breaks]:
                        continue
                    here = depth_case.group_line_breaks == breaks
                    continuation, group = depth_case.group_continuation[here], depth_case.group[here]
                    own = collector.add_groups(
                        state.members,
                        state.member_start,
                        group[continuation == WHATEVER],
                        np.array([0, (continuation == WHATEVER).sum()], np.int64),
                    )[0]
                    root = distinct[
                        int(breaks > 0), np.where(continuation >= 0, continuation, n_continuations - continuation - 1)
                    ]
                    root[continuation == WHATEVER] = NEVER_LEGAL
                    kept = root != NEVER_LEGAL
                    order = np.argsort(root[kept], kind="stable")
                    sorted_roots, starts = np.unique(root[kept][order], return_index=True)
                    masks = collector.add_groups(
                        state.members,
                        state.member_start,
                        group[kept][order],
                        np.append(starts, len(order)).astype(np.int64),
                    )
                    node = 0
                    if len(sorted_roots):
                        key = (sorted_roots.tobytes(), masks.tobytes())
                        node = roots.setdefault(key, len(roots) + 1)
                        if node > len(items):
                            items.append((sorted_roots.astype(np.int32), masks))
                    if node or own:
                        lookups.append(Lookup(breaks, node, int(own)))
                of_state.append(tuple(lookups))
            depth_cases.append(tuple(of_state))
        closure, open_roots = self._close(configuration_sets, items, collector, root_of, report("closure"))
        if open_roots:
            depth_cases = [
                tuple(tuple(Lookup(one.line_breaks, -one.root, one.own) for one in lookups) for lookups in of_state)
                for of_state in depth_cases
            ]
        counts = {
            "entries": n_entries,
            "rests": len(self.number),
            "never": int((root_of == NEVER_LEGAL).sum()),
            "distinct": len(configuration_sets.root_start) - 1 if configuration_sets else len(self.number),
            "suspended": configuration_sets.n_states if configuration_sets else 0,
            "pairs": configuration_sets.n_pairs if configuration_sets else 0,
            "classes": configuration_sets.n_classes if configuration_sets else 0,
            "roots": len(items),
            "open": len(open_roots),
            "nodes": closure.n_nodes,
            "edges": len(closure.edge_key),
            "masks": len(closure.mask_count),
        }
        return StackAutomaton(
            required, self.tables, tuple(required.line_breaks), tuple(depth_cases), closure, open_roots, counts
        )

    def _close(
        self,
        configuration_sets: ConfigurationSets | None,
        items: list[tuple[Int32, Int32]],
        collector: MaskCollector,
        root_of: Int32,
        report: Callable[[int, int], None] | None,
    ) -> tuple[Closure, tuple[tuple[Int32, Int32], ...]]:
        """The closed automaton; or, over a budget, an empty one and all roots open."""
        if configuration_sets is not None:
            try:
                return close(configuration_sets, items, collector, report, self.budget.edges, self.budget.bytes), ()
            except LimitError:
                pass
        continuation_of_root = np.zeros(max(1, int(root_of.max(initial=0)) + 1), np.int32)
        for (continuation, _), root in reversed(self.number.items()):
            if root_of[root] != NEVER_LEGAL:
                continuation_of_root[root_of[root]] = continuation
        empty = collector.without_nodes()
        return empty, tuple((continuation_of_root[roots], masks) for roots, masks in items)

    def _gates(self, breaks: int) -> list[int]:
        """Roots that must be legal somewhere for line breaks to be passable: what is read before each newline, and the newline."""
        newline = self.required.column_of[self.required.newline] if self.grammar.layout else -1
        found = []
        for index, (before, _) in enumerate(self.required.line_breaks[breaks]):
            if before:
                found.append(
                    self._root(self.required.continuations.before([*before, newline], WHATEVER), int(index > 0))
                )
        return found
