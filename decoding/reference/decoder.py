"""The reference decoder: the streamlining post's decoding loop in plain Python.

It takes every lexer hypothesis and every entry, and asks the parser one question each. It counts
these questions. It is the yardstick for masks, not the fast engine.

Source: Tran-Thien's streamlining post (2025); Domino (arXiv 2403.06988), algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import as_integer, clip, refuse_argument
from maskwright.analysis.errors import GrammarError, IllegalTokenError, LimitError, StoreError
from maskwright.analysis.grammar.columns import FIRST_COLUMN, Column
from maskwright.analysis.legality.verdict import START
from maskwright.analysis.lr.tables import build_lr_tables
from maskwright.decoding.engine.arguments import plain_bytes
from maskwright.decoding.reference.nfa_lexer import NO_COLUMN, NfaLexer, Symbols
from maskwright.decoding.reference.parser import MOST_STACKS, Parser, Stacks
from maskwright.maskstore.entries.entry_table import EntryTable
from maskwright.maskstore.tokens.events import ABSOLUTE, EventCodes, Moves
from maskwright.maskstore.vocabulary.masks import n_words


@dataclass(frozen=True, slots=True)
class ParserState:
    """The state of the parser and the layout.

    stacks : the parser's; several where the grammar has conflicts.
    indents : the open columns. The first is always FIRST_COLUMN.
    depth : open brackets.
    last, before : the last terminal that the text spells, and the one before it; or START. The one
        before it is START, too, if the store's entries are not kept by it.
    """

    stacks: Stacks
    indents: tuple[Column, ...]
    depth: int
    last: int
    before: int = START


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One way to read the text so far.

    parser : state of parser and layout.
    lexer_state : state of the lexer; `nfa.n_states` of the store at the start of the text.
    column : of the newline under way; None if there is none or it has no line feed yet.
    """

    parser: ParserState
    lexer_state: int
    column: Column | None


class ReferenceDecoder:
    """Masks and states of one text under a store of lexing "nfa".

    store : an `EntryStore`, or its `EntryTable`.
    hypotheses : the ways to read the text so far.
    n_parser_calls : sequences that `mask` has asked the parser about so far.
    n_masks : masks made so far.

    Raises: `mask` and `advance` raise LimitError if the text has too many readings.
    """

    def __init__(self, store: EntryTable) -> None:
        """Build the parser.

        Raises: GrammarError if the store's lexing is not "nfa", or its rules are none for an LR
            parser; LimitError as `build_lr_tables`; MaskwrightError if it is no store.
        Cost: 0.5 s for python.lark.
        """
        if not hasattr(store, "grammar"):
            refuse_argument("the store", store, "an EntryStore: mw.build_store(grammar, vocabulary)")
        if store.grammar.lexing != "nfa":
            raise GrammarError(
                f"the reference decoder reads stores of lexing 'nfa', not {store.grammar.lexing!r}: use store.matcher(), or load the "
                "grammar with lexing='nfa'"
            )
        self.store = store
        self.grammar = store.grammar
        self.layout = store.grammar.layout
        self._newline = self.grammar.newline
        # The store's codes have only the moves of its tokens. Text given as bytes may need others.
        codes = EventCodes(self.grammar.n_terminals, Moves(self.layout))
        self.lexer = NfaLexer(store.nfa, codes, self._newline)
        self.parser = Parser(build_lr_tables(self.grammar), self.grammar.name)
        self._columns: list[int] = self.parser.tables.terminal_column.tolist()
        self._opening = {opening for opening, _ in self.layout.brackets} if self.layout else set()
        self._closing = {closing for _, closing in self.layout.brackets} if self.layout else set()
        own = set(store.nfa.terminal[store.dependent].tolist())
        self._keeps_pairs = not own <= {*self.grammar.ignored, self._newline}
        self._entries: dict[int, list[tuple[Symbols, int]]] = {}
        self.n_parser_calls = 0
        self.n_masks = 0
        self.reset()

    def reset(self) -> None:
        """Go back to the start of the text."""
        begin = ParserState((self.parser.start,), (FIRST_COLUMN,), 0, START)
        self.hypotheses: tuple[Hypothesis, ...] = (Hypothesis(begin, self.lexer.start, NO_COLUMN),)
        self._finished = False

    def read(
        self, state: ParserState, symbols: Symbols, column: Column | None, codes: EventCodes
    ) -> ParserState | None:
        """The parser's state after a sequence of symbols, or None if it is not legal.

        column : of the newline under way before the sequence.
        codes : numbers of the symbols.
        """
        for symbol in symbols:
            kind, value = codes.decode(symbol)
            if kind == "terminal" and value in self.grammar.ignored:
                continue
            after: ParserState | None
            if kind == "terminal" and value != self._newline:
                after = self._read_terminal(state, value)
            elif kind == "leave" and column is NO_COLUMN and codes.moves.members[value].stop != ABSOLUTE:
                after = None  # a newline without a line feed cannot end
            elif state.depth:
                continue  # brackets make the layout drop newlines
            elif kind == "terminal":
                after = self._read_terminal(state, self._newline)
            elif kind == "newline_at":
                begun = self._read_terminal(state, self._newline)
                after = None if begun is None else self._indent(begun, codes.moves.members[value].after(FIRST_COLUMN))
            else:
                after = self._indent(state, codes.moves.members[value].after(column or FIRST_COLUMN))
            if after is None:
                return None
            state = after
        return state

    def _read_terminal(self, state: ParserState, terminal: int) -> ParserState | None:
        """The state after one terminal, or None if it is not legal."""
        stacks = self.parser.shift(state.stacks, self._columns[terminal]).stacks
        if not stacks:
            return None
        depth = state.depth
        if terminal in self._opening:
            depth += 1
        elif terminal in self._closing:
            depth = max(0, depth - 1)
        return ParserState(stacks, state.indents, depth, terminal, state.last if self._keeps_pairs else START)

    def _indent(self, state: ParserState, column: Column) -> ParserState | None:
        """The state after a newline that ended at a column, or None if that is not legal.

        The newline is followed by one indent, by nothing, or by dedents down to an open column.
        """
        assert self.layout is not None  # INVARIANT: only grammars with layout have events
        line = self.layout.line_at(state.indents, column)
        if line is None:
            return None
        stacks = self.parser.shift_all(state.stacks, [self._columns[terminal] for terminal in line.inserted])
        return replace(state, stacks=stacks, indents=line.columns) if stacks else None

    def mask(self) -> npt.NDArray[np.uint32]:
        """The tokens allowed next: (ceil(V / 32),) uint32.

        Bit i of word w is token 32 w + i. End-of-text tokens are allowed if the text is legal as it
        stands. All bits are 0 after the end of the text.
        """
        words = np.zeros(n_words(self.store.vocabulary.size), np.uint32)
        self.n_masks += 1
        if self._finished:
            return words
        for hypothesis in self.hypotheses:
            for symbols, mask in self._entries_of(hypothesis):
                if symbols:
                    self.n_parser_calls += 1
                    if self.read(hypothesis.parser, symbols, hypothesis.column, self.store.codes) is None:
                        continue
                self.store.masks.or_into(words, mask)
        if self.is_accepting():
            for token in self.store.vocabulary.eos:
                words[token >> 5] |= np.uint32(1 << (token & 31))
        return words

    def _entries_of(self, hypothesis: Hypothesis) -> list[tuple[Symbols, int]]:
        """The entries that apply to a hypothesis: (symbols, mask number)."""
        state = hypothesis.lexer_state
        last: int | None = hypothesis.parser.last
        if state != self.lexer.start:
            own = int(self.store.nfa.terminal[state])
            if own == self._newline:
                last = None if hypothesis.parser.depth else self._newline
            elif own not in self.grammar.ignored:
                last = hypothesis.parser.before
        cell = self.store.cell(state, last)
        if cell not in self._entries:
            self._entries[cell] = self.store.entries(cell)
        return self._entries[cell]

    def successors(self, token: bytes) -> tuple[Hypothesis, ...]:
        """The hypotheses after a token's bytes, or () if the token is not legal.

        They are worked out from the definition, not from the store. LimitError if there are too
        many.

        token : bytes, not empty.
        """
        found: dict[Hypothesis, None] = {}
        for hypothesis in self.hypotheses:
            if len(found) > MOST_STACKS:
                raise LimitError(
                    f"grammar {self.grammar.name} has more than {MOST_STACKS} readings of the text: their number grows with its "
                    "length; make its terminals and rules less ambiguous"
                )
            for symbols, lexer_state, column in self.lexer.outcomes(hypothesis.lexer_state, hypothesis.column, token):
                after = self.read(hypothesis.parser, symbols, hypothesis.column, self.lexer.codes)
                if after is not None:
                    found[Hypothesis(after, lexer_state, column)] = None
        return tuple(found)

    def advance(self, token: int) -> None:
        """Add a token to the text.

        Raises: IllegalTokenError if the token is not legal here or outside the vocabulary; the
            state is then unchanged.
        """
        vocabulary = self.store.vocabulary
        token = as_integer("a token", token, IllegalTokenError)
        if not 0 <= token < vocabulary.size:
            raise IllegalTokenError(
                f"token {clip(token)} is out of range: the vocabulary has the ids 0 to {vocabulary.size - 1}"
            )
        if self._finished:
            raise IllegalTokenError(f"token {token} comes after the end of the text: reset() begins a new one")
        if token in vocabulary.eos:
            if not self.is_accepting():
                raise IllegalTokenError(f"token {token} ends the text, which is not complete here")
            self._finished = True
            return
        if not vocabulary.tokens[token]:
            raise IllegalTokenError(f"token {token} stands for no text, so no grammar can allow it")
        self.advance_bytes(vocabulary.tokens[token])

    def advance_bytes(self, data: bytes) -> None:
        """Add bytes to the text as if they were one token.

        Raises: IllegalTokenError if they are not legal here; the state is then unchanged.
        """
        data = plain_bytes("data", data)
        if not data:
            return
        found = self.successors(data)
        if not found:
            raise IllegalTokenError(
                f"bytes {data!r} are not legal here under grammar {self.grammar.name}; the state is unchanged"
            )
        self.hypotheses = found

    def is_finished(self) -> bool:
        """Whether an end-of-text token has been read."""
        return self._finished

    def is_accepting(self) -> bool:
        """Whether the text so far is legal as it stands."""
        return any(self._can_end(hypothesis) for hypothesis in self.hypotheses)

    def _can_end(self, hypothesis: Hypothesis) -> bool:
        state: ParserState | None = hypothesis.parser
        lexer_state = hypothesis.lexer_state
        if lexer_state != self.lexer.start:
            if not self.store.nfa.is_accepting[lexer_state]:
                return False
            if int(self.store.nfa.terminal[lexer_state]) == self._newline and not hypothesis.parser.depth:
                if hypothesis.column is None:
                    return False
                state = self._indent(hypothesis.parser, hypothesis.column)
        if state is None:
            return False
        stacks = state.stacks
        if self.layout is not None:
            dedents = [self._columns[self.layout.dedent]] * (len(state.indents) - 1)
            stacks = self.parser.shift_all(stacks, dedents)
        return self.parser.accepts_end(stacks)


def check_same_masks(first: ReferenceDecoder, second: ReferenceDecoder, tokens: list[int]) -> int:
    """Feed the same tokens to two decoders and compare their masks before each token.

    tokens : ids.

    Returns the number of positions compared.
    Raises: StoreError at the first difference, with position, token and ids; IllegalTokenError if a
        token is not legal.
    """
    for position, token in enumerate(tokens):
        masks = first.mask(), second.mask()
        if not np.array_equal(*masks):
            bits = np.unpackbits((masks[0] ^ masks[1]).view(np.uint8), bitorder="little")
            raise StoreError(
                f"masks differ at position {position}, before token {token}, in the ids {np.flatnonzero(bits)[:20]}"
            )
        first.advance(token)
        second.advance(token)
    return len(tokens)
