"""Masks in mlx-lm: a logits processor for `generate_step`, `generate` and batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maskwright.analysis.errors import MissingExtraError
from maskwright.serving.prefix_masks import PrefixMasks

if TYPE_CHECKING:
    from maskwright.decoding.engines import AnyTable


class MlxMasks(PrefixMasks):
    """A logits processor of mlx-lm.

        generate(model, tokenizer, prompt, logits_processors=[masks])

    store : a store for the model's vocabulary.
    prefix : text before the constrained tokens, which the prompt ends with.
    drafts : True for speculative decoding, where rows may end in proposals.

    It serves one sequence at a time; in a batch each sequence has its own. The text begins behind
    what the first call is given. Call `reset` before another generation.

    Raises: MissingExtraError without mlx.
    """

    def __init__(self, store: AnyTable, prefix: str | bytes = b"", drafts: bool = False) -> None:
        try:
            import mlx.core  # noqa: F401
        except ImportError as error:
            raise MissingExtraError("mlx is not installed: pip install mlx-lm") from error
        super().__init__(store, prefix, drafts)

    def __call__(self, tokens: Any, logits: Any) -> Any:
        """The logits, with -inf for what is refused.

        tokens : (L,) integers.
        logits : (1, N) or (N,).

        Raises: as `PrefixMasks.words`.
        """
        return self.masked("mlx", np.array(tokens)[None, :], logits)
