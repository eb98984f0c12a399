"""The mask store: for every lexer state, which tokens are allowed if the parser accepts which sequence.

In: a grammar and a vocabulary. Out: `MaskStore`, flat arrays that a decoder reads and a file holds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import boolean, need_progress
from maskwright.analysis.errors import DeadEndError, GrammarError, LimitError, VocabularyError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.legality.judge import Judge, Rules, need_rules
from maskwright.analysis.legality.verdict import START
from maskwright.analysis.lexing.terminal_nfa import TerminalNfa, build_terminal_nfa
from maskwright.analysis.lexing.terminals import compile_terminals
from maskwright.analysis.loading.sources import GrammarSource, as_grammar
from maskwright.maskstore.entries.entries import Entries, StateEntries, collect_entries
from maskwright.maskstore.entries.streamline import STEPS, Context, Streamlined, count_entries, streamline
from maskwright.maskstore.entries.walk import Walk
from maskwright.maskstore.file.portable import Origin, Portable
from maskwright.maskstore.masks import MaskPool, MaskPoolBuilder, n_words
from maskwright.maskstore.tokens import _kernels
from maskwright.maskstore.tokens.events import EventCodes
from maskwright.maskstore.vocabulary import Vocabulary, VocabularySource, as_vocabulary

if TYPE_CHECKING:
    from maskwright.maskstore.automaton_store import AutomatonStore

NO_CELL = -1

MOST_SAID = 3
"""Findings of lint in the message of a grammar that cannot finish any text."""

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


@dataclass(frozen=True)
class MaskStore(Portable):
    """Masks by lexer state and terminal sequence.

    A *cell* is a list of entries: what one lexer state needs after one terminal. States with equal entries share a cell.

    cell_start : (n_cells + 1,) int64. entry_sequence, entry_mask : (n_entries,) int32; cell c's entries are cell_start[c] ..
        cell_start[c + 1]; their sequences are distinct.
    cell_of_state : (n_states + 1,) int32, NO_CELL for states in which no text can stand between tokens; the last is the start.
    dependent : (n_dependent,) int32, ascending; the states whose own terminal does not tell what the parser saw last, that is those
        inside ignored terminals and, with layout, inside newlines.
    cell_of_last : (n_dependent, n_terminals + 1) int32; for a dependent state the cell if the parser has seen a certain terminal last
        (the last column: none, the text has just begun), NO_CELL where only cell_of_state holds. A newline state has just one such
        cell, under the newline itself: it holds outside brackets.
    sequence_start : (n_sequences + 1,) int32. sequence_symbols : int32; terminals and layout's events (`EventCodes`). Sequence 0 is empty.
    counts : step name -> (n_resting,) int32 entries of each resting state after the step; "original" first. Statistics only.
    origin : the file that it was loaded from; a pickle names it, and has the content otherwise (`portable`).
    """

    grammar: Grammar
    vocabulary: Vocabulary
    nfa: TerminalNfa
    codes: EventCodes
    rules: str
    cell_start: npt.NDArray[np.int64]
    entry_sequence: npt.NDArray[np.int32]
    entry_mask: npt.NDArray[np.int32]
    cell_of_state: npt.NDArray[np.int32]
    dependent: npt.NDArray[np.int32]
    cell_of_last: npt.NDArray[np.int32]
    sequence_start: npt.NDArray[np.int32]
    sequence_symbols: npt.NDArray[np.int32]
    masks: MaskPool
    counts: Mapping[str, npt.NDArray[np.int32]]
    origin: Origin | None = field(default=None, init=False, compare=False, repr=False)

    @property
    def is_streamlined(self) -> bool:
        return len(self.counts) > 1

    @property
    def n_cells(self) -> int:
        return len(self.cell_start) - 1

    @property
    def n_entries(self) -> int:
        """Entries in all cells; shared cells count once."""
        return len(self.entry_sequence)

    def sequence(self, number: int) -> tuple[int, ...]:
        begin, end = self.sequence_start[number : number + 2].tolist()
        return tuple(self.sequence_symbols[begin:end].tolist())

    def cell(self, state: int, last: int | None = None) -> int:
        """The cell of a lexer state. last : the terminal that the parser has seen last, START, or None if that is not to be used."""
        if last is not None:
            row = int(np.searchsorted(self.dependent, state))
            if row < len(self.dependent) and self.dependent[row] == state:
                found = int(self.cell_of_last[row, last])  # START = -1 is the last column
                if found != NO_CELL:
                    return found
        return int(self.cell_of_state[state])

    def entries(self, cell: int) -> list[tuple[tuple[int, ...], int]]:
        """The cell's entries: sequence and mask number, the empty sequence first if it is there."""
        rows = range(int(self.cell_start[cell]), int(self.cell_start[cell + 1]))
        return [(self.sequence(int(self.entry_sequence[row])), int(self.entry_mask[row])) for row in rows]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the store to a file; see `maskwright.maskstore.file.fileformat.save_store`."""
        from maskwright.maskstore.file.fileformat import save_store

        save_store(self, path)

    def matcher(self, max_rollback: int = 256) -> NoReturn:
        """Raises GrammarError: an `AutomatonStore` has matchers."""
        self._no_engine("matcher")

    def batch(self, size: int, max_rollback: int = 256, n_threads: int = 1) -> NoReturn:
        """Raises GrammarError: an `AutomatonStore` has batches."""
        self._no_engine("batch")

    def _no_engine(self, what: str) -> NoReturn:
        raise GrammarError(
            f"grammar {self.grammar.name}: lexing 'nfa' has no {what}, it has the ReferenceDecoder only; "
            "load the grammar with lexing='longest'"
        )

    def __repr__(self) -> str:
        kind = f"streamlined on {self.rules} rules" if self.is_streamlined else "not streamlined"
        return (
            f"<MaskStore {self.grammar.name} x {self.vocabulary.name}: {self.n_entries} entries in {self.n_cells} cells, "
            f"{len(self.masks)} masks, {kind}>"
        )


def build_store(
    grammar: GrammarSource,
    vocabulary: VocabularySource,
    *,
    streamlined: bool = True,
    rules: Rules = "normalised",
    progress: Progress | None = None,
    allow_dead: bool = False,
) -> MaskStore | AutomatonStore:
    """The store of a grammar and a vocabulary, by the grammar's lexing: "longest" or "contextual" an `AutomatonStore`, "nfa" a `MaskStore`.

    grammar, vocabulary : objects, or what `load_grammar` and `load_vocabulary` take: names, paths, a text, a tokenizer, a list of bytes.
    streamlined : False keeps every entry; for comparison and tests. Lexing "nfa" only.
    rules : what always-verdicts are judged on, see `Judge`. Lexing "nfa" only.
    allow_dead : build a store too under which no text can be finished, for who wants to look at it. Under lexing "nfa" only an empty first
        mask is found.

    Raises DeadEndError for a grammar that cannot finish any text with the vocabulary, with what lint says, TerminalError for a terminal
    that cannot be compiled, LimitError for an explosion, VocabularyError for a vocabulary without text, GrammarError for options that the
    lexing does not have. Cost for python.lark at V = 32k: some 10 CPU s, under "nfa" 3.
    """
    streamlined, allow_dead = boolean("streamlined", streamlined), boolean("allow_dead", allow_dead)
    need_rules(rules)
    need_progress(progress)
    grammar, vocabulary = as_grammar(grammar), as_vocabulary(vocabulary)
    if grammar.lexing != "nfa":
        if not streamlined or rules != "normalised":
            option = "streamlined=False" if not streamlined else f"rules={rules!r}"
            raise GrammarError(
                f"grammar {grammar.name} has lexing {grammar.lexing!r}, whose stores hold no entries, so {option} says nothing: "
                "leave it out, or load the grammar with lexing='nfa'"
            )
        from maskwright.maskstore.automaton_store import build_automaton_store

        store: MaskStore | AutomatonStore = build_automaton_store(grammar, vocabulary, progress)
    else:
        store = build_mask_store(grammar, vocabulary, streamlined=streamlined, rules=rules, progress=progress)
    if not allow_dead:
        refuse_dead(store)
    return store


def refuse_dead(store: MaskStore | AutomatonStore) -> None:
    """Raises DeadEndError, with what lint says, for a store under which no text can be finished as far as that is quickly known."""
    grammar, vocabulary = store.grammar, store.vocabulary
    # the layers to the right, which a store does not depend on, are looked up by name
    try:
        if isinstance(store, MaskStore):
            decoder = import_module("maskwright.decoding.reference.reference").ReferenceDecoder(store)
            if not decoder.mask().any():
                raise DeadEndError("no token can come first")
        else:
            import_module("maskwright.decoding.endings.ending").refuse_dead(store)
    except LimitError:
        return
    except DeadEndError as error:
        findings = import_module("maskwright.lint").lint_grammar(grammar, vocabulary, allow=("no-text",)).findings
        wanted = [f for f in findings if f.severity == "error"] or [f for f in findings if f.severity == "warning"]
        said = "".join(f"\n{finding}" for finding in wanted[:MOST_SAID])
        raise DeadEndError(
            f"grammar {grammar.name} cannot finish any text under vocabulary {vocabulary.name}, so no store is made: {error}"
            f"{said or '; see `maskwright lint`'}"
        ) from None


def build_mask_store(
    grammar: Grammar,
    vocabulary: Vocabulary,
    *,
    streamlined: bool = True,
    rules: Rules = "normalised",
    progress: Progress | None = None,
) -> MaskStore:
    """`build_store` for lexing "nfa"; raises GrammarError for another."""
    need_rules(rules)
    _check_lexing(grammar)
    nfa = build_terminal_nfa(compile_terminals(grammar))
    entries = walk_vocabulary(grammar, nfa, vocabulary, progress)
    if not streamlined:
        return assemble(grammar, vocabulary, entries, None, rules)
    result = streamline(
        grammar, entries.walk.codes, entries.table, contexts_of(grammar, entries), Judge(grammar, rules), progress
    )
    return assemble(grammar, vocabulary, entries, result, rules)


def walk_vocabulary(
    grammar: Grammar, nfa: TerminalNfa, vocabulary: Vocabulary, progress: Progress | None = None
) -> Entries:
    """All entries over the true bytes of all tokens that stand for text."""
    _check_lexing(grammar)
    ids = vocabulary.text_ids()
    if not len(ids):
        raise VocabularyError(f"vocabulary {vocabulary.name} has no token that stands for text")
    walk = Walk(grammar, nfa, [vocabulary.tokens[i] for i in ids])
    report = None if progress is None else (lambda done, total: progress("walk", done, total))
    return collect_entries(grammar, walk, ids, report)


def _check_lexing(grammar: Grammar) -> None:
    if grammar.lexing != "nfa":
        raise GrammarError(
            f"grammar {grammar.name} has lexing {grammar.lexing!r}; entries are there under lexing 'nfa' only: "
            "load the grammar with lexing='nfa'"
        )


def contexts_of(grammar: Grammar, entries: Entries) -> list[Context]:
    """What each lexer state's sequences are to be judged after: its own left symbol, and each known last terminal for dependent states."""
    contexts = [Context(state.left, state.sequences) for state in entries.states]
    for state in dependent_states(grammar, entries):
        contexts += [Context(left, state.sequences) for left in known_lefts(grammar, entries, state)]
    return contexts


def dependent_states(grammar: Grammar, entries: Entries) -> list[StateEntries]:
    """The states that say nothing about what stands to their left, by themselves."""
    n = entries.walk.nfa.n_states
    return [s for s in entries.states if s.state < n and int(entries.walk.nfa.terminal[s.state]) != s.left]


def known_lefts(grammar: Grammar, entries: Entries, state: StateEntries) -> list[int]:
    """The terminals that a parser can have seen last in a dependent state, START among them where the text may have just begun."""
    newline = grammar.layout.newline if grammar.layout else -9
    if int(entries.walk.nfa.terminal[state.state]) == newline:
        return [newline]
    spelled = [
        t for t in range(grammar.n_terminals) if not grammar.terminals[t].is_declared and t not in grammar.ignored
    ]
    return [START, *spelled]


def assemble(
    grammar: Grammar, vocabulary: Vocabulary, entries: Entries, result: Streamlined | None, rules: str
) -> MaskStore:
    """The store's arrays. result : None keeps the entries as they were walked."""
    builder = _StoreBuilder(vocabulary, entries)
    nfa = entries.walk.nfa
    cell_of_state = np.full(nfa.n_states + 1, NO_CELL, np.int32)
    for state in entries.states:
        mapping = np.arange(len(entries.table), dtype=np.int32) if result is None else result.final(state.left)
        cell_of_state[state.state] = builder.add(state, mapping)
    dependent = dependent_states(grammar, entries) if result is not None else []
    cell_of_last = np.full((len(dependent), grammar.n_terminals + 1), NO_CELL, np.int32)
    if result is not None:
        for row, state in enumerate(dependent):
            for left in known_lefts(grammar, entries, state):
                cell_of_last[row, left] = builder.add(state, result.final(left))
    states = [(state.left, state.sequences) for state in entries.states]
    counts = (
        {"original": np.array([len(sequences) for _, sequences in states], np.int32)}
        if result is None
        else count_entries(result, states)
    )
    return builder.build(
        grammar=grammar,
        nfa=nfa,
        codes=entries.walk.codes,
        rules=rules,
        cell_of_state=cell_of_state,
        dependent=np.array([state.state for state in dependent], np.int32),
        cell_of_last=cell_of_last,
        counts=counts,
    )


class _StoreBuilder:
    """Cells, sequences and masks, each once."""

    def __init__(self, vocabulary: Vocabulary, entries: Entries) -> None:
        self.vocabulary = vocabulary
        self.entries = entries
        self.pool = MaskPoolBuilder(vocabulary.size)
        self.sequence_number: dict[int, int] = {0: 0}
        self.cells: dict[tuple[tuple[int, int], ...], int] = {}
        self.mask_of: dict[tuple[int, bytes], int] = {}

    def add(self, state: StateEntries, mapping: npt.NDArray[np.int32]) -> int:
        """The number of the cell with the state's entries under a mapping of sequences (negative: deleted)."""
        targets = mapping[state.sequence_of]
        kept = targets >= 0
        n_groups = max(1, state.groups.n_groups)
        keys = np.unique(targets[kept].astype(np.int64) * n_groups + state.group_of[kept])
        sequence, group = np.divmod(keys, n_groups)
        starts = (
            np.flatnonzero(np.concatenate([[True], sequence[1:] != sequence[:-1]]))
            if len(keys)
            else np.zeros(0, np.int64)
        )
        cell = []
        for begin, end in zip(starts.tolist(), [*starts[1:].tolist(), len(keys)], strict=False):
            number = self.sequence_number.setdefault(int(sequence[begin]), len(self.sequence_number))
            cell.append((number, self._mask(state, group[begin:end])))
        return self.cells.setdefault(tuple(sorted(cell)), len(self.cells))

    def _mask(self, state: StateEntries, groups: npt.NDArray[np.int64]) -> int:
        key = (id(state.groups), groups.tobytes())
        if key not in self.mask_of:
            words = np.zeros(n_words(self.vocabulary.size), np.uint32)
            count = _kernels.union_of_groups(
                state.groups.members, state.groups.member_start, groups, self.entries.token_ids, words
            )
            self.mask_of[key] = self.pool.add(words, int(count))
        return self.mask_of[key]

    def build(self, **rest: object) -> MaskStore:
        masks, final = self.pool.build()
        sequences = [self.entries.table[old] for old in self.sequence_number]
        flat = [entry for cell in self.cells for entry in cell]
        return MaskStore(
            vocabulary=self.vocabulary,
            cell_start=np.concatenate([[0], np.cumsum([len(cell) for cell in self.cells])]).astype(np.int64),
            entry_sequence=np.array([sequence for sequence, _ in flat], np.int32),
            entry_mask=final[np.array([mask for _, mask in flat], np.int64)],
            sequence_start=np.concatenate([[0], np.cumsum([len(s) for s in sequences])]).astype(np.int32),
            sequence_symbols=np.array([symbol for s in sequences for symbol in s], np.int32),
            masks=masks,
            **rest,  # type: ignore[arg-type]
        )


__all__ = ["NO_CELL", "STEPS", "MaskStore", "Progress", "build_mask_store", "build_store"]
