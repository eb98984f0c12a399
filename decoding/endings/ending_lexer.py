"""What the lexer still owes to an ending: least bytes to the end of lexemes and between lexemes."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from maskwright.analysis.grammar.columns import LINE_FEED, TAB, Column, column_bytes
from maskwright.analysis.lexing.encoding import RESTART
from maskwright.decoding.endings._ending_kernels import COSTLY, relax_lexer
from maskwright.maskstore.table import schema

if TYPE_CHECKING:
    from maskwright.maskstore.table.compiled import EngineTable
from maskwright.decoding.endings.ending_spelling import PREFERRED

Int32 = npt.NDArray[np.int32]


class EndingLexer:
    """What the transducer can still do.

    Terminals have the grammar's numbers. One more, number `end`, is the end of the text.

    store : the engine's table with its grammar.
    alphabet : the bytes that endings may have.
    is_spelled : whether they must be spelled in tokens, so that one byte stands for no other.

    Attributes, besides parts of the table:

    least : (n_states, n_terminals + 1) int32; the bytes from a state to the end of each lexeme, if
        that lexeme is next.
    width[t] : the bytes of a shortest lexeme of terminal t.
    outputs[o] : the terminals of an output.
    fallback[q] : the output that the end of the text emits first in a state that backs up; -1 for
        none.
    again : the most bytes that wait to be read anew, and the most times that one byte makes the
        lexer read bytes anew; a table that no compiler wrote may ask for more.
    backs_up[q] : whether the next lexeme may have ended already before the last byte read.
    apart : (n_terminals, n_terminals) int32; apart[t, u] is the least bytes between lexemes t and
        u.
    moves[q] : (byte, class) of one byte for each different effect in state q, in the order of
        preference; if `is_spelled`, of one for each class of bytes.
    by_class : for each class its bytes of the alphabet.
    same_line[q], next_line[q] : the least bytes before a byte that ends the layout's newline,
        without and with a line feed among them.
    """

    def __init__(self, store: EngineTable, alphabet: bytes, *, is_spelled: bool = False) -> None:
        table = store.table
        layout = store.grammar.layout
        self.end = store.grammar.n_terminals
        n_states, n_classes = int(table[schema.N_LEXER_STATES]), int(table[schema.N_CLASSES])
        n_modes = int(table[schema.N_MODES])
        next_state = part_of(table, schema.NEXT_STATE, n_states, n_classes)
        output = part_of(table, schema.OUTPUT, n_states, n_classes)
        starts = part_of(
            table,
            schema.OUTPUT_START,
            max(int(output.max()), int(part_of(table, schema.END_OUTPUT, n_states).max())) + 2,
        )
        symbols = part_of(table, schema.OUTPUT_SYMBOLS, int(starts[-1])).tolist()
        self.outputs = [tuple(symbols[a:b]) for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)]
        self.class_of: list[int] = part_of(table, schema.BYTE_CLASS, 256).tolist()
        self.next_state: list[list[int]] = next_state.tolist()
        self.output: list[list[int]] = output.tolist()
        self.end_output: list[int] = part_of(table, schema.END_OUTPUT, n_states).tolist()
        pending = part_of(table, schema.PENDING_START, n_states + 1).tolist()
        waiting = bytes(part_of(table, schema.PENDING, pending[-1]).astype(np.uint8))
        self.pending = [waiting[a:b] for a, b in pairwise(pending)]
        self.longest_pending = max(map(len, self.pending))
        self.again = int(table[schema.AGAIN])
        symbols_begin = int(table[schema.OUTPUT_SYMBOLS])
        alone: dict[tuple[int, ...], int] = {each: number for number, each in enumerate(self.outputs) if len(each) == 1}
        self.fallback: list[int] = []
        for at in part_of(table, schema.FALLBACK, n_states).tolist():
            ended: tuple[int, ...] = () if at < 0 else (int(table[symbols_begin + at]),)
            if ended and ended not in alone:
                alone[ended] = len(self.outputs)
                self.outputs.append(ended)
            self.fallback.append(alone.get(ended, -1))
        self.is_newline = ((part_of(table, schema.STATE_FLAGS, n_states) & schema.IS_NEWLINE) != 0).tolist()
        self.modes: list[int] = part_of(table, schema.MODE_STATE, n_modes).tolist()
        self.by_class = [[b for b in alphabet if self.class_of[b] == c] for c in range(n_classes)]
        self.column_classes = {self.class_of[byte] for byte in column_bytes(layout.tabs)} if layout else set()
        self.moves = [self._moves(q, is_spelled) for q in range(n_states)]
        self.backs_up = self._find_backing_up()
        self.least = self._least()
        self.width: list[int] = self.least[0].tolist()
        self.apart = self._apart()
        newline = layout.newline if layout else -1
        self.same_line, self.next_line = self._bytes_to_end(newline)
        if layout and layout.brackets:
            self.apart = np.minimum(self.apart, self.width[newline])
        self.is_consistent = layout is not None and layout.tabs == "consistent"
        tab_class = self.class_of[TAB]
        has_tabs = any(
            flag and after >= 0 and self.is_newline[after] and emitted == 0
            for flag, after, emitted in zip(
                self.is_newline, next_state[:, tab_class], output[:, tab_class], strict=True
            )
        )
        self.widest_step = layout.tab_length if layout and has_tabs else 1
        # with tabs of several columns, a deeper line may need fewer bytes
        self.deeper_is_longer = self.widest_step == 1 or self.is_consistent

    def _moves(self, state: int, is_spelled: bool) -> list[tuple[int, int]]:
        """The first byte of each kind, in the order of preference.

        is_spelled : bytes of one effect that are of different classes are of different kinds.
        """
        found: dict[tuple[int, ...], tuple[int, int]] = {}
        for klass, members in enumerate(self.by_class):
            after, emitted = self.next_state[state][klass], self.output[state][klass]
            if not members or after == -1:
                continue
            if after == RESTART and not self.pending[state] and not self._begins_a_lexeme(klass):
                continue
            alone = is_spelled or after == RESTART or (self.is_newline[after] and klass in self.column_classes)
            key = (after, emitted, klass) if alone else (after, emitted)
            best = found.get(key)
            if best is None or PREFERRED.index(members[0]) < PREFERRED.index(best[0]):
                found[key] = (members[0], klass)
        return sorted(found.values(), key=lambda move: PREFERRED.index(move[0]))

    def _begins_a_lexeme(self, klass: int) -> bool:
        return any(self.next_state[mode][klass] != -1 for mode in {0, *self.modes})

    def _find_backing_up(self) -> list[bool]:
        """For each state, whether bytes of lexemes after the next one may have been read already.

        In a state in which the next lexeme could end, the end of the text would emit that lexeme
        alone. Suppose the lexer has passed such a state. A state in which the text cannot end may
        then emit the lexeme together with the bytes read since.
        """
        n = len(self.moves)
        found = [self._emits_more(q) for q in range(n)]
        quiet: list[set[int]] = [set() for _ in range(n)]
        ended, emitted_next = [0] * n, [0] * n
        for q in range(n):
            for _, klass in self.moves[q]:
                emitted, after = self.outputs[self.output[q][klass]], self.next_state[q][klass]
                if emitted and found[q]:
                    emitted_next[q] |= 1 << emitted[0]
                elif not emitted and after >= 0:
                    quiet[q].add(after)
        is_changed = True
        while is_changed:
            is_changed = False
            for q in range(n):
                ending = self.outputs[self.end_output[q]] if self.end_output[q] >= 0 else ()
                passed = ended[q] | (1 << ending[0] if len(ending) == 1 else 0)
                for after in quiet[q]:
                    if passed & ~ended[after] or emitted_next[after] & ~emitted_next[q]:
                        ended[after] |= passed
                        emitted_next[q] |= emitted_next[after]
                        is_changed = True
        return [found[q] or (self.end_output[q] < 0 and ended[q] & emitted_next[q] != 0) for q in range(n)]

    def _emits_more(self, state: int) -> bool:
        """Whether a state may emit more than the lexeme that the end of the text would emit here.

        A lexeme that the byte itself completes does not count, neither alone nor behind that one.
        """
        end = self.end_output[state]
        ending = self.outputs[end] if end >= 0 else ()
        if self.pending[state] or len(ending) > 1:
            return True
        for _, klass in self.moves[state]:
            emitted, after = self.outputs[self.output[state][klass]], self.next_state[state][klass]
            if len(emitted) == 1 and after == 0:
                continue
            if emitted and (emitted[:1] != ending or len(emitted) > 2 or (len(emitted) == 2 and after != 0)):
                return True
        return False

    def _least(self) -> Int32:
        n_states = len(self.next_state)
        least = np.full((n_states, self.end + 1), COSTLY, np.int32)
        edges: dict[tuple[int, int], int] = {}
        for q in range(n_states):
            if self.end_output[q] >= 0:
                emitted = self.outputs[self.end_output[q]]
                least[q, emitted[0] if emitted else self.end] = 0
            for _, klass in self.moves[q]:
                after, emitted = self.next_state[q][klass], self.outputs[self.output[q][klass]]
                if emitted:
                    whole = len(emitted) == 1 and after == 0
                    least[q, emitted[0]] = min(least[q, emitted[0]], 1 if whole else 0)
                else:
                    edge = (q, max(after, 0))
                    edges[edge] = min(edges.get(edge, COSTLY), 1 if after != RESTART else -len(self.pending[q]))
        for mode in self.modes:
            if mode:
                edges[0, mode] = 0
        flat = np.array([(*edge, cost) for edge, cost in edges.items()], np.int32).reshape(-1, 3)
        source, target, cost = (np.ascontiguousarray(flat[:, i]) for i in range(3))
        relax_lexer(len(flat), source, target, cost, -self.longest_pending, least)
        return least

    def _bytes_to_end(self, terminal: int) -> tuple[list[int], list[int]]:
        """The least bytes from each state before a byte that ends a lexeme of a terminal.

        Returns two lists by state: without and with a line feed among these bytes.
        """
        n = len(self.next_state)
        least = np.full((2 * n, 1), COSTLY, np.int32)
        feed = self.class_of[LINE_FEED]
        edges: list[tuple[int, int, int]] = []
        for q in range(n if terminal >= 0 else 0):
            for _, klass in self.moves[q]:
                after, emitted = self.next_state[q][klass], self.outputs[self.output[q][klass]]
                if emitted:
                    if emitted[0] == terminal:
                        least[q] = 0
                elif after >= 0:
                    edges.append((n + q, n + after, 1))
                    if klass == feed:
                        edges.append((n + q, after, 1))
                    if self.by_class[klass] != [LINE_FEED]:
                        edges.append((q, after, 1))
        flat = np.array(edges, np.int32).reshape(-1, 3)
        source, target, cost = (np.ascontiguousarray(flat[:, i]) for i in range(3))
        relax_lexer(len(flat), source, target, cost, 0, least)
        return least[:n, 0].tolist(), least[n:, 0].tolist()

    def _apart(self) -> Int32:
        n = self.end
        width = self.least[0, :n]
        apart = np.full((n, n), COSTLY, np.int32)
        seen: set[tuple[int, int]] = set()
        for q, moves in enumerate(self.moves):
            for _, klass in moves:
                after, emitted = self.next_state[q][klass], self.outputs[self.output[q][klass]]
                if not emitted:
                    continue
                for first, second in pairwise(emitted):
                    apart[first, second] = 0
                if after > 0 and self.backs_up[after]:
                    apart[emitted[-1]] = 0
                elif after != RESTART:
                    seen.add((emitted[-1], after))
                elif self.pending[q]:
                    apart[emitted[-1]] = 0
                else:
                    for mode in self.modes:
                        more = self.outputs[self.output[mode][klass]]
                        if more:
                            apart[emitted[-1], more[0]] = 0
                        elif self.next_state[mode][klass] >= 0:
                            seen.add((emitted[-1], -1 - self.next_state[mode][klass]))
        for terminal, after in sorted(seen):
            if after == 0:
                apart[terminal] = 0
            else:
                state = after if after > 0 else -1 - after
                apart[terminal] = np.minimum(apart[terminal], np.maximum(1 + self.least[state, :n] - width, 0))
        return np.minimum(apart, COSTLY)

    def indentation(self, column: Column) -> int:
        """A lower bound of the bytes that make a column."""
        if self.is_consistent:
            return column.narrow
        return column.wide // self.widest_step + column.wide % self.widest_step

    def indentation_inside(self, top: Column) -> int:
        """A lower bound of the bytes that make a column which opens a block inside one at `top`."""
        if self.is_consistent:
            return top.narrow + 1
        return min(self.indentation(Column(top.wide + more)) for more in range(1, self.widest_step + 1))

    def bytes_further_in(self, column: Column, top: Column) -> int:
        """A lower bound of the bytes from a column to one that opens a block inside `top`."""
        least = -(-max(0, top.wide + 1 - column.wide) // self.widest_step)
        return max(least, top.narrow + 1 - column.narrow) if self.is_consistent else least

    def bytes_to(self, column: Column, wanted: Column) -> int:
        """A lower bound of the bytes, without a line feed, from a column to another.

        COSTLY if there are none.
        """
        found = COSTLY
        if column.wide <= wanted.wide and column.narrow <= wanted.narrow:
            found = self.indentation(Column(wanted.wide - column.wide, wanted.narrow - column.narrow))
        # a form feed leads back to the first column
        return min(found, 1 + self.indentation(wanted)) if self.is_consistent else found


def part_of(table: Int32, offset: int, *shape: int) -> Int32:
    """A part of the engine's table as an array.

    table : (n,) int32; the engine's table.
    offset : the part's offset in the table's header (`schema`).
    shape : the part's shape.

    Returns (*shape) int32, a view of the table.
    """
    begin = int(table[offset])
    return table[begin : begin + int(np.prod(shape))].reshape(shape)
