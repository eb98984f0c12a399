"""The text of a middle: what comes between a prefix that was read and a suffix that will be."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import as_boolean, clip, need_choice
from maskwright.analysis.errors import DeadEndError, IllegalTokenError, MaskwrightError
from maskwright.decoding.endings._ending_kernels import COSTLY
from maskwright.decoding.endings.ending import Ending, Endings
from maskwright.decoding.endings.ending_parser import State
from maskwright.decoding.endings.states import TextStates
from maskwright.decoding.engine import arguments, constants
from maskwright.decoding.engine.arguments import text_bytes
from maskwright.decoding.engine.state import LIMITS, TextState, listed_bytes
from maskwright.decoding.engines import open_text
from maskwright.decoding.infill.hole import Hole, has_reach, tables_of
from maskwright.maskstore.vocabulary.masks import tokens_of, words_of

Words = npt.NDArray[np.int32]

_LOOK = 32
"""The bytes of a suffix that are read first: most that are refused are refused there."""


class Suffix(NamedTuple):
    """What comes behind a middle.

    data : its bytes. is_open : whether anything may follow them, since some were left out.
    left_out : these. hole : what still comes to it; None if only the middle's end is asked about.
    endings : shortest middles.
    """

    data: bytes
    is_open: bool
    left_out: bytes
    hole: Hole | None
    endings: Endings


class _Place:
    """What is known of the text after a token.

    state : of lexer and parser, for the hole. can_end : whether the middle may end here. Both are
    None until they are asked for. is_end : whether the token ended the middle.
    """

    __slots__ = ("can_end", "is_end", "state")

    def __init__(self, state: State | None = None, is_end: bool = False) -> None:
        self.state, self.is_end = state, is_end
        self.can_end: bool | None = is_end or None


class Kept(NamedTuple):
    """What a pickle keeps beside the text itself: its start, the suffix, what was said, its end."""

    start: Any
    data: bytes
    is_open: bool
    left_out: bytes
    is_exact: bool
    said: list[int | bytes]
    n_places: int
    is_end: bool

    def held_by(self, text: TextState) -> MiddleText:
        """The middle, from the text behind it."""
        start = text.copy().load(self.start)
        found = MiddleText(start, suffix_of(start, self.data, self.is_open, self.left_out, self.is_exact))
        found.base, found.said = text, self.said.copy()
        found.places = deque([_Place() for _ in range(self.n_places)], text.max_rollback + 1)
        if self.is_end:
            found.places[-1] = _Place(is_end=True)
        return found


class MiddleText(TextState):
    """One middle. Its bytes and tokens are those behind the prefix.

    base : the text without its suffix. places : after each token that can be taken back.
    """

    said: list[int | bytes]

    def __init__(self, base: TextState, suffix: Suffix) -> None:
        super().__init__(base.store, base.max_rollback)
        self.under = f"{base.under} before the suffix {clip(suffix.data)}" if suffix.data else base.under
        self.suffix, self._start, self.left_out = suffix, base, suffix.left_out
        self.reset()

    @property
    def lexer_state(self) -> int:
        return self.base.lexer_state

    @property
    def n_bytes(self) -> int:
        return self.base.n_bytes

    @property
    def state(self) -> State:
        """Where lexer and parser stand. There must be a hole."""
        place, hole = self.places[-1], self.suffix.hole
        assert hole is not None
        if place.state is None:
            place.state = hole.tables.states.start(self.base)  # type: ignore[arg-type]
        return place.state

    def reset(self) -> None:
        """As `TextState.reset`: to the end of the prefix."""
        self.base, self.said = self._start.copy(), []
        self.places = deque([_Place()], self.max_rollback + 1)

    # -- reading

    def read_token(self, token: int, commit: bool) -> int:
        vocabulary = self.store.vocabulary
        if not 0 <= token < vocabulary.size:
            return constants.OUT_OF_RANGE
        if token not in vocabulary.eos:
            return self._read(self.base.read_token, token, vocabulary.tokens[token], commit)
        if self.is_finished():
            return constants.AFTER_END
        if not self.can_end():
            return constants.NOT_COMPLETE
        if commit:
            self._add(token, _Place(is_end=True))
        return constants.OK

    def read(self, data: bytes, commit: bool) -> int:
        return self._read(self.base.read, data, data, commit)

    def _read(self, read: Callable[[Any, bool], int], what: Any, data: bytes, commit: bool) -> int:
        """Read a token or bytes, if some middle goes on with them."""
        if self.is_finished():
            return constants.AFTER_END
        hole, state = self.suffix.hole, None
        code = read(what, commit and hole is None)
        if hole is not None and code == constants.OK:
            with hole.tables.lock:
                state = hole.read(self.state, data)
                if state is None or not hole.leads(state):
                    return constants.ILLEGAL
            if commit:
                code = read(what, True)
        if commit and code == constants.OK:
            self._add(what, _Place(state))
        return code

    def _add(self, what: int | bytes, place: _Place) -> None:
        self.said.append(what)
        self.places.append(place)

    def fill(self, words: Words) -> int:
        if self.is_finished():
            words[:] = 0
            return constants.AFTER_END
        code = self.base.fill(words)
        if code in LIMITS:
            return code
        if code == constants.DEAD_END:
            words[:] = 0
        vocabulary, hole = self.store.vocabulary, self.suffix.hole
        n_words = self.store.n_words
        ends = words_of(list(vocabulary.eos), vocabulary.size).view(np.int32)
        words[:n_words] &= ~ends
        if hole is not None:
            ids = tokens_of(words[:n_words].view(np.uint32))
            if len(ids):
                with hole.tables.lock:
                    keep = hole.narrow(self.state, ids)
                if not keep.all():
                    words[:n_words] = words_of(ids[keep].tolist(), vocabulary.size).view(np.int32)
        if self.can_end():
            words[:n_words] |= ends
        return constants.OK if words.any() else constants.DEAD_END

    def can_end(self) -> bool:
        """Whether prefix, middle and suffix are a text.

        Cost: that of reading the suffix, up to where it is wrong; once at each place.
        """
        place = self.places[-1]
        if place.can_end is None:
            place.can_end = self._asked()
        return place.can_end

    def _asked(self) -> bool:
        data, is_open = self.suffix.data, self.suffix.is_open
        if not data:
            return is_open or self.base.can_end()
        # PERF: a copy takes longer than to read what most suffixes are refused for
        if not self.base.reads(data[:_LOOK]):
            return False
        if is_open:
            return self.base.reads(data)
        there = self.base.copy()
        return there.try_read(data) and there.can_end()

    def is_finished(self) -> bool:
        return self.places[-1].is_end

    def remembered(self) -> int:
        return len(self.places) - 1

    def undo(self, n: int) -> None:
        if n > self.is_finished():
            self.base.undo(n - self.is_finished())
        for _ in range(n):
            self.places.pop()
        del self.said[-n:]

    def become(self, other: Any) -> TextState:
        found: TextState = other.copy()
        return found

    def copy(self) -> MiddleText:
        found = object.__new__(MiddleText)
        vars(found).update(vars(self))
        found.base, found.said, found.places = self.base.copy(), self.said.copy(), self.places.copy()
        return found

    def dump(self) -> Any:
        """As `TextState.dump`: of the text of a grammar, and what makes the middle of it."""
        if not hasattr(self.base, "texts"):
            raise MaskwrightError(f"a middle under {self.under} cannot be pickled; keep its prefix, suffix and tokens")
        data, is_open, left_out, hole, _ = self.suffix
        kept = Kept(
            self._start.dump(), data, is_open, left_out, hole is not None, self.said, len(self.places), self.is_finished()
        )  # fmt: skip
        return *self.base.dump(), kept

    def key(self) -> object:
        return self.base.key(), self.is_finished(), self.suffix.data, self.suffix.is_open

    # -- in words

    def languages(self) -> Iterable[tuple[str, TextState]]:
        return self.base.languages()

    def where(self) -> str:
        return self.base.where()

    def reason(self, refused: bytes, before: bytes = b"") -> str:
        if self.base.allows(before + refused):
            return ", since no middle leads from there to the suffix"
        return self.base.reason(refused, before)

    # -- endings

    def _endings(self) -> Endings:
        return self.suffix.endings

    def _asked_alone(self, ask: Callable[[], Any]) -> Any:
        hole = self.suffix.hole
        if hole is None:
            return ask()
        with hole.tables.lock:
            return ask()

    def short_ending(self) -> Ending:
        """As `shortest_ending`."""
        return self.shortest_ending()

    def shortest_ending(self) -> Ending:
        """The least text between here and the suffix."""
        found: Ending = self._asked_alone(super().shortest_ending)
        return found

    def min_bytes_left(self) -> int:
        found: int = self._asked_alone(super().min_bytes_left)
        return found


def suffix_of(text: TextState, data: bytes, is_open: bool, left_out: bytes, is_exact: bool) -> Suffix:
    """What is known of a suffix behind texts like this one."""
    if is_exact:
        hole = Hole(tables_of(text.store), data, is_open)
        return Suffix(data, is_open, left_out, hole, hole.endings)
    endings = Endings(partial(TextStates, text.under, None), text.store.vocabulary)
    return Suffix(data, is_open, left_out, None, endings)


def middle_of(
    text: TextState, suffix: bytes, exact: bool | None = None, if_broken: Literal["refuse", "cut"] = "refuse"
) -> MiddleText:
    """The middle between a text, which nobody else uses, and a suffix.

    exact : whether masks have only tokens from which some middle leads to the suffix. None: where
        that can be told (`has_reach`).
    if_broken : what is done if no middle leads to the suffix. "refuse": it is an error. "cut": the
        longest beginning of it that can follow is taken, up to a line's end if there is one; what
        is left out is in `left_out`, and anything may stand there.

    Raises: DeadEndError if there is no middle, with the byte of the suffix that is impossible;
    MaskwrightError if exact masks are asked for where they cannot be told, or for a composition.

    Cost: a tabulation of the suffix, if exact; one for each bit of its length if it is broken.
    """
    if text.takes_whole:
        raise MaskwrightError(
            f"{text.under}: a middle is for one grammar, schema or pattern, and this is a composition"
        )
    can_tell = exact is not False and has_reach(text)
    if not can_tell and (exact or (exact is None and if_broken == "cut")):
        raise MaskwrightError(
            f"{text.under}: which tokens lead to a suffix can be told of grammars only, and only if a newline may have any column and the "
            "rules have brackets in pairs, so that neither exact=True nor if_broken='cut' can be had; with exact=False a middle ends where "
            "it may, and may run into a dead end before"
        )
    if not can_tell:
        return MiddleText(text, suffix_of(text, suffix, False, b"", False))
    found = MiddleText(text, suffix_of(text, suffix, False, b"", True))
    hole = found.suffix.hole
    assert hole is not None
    with hole.tables.lock:
        if hole.leads(found.state):
            return found
        good = hole.longest_suffix(found.state)
        if if_broken == "cut":
            line = suffix.rfind(b"\n", 0, good) + 1
            good = line or good
            return MiddleText(text, suffix_of(text, suffix[:good], True, suffix[good:], True))
    raise DeadEndError(_no_middle(found, suffix, good))


def open_middle(
    store: Any,
    max_rollback: int,
    *,
    prefix: str | bytes = b"",
    suffix: str | bytes = b"",
    exact: bool | None = None,
    if_broken: Literal["refuse", "cut"] = "refuse",
) -> MiddleText:
    """The middle between a prefix and a suffix, as `store.matcher(prefix=..., suffix=...)` has it.

    prefix, suffix : a str or bytes.
    exact, if_broken : as of `middle_of`.

    Raises: IllegalTokenError if no text begins with the prefix, with its first wrong byte; as
    `open_text` and `middle_of`; MaskwrightError for arguments of other types.
    """
    expected = "a str or bytes"
    before, after = (text_bytes(*each, expected) for each in (("the prefix", prefix), ("the suffix", suffix)))
    need_choice("if_broken", if_broken, ("refuse", "cut"))
    exact = exact if exact is None else as_boolean("exact", exact)
    text = open_text(store, arguments.as_rollback(max_rollback))
    good = text.read_longest(before)
    if good < len(before):
        allowed = listed_bytes(text.next_bytes())
        raise IllegalTokenError(
            f"no text of {text.under} begins with the prefix: {_at(before, good)}; allowed there: {allowed}. Correct the text before the "
            "hole, or begin the hole earlier"
        )
    return middle_of(text, after, exact, if_broken)


def _at(data: bytes, good: int) -> str:
    """In words, that the byte behind some good ones is wrong."""
    line, column = data.count(b"\n", 0, good) + 1, good - data.rfind(b"\n", 0, good)
    behind = f", behind {data[max(0, good - 20) : good]!r}" if good else ""
    return f"{data[good : good + 1]!r} cannot stand at byte {good} of it, its line {line}:{column}{behind}"


def _no_middle(middle: MiddleText, suffix: bytes, good: int) -> str:
    """Why no middle leads to a suffix. good : the bytes of it that can follow some middle."""
    there = f"{middle.base.under}: no middle leads to the suffix: "
    do = "Correct the suffix, or take what can follow of it (if_broken='cut')"
    if good == len(suffix):
        return f"{there}all of it can follow, but the text may not end behind it. {do}"
    hole, allowed = middle.suffix.hole, bytearray()
    assert hole is not None
    if hole.tables.cells.layout is not None:  # PERF: a tabulation of each takes too long there
        return f"{there}whatever comes before, {_at(suffix, good)}. {do}"
    for byte in range(256):
        reach = hole.tables.reach((suffix[:good] + bytes((byte,)), b""))
        if hole.tables.least(reach, reach.graph.free(middle.state[1]), middle.state) < COSTLY:
            allowed.append(byte)
    return f"{there}whatever comes before, {_at(suffix, good)}; {listed_bytes(bytes(allowed))} could. {do}"
