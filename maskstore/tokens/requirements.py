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
from functools import cache
from typing import Any

import numpy as np

from maskwright.analysis.arrays import Int32, Int64
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.kept import cached_property
from maskwright.analysis.lexing.encoding import RESTART, START_STATE, Transducer
from maskwright.analysis.lexing.modes import Modes
from maskwright.analysis.lr.encoding import LrTables
from maskwright.maskstore.tokens.classes import NO_CLASS, TokenClasses, token_classes
from maskwright.maskstore.tokens.continuations import WHATEVER, Continuations
from maskwright.maskstore.tokens.events import EventCodes, Moves, least_alike
from maskwright.maskstore.tokens.feasible import Feasible
from maskwright.maskstore.tokens.required_keys import Ending, require
from maskwright.maskstore.tokens.state_tokens import LineBreaks, StateKeys, StateTokens
from maskwright.maskstore.tokens.token_walk import TokenWalk
from maskwright.maskstore.vocabulary import SortedTexts

Progress = Callable[[int, int], None]


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
    reductions : those of the parser's tables.
    n_sequences : how many distinct sequences the walk has met.
    sequences : of each the one before its last symbol, which has a lower number, and this symbol:
        two arrays (n_sequences,) int32. Sequence 0 is empty.
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
        self.line_breaks: list[LineBreaks]
        self.states: list[StateTokens]
        self.sequences: tuple[Int32, Int32]
        self.columns_of = cache(self._columns_of)
        self._ending = cache(self._find_ending)
        layout = grammar.layout
        self.newline = grammar.newline
        self.after_newline = frozenset(range(tables.n_terminals + 1))
        """Columns that can be next after a newline's indent or dedents: all but the indent."""
        if layout:
            self.after_newline -= {self.column_of[layout.indent]}
        self.bracket = {opening: 1 for opening, _ in layout.brackets} if layout else {}
        self.bracket |= {closing: -1 for _, closing in layout.brackets} if layout else {}
        self.codes = EventCodes(grammar.n_terminals, Moves(layout, tokens.newline_pieces if layout else ()))
        self.symbol_of = least_alike(self.column_of, self.bracket, self.newline, modes.may_follow)
        self.mode_code = self.codes.n_symbols
        """In sequences: mode_code + m says that the next lexeme is read in mode m.

        Not used if there is only one mode.
        """
        self.classes: TokenClasses
        self._walk_all(tokens, np.array(sorted(eos), np.int32), progress)

    def _to_end(self, depths: Sequence[int], end_column: int) -> list[list[list[int]]]:
        """For each lexer state and each depth case the continuations by which a text may end there.

        Under a layout, as many dedents come before the end as blocks are open. Here it is only
        asked whether a dedent or the end can be next.

        depths : how many depth cases each state has.
        """
        layout = self.grammar.layout
        last = (
            WHATEVER
            if layout is None
            else self.continuations.end(frozenset({end_column, self.column_of[layout.dedent]}) - {-1})
        )
        known: dict[tuple[tuple[int, ...], int], list[int]] = {}
        found = []
        for number, n_depth_cases in enumerate(depths):
            texts = self._texts_to_end(number)
            per_depth: list[list[int]] = []
            for depth in range(n_depth_cases):
                per_depth.append([])
                for text in texts:
                    if (text, depth) not in known:
                        known[text, depth] = self._continuations_to_end(text, depth, last, end_column)
                    per_depth[-1] += known[text, depth]
            found.append(per_depth)
        return found

    def _texts_to_end(self, number: int) -> list[tuple[int, ...]]:
        """The symbols that may be emitted in a state where the text ends, one text for each way."""
        output = int(self.transducer.end_output[number])
        if output != RESTART:
            return [self.transducer.outputs[output]] if output >= 0 else []
        outcomes = self._read(self.transducer.pending[number], START_STATE, self._fallback(number))
        return [(*symbols, *more) for after, symbols in outcomes for more in self._texts_to_end(after)]

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
            ending = self._ending(state)
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

    def _columns_of(self, lookahead: frozenset[int]) -> frozenset[int]:
        """The parser's columns of a lookahead set (see `Transducer.lookahead`).

        The end of the text is a column too. Under a layout a dedent may come before it, so the
        dedent's column is added then. Terminals in no rule are left out.
        """
        found = {self.column_of[terminal] for terminal in lookahead if terminal < self.grammar.n_terminals}
        if self.grammar.n_terminals in lookahead:
            found.add(self.n_columns - 1)
            if self.grammar.layout is not None:
                found.add(self.column_of[self.grammar.layout.dedent])
        return frozenset(found) - {-1}

    def _find_ending(self, state: int) -> Ending:
        """The alternatives of a state's ending: its lookahead set, and those after backing up."""
        lookahead = self.transducer.lookahead[state]
        if lookahead is None:
            return (((), None),)
        found: list[tuple[tuple[int, ...], frozenset[int] | None]] = [((), lookahead)]
        if self.transducer.otherwise[state] >= 0:
            found += [each for each in self._ending(self.transducer.otherwise[state]) if each not in found]
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
        return tuple(dict.fromkeys(found))

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

    def _walk_all(self, tokens: SortedTexts, eos: Int32, progress: Progress | None) -> None:
        """Walk the vocabulary from each state, and group its tokens.

        eos : the tokens that end the text, one more group of each state.
        """
        transducer = self.transducer
        feasible = Feasible(self._tables, self.column_of, self.modes.of_state, self.mode_code, len(self.modes))
        self.reductions = feasible.reductions
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
            classes, starts, keys = walk.groups(state, ending_of, len(endings))
            keys_of_state.append(keys)
            groups_of_state.append((classes, starts))
            if progress is not None:
                progress(n_tokens + state + 1, n_tokens + n_states)
        self.n_sequences = walk.n_sequences
        self.sequences = walk.sequences
        # tokens may emit what is not the same and require the same
        of_walk, groups_of_state = token_classes(groups_of_state, walk.n_classes)
        class_of = np.full(walk.n_classes + 1, NO_CLASS, np.int32)  # the last one for tokens of no class
        class_of[of_walk.ids] = np.repeat(np.arange(len(of_walk), dtype=np.int32), of_walk.sizes)
        self.classes = TokenClasses.of(class_of.take(walk.class_of), tokens.ascending)
        del walk  # its tables may be large
        distinct = np.unique(np.concatenate(keys_of_state))
        required, self.line_breaks = require(distinct, endings, self)
        of_states = StateKeys(distinct, keys_of_state, required, len(self.line_breaks))
        end_class = -1
        to_end: list[list[list[int]]] = []
        if len(eos):
            to_end = self._to_end(of_states.n_depth_cases.tolist(), self._tables.n_terminals)
            end_class = len(self.classes)
            self.classes = self.classes.and_one(eos)
        self.states = of_states.states(groups_of_state, end_class, to_end)
