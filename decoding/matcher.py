"""Matchers: the state of one text, and the masks of the tokens allowed next."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, Self, overload

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import as_integer, clip
from maskwright.analysis.errors import MaskwrightError
from maskwright.decoding.endings.forced import MOST_BYTES, forced_bytes
from maskwright.decoding.engine import arguments, constants
from maskwright.decoding.engine.alone import Alone, Shared, alone
from maskwright.decoding.engine.arguments import NO_BITMASK, as_id, as_int64, check_words, plain_bytes
from maskwright.decoding.engine.quick import NOTHING_QUICK
from maskwright.decoding.engine.state import TextState
from maskwright.decoding.engines import open_text
from maskwright.maskstore.vocabulary.masks import tokens_of

if TYPE_CHECKING:
    # PERF: what few decoders ask for is imported when they do
    from maskwright.decoding.endings.ending import Ending
    from maskwright.decoding.explain.explanation import Explanation

NO_WORDS = np.zeros(0, np.int32)
_OF_MASK = 1
"""The bit that a quick `step` sets in its result if that is the mask's, not the token's."""

DEFAULT_ROLLBACK = 256
"""The number of tokens that can be taken back, unless the caller says otherwise."""


class Matcher(Shared):
    """One text under a store of any kind: fill a bitmask, advance by a token, and so on.

    `store.matcher()` makes one.

    store : what the masks come from.
    max_rollback : the number of tokens that `rollback` can take back.
    text (an attribute) : the `TextState` that it hands on to.

    Raises: MaskwrightError if the store is none, or one of lexing `nfa`, or max_rollback is no
    integer or negative; LimitError if so much history takes too much memory.

    A matcher is for one thread at a time. A call while another has not returned is a
    MaskwrightError and changes nothing. Threads that take turns may share a matcher; otherwise give
    each thread its own. Matchers of JSON schemas and patterns of one vocabulary wait for each
    other, since they keep their masks in one place; a `Batch` with threads gives each its own.
    """

    _what = "this matcher"
    _remedy = "store.matcher() or fork()"

    def __init__(self, store: Any, max_rollback: int = DEFAULT_ROLLBACK) -> None:
        self._use(open_text(store, arguments.as_rollback(max_rollback)))

    @classmethod
    def of(cls, text: TextState) -> Self:
        """The matcher of a text, which nobody else uses."""
        found = object.__new__(cls)
        found._use(text)
        return found

    def _use(self, text: TextState) -> None:
        """Hand on to this text from now on."""
        # INVARIANT: quick calls are of this text, or there are none, whoever interrupts.
        # PERF: attributes of instances that no class has are looked up fastest
        quick = NOTHING_QUICK
        self._quick_fill, self._quick_read, self._quick_step = quick.quick_fill, quick.quick_read, quick.quick_step
        self._checked, self._words = NO_BITMASK, NO_WORDS
        self.store, self.max_rollback, self.text, self._said = text.store, text.max_rollback, text, text.said
        self._quick = quick = text.quick
        self._quick_fill, self._quick_read, self._quick_step = quick.quick_fill, quick.quick_read, quick.quick_step

    def _settle(self) -> None:
        """Hand on to a faster state of the text, if there is one now."""
        plain = self.text.plain()
        if plain is not self.text:
            self._use(plain)

    def fill(self, bitmask: Any) -> None:
        """Write the mask of the tokens allowed next, in place: zero after the end of the text.

        bitmask : (ceil(V / 32),) or longer (padded vocabularies), uint32 or int32; a contiguous
            NumPy array or a torch tensor on the CPU. Bit i of word w, the least significant first,
            is token 32 w + i. End-of-text tokens are allowed if the text is legal as a whole.

        Raises: MaskwrightError if the bitmask has another shape, dtype or device; DeadEndError if
        nothing can come next; LimitError if the text has too many parses, can be cut into host and
        parts in too many ways, is nested too deeply or takes too much memory.
        """
        # PERF: this method, `advance` and `step` do themselves what `Alone` does
        if self._is_busy:
            self._refuse_sharing()
        self._is_busy = True
        try:
            # PERF: an array is checked only when it is new, since a decoder passes the same one at
            # each step
            if bitmask is not self._checked:
                self._take_bitmask(bitmask)
            quick_fill = self._quick_fill
            if quick_fill(self._quick.bound[0]):
                self._fill_slowly()
        finally:
            self._is_busy = False

    def _take_bitmask(self, bitmask: Any) -> None:
        """Write to this bitmask from now on. Raises: as `check_words`."""
        self._checked = NO_BITMASK  # an interrupted call leaves none, so the next one checks again
        self._words = check_words(bitmask, (), self.store.n_words)
        if self.text.bind(self._words):
            self._checked = bitmask

    def _fill_slowly(self) -> None:
        """Do what a quick call left to be done of a `fill`, or raise its error."""
        if code := self.text.fill(self._words):
            self.text.refuse_fill(code)

    def advance(self, token: int) -> None:
        """Add a token to the text.

        token : an id; an end-of-text token ends the text.

        Raises: IllegalTokenError if the token is not allowed or no integer; LimitError as `fill`.
        The state is unchanged then.
        """
        if self._is_busy:
            self._refuse_sharing()
        self._is_busy = True
        number = -1
        try:
            number = token if token.__class__ is int and -1 <= token < 1 << 31 else as_id(token)
            quick_read = self._quick_read
            if quick_read(self._quick.bound[0], number):
                self._advance_slowly(token, number)
            elif self._said is not None:
                self._said.append(number)
        except BaseException:
            self.text.settle(number)
            raise
        finally:
            self._is_busy = False

    def _advance_slowly(self, token: int, number: int) -> None:
        """Do what a quick call left to be done of an `advance`, or raise its error."""
        code = self.text.read_token(number, True)
        if code:
            self.text.refuse(token, code)
        self._settle()

    def step(self, token: int, bitmask: Any) -> None:
        """`advance`, then `fill`, in one call.

        token, bitmask : as there.
        Raises: as both. After an error of `advance` nothing has changed; after one of `fill` the
        token has been added.
        """
        if self._is_busy:
            self._refuse_sharing()
        self._is_busy = True
        number = -1
        try:
            if bitmask is not self._checked:
                self._take_bitmask(bitmask)
            number = token if token.__class__ is int and -1 <= token < 1 << 31 else as_id(token)
            quick_step = self._quick_step
            code = quick_step(self._quick.bound[0], number)
            if code and not code & _OF_MASK:
                self._advance_slowly(token, number)
            elif self._said is not None:
                self._said.append(number)
            if code:
                if bitmask is not self._checked:  # `_settle`
                    self._take_bitmask(bitmask)
                self._fill_slowly()
        except BaseException:
            self.text.settle(number)
            raise
        finally:
            self._is_busy = False

    @overload
    def allowed_tokens(self, as_bytes: Literal[False] = False) -> list[int]: ...
    @overload
    def allowed_tokens(self, as_bytes: Literal[True]) -> list[bytes]: ...
    def allowed_tokens(self, as_bytes: bool = False) -> list[int] | list[bytes]:
        """The tokens allowed next, in the order of their ids; none after the end of the text.

        as_bytes : whether to return what the tokens spell in place of their ids. Tokens that end a
            text are b"" then.

        Raises: as `fill`.
        Cost: that of a mask, and O(V); fast loops pass a bitmask of their own to `fill`.
        """
        words = np.zeros(self.store.n_words, np.uint32)
        self.fill(words)
        found: list[int] = tokens_of(words).tolist()
        if not as_bytes:
            return found
        ends = set(self.store.vocabulary.eos)
        return [b"" if token in ends else self.store.vocabulary.tokens[token] for token in found]

    @alone
    def replay(self, tokens: Any) -> int:
        """Add tokens to the text as long as the masks have them. Returns how many were added.

        This is what a decoder would do, for grammars in one compiled call: at each token the whole
        mask is written, and the token is looked up in it. It stops at the first token that the mask
        lacks, or once the text has ended.

        tokens : (n,) integers.

        Raises: MaskwrightError if the tokens have another shape or dtype; IllegalTokenError if the
        vocabulary lacks one of them (nothing is read then); DeadEndError if nothing can come next;
        LimitError as `fill`. After the last two errors the tokens before stay added.
        """
        array = arguments.integer_row("tokens", tokens)
        ids = as_int64(array)
        wrong = np.flatnonzero((ids < 0) | (ids >= self.store.vocabulary.size))
        if len(wrong):
            self.text.refuse(int(array[wrong[0]]), constants.OUT_OF_RANGE)
        try:
            return self.text.replay(ids)
        finally:
            self._settle()

    @alone
    def restrict(self, terminal: str, names: Iterable[str | bytes]) -> None:
        """Hold a terminal to some names: its next lexeme, if it comes next, must be one of them.

        It is the first lexeme that begins here or further on, ignored ones left out. If that is one
        of another terminal, such as a keyword or a number, it stays as free as it was, and so is
        all that comes after it. A lexeme under way is not meant: call this where the name is to
        begin. docs/restrictions.md has all of it.

        terminal : its name in the grammar, such as "NAME".
        names : strs, or bytes. Those that are no lexemes of the terminal, such as keywords, cannot
            come. Without names the terminal cannot.

        A call replaces what was held here, but for a held lexeme under way that may yet be one of
        the terminal: it must be among the names of both calls, and nothing is held behind it.
        Tokens that are taken back bring back what was held before them.

        Raises: UnknownNameError if the grammar lacks the terminal; MaskwrightError if it is ignored
        or made by the layout, if a name is empty or neither str nor bytes, if a lexeme under way is
        held that may be one of another terminal, if the text has ended, or if the store is none of
        a grammar.

        Cost: of the first call under a store 0.1 s for python.lark, 1.2 s for the library's
        `python`; then a sort of the names.
        """
        from maskwright.decoding.names.text import restricted

        self._use(restricted(self.text, terminal, names))

    @property
    def holds_names(self) -> bool:
        """Whether a terminal of the text is held, here or before a token of its history."""
        return self.text.holds_names

    @property
    def left_out(self) -> bytes:
        """The end of a middle's suffix that was left out, since no middle leads to it."""
        return self.text.left_out

    @alone
    def hold_as(self, other: Matcher) -> None:
        """Hold what another matcher of the same text holds: to read a token again in pieces."""
        from maskwright.decoding.names.text import holding_as

        self._use(holding_as(self.text, other.text))

    @alone
    def advance_bytes(self, data: bytes) -> None:
        """Add bytes to the text, as one token that can be taken back.

        data : any bytes; empty bytes change nothing.

        Raises: MaskwrightError if they are no bytes; IllegalTokenError if they are illegal here;
        LimitError as `fill`. The state is unchanged then.
        """
        data = plain_bytes("the text", data)
        if data and (code := self.text.read(data, True)):
            self.text.refuse(None, code, data)
        self._settle()

    @alone
    def try_bytes(self, data: bytes) -> bool:
        """`advance_bytes` if the bytes are legal here. Returns whether they are.

        Raises: LimitError as `fill`.
        """
        found = self.text.try_read(plain_bytes("the text", data))
        self._settle()
        return found

    @alone
    def try_fill(self, words: npt.NDArray[np.uint32]) -> bool:
        """`fill` of a checked bitmask. Returns whether a token may come.

        None may at a dead end, nor behind the end of the text.

        words : (n_words,) uint32.

        Raises: LimitError as `fill`.
        """
        return self.text.try_fill(words.view(np.int32))

    def is_allowed(self, token: int) -> bool:
        """Whether a token may come next, without making a mask.

        token : an id. Ids that the vocabulary lacks may not come.

        Raises: IllegalTokenError if it is no integer; LimitError as `fill`.
        """
        if self._is_busy:
            self._refuse_sharing()
        self._is_busy = True
        try:
            return self.text.is_ok(self.text.read_token(as_id(token), False))
        finally:
            self._is_busy = False

    def is_accepting(self) -> bool:
        """Whether the text is legal as a whole. Raises: LimitError as `fill`."""
        if self._is_busy:
            self._refuse_sharing()
        self._is_busy = True
        try:
            return self.text.can_end()
        finally:
            self._is_busy = False

    def is_finished(self) -> bool:
        """Whether an end-of-text token has been read."""
        if self._is_busy:
            self._refuse_sharing()
        return self.text.is_finished()

    def rollback(self, n: int = 1) -> None:
        """Take back the last n tokens.

        Raises: MaskwrightError if n is no integer or negative, or fewer tokens are remembered
        (`max_rollback`).
        """
        if self._is_busy:
            self._refuse_sharing()
        self._is_busy = True
        try:
            known = self.text.remembered()
            if n.__class__ is not int:
                n = as_integer("the number of tokens to roll back", n)
            if not 0 <= n <= known:
                raise MaskwrightError(
                    f"cannot roll back {clip(n)} tokens: {known} are remembered (max_rollback is {self.max_rollback})"
                )
            if n:
                self.text.undo(n)
                self._settle()
        finally:
            self._is_busy = False

    @alone
    def reset(self) -> None:
        """Put the text back to its start, with no history."""
        self.text.reset()
        self._settle()

    @alone
    def fork(self) -> Matcher:
        """A second matcher in the same state, with the same history.

        Cost: O(the memory of the text: its stack, its history, and room for more of both).
        """
        return type(self).of(self.text.copy())

    def become(self, other: Matcher) -> None:
        """Take over the state and the history of another matcher of the same store.

        Raises: MaskwrightError if its store is another one, or, of grammars, its max_rollback.
        """
        if other.store is not self.store:
            raise MaskwrightError("a matcher can take over the state of another one of the same store only")
        if other is not self:
            with Alone(other), Alone(self):
                try:
                    self._use(other.text.hand_to(self.text))
                except BaseException as error:
                    if not isinstance(error, MaskwrightError):  # an interrupt: the engine may be done
                        self._use(other.text.hand_to(self.text))
                    raise

    __copy__ = fork

    def __deepcopy__(self, memo: Any) -> Matcher:
        return self.fork()

    @alone
    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.store, self.max_rollback, self.text.dump())

    @alone
    def remembered(self) -> int:
        """How many tokens `rollback` can take back now."""
        return self.text.remembered()

    @alone
    def said(self) -> bytes:
        """The bytes of the text so far.

        Raises: MaskwrightError for a grammar's text, whose bytes are not kept.
        """
        return self.text.bytes_said()

    @property
    def n_bytes(self) -> int:
        """The bytes of memory that the text's state takes now, of what the engine counts."""
        return self.text.n_bytes

    @alone
    def explain(self, token: int) -> Explanation:
        """Why a token may or may not come next, in words, for people.

        Raises: IllegalTokenError if it is no integer; StoreError if a grammar's store has another
        lexer or parser than this version builds.

        Cost: slow; of a grammar 2 s for the first call, of a schema some 10 us a byte of the text.
        """
        from maskwright.decoding.explain.explanation import Explanation

        number = as_id(token)
        found: Explanation | None = None if number < 0 else self.text.explain(number)
        if found is None:
            is_allowed = self.text.read_token(number, False) == constants.OK
            verdict: Any = "allowed" if is_allowed else "refused"
            found = Explanation(self.store.name, f"token {clip(token)}", verdict, self.text.why(token, number))
        return found

    @alone
    def why(self, token: int) -> str:
        """Why a token may or may not come next, in one sentence, as the error of `advance` says it.

        Raises: IllegalTokenError if it is no integer; LimitError as `fill`.
        """
        return self.text.why(token, as_id(token))

    def forced_bytes(self, limit: int = MOST_BYTES) -> bytes:
        """The longest bytes with which every continuation of the text begins, at most `limit`.

        b"" if the text may end here. The matcher is left as it is. Cost: a mask a byte.

        Raises: MaskwrightError if `limit` is negative; LimitError as `fill`.
        """
        return forced_bytes(self, limit)

    @alone
    def shortest_ending(self) -> Ending:
        """A shortest legal ending of the text so far, as bytes and as tokens.

        The end-of-text token is not among them. `Ending.is_shortest` says whether no ending is
        shorter: of a composition it is made of the shortest endings of the part and the host under
        way, and need not be.

        Raises: DeadEndError if the vocabulary cannot spell any ending; LimitError if the text is
        too ambiguous, the search would take too long or too much memory, or the ending that is
        found is not one of the names of a terminal that is held (`restrict`). `short_ending` is for
        such texts.
        """
        return self.text.shortest_ending()

    @alone
    def short_ending(self) -> Ending:
        """A shortest ending if it is found soon, else one that is hardly longer.

        It is for callers that need some ending in time. `Ending.is_shortest` says which it is.

        Raises: DeadEndError if the vocabulary cannot spell any ending; LimitError if none is found.
        """
        return self.text.short_ending()

    @alone
    def min_bytes_left(self) -> int:
        """The length of the shortest ending, in bytes: what a completion budget must leave.

        Raises: DeadEndError if no bytes complete the text; LimitError as `shortest_ending`.
        """
        return self.text.min_bytes_left()

    def __repr__(self) -> str:
        state = "ended" if self.text.is_finished() else f"in {where}" if (where := self.text.where()) else "open"
        of = f"{self.store.name} x {self.store.vocabulary.name}"
        return f"<Matcher {of}: {state}, {self.text.remembered()} of {self.max_rollback} tokens to roll back>"


def _restored(cls: type[Matcher], store: Any, max_rollback: int, state: Any) -> Matcher:
    """A pickled matcher."""
    return cls.of(open_text(store, max_rollback).load(state))
