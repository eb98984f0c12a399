"""From a grammar and a vocabulary to the closed stack automaton.

lexer (transducer), LALR tables -> requirements of tokens -> configuration sets -> closure. The
result is all that a decoder looks up.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arrays import Int32
from maskwright.analysis.errors import BackupError, GrammarError, LimitError, MaskwrightWarning, VocabularyError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.lexing.encoding import Transducer
from maskwright.analysis.lexing.lexemes import Lexemes, check_literals
from maskwright.analysis.lexing.modes import Modes, lexing_modes
from maskwright.analysis.lexing.transducer import STATE_LIMIT, Builder
from maskwright.analysis.lr.encoding import LrTables
from maskwright.analysis.lr.live import Live, without_dead_ends
from maskwright.analysis.lr.splits import refuse_split
from maskwright.analysis.lr.tables import Merged, build_merged_tables
from maskwright.maskstore.automaton import _pool_kernels
from maskwright.maskstore.automaton.closure import BYTES_BUDGET, EDGE_BUDGET, Closure, MaskCollector, close
from maskwright.maskstore.automaton.configuration_sets import NEVER_LEGAL, ConfigurationSets, explore
from maskwright.maskstore.automaton.exploration_tables import MAX_RULES, check_size
from maskwright.maskstore.automaton.shortcuts import shortened, with_few_rules
from maskwright.maskstore.tokens.continuations import WHATEVER
from maskwright.maskstore.tokens.requirements import Requirements
from maskwright.maskstore.tokens.state_tokens import DepthCase, LineBreak, StateTokens
from maskwright.maskstore.vocabulary import Vocabulary

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Lookup:
    """One question of a lexer state to the stack automaton.

    line_breaks : the number of the list of line breaks that come first.
    root : the node at which the walk begins, or 0 if there is none; -1 - n for open root n.
    own : the mask of the tokens that are allowed whatever the stack is.
    """

    line_breaks: int
    root: int
    own: int


@dataclass(frozen=True)
class StackAutomaton:
    """A closed stack automaton with its parser, lexer and look-ups.

    required : the lexer, and the requirements of all tokens.
    tables : the LALR tables.
    shorter : the tables for decoders, `shortened(tables)`.
    line_breaks : the lists of line breaks, see `Requirements`; number 0 is empty.
    depth_cases : depth_cases[q][d] are the look-ups of lexer state q while d brackets are open. The
        last d stands for any more.
    closure : nodes, edges and masks. The masks are of classes of tokens (`Requirements.classes`).
    open_roots : () where the automaton is closed. If it is not, or went over a budget, each open
        root is two arrays (n,) int32: continuations and their masks. The parser is asked about each
        continuation, which is exact but slow. A look-up's root is then -1 - n for open root n.
    counts : sizes on the way, for reports.
    """

    required: Requirements
    tables: LrTables
    shorter: LrTables
    line_breaks: tuple[tuple[LineBreak, ...], ...]
    depth_cases: tuple[tuple[tuple[Lookup, ...], ...], ...]
    closure: Closure
    open_roots: tuple[tuple[Int32, Int32], ...]
    counts: dict[str, int]


@dataclass(frozen=True)
class LexerAndParser:
    """What reads texts of a grammar.

    tables : the LALR tables, with bisimilar states merged and without dead ends.
    modes, transducer : the lexer.
    origin : (n_states,) int32; the merged state from which each state was made. A merged state
        becomes several states if only some of its stacks lead into dead ends.
    live : which stacks of the merged tables lead into dead ends; None if none do.
    """

    tables: LrTables
    modes: Modes
    transducer: Transducer
    origin: npt.NDArray[np.int32]
    live: Live | None


def build_modes(grammar: Grammar) -> tuple[Merged, Modes]:
    """The merged tables of a grammar, and its lexer's modes by their states."""
    merged = build_merged_tables(grammar, grammar.conflicts)
    tables = merged.tables
    return merged, lexing_modes(grammar, tables.action != 0, tables.terminal_column, tables.accessing)


MOST_BACKUP, MOST_STATES_BACKING = 2, 2_000
"""How far a lexer backs up that would have to go too far, and the states it may have then."""


def _transducer(grammar: Grammar, merged: Merged, modes: Modes) -> Transducer:
    """As `build_transducer`, but a lexer that would have to back up too far holds on sooner."""
    lexemes = Lexemes(grammar, merged.can_follow, modes, STATE_LIMIT)
    try:
        return Builder(lexemes, STATE_LIMIT).build()
    except BackupError as error:
        said = str(error)
    for most in range(MOST_BACKUP, 0, -1):  # over less where it has too many states so
        with suppress(LimitError):
            found = Builder(lexemes, MOST_STATES_BACKING, most).build()
            break
    else:
        most, found = 0, Builder(lexemes, STATE_LIMIT, 0).build()  # the states of its terminals alone
    what = "lexemes" if len(modes) == 1 else "bytes"
    said += f". Until then texts in which what goes on fails after more than {most} {what} are refused"
    warnings.warn(said, MaskwrightWarning, stacklevel=2)
    return found


def build_lexer_and_parser(grammar: Grammar) -> LexerAndParser:
    """The lexer and the parser of a grammar with lexing "longest" or "contextual".

    The merged tables decide which terminals compete where, as in Lark. Leaving out dead ends
    changes no lexeme.

    Raises: GrammarError if conflicts are decided by a shift and then no text comes to an end;
        LimitError for string literals, tables or dead ends past a limit. Also what
        `build_merged_tables`, `lexing_modes`, `refuse_split` and `build_transducer` raise.
    """
    check_literals(grammar, STATE_LIMIT)
    merged, modes = build_modes(grammar)
    tables = merged.tables
    refuse_split(grammar, tables, modes)
    transducer = _transducer(grammar, merged, modes)
    origin = np.arange(tables.n_states, dtype=np.int32)
    live = None
    if merged.is_decided:
        try:
            live = Live(tables)
            if not live.accepts_some:
                raise GrammarError(
                    f"grammar {grammar.name}: its conflicts are decided by a shift, so no text comes to an end; load the grammar "
                    "with conflicts='all', or remove the conflicts from its rules"
                )
            if live.has_dead_ends:
                tables, origin = without_dead_ends(live)
            else:
                live = None
        except LimitError as error:
            raise LimitError(
                f"grammar {grammar.name}: its conflicts are decided by a shift, which may lead texts into dead ends, and {error}; load the "
                "grammar with conflicts='all', or remove the conflicts from its rules"
            ) from error
        modes = replace(modes, of_state=modes.of_state[origin])
    return LexerAndParser(tables, modes, transducer, origin, live)


@dataclass(frozen=True)
class Budget:
    """The most edges of a closed automaton, and bytes of the tables while it is made."""

    edges: int = EDGE_BUDGET
    bytes: int = BYTES_BUDGET


def build_automaton(
    grammar: Grammar, vocabulary: Vocabulary, progress: Progress | None = None, budget: Budget | None = None
) -> StackAutomaton:
    """What `prepare_automaton` makes, closed; past the budget with `StackAutomaton.open_roots`."""
    return prepare_automaton(grammar, vocabulary, progress, budget).closed(progress)


def prepare_automaton(
    grammar: Grammar, vocabulary: Vocabulary, progress: Progress | None = None, budget: Budget | None = None
) -> AutomatonBuilder:
    """What makes the automaton of a grammar with lexing "longest" or "contextual", open or closed.

    progress : called with a step ("walk", "parses", "closure"), how much is done, and of what.
    budget : past it the automaton is left open.

    Raises: GrammarError for lexing "nfa"; VocabularyError for a vocabulary without text; LimitError
        for tables past `exploration_tables.check_size`. Also what `build_lexer_and_parser` and
        `Requirements` raise.
    """
    if grammar.lexing == "nfa":
        raise GrammarError(
            f"grammar {grammar.name}: lexing 'nfa' keeps several hypotheses and has no stack automaton; load it with lexing='longest'"
        )
    found = build_lexer_and_parser(grammar)
    tables = found.tables
    check_size(tables)
    if not len(vocabulary.text_ids()):
        raise VocabularyError(f"vocabulary {vocabulary.name} has no token that stands for text")
    required = Requirements(
        grammar,
        found.transducer,
        tables,
        found.modes,
        vocabulary.sorted_texts,
        vocabulary.eos,
        _reporter(progress, "walk"),
    )
    return AutomatonBuilder(grammar, tables, required, budget or Budget())


def _reporter(progress: Progress | None, name: str) -> Callable[[int, int], None] | None:
    """What one step of the building reports to."""
    return None if progress is None else lambda done, total: progress(name, done, total)


class _RootNodes:
    """The nodes at which walks begin, and the pool of their masks.

    items : for each node, 1, 2, ..., its distinct roots and their masks. Equal nodes are one.
    """

    def __init__(self, distinct: Int32, n_continuations: int, n_classes: int) -> None:
        """distinct : as of `AutomatonBuilder._distinct`.

        n_continuations : where its lookahead sets begin.
        n_classes : classes of tokens.
        """
        self.collector = MaskCollector(n_classes)
        self.items: list[tuple[Int32, Int32]] = []
        self._distinct = distinct
        self._n_continuations = n_continuations
        self._number: dict[tuple[bytes, bytes], int] = {}

    def lookup(self, state: StateTokens, depth_case: DepthCase, breaks: int) -> Lookup | None:
        """The look-up of the tokens that have certain line breaks; None if it allows no token."""
        case = _pool_kernels.DepthCase(
            depth_case.group_line_breaks,
            depth_case.group_continuation,
            depth_case.group,
            state.members,
            state.member_start,
        )
        distinct = self._distinct[int(breaks > 0)]
        roots, masks, own = self.collector.find_items(case, breaks, distinct, self._n_continuations)
        node = 0
        if len(roots):
            node = self._number.setdefault((roots.tobytes(), masks.tobytes()), len(self._number) + 1)
            if node > len(self.items):
                self.items.append((roots.copy(), masks.copy()))
        return Lookup(breaks, node, own) if node or own else None


class AutomatonBuilder:
    """One automaton under way: its lexer, its parser and the requirements of all tokens.

    roots : (n_roots, 2) int32; the continuation and the kind of each root. kind : 1 if line breaks
        come before the continuation.
    """

    def __init__(self, grammar: Grammar, tables: LrTables, required: Requirements, budget: Budget) -> None:
        self.grammar = grammar
        self.tables = tables
        self.shorter = shortened(tables)
        self.budget = budget
        self.required = required
        asked, self.n_entries = self._ask_all()
        gates = [self._gates(breaks) for breaks in range(len(required.line_breaks))]
        keys = 2 * asked[:, 0] + asked[:, 1]  # ascending
        distinct = dict.fromkeys(gate for of_breaks in gates for gate in of_breaks)
        number: dict[tuple[int, int], int] = {}
        more: list[tuple[int, int]] = []
        for continuation, kind in distinct:
            key = 2 * continuation + kind
            at = int(np.searchsorted(keys, key))
            if at == len(keys) or keys[at] != key:
                at = len(keys) + len(more)
                more.append((continuation, kind))
            number[continuation, kind] = at
        self.gates = [[number[gate] for gate in of_breaks] for of_breaks in gates]
        self.roots = np.concatenate([asked, np.array(more, np.int32).reshape(-1, 2)])

    def opened(self) -> StackAutomaton:
        """The automaton with open roots only. This takes little time."""
        return self._assembled(None, None)

    def closed(self, progress: Progress | None = None) -> StackAutomaton:
        """The closed automaton; over the budget the open one.

        progress : as `prepare_automaton`.
        """
        return self._assembled(self._explore(_reporter(progress, "parses")), _reporter(progress, "closure"))

    def _assembled(
        self, configuration_sets: ConfigurationSets | None, report: Callable[[int, int], None] | None
    ) -> StackAutomaton:
        """Make the nodes at which walks begin, and close the automaton.

        configuration_sets : None leaves all roots open.
        """
        required = self.required
        root_of = (
            np.arange(len(self.roots), dtype=np.int32) if configuration_sets is None else configuration_sets.root_of
        )
        passable = [all(root_of[gate] != NEVER_LEGAL for gate in breaks) for breaks in self.gates]
        n_continuations = len(required.continuations)
        nodes = _RootNodes(self._distinct(root_of), n_continuations, len(required.classes))
        depth_cases = [
            tuple(
                tuple(
                    lookup
                    for breaks in depth_case.line_breaks
                    if passable[breaks] and (lookup := nodes.lookup(state, depth_case, breaks)) is not None
                )
                for depth_case in state.depth_cases
            )
            for state in required.states
        ]
        closure, open_roots = self._close(configuration_sets, nodes.items, nodes.collector, root_of, report)
        if open_roots:
            depth_cases = [
                tuple(tuple(Lookup(one.line_breaks, -one.root, one.own) for one in lookups) for lookups in of_state)
                for of_state in depth_cases
            ]
        counts = {
            "entries": self.n_entries,
            "rests": len(self.roots),
            "never": int((root_of == NEVER_LEGAL).sum()),
            "distinct": len(configuration_sets.root_start) - 1 if configuration_sets else len(self.roots),
            "suspended": configuration_sets.n_states if configuration_sets else 0,
            "pairs": configuration_sets.n_pairs if configuration_sets else 0,
            "classes": configuration_sets.n_classes if configuration_sets else 0,
            "roots": len(nodes.items),
            "open": len(open_roots),
            "nodes": closure.n_nodes,
            "edges": len(closure.edge_key),
            "masks": len(closure.mask_count),
        }
        return StackAutomaton(
            required,
            self.tables,
            self.shorter,
            tuple(required.line_breaks),
            tuple(depth_cases),
            closure,
            open_roots,
            counts,
        )

    def _ask_all(self) -> tuple[Int32, int]:
        """The roots of all groups of tokens.

        Returns them, (n, 2) int32, sets first and the last set first; and how many pairs of a group
        and a continuation there are, in all depth cases.
        """
        n_sets = len(self.required.continuations.sets)
        is_asked = np.zeros((len(self.required.continuations) + n_sets, 2), np.bool_)
        cases = [depth_case for state in self.required.states for depth_case in state.depth_cases]
        continuations = np.concatenate([case.group_continuation for case in cases])
        line_breaks = np.concatenate([case.group_line_breaks for case in cases])
        is_asked[continuations + n_sets, np.minimum(line_breaks, 1)] = True
        is_asked[WHATEVER + n_sets] = False
        return (np.argwhere(is_asked) - [n_sets, 0]).astype(np.int32), len(continuations)

    def _explore(self, report: Callable[[int, int], None] | None) -> ConfigurationSets | None:
        """The configuration sets of all roots; None past a limit."""
        # between two terminals a stack is empty, or a terminal was shifted last
        accessing = self.tables.accessing
        is_top = (accessing >= 0) & (accessing < self.tables.n_terminals)
        is_top[0] = True
        allowed = np.array([is_top, is_top])
        if self.grammar.layout is not None:
            inserted = (self.grammar.layout.newline, self.grammar.layout.indent, self.grammar.layout.dedent)
            allowed[1] = np.isin(accessing, self.tables.terminal_column[list(inserted)])
        modes, continuations = self.required.modes.of_state, self.required.continuations
        try:
            return explore(
                with_few_rules(self.shorter, self.tables, MAX_RULES),
                modes,
                continuations,
                self.roots,
                allowed,
                report,
                self.budget.bytes,
            )
        except LimitError:
            return None

    def _distinct(self, root_of: Int32) -> Int32:
        """By kind the distinct root of each continuation, then of each lookahead set.

        Returns (2, n_continuations + n_sets + 1) int32. Lookahead set
        -1 - n is at n_continuations + n.
        """
        continuations = self.required.continuations
        distinct = np.full((2, len(continuations) + len(continuations.sets) + 1), NEVER_LEGAL, np.int32)
        continuation, kind = self.roots.T
        distinct[kind, np.where(continuation >= 0, continuation, len(continuations) - continuation - 1)] = root_of
        return distinct

    def _close(
        self,
        configuration_sets: ConfigurationSets | None,
        items: list[tuple[Int32, Int32]],
        collector: MaskCollector,
        root_of: Int32,
        report: Callable[[int, int], None] | None,
    ) -> tuple[Closure, tuple[tuple[Int32, Int32], ...]]:
        """The closed automaton and (). Over a budget: an empty automaton, and all roots open."""
        if configuration_sets is not None:
            try:
                return close(configuration_sets, items, collector, report, self.budget.edges, self.budget.bytes), ()
            except LimitError:
                pass
        continuation_of_root = np.zeros(max(1, int(root_of.max(initial=0)) + 1), np.int32)
        legal = np.flatnonzero(root_of != NEVER_LEGAL)[::-1]  # the first root of a number is the last one here
        continuation_of_root[root_of[legal]] = self.roots[legal, 0]
        empty = collector.without_nodes()
        return empty, tuple((continuation_of_root[roots], masks) for roots, masks in items)

    def _gates(self, breaks: int) -> list[tuple[int, int]]:
        """Roots that must be legal on some stack; otherwise no text has these line breaks.

        One root for each newline with symbols before it: these symbols, then the newline.

        breaks : the number of the list of line breaks.

        Returns the continuation and the kind of each.
        """
        newline = self.required.column_of[self.required.newline] if self.grammar.layout else -1
        return [
            (self.required.continuations.before([*before, newline], WHATEVER), int(index > 0))
            for index, (before, _) in enumerate(self.required.line_breaks[breaks])
            if before
        ]
