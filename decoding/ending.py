"""Shortest endings: the fewest bytes that make the text so far a legal text, as bytes and as tokens.

Iterative deepening over the states of lexer, layout and parser, byte by byte, under a lower bound that is nearly exact, so that the
search goes almost straight. The bound for a lexer state q and a stack g is

    min over terminals u of  bytes from q to the end of lexeme u  +  V(g after u, u)

where V(g, u) is a least ending of stack g after lexeme u in a relaxed problem: every later lexeme has its least length, two lexemes that
no spelling lets stand side by side are parted, and an indented line pays for its indentation. V is computed from the bottom of the stack
up, one step a frame: what is left of a rule has a least cost, and where it is reduced the parser stands lower on the stack with a
nonterminal to push. Costs are matrices over classes of terminals (which lexemes they must be parted from).

INVARIANT: every bound is a true lower bound, so what is found is shortest; a bound that proves too low is raised, and the search begins
again. Of several shortest endings it is the first in the order of bytes with printable ASCII first, as in `Dfa.shortest`.

Source: Hart, Nilsson, Raphael (1968) for search under a lower bound; Korf, "Depth-first iterative-deepening" (1985), with learnt bounds as
in Reinefeld and Marsland (1994); Knuth, "A generalization of Dijkstra's algorithm" (1977) for least costs of nonterminals.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import DeadEndError, LimitError
from maskwright.analysis.lexing.transducer import RESTART
from maskwright.analysis.lr.tables import ACCEPT, CONFLICT
from maskwright.decoding import _kernels as engine
from maskwright.decoding._ending_kernels import COSTLY, join, relax_lexer, relax_rules
from maskwright.maskstore import _parse_kernels as lr
from maskwright.maskstore import engine_table as places

if TYPE_CHECKING:
    from maskwright.decoding.texts import Texts
    from maskwright.maskstore.automaton_store import AutomatonStore

Int32 = npt.NDArray[np.int32]
Step = tuple[int, int, int]
"""States to pop, then the nonterminal to push and the class of the last lexeme (`nonterminal * n_classes + class`), and the cost."""
Steps = tuple[tuple[Step, ...], ...]
"""By the class of the lexeme before, the steps that may pay."""

PREFERRED = bytes([*range(0x20, 0x7F), *range(0x20), *range(0x7F, 0x100)])
MAX_CLASSES = 12
MAX_KEPT = 200_000
"""Frames and search nodes that are kept from one call to the next."""
MAX_NODES = 3_000_000
MAX_READINGS = 50_000
"""Stacks beyond the first in all states looked at: how ambiguous a text may be."""


@dataclass(frozen=True)
class Ending:
    """data : bytes that complete the text. tokens : ids that spell it; the end-of-text token is not among them."""

    data: bytes
    tokens: tuple[int, ...]


def shortest_ending(texts: Texts, slot: int = 0) -> Ending:
    """A shortest byte string after which the text in a slot is legal, and fewest tokens that spell it; empty if it is legal already.

    Of several shortest endings the first in the order of bytes, printable ASCII first; if the vocabulary cannot spell that one, the first
    of the shortest that it can. Of several spellings the one whose tokens are longer from the left.

    Raises DeadEndError if no sequence of tokens completes the text, LimitError if none was found among `MAX_NODES` states, or if the text
    has too many readings (`MAX_READINGS`).
    Cost: the first call on a store builds its tables (python.lark: 0.6 s); then O(depth of the stack) and a few ms for each terminal.
    """
    with _LOCK:
        spelling = _spelling_of(texts.store)
        data = _shortest(texts, slot)
        tokens = spelling.fewest_tokens(data)
        if tokens is None:
            search = _search_of(texts.store, spelling)
            found = search.run(search.start_of(texts, slot))
            if found is None or (tokens := spelling.fewest_tokens(found)) is None:
                raise DeadEndError(spelling.explanation(data))
            data = found
        return Ending(data, tokens)


def min_bytes_left(texts: Texts, slot: int = 0) -> int:
    """The length of a shortest ending, whether or not the vocabulary can spell it. Cost: as `shortest_ending`."""
    with _LOCK:
        return len(_shortest(texts, slot))


def _shortest(texts: Texts, slot: int) -> bytes:
    if texts._is_finished(slot) or texts._is_accepting(slot):
        return b""
    search = _search_of(texts.store, None)
    found = search.run(search.start_of(texts, slot))
    if found is None:
        raise LimitError(
            f"grammar {texts.store.grammar.name}: no ending was found for the text among {MAX_NODES:,} states of lexer and parser"
        )
    return found


class _Lexer:
    """What the transducer can still do. Terminals are the grammar's; one more, number `end`, is the end of the text.

    least : (n_states, n_terminals + 1) bytes to the end of each lexeme, if it is next. backs_up[q] : whether it may have ended before.
    apart[t, u] : bytes that stand at least between lexemes t and u. moves[q] : (byte, class) of one byte each that does something else.
    """

    def __init__(self, store: AutomatonStore, alphabet: bytes) -> None:
        table = store.table
        layout = store.grammar.layout
        self.end = store.grammar.n_terminals
        n_states, n_classes = int(table[places.N_LEXER_STATES]), int(table[places.N_CLASSES])
        n_modes = int(table[places.N_MODES])
        next_state = _part(table, places.NEXT_STATE, n_states, n_classes)
        output = _part(table, places.OUTPUT, n_states, n_classes)
        starts = _part(
            table, places.OUTPUT_START, max(int(output.max()), int(_part(table, places.END_OUTPUT, n_states).max())) + 2
        )
        symbols = _part(table, places.OUTPUT_SYMBOLS, int(starts[-1])).tolist()
        self.outputs = [tuple(symbols[a:b]) for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)]
        self.class_of: list[int] = _part(table, places.BYTE_CLASS, 256).tolist()
        self.next_state: list[list[int]] = next_state.tolist()
        self.output: list[list[int]] = output.tolist()
        self.end_output: list[int] = _part(table, places.END_OUTPUT, n_states).tolist()
        pending = _part(table, places.PENDING_START, n_states + 1).tolist()
        waiting = bytes(_part(table, places.PENDING, pending[-1]).astype(np.uint8))
        self.pending = [waiting[a:b] for a, b in pairwise(pending)]
        at = _part(table, places.FALLBACK, n_states).tolist()
        self.fallback = [symbols[place] if place >= 0 else -1 for place in at]
        self.is_newline = ((_part(table, places.STATE_FLAGS, n_states) & places.IS_NEWLINE) != 0).tolist()
        self.modes: list[int] = _part(table, places.MODE_STATE, n_modes).tolist()
        self.by_class = [[b for b in alphabet if self.class_of[b] == c] for c in range(n_classes)]
        self.moves = [self._moves(q) for q in range(n_states)]
        self.backs_up = self._find_backing_up()
        self.least = self._least()
        self.width: list[int] = self.least[0].tolist()
        self.apart = self._apart()
        newline = layout.newline if layout else -1
        if layout and layout.brackets:
            self.apart = np.minimum(self.apart, self.width[newline])
        tab = int(table[places.TAB_LENGTH])
        tab_class = self.class_of[engine.TAB]
        has_tabs = any(
            flag and after >= 0 and self.is_newline[after] and emitted == 0
            for flag, after, emitted in zip(
                self.is_newline, next_state[:, tab_class], output[:, tab_class], strict=True
            )
        )
        self.tab_length = tab
        self.widest_step = tab if has_tabs else 1

    def _moves(self, state: int) -> list[tuple[int, int]]:
        """The first byte of each kind in the order of preference."""
        found: dict[tuple[int, ...], tuple[int, int]] = {}
        for klass, members in enumerate(self.by_class):
            after, emitted = self.next_state[state][klass], self.output[state][klass]
            if not members or after == -1:
                continue
            alone = after == RESTART or (self.is_newline[after] and klass in map(self.class_of.__getitem__, b"\n\t "))
            key = (after, emitted, klass) if alone else (after, emitted)
            best = found.get(key)
            if best is None or PREFERRED.index(members[0]) < PREFERRED.index(best[0]):
                found[key] = (members[0], klass)
        return sorted(found.values(), key=lambda move: PREFERRED.index(move[0]))

    def _find_backing_up(self) -> list[bool]:
        """For each state whether bytes may already have been read that belong to the lexemes after the next one.

        Where the next lexeme could end, the end of the text would emit it alone; past such a state, a state in which the text cannot end
        may be going to emit it with what was read since.
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
        """Whether a lexeme that fails is emitted with more than one that the last byte completes, or not as the end would emit it."""
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
        relax_lexer(len(flat), source, target, cost, least)
        return least

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

    def indentation(self, column: int) -> int:
        """Bytes that make a column, at least."""
        return column // self.widest_step + column % self.widest_step


class _Frame:
    """A stack: an LR state on top of another stack.

    pay : bytes of the indentation of the block that the state is in. costs : V after a nonterminal on this stack, by nonterminal and class.
    """

    __slots__ = ("below", "costs", "number", "pay", "state")

    def __init__(self, state: int, below: _Frame | None, pay: int, number: int) -> None:
        self.state = state
        self.below = below
        self.pay = pay
        self.number = number
        self.costs: dict[int, int] = {}


class _Parser:
    """LR tables with least costs. A cost matrix has a row and a column for each class of terminals and three more: `new_line`
    after a newline or dedent whose indentation is still to be paid for, `indented` where it has been read, and `fresh` within a rule after
    one whose depth is unknown, hence free. From one stack to the next, `fresh` becomes `new_line`.
    """

    def __init__(self, store: AutomatonStore, lexer: _Lexer) -> None:
        table, grammar = store.table, store.grammar
        self.lexer = lexer
        n_states, self.n_columns = int(table[lr.N_STATES]), int(table[lr.N_COLUMNS])
        n_nonterminals, n_rules = int(table[lr.N_NONTERMINALS]), int(table[lr.N_RULES])
        action = _part(table, lr.ACTION, n_states, self.n_columns)
        self.goto: list[list[int]] = _part(table, lr.GOTO, n_states, n_nonterminals).tolist()
        self.rule_lhs: list[int] = _part(table, lr.RULE_LHS, n_rules).tolist()
        self.rule_length: list[int] = _part(table, lr.RULE_LENGTH, n_rules).tolist()
        self.default: list[int] = _part(table, lr.DEFAULT, n_states).tolist()
        self.column_of: list[int] = _part(table, places.SYMBOL_COLUMN, grammar.n_terminals).tolist()
        self.depth_of: list[int] = _part(table, places.SYMBOL_DEPTH, grammar.n_terminals).tolist()
        self.mode_of: list[int] = _part(table, places.MODE_OF_STATE, n_states).tolist()
        self.newline = int(table[places.NEWLINE])
        self.indent, self.dedent = int(table[places.INDENT]), int(table[places.DEDENT])
        self.members: list[list[int]] = [[] for _ in range(self.n_columns)]
        for terminal, column in enumerate(self.column_of):
            if column >= 0:
                self.members[column].append(terminal)
        self._read_actions(action, table)
        self.has_levels = self._has_levels(store)
        self._classify()
        self._cost_items(table, n_nonterminals)
        self._known: dict[tuple[int, int], tuple[list[int], Steps]] = {}

    def _read_actions(self, action: Int32, table: Int32) -> None:
        """shifts[s] : (column, state). reduces[s] : (rule, columns as bits). accepts[s] : whether the text may end in this state."""
        alternatives = int(table[lr.ALTERNATIVES])
        self.shifts: list[list[tuple[int, int]]] = []
        self.reduces: list[list[tuple[int, int]]] = []
        self.accepts: list[bool] = []
        self.column_targets: list[set[int]] = [set() for _ in range(self.n_columns)]
        for row in action.tolist():
            shifts: list[tuple[int, int]] = []
            rules: dict[int, int] = {}
            accepts = False
            for column, code in enumerate(row):
                if code == 0:
                    continue
                begin = alternatives + code - CONFLICT
                for each in [code] if code < CONFLICT else table[begin + 1 : begin + 1 + int(table[begin])].tolist():
                    if each == ACCEPT:
                        accepts = True
                    elif each > 0:
                        shifts.append((column, each - 1))
                        self.column_targets[column].add(each - 1)
                    else:
                        rules[-each - 1] = rules.get(-each - 1, 0) | 1 << column
            self.shifts.append(shifts)
            self.reduces.append(sorted(rules.items()))
            self.accepts.append(accepts)

    def _has_levels(self, store: AutomatonStore) -> bool:
        """Whether open blocks are the stack's states after an indent: indents and dedents come in pairs within each rule."""
        layout = store.grammar.layout
        if layout is None or len(self.members[self.indent]) > 1 or len(self.members[self.dedent]) > 1:
            return False
        for rule in store.grammar.rules:
            depth = 0
            for symbol in rule.rhs:
                depth += (symbol == layout.indent) - (symbol == layout.dedent)
                if depth < 0:
                    return False
            if depth:
                return False
        return True

    def _classify(self) -> None:
        """Terminals of equal rows in `apart` are one class; where there are too many classes, the most alike are one."""
        special = {self.newline}
        usable = [t for t, c in enumerate(self.column_of) if c >= 0 and c not in (self.indent, self.dedent)]
        usable = [t for t in usable if t not in special and self.lexer.width[t] < COSTLY]
        rows: list[npt.NDArray[np.int64]] = []
        parts: list[list[int]] = []
        found: dict[bytes, int] = {}
        columns = [t for t, c in enumerate(self.column_of) if c >= 0 and self.lexer.width[t] < COSTLY]
        for terminal in usable:
            row = self.lexer.apart[terminal, columns].astype(np.int64)
            number = found.setdefault(row.tobytes(), len(rows))
            if number == len(rows):
                rows.append(row)
                parts.append([])
            parts[number].append(terminal)
        while len(rows) > MAX_CLASSES:
            pairs = [(int(np.abs(rows[a] - rows[b]).sum()), a, b) for a in range(len(rows)) for b in range(a)]
            _, a, b = min(pairs)
            rows[b] = np.minimum(rows[a], rows[b])
            parts[b] += parts[a]
            del rows[a], parts[a]
        self.class_of: list[int] = [-1] * len(self.column_of)
        for number, part in enumerate(parts):
            for terminal in part:
                self.class_of[terminal] = number
        self.apart = np.full((len(rows), len(self.column_of)), COSTLY, np.int64)
        for number, row in enumerate(rows):
            self.apart[number, columns] = row
        self.new_line, self.indented, self.fresh = range(len(rows), len(rows) + 3)
        self.n_classes = len(rows) + 3
        # how much worse a class may be than another after the same text
        spread = max((int((one - other).max(initial=0)) for one in rows for other in rows), default=0)
        self.spread = spread if spread < COSTLY else COSTLY

    def _symbol_costs(self, n_nonterminals: int) -> Int32:
        """What each column costs by the class before and the class after."""
        n = self.n_classes - 3
        costs = np.full((self.n_columns + n_nonterminals, self.n_classes, self.n_classes), COSTLY, np.int64)
        for column, members in enumerate(self.members):
            cost = costs[column]
            for terminal in members:
                width = self.lexer.width[terminal]
                if column == self.indent and self.lexer.end != terminal and width >= COSTLY:
                    cost[[self.new_line, self.fresh], self.fresh] = 1
                elif column == self.dedent and width >= COSTLY:
                    cost[np.arange(n), np.arange(n)] = 0
                    cost[n:, self.fresh] = 0
                elif terminal == self.newline:
                    cost[:n, self.fresh] = np.minimum(cost[:n, self.fresh], width + self.apart[:, terminal])
                    cost[n:, self.fresh] = width
                elif self.class_of[terminal] >= 0:
                    after = self.class_of[terminal]
                    cost[:n, after] = np.minimum(cost[:n, after], width + self.apart[:, terminal])
                    cost[self.indented :, after] = np.minimum(cost[self.indented :, after], width)
        return np.minimum(costs, COSTLY).astype(np.int32)

    def _cost_items(self, table: Int32, n_nonterminals: int) -> None:
        """steps[s] : what ends a rule under way in state s. An item (s, rule, left) has `left` symbols to read."""
        n_states = len(self.default)
        starts = _part(table, lr.PREDECESSOR_START, n_states + 1).tolist()
        predecessors = _part(table, lr.PREDECESSORS, starts[-1]).tolist()
        read: list[set[int]] = [set() for _ in range(n_states)]
        for column, targets in enumerate(self.column_targets):
            for state in targets:
                read[state].add(column)
        for row in self.goto:
            for nonterminal, state in enumerate(row):
                if state >= 0:
                    read[state].add(self.n_columns + nonterminal)
        number: dict[tuple[int, int, int], int] = {(-1, a, 0): a for a in range(n_nonterminals)}
        order = list(number)
        for state in range(n_states):
            rules = [rule for rule, _ in self.reduces[state]]
            for rule in rules if self.default[state] < 0 else [self.default[state]]:
                number[state, rule, 0] = len(order)
                order.append((state, rule, 0))
        edges: list[tuple[int, int, int]] = []
        done = n_nonterminals
        empty: set[int] = set()
        while done < len(order):
            state, rule, left = order[done]
            length = self.rule_length[rule]
            if length == 0:
                empty.add(self.rule_lhs[rule])
            elif left + 1 == length:
                edges += [(self.rule_lhs[rule], done, symbol) for symbol in sorted(read[state])]
            else:
                for below in predecessors[starts[state] : starts[state + 1]]:
                    key = (below, rule, left + 1)
                    if key not in number:
                        number[key] = len(order)
                        order.append(key)
                    edges += [(number[key], done, symbol) for symbol in sorted(read[state])]
            done += 1
        identity = np.full((self.n_classes, self.n_classes), COSTLY, np.int32)
        np.fill_diagonal(identity, 0)
        self._identity = identity
        item_costs = np.full((len(order), self.n_classes, self.n_classes), COSTLY, np.int32)
        for i, (state, _, left) in enumerate(order):
            if (state >= 0 and left == 0) or i in empty:
                item_costs[i] = identity
        item_lhs = np.array([self.n_columns + i if i < n_nonterminals else -1 for i in range(len(order))], np.int32)
        flat = np.array(edges, np.int32).reshape(-1, 3)
        relax_rules(
            self._symbol_costs(n_nonterminals),
            item_costs,
            item_lhs,
            *(np.ascontiguousarray(flat[:, i]) for i in range(3)),
        )
        found: list[dict[tuple[int, int], Int32]] = [{} for _ in range(n_states)]
        for (state, rule, left), cost in zip(order, item_costs, strict=True):
            if state >= 0 and self.rule_length[rule] > left:
                key2 = (self.rule_length[rule] - left, self.rule_lhs[rule])
                known = found[state].get(key2)
                found[state][key2] = cost if known is None else np.minimum(known, cost)
        self._matrices = [sorted(of_state.items(), key=lambda item: item[0]) for of_state in found]
        self.steps = [self._steps(of_state) for of_state in self._matrices]

    def _steps(self, matrices: Iterable[tuple[tuple[int, int], Int32]]) -> Steps:
        plain = self.new_line
        steps: list[list[Step]] = [[] for _ in range(self.n_classes)]
        for (pops, lhs), cost in matrices:
            for before, row in enumerate(cost.tolist()):
                least = min(row[:plain], default=COSTLY)
                for after, each in enumerate(row):
                    if each < COSTLY and (after >= plain or each == least or each < least + self.spread):
                        into = self.new_line if after == self.fresh else after
                        steps[before].append((pops, lhs * self.n_classes + into, each))
        return tuple(map(tuple, steps))

    def _after(self, state: int, nonterminal: int) -> tuple[list[int], Steps]:
        """After a nonterminal on a stack with this state on top: costs of accepting there, by class, and the steps that pop it."""
        known = self._known.get((state, nonterminal))
        if known is not None:
            return known
        n = self.n_classes
        reached: dict[int, Int32] = {nonterminal: self._identity.copy()}
        leaving: dict[tuple[int, int], Int32] = {}
        agenda = [nonterminal]
        while agenda:
            here = agenda.pop()
            target = self.goto[state][here]
            if target < 0:
                continue
            for (pops, lhs), cost in self._matrices[target]:
                into: dict[Any, Int32] = reached if pops == 1 else leaving
                key = lhs if pops == 1 else (pops - 1, lhs)
                if key not in into:
                    into[key] = np.full((n, n), COSTLY, np.int32)
                if join(reached[here], cost, into[key]) and pops == 1:
                    agenda.append(lhs)
        ends = [COSTLY] * n
        for here, cost in reached.items():
            target = self.goto[state][here]
            if target >= 0 and self.accepts[target]:
                ends = [min(pair) for pair in zip(ends, cost.min(axis=1).tolist(), strict=True)]
        found = self._known[state, nonterminal] = ends, self._steps(sorted(leaving.items(), key=lambda item: item[0]))
        return found

    def _cost(self, frame: _Frame, key: int) -> int:
        """V after a nonterminal on a stack, for a class. Cost: O(1) for each frame that it was not asked about before."""
        known = frame.costs.get(key)
        if known is not None:
            return known
        first = frame
        agenda = [(frame, key)]
        n = self.n_classes
        while agenda:
            frame, wanted = agenda[-1]
            if wanted in frame.costs:
                agenda.pop()
                continue
            nonterminal, before = divmod(wanted, n)
            ends, steps = self._after(frame.state, nonterminal)
            if before == self.new_line and wanted + 1 not in frame.costs:
                agenda.append((frame, wanted + 1))
                continue
            least = ends[before]
            is_complete = True
            for pops, into, cost in steps[before]:
                base = _pop(frame, pops)
                if base is not None:
                    after = base.costs.get(into)
                    if after is None:
                        agenda.append((base, into))
                        is_complete = False
                    elif cost + after < least:
                        least = cost + after
            if is_complete:
                agenda.pop()
                # BOUND: `indented` is the class after `new_line`
                frame.costs[wanted] = (
                    min(least, frame.costs[wanted + 1] + frame.pay) if before == self.new_line else least
                )
        return first.costs[key]

    def value(self, state: int, below: _Frame | None, pay: int, before: int) -> int:
        """V of the stack of a state on another stack, after a lexeme of a class. pay : as in a frame."""
        least = 0 if self.accepts[state] else COSTLY
        for pops, into, cost in self.steps[state][before]:
            base = _pop(below, pops - 1)
            if base is not None:
                after = base.costs.get(into)
                if after is None:
                    after = self._cost(base, into)
                if cost + after < least:
                    least = cost + after
        if before == self.new_line:
            return min(least, self.value(state, below, pay, self.indented) + pay)
        return least

    def values(self, frames: Iterable[_Frame], before: int) -> int:
        """The least value of some stacks."""
        return min((self.value(frame.state, frame.below, frame.pay, before) for frame in frames), default=COSTLY)


def _pop(frame: _Frame | None, n: int) -> _Frame | None:
    """The stack without n states; None if it has too few."""
    while n and frame is not None:
        frame = frame.below
        n -= 1
    return frame


class _Place:
    """Stacks, open indents' columns and the number of open brackets: all that a lexeme's end can change.

    values[u] : least bytes after lexeme u, if it comes next. bounds[q] : least bytes from lexer state q, and without the newline.
    """

    __slots__ = ("after", "bounds", "bounds_without", "depth", "frames", "indents", "number", "options", "values")

    def __init__(self, frames: tuple[_Frame, ...], indents: tuple[int, ...], depth: int, number: int) -> None:
        self.frames = frames
        self.indents = indents
        self.depth = depth
        self.number = number
        self.after: dict[tuple[int, int], _Place | None] = {}
        self.values: list[int] | None = None
        self.bounds: list[int] = []
        self.bounds_without: list[int] = []
        self.options: tuple[list[tuple[int, int]], int] | None = None


Node = tuple[_Place, int, int, int]
"""Place, lexer state, column of the newline under way (0 if none is), state of the spelling."""
Key = tuple[int, int, int, int]
Move = tuple[int, int, Node | None]
"""A byte, a bound of what is left after it, and where it leads, or None if that is not made yet or illegal."""


def _key(node: Node) -> Key:
    place, state, column, spelt = node
    return place.number, state, column, spelt


class _Search:
    """The search, with all that it has learnt about one store.

    spelling : if given, only endings that its tokens spell.
    """

    def __init__(self, store: AutomatonStore, spelling: _Spelling | None) -> None:
        self.lexer = _Lexer(store, PREFERRED if spelling is None else spelling.alphabet)
        self.parser = _Parser(store, self.lexer)
        self.spelling = spelling
        self._name = store.grammar.name
        self._backs_up = np.array(self.lexer.backs_up)
        self._by_terminal = np.ascontiguousarray(self.lexer.least.T)
        self._text_columns = (1 << (self.parser.n_columns - 1)) - 1
        for column in (self.parser.indent, self.parser.dedent):
            if column >= 0 and all(self.lexer.width[t] >= COSTLY for t in self.parser.members[column]):
                self._text_columns &= ~(1 << column)
        self.forget()

    def forget(self) -> None:
        self._frames: dict[tuple[int, int, int], _Frame] = {}
        self._places: dict[tuple[tuple[int, ...], tuple[int, ...], int], _Place] = {}
        self._known: dict[Key, int] = {}
        self._children: dict[Key, list[Move]] = {}

    # --- states ---

    def start_of(self, texts: Texts, slot: int) -> Node:
        """The state of a text."""
        if len(self._frames) + len(self._children) + len(self._places) > MAX_KEPT:
            self.forget()
        memory, region = texts._memory, int(texts._regions[texts._slot(slot)])
        columns = texts._columns(slot)
        frames = [self._stack(states, columns) for states in texts._stacks(slot)]
        place = self._place(frames, tuple(columns), int(memory[region + engine.DEPTH]))
        state = int(memory[region + engine.LEXER])
        column = int(memory[region + engine.COLUMN]) if self.lexer.is_newline[state] else 0
        return place, state, column, 0

    def _stack(self, states: Sequence[int], columns: Sequence[int]) -> _Frame:
        opened = self.parser.column_targets[self.parser.indent] if self.parser.has_levels else set()
        is_level = sum(state in opened for state in states) + 1 == len(columns)
        level = 0
        frame: _Frame | None = None
        for state in states:
            level += is_level and state in opened
            frame = self._frame(state, frame, self._pay(columns[level]) if is_level else 0)
        assert frame is not None  # a stack has the start state
        return frame

    def _frame(self, state: int, below: _Frame | None, pay: int) -> _Frame:
        key = (state, -1 if below is None else below.number, pay)
        found = self._frames.get(key)
        if found is None:
            found = self._frames[key] = _Frame(state, below, pay, len(self._frames))
        return found

    def _pay(self, column: int) -> int:
        if not self.parser.has_levels:
            return 0
        # what the least newline has beyond a line feed may be part of the indentation
        return max(0, self.lexer.indentation(column) - (self.lexer.width[self.parser.newline] - 1))

    def _place(self, frames: Iterable[_Frame], indents: tuple[int, ...], depth: int) -> _Place:
        members = {frame.number: frame for frame in frames}
        key = (tuple(sorted(members)), indents, depth)
        found = self._places.get(key)
        if found is None:
            found = _Place(tuple(members[number] for number in key[0]), indents, depth, len(self._places))
            self._places[key] = found
        return found

    # --- the machine, as in `_kernels` ---

    def _actions(self, frames: Iterable[_Frame], columns: int) -> Iterator[tuple[int, int, _Frame]]:
        """What follows on some columns (bits): column, state and the stack to push it on; state -1 where the text is accepted."""
        parser = self.parser
        end = parser.n_columns - 1
        agenda = [(frame, columns) for frame in frames]
        done: dict[int, int] = {}
        while agenda:
            frame, wanted = agenda.pop()
            # readings of an ambiguous text meet again
            known = done.get(frame.number, 0)
            done[frame.number] = known | wanted
            wanted &= ~known
            state = frame.state
            rules = [(parser.default[state], wanted)]
            if parser.default[state] < 0:
                rules = parser.reduces[state]
                for column, target in parser.shifts[state]:
                    if wanted >> column & 1:
                        yield column, target, frame
                if parser.accepts[state] and wanted >> end & 1:
                    yield end, -1, frame
            for rule, before in rules:
                if wanted & before:
                    base = _pop(frame, parser.rule_length[rule])
                    if base is not None:
                        target = parser.goto[base.state][parser.rule_lhs[rule]]
                        if target >= 0:
                            agenda.append((self._frame(target, base, base.pay), wanted & before))

    def _shift(self, frames: Iterable[_Frame], column: int, pay: int = -1) -> list[_Frame]:
        """The stacks after a column. pay : of the block that an indent opens."""
        if column < 0:
            return []
        found = {}
        for _, target, below in self._actions(frames, 1 << column):
            frame = self._frame(target, below, below.pay if pay < 0 else pay)
            found[frame.number] = frame
        # the engine gives up where a text has more readings
        return list(found.values()) if len(found) <= engine.MAX_STACKS else []

    def _accepts(self, frames: Iterable[_Frame]) -> bool:
        """Whether the text may end on one of these stacks."""
        return any(True for _ in self._actions(frames, 1 << (self.parser.n_columns - 1)))

    def _emit(self, place: _Place, output: int, column: int) -> _Place | None:
        """The place after emitted terminals; None if the parser does not take them."""
        parser = self.parser
        symbols = self.lexer.outputs[output]
        key = (output, column if parser.newline in symbols and not place.depth else -1)
        if key in place.after:
            return place.after[key]
        frames: Sequence[_Frame] = place.frames
        indents, depth = place.indents, place.depth
        for symbol in symbols:
            if symbol == parser.newline and depth > 0:
                continue
            frames = self._shift(frames, parser.column_of[symbol])
            if symbol == parser.newline:
                if column > indents[-1]:
                    frames = self._shift(frames, parser.indent, self._pay(column))
                    indents = (*indents, column)
                while column < indents[-1]:
                    frames = self._shift(frames, parser.dedent)
                    indents = indents[:-1]
                if column != indents[-1]:
                    frames = []
            else:
                depth = max(0, depth + parser.depth_of[symbol])
            if not frames:
                break
        found = place.after[key] = self._place(frames, indents, depth) if frames else None
        return found

    def _begin(self, place: _Place) -> int:
        """The lexer state in which a lexeme begins; -1 if the stacks disagree."""
        if len(self.lexer.modes) == 1:
            return 0
        modes = {self.lexer.modes[self.parser.mode_of[frame.state]] for frame in place.frames}
        return modes.pop() if len(modes) == 1 else -1

    def _read(self, place: _Place, state: int, column: int, data: bytes) -> tuple[_Place, int, int] | None:
        """After some bytes; None if they are illegal."""
        lexer = self.lexer
        waiting = list(reversed(data))
        while waiting:
            byte = waiting.pop()
            if state == 0:
                state = self._begin(place)
                if state < 0:
                    return None
            klass = lexer.class_of[byte]
            after, output = lexer.next_state[state][klass], lexer.output[state][klass]
            if after == -1:
                return None
            if output:
                emitted = self._emit(place, output, column)
                if emitted is None:
                    return None
                place = emitted
            if after == RESTART:
                waiting.append(byte)
                waiting += reversed(lexer.pending[state])
                after = 0
            if not lexer.is_newline[after] or byte == engine.LINE_FEED:
                column = 0
            elif byte == engine.SPACE:
                column += 1
            elif byte == engine.TAB:
                column += lexer.tab_length
            state = after
        return place, state, column

    def _is_end(self, node: Node) -> bool:
        """Whether the text may end."""
        place, state, column, spelt = node
        lexer, parser = self.lexer, self.parser
        if self.spelling is not None and not self.spelling.is_whole(spelt):
            return False
        while lexer.end_output[state] == RESTART:
            at: _Place | None = place
            if lexer.fallback[state] >= 0:
                at = self._emit(place, lexer.outputs.index((lexer.fallback[state],)), column)
            read = None if at is None else self._read(at, 0, column, lexer.pending[state])
            if read is None:
                return False
            place, state, column = read
        if lexer.end_output[state] < 0:
            return False
        ended = self._emit(place, lexer.end_output[state], column)
        if ended is None:
            return False
        frames: Sequence[_Frame] = ended.frames
        for _ in ended.indents[1:]:
            frames = self._shift(frames, parser.dedent)
        return self._accepts(frames)

    # --- bounds ---

    def _estimate(self, place: _Place) -> list[int]:
        """values of a place, and its bounds."""
        if place.values is not None:
            return place.values
        parser, lexer = self.parser, self.lexer
        values = [COSTLY] * (lexer.end + 1)
        self._readings -= len(place.frames) - 1
        if self._readings < 0:
            raise LimitError(
                f"grammar {self._name} is so ambiguous here that endings of the text have too many readings to follow; "
                "load the grammar with conflicts='shift', or make its rules less ambiguous"
            )
        for column, target, below in self._actions(place.frames, self._text_columns):
            known: dict[int, int] = {}
            for terminal in parser.members[column]:
                before = parser.new_line if terminal == parser.newline else parser.class_of[terminal]
                if lexer.width[terminal] < COSTLY and (terminal != parser.newline or not place.depth):
                    if before not in known:
                        known[before] = parser.value(target, below, below.pay, before)
                    values[terminal] = min(values[terminal], known[before])
        ending: Sequence[_Frame] = place.frames
        for _ in place.indents[1:]:
            ending = self._shift(ending, parser.dedent)
        if self._accepts(ending):
            values[lexer.end] = 0
        if place.depth and parser.newline >= 0:
            rest = [lexer.width[t] + value for t, value in enumerate(values)]
            values[parser.newline] = max(0, min(rest))
        place.values = values
        place.bounds = self._bounds(values)
        if not place.depth and parser.newline >= 0:
            place.bounds_without = self._bounds([*values[: parser.newline], COSTLY, *values[parser.newline + 1 :]])
        return values

    def _bounds(self, values: list[int]) -> list[int]:
        terminals = [t for t, value in enumerate(values) if value < COSTLY]
        if not terminals:
            return np.where(self._backs_up, 0, COSTLY).tolist()  # type: ignore[no-any-return]
        least = (self._by_terminal[terminals] + np.array([values[t] for t in terminals], np.int32)[:, None]).min(axis=0)
        least[self._backs_up] = 0
        bounds: list[int] = np.clip(least, 0, COSTLY).tolist()
        return bounds

    def _newline_options(self, place: _Place) -> tuple[list[tuple[int, int]], int]:
        """What a newline may lead to: (column, value) of each open block, and the value of a new one."""
        if place.options is not None:
            return place.options
        parser, top = self.parser, place.indents[-1]
        frames = self._shift(place.frames, parser.column_of[parser.newline])
        step = self.lexer.widest_step
        pay = min((self._pay(column) for column in range(top + 1, top + step + 1)), default=0)
        inner = self._shift(frames, parser.indent, pay)
        opened = parser.values(inner, parser.indented)
        options = []
        for column in reversed(place.indents):
            options.append((column, parser.values(frames, parser.indented)))
            frames = self._shift(frames, parser.dedent)
        place.options = options, opened
        return place.options

    def _newline_bound(self, place: _Place, state: int, column: int) -> int:
        """Least bytes if the newline under way ends as one."""
        lexer = self.lexer
        least = int(lexer.least[state, self.parser.newline])
        if least >= COSTLY:
            return COSTLY
        options, opened = self._newline_options(place)
        further = max(0, place.indents[-1] + 1 - column)
        anew = place.indents[-1] + 1
        step = lexer.widest_step
        found = max(least, min(-(-further // step), 1 - (-anew // step))) + opened
        for wanted, value in options:
            bytes_left = 1 + lexer.indentation(wanted)
            if column <= wanted:
                bytes_left = min(bytes_left, lexer.indentation(wanted - column))
            found = min(found, max(least, bytes_left) + value)
        return found

    def _bound(self, node: Node) -> int:
        """A lower bound of the bytes left."""
        place, state, column, _ = node
        known = self._known.get(_key(node))
        if known is not None:
            return known
        if place.values is None:
            self._estimate(place)
        if self.lexer.is_newline[state] and not place.depth and not self.lexer.backs_up[state]:
            return max(0, min(place.bounds_without[state], self._newline_bound(place, state, column)))
        return place.bounds[state]

    def _guess(self, place: _Place, state: int, klass: int, column: int) -> int:
        """A bound after a move that emits something, without making the place that it leads to."""
        emitted = self.lexer.outputs[self.lexer.output[state][klass]]
        first = emitted[0]
        if self.lexer.backs_up[state]:
            return 0
        if first == self.parser.newline and not place.depth:
            options, opened = self._newline_options(place)
            value = opened if column > place.indents[-1] else dict(options).get(column, COSTLY)
        else:
            value = self._estimate(place)[first]
        whole = len(emitted) == 1 and self.lexer.next_state[state][klass] == 0 and self.lexer.least[state, first] > 0
        return max(0, value - (not whole))

    # --- the search ---

    def _moves(self, node: Node) -> list[Move]:
        """The moves of a state, in the order of preference."""
        place, state, column, spelt = node
        lexer = self.lexer
        here = state or self._begin(place)
        found: list[Move] = []
        if here < 0:
            return found
        self._estimate(place)
        for byte, klass in lexer.moves[here]:
            after = lexer.next_state[here][klass]
            if lexer.output[here][klass]:
                least = self._guess(place, here, klass, column)
            elif after < 0 or (lexer.is_newline[after] and not place.depth):
                read = self._read(place, here, column, bytes([byte]))
                least = COSTLY if read is None else self._bound((*read, 0))
            else:
                least = place.bounds[after]
            if least >= COSTLY:
                continue
            if self.spelling is None:
                found.append((byte, least, None))
            else:
                found += [
                    (each, least, None) for each in lexer.by_class[klass] if self.spelling.after(spelt, each) >= 0
                ]
        return found

    def _made(self, node: Node, byte: int) -> Node | None:
        read = self._read(*node[:3], bytes([byte]))
        if read is None:
            return None
        return (*read, 0 if self.spelling is None else self.spelling.after(node[3], byte))

    def run(self, start: Node) -> bytes | None:
        """The first of the shortest endings; None if there is none."""
        self._budget = MAX_NODES
        self._readings = MAX_READINGS
        while True:
            bound = self._bound(start)
            if bound >= COSTLY or self._budget < 0:
                return None
            found = self._deepen(start, bound)
            if found is not None:
                return found

    def _deepen(self, start: Node, bound: int) -> bytes | None:
        """An ending of `bound` bytes. If there is none, more is known about the start afterwards."""
        path = bytearray()
        agenda: list[tuple[Node, Key, list[Move], list[int]]] = []
        entered: Node | None = start
        while True:
            if entered is not None:
                key = _key(entered)
                if len(path) == bound:
                    if self._is_end(entered):
                        return bytes(path)
                    self._known[key] = max(1, self._known.get(key, 0))
                    if not agenda:
                        return None
                    path.pop()
                else:
                    moves = self._children.get(key)
                    if moves is None:
                        moves = self._children[key] = self._moves(entered)
                        self._budget -= 1
                        if self._budget < 0:
                            return None
                    agenda.append((entered, key, moves, [0]))
            node, key, moves, at = agenda[-1]
            entered = None
            while at[0] < len(moves) and entered is None:
                entered = self._promising(node, moves, at[0], bound - len(agenda))
                at[0] += 1
            if entered is not None:
                path.append(moves[at[0] - 1][0])
                continue
            least = min((each if after is None else self._bound(after) for _, each, after in moves), default=COSTLY)
            self._known[key] = min(COSTLY, max(1 + least, self._known.get(key, 0)))
            agenda.pop()
            if not agenda:
                return None
            path.pop()

    def _promising(self, node: Node, moves: list[Move], at: int, left: int) -> Node | None:
        """Where a move leads, if an ending may be as near as `left` bytes from there."""
        byte, least, after = moves[at]
        if after is None:
            # what is left from here on is one byte less at the most
            least = max(least, self._bound(node) - 1)
            if least > left:
                return None
            after = self._made(node, byte)
            least = COSTLY if after is None else max(least, self._bound(after))
            moves[at] = byte, least, after
            if after is None:
                return None
            self._known[_key(after)] = least
        return after if self._bound(after) <= left else None


class _Spelling:
    """The vocabulary's tokens as an automaton of what they spell one after the other.

    A state is a set of tokens under way, as a set of prefixes.
    """

    def __init__(self, store: AutomatonStore) -> None:
        vocabulary = store.vocabulary
        self.name = vocabulary.name
        self.id_of: dict[bytes, int] = {}
        for token in vocabulary.text_ids():
            self.id_of.setdefault(vocabulary.tokens[token], int(token))
        self.id_of.pop(b"", None)
        self.lengths = sorted({len(token) for token in self.id_of}, reverse=True)
        used = set(b"".join(self.id_of))
        self.alphabet = bytes(byte for byte in PREFERRED if byte in used)
        self._prefixes: set[bytes] | None = None
        self._states: list[frozenset[bytes]] = [frozenset([b""])]
        self._number = {self._states[0]: 0}

    def fewest_tokens(self, data: bytes) -> tuple[int, ...] | None:
        """Fewest tokens that spell some bytes; None if none do. Cost: O(bytes times distinct lengths of tokens)."""
        n = len(data)
        counts = [COSTLY] * n + [0]
        choice = [0] * n
        for begin in range(n - 1, -1, -1):
            for length in self.lengths:
                if (
                    length <= n - begin
                    and counts[begin + length] + 1 < counts[begin]
                    and data[begin : begin + length] in self.id_of
                ):
                    counts[begin] = counts[begin + length] + 1
                    choice[begin] = length
        if counts[0] >= COSTLY:
            return None
        tokens = []
        at = 0
        while at < n:
            tokens.append(self.id_of[data[at : at + choice[at]]])
            at += choice[at]
        return tuple(tokens)

    def after(self, state: int, byte: int) -> int:
        """The state after a byte; -1 if no token spells it here."""
        if self._prefixes is None:
            self._prefixes = {token[:end] for token in self.id_of for end in range(1, len(token) + 1)}
        longer = {prefix + bytes([byte]) for prefix in self._states[state]} & self._prefixes
        if not longer.isdisjoint(self.id_of):
            longer.add(b"")
        found = frozenset(longer)
        if not found:
            return -1
        number = self._number.setdefault(found, len(self._states))
        if number == len(self._states):
            self._states.append(found)
        return number

    def is_whole(self, state: int) -> bool:
        return b"" in self._states[state]

    def explanation(self, data: bytes) -> str:
        lacking = bytes(sorted(set(data) - set(self.alphabet)))
        why = (
            f"no token contains the bytes {lacking!r}"
            if lacking
            else "its tokens do not spell it, nor any other ending"
        )
        return f"the text can be completed with {data[:40]!r}, but not under vocabulary {self.name}: {why}; use one with all bytes"


_LOCK = threading.Lock()
_SEARCHES: dict[tuple[int, bool], _Search] = {}
_SPELLINGS: dict[int, _Spelling] = {}


def _search_of(store: AutomatonStore, spelling: _Spelling | None) -> _Search:
    """The store's search, made at the first call and kept as long as its table is."""
    key = (id(store.table), spelling is not None)
    found = _SEARCHES.get(key)
    if found is None:
        found = _SEARCHES[key] = _Search(store, spelling)
        weakref.finalize(store.table, _SEARCHES.pop, key, None)
    return found


def _spelling_of(store: AutomatonStore) -> _Spelling:
    found = _SPELLINGS.get(id(store.table))
    if found is None:
        found = _SPELLINGS[id(store.table)] = _Spelling(store)
        weakref.finalize(store.table, _SPELLINGS.pop, id(store.table), None)
    return found


def _part(table: Int32, place: int, *shape: int) -> Int32:
    """A part of the engine's table as an array."""
    begin = int(table[place])
    return table[begin : begin + int(np.prod(shape))].reshape(shape)
