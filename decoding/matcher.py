"""Matchers: the state of one text, and the masks of the tokens allowed next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.decoding.engine import constants
from maskwright.decoding.engine.allowed import AllowedTokens
from maskwright.decoding.engine.alone import Alone
from maskwright.decoding.engine.arguments import as_int64, integer_row
from maskwright.decoding.engine.bound import Bound, Words
from maskwright.decoding.engine.entries import entries
from maskwright.decoding.engine.forced import MOST_BYTES, forced_bytes
from maskwright.decoding.engine.pickles import restored
from maskwright.decoding.engine.quick import NOT_QUICK, quick_calls
from maskwright.decoding.engine.texts import LIMITS
from maskwright.decoding.held_texts import HeldText
from maskwright.maskstore.table.compiled import EngineTable

if TYPE_CHECKING:
    # PERF: what few decoders ask for is imported when they do, since all others would wait for it
    # at their first import
    from maskwright.decoding.endings.ending import Ending
    from maskwright.decoding.explain import Explanation

DEFAULT_ROLLBACK = 256
"""The number of tokens that can be taken back, unless the caller says otherwise."""


class _ByArrays:
    """What stands for quick calls where there are none (`quick_calls`). It takes the arrays.

    Numba would compile the engine once more for arrays that it makes of addresses.
    """

    @staticmethod
    def quick_fill(arrays: tuple[Words, Words, Words]) -> int:
        return int(entries.fill(arrays[0], arrays[1], 0, arrays[2]))

    @staticmethod
    def quick_read(arrays: tuple[Words, Words, Words], token: int) -> int:
        return int(entries.read_token(arrays[0], arrays[1], 0, token, True))

    @staticmethod
    def quick_step(arrays: tuple[Words, Words, Words], token: int) -> int:
        code = _ByArrays.quick_read(arrays, token)
        if code:
            return 2 * code
        code = _ByArrays.quick_fill(arrays)
        return 2 * code + 1 if code else 0


class Matcher(AllowedTokens, HeldText):
    """One text under a store: fill a bitmask, advance by a token, and so on.

    `store.matcher()` makes one.

    store : what the masks come from.
    max_rollback : the number of tokens that `rollback` can take back.

    Raises: MaskwrightError if the store is no `Store` of lexing `contextual` or `longest`, or
    max_rollback is no integer or negative; LimitError if so much history takes too much memory.

    A matcher is for one thread at a time. A call while another has not returned is a
    MaskwrightError and changes nothing. (Compiled code may let other threads run, and two calls in
    one text's memory would ruin it.) Threads that take turns may share a matcher; otherwise give
    each thread its own.
    """

    _what = "this matcher"
    _remedy = "store.matcher() or fork()"
    _quick: Any = quick_calls(entries, _ByArrays)

    def __init__(self, store: EngineTable, max_rollback: int = DEFAULT_ROLLBACK) -> None:
        super().__init__(store, 1, max_rollback)

    def _bound_to(self, table: Words, memory: Words, words: Words) -> Bound:
        if self._quick is _ByArrays:
            return (table, memory, words), table, memory, words
        addresses = np.zeros(constants.N_ADDRESSES, np.int64)
        entries.note_addresses(table, memory, words, addresses)
        return addresses, table, memory, words

    def fill(self, bitmask: Any) -> None:
        """Write the mask of the tokens allowed next, in place: zero after the end of the text.

        bitmask : (ceil(V / 32),) or longer (padded vocabularies), uint32 or int32; a contiguous
            NumPy array or a torch tensor on the CPU. Bit i of word w, the least significant first,
            is token 32 w + i. End-of-text tokens are allowed if the text is legal as a whole.

        Raises: MaskwrightError if the bitmask has another shape, dtype or device; DeadEndError if
        nothing can come next; LimitError if the text has too many parses, is nested too deeply or
        takes too much memory.
        """
        # PERF: this method and `advance` do themselves what `Alone` does
        if self._is_busy:
            self._refuse_sharing()
        self._is_busy = True
        try:
            # PERF: an array is checked only when it is new, since a decoder passes the same one at
            # each step
            if bitmask is not self._checked:
                self._take_bitmask(bitmask, ())
            code = self._quick.quick_fill(self._bound[0])
            if code:
                self._finish_quick_fill(code)
            if self._held is not None:
                self._narrow(self._held, self._words)
        finally:
            self._is_busy = False

    def advance(self, token: int) -> None:
        """Add a token to the text.

        token : an id; an end-of-text token ends the text.

        Raises: IllegalTokenError if the token is not allowed or no integer; LimitError as `fill`.
        The state is unchanged then.
        """
        if self._is_busy:
            self._refuse_sharing()
        self._is_busy = True
        try:
            number = token if token.__class__ is int and -1 <= token < 1 << 31 else self._id(token)
            if self._held is not None:
                self._advance_held(self._held, token, number)
                return
            code = self._quick.quick_read(self._bound[0], number)
            if code:
                self._finish_quick_read(token, number, code)
        finally:
            self._is_busy = False

    def _finish_quick_fill(self, code: int) -> None:
        """Do what a quick call left to be done of a `fill`, or raise its error."""
        if code == NOT_QUICK:
            code = entries.fill(self._table, self._memory, 0, self._words)
        if code:
            self._finish_fill(0, code, self._words)

    def _finish_quick_read(self, token: int, number: int, code: int) -> None:
        """Do what a quick call left to be done of an `advance`, or raise its error."""
        if code == NOT_QUICK:
            code = entries.read_token(self._table, self._memory, 0, number, True)
        code = self._retry(0, number, code)
        if code:
            self._refuse(0, token, code)

    def step(self, token: int, bitmask: Any) -> None:
        """`advance`, then `fill`, in one call.

        token, bitmask : as there.
        Raises: as both. After an error of `advance` nothing has changed; after one of `fill` the
        token has been added.
        """
        if self._is_busy:
            self._refuse_sharing()
        self._is_busy = True
        try:
            if bitmask is not self._checked:
                self._take_bitmask(bitmask, ())
            number = token if token.__class__ is int and -1 <= token < 1 << 31 else self._id(token)
            if self._held is not None:
                self._advance_held(self._held, token, number)
                self._fill(0, self._words)
                return
            code = self._quick.quick_step(self._bound[0], number)
            if code & 1:
                self._finish_quick_fill(code >> 1)
            elif code:
                self._finish_quick_read(token, number, code >> 1)
                self._fill(0, self._words)
        finally:
            self._is_busy = False

    def replay(self, tokens: Any) -> int:
        """Add tokens to the text as long as the masks have them. Returns how many were added.

        This is what a decoder would do, in one compiled call: at each token the whole mask is
        written, and the token is looked up in it. It stops at the first token that the mask lacks,
        or once the text has ended.

        tokens : (n,) integers.

        Raises: MaskwrightError if the tokens have another shape or dtype; IllegalTokenError if the
        vocabulary lacks one of them (nothing is read then); DeadEndError if nothing can come next;
        LimitError as `fill`. After the last two errors the tokens before stay added.
        """
        array = integer_row("tokens", tokens)
        with Alone(self):
            return self._replay(array)

    def _replay(self, array: npt.NDArray[Any]) -> int:
        ids = as_int64(array)
        wrong = np.flatnonzero((ids < 0) | (ids >= self.store.vocabulary.size))
        if len(wrong):
            self._refuse(0, int(array[wrong[0]]), constants.OUT_OF_RANGE)
        words = np.zeros(self._n_words, np.int32)
        if self._held is not None:
            return self._replay_held(ids, words)
        result = np.zeros(2, np.int64)
        at = 0
        while True:
            at = int(entries.replay(self._table, self._memory, ids, at, words, result))
            code, was_fill = result.tolist()
            if code in (constants.OK, constants.ILLEGAL):
                return at
            if was_fill:
                if code == constants.AFTER_END:
                    return at
                self._finish_fill(0, code, words)
            else:
                code = self._retry(0, int(ids[at]), code)
                if code != constants.OK:
                    self._refuse(0, int(ids[at]), code)
                at += 1

    def _replay_held(self, ids: npt.NDArray[np.int64], words: npt.NDArray[np.int32]) -> int:
        """`replay` while a terminal is held to names."""
        for at, token in enumerate(ids.tolist()):
            if self._memory[constants.FINISHED]:
                return at
            self._fill(0, words)
            if not words[token >> 5] >> (token & 31) & 1:
                return at
            if self._held is None:
                return at + self._replay(ids[at:])
            self._advance_held(self._held, token, token)
        return len(ids)

    def restrict(self, terminal: str, names: Iterable[str | bytes]) -> None:
        """Hold a terminal to some names: its next lexeme, if it comes next, must be one of them.

        It is the first lexeme that begins here or further on, ignored ones left out. If that is one
        of another terminal, such as a keyword or a number, it stays as free as it was, and so is
        all that comes after it. A lexeme under way is not meant: call this where the name is to
        begin. docs/names.md has all of it.

        terminal : its name in the grammar, such as "NAME".
        names : strs, or bytes. Those that are no lexemes of the terminal, such as keywords, cannot
            come. Without names the terminal cannot.

        A call replaces what was held here, but for a lexeme under way that is held and may yet be
        one of the terminal: it must be one of the names of both calls, and nothing is held behind
        it. Tokens that are taken back bring back what was held before them.

        Raises: UnknownNameError if the grammar lacks the terminal; MaskwrightError if it is ignored
        or made by the layout, if a name is empty or neither str nor bytes, if a lexeme under way is
        held that may be one of another terminal, or if the text has ended.

        Cost: of the first call under a store 0.1 s for python.lark, 1.2 s for the library's
        `python`; then a sort of the names.
        """
        self._restrict(0, terminal, names)

    def advance_bytes(self, data: bytes) -> None:
        """Add bytes to the text, as one token that can be taken back.

        data : any bytes; empty bytes change nothing.

        Raises: MaskwrightError if they are no bytes; IllegalTokenError if they are illegal here;
        LimitError as `fill`. The state is unchanged then.
        """
        self._advance_bytes(0, data)

    def try_bytes(self, data: bytes) -> bool:
        """`advance_bytes` if the bytes are legal here. Returns whether they are.

        Raises: LimitError as `fill`.
        """
        with Alone(self):
            code = self._read(0, data, True) if data else constants.OK
            if code in LIMITS:
                self._refuse(0, None, code, data)
            return code == constants.OK

    def try_fill(self, words: npt.NDArray[np.uint32]) -> bool:
        """`fill` of a checked bitmask. Returns whether a token may come.

        None may at a dead end, nor behind the end of the text.

        words : (n_words,) uint32.

        Raises: LimitError as `fill`.
        """
        view = words.view(np.int32)
        with Alone(self):
            if self._is_provisional:
                self._take_table()
            code = entries.fill(self._table, self._memory, 0, view)
            if code == constants.DEAD_END:
                return False
            if code:
                self._finish_fill(0, code, view)
            if code == constants.AFTER_END:
                return False
            return self._held is None or self._held.narrow(self, view)

    def is_allowed(self, token: int) -> bool:
        """Whether a token may come next, without making a mask.

        token : an id. Ids that the vocabulary lacks may not come.

        Raises: IllegalTokenError if it is no integer; LimitError as `fill`.
        """
        return self._is_allowed(0, token)

    def is_accepting(self) -> bool:
        """Whether the text is legal as a whole. Raises: LimitError as `fill`."""
        return self._is_accepting(0)

    def is_finished(self) -> bool:
        """Whether an end-of-text token has been read."""
        return self._is_finished(0)

    def rollback(self, n: int = 1) -> None:
        """Take back the last n tokens.

        Raises: MaskwrightError if n is no integer or negative, or fewer tokens are remembered
        (`max_rollback`).
        """
        self._rollback(0, n)

    def reset(self) -> None:
        """Put the text back to its start, with no history."""
        self._reset(0)

    def __repr__(self) -> str:
        kept = int(self._memory[constants.N_HISTORY])
        state = "ended" if self._memory[self._regions[0] + constants.FINISHED] else "open"
        of = f"{self.store.grammar.name} x {self.store.vocabulary.name}"
        return f"<Matcher {of}: {state}, {kept} of {self.max_rollback} tokens to roll back>"

    def fork(self) -> Matcher:
        """A second matcher in the same state, with the same history.

        Cost: O(the memory of the text: its stack, its history, and room for more of both).
        """
        other = Matcher(self.store, self.max_rollback)
        with Alone(self):
            entries.collect(self._table, self._memory, 0, np.empty(int(self._memory[constants.CAPACITY]), np.int32))
            other._bound = other._bound_to(other._table, self._memory.copy(), other._words)
            other._regions = self._regions.copy()
            if self._held is not None:
                other._held = self._held.copy(other)
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        made = restored, (type(self), (self.store, self.max_rollback), self._state())
        return made if self._held is None else (*made, self._held.to_state())

    __copy__ = fork

    def explain(self, token: int) -> Explanation:
        """Why a token may or may not come next, in words, for people.

        Raises: as `explain.explain_next`.

        Cost: slow; 2 s for the first call.
        """
        from maskwright.decoding.explain import explain_next

        found = explain_next(self, token)
        if self._held is None or found.verdict != "allowed" or self.is_allowed(token):
            return found
        return replace(found, verdict="refused", summary=f"{found.what} may not come next: {self._held.says(self)}")

    def forced_bytes(self, limit: int = MOST_BYTES) -> bytes:
        """The longest bytes with which every continuation of the text begins, at most `limit`.

        b"" if the text may end here. The matcher is left as it is. Cost: a mask a byte.

        Raises: MaskwrightError if `limit` is negative; LimitError as `fill`.
        """
        return forced_bytes(self, limit)

    def shortest_ending(self) -> Ending:
        """A shortest legal ending of the text so far, as bytes and as tokens.

        The end-of-text token is not among them.

        Raises: DeadEndError if the vocabulary cannot spell any ending; LimitError if the text is
        too ambiguous, the search would take too long or too much memory, or the ending that is
        found is not one of the names of a terminal that is held (`restrict`). `short_ending` is for
        such texts.
        """
        from maskwright.decoding.endings.ending import shortest_ending

        return self._fitting(shortest_ending(self))

    def short_ending(self) -> Ending:
        """A shortest ending if it is found soon, else one that is hardly longer.

        It is for callers that need some ending in time. `Ending.is_shortest` says which it is.

        Raises: DeadEndError if the vocabulary cannot spell any ending; LimitError if none is found.
        """
        if self._held is not None and self._held.place is not None:
            from maskwright.decoding.names.ending import short_ending as ending_of_names

            return ending_of_names(self, self._held)
        from maskwright.decoding.endings.ending import short_ending

        return short_ending(self)

    def min_bytes_left(self) -> int:
        """The length of the shortest ending, in bytes: what a completion budget must leave.

        Raises: DeadEndError if no bytes complete the text; LimitError as `shortest_ending`.
        """
        from maskwright.decoding.endings.ending import min_bytes_left

        if self._held is not None and self._held.place is not None:
            return len(self.shortest_ending().data)
        return min_bytes_left(self)
