"""Several texts under one composition: they are read and masked together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from maskwright.analysis.arguments import as_integer, clip
from maskwright.analysis.errors import LimitError, MaskwrightError
from maskwright.decoding.composition.matcher import DEFAULT_ROLLBACK, ComposedMatcher
from maskwright.decoding.engine.allowed import AllowedInSlots
from maskwright.decoding.engine.alone import Alone, Shared
from maskwright.decoding.engine.arguments import as_int64, check_words, integers
from maskwright.decoding.names.refused import NoNamesInCompositions
from maskwright.maskstore.composition.tables import ComposedTables

if TYPE_CHECKING:
    from maskwright.decoding.endings.ending import Ending

MOST_TEXTS = 1 << 14
"""The most texts of a batch; each takes 100 kB or more."""


class ComposedBatch(AllowedInSlots, NoNamesInCompositions, Shared):
    """Several texts under a composition, each in its own slot. It has the methods of `Batch`.

    store : what the masks come from.
    size : the number of slots, which are numbered from 0.
    max_rollback : the number of tokens of each text that `rollback` can take back.

    Raises: MaskwrightError and LimitError as `ComposedMatcher`; MaskwrightError also if size is no
    integer or less than 1; LimitError if it is greater than MOST_TEXTS.
    """

    _what = "this batch"
    _remedy = "store.batch(size)"

    def __init__(self, store: ComposedTables, size: int, max_rollback: int = DEFAULT_ROLLBACK) -> None:
        size = as_integer("size", size)
        if size < 1:
            raise MaskwrightError(f"size is {clip(size)}; expected at least 1")
        if size > MOST_TEXTS:
            raise LimitError(f"a batch of {clip(size)} texts is more than {MOST_TEXTS:,}; make smaller batches")
        self.store, self.size, self.max_rollback = store, size, max_rollback
        first = ComposedMatcher(store, max_rollback)
        self._texts = [first, *(first.fork() for _ in range(size - 1))]

    def fill(self, bitmasks: Any, slots: Sequence[int] | None = None) -> None:
        """Write the masks of the tokens allowed next, in place.

        bitmasks : (size, ceil(V / 32)) or wider, uint32 or int32; a C-contiguous NumPy array or a
            torch tensor on the CPU.
        slots : the rows to write; None: all. Rows of texts that have ended become zero.

        Raises: MaskwrightError if the bitmasks have another shape, dtype or device, or a slot is
        out of range; DeadEndError and LimitError as `ComposedMatcher.fill`.
        """
        with Alone(self):
            chosen = range(self.size) if slots is None else self._slots(slots)
            rows = check_words(bitmasks, (self.size,), self.store.n_words)
            for slot in chosen:
                with self._naming(slot):
                    self._texts[slot].fill(rows[slot])

    @contextmanager
    def _naming(self, slot: int) -> Iterator[None]:
        """Errors inside say which slot they are of."""
        try:
            yield
        except MaskwrightError as error:
            raise type(error)(f"slot {slot}: {error}") from error

    def _slot(self, slot: int) -> int:
        slot = as_integer("a slot", slot)
        if not 0 <= slot < self.size:
            raise MaskwrightError(f"slot {clip(slot)} is out of range: the batch has the slots 0 to {self.size - 1}")
        return slot

    def _slots(self, slots: Sequence[int]) -> list[int]:
        try:
            chosen = list(slots)
        except TypeError:
            raise MaskwrightError(f"slots is {clip(slots)}; expected a list of slot numbers") from None
        return [self._slot(slot) for slot in chosen]

    def advance(self, tokens: Any) -> None:
        """Add a token to each text.

        tokens : (size,) integers; -1 leaves a text alone.

        Raises: MaskwrightError if the tokens have another shape or dtype; IllegalTokenError for the
        first slot whose token is not allowed; LimitError as `ComposedMatcher.fill`. Texts whose
        tokens are not allowed are unchanged; all others have advanced.
        """
        expected = f"{self.size} integers, -1 for texts to leave alone"
        array = integers("tokens", tokens, expected)
        if array.shape != (self.size,):
            raise MaskwrightError(f"tokens have shape {array.shape} and dtype {array.dtype}; expected {expected}")
        with Alone(self):
            wrong: MaskwrightError | None = None
            for slot, token in enumerate(as_int64(array).tolist()):
                if token == -1:
                    continue
                try:
                    with self._naming(slot):
                        self._texts[slot].advance(token)
                except MaskwrightError as error:
                    wrong = wrong or error
            if wrong is not None:
                raise wrong

    def step(self, tokens: Any, bitmasks: Any, slots: Sequence[int] | None = None) -> None:
        """`advance`, then `fill`. tokens, bitmasks, slots : as there.

        Raises: as both. If the bitmasks do not fit, nothing has changed.
        """
        check_words(bitmasks, (self.size,), self.store.n_words)
        self.advance(tokens)
        self.fill(bitmasks, slots)

    def advance_bytes(self, slot: int, data: bytes) -> None:
        """Add bytes to a text. Raises: as `ComposedMatcher.advance_bytes`."""
        text = self._texts[self._slot(slot)]
        with self._naming(slot):
            text.advance_bytes(data)

    def is_allowed(self, slot: int, token: int) -> bool:
        """Whether a token may come next in a text. Raises: as `ComposedMatcher.is_allowed`."""
        return self._texts[self._slot(slot)].is_allowed(token)

    def is_accepting(self, slot: int) -> bool:
        """Whether a text is legal as a whole."""
        return self._texts[self._slot(slot)].is_accepting()

    def is_finished(self, slot: int) -> bool:
        """Whether an end-of-text token has ended a text."""
        return self._texts[self._slot(slot)].is_finished()

    def rollback(self, slot: int, n: int = 1) -> None:
        """Take back the last n tokens of a text. Raises: as `ComposedMatcher.rollback`."""
        text = self._texts[self._slot(slot)]
        with self._naming(slot):
            text.rollback(n)

    def reset(self, slot: int) -> None:
        """Put a text back to its start: the slot is free for another one."""
        self._texts[self._slot(slot)].reset()

    def copy(self, source: int, target: int) -> None:
        """Make one slot's text, with its history, a copy of another's (beams).

        Raises: MaskwrightError if a slot is out of range.
        """
        with Alone(self):
            source, target = self._slot(source), self._slot(target)
            if source != target:
                self._texts[target].become(self._texts[source])

    def explain(self, slot: int, token: int) -> str:
        """Why a token may or may not come next in a text, in words."""
        return self._texts[self._slot(slot)].why(token)

    def shortest_ending(self, slot: int) -> Ending:
        """An ending of a text, see `ComposedMatcher.short_ending`."""
        text = self._texts[self._slot(slot)]
        with self._naming(slot):
            return text.short_ending()

    def min_bytes_left(self, slot: int) -> int:
        """The length of a text's ending, in bytes."""
        return self._texts[self._slot(slot)].min_bytes_left()

    def __reduce__(self) -> tuple[Any, ...]:
        with Alone(self):
            said = [(text.said_so_far(), text.remembered()) for text in self._texts]
            return _restored, (type(self), (self.store, self.size, self.max_rollback), said)

    def __repr__(self) -> str:
        ended = sum(text.is_finished() for text in self._texts)
        return f"<Batch {self.store.name} x {self.store.vocabulary.name}: {self.size} texts, {ended} ended>"


def _restored(
    cls: type[ComposedBatch], arguments: tuple[Any, ...], said: list[tuple[list[int | bytes], int]]
) -> ComposedBatch:
    """A pickled batch: the texts are read again."""
    batch = cls(*arguments)
    for text, (each, remembered) in zip(batch._texts, said, strict=True):
        text.read_again(each, remembered)
    return batch
