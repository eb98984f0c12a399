"""From a grammar and a vocabulary to the closed stack automaton: everything that a decoder looks up.

lexer (transducer), LALR tables -> requirements (what tokens ask of the parser) -> suspended parses -> closure.
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
from maskwright.maskstore.automaton.suspended import NEVER_LEGAL, Suspended, explore
from maskwright.maskstore.tokens.requirements import Newline, Requirements
from maskwright.maskstore.tokens.rests import WHATEVER
from maskwright.maskstore.vocabulary import Vocabulary

Int32 = npt.NDArray[np.int32]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Lookup:
    """One question to the automaton: behind `path` start at node `root`; the tokens of mask `own` are allowed anyway."""

    path: int
    root: int
    own: int


@dataclass(frozen=True)
class StackAutomaton:
    """views[q][d] : the look-ups of lexer state q while d brackets are open; the last d for any more.

    open_roots : rests and their masks, for automata that went over a budget: the parser is asked about each, exactly but slowly. A
        look-up's root is then -1 - n for number n. () where the automaton is closed.
    paths : newlines to pass, see `Requirements`; number 0 is empty.
    counts : sizes on the way, for reports.
    """

    required: Requirements
    tables: LrTables
    paths: tuple[tuple[Newline, ...], ...]
    views: tuple[tuple[tuple[Lookup, ...], ...], ...]
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

    def _root(self, rest: int, kind: int) -> int:
        return self.number.setdefault((rest, kind), len(self.number))

    def build(self, report: Callable[[str], Callable[[int, int], None] | None]) -> StackAutomaton:
        required = self.required
        n_entries = 0
        seen: set[tuple[int, int]] = set()
        for state in required.states:
            for view in state.views:
                n_entries += len(view.group)
                pairs = np.unique(np.stack([view.group_path > 0, view.group_rest]), axis=1)
                seen |= set(zip(pairs[1].tolist(), pairs[0].tolist(), strict=True))
        for rest, kind in sorted(seen):
            if rest != WHATEVER:
                self._root(rest, kind)
        gates = [self._gates(path) for path in range(len(required.paths))]
        allowed = np.ones((2, len(self.tables.action)), np.bool_)
        if self.grammar.layout is not None:
            inserted = (self.grammar.layout.newline, self.grammar.layout.indent, self.grammar.layout.dedent)
            allowed[1] = np.isin(self.tables.accessing, self.tables.terminal_column[list(inserted)])
        suspended: Suspended | None
        try:
            suspended = explore(
                self.tables, required.modes.of_state, required.rests, list(self.number), allowed, report("parses"),
                self.budget.bytes,
            )  # fmt: skip
            root_of = suspended.root_of
        except LimitError:
            suspended = None
            root_of = np.arange(len(self.number), dtype=np.int32)
        passable = [all(root_of[gate] != NEVER_LEGAL for gate in path) for path in gates]
        # distinct root of each rest, by kind
        n_rests = len(required.rests.symbols)
        distinct = np.full((2, n_rests + len(required.rests.sets) + 1), NEVER_LEGAL, np.int32)
        for (rest, kind), root in self.number.items():
            distinct[kind, rest if rest >= 0 else n_rests - rest - 1] = root_of[root]
        collector = MaskCollector(self.vocabulary.size)
        roots: dict[tuple[bytes, bytes], int] = {}
        items: list[tuple[Int32, Int32]] = []
        views = []
        for state in required.states:
            of_state = []
            for view in state.views:
                lookups = []
                for path in view.paths:
                    if not passable[path]:
                        continue
                    here = view.group_path == path
                    rest, group = view.group_rest[here], view.group[here]
                    own = collector.add_groups(
                        state.members,
                        state.member_start,
                        group[rest == WHATEVER],
                        np.array([0, (rest == WHATEVER).sum()], np.int64),
                    )[0]
                    root = distinct[int(path > 0), np.where(rest >= 0, rest, n_rests - rest - 1)]
                    root[rest == WHATEVER] = NEVER_LEGAL
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
                        lookups.append(Lookup(path, node, int(own)))
                of_state.append(tuple(lookups))
            views.append(tuple(of_state))
        closure, open_roots = self._close(suspended, items, collector, root_of, report("closure"))
        if open_roots:
            views = [
                tuple(tuple(Lookup(one.path, -one.root, one.own) for one in lookups) for lookups in of_state)
                for of_state in views
            ]
        counts = {
            "entries": n_entries,
            "rests": len(self.number),
            "never": int((root_of == NEVER_LEGAL).sum()),
            "distinct": len(suspended.root_start) - 1 if suspended else len(self.number),
            "suspended": suspended.n_states if suspended else 0,
            "pairs": suspended.n_pairs if suspended else 0,
            "classes": suspended.n_classes if suspended else 0,
            "roots": len(items),
            "open": len(open_roots),
            "nodes": closure.n_nodes,
            "edges": len(closure.edge_key),
            "masks": len(closure.mask_count),
        }
        return StackAutomaton(required, self.tables, tuple(required.paths), tuple(views), closure, open_roots, counts)

    def _close(
        self,
        suspended: Suspended | None,
        items: list[tuple[Int32, Int32]],
        collector: MaskCollector,
        root_of: Int32,
        report: Callable[[int, int], None] | None,
    ) -> tuple[Closure, tuple[tuple[Int32, Int32], ...]]:
        """The closed automaton; or, over a budget, an empty one and all roots open."""
        if suspended is not None:
            try:
                return close(suspended, items, collector, report, self.budget.edges, self.budget.bytes), ()
            except LimitError:
                pass
        rest_of_root = np.zeros(max(1, int(root_of.max(initial=0)) + 1), np.int32)
        for (rest, _), root in reversed(self.number.items()):
            if root_of[root] != NEVER_LEGAL:
                rest_of_root[root_of[root]] = rest
        empty = collector.without_nodes()
        return empty, tuple((rest_of_root[roots], masks) for roots, masks in items)

    def _gates(self, path: int) -> list[int]:
        """Roots that must be legal somewhere for a path to be passable: what is read before each newline, and the newline."""
        newline = self.required.column_of[self.required.newline] if self.grammar.layout else -1
        found = []
        for place, (before, _) in enumerate(self.required.paths[path]):
            if before:
                found.append(self._root(self.required.rests.before([*before, newline], WHATEVER), int(place > 0)))
        return found
