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
from maskwright.decoding.endings.ending import Ending, Endings
from maskwright.decoding.endings.ending_parser import State
from maskwright.decoding.endings.states import TextStates
from maskwright.decoding.engine import arguments, constants
from maskwright.decoding.engine.arguments import text_bytes
from maskwright.decoding.engine.state import LIMITS, TextState, listed_bytes
from maskwright.decoding.engines import open_text
from maskwright.decoding.infill.hole import has_reach, tables_of
from maskwright.maskstore.vocabulary.masks import tokens_of, words_of

Words = npt.NDArray[np.int32]

_LOOK = 32
"""The bytes of a suffix that are read first: most that are refused are refused there."""


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
    suffix: bytes
    is_exact: bool
    is_open: bool
    left_out: bytes
    said: list[int | bytes]
    n_places: int
    is_end: bool

    def held_by(self, text: TextState) -> MiddleText:
        """The middle, from the text behind it."""
        found = MiddleText(text.copy().load(self.start), self.suffix, self.is_exact, self.is_open, self.left_out)
        found.base, found.said = text, self.said.copy()
        found.places = deque([_Place() for _ in range(self.n_places)], text.max_rollback + 1)
        if self.is_end:
            found.places[-1] = _Place(is_end=True)
        return found


class MiddleText(TextState):
    """One middle. Its bytes and tokens are those behind the prefix.

    base : the text without its suffix. places : after each token that can be taken back.
    is_open : whether anything may follow the suffix, of which `left_out` was left out.
    hole : what still comes to the suffix; None if only the middle's end is asked about.
    """

    said: list[int | bytes]
    is_apart = True

    def __init__(
        self, base: TextState, suffix: bytes, is_exact: bool, is_open: bool = False, left_out: bytes = b""
    ) -> None:
        super().__init__(base.store, base.max_rollback)
        self.under = f"{base.under} before the suffix {clip(suffix)}" if suffix else base.under
        self._start, self.suffix, self.is_open, self.left_out = base, suffix, is_open, left_out
        self.hole = tables_of(base.store).hole(suffix, is_open) if is_exact else None
        states = partial(TextStates, base.under, None)
        self._found = self.hole.endings if self.hole else Endings(states, base.store.vocabulary)
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
        place = self.places[-1]
        assert self.hole is not None
        if place.state is None:
            place.state = self.hole.tables.states.start(self.base)  # type: ignore[arg-type]
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
        hole, state = self.hole, None
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
        vocabulary, hole = self.store.vocabulary, self.hole
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
        data = self.suffix
        if not data:
            return self.is_open or self.base.can_end()
        # PERF: a copy takes longer than to read what most suffixes are refused for
        if not self.base.reads(data[:_LOOK]):
            return False
        if self.is_open:
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

    def hand_to(self, place: TextState) -> TextState:
        return self.copy()

    def copy(self) -> MiddleText:
        found = object.__new__(MiddleText)
        vars(found).update(vars(self))
        found.base, found.said, found.places = self.base.copy(), self.said.copy(), self.places.copy()
        return found

    def dump(self) -> Any:
        """As `TextState.dump`: of the text of a grammar, and what makes the middle of it."""
        if not hasattr(self.base, "texts"):
            raise MaskwrightError(f"a middle under {self.under} cannot be pickled; keep its prefix, suffix and tokens")
        middle = self._start.dump(), self.suffix, self.hole is not None, self.is_open, self.left_out
        return *self.base.dump(), Kept(*middle, self.said, len(self.places), self.is_finished())

    def key(self) -> object:
        return self.base.key(), self.is_finished(), self.suffix, self.is_open, self.hole is None

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
        return self._found

    def short_ending(self) -> Ending:
        """As `shortest_ending`: the least text between here and the suffix."""
        return self.shortest_ending()


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
    MaskwrightError if exact masks are asked for where they cannot be told, or a cut without them,
    or for a composition.

    Cost: a tabulation of the suffix, if exact; one for each bit of its length if it is broken.
    """
    if text.takes_whole:
        raise MaskwrightError(
            f"{text.under}: a middle is for one grammar, schema or pattern, and this is a composition"
        )
    if exact is False and if_broken == "cut":
        raise MaskwrightError(
            "if_broken='cut' takes what can follow some middle, and with exact=False nobody knows what can: leave one of them out"
        )
    can_tell = exact is not False and has_reach(text)
    if not can_tell and (exact or if_broken == "cut"):
        raise MaskwrightError(
            f"{text.under}: which tokens lead to a suffix can be told of grammars only, and only if a newline may have any column and the "
            "rules have brackets in pairs, so that neither exact=True nor if_broken='cut' can be had; with exact=False a middle ends where "
            "it may, and may run into a dead end before"
        )
    found = MiddleText(text, suffix, can_tell)
    if (hole := found.hole) is None:
        return found
    with hole.tables.lock:
        if hole.leads(found.state):
            return found
        good = hole.longest_suffix(found.state)
        if if_broken == "cut":
            good = suffix.rfind(b"\n", 0, good) + 1 or good
            return MiddleText(text, suffix[:good], True, True, suffix[good:])
        why = "all of it can follow, but the text may not end behind it"
        if good < len(suffix):
            could = hole.could_stand(found.state, good)
            why = f"whatever comes before, {_at(suffix, good)}" + (f"; {listed_bytes(could)} could" if could else "")
    raise DeadEndError(
        f"{text.under}: no middle leads to the suffix: {why}. Correct the suffix, or take what can follow of it (if_broken='cut')"
    )


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
