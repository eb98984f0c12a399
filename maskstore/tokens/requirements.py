"""What each token requires of the parser, in every lexer state under longest-match lexing.

A token makes the lexer emit terminals and leaves it in another state. The token is allowed if the
parser accepts these terminals, and then some terminal that the lexeme under way may still become,
or what the lexer emits if it backs up. So a token requires one of some *continuations*: terminals
to read, then one terminal of a lookahead set.

Under a layout this depends on how many brackets are open. Inside brackets newlines are dropped.
Outside they are followed by an indent, dedents or nothing, which only the columns decide. So each
lexer state has several *depth cases*, one for each number of open brackets that makes a difference.
In each case the tokens are sorted by their *line breaks*, the newlines that they end outside
brackets: what they emit before each, and the column. A decoder brings a copy of its parser behind
the line breaks and asks there.

Example: with a number under way, JSON's token `]}` requires NUMBER, RSQB, RBRACE.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.lexing.encoding import RESTART, START_STATE, Transducer
from maskwright.analysis.lexing.modes import Modes
from maskwright.analysis.lr.encoding import LrTables
from maskwright.maskstore.tokens import _kernels
from maskwright.maskstore.tokens.classes import NO_CLASS, TokenClasses, token_classes
from maskwright.maskstore.tokens.continuations import WHATEVER, Continuations
from maskwright.maskstore.tokens.events import ABSOLUTE, RESET, EventCodes, Moves, least_alike
from maskwright.maskstore.tokens.feasible import Feasible
from maskwright.maskstore.tokens.state_tokens import NO_LINE_BREAKS, DepthCase, LineBreaks, StateTokens
from maskwright.maskstore.tokens.token_walk import TokenWalk
from maskwright.maskstore.vocabulary import SortedTexts

Progress = Callable[[int, int], None]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Ending = tuple[tuple[tuple[int, ...], frozenset[int] | None], ...]
"""What a lexeme may become: alternatives of `Requirements.endings`."""


class _Brackets(NamedTuple):
    """How brackets stand after some symbols.

    depth : brackets opened less those closed.
    lowest : the least depth so far.
    n_depth_cases : how many numbers of brackets open before make a difference so far.
    """

    depth: int
    lowest: int
    n_depth_cases: int


class _Read(NamedTuple):
    """What a parser has read with a certain number of brackets open.

    line_breaks : the line breaks.
    part : the columns of what was read since, with required modes.
    depth : open brackets.
    """

    line_breaks: LineBreaks
    part: tuple[int, ...]
    depth: int


class Requirements:
    """The requirements of all tokens in all lexer states.

    classes : tokens that do the same in every lexer state.
    states : states[q] has the classes of tokens of state q of the transducer.
    line_breaks : the distinct lists of line breaks; number 0 is empty.
    continuations : the continuations of all states.
    grammar, transducer, modes : as given.
    n_columns : the parser's columns, with that for the end of the text.
    column_of : the parser's column of each terminal, -1 for a terminal in no rule.
    newline : the layout's newline terminal, below 0 if there is no layout.
    symbol_of : see `least_alike`.
    bracket : 1 for each opening bracket of the layout, -1 for each closing one.
    codes : the symbols of sequences: terminals and newline events.
    n_sequences : how many distinct sequences the walk has met.
    """

    def __init__(
        self,
        grammar: Grammar,
        transducer: Transducer,
        tables: LrTables,
        modes: Modes,
        tokens: SortedTexts,
        eos: Sequence[int] = (),
        progress: Progress | None = None,
    ) -> None:
        """Walk the vocabulary from each state of the transducer.

        tokens : the tokens that stand for text.
        eos : the ids of the tokens that end the text.
        progress : called with the tokens and lexer states done, and all of them.

        Raises: LimitError for a token that can be read in too many ways under contextual lexing, or
        tokens that do too many different things.
        """
        self.grammar = grammar
        self._tables = tables
        self.transducer = transducer
        self.modes = modes
        self.n_columns = tables.n_terminals + 1
        self.column_of: list[int] = tables.terminal_column.tolist()
        self.continuations = Continuations(tables.n_terminals + 1)
        self.line_breaks: list[LineBreaks] = [()]
        self._line_breaks_number: dict[LineBreaks, int] = {(): NO_LINE_BREAKS}
        self._columns_of: dict[frozenset[int], frozenset[int]] = {}
        layout = grammar.layout
        self.newline = grammar.newline
        self.after_newline = frozenset(range(tables.n_terminals + 1))
        """Columns that can be next after a newline's indent or dedents: all but the indent."""
        if layout:
            self.after_newline -= {self.column_of[layout.indent]}
        self.bracket = {opening: 1 for opening, _ in layout.brackets} if layout else {}
        self.bracket |= {closing: -1 for _, closing in layout.brackets} if layout else {}
        self.codes = EventCodes(grammar.n_terminals, Moves(layout, tokens.texts))
        self.symbol_of = least_alike(self.column_of, self.bracket, self.newline, modes.may_follow)
        self.mode_code = self.codes.n_symbols
        """In sequences: mode_code + m says that the next lexeme is read in mode m.

        Not used if there is only one mode.
        """
        self.classes: TokenClasses
        self._walk_all(tokens, progress)
        if len(eos):
            self._add_eos(np.array(sorted(eos), np.int32), tables.n_terminals)

    def _add_eos(self, eos: Int32, end_column: int) -> None:
        """Add the end-of-text tokens to each state, as one more group.

        Under a layout, as many dedents come before the end as blocks are open. Here it is only
        asked whether a dedent or the end can be next.
        """
        layout = self.grammar.layout
        last = (
            WHATEVER
            if layout is None
            else self.continuations.end(frozenset({end_column, self.column_of[layout.dedent]}) - {-1})
        )
        for number, state in enumerate(self.states):
            output = int(self.transducer.end_output[number])
            if output == RESTART:
                outcomes = self._read(self.transducer.pending[number], START_STATE, self._fallback(number))
                texts = [
                    (*symbols, *self.transducer.outputs[at])
                    for after, symbols in outcomes
                    if (at := int(self.transducer.end_output[after])) >= 0
                ]
            else:
                texts = [self.transducer.outputs[output]] if output >= 0 else []
            depth_cases = []
            group = len(state.member_start) - 1
            for depth, depth_case in enumerate(state.depth_cases):
                continuations = [
                    continuation
                    for text in texts
                    for continuation in self._continuations_to_end(text, depth, last, end_column)
                ]
                breaks = (
                    tuple(sorted({NO_LINE_BREAKS, *depth_case.line_breaks}))
                    if continuations
                    else depth_case.line_breaks
                )
                depth_cases.append(
                    DepthCase(
                        breaks,
                        np.concatenate(
                            [depth_case.group_line_breaks, np.full(len(continuations), NO_LINE_BREAKS)]
                        ).astype(np.int32),
                        np.concatenate([depth_case.group_continuation, continuations]).astype(np.int32),
                        np.concatenate([depth_case.group, np.full(len(continuations), group)]).astype(np.int32),
                    )
                )
            members = np.append(state.members, np.int32(len(self.classes)))
            self.states[number] = StateTokens(members, np.append(state.member_start, len(members)), tuple(depth_cases))
        self.classes = self.classes.and_one(eos)

    def _continuations_to_end(self, symbols: tuple[int, ...], depth: int, last: int, end_column: int) -> list[int]:
        """The continuations, one or none, of emitted symbols and then the end of the text."""
        columns = []
        for symbol in symbols:
            if symbol >= self.mode_code:
                columns.append(self.n_columns + symbol - self.mode_code)
            elif symbol != self.newline or depth == 0:
                depth = max(0, depth + self.bracket.get(symbol, 0))
                columns.append(self.column_of[symbol])
        if min(columns, default=0) < 0:
            return []
        return [self.continuations.before(columns if last != WHATEVER else [*columns, end_column], last)]

    def _fallback(self, state: int) -> tuple[int, ...]:
        """The terminal emitted if the lexeme under way fails; () if it is ignored."""
        terminal = self.transducer.fallback[state]
        return () if terminal in self.grammar.ignored else (terminal,)

    @cached_property
    def endings(self) -> tuple[Int32, list[Ending]]:
        """What the lexeme under way may still become, in each state of the transducer.

        Returns (n_states,) int32, the number of each state's ending; and the endings. An ending is
        a tuple of alternatives: terminals to read, and then one terminal of a set (None: whatever
        comes).
        """
        number: dict[Ending, int] = {}
        ending_of = np.zeros(self.transducer.n_states, np.int32)
        for state in range(self.transducer.n_states):
            ending = tuple(self._ending(state))
            ending_of[state] = number.setdefault(ending, len(number))
        return ending_of, list(number)

    def _alike(self, endings: list[Ending]) -> Int32:
        """For each ending the first that requires the same of the parser: (n_endings,) int32."""
        symbol_of = self.symbol_of.tolist()
        number: dict[tuple[Any, ...], int] = {}
        found = []
        for i, ending in enumerate(endings):
            requires = tuple(
                (
                    tuple(symbol if symbol >= self.mode_code else symbol_of[symbol] for symbol in more),
                    None if last is None else (self.columns_of(last), self.newline in last),
                )
                for more, last in ending
            )
            found.append(number.setdefault(requires, i))
        return np.array(found, np.int32)

    def columns_of(self, lookahead: frozenset[int]) -> frozenset[int]:
        """The parser's columns of a lookahead set (see `Transducer.lookahead`).

        The end of the text is a column too. Under a layout a dedent may come before it, so the
        dedent's column is added then. Terminals in no rule are left out.
        """
        known = self._columns_of.get(lookahead)
        if known is None:
            known = self._columns_of[lookahead] = self._find_columns(lookahead)
        return known

    def _find_columns(self, lookahead: frozenset[int]) -> frozenset[int]:
        """`columns_of`, worked out."""
        found = {self.column_of[terminal] for terminal in lookahead if terminal < self.grammar.n_terminals}
        if self.grammar.n_terminals in lookahead:
            found.add(self.n_columns - 1)
            if self.grammar.layout is not None:
                found.add(self.column_of[self.grammar.layout.dedent])
        return frozenset(found) - {-1}

    def _ending(self, state: int) -> list[tuple[tuple[int, ...], frozenset[int] | None]]:
        """The alternatives of a state's ending: its lookahead set, and those after backing up."""
        lookahead = self.transducer.lookahead[state]
        if lookahead is None:
            return [((), None)]
        found: list[tuple[tuple[int, ...], frozenset[int] | None]] = [((), lookahead)]
        fallback = self.transducer.fallback[state]
        if fallback >= 0:
            emitted = self._fallback(state)
            reread = self.transducer.reread[state]
            outcomes = (
                [(reread[1], emitted + reread[0])]
                if reread is not None
                else self._read(self.transducer.pending[state], START_STATE, emitted)
            )
            for after, more in outcomes:
                found += [((*more, *symbols), last) for symbols, last in self._ending(after)]
        return found

    def _read(self, data: bytes, state: int, symbols: tuple[int, ...]) -> list[tuple[int, tuple[int, ...]]]:
        """The ways to read some bytes from a state: the state after them, and the symbols emitted.

        There is one way for each mode in which a lexeme may begin. symbols : emitted before.
        """
        if not data:
            return [(state, symbols)]
        transducer = self.transducer
        if state == START_STATE and transducer.n_modes > 1:
            known = symbols[-1] - self.mode_code if symbols and symbols[-1] >= self.mode_code else -1
            return [
                outcome
                for mode, begin in enumerate(transducer.mode_state.tolist())
                if known in (-1, mode)
                for outcome in self._read(data, begin, symbols if known >= 0 else (*symbols, self.mode_code + mode))
            ]
        klass = int(transducer.byte_class[data[0]])
        after = int(transducer.next_state[state, klass])
        symbols += transducer.outputs[int(transducer.output[state, klass])]
        if after == RESTART:
            return self._read(transducer.pending[state] + data, START_STATE, symbols)
        return [] if after < 0 else self._read(data[1:], after, symbols)

    def _walk_all(self, tokens: SortedTexts, progress: Progress | None) -> None:
        """Walk the vocabulary from each state, and group its tokens."""
        transducer = self.transducer
        feasible = Feasible(self._tables, self.column_of, self.modes.of_state, self.mode_code, len(self.modes))
        n_tokens, n_states = len(tokens.ids), transducer.n_states
        walk = TokenWalk(
            self.grammar.name,
            transducer,
            self.modes,
            self.codes,
            feasible,
            self.newline,
            self.symbol_of,
            tokens,
            progress and (lambda done, total: progress(done, total + n_states)),
        )
        ending_of, endings = self.endings
        ending_of = self._alike(endings)[ending_of]
        keys_of_state: list[Int64] = []
        groups_of_state: list[tuple[Int32, Int64]] = []
        for state in range(n_states):
            classes, keys = walk.outcomes(state, ending_of, len(endings))
            group = np.empty(len(keys), np.int32)
            firsts = np.empty(len(keys), np.int32)
            group_slots = np.full(1 << max(4, (2 * len(keys)).bit_length()), -1, np.int32)
            n_groups = _kernels.group_equal(keys, group, firsts, group_slots)
            starts, order = np.zeros(n_groups + 1, np.int64), np.empty(len(keys), np.int64)
            _kernels.stable_order(group, starts, order)
            keys_of_state.append(keys[firsts[:n_groups]])
            groups_of_state.append((classes[order], starts))
            if progress is not None:
                progress(n_tokens + state + 1, n_tokens + n_states)
        self.n_sequences = walk.n_sequences
        self._parent, self._last = (array[: self.n_sequences].tolist() for array in walk.sequences[:2])
        self._symbols: dict[int, tuple[int, ...]] = {0: ()}
        # tokens may emit what is not the same and require the same
        of_walk, groups_of_state = token_classes(groups_of_state, walk.n_classes)
        class_of = np.full(walk.n_classes + 1, NO_CLASS, np.int32)  # the last one for tokens of no class
        class_of[of_walk.ids] = np.repeat(np.arange(len(of_walk), dtype=np.int32), of_walk.sizes)
        self.classes = TokenClasses.of(class_of[walk.class_of], tokens.ids[tokens.by_id])
        del walk  # its tables may be large
        self._number_keys(keys_of_state, groups_of_state, endings)

    def sequence(self, number: int) -> tuple[int, ...]:
        """The symbols of a sequence: terminals, newline events and modes.

        See `codes` for the events. Symbol `mode_code` + m is mode m.
        """
        found = self._symbols.get(number)
        if found is None:
            # a loop, since a token may hold thousands of terminals, more than Python's calls nest
            ahead, at = [], number
            while (known := self._symbols.get(at)) is None:
                ahead.append(self._last[at])
                at = self._parent[at]
            found = self._symbols[number] = (*known, *reversed(ahead))
        return found

    def _number_keys(
        self,
        keys_of_state: list[Int64],
        groups_of_state: list[tuple[Int32, Int64]],
        endings: list[Ending],
    ) -> None:
        """Work out what each distinct (sequence, ending) requires, and the states' depth cases."""
        distinct = np.unique(np.concatenate(keys_of_state))
        depths = np.ones(len(distinct), np.int64)
        required: list[list[list[tuple[int, int]]]] = []
        before = -1
        for i, key in enumerate(distinct.tolist()):
            sequence, ending = divmod(key, len(endings))
            if sequence != before:
                before = sequence
                symbols = self.sequence(sequence)
                brackets = self._brackets(symbols, _Brackets(0, 0, 1))
                read_at: list[_Read | None] = []
            per_depth: list[list[tuple[int, int]]] = []
            n_depth_cases = self._n_depth_cases(brackets, endings[ending])
            for depth in range(n_depth_cases):
                if depth == len(read_at):
                    read_at.append(self._read_on(symbols, _Read((), (), depth)))
                found: dict[tuple[int, int], None] = {}
                for more, last in endings[ending]:
                    read = read_at[depth]
                    if more and read is not None:
                        read = self._read_on(more, read)
                    alternative = None if read is None else self._alternative(read, last)
                    if alternative is not None:
                        found[alternative] = None
                per_depth.append(list(found))
            depths[i] = n_depth_cases
            required.append(per_depth)
        # (depth, distinct key) -> its alternatives, flat
        n_depth_cases = int(depths.max(initial=1))
        flat_start = np.zeros((n_depth_cases, len(distinct) + 1), np.int64)
        flat_line_breaks: list[Int32] = []
        flat_continuation: list[Int32] = []
        for depth in range(n_depth_cases):
            lists = [depth_cases[min(depth, len(depth_cases) - 1)] for depth_cases in required]
            flat_start[depth, 1:] = np.cumsum([len(one) for one in lists])
            pairs = np.array([pair for one in lists for pair in one], np.int32).reshape(-1, 2)
            flat_line_breaks.append(pairs[:, 0].copy())
            flat_continuation.append(pairs[:, 1].copy())
        self.states: list[StateTokens] = []
        for keys, (members, starts) in zip(keys_of_state, groups_of_state, strict=True):
            indices = np.searchsorted(distinct, keys)
            depth_cases = []
            for depth in range(int(depths[indices].max(initial=1))):
                begin, end = flat_start[depth, indices], flat_start[depth, indices + 1]
                counts = end - begin
                group = np.repeat(np.arange(len(keys)), counts)
                at = np.repeat(begin - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts) + np.arange(len(group))
                breaks, continuation = flat_line_breaks[depth][at], flat_continuation[depth][at]
                depth_cases.append(
                    DepthCase(
                        tuple(np.flatnonzero(np.bincount(breaks)).tolist()),
                        breaks,
                        continuation,
                        group.astype(np.int32),
                    )
                )
            self.states.append(StateTokens(members, starts, tuple(depth_cases)))

    def _brackets(self, symbols: tuple[int, ...], before: _Brackets) -> _Brackets:
        """How brackets stand after some more symbols."""
        depth, lowest, n_depth_cases = before
        for symbol in symbols if self.newline >= 0 else ():
            if self.codes.n_terminals <= symbol < self.mode_code:
                n_depth_cases = max(n_depth_cases, 2 - lowest)
            depth += self.bracket.get(symbol, 0)
            lowest = min(lowest, depth)
        return _Brackets(depth, lowest, n_depth_cases)

    def _n_depth_cases(self, brackets: _Brackets, ending: Ending) -> int:
        """How many numbers of open brackets make a difference.

        From the last of them on, every newline is dropped. brackets : after the sequence.
        """
        most = brackets.n_depth_cases
        for more, last in ending:
            after = self._brackets(more, brackets)
            most = max(most, after.n_depth_cases)
            if last is not None and self.newline in last:
                most = max(most, 2 - after.lowest)
        return most

    def _read_on(self, symbols: tuple[int, ...], before: _Read) -> _Read | None:
        """What has been read after some more symbols; None if no parser reads them."""
        breaks, part, depth = list(before.line_breaks), list(before.part), before.depth
        for symbol in symbols:
            if symbol >= self.mode_code:
                part.append(self.n_columns + symbol - self.mode_code)
                continue
            if symbol >= self.codes.n_terminals:
                if depth == 0:
                    if self.column_of[self.newline] < 0:
                        return None
                    move = self.codes.moves.members[self.codes.decode(symbol)[1]]
                    # a newline that ends has had its line feed
                    breaks.append((tuple(part), move._replace(stop=ABSOLUTE) if move.stop == RESET else move))
                    part = []
                continue
            if self.bracket:
                depth = max(0, depth + self.bracket.get(symbol, 0))
            column = self.column_of[symbol]
            if column < 0:
                return None
            part.append(column)
        return _Read(tuple(breaks), tuple(part), depth)

    def _alternative(self, read: _Read, last: frozenset[int] | None) -> tuple[int, int] | None:
        """Line breaks and continuation of what has been read and one terminal of a lookahead set.

        last : the lookahead set; None stands for whatever comes.

        None if the parser can never take it.
        """
        breaks, part, depth = read
        if last is not None and depth > 0 and self.newline in last:
            last = None
        if last is None:
            # after a newline whose column is known no indent can come any more, and perhaps nothing
            # else is acceptable
            is_behind_newline = breaks and all(column >= self.n_columns for column in part)
            continuation = self.continuations.before(
                part, self.continuations.end(self.after_newline) if is_behind_newline else WHATEVER
            )
        else:
            columns = self.columns_of(last)
            if not columns:
                return None
            continuation = self.continuations.before(part, self.continuations.end(columns))
        number = self._line_breaks_number.get(breaks)
        if number is None:
            number = self._line_breaks_number[breaks] = len(self.line_breaks)
            self.line_breaks.append(breaks)
        return number, continuation
