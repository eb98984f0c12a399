"""Several texts, each under a store of its own: what `Batch` makes of a list of stores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from maskwright.analysis.errors import LimitError
from maskwright.decoding.composition.batch import MOST_TEXTS, ComposedBatch
from maskwright.decoding.engine.alone import Alone
from maskwright.decoding.matcher import DEFAULT_ROLLBACK
from maskwright.decoding.matchers import check_tables, make_matcher, name_of

if TYPE_CHECKING:
    from maskwright.decoding.matchers import AnyTable


class MixedBatch(ComposedBatch):
    """Several texts, each under its own grammar, schema, pattern or composition.

    It has the methods of `Batch`, but for `restrict`, and works one text after the other.

    stores : that of each slot, all for one vocabulary.
    max_rollback : the number of tokens of each text that `rollback` can take back.

    Raises: MaskwrightError as `check_tables`; LimitError for more than MOST_TEXTS; as the matchers.
    """

    _remedy = "mw.Batch(stores)"
    _instead = "make a matcher or a batch of that store alone"

    def __init__(self, stores: Sequence[AnyTable], max_rollback: int = DEFAULT_ROLLBACK) -> None:
        check_tables(stores)
        if len(stores) > MOST_TEXTS:
            raise LimitError(f"a batch of {len(stores):,} texts is more than {MOST_TEXTS:,}; make smaller batches")
        self.stores, self.size, self.max_rollback = tuple(stores), len(stores), max_rollback
        self.store = cast(Any, stores[0])  # whose vocabulary is that of all
        self._texts = [cast(Any, make_matcher(store, max_rollback)) for store in stores]

    def explain(self, slot: int, token: int) -> str:
        """Why a token may or may not come next in a text, in words."""
        return str(self._texts[self._slot(slot)].explain(token))

    def copy(self, source: int, target: int) -> None:
        """Make one slot's text, with its history and its store, a copy of another's.

        Raises: MaskwrightError if a slot is out of range.
        """
        with Alone(self):
            source, target = self._slot(source), self._slot(target)
            self._texts[target] = self._texts[source].fork()
            self.stores = tuple(cast(Any, text.store) for text in self._texts)

    def __reduce__(self) -> tuple[Any, ...]:
        with Alone(self):
            return _restored, (self.stores, self.max_rollback, self._texts)

    def __repr__(self) -> str:
        names = ", ".join(dict.fromkeys(map(name_of, self.stores)))
        return f"<Batch {names} x {self.store.vocabulary.name}: {self.size} texts>"


def _restored(stores: tuple[AnyTable, ...], max_rollback: int, texts: list[Any]) -> MixedBatch:
    batch = MixedBatch(stores, max_rollback)
    batch._texts = texts
    return batch
