"""Matchers that follow the rows of token ids that a decoding loop passes.

Between two calls the loop may do anything with its rows. A row may have one token more than before,
several, or fewer. Rows may change their order, be copied, dropped and come back. So everything is
checked: a row belongs to a generation if it begins with one of its prompts, and all of its tokens
after the prompt are read. If a row may be either a text under way or another prompt, that is an
error, never a guess.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import IllegalTokenError, MaskwrightError
from maskwright.decoding.matcher import Matcher

if TYPE_CHECKING:
    from maskwright.decoding.engines import AnyTable

Ids = npt.NDArray[np.int64]

N_LEFT = 8
"""Generations that were left for another and are remembered, so that two at a time are noticed."""

RESET = "call reset() before a generation with another prompt"


@dataclass(frozen=True, slots=True)
class Rules:
    """Where texts begin, and what they are read with.

    stores : one, or one for each sequence.
    prefixes : text before the constrained tokens; one, or one for each sequence.
    prompt_lengths, constrain_prompt, max_rollback, drafts : see `MaskwrightLogitsProcessor`.
    """

    stores: tuple[AnyTable, ...]
    prefixes: tuple[bytes, ...]
    prompt_lengths: int | Sequence[int] | None
    constrain_prompt: bool
    max_rollback: int
    drafts: bool | None

    @property
    def is_told(self) -> bool:
        """Whether the caller said where texts begin; if not, after the rows of the first call."""
        return self.constrain_prompt or self.prompt_lengths is not None


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a row's text begins.

    store : the store of the row.
    prefix : text before the constrained tokens.
    start : the position at which the text begins, from the beginning of `prompt`.
    prompt : (L,) int64; the first call's row.
    first_text : the position in `prompt` of the first token that stands for text. Padding and the
        begin-of-text token come before.
    """

    store: AnyTable
    prefix: bytes
    start: int
    prompt: Ids
    first_text: int

    def start_in(self, row: Ids, first_text: int, may_move: bool) -> int | None:
        """Where the text begins in a row that begins with the prompt; None if the row does not.

        row : (L,) int64.
        first_text : the position of the first token in `row` that stands for text.
        may_move : ignore what stands before that token, such as padding.
        """
        width = len(self.prompt)
        if np.array_equal(row[:width], self.prompt):
            return self.start
        behind = self.prompt[self.first_text :]
        if may_move and len(behind) and np.array_equal(row[first_text : first_text + len(behind)], behind):
            return self.start + first_text - self.first_text
        return None


class Prefixes:
    """The texts of one generation after the other.

    rules : where texts begin, and what they are read with.

    It has a list of each of these, with one member for each row of the last call:

    matchers : the text of the row.
    has_ended : whether the text has ended.
    is_stray : whether the row ends in a proposal that is not legal, so that the text is shorter.
    """

    def __init__(self, rules: Rules) -> None:
        vocabulary = rules.stores[0].vocabulary
        self._rules = rules
        self._eos = frozenset(vocabulary.eos)
        self._has_text = np.array([bool(token) for token in vocabulary.tokens], bool)
        self.reset()

    def reset(self) -> None:
        """Forget all texts. The next call begins a generation."""
        self._origins: list[Origin] = []
        self._last: Ids | None = None
        self._left: deque[Ids] = deque(maxlen=N_LEFT)
        self._forget_rows()

    def distrust(self) -> None:
        """After an interruption, make the next call read its texts from their start.

        Some rows may then be ahead of others.
        """
        self._forget_rows()

    def _forget_rows(self) -> None:
        self.matchers: list[Matcher] = []
        self.has_ended: list[bool] = []
        self.is_stray: list[bool] = []
        self._sources: list[Origin] = []
        self._starts: list[int] = []
        self._n_read: list[int] = []

    @property
    def has_begun(self) -> bool:
        """Whether there was a generation since the last `reset`."""
        return self._last is not None

    def follow(self, ids: Ids) -> None:
        """Bring each row's matcher to the end of the row.

        ids : (B, L) int64.

        Raises: IllegalTokenError for tokens that are not legal; MaskwrightError if it is not known
        where a row's text begins.
        """
        try:
            if not self._follow_a_step(ids):
                self._follow_any(ids)
        except BaseException:
            self.distrust()
            raise

    def origin(self, sequence: Ids, row: int, rows: int) -> tuple[Origin, int]:
        """The origin of a sequence that a generation returned, and where its text begins there.

        sequence : (L,) int64.
        row, rows : it is row `row` of `rows`.

        Raises: MaskwrightError if the sequence does not begin with a prompt of the last generation.
        """
        likely = row * len(self._origins) // rows if rows else 0
        found = self._find(sequence, likely)
        if found is None:
            raise MaskwrightError(
                f"sequence {row} does not begin with a prompt of the last generation, so it is not known where its text begins"
            )
        return found

    def advance(self, matcher: Matcher, row: int, position: int, token: int) -> None:
        """Read a token.

        matcher : the text of the row.
        row, position : where the token is, for the message.

        Raises: IllegalTokenError if the grammar refuses the token.
        """
        try:
            matcher.advance(token)
        except IllegalTokenError as error:
            raise IllegalTokenError(
                f"row {row}, position {position}: {error}. The masks refused this token, so something else wrote it: a prompt that is not "
                "text of the grammar, a prompt that continues where the last generation stopped (then call reset() first), another logits "
                "processor that comes later, or a draft (then pass drafts=True)"
            ) from None

    def _follow_a_step(self, ids: Ids) -> bool:
        """Follow rows that have one token more than at the last call; False for other rows."""
        last = self._last
        if last is None or len(ids) != len(self.matchers) or ids.shape[1] != last.shape[1] + 1:
            return False
        if len(last) != len(ids) or not np.array_equal(ids[:, :-1], last):
            return False
        length = ids.shape[1]
        for start, n, ended in zip(self._starts, self._n_read, self.has_ended, strict=True):
            if not ended and start + n != length - 1:
                return False
        self._last = ids.copy()
        for row, token in enumerate(ids[:, -1].tolist()):
            if not self.has_ended[row]:
                self._read(row, [token], is_committed=False)
                continue
            end = self._starts[row] + self._n_read[row]
            is_padding = (
                length <= end + 1 or token == ids[row, -2]
            )  # PERF: padding usually repeats one token, and then is not checked again
            if not is_padding:
                self._read(row, ids[row, end:].tolist(), is_committed=False)
        return True

    def _follow_any(self, ids: Ids) -> None:
        """Follow rows that may have changed in any way."""
        last = self._last
        found = [self._find(ids[row], row, len(ids)) for row in range(len(ids))]
        missing = [row for row, one in enumerate(found) if one is None]
        known = [(row, *one) for row, one in enumerate(found) if one is not None]
        goes_on = next((row for row, _, start in known if ids.shape[1] > start), None)
        if last is None or goes_on is None:
            self._begin(ids)
            return
        if missing:
            if not self._rules.is_told:
                raise MaskwrightError(
                    f"row {goes_on} continues a prompt of the last generation, but row {missing[0]} does not, so it is not known where "
                    f"their texts begin; {RESET}"
                )
            self._begin(ids)
            return
        is_another = not self._rules.is_told and ids.shape[1] > last.shape[1] + 1
        if is_another and all(self._has_text_after_end(ids[row, start:]) for row, _, start in known):
            self._begin(ids)  # text after the end of every text: a conversation's next prompt
            return
        self._rearrange(last, ids, [origin for _, origin, _ in known], [start for _, _, start in known])

    def _find(self, tokens: Ids, likely: int, rows: int | None = None) -> tuple[Origin, int] | None:
        """The origin whose prompt a row begins with, and where its text begins there.

        likely : the number of the origin that is tried first.
        rows : the number of rows of the call; None for a row of `origin`.
        """
        may_move = not self._rules.is_told
        first_text = self._first_text(tokens) if may_move else 0
        if likely < len(self._origins) and (rows is None or rows == len(self._origins)):
            own = self._origins[likely]
            start = own.start_in(tokens, first_text, may_move=False)
            if start is not None:
                return own, start
        fitting: dict[tuple[int, bytes, int], tuple[Origin, int]] = {}
        for moves in (False, True) if may_move else (False,):
            for origin in self._origins:
                start = origin.start_in(tokens, first_text, moves)
                if start is not None:
                    fitting.setdefault((id(origin.store), origin.prefix, start), (origin, start))
            if fitting:
                break
        if len(fitting) > 1 and any(start < len(tokens) for _, start in fitting.values()):
            raise MaskwrightError(
                "the rows have changed, and sequences of different stores, prefixes or prompt_lengths have the same prompt, so it is not "
                f"known which of them a row belongs to; keep the rows in their order, or {RESET}"
            )
        return next(iter(fitting.values()), None)

    def _begin(self, ids: Ids) -> None:
        """Begin a generation."""
        rules, (rows, length), last = self._rules, ids.shape, self._last
        if last is not None:
            self._check_not_under_way(ids, last)
        lengths = rules.prompt_lengths
        origins = []
        for row in range(rows):
            if rules.constrain_prompt:
                start = self._first_text(ids[row])
            elif lengths is None:
                start = length
            elif isinstance(lengths, (int, np.integer)):
                start = int(lengths)
            else:
                start = int(lengths[sequence_of(row, rows, len(lengths), "prompt_lengths")])
            if not 0 <= start <= length:
                raise MaskwrightError(
                    f"row {row}: prompt_lengths says {start}, but the prompt has {length} positions, padding included"
                )
            store = rules.stores[sequence_of(row, rows, len(rules.stores), "stores")]
            prefix = rules.prefixes[sequence_of(row, rows, len(rules.prefixes), "prefixes")]
            origins.append(Origin(store, prefix, start, ids[row].copy(), self._first_text(ids[row])))
        if last is not None and not np.array_equal(ids, last):
            self._left.append(last)
        self._origins = origins
        self._forget_rows()
        self._last = ids.copy()
        self._rearrange(self._last, ids, origins, [origin.start for origin in origins])

    def _check_not_under_way(self, ids: Ids, last: Ids) -> None:
        """Raise if tokens that look like a new prompt are a text under way."""
        has_read = any(self._n_read)
        if has_read and ids.shape == last.shape and np.array_equal(ids[:, :-1], last[:, 1:]):
            raise MaskwrightError(
                "the rows have lost their first token since the last call, so it is not known where their texts begin; pass the whole "
                f"rows, or {RESET}"
            )
        if self._rules.is_told:
            return
        for left in self._left:
            if left.shape == (len(ids), ids.shape[1] - 1) and np.array_equal(ids[:, :-1], left):
                raise MaskwrightError(
                    "the rows continue an earlier generation, not the last one, but a processor serves one generation at a time; make "
                    f"one for each generation under way, or {RESET}"
                )

    def _rearrange(self, last: Ids, ids: Ids, origins: list[Origin], starts: list[int]) -> None:
        """Let each row go on from a row of the last call that shares its beginning, if any."""
        n_old, n_read = len(self.matchers), self._n_read
        read = [last[row, self._starts[row] : self._starts[row] + n_read[row]] for row in range(n_old)]
        old = [(id(origin.store), origin.prefix) for origin in self._sources]
        whole: dict[tuple[tuple[int, bytes], bytes], int] = {}
        for row in range(n_old):
            whole.setdefault((old[row], read[row].tobytes()), row)
        lengths = sorted(set(n_read) - {0}, reverse=True)
        wanted = [ids[row, start:] for row, start in enumerate(starts)]
        sources: list[int | None] = []
        for row, origin in enumerate(origins):
            key = (id(origin.store), origin.prefix)
            own = row if row < n_old and old[row] == key else None
            if own is None or shared(read[own], wanted[row]) < len(read[own]):
                known = ((key, wanted[row][:n].tobytes()) for n in lengths if n <= len(wanted[row]))
                own = next((whole[one] for one in known if one in whole), own)
            sources.append(own)
        taken = {row for row, source in enumerate(sources) if row == source}
        before, ended = self.matchers, self.has_ended
        matchers, counts, has_ended = [], [], []
        for row, (source, origin) in enumerate(zip(sources, origins, strict=True)):
            if source is None:
                matchers.append(Matcher(origin.store, self._rules.max_rollback))
            elif source == row or source not in taken:
                matchers.append(before[source])
                taken.add(source)
            else:
                matchers.append(before[source].fork())
            counts.append(0 if source is None else n_read[source])
            has_ended.append(source is not None and ended[source])
        self.matchers, self._n_read, self.has_ended = matchers, counts, has_ended
        self.is_stray = [False] * len(ids)
        self._sources, self._starts, self._last = origins, starts, ids.copy()
        is_committed = ids.shape[1] <= last.shape[1]
        for row, source in enumerate(sources):
            if source is None:
                self._restart(row)
            else:
                self._back_to(row, shared(read[source], wanted[row]))
            self._read(row, wanted[row][self._n_read[row] :].tolist(), is_committed)

    def _restart(self, row: int) -> None:
        """Set the row's text back to its start, after the prefix."""
        matcher = self.matchers[row]
        matcher.reset()
        try:
            matcher.advance_bytes(self._sources[row].prefix)
        except IllegalTokenError as error:
            raise IllegalTokenError(f"row {row}: the prefix is not the beginning of a legal text: {error}") from None
        self._n_read[row], self.has_ended[row], self.is_stray[row] = 0, False, False

    def _back_to(self, row: int, n: int) -> None:
        """Take back all but the first n tokens of a row.

        If the matcher does not remember them, the text is set back to its start.
        """
        back = self._n_read[row] - n
        if not back:
            return
        try:
            self.matchers[row].rollback(back)
            self._n_read[row], self.has_ended[row] = n, False
        except MaskwrightError:
            self._restart(row)

    def _read(self, row: int, tokens: list[int], is_committed: bool) -> None:
        """Read tokens up to the end of the text.

        is_committed : whether they have been accepted, so that none of them is a draft.
        """
        matcher = self.matchers[row]
        for index, token in enumerate(tokens):
            position = self._starts[row] + self._n_read[row]
            try:
                if self.has_ended[row]:
                    self._check_behind_end(row, tokens[index:])
                    return
                self.advance(matcher, row, position, token)
            except IllegalTokenError:
                if is_committed or not (_is_drafting() if self._rules.drafts is None else self._rules.drafts):
                    raise
                self.is_stray[row] = not self.has_ended[row]
                return
            self._n_read[row] += 1
            self.has_ended[row] = token in self._eos

    def _check_behind_end(self, row: int, tokens: list[int]) -> None:
        """Raise unless only padding comes after the end of a text.

        Padding is tokens without text, or one token repeated.
        """
        if self._is_text(tokens):
            raise IllegalTokenError(
                f"row {row}, position {self._starts[row] + self._n_read[row]}: the text had ended, but more text follows it; {RESET}"
            )

    def _has_text_after_end(self, tokens: Ids) -> bool:
        """Whether text comes after the end of a text."""
        ends = np.isin(tokens, list(self._eos))
        behind = tokens[int(ends.argmax()) + 1 :] if ends.any() else tokens[:0]
        return self._first_text(behind) < len(behind)

    def _is_text(self, tokens: list[int]) -> bool:
        """Whether tokens after an end are more than padding."""
        size = len(self._has_text)
        return len(set(tokens)) > 1 and any(not 0 <= token < size or self._has_text[token] for token in tokens)

    def _first_text(self, ids: Ids) -> int:
        """The position of the first token that stands for text; the length if there is none.

        Padding and the begin-of-text token come before it.
        """
        inside = (ids >= 0) & (ids < len(self._has_text))
        stands = ~inside | self._has_text[np.where(inside, ids, 0)]
        return int(stands.argmax()) if stands.any() else len(ids)


def sequence_of(row: int, rows: int, n: int, what: str) -> int:
    """The sequence that a row belongs to, from 0.

    transformers puts the beams or samples of a sequence one after the other.

    row, rows : it is row `row` of `rows`.
    n : the number of sequences.
    what : what is given for each sequence, for the message.

    Raises: MaskwrightError if `rows` is not a multiple of `n`.
    """
    if not n or rows % n:
        raise MaskwrightError(f"{n} {what} are given for {rows} rows; expected one for all, or one for each sequence")
    return row * n // rows


def shared(first: Ids, second: Ids) -> int:
    """The length of the longest common prefix.

    first, second : (n,) int64.
    """
    n = min(len(first), len(second))
    differs = first[:n] != second[:n]
    return int(differs.argmax()) if differs.any() else n


def _is_drafting() -> bool:
    """Whether transformers' assisted decoding called.

    It asks for the logits that follow proposals that it will refuse. No argument tells that. So the
    stack is looked at, but only if a token is not legal.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "_assisted_decoding":
            return True
        frame = frame.f_back
    return False


__all__ = ["Origin", "Prefixes", "Rules", "sequence_of", "shared"]
