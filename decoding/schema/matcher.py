"""Matchers of JSON schemas and patterns: the state of one text, and its masks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import IllegalTokenError, MaskwrightError
from maskwright.decoding.engine.allowed import AllowedTokens
from maskwright.decoding.engine.alone import Alone
from maskwright.decoding.engine.arguments import NO_BITMASK, as_id, as_int64, check_words, integer_row
from maskwright.decoding.engine.forced import MOST_BYTES, forced_bytes
from maskwright.decoding.engine.quick import NOT_QUICK
from maskwright.decoding.names.refused import NoNamesInSchemas
from maskwright.decoding.schema import constants
from maskwright.decoding.schema.text import SchemaText
from maskwright.decoding.schema.workspace import Workspace
from maskwright.maskstore.schema.compiled import SchemaTables

if TYPE_CHECKING:
    # PERF: what few decoders ask for is imported when they do
    from maskwright.decoding.endings.ending import Ending
    from maskwright.decoding.explain.explanation import Explanation

DEFAULT_ROLLBACK = 256
"""The number of tokens that can be taken back, unless the caller says otherwise."""


class SchemaMatcher(AllowedTokens, NoNamesInSchemas, SchemaText):
    """One text under a schema or pattern: fill a bitmask, advance by a token, and so on.

    `store.matcher()` makes one. It has the methods of `Matcher`, with the same meaning.

    store : what the masks come from.
    max_rollback : the number of tokens that `rollback` can take back.
    workspace : what makes the masks; None for the one that all texts of the vocabulary share.

    Raises: MaskwrightError if the store is no store of a schema or pattern, or max_rollback is no
    integer or negative; LimitError if so much history takes too much memory.

    A matcher is for one thread at a time. Matchers of one vocabulary wait for each other, since
    they keep their masks in one place; a `Batch` with threads gives each thread its own.
    """

    def __init__(
        self, store: SchemaTables, max_rollback: int = DEFAULT_ROLLBACK, workspace: Workspace | None = None
    ) -> None:
        super().__init__(store, max_rollback, workspace)
        self._checked = NO_BITMASK

    def fill(self, bitmask: Any) -> None:
        """Write the mask of the tokens allowed next, in place: zero after the end of the text.

        bitmask : (ceil(V / 32),) or longer (padded vocabularies), uint32 or int32; a contiguous
            NumPy array or a torch tensor on the CPU. Bit i of word w, the least significant first,
            is token 32 w + i. End-of-text tokens are allowed if the text is legal as a whole.

        Raises: MaskwrightError if the bitmask has another shape, dtype or device; DeadEndError if
        no token can come next; LimitError if the text has too many readings or takes too much
        memory.
        """
        if self._is_busy:
            self._refuse_sharing()
        self._is_busy = True
        try:
            if bitmask is not self._checked:
                self._take_bitmask(bitmask)
            if self._quick.quick_fill(self._bound[0]):
                self._fill(self._words)
        finally:
            self._is_busy = False

    def _take_bitmask(self, bitmask: Any) -> None:
        self._checked = NO_BITMASK  # for whoever interrupts here
        self._bound = self._bound_to(self._memory, check_words(bitmask, (), self.store.n_words))
        self._checked = bitmask

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
            number = token if token.__class__ is int and -1 <= token < 1 << 31 else as_id(token)
            try:
                code = self._quick.quick_read(self._bound[0], number)
                if code:
                    self._advance_slowly(token, number, code)
                self._said.append(number)
            except BaseException:
                self._note_said(number)
                raise
        finally:
            self._is_busy = False

    def _advance_slowly(self, token: int, number: int, code: int) -> None:
        """Do what a quick call left to be done, or raise the error that its code means."""
        if code in (constants.NO_ROOM, NOT_QUICK):
            code = self._read_token(number, True)
        if code:
            self._refuse(token, code)

    def step(self, token: int, bitmask: Any) -> None:
        """`advance`, then `fill`. token, bitmask : as there.

        Raises: as both. After an error of `advance` nothing has changed; after one of `fill` the
        token has been added.
        """
        if self._is_busy:
            self._refuse_sharing()
        self._is_busy = True
        try:
            number = token if token.__class__ is int and -1 <= token < 1 << 31 else as_id(token)
            if bitmask is not self._checked:
                self._take_bitmask(bitmask)
            try:
                code = self._quick.quick_step(self._bound[0], number)
                if code and not code & 1:
                    self._advance_slowly(token, number, code >> 1)
                self._said.append(number)
            except BaseException:
                self._note_said(number)
                raise
            if code:
                self._fill(self._words)
        finally:
            self._is_busy = False

    def replay(self, tokens: Any) -> int:
        """Add tokens to the text as long as the masks have them. Returns how many were added.

        At each token the whole mask is written, and the token is looked up in it.

        tokens : (n,) integers.

        Raises: MaskwrightError if the tokens have another shape or dtype; IllegalTokenError if the
        vocabulary lacks one of them (nothing is read then); DeadEndError and LimitError as `fill`.
        """
        array = integer_row("tokens", tokens)
        ids = as_int64(array)
        wrong = np.flatnonzero((ids < 0) | (ids >= self.store.vocabulary.size))
        if len(wrong):
            self._refuse(int(array[wrong[0]]), constants.OUT_OF_RANGE)
        words = np.zeros(self.store.n_words, np.uint32)
        for n, token in enumerate(ids.tolist()):
            if self.is_finished():
                return n
            self.fill(words)
            if not words[token >> 5] >> np.uint32(token & 31) & 1:
                return n
            self.advance(token)
        return len(ids)

    def advance_bytes(self, data: bytes) -> None:
        """Add bytes to the text, as one token that can be taken back.

        data : any bytes; empty bytes change nothing.

        Raises: MaskwrightError if they are no bytes; IllegalTokenError if they are illegal here;
        LimitError as `fill`. The state is unchanged then.
        """
        with Alone(self):
            self._advance_bytes(data)

    def try_bytes(self, data: bytes) -> bool:
        """`advance_bytes` if the bytes are legal here. Returns whether they are.

        Raises: LimitError as `fill`.
        """
        with Alone(self):
            if not data:
                return True
            try:
                code = self._read_bytes(data, True)
                if code == constants.OK:
                    self._said.append(data)
            except BaseException:
                self._note_said(data)
                raise
            if code == constants.TOO_MANY:
                self._refuse_readings()
            return code == constants.OK

    def try_fill(self, words: npt.NDArray[np.uint32]) -> bool:
        """`fill` of a checked bitmask. Returns whether a token may come.

        None may at a dead end, nor behind the end of the text.

        words : (n_words,) uint32.

        Raises: LimitError as `fill`.
        """
        with Alone(self):
            code = self._fill_code(words.view(np.int32))
            if code == constants.DEAD_END:
                return False
            if code != constants.OK:
                self._refuse_fill(code)
            return not self._memory[constants.FINISHED]

    def is_allowed(self, token: int) -> bool:
        """Whether a token may come next, without making a mask.

        token : an id. Ids that the vocabulary lacks may not come.

        Raises: IllegalTokenError if it is no integer; LimitError as `fill`.
        """
        with Alone(self):
            code = self._read_token(as_id(token), False)
            if code == constants.TOO_MANY:
                self._refuse_readings()
            return code == constants.OK

    def is_accepting(self) -> bool:
        """Whether the text is legal as a whole."""
        with Alone(self):
            return self._can_end()

    def is_finished(self) -> bool:
        """Whether an end-of-text token has been read."""
        self._need_free()
        return bool(self._memory[constants.FINISHED])

    def rollback(self, n: int = 1) -> None:
        """Take back the last n tokens.

        Raises: MaskwrightError if n is no integer or negative, or fewer tokens are remembered
        (`max_rollback`).
        """
        with Alone(self):
            self._rollback(n)

    def reset(self) -> None:
        """Put the text back to its start, with no history."""
        with Alone(self):
            self._call(self._entries.begin, self._table, self._memory, self._work, self.max_rollback)
            self._said.clear()

    def fork(self) -> SchemaMatcher:
        """A second matcher in the same state, with the same history.

        Cost: O(the memory of the text).
        """
        other = SchemaMatcher(self.store, 0, self._workspace)
        other.become(self)
        return other

    def become(self, other: SchemaMatcher) -> None:
        """Take over the state and the history of another matcher of the same store.

        Raises: MaskwrightError if its store is another one.
        """
        if other.store is not self.store:
            raise MaskwrightError("a matcher can take over the state of another one of the same store only")
        if other is self:
            return
        with Alone(other):
            if self._is_busy:
                self._refuse_sharing()
            self._is_busy = True
            try:
                engine = other._entries.copy(self._workspace) if self.store.compares_items else self._entries
                bound, said = self._bound_to(other._memory.copy(), self._words), other._said.copy()
                self.max_rollback, self._bound, self._said, self._entries = other.max_rollback, bound, said, engine
            finally:
                self._is_busy = False

    __copy__ = fork

    def __deepcopy__(self, memo: Any) -> SchemaMatcher:
        return self.fork()

    def said_so_far(self) -> list[int | bytes]:
        """The tokens and the bytes that were added, in order; what was taken back is not there."""
        with Alone(self):
            return self._said.copy()

    def remembered(self) -> int:
        """How many tokens `rollback` can take back now."""
        with Alone(self):
            return int(self._memory[constants.N_HISTORY])

    def read_again(self, said: list[int | bytes], remembered: int | None = None) -> None:
        """Add what `said_so_far` has told.

        remembered : how many tokens `rollback` could take back then, which are fewer behind a
            rollback than the text has; None for all that `max_rollback` lets it keep.

        Raises: as `advance`.
        """
        for each in said:
            if isinstance(each, bytes):
                self.advance_bytes(each)
            else:
                self.advance(each)
        if remembered is not None:
            self._memory[constants.N_HISTORY] = remembered

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.store, self.max_rollback, self.said_so_far(), self.remembered())

    def explain(self, token: int) -> Explanation:
        """Why a token may or may not come next, in words, for people.

        Raises: IllegalTokenError if it is no integer.
        Cost: the text is read again, at some 10 us a byte.
        """
        from maskwright.decoding.explain.explanation import Explanation
        from maskwright.decoding.explain.schema_explain import explain_schema_id

        with Alone(self):
            number = as_id(token)
            if number < 0:
                what = f"token {clip(token)}"
                said = f"{what} is out of range: the vocabulary has the ids 0 to {self.store.vocabulary.size - 1}"
                return Explanation(self.store.name, what, "refused", said)
            if self._memory[constants.FINISHED]:
                said = f"token {number} comes after the end of the text: reset() begins a new one"
                return Explanation(self.store.name, f"token {number}", "refused", said)
            return explain_schema_id(self.store, self.said(), number)

    def why(self, token: int) -> str:
        """Why a token may or may not come next, in one sentence, as the error of `advance` says it.

        Raises: IllegalTokenError if it is no integer; LimitError as `fill`.
        """
        with Alone(self):
            number = as_id(token)
            code = self._read_token(number, False)
            if code == constants.OK:
                return f"token {token} ({self.store.vocabulary.tokens[number]!r}) may come next"
            try:
                self._refuse(token, code)
            except IllegalTokenError as error:
                return str(error)

    def forced_bytes(self, limit: int = MOST_BYTES) -> bytes:
        """The longest bytes with which every continuation of the text begins, at most `limit`.

        b"" if the text may end here. The matcher is left as it is. Cost: a mask a byte.

        Raises: MaskwrightError if `limit` is negative; LimitError as `fill`.
        """
        return forced_bytes(self, limit)

    def shortest_ending(self) -> Ending:
        """A shortest legal ending of the text so far, as bytes and as tokens.

        The end-of-text token is not among them.

        Raises: DeadEndError if the vocabulary cannot spell any ending; LimitError if the search
        would take too long.
        """
        return self._ending(False)

    def short_ending(self) -> Ending:
        """A legal ending that is short: the shortest one, unless that would take long to find.

        It is for callers that need some ending in time. `Ending.is_shortest` says which it is.

        Raises: as `shortest_ending`.
        """
        return self._ending(True)

    def _ending(self, may_be_longer: bool) -> Ending:
        """A shortest ending. may_be_longer : whether a short one will do."""
        from maskwright.decoding.endings.ending import Ending
        from maskwright.decoding.endings.schema_ending import ending_after

        with Alone(self):
            if self._memory[constants.FINISHED] or self._can_end():
                return Ending(b"", ())
            return ending_after(self.store, self.said(), may_be_longer=may_be_longer)

    def min_bytes_left(self) -> int:
        """The length of the shortest ending, in bytes. Raises: as `shortest_ending`."""
        from maskwright.decoding.endings.schema_ending import bytes_left_after

        with Alone(self):
            if self._memory[constants.FINISHED] or self._can_end():
                return 0
            return bytes_left_after(self.store, self.said())

    def __repr__(self) -> str:
        kept = int(self._memory[constants.N_HISTORY])
        state = "ended" if self._memory[constants.FINISHED] else "open"
        of = f"{self.store.name} x {self.store.vocabulary.name}"
        return f"<Matcher {of}: {state}, {kept} of {self.max_rollback} tokens to roll back>"


def _restored(
    cls: type[SchemaMatcher], store: SchemaTables, max_rollback: int, said: list[int | bytes], remembered: int
) -> SchemaMatcher:
    """A pickled matcher: the text is read again."""
    matcher = cls(store, max_rollback)
    matcher.read_again(said, remembered)
    return matcher
