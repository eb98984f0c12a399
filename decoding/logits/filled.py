"""Masks that are filled on the host at each step and sent to the logits' device.

For batches in which a row has a store of a JSON schema or a pattern: its masks are made when they
are asked for, so they have no numbers by which a device could keep them. The interface is that part
of `ResidentRows` which a logits processor needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import DeadEndError, LimitError
from maskwright.decoding.logits._row_kernels import NOTHING
from maskwright.decoding.logits.apply import apply_rows
from maskwright.decoding.logits.optional import need_torch
from maskwright.decoding.logits.staging import checked_device

if TYPE_CHECKING:
    from maskwright.decoding.matcher import Matcher
    from maskwright.maskstore.vocabulary import Vocabulary


class FilledRows:
    """A row of bits for each text of a batch, written anew at each step.

    vocabulary : of all texts.
    device : where the logits are.
    capacity : more than the number of texts.

    words : (capacity, n_words) int32 on the device. Row 0 allows nothing; row i + 1 is text i's.

    Cost of a step: a `fill` for each text, and a copy of 4 n_words bytes for each.
    """

    def __init__(self, vocabulary: Vocabulary, device: Any, capacity: int) -> None:
        torch = need_torch()
        self.vocabulary, self.capacity = vocabulary, capacity
        self.device = checked_device(device)
        self._rows: npt.NDArray[np.int32] = np.zeros((capacity, -(-vocabulary.size // 32)), np.int32)
        with torch.inference_mode(False):  # tensors made inside could not be written to outside
            self._host = torch.from_numpy(self._rows)
            is_here = self.device.type == "cpu"
            self.words = self._host if is_here else torch.zeros_like(self._host, device=self.device)

    def ids(self, texts: Sequence[Matcher | None]) -> Any:
        """The number of each text's row, as the text stands: (B,) int32 on the device; -1 if idle.

        texts : matchers of either kind; None for idle slots.

        Raises: DeadEndError and LimitError as `fill`, naming the row.
        """
        numbers = np.full(len(texts), -1, np.int32)
        for slot, matcher in enumerate(texts):
            if matcher is None:
                continue
            if matcher.is_finished():
                numbers[slot] = NOTHING
                continue
            try:
                matcher.fill(self._rows[slot + 1])
            except (DeadEndError, LimitError) as error:
                raise type(error)(f"row {slot}: {error}") from None
            numbers[slot] = slot + 1
        if self.words is not self._host:
            self.words[1 : len(texts) + 1].copy_(self._host[1 : len(texts) + 1])
        return need_torch().from_numpy(numbers).to(self.device)

    def apply(self, logits: Any, row_ids: Any) -> None:
        """Write -inf over what the rows do not allow, in place.

        logits : (B, N) on the device.
        row_ids : (B,) int32; what `ids` returned.

        Raises: as `apply_rows`.
        """
        apply_rows(logits, row_ids, self.words)

    def allowed(self, row: int) -> npt.NDArray[np.int64]:
        """The ids that a row allows, until the next `ids`: (n,) int64, ascending."""
        bits = np.unpackbits(self._rows[row].view(np.uint8), bitorder="little")
        return np.flatnonzero(bits[: self.vocabulary.size])


__all__ = ["FilledRows"]
