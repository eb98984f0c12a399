"""What an engine is: the state of one text, to which `Matcher` and `Batch` hand on what is asked.

A new kind of constraint has one class: a `TextState` that reads tokens and bytes, writes masks, and
takes back what it has read. Arguments, errors in words, and one call at a time are not its concern.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import DeadEndError, IllegalTokenError, LimitError, MaskwrightError
from maskwright.decoding.engine import constants
from maskwright.decoding.engine.quick import NOTHING_QUICK
from maskwright.maskstore.vocabulary.masks import words_of

if TYPE_CHECKING:
    # PERF: what few decoders ask for is imported when they do
    from maskwright.decoding.endings.ending import Ending, Endings
    from maskwright.decoding.endings.states import States

Words = npt.NDArray[np.int32]

LIMITS = (constants.TOO_MANY, constants.SPLIT, constants.TOO_LONG)
"""Results that say nothing about whether the text is legal."""

_EXPLAINED = 1 << 16
"""The greatest offset of a wrong byte for which an error lists the bytes that could stand there.

To find them, all bytes before it are read 256 times.
"""
_SHOWN = 12
"""The ranges of bytes that an error lists."""


class TextState(ABC):
    """One text under a store. The results of methods are those of `engine.constants`.

    store : what the masks come from: it has a name, a vocabulary and n_words.
    max_rollback : how many tokens can be taken back, 0 or more.

    Methods without a body are what an engine must have. Nobody else uses a state during a call.
    """

    under: str
    """What errors call the constraint."""

    said: list[int | bytes] | None = None
    """The tokens and bytes of the text, in order; None if the engine has no need of them."""

    takes_whole = False
    """Whether some tokens may come for themselves, not for their bytes (`may_be_whole`)."""

    looks_further = False
    """Whether `shortest_ending` may find a shorter one than `short_ending`."""

    if_slow = ""
    """What to do if masks take milliseconds, which depends on the text; "" if they do not."""

    can_hold_names = False
    """Whether terminals can be held to names (`Matcher.restrict`)."""

    left_out = b""
    """The end of a suffix that no middle leads to, and that was left out (`decoding.infill`)."""

    holds_names = False
    """Whether a terminal is held to names (`Matcher.restrict`)."""

    is_apart = False
    """Whether an engine that works on all texts of a batch at once leaves it out."""

    instead_of_names = "write the names into the constraint"
    """What to do instead of `restrict`."""

    quick_fill: Any = staticmethod(NOTHING_QUICK.quick_fill)
    quick_read: Any = staticmethod(NOTHING_QUICK.quick_read)
    quick_step: Any = staticmethod(NOTHING_QUICK.quick_step)
    """The calls that keep the GIL (`engine.quick`), of the first of `bound`. What they read is not
    noted in `said`: the caller does so."""
    bound: tuple[Any, ...]
    """What quick calls read, (n,) int64, or None where there are none: addresses, in the order of
    the engine's `constants`. Behind it arrays that are there, (m,) int32 each, so that they live as
    long: table, memory and words for masks of a grammar; memory and words of a schema."""

    def __init__(self, store: Any, max_rollback: int) -> None:
        self.store, self.max_rollback, self.bound = store, max_rollback, (None,)

    @property
    def quick(self) -> Any:
        """What has the quick calls and `bound`."""
        return self

    def bind(self, words: Words) -> bool:
        """Have quick calls write their masks to these words from now on.

        Returns whether this must not be done again before the next mask.
        """
        return True

    def settle(self, added: int | bytes) -> None:  # noqa: B027 - most engines have nothing to do
        """After an error or an interruption: note in `said` what was being read, if it has been."""

    # -- what an engine has

    @abstractmethod
    def read_token(self, token: int, commit: bool) -> int:
        """Read a token, or an end of the text. commit : whether it is added if it may come."""

    @abstractmethod
    def read(self, data: bytes, commit: bool) -> int:
        """Read bytes, not empty, as one token to be taken back. commit : as for `read_token`."""

    @abstractmethod
    def can_end(self) -> bool:
        """Whether the text has ended, or is legal as a whole. Raises: LimitError."""

    @abstractmethod
    def is_finished(self) -> bool:
        """Whether an end-of-text token has been read."""

    @abstractmethod
    def remembered(self) -> int:
        """How many tokens can be taken back now."""

    @abstractmethod
    def undo(self, n: int) -> None:
        """Take back the last n tokens, 1 to `remembered()`."""

    @abstractmethod
    def reset(self) -> None:
        """Put the text back to its start, with no history."""

    @abstractmethod
    def become(self, other: Any) -> TextState:
        """Take over state and history of another text of the store. Returns what has them now."""

    def hand_to(self, place: TextState) -> TextState:
        """Have another text of the store `become` this one."""
        return place.become(self)

    @abstractmethod
    def copy(self) -> TextState:
        """A second text in the same state, with the same history."""

    # -- what follows from it, unless an engine knows more

    def fill(self, words: Words) -> int:
        """Write the mask of the tokens allowed next. words : (>= n_words,) int32.

        Cost: unless an engine knows better, that of reading each token.
        """
        size = self.store.vocabulary.size
        allowed = [token for token in range(size) if self.read_token(token, False) == constants.OK]
        words[:] = 0
        words[: self.store.n_words] = words_of(allowed, size).view(np.int32)
        return constants.AFTER_END if self.is_finished() else constants.OK if allowed else constants.DEAD_END

    def key(self) -> object:
        """Texts of a store with equal keys have the same future. Unless more is known, none are."""
        return object()

    def explain(self, token: int) -> Any:
        """The `Explanation` of a token, 0 or more; None if `why` says all."""
        return None

    def explain_bytes(self, data: bytes) -> Any:
        """The `Explanation` of bytes that come next; None if the words of a refusal say all."""
        return None

    def languages(self) -> Iterable[tuple[str, TextState]]:
        """The languages that the text may be in now, each by its name, and where it stands there.

        None where there is one language.
        """
        return ()

    @property
    def lexer_state(self) -> int:
        """The state of the lexer of a grammar's table; -1 for a text without lexemes."""
        return -1

    def ending_states(self) -> Callable[[], States]:
        """What makes the states in which endings of the store's texts are searched for.

        What is returned does not hold the store. Unless an engine knows better, all bytes are tried
        after texts of different keys.
        """
        from maskwright.decoding.endings.states import TextStates

        return partial(TextStates, self.under, None)

    def _endings(self) -> Endings:
        from maskwright.decoding.endings.ending import endings_of

        return endings_of(self)

    def short_ending(self) -> Ending:
        """An `Ending` that is found soon, though perhaps not a shortest one."""
        return self._endings().short(self)

    def shortest_ending(self) -> Ending:
        """A shortest `Ending`."""
        return self._endings().shortest(self)

    def min_bytes_left(self) -> int:
        """The length of a shortest ending, in bytes, whether or not the vocabulary can spell it."""
        return self._endings().min_bytes_left(self)

    def may_be_whole(self) -> bool:
        """Whether a token may come for itself, not for its bytes: of a part that is a set."""
        return False

    def try_whole(self, token: int) -> bool:
        """Add a token if it may come for itself, whatever its bytes. Returns whether it may."""
        return False

    def plain(self) -> TextState:
        """The text in its fastest state, if this one stands for more than is needed now."""
        return self

    def forget(self, remembered: int) -> None:  # noqa: B027
        """Let only so many tokens be taken back; a text may remember more all the same."""

    def dump(self) -> Any:
        """What a pickle keeps: what was said, and how much of it can be taken back."""
        assert self.said is not None
        return self.said.copy(), self.remembered()

    def load(self, state: Any) -> TextState:
        """Take what `dump` gave, at the start of the text. Returns what has it now."""
        for each in state[0]:
            code = self.read(each, True) if isinstance(each, bytes) else self.read_token(each, True)
            if code:
                raise MaskwrightError(
                    f"a pickled text under {self.under} cannot be read again: {each!r} is not allowed"
                )
        self.forget(state[1])
        return self

    def bytes_said(self) -> bytes:
        """The bytes of the text so far. Raises: MaskwrightError where they are not kept."""
        if self.said is None:
            raise MaskwrightError(f"the bytes of a text under {self.under} are not kept; keep them beside the matcher")
        tokens = self.store.vocabulary.tokens
        return b"".join(each if isinstance(each, bytes) else tokens[each] for each in self.said)

    def replay(self, ids: npt.NDArray[np.int64]) -> int:
        """Add tokens as long as the masks have them: `Matcher.replay` of ids of the vocabulary."""
        words = np.zeros(self.store.n_words, np.int32)
        for n, token in enumerate(ids.tolist()):
            if self.is_finished():
                return n
            if code := self.fill(words):
                self.refuse_fill(code)
            if not words[token >> 5] >> (token & 31) & 1:
                return n
            if code := self.read_token(token, True):
                self.refuse(token, code)
        return len(ids)

    @property
    def n_bytes(self) -> int:
        """The bytes of memory that the state takes now, of what the engine counts."""
        return 0

    # -- short cuts

    def reads(self, data: bytes) -> bool:
        """Whether bytes may come next; none may always. Raises: LimitError."""
        return not data or self.is_ok(self.read(data, False))

    def allows(self, data: bytes) -> bool:
        """As `reads`, for words: a text at a limit allows none."""
        return not data or self.read(data, False) == constants.OK

    def try_read(self, data: bytes) -> bool:
        """Add bytes if they may come; none change nothing. Raises: LimitError."""
        return not data or self.is_ok(self.read(data, True))

    def read_longest(self, data: bytes) -> int:
        """Add as many of some bytes as are legal. Returns how many.

        Raises: LimitError if it is met as all are read; of some of them it counts as illegal.
        Cost: twice that of reading them.
        """
        if self.try_read(data):
            return len(data)
        good, bad = 0, len(data)
        # INVARIANT: the text has read data[:good], and no legal text goes on with data[:bad]
        while bad - good > 1:
            middle = (good + bad) // 2
            if self.read(data[good:middle], True) == constants.OK:
                good = middle
            else:
                bad = middle
        return good

    def try_fill(self, words: Words) -> bool:
        """Write the mask. Returns whether a token may come. Raises: LimitError."""
        return self.is_ok(self.fill(words))

    def is_ok(self, code: int) -> bool:
        """Whether a result is OK. Raises: LimitError if it says nothing about the text."""
        if code in LIMITS:
            raise self.limit(code)
        return code == constants.OK

    def ignored_at_start(self) -> bytes:
        """The bytes of white space that change nothing where a text begins."""
        return b""

    # -- in words

    def where(self) -> str:
        """In which language the text is now, of several; "" if there is one."""
        return ""

    def limit(self, code: int) -> LimitError:
        """The error for one of LIMITS."""
        return LimitError(f"{self.under}: a limit was reached (result {code})")

    def refuse_fill(self, code: int) -> None:
        """Raise the error of a result of `fill`, unless it is none: DeadEndError or LimitError."""
        if code == constants.DEAD_END:
            raise DeadEndError(self.dead_end())
        if code in LIMITS:
            raise self.limit(code)

    def refuse(self, token: int | None, code: int, data: bytes = b"") -> NoReturn:
        """Raise the error of a result of reading a token, or bytes if it is None."""
        if code in LIMITS:
            raise self.limit(code)
        vocabulary = self.store.vocabulary
        what = f"bytes {data[:40]!r}" if token is None else f"token {clip(token)}"
        are, come = ("are", "come") if token is None else ("is", "comes")
        if token is not None and 0 <= token < vocabulary.size:
            data = vocabulary.tokens[token]
            what += f" ({data!r})"
        there = f" under {self.under}, in {where}" if (where := self.where()) else ""
        if code == constants.OUT_OF_RANGE:
            raise IllegalTokenError(f"{what} is out of range: the vocabulary has the ids 0 to {vocabulary.size - 1}")
        if code == constants.AFTER_END:
            raise IllegalTokenError(f"{what} {come} after the end of the text: reset() begins a new one")
        if code == constants.NOT_COMPLETE:
            raise IllegalTokenError(f"{what} ends the text, which is not complete here{there}")
        if code == constants.NO_TEXT:
            raise IllegalTokenError(f"{what} stands for no text, so it is never allowed{there}")
        raise IllegalTokenError(
            f"{what} {are} not legal here{there or f' under {self.under}'}; the state is unchanged. {self.expectation(data)}"
        )

    def why(self, token: int, number: int) -> str:
        """Why a token may or may not come next, in one sentence, as the error of `advance` says it.

        token, number : as the caller gave it, and what `as_id` makes of it.
        """
        code = self.read_token(number, False)
        if code == constants.OK:
            return f"token {token} ({self.store.vocabulary.tokens[number]!r}) may come next"
        try:
            self.refuse(token, code)
        except IllegalTokenError as error:
            return str(error)

    def expectation(self, data: bytes) -> str:
        """Which of some illegal bytes is the first wrong one, and which could stand there."""
        low, high = 0, len(data) - 1
        # every prefix of a legal prefix is legal, so bisection finds the longest
        while low < high:
            middle = (low + high + 1) // 2
            if self.allows(data[:middle]):
                low = middle
            else:
                high = middle - 1
        wrong = (
            f"Byte {low} of it, {data[low : low + 1]!r}, cannot come here{self.reason(data[low : low + 1], data[:low])}"
        )
        return wrong if low > _EXPLAINED else f"{wrong}; allowed: {listed_bytes(self.next_bytes(data[:low]))}"

    def reason(self, refused: bytes, before: bytes = b"") -> str:
        """Why a byte is refused, such as a missing member, for a message; "" where nobody says.

        before : legal bytes that were not read, after which it stands.
        """
        return ""

    def next_bytes(self, data: bytes = b"") -> bytes:
        """The bytes that may come behind some legal ones."""
        return bytes(byte for byte in range(256) if self.allows(data + bytes([byte])))

    def dead_end(self) -> str:
        """Why no token can come next."""
        vocabulary = self.store.vocabulary.name
        if self.can_end():
            return (
                f"the text is complete under {self.under} and no token can come behind it, but vocabulary {vocabulary} has no end-of-text "
                "token to say so: ask is_accepting before fill, or give the vocabulary one"
            )
        there = f", in {where}" if (where := self.where()) else ""
        return self._stuck(
            f"no token of vocabulary {vocabulary} can come next, and the text is not complete under {self.under}{there}.",
            self.next_bytes(),
        )

    def _stuck(self, fact: str, allowed: bytes) -> str:
        """Why no token goes on with a text that is not complete. allowed : the next bytes."""
        return (
            f"{fact} The bytes {allowed[:20]!r} may come next, but no token that begins with one of them is legal: use a vocabulary that "
            "has them"
        )


def listed_bytes(allowed: bytes) -> str:
    """Some of ascending bytes in words; "nothing" for none."""
    shown = _ranges(allowed)
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return f"{', '.join(shown[:_SHOWN]) or 'nothing'}{more}"


def _ranges(data: bytes) -> tuple[str, ...]:
    """Ascending bytes as ranges of neighbours of one kind: digits, letters, or anything else.

    >>> _ranges(b"+0123abc")
    ("'+'", "'0' to '3'", "'a' to 'c'")
    """
    runs: list[list[str]] = []
    last = (-1, -1)
    for byte in data:
        kind = 3 if byte >= 128 else 2 if chr(byte).isalpha() else 1 if chr(byte).isdigit() else 0
        if last != (byte - 1, kind):
            runs.append([])
        runs[-1].append(repr(chr(byte)) if byte < 128 else repr(bytes([byte])))
        last = byte, kind
    return tuple(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(run) for run in runs)


__all__ = ["LIMITS", "TextState", "listed_bytes"]
