"""What the parser still owes to an ending: least costs of what is left of rules, frame by frame.

The frames are visited from the bottom of the stack up.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.grammar.columns import Column
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.graphs import cheapest_rules
from maskwright.analysis.lr.encoding import ACCEPT, CONFLICT
from maskwright.decoding.endings._ending_kernels import COSTLY, DEDENT, INDENT, PLAIN, join_items, relax_rules
from maskwright.maskstore.table import schema

if TYPE_CHECKING:
    from maskwright.maskstore.table.compiled import EngineTable
from maskwright.decoding.endings.ending_lexer import EndingLexer, part_of

Int32 = npt.NDArray[np.int32]
Step = tuple[int, int, int, int, int]
"""A way to end the rule under way on a stack, as five numbers.

They are: the states to pop; what to push, `nonterminal * n_classes + class`, with the class of the
last lexeme; and the cost, which is bytes, lines of the block on top of the stack, and lines of the
block below the states popped.
"""
Steps = tuple[tuple[Step, ...], ...]
"""By the class of the lexeme before: the steps that can be part of a least ending."""
MAX_CLASSES = 12
"""The most classes of terminals. The three special classes come in addition."""


class Frame:
    """A stack: an LR state on top of another stack.

    pay : the bytes of indentation that each line of the state's block must still pay for.
    costs : V after a nonterminal on this stack, by `nonterminal * n_classes + class`; filled as
        needed.
    height : the number of LR states.
    """

    __slots__ = ("below", "costs", "height", "number", "pay", "state")

    def __init__(self, state: int, below: Frame | None, pay: int, number: int) -> None:
        self.state = state
        self.below = below
        self.pay = pay
        self.number = number
        self.costs: dict[int, int] = {}
        self.height: int = 1 if below is None else below.height + 1


Options = tuple[list[tuple[Column, int]], int, int]
"""What may follow a newline: open blocks, a new block, and the end of the text.

They are: (column, value) of each open block from the innermost; the value of a new block; that of
the end. A value is a lower bound of the bytes after it.
"""


NO_BOUNDS: array[int] = array("i")


class ParserConfiguration:
    """The stacks, the open indents' columns and the number of open brackets of a text.

    Only the end of a lexeme can change these. There is one object for the same stacks, columns and
    number of brackets.

    after : the configurations after terminals, by the lexer's output and, where the output has a
        newline that counts, its column; None where the parser refuses them.
    values[u] : a lower bound of the bytes after lexeme u, if it comes next. None: not yet computed.
    bounds[q] : a lower bound of the bytes from lexer state q.
    bounds_without[q] : the same if the next lexeme is not the layout's newline.
    options : as `Options` says. None: not yet computed.
    is_cut : whether something that may follow was left out since it has more than `MAX_STACKS`
        stacks.
    """

    __slots__ = (
        "after", "bounds", "bounds_without", "depth", "frames", "indents", "is_cut", "options", "values"
    )  # fmt: skip

    def __init__(self, frames: tuple[Frame, ...], indents: tuple[Column, ...], depth: int) -> None:
        self.frames = frames
        self.indents = indents
        self.depth = depth
        self.after: dict[tuple[int, Column | None], ParserConfiguration | None] = {}
        self.values: list[int] | None = None
        self.bounds = self.bounds_without = NO_BOUNDS
        self.options: Options | None = None
        self.is_cut = False


State = tuple[ParserConfiguration, int, Column]
"""A configuration, the lexer state, and the column of the newline under way, or the first one."""


class EndingParser:
    """The LR tables with least costs.

    A cost is a matrix: its row is the class of the lexeme before, its column that of the last
    lexeme. There are three more classes: `new_line` after a newline or dedent whose indentation
    must still be paid for; `indented` once that indentation has been read; and `ending` after a
    dedent without a newline before it, which occurs only at the end of the text.

    Only the stack tells how deep the lines of a rule are indented. So a cost is bytes without the
    indentation of lines, and a number of lines. Each is least by itself, so `bytes + lines * pay`
    is a lower bound. A line of a block that is still to be opened has one byte more.

    store : the engine's table with its grammar.
    lexer : the lexer's part of the costs.
    """

    def __init__(self, store: EngineTable, lexer: EndingLexer) -> None:
        table, grammar = store.table, store.grammar
        self.lexer = lexer
        self.layout = grammar.layout
        n_states, self.n_columns = int(table[schema.N_STATES]), int(table[schema.N_COLUMNS])
        n_nonterminals, n_rules = int(table[schema.N_NONTERMINALS]), int(table[schema.N_RULES])
        action = part_of(table, schema.ACTION, n_states, self.n_columns)
        self.goto: list[list[int]] = part_of(table, schema.GOTO, n_states, n_nonterminals).tolist()
        self.rule_lhs: list[int] = part_of(table, schema.RULE_LHS, n_rules).tolist()
        self.rule_length: list[int] = part_of(table, schema.RULE_LENGTH, n_rules).tolist()
        self.default: list[int] = part_of(table, schema.DEFAULT, n_states).tolist()
        self.column_of: list[int] = part_of(table, schema.SYMBOL_COLUMN, grammar.n_terminals).tolist()
        self.depth_of: list[int] = part_of(table, schema.SYMBOL_DEPTH, grammar.n_terminals).tolist()
        self.mode_of: list[int] = part_of(table, schema.MODE_OF_STATE, n_states).tolist()
        self.newline = int(table[schema.NEWLINE])
        self.indent, self.dedent = int(table[schema.INDENT]), int(table[schema.DEDENT])
        self.members: list[list[int]] = [[] for _ in range(self.n_columns)]
        for terminal, column in enumerate(self.column_of):
            if column >= 0:
                self.members[column].append(terminal)
        self._read_actions(action, table)
        self.has_levels = self._has_levels(store)
        # the bytes of a shortest newline besides its line feed may be indentation already
        self._deeper = int(self.newline >= 0 and lexer.width[self.newline] == 1)
        self._counts_inner = self.has_levels and lexer.deeper_is_longer
        self._classify()
        self._cost_items(table, n_nonterminals)
        self._known: dict[tuple[int, int], tuple[list[tuple[int, int]], Steps]] = {}

    def _read_actions(self, action: Int32, table: Int32) -> None:
        """Read the LR actions of each state s.

        shifts[s] : (column, state) of each shift.
        reduces[s] : (rule, columns as bits) of each reduction.
        accepts[s] : whether the text may end in this state.
        """
        alternatives = int(table[schema.ALTERNATIVES])
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

    def _has_levels(self, store: EngineTable) -> bool:
        """Whether the LR states tell which blocks are open.

        That is so if indents and dedents come in pairs within each rule, and each leads to LR
        states of its own.
        """
        layout = store.grammar.layout
        if layout is None or len(self.members[self.indent]) > 1 or len(self.members[self.dedent]) > 1:
            return False
        read_otherwise = {state for row in self.goto for state in row}
        for column, targets in enumerate(self.column_targets):
            if column not in (self.indent, self.dedent):
                read_otherwise |= targets
        opened, closed = self.column_targets[self.indent], self.column_targets[self.dedent]
        if opened & closed or (opened | closed) & read_otherwise:
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
        """Put terminals into classes. Those with equal rows in `apart` are one class.

        If there are too many classes, the most similar ones become one.
        """
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
        self.new_line, self.indented, self.ending = range(len(rows), len(rows) + 3)
        self.n_classes = len(rows) + 3
        # the most by which a class can be worse than another, whatever follows
        spread = max((int((one - other).max(initial=0)) for one in rows for other in rows), default=0)
        self.spread = spread if spread < COSTLY else COSTLY

    def _symbol_costs(self, n_nonterminals: int) -> Int32:
        """What each column costs, by the class before and the class after.

        Returns (n_columns + n_nonterminals, 2, n_classes, n_classes) int32: bytes, and lines that
        begin with the column. Nonterminals cost COSTLY.
        """
        n = self.new_line
        costs = np.full((self.n_columns + n_nonterminals, self.n_classes, self.n_classes), COSTLY, np.int64)
        lines = np.zeros(costs.shape, np.int64)
        for column, members in enumerate(self.members):
            cost = costs[column]
            for terminal in members:
                width = self.lexer.width[terminal]
                if column == self.indent and self.lexer.end != terminal and width >= COSTLY:
                    cost[n, n] = 0 if self._counts_inner else self._deeper
                elif column == self.dedent and width >= COSTLY:
                    cost[:n, self.ending] = 0
                    cost[n : self.ending, n] = 0
                    cost[self.ending, self.ending] = 0
                elif terminal == self.newline:
                    cost[:n, n] = np.minimum(cost[:n, n], width + self.apart[:, terminal])
                    cost[n : self.ending, n] = width
                elif self.class_of[terminal] >= 0:
                    after = self.class_of[terminal]
                    cost[:n, after] = np.minimum(cost[:n, after], width + self.apart[:, terminal])
                    cost[n : self.ending, after] = np.minimum(cost[n : self.ending, after], width)
                    lines[column, n, after] = 1
        lines[costs >= COSTLY] = COSTLY
        return np.minimum(np.stack([costs, lines], 1), COSTLY).astype(np.int32)

    def _cost_items(self, table: Int32, n_nonterminals: int) -> None:
        """Compute steps[s], the ways to end a rule under way in state s.

        An item (s, rule, left) has `left` symbols to read.
        """
        n_states = len(self.default)
        starts = part_of(table, schema.PREDECESSOR_START, n_states + 1).tolist()
        predecessors = part_of(table, schema.PREDECESSORS, starts[-1]).tolist()
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
        edges: list[tuple[int, int, int, int]] = []
        kinds = {self.indent: INDENT, self.dedent: DEDENT} if self.has_levels else {}
        done = n_nonterminals
        empty: set[int] = set()
        while done < len(order):
            state, rule, left = order[done]
            length = self.rule_length[rule]
            if length == 0:
                empty.add(self.rule_lhs[rule])
            elif left + 1 == length:
                edges += [(self.rule_lhs[rule], done, each, kinds.get(each, PLAIN)) for each in sorted(read[state])]
            else:
                for below in predecessors[starts[state] : starts[state + 1]]:
                    key = (below, rule, left + 1)
                    if key not in number:
                        number[key] = len(order)
                        order.append(key)
                    edges += [(number[key], done, each, kinds.get(each, PLAIN)) for each in sorted(read[state])]
            done += 1
        identity = np.full((3, self.n_classes, self.n_classes), COSTLY, np.int32)
        for part in identity:
            np.fill_diagonal(part, 0)
        self._identity = identity
        item_costs = np.full((len(order), *identity.shape), COSTLY, np.int32)
        for i, (state, _, left) in enumerate(order):
            if (state >= 0 and left == 0) or i in empty:
                item_costs[i] = identity
        item_lhs = np.array([self.n_columns + i if i < n_nonterminals else -1 for i in range(len(order))], np.int32)
        flat = np.array(edges, np.int32).reshape(-1, 4)
        parents, children, symbols, kind = (np.ascontiguousarray(flat[:, i]) for i in range(4))
        deeper = np.array([self._deeper, 1] if self._counts_inner else [0, 0], np.int32)
        costs = self._symbol_costs(n_nonterminals)
        relax_rules(costs, item_costs, item_lhs, parents, children, symbols, kind, deeper)
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
            for before, row in enumerate(cost.transpose(1, 2, 0).tolist()):
                least, here, behind = min(row[:plain], default=(COSTLY, 0, 0))
                for after, each in enumerate(row):
                    if each[0] >= COSTLY:
                        continue
                    is_worse = least < each[0] >= least + self.spread and each[1] >= here and each[2] >= behind
                    if after >= plain or not is_worse:
                        steps[before].append((pops, lhs * self.n_classes + after, *each))
        return tuple(map(tuple, steps))

    def _after(self, state: int, nonterminal: int) -> tuple[list[tuple[int, int]], Steps]:
        """What can follow a nonterminal on a stack with this state on top.

        Returns the costs of accepting there (bytes and lines, by class), and the steps that pop the
        state.
        """
        known = self._known.get((state, nonterminal))
        if known is not None:
            return known
        reached: dict[int, Int32] = {nonterminal: self._identity.copy()}
        leaving: dict[tuple[int, int], Int32] = {}
        agenda = [nonterminal]
        nothing = np.zeros(2, np.int32)
        while agenda:
            here = agenda.pop()
            target = self.goto[state][here]
            if target < 0:
                continue
            for (pops, lhs), cost in self._matrices[target]:
                into: dict[Any, Int32] = reached if pops == 1 else leaving
                key = lhs if pops == 1 else (pops - 1, lhs)
                if key not in into:
                    into[key] = np.full(self._identity.shape, COSTLY, np.int32)
                if pops == 1:
                    # the rule began on this stack, so all its lines belong to one block
                    none_behind = np.where(cost[0] < COSTLY, 0, COSTLY)
                    cost = np.stack([cost[0], np.minimum(cost[1] + cost[2], COSTLY), none_behind]).astype(np.int32)
                if join_items(reached[here][:2], cost, into[key], PLAIN, nothing) and pops == 1:
                    agenda.append(lhs)
        ends = [(COSTLY, 0)] * self.n_classes
        for here, cost in reached.items():
            target = self.goto[state][here]
            if target >= 0 and self.accepts[target]:
                pairs = zip(ends, cost[0].min(axis=1).tolist(), cost[1].min(axis=1).tolist(), strict=True)
                ends = [
                    (min(bytes_, one), min(lines, other) if bytes_ < COSTLY else other)
                    if one < COSTLY
                    else (bytes_, lines)
                    for (bytes_, lines), one, other in pairs
                ]
        found = self._known[state, nonterminal] = ends, self._steps(sorted(leaving.items(), key=lambda item: item[0]))
        return found

    def _cost(self, frame: Frame, key: int) -> int:
        """V after a nonterminal on a stack, for a class. key : as of `Frame.costs`.

        Cost: O(1) for each frame that was not asked for it before.
        """
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
            least = ends[before][0] + ends[before][1] * frame.pay
            is_complete = True
            for pops, into, cost, here, behind in steps[before]:
                base = pop_frames(frame, pops)
                if base is not None:
                    after = base.costs.get(into)
                    if after is None:
                        agenda.append((base, into))
                        is_complete = False
                    else:
                        least = min(least, cost + here * frame.pay + behind * base.pay + after)
            if is_complete:
                agenda.pop()
                frame.costs[wanted] = least
        return first.costs[key]

    def value(self, state: int, below: Frame | None, pay: int, before: int) -> int:
        """V of an LR state on top of another stack, after a lexeme of a class.

        state, below, pay : as of `Frame`.
        before : the class of the lexeme.
        """
        least = 0 if self.accepts[state] else COSTLY
        for pops, into, cost, here, behind in self.steps[state][before]:
            base = pop_frames(below, pops - 1)
            if base is not None:
                after = base.costs.get(into)
                if after is None:
                    after = self._cost(base, into)
                least = min(least, cost + here * pay + behind * base.pay + after)
        return least

    def values(self, frames: Iterable[Frame], before: int) -> int:
        """The least value of some stacks, after a lexeme of class `before`.

        COSTLY if there are none.
        """
        return min((self.value(frame.state, frame.below, frame.pay, before) for frame in frames), default=COSTLY)


def pop_frames(frame: Frame | None, n: int) -> Frame | None:
    """The stack without its top n states; None if it has fewer than n + 1."""
    while n and frame is not None:
        frame = frame.below
        n -= 1
    return frame


def uncounted(grammar: Grammar, width: Sequence[int]) -> str:
    """In words, that a rule needs COSTLY bytes or more, which the search takes for never; else "".

    width : for each terminal its least bytes.
    """
    # a terminal that is no text of its own counts nothing
    least = {terminal: width[terminal] if width[terminal] < COSTLY else 0 for terminal in range(grammar.n_terminals)}
    own = [sum(least.get(symbol, 0) for symbol in rule.rhs) for rule in grammar.rules]
    rules = (
        (rule.lhs, cost, filter(grammar.is_nonterminal, rule.rhs))
        for rule, cost in zip(grammar.rules, own, strict=True)
    )
    least |= {symbol: cost for symbol, (cost, _) in cheapest_rules(rules).items()}
    longest = max((sum(least.get(symbol, 0) for symbol in rule.rhs) for rule in grammar.rules), default=0)
    if longest < COSTLY:
        return ""
    return (
        f"grammar {grammar.name}: some texts have at least {longest:,} bytes; endings are searched for up to {COSTLY - 1:,}: repeat "
        "less often"
    )
