"""The walk of a vocabulary under longest-match lexing.

In: the lexer and the tokens. Out: for each lexer state the terminals that each token makes the
lexer emit, and the state in which it leaves the lexer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from itertools import accumulate

import numpy as np

from maskwright.analysis.arrays import Int32, Int64
from maskwright.analysis.errors import LimitError
from maskwright.analysis.lexing.encoding import RESTART, Transducer
from maskwright.analysis.lexing.modes import Modes
from maskwright.maskstore.tokens import _kernels, _outcome_kernels, walk_tables
from maskwright.maskstore.tokens._hash_kernels import doubled, grown, no_keys, no_rows, no_runs, no_values
from maskwright.maskstore.tokens.classes import NO_CLASS, numbered
from maskwright.maskstore.tokens.events import EventCodes
from maskwright.maskstore.tokens.feasible import ANYWHERE, Feasible
from maskwright.maskstore.vocabulary import SortedTexts

Progress = Callable[[int, int], None]

MOST_ROWS = 1 << 14
"""A byte that needs more rows, parses followed at once, is read in too many ways."""
MOST_CONFIGURATIONS = 1 << 18
"""A token that may leave the lexer in more configurations is read in too many ways."""
MOST_BYTES = 1 << 30
"""Most bytes of one table that is made larger."""
FIRST_CAPACITY = 1 << 9
"""Sequences that there is room for at first."""
FIRST_ROWS = 1 << 10
"""Rows that the other tables have room for at first: a power of two. There are more steps."""
FIRST_FOUND = 256
"""Configurations after one token that there is room for at first."""

PAUSE = 1 << 24
"""Units of work after which the kernel returns, so that Ctrl-C is obeyed.

It takes some tenths of a second at most.
"""


class TokenWalk:
    """Walks the vocabulary from all lexer states at once.

    A *sequence* is what a token makes the lexer emit, with the modes of its lexemes. It has a
    number only if some parser can read it, as far as `feasible` knows. Most ways to read a token
    lead nowhere, and under lexing with modes there would be very many of them.

    n_classes : how many classes there are of tokens that do the same in every lexer state, and emit
        the same.
    class_of : (n_tokens,) int32; the class of each token in the order of ids, numbered by first
        tokens; NO_CLASS for those that are read in no state.
    """

    def __init__(
        self,
        name: str,
        transducer: Transducer,
        modes: Modes,
        codes: EventCodes,
        feasible: Feasible,
        newline: int,
        symbol_of: Int32,
        tokens: SortedTexts,
        progress: Progress | None = None,
    ) -> None:
        """Walk.

        name : the grammar's, for errors.
        codes, feasible : the symbols of sequences, and the states that a parser can be in after
            them.
        newline : the layout's newline terminal, below 0 if there is no layout.
        symbol_of : (n_terminals,) int32; the terminal that stands in sequences for each terminal.
        tokens : the tokens to read.
        progress : called with the tokens done, and all of them.

        Raises: LimitError for a token that can be read in too many ways, or for tables past
        MOST_BYTES.
        """
        self._name = name
        self._feasible = feasible
        self._n_tokens = len(tokens.ids)
        output_start, output_symbols = flat(transducer.outputs)
        pending_start, pending = flat(transducer.pending)
        self._lexer = walk_tables.Lexer(
            transducer.next_state, transducer.output, output_start, symbol_of[output_symbols], transducer.byte_class
        )
        self._tokens = _tokens(tokens, newline, codes)
        self._contexts = walk_tables.Contexts(
            transducer.mode_state, modes.may_follow, codes.n_symbols, pending_start, pending.astype(np.uint8)
        )
        self._sequences = no_values(FIRST_CAPACITY)
        self._sequences.keys[0], self._sequences.value[0], self._sequences.size[:] = -1, ANYWHERE, 1
        n_rows = 16 + 8 * transducer.n_modes
        # BOUND: a byte read anew may make the lexer back up again, over one lexeme's pending bytes
        text = np.zeros((n_rows, 1 + 4 * (transducer.longest_pending + 2)), np.uint8)
        self._rows = walk_tables.Rows(text, *np.zeros((6, n_rows), np.int32))
        self._outcomes = _no_outcomes(transducer, newline, len(tokens.ids), tokens.longest)
        self._walk(progress)
        self._read_classes(tokens.by_id)

    @property
    def n_sequences(self) -> int:
        """The number of sequences met. Sequence 0 is empty."""
        return int(self._sequences.size[0])

    @property
    def sequences(self) -> tuple[Int32, Int32]:
        """Of each sequence the one before its last symbol, and this symbol: two arrays (n,) int32.

        -1 for the empty sequence.
        """
        keys = self._sequences.keys[: self.n_sequences]
        return (keys >> 32).astype(np.int32), keys.astype(np.int32)  # the low 32 bits

    def groups(self, state: int, ending_of: Int32, n_endings: int) -> tuple[Int32, Int64, Int64]:
        """The classes of tokens that are read from a lexer state, by what they do.

        ending_of : (n_states,) int32; the ending of each lexer state, a number below `n_endings`.

        Returns the classes, sorted by group, int32; where each group begins, (n_groups + 1,) int64;
        and the key of each group, (n_groups,) int64: the sequence emitted * n_endings + the ending
        of the state in which the way ends. Groups are in the order of first occurrence. A class is
        in several groups if it is read in several ways.
        """
        o, found = self._outcomes, self._groups
        _outcome_kernels.groups_of_state(
            state, o.firsts.component, self._readers, o.values, o.configurations, ending_of, n_endings, found
        )
        n, n_groups = found.sizes.tolist()
        return found.classes[:n].copy(), found.starts[: n_groups + 1].copy(), found.keys[:n_groups].copy()

    def _walk(self, progress: Progress | None) -> None:
        """Read all tokens: call the kernel, and make room or learn as it asks, until it is done."""
        cursor = np.zeros(6, np.int64)
        while True:
            feasible = self._feasible
            walk = walk_tables.Walk(
                self._lexer,
                self._tokens,
                self._sequences,
                feasible.known,
                self._contexts,
                feasible.modes_of_sets,
                self._rows,
                cursor,
            )
            code = _outcome_kernels.walk_tokens(walk, self._outcomes, PAUSE)
            if progress is not None and (code in (walk_tables.PAUSED, walk_tables.DONE)):
                progress(int(cursor[walk_tables.TOKEN]), self._n_tokens)
            if code == walk_tables.DONE:
                return
            if code == walk_tables.UNKNOWN_AFTER:
                feasible.learn(int(cursor[walk_tables.SET]), int(cursor[walk_tables.SYMBOL]))
            elif code == walk_tables.UNKNOWN_MODES:
                feasible.learn_modes(int(cursor[walk_tables.SET]))
            elif code != walk_tables.PAUSED:
                self._make_room(code)

    def _make_room(self, full: int) -> None:
        """Make room for twice as many rows of a table. full : one of the FULL_ codes."""
        if full == walk_tables.FULL_SEQUENCES:
            self._sequences = grown(self._sequences)
        elif full == walk_tables.FULL_ROWS:
            self._check(len(self._rows.text), MOST_ROWS)
            self._rows = walk_tables.Rows(*(doubled(array) for array in self._rows))
        elif full == walk_tables.FULL_FOUND:
            self._check(len(self._outcomes.found), MOST_CONFIGURATIONS)
            self._outcomes = self._outcomes._replace(found=doubled(self._outcomes.found))
        else:
            name = _TABLES[full]
            table = getattr(self._outcomes, name)
            if sum(array.nbytes for array in table) > MOST_BYTES:
                raise LimitError(
                    f"grammar {self._name}: tokens do too many different things in its {self._outcomes.emits.shape[0]:,} lexer states "
                    f"(more than {MOST_BYTES >> 20} MiB of tables); make terminals differ sooner, or join some of them"
                )
            self._outcomes = self._outcomes._replace(**{name: grown(table)})

    def _check(self, n: int, most: int) -> None:
        if n > most:
            raise LimitError(
                f"grammar {self._name}: some token can be read in too many ways under contextual lexing; load the "
                "grammar with lexing='longest'"
            )

    def _read_classes(self, by_id: Int64) -> None:
        """Sort the tokens by their vectors, and the classes by the components that read them."""
        o = self._outcomes
        vector_of = o.vector_of[by_id]
        is_read = vector_of != 0
        number, firsts = numbered(vector_of[is_read])
        self.class_of = np.full(len(by_id), NO_CLASS, np.int32)
        self.class_of[is_read] = number
        vectors = vector_of[is_read][firsts]
        self.n_classes = len(vectors)
        sizes = np.diff(o.vectors.start)[vectors] // 2
        entry = np.repeat(o.vectors.start[vectors] - 2 * (np.cumsum(sizes) - sizes), sizes) + 2 * np.arange(sizes.sum())
        component, value = o.vectors.items[entry], o.vectors.items[entry + 1]
        begin, order = np.zeros(int(o.firsts.n[0]) + 1, np.int64), np.empty(len(entry), np.int64)
        _kernels.stable_order(component, begin, order)
        class_of = np.repeat(np.arange(self.n_classes, dtype=np.int32), sizes)[order]
        self._readers = walk_tables.Readers(begin, class_of, value[order])
        n_ways = np.concatenate([[0], np.cumsum(np.diff(o.values.start)[value[order]])])
        of_component = np.append(n_ways[begin[1:]] - n_ways[begin[:-1]], 0)  # the last one for component -1
        most = int(of_component[o.firsts.component].sum(axis=0).max(initial=0))
        classes, found_class, group, firsts = np.empty((4, most), np.int32)
        keys, found_key, order = np.empty((3, most), np.int64)
        self._groups = walk_tables.Groups(
            sizes=np.zeros(2, np.int64),
            classes=classes,
            starts=np.empty(most + 1, np.int64),
            keys=keys,
            found_class=found_class,
            found_key=found_key,
            group=group,
            firsts=firsts,
            order=order,
            slots=np.empty(1 << max(4, (2 * most).bit_length()), np.int32),
        )


_TABLES = {
    walk_tables.FULL_CONFIGURATIONS: "configurations",
    walk_tables.FULL_VALUES: "values",
    walk_tables.FULL_READINGS: "readings",
    walk_tables.FULL_VECTORS: "vectors",
    walk_tables.FULL_STEPS: "steps",
}
"""By FULL_ code: the name of the table."""


def _tokens(tokens: SortedTexts, newline: int, codes: EventCodes) -> walk_tables.Tokens:
    newlines = (newline, codes.newline_at(0)) if newline >= 0 else (-1, -1)
    return walk_tables.Tokens(tokens.data, tokens.offsets, tokens.shared, *newlines, codes.moves.table())


def _no_outcomes(transducer: Transducer, newline: int, n_tokens: int, longest: int) -> walk_tables.Outcomes:
    """Empty tables, but for value 0 and vector 0."""
    n, n_states = FIRST_ROWS, transducer.n_states
    has_newline = np.array([newline in symbols for symbols in transducer.outputs], np.bool_)
    emits = has_newline[transducer.output].any(axis=1)
    if transducer.n_modes > 1 and newline >= 0:
        # what is read anew may be a newline, and in state 0 a mode is still to be chosen
        emits |= (transducer.next_state == RESTART).any(axis=1)
        emits[0] = True
    value_emits, first_class, component = np.zeros((3, n), np.int32)
    return walk_tables.Outcomes(
        configurations=no_keys(n),
        values=walk_tables.Values(*no_runs(n, n)[:3], value_emits, first_class, component, *no_rows(n, 1)),
        readings=no_values(n),
        vectors=walk_tables.Vectors(*no_runs(n, 2 * n)[:3], np.zeros(n, np.int32), *no_rows(n, 1)),
        steps=no_values(2 * n),
        firsts=walk_tables.Firsts(
            np.full(transducer.next_state.shape[1], -1, np.int32),
            np.full((transducer.next_state.shape[1], n_states), -1, np.int32),
            np.zeros(2 * n_states, np.int32),
            np.zeros(1, np.int64),
        ),
        path=walk_tables.Path(*np.zeros((2, longest + 1), np.int32)),
        after=np.zeros((FIRST_ROWS, transducer.next_state.shape[1]), np.int32),
        emits=np.array(emits, np.int32),
        found=np.zeros(FIRST_FOUND, np.int32),
        items=np.zeros(2 * n_states, np.int32),
        vector_of=np.zeros(n_tokens, np.int32),
    )


def starts_of(sequences: Sequence[Sized]) -> Int32:
    """Where each of some sequences begins if they stand end to end: (n + 1,) int32."""
    return np.array([0, *accumulate(map(len, sequences))], np.int32)


def flat(sequences: Sequence[Sequence[int]]) -> tuple[Int32, Int32]:
    """Sequences end to end: where each begins, (n + 1,) int32, and the members, int32."""
    starts = starts_of(sequences)
    return starts, np.array([member for one in sequences for member in one], np.int32)
