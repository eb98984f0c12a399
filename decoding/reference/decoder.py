"""The reference decoder: the streamlining post's decoding loop in plain Python.

It takes every lexer hypothesis and every entry, and asks the parser one question each. It counts
these questions. It is the yardstick for masks, not the fast engine.

Source: Tran-Thien's streamlining post (2025); Domino (arXiv 2403.06988), algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import as_integer, clip, refuse_argument
from maskwright.analysis.errors import GrammarError, IllegalTokenError, LimitError, StoreError
from maskwright.analysis.grammar.columns import FIRST_COLUMN, Column
from maskwright.analysis.legality.verdict import START
from maskwright.analysis.lr.tables import build_lr_tables
from maskwright.decoding.engine.arguments import plain_bytes
from maskwright.decoding.reference.nfa_lexer import NO_COLUMN, NfaLexer, Symbols
from maskwright.decoding.reference.parser import MOST_STACKS, Configuration, Parser, Refusal, TextParser
from maskwright.maskstore.entries.entry_table import EntryTable
from maskwright.maskstore.tokens.events import ABSOLUTE, EventCodes, Moves
from maskwright.maskstore.vocabulary.masks import n_words


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One way to read the text so far.

    parser : state of parser and layout. Of the terminals read it has only the last one, and the one
        before it if the store's entries are kept by that.
    lexer_state : state of the lexer; `nfa.n_states` of the store at the start of the text.
    column : of the newline under way; None if there is none or it has no line feed yet.
    """

    parser: Configuration
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
        # The store's codes have only the moves of its tokens. Text given as bytes may need others.
        codes = EventCodes(self.grammar.n_terminals, Moves(self.grammar.layout))
        self.lexer = NfaLexer(store.nfa, codes, self.grammar.newline)
        tables = build_lr_tables(self.grammar)
        self.parser = TextParser(self.grammar, Parser(tables, self.grammar.name), [0] * tables.n_states)
        self._separators = {*self.grammar.ignored, self.grammar.newline}
        self._keeps_pairs = not self._separators.issuperset(store.nfa.terminal[store.dependent].tolist())
        self._entries: dict[int, list[tuple[Symbols, int]]] = {}
        self.n_parser_calls = 0
        self.n_masks = 0
        self.reset()

    def reset(self) -> None:
        """Go back to the start of the text."""
        self.hypotheses: tuple[Hypothesis, ...] = (Hypothesis(self.parser.start, self.lexer.start, NO_COLUMN),)
        self._finished = False

    def read(
        self, state: Configuration, symbols: Symbols, column: Column | None, codes: EventCodes
    ) -> Configuration | None:
        """The parser's state after a sequence of symbols, or None if it is not legal.

        column : of the newline under way before the sequence.
        codes : numbers of the symbols.
        """
        for symbol in symbols:
            kind, value = codes.decode(symbol)
            if kind == "terminal" and value in self.grammar.ignored:
                continue
            if kind == "leave" and column is NO_COLUMN and codes.moves.members[value].stop != ABSOLUTE:
                return None  # a newline without a line feed cannot end
            is_newline = kind != "terminal" or value == self.parser.newline
            if state.depth and is_newline:
                continue  # brackets make the layout drop newlines
            after: Configuration | Refusal = state
            if kind != "leave":
                after = self.parser.take(state, self.parser.newline if is_newline else value)
            if kind != "terminal" and isinstance(after, Configuration):
                begun = column if kind == "leave" and column is not NO_COLUMN else FIRST_COLUMN
                after = self._line(after, codes.moves.members[value].after(begun))
            if isinstance(after, Refusal):
                return None
            state = after
        return state

    def _line(self, state: Configuration, column: Column) -> Configuration | Refusal:
        """The state after a newline that ended at a column; the last terminal read stays."""
        after = self.parser.line(state, column)
        return after if isinstance(after, Refusal) else after._replace(read=state.read)

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
        state, read = hypothesis.lexer_state, hypothesis.parser.read
        own = None if state == self.lexer.start else int(self.store.nfa.terminal[state])
        if own is not None and own not in self._separators:
            read = read and read[2]
        last: int | None = START if read is None else read[0]
        if own == self.parser.newline:
            last = None if hypothesis.parser.depth else self.parser.newline
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
                    read = after.read
                    before = read[2] if read and self._keeps_pairs else None
                    after = after._replace(read=read and (*read[:2], before and (*before[:2], None)))
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
        state: Configuration | Refusal = hypothesis.parser
        lexer_state = hypothesis.lexer_state
        if lexer_state != self.lexer.start:
            if not self.store.nfa.is_accepting[lexer_state]:
                return False
            if int(self.store.nfa.terminal[lexer_state]) == self.parser.newline and not hypothesis.parser.depth:
                if hypothesis.column is None:
                    return False
                state = self._line(hypothesis.parser, hypothesis.column)
        return isinstance(state, Configuration) and isinstance(self.parser.close(state), Configuration)


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
