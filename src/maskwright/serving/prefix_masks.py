"""Masks for loops that pass a logits processor the tokens so far, as arrays on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import MaskwrightError, VocabularyError
from maskwright.decoding.adapters.prefixes import Prefixes, Rules
from maskwright.decoding.engine.arguments import integers, texts
from maskwright.decoding.engines import check_tables
from maskwright.maskstore.vocabulary.masks import n_words, words_of

if TYPE_CHECKING:
    from maskwright.decoding.engines import AnyTable


class PrefixMasks:
    """Follows rows of tokens and gives their masks. The text begins behind the first call's rows.

    store : a store of any kind with matchers.
    prefix : text before the constrained tokens, which the prompt ends with.
    drafts : whether rows may end in proposals (speculative decoding).

    Raises: MaskwrightError for a store without matchers, or a prefix of another type.
    """

    def __init__(self, store: AnyTable, prefix: str | bytes = b"", drafts: bool = False) -> None:
        check_tables([store])
        self.vocabulary = store.vocabulary
        prefixes = texts("prefix", prefix, "a str or bytes")
        self._prefixes = Prefixes(Rules((store,), prefixes, None, False, 256, drafts))
        self._n_words = n_words(self.vocabulary.size)
        ids = [*self.vocabulary.text_ids().tolist(), *self.vocabulary.eos]
        self._n_columns = 1 + max(ids, default=-1)

    def reset(self) -> None:
        """Forget all texts. The next call begins a generation."""
        self._prefixes.reset()

    def words(self, ids: Any, columns: int) -> npt.NDArray[np.int32]:
        """The masks of the tokens allowed next: (B, W) int32.

        ids : (B, L) integers; the tokens so far.
        columns : how many logits the model gives.

        A text that has ended has its end-of-text tokens. A row that ends in an illegal proposal
        has all tokens.

        Raises: IllegalTokenError if something else wrote a token that the store refuses;
        DeadEndError if nothing can come next; LimitError as `Matcher.fill`; MaskwrightError for
        other shapes, and if it is not known where a text begins; VocabularyError if there are fewer
        logits than tokens.
        """
        rows = integers("the tokens", ids, "(B, L) integers").astype(np.int64)
        if rows.ndim != 2:
            raise MaskwrightError(f"the tokens have shape {rows.shape}; expected (B, L)")
        self._prefixes.follow(rows)
        if columns < self._n_columns:
            raise VocabularyError(
                f"the model gives {columns} logits, but vocabulary {self.vocabulary.name} has tokens up to id {self._n_columns - 1}: "
                "build the store with the model's own tokenizer"
            )
        words = np.zeros((len(rows), self._n_words), np.int32)
        for row, matcher in enumerate(self._prefixes.matchers):
            if self._prefixes.is_stray[row]:
                words[row] = -1
            elif self._prefixes.has_ended[row]:
                words[row] = words_of(self.vocabulary.eos, self.vocabulary.size).view(np.int32)
            else:
                matcher.fill(words[row])
        return words

    def masked(self, library: str, ids: Any, logits: Any) -> Any:
        """Logits of a library's own kind, with -inf for what is refused.

        library : "torch", "numpy" or "mlx".
        ids : (B, L) integers; the tokens so far.
        logits : (B, N), or (N,) for one row.

        Raises: as `words`.
        """
        columns = logits.shape[-1]
        words = self.words(ids.cpu().numpy() if library == "torch" else np.array(ids), columns)
        found = np.zeros((len(words), columns), bool)  # padding past the vocabulary is refused
        bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")[:, :columns]
        found[:, : bits.shape[1]] = bits
        found = found.reshape(logits.shape)
        if library == "torch":
            import torch

            return logits.masked_fill(~torch.from_numpy(found).to(logits.device), -float("inf"))
        if library == "mlx":
            import mlx.core as mx

            return mx.where(mx.array(found), logits, mx.array(-float("inf"), logits.dtype))
        return np.where(found, logits, np.array(-np.inf, logits.dtype))
