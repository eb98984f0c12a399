"""Builds the `EntryTable` of a grammar of lexing "nfa" and a vocabulary."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import GrammarError, VocabularyError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.grammar.normalise import Rules
from maskwright.analysis.legality.judge import Judge
from maskwright.analysis.legality.verdict import START
from maskwright.analysis.lexing.messages import check_language, name_of
from maskwright.analysis.lexing.terminal_nfa import TerminalNfa, build_terminal_nfa
from maskwright.analysis.lexing.terminals import compile_terminals
from maskwright.analysis.regex.dfa import Dfa
from maskwright.maskstore.entries.entry_table import NO_CELL, EntryTable
from maskwright.maskstore.entries.streamline import (
    SequencesAfter,
    Streamlined,
    count_entries,
    pair_mappings,
    streamline,
)
from maskwright.maskstore.entries.walk import Entries, StateEntries, Walk, collect_entries
from maskwright.maskstore.tokens import _kernels
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.masks import MaskPoolBuilder, n_words

PRINTABLE = np.frombuffer(string.printable.encode("ascii"), np.uint8)
"""The bytes that the post reads."""
Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


def build_entry_table(
    grammar: Grammar,
    vocabulary: Vocabulary,
    *,
    streamlined: bool = True,
    rules: Rules = "normalised",
    context: int = 1,
    progress: Progress | None = None,
) -> EntryTable:
    """The entry table of a grammar of lexing "nfa" and a vocabulary.

    streamlined : False keeps every entry.
    rules : what always-verdicts are judged on, see `Judge`.
    context : 1 to keep entries by the lexer state's own terminal; 2 by the one before it, too.
    progress : called with "walk" or a step of `streamline`, how much of it is done, and how much
        there is.

    Raises: GrammarError if the grammar has another lexing or, unless streamlined is False, no text.
    VocabularyError if no token stands for text. TerminalError if a terminal cannot be compiled.
    LimitError if the lexer has too many states. MaskwrightError if `rules` or `context` is unknown.
    """
    _check_lexing(grammar)
    nfa = build_terminal_nfa(compile_terminals(grammar))
    entries = walk_vocabulary(grammar, nfa, vocabulary, progress)
    if not streamlined:
        return assemble(grammar, vocabulary, entries, None, rules)
    judge = Judge(grammar, rules)
    result = streamline(grammar, entries.walk.codes, entries.table, contexts_of(grammar, entries), judge, progress)
    pairs = pair_mappings(grammar, entries, result, judge) if context == 2 else ()
    return assemble(grammar, vocabulary, entries, result, rules, pairs)


def walk_vocabulary(
    grammar: Grammar, nfa: TerminalNfa, vocabulary: Vocabulary, progress: Progress | None = None
) -> Entries:
    """The entries of all lexer states, over the bytes of all tokens that stand for text.

    progress : called with "walk", the number of lexer states done, and the number of all of them.

    Raises: GrammarError if the grammar's lexing is not "nfa". VocabularyError if no token stands
    for text. LimitError if too many terminals are alive together (`build_union_dfa`).
    """
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
            f"grammar {grammar.name} has lexing {grammar.lexing!r}, but only lexing 'nfa' has entries: "
            "load the grammar with lexing='nfa'"
        )


def contexts_of(grammar: Grammar, entries: Entries) -> list[SequencesAfter]:
    """The left symbols after which each lexer state's sequences must be judged.

    These are the state's own left symbol and, for a dependent state, each of its `known_lefts`.
    """
    contexts = [SequencesAfter(state.left, state.sequences) for state in entries.states]
    for state in dependent_states(grammar, entries):
        contexts += [SequencesAfter(left, state.sequences) for left in known_lefts(grammar, entries, state)]
    return contexts


def dependent_states(grammar: Grammar, entries: Entries) -> list[StateEntries]:
    """The states whose own terminal does not tell what the parser saw last.

    These are the states inside ignored terminals and, with layout, inside newlines.
    """
    n = entries.walk.nfa.n_states
    return [s for s in entries.states if s.state < n and int(entries.walk.nfa.terminal[s.state]) != s.left]


def known_lefts(grammar: Grammar, entries: Entries, state: StateEntries) -> list[int]:
    """The terminals that a parser can have seen last in a dependent state.

    Inside a newline this is only the newline itself: it holds outside brackets. Inside an ignored
    terminal it is START, for a text that has just begun, and every terminal that a text can spell
    and that is not ignored.
    """
    newline = grammar.newline
    if int(entries.walk.nfa.terminal[state.state]) == newline:
        return [newline]
    spelled = [
        t for t in range(grammar.n_terminals) if not grammar.terminals[t].is_declared and t not in grammar.ignored
    ]
    return [START, *spelled]


def assemble(
    grammar: Grammar,
    vocabulary: Vocabulary,
    entries: Entries,
    result: Streamlined | None,
    rules: str,
    pairs: Iterable[tuple[int, int, npt.NDArray[np.int32]]] = (),
) -> EntryTable:
    """The entry table of some entries.

    result : how `streamline` maps the sequences. None keeps all entries.
    rules : recorded in the table.
    pairs : how sequences are mapped after two terminals (`pair_mappings`); none for a table of one.
    """
    builder = _TableBuilder(vocabulary, entries)
    nfa = entries.walk.nfa
    cell_of_state = np.full(nfa.n_states + 1, NO_CELL, np.int32)
    for state in entries.states:
        mapping = np.arange(len(entries.table), dtype=np.int32) if result is None else result.final(state.left)
        cell_of_state[state.state] = builder.add(state, mapping)
    cells: dict[int, dict[int, int]] = {}
    if result is not None:
        for state in dependent_states(grammar, entries):
            lefts = known_lefts(grammar, entries, state)
            cells[state.state] = {left: builder.add(state, result.final(left)) for left in lefts}
    for second, left, mapping in pairs:
        if not grammar.terminals[second].is_declared:  # no text spells it
            for state in (each for each in entries.states if each.left == left):
                cells.setdefault(state.state, {})[second] = builder.add(state, mapping)
    cell_of_last = np.full((len(cells), grammar.n_terminals + 1), NO_CELL, np.int32)
    for row, number in enumerate(sorted(cells)):
        cell_of_last[row, list(cells[number])] = list(cells[number].values())
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
        dependent=np.array(sorted(cells), np.int32),
        cell_of_last=cell_of_last,
        counts=counts,
    )


class _TableBuilder:
    """Collects distinct cells, sequences and masks."""

    def __init__(self, vocabulary: Vocabulary, entries: Entries) -> None:
        self.vocabulary = vocabulary
        self.entries = entries
        self.pool = MaskPoolBuilder(vocabulary.size)
        self.sequence_number: dict[int, int] = {0: 0}
        self.cells: dict[tuple[tuple[int, int], ...], int] = {}
        self.mask_of: dict[tuple[int, bytes], int] = {}

    def add(self, state: StateEntries, mapping: npt.NDArray[np.int32]) -> int:
        """The number of the cell with the state's entries, their sequences mapped.

        mapping : (n_sequences,) int32; sequence number -> sequence number, negative to delete it.
        """
        targets = mapping[state.sequence_of]
        kept = targets >= 0
        n_groups = max(1, state.groups.n_groups)
        keys = np.unique(targets[kept].astype(np.int64) * n_groups + state.group_of[kept])
        sequence, group = np.divmod(keys, n_groups)
        distinct, starts = np.unique(sequence, return_index=True)
        cell = []
        for one, begin, end in zip(distinct.tolist(), starts.tolist(), [*starts[1:].tolist(), len(keys)], strict=False):
            number = self.sequence_number.setdefault(one, len(self.sequence_number))
            cell.append((number, self._mask(state, group[begin:end])))
        return self.cells.setdefault(tuple(sorted(cell)), len(self.cells))

    def _mask(self, state: StateEntries, groups: npt.NDArray[np.int64]) -> int:
        """The provisional number of the mask with the tokens of some groups."""
        key = (id(state.groups), groups.tobytes())
        if key not in self.mask_of:
            words = np.zeros(n_words(self.vocabulary.size), np.uint32)
            count = _kernels.union_of_groups(
                state.groups.members, state.groups.member_start, groups, self.entries.token_ids, words
            )
            self.mask_of[key] = self.pool.add(words, int(count))
        return self.mask_of[key]

    def build(self, **others: object) -> EntryTable:
        """The table with all cells that were added. others : the table's other members."""
        masks, final = self.pool.build()
        sequences = [self.entries.table[old] for old in self.sequence_number]
        flat = [entry for cell in self.cells for entry in cell]
        return EntryTable(
            vocabulary=self.vocabulary,
            cell_start=np.concatenate([[0], np.cumsum([len(cell) for cell in self.cells])]).astype(np.int64),
            entry_sequence=np.array([sequence for sequence, _ in flat], np.int32),
            entry_mask=final[np.array([mask for _, mask in flat], np.int64)],
            sequence_start=np.concatenate([[0], np.cumsum([len(s) for s in sequences])]).astype(np.int32),
            sequence_symbols=np.array([symbol for s in sequences for symbol in s], np.int32),
            masks=masks,
            **others,  # type: ignore[arg-type]
        )


def post_terminals(grammar: Grammar) -> tuple[Dfa | None, ...]:
    r"""The automata of `compile_terminals`, restricted to texts over `string.printable`.

    The streamlining post reads terminals so, and its lexer NFA of python.lark has 410 states: the
    automata of the 99 terminals have 408 here, and the NFA adds a start and a final state. Other
    regex libraries reach this figure with plainer patterns: ``"([^"\\\n]|\\.)*"`` for STRING, a
    pattern of the same kind for LONG_STRING, and DEC_NUMBER without ``(?![1-9])``. Their languages
    are exactly those that `compile_terminal` gives to python.lark's own patterns, since it leaves a
    look-ahead past a lexeme's end open. So no pattern is replaced, and any grammar will do.

    Returns one automaton for each terminal, None for declared terminals.

    Raises: as `compile_terminals`; TerminalError if a terminal matches no such text.
    """
    restricted: list[Dfa | None] = []
    for terminal, dfa in zip(grammar.terminals, compile_terminals(grammar), strict=True):
        if dfa is None:
            restricted.append(None)
            continue
        table = np.full_like(dfa.next_state, -1)
        table[:, PRINTABLE] = dfa.next_state[:, PRINTABLE]
        name = f"{name_of(terminal, grammar.name)}, read over string.printable"
        restricted.append(check_language(name, terminal, Dfa.minimal(table, dfa.is_accepting)))
    return tuple(restricted)


def post_size(nfa: TerminalNfa) -> dict[str, int]:
    """The states and transitions of a lexer's NFA as the post counts them.

    One state more begins a lexeme, and one ends it. Counted are the transitions on
    `string.printable`, into each initial state, and out of each accepting one.
    """
    reading = int((nfa.next_state[:, PRINTABLE] >= 0).sum())
    around = int((nfa.initial >= 0).sum()) + int(nfa.is_accepting.sum())
    return {"states": len(nfa.next_state) + 2, "transitions": reading + around}
