"""What a store of any kind makes: matchers and batches."""

from __future__ import annotations

from maskwright.decoding.batch import Batch
from maskwright.decoding.matcher import DEFAULT_ROLLBACK, Matcher


class MakesTexts:
    """A store under which texts are read."""

    def matcher(self, max_rollback: int = DEFAULT_ROLLBACK) -> Matcher:
        """The state of one text, at its start.

        max_rollback : how many tokens `rollback` can take back.

        Raises: as `Matcher`.
        """
        return Matcher(self, max_rollback)

    def batch(self, size: int, max_rollback: int = DEFAULT_ROLLBACK, n_threads: int = 1) -> Batch:
        """The states of several texts, at their starts.

        size : the number of texts.
        max_rollback : how many tokens of a text `rollback` can take back.
        n_threads : how many threads work on the batch.

        Raises: as `Batch`.
        """
        return Batch(self, size, max_rollback, n_threads)


__all__ = ["MakesTexts"]
