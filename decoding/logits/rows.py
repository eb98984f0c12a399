"""Masks that stay on a device: a step sends the numbers of its rows, and seldom a whole row.

A number has four bytes a sequence. A text's mask is the union of a few masks of the store, and the
same few thousand unions come again and again. So the matcher's compiled code looks up which union
it is. A new union is composed on the host, replaces the least recently used row, and is copied to
the device. Masks without numbers, as those of schemas, are looked up by their words.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import a_type, as_integer, clip, need_type
from maskwright.analysis.errors import DeadEndError, LimitError, MaskwrightError
from maskwright.decoding.batch import Batch
from maskwright.decoding.engine import constants
from maskwright.decoding.engine.alone import Alone, Shared, alone
from maskwright.decoding.engine.slot import SlotText
from maskwright.decoding.engines import check_tables
from maskwright.decoding.logits import _row_kernels as book_kernels
from maskwright.decoding.logits._row_kernels import NOTHING
from maskwright.decoding.logits.apply import apply_rows
from maskwright.decoding.logits.optional import need_torch
from maskwright.decoding.logits.staging import Staging, StreamEvent, checked_device
from maskwright.decoding.matcher import Matcher

if TYPE_CHECKING:
    from maskwright.decoding.engines import AnyTable
    from maskwright.maskstore.table.compiled import EngineTable

DEFAULT_CAPACITY = 4096
"""Rows. They take 16 MB at V = 32,000 and 67 MB at 131,072, on the device and on the host."""


class ResidentRows(Shared):
    """The rows of one store, or of several stores for one tokenizer, on a device.

    store : a store of any kind, or a list of stores.
    device : where the logits are.
    capacity : the number of rows that are kept. The rows of two successive calls must fit.

    It has these attributes:

    stores : tuple; the distinct stores.
    words : (capacity, n_words) int32 on the device. Row 0 allows nothing, as after the end of a
        text.
    n_columns : the least number of logits that a model must have.

    Call `ids` for each step, after the sampler of the step before. Call `apply` (or `apply_rows`
    with `words`) after the model. Between the two the host waits for nothing. Both must be on one
    stream, or ordered by events: a row is overwritten in the order of the stream, so a step that
    was launched before still sees the old row. The numbers that a call returned stay valid until
    the call after the next, since rows of this call and the last one are never reused.

    Use by one thread at a time, as for matchers: the `ids` of a second thread is a MaskwrightError.

    Raises: MaskwrightError if a store has no matcher, `capacity` is not 3 to 2^24, or there is no
    such device; VocabularyError for stores of different vocabularies; MissingExtraError if torch is
    not installed.
    Cost of `ids`: that of `fill` without writing the mask, and a look-up. For a new row: that of
    `fill`, and a copy of 4 n_words bytes. Of texts of other kinds than grammars, and of those that
    hold names: that of `fill`, and a look-up of the words.
    """

    _what = "these rows"
    _remedy = "ResidentRows(store)"

    def __init__(
        self, store: AnyTable | Sequence[AnyTable], device: Any = "cuda", capacity: int = DEFAULT_CAPACITY
    ) -> None:
        torch = need_torch()
        given: tuple[Any, ...] = tuple(store) if isinstance(store, Sequence) else (store,)
        check_tables(given)
        for each in given:
            if has_numbers(each):
                each.close()  # rows are found by the masks' numbers, which must not change
        capacity = as_integer("capacity", capacity)
        if not 3 <= capacity <= 1 << 24:
            raise MaskwrightError(
                f"capacity is {clip(capacity)} rows; expected more than twice the sequences, thus at least 3, and at most 2^24"
            )
        self.stores = tuple({id(store): store for store in given}.values())
        self.device = checked_device(device)
        self.capacity = capacity
        self.n_words = self.stores[0].n_words
        vocabulary = self.stores[0].vocabulary
        self.n_columns = 1 + max([*vocabulary.eos, *(i for i, text in enumerate(vocabulary.tokens) if text)], default=0)
        self._numbers = {id(store): number for number, store in enumerate(self.stores)}
        self._book = book_kernels.new_book(capacity)
        # a LAST_USED of 0, that is never, must be older than the call before
        self._book[book_kernels.CLOCK] = 2
        self._scratch = np.zeros(self.n_words, np.int32)
        is_cuda = self.device.type == "cuda"
        shape = (capacity, self.n_words)
        with torch.inference_mode(False):  # tensors made inside could not be written to outside
            # a page of NumPy's zeros takes memory only once it is written to
            self._host = (
                torch.empty(shape, dtype=torch.int32, pin_memory=True)
                if is_cuda
                else torch.from_numpy(np.zeros(shape, np.int32))
            )
            self._rows: npt.NDArray[np.int32] = self._host.numpy()
            self._rows[NOTHING] = 0
            is_here = self.device.type == "cpu"
            self.words = self._host if is_here else torch.zeros(shape, dtype=torch.int32, device=self.device)
        self._is_async = is_cuda
        self._staging = Staging(capacity, is_cuda, partial(StreamEvent, self.device) if is_cuda else None)

    @alone
    def ids(self, texts: Batch | Sequence[Matcher | None], slots: Sequence[int] | None = None, out: Any = None) -> Any:
        """The number of each text's row, as the text stands: (B,) int32 on the device; -1 if idle.

        texts : a batch, or a list of matchers, of any of the stores; None for idle slots.
        slots : of a batch, the texts to look at; None: all.
        out : (>= B,) int32 on the device, written to, as a CUDA graph needs it. None: a new tensor.

        Returns the first B numbers of `out`.

        Raises: DeadEndError and LimitError as `fill`, naming the slot; LimitError if this call and
        the one before need more rows than there are; MaskwrightError for texts of other stores,
        more sequences than rows, an `out` that does not fit, or slots among matchers.
        """
        if not isinstance(texts, Batch | Sequence):
            raise MaskwrightError(
                f"the texts are {a_type(texts)}; expected a batch, or a list of matchers with None for idle slots"
            )
        n = texts.size if isinstance(texts, Batch) else len(texts)
        if n > self.capacity:
            raise MaskwrightError(
                f"{n} sequences are more than the {self.capacity} rows kept; make ResidentRows with a capacity of more "
                "than twice the sequences"
            )
        self._check_out(out, n)
        return self._ids(texts, n, slots, out)

    def _ids(self, texts: Batch | Sequence[Matcher | None], n: int, slots: Sequence[int] | None, out: Any) -> Any:
        staged = self._staging.begin()
        numbers = staged.numpy()[:n]
        self._book[book_kernels.CLOCK] += 1
        self._book[book_kernels.N_NEW] = 0
        try:
            if isinstance(texts, Batch):
                chosen = np.full(n, constants.OK, np.int32) if slots is None else _chosen(texts, slots)
                with Alone(texts):
                    if texts.many is not None and not texts.holds_names:
                        states: Any = [each.text for each in texts._texts]
                        self._find(texts.store, states, numbers, chosen)
                    else:
                        wanted = [
                            one if code == constants.OK else None
                            for one, code in zip(texts._texts, chosen, strict=True)
                        ]
                        self._find_each(wanted, numbers)
            elif slots is not None:
                raise MaskwrightError(
                    "slots are for a batch; in a list of matchers, give None for those to leave alone"
                )
            else:
                self._find_each(texts, numbers)
            return self._sent(staged[:n], out)
        finally:
            self._send_rows()
            self._staging.end()

    def apply(self, logits: Any, row_ids: Any) -> None:
        """Write -inf over what the rows do not allow, in place.

        logits : (B, N) on the device.
        row_ids : (B,) int32; what `ids` returned.

        Raises: MaskwrightError if there are fewer logits than the vocabulary needs; and as
        `apply_rows`.
        """
        if getattr(logits, "ndim", 0) == 2 and logits.shape[1] < self.n_columns:
            vocabulary = self.stores[0].vocabulary
            raise MaskwrightError(
                f"the model gives {logits.shape[1]} logits, but vocabulary {vocabulary.name} has tokens up to id {self.n_columns - 1}: "
                "the store was built for a different tokenizer than the model's"
            )
        apply_rows(logits, row_ids, self.words)

    def allowed(self, row: int) -> npt.NDArray[np.int64]:
        """The ids that a row allows: (n,) int64, ascending.

        Raises: MaskwrightError if the row is not in use.
        """
        row = as_integer("row", row)
        if not 0 <= row < self.n_rows:
            raise MaskwrightError(f"row {clip(row)} is out of range: the rows in use are 0 to {self.n_rows - 1}")
        bits = np.unpackbits(self._rows[row].view(np.uint8), bitorder="little")
        return np.flatnonzero(bits[: self.stores[0].vocabulary.size])

    @property
    def n_rows(self) -> int:
        """The number of rows in use, including the one that allows nothing."""
        return int(self._book[book_kernels.N_USED])

    def __repr__(self) -> str:
        return (
            f"<ResidentRows on {self.device}: {self.n_rows} of {self.capacity} rows, {self.words.nbytes / 1e6:.1f} MB>"
        )

    def _find(
        self,
        store: EngineTable,
        states: Sequence[SlotText],
        numbers: npt.NDArray[np.int32],
        results: npt.NDArray[np.int32],
    ) -> None:
        """Find the rows of texts of one grammar, all of which are in one memory.

        results : (n,) int32; IDLE for texts to leave alone, else OK.
        """
        number, texts = self._number_of(store), states[0].texts
        texts.renew()
        tries = 0
        while not book_kernels.find_rows(
            texts._table, texts._memory, texts._regions, number, self._book, self._rows, self._scratch, numbers, results
        ):
            lacking = np.flatnonzero(results == constants.NO_ROOM).tolist()
            if not lacking:
                break
            for slot in lacking:
                texts._give_room(slot, tries)
            tries += 1
            results[results != constants.IDLE] = constants.OK
        else:
            return
        for slot in np.flatnonzero((results != constants.OK) & (results != constants.IDLE)).tolist():
            state, code = states[slot], int(results[slot])
            self._need_row(code)
            try:
                state.refuse_fill(state.finish_fill(code, self._scratch))
            except (DeadEndError, LimitError) as error:
                if len(states) == 1:
                    raise
                raise type(error)(f"slot {slot}: {error}") from error

    def _number_of(self, store: AnyTable) -> int:
        number = self._numbers.get(id(store), -1)
        if number < 0:
            raise MaskwrightError(
                f"the texts belong to {store!r}, which is not one of the stores of these rows; name it when you make ResidentRows"
            )
        return number

    def _need_row(self, code: int) -> None:
        if code == book_kernels.NO_ROW:
            raise LimitError(
                f"all {self.capacity} rows are in use by this step and the one before; make ResidentRows with a capacity of more than "
                "twice the sequences"
            )

    def _find_each(self, matchers: Sequence[Matcher | None], numbers: npt.NDArray[np.int32]) -> None:
        """Find the rows of matchers; errors name their slots."""
        result = np.zeros(1, np.int32)
        for slot, matcher in enumerate(matchers):
            if matcher is None:
                numbers[slot] = -1
                continue
            need_type(f"slot {slot}", matcher, Matcher, "a matcher, or None for an idle slot")
            self._number_of(matcher.store)
            result[0] = constants.OK
            text: Any = matcher.text
            try:
                if has_numbers(matcher.store) and not matcher.holds_names and text.texts.size == 1:
                    with Alone(matcher):
                        self._find(matcher.store, [text], numbers[slot : slot + 1], result)
                elif matcher.is_finished():
                    numbers[slot] = NOTHING
                else:
                    matcher.fill(self._scratch)
                    numbers[slot] = book_kernels.find_words(self._book, self._rows, self._scratch)
                    self._need_row(int(numbers[slot]))
            except (DeadEndError, LimitError) as error:
                raise type(error)(f"row {slot}: {error}") from None

    def _send_rows(self) -> None:
        """Copy the rows composed in this call to the device, successive ones in one copy."""
        n = int(self._book[book_kernels.N_NEW])
        if self.words is self._host or not n:
            return
        new = np.sort(book_kernels.new_rows(self._book))
        cuts = [0, *(1 + np.flatnonzero(np.diff(new) != 1)).tolist(), n]
        for begin, end in pairwise(cuts):
            rows = slice(int(new[begin]), int(new[end - 1]) + 1)
            self.words[rows].copy_(self._host[rows], non_blocking=self._is_async)

    def _sent(self, staged: Any, out: Any) -> Any:
        """The numbers on the device."""
        if out is None and self.words is self._host:
            return staged.clone()
        if out is None:
            out = need_torch().empty(len(staged), dtype=staged.dtype, device=self.device)
        out = out[: len(staged)]
        out.copy_(staged, non_blocking=self._is_async)
        return out

    def _check_out(self, out: Any, n: int) -> None:
        if out is None:
            return
        torch = need_torch()
        if (
            not isinstance(out, torch.Tensor)
            or out.device != self.device
            or out.dtype != torch.int32
            or out.ndim != 1
            or len(out) < n
        ):
            what = (
                f"{str(out.dtype).removeprefix('torch.')} of shape {tuple(out.shape)} on {out.device}"
                if isinstance(out, torch.Tensor)
                else a_type(out)
            )
            raise MaskwrightError(f"out is {what}; expected an int32 tensor of shape ({n},) or longer on {self.device}")


def has_numbers(store: AnyTable) -> bool:
    """Whether the masks of a store have numbers, by which rows are found."""
    return bool(getattr(store, "has_rows", False))


def _chosen(batch: Batch, slots: Sequence[int]) -> npt.NDArray[np.int32]:
    """The results that `find_rows` gets for a batch: OK for the chosen texts, else IDLE."""
    results = np.full(batch.size, constants.IDLE, np.int32)
    results[batch._slots(slots)] = constants.OK
    return results
