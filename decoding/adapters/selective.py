"""Selective multiplication in `model.generate`: the last layer computes only the logits kept.

The processor follows the prefixes before the layers are launched. So the host knows how many ids
the masks have when the last layer is called. `decoding/logits/selective.py` says how close the
result is to the full product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import numpy as np

from maskwright.analysis.errors import MaskwrightError
from maskwright.decoding.adapters.huggingface import MaskwrightLogitsProcessor
from maskwright.decoding.logits.optional import need_torch
from maskwright.decoding.logits.selective import id_lists, measure_crossover, selective_logits

ELEMENTWISE = frozenset(
    f"{name}LogitsProcessor"
    for name in (
        "EncoderNoRepeatNGram", "EncoderRepetitionPenalty", "ForcedBOSToken", "ForcedEOSToken", "InfNanRemove", "MinLength",
        "MinNewTokensLength", "NoBadWords", "NoRepeatNGram", "PrefixConstrained", "RepetitionPenalty", "SequenceBias", "SuppressTokens",
        "SuppressTokensAtBegin",
    )
)  # fmt: skip
"""Processors of transformers that treat each logit by itself.

For these it does not matter whether the refused logits were computed.
"""


class SelectiveHead:
    """A model's last layer while `selective` is in force.

    model, processor, max_ids : see `selective`.
    n_selective, n_full : the number of products of each kind so far.

    Raises: MaskwrightError if the last layer is not a plain torch.nn.Linear, its forward was
    replaced, or the model is not a generation model of transformers.
    """

    def __init__(self, model: Any, processor: MaskwrightLogitsProcessor, max_ids: int | None) -> None:
        torch = need_torch()
        self.head = model.get_output_embeddings()
        if type(self.head) is not torch.nn.Linear or "forward" in vars(self.head):
            raise MaskwrightError(
                f"the model's last layer is {type(self.head).__name__}, or its forward has been replaced; expected a plain torch.nn.Linear "
                "(not quantised, not offloaded)"
            )
        for name in ("prepare_inputs_for_generation", "_get_logits_processor"):
            if not hasattr(model, name) or name in vars(model):
                raise MaskwrightError(
                    f"the model lacks {name}, or it has been replaced; expected a generation model of transformers"
                )
        self.n_selective = self.n_full = 0
        self._torch, self._model, self._processor, self._max_ids = torch, model, processor, max_ids
        self._is_in_force = False
        self._read_shape: tuple[int, int] | None = None
        self._next_ids: Any = None

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """The scores, unchanged. As a logits processor, it notes the shape of the prefixes.

        It comes after the masks' processor, which has followed these prefixes.

        input_ids : (B, L) integers.
        scores : (B, N).
        """
        self._read_shape = tuple(input_ids.shape)
        return scores

    def _processors(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """The model's function that lists processors, with this one after the masks' one."""

        @wraps(original)
        def get(*given: Any, **named: Any) -> Any:
            processors = original(*given, **named)
            config = named["generation_config"] if "generation_config" in named else given[0]
            indices = [index for index, one in enumerate(processors) if one is self._processor]
            self._read_shape = self._next_ids = None
            # in other modes the logits of all tokens are compared or normalised before the masks
            self._is_in_force = (
                len(indices) == 1
                and config.get_generation_mode().value in ("greedy_search", "sample")
                and not config.output_logits
                and all(is_elementwise(one) for one in processors[: indices[0]])
            )
            if not self._is_in_force:
                return processors
            return type(processors)([*processors[: indices[0] + 1], self, *processors[indices[0] + 1 :]])

        return get

    def _prepare(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """The model's function that prepares a step's inputs; it also keeps the prefixes."""

        @wraps(original)
        def prepare(input_ids: Any, *given: Any, **named: Any) -> Any:
            self._next_ids = None
            # the masks' processor has followed all but the last token, so this is a step of its
            # generation
            if self._is_in_force and self._read_shape == (input_ids.shape[0], input_ids.shape[1] - 1):
                # before the layers are launched: later, the copy would wait for them
                self._next_ids = input_ids.cpu().numpy().astype(np.int64)
            return original(input_ids, *given, **named)

        return prepare

    def _forward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """The last layer's forward, which takes the selective product if that is faster."""
        torch, head = self._torch, self.head

        @wraps(original)
        def forward(hidden: Any) -> Any:
            if torch.compiler.is_compiling():
                return original(hidden)
            ids, self._next_ids = self._next_ids, None
            lists = None
            if (
                ids is not None
                and hidden.shape[:-1] == (len(ids), 1)
                and not torch.is_grad_enabled()
                and not torch.is_autocast_enabled(hidden.device.type)
            ):
                limit = self._limit(len(ids))
                lists = id_lists(self._processor.masks(ids), len(head.weight), limit) if limit else None
            if lists is None:
                self.n_full += 1
                return original(hidden)
            self.n_selective += 1
            return selective_logits(hidden[:, 0], head.weight, lists, head.bias)[:, None]

        return forward

    def _limit(self, rows: int) -> int:
        """The most ids in all for which the selective product of so many rows is not slower."""
        if self._max_ids is not None:
            return self._max_ids * rows
        # a smaller batch's full product is faster, so what beats it beats this batch's too
        batch = 1 << (rows.bit_length() - 1)
        return batch * measure_crossover(self.head.weight, batch, self.head.bias)


def is_elementwise(processor: Any) -> bool:
    """Whether a processor is one of transformers that treats each logit by itself."""
    return type(processor).__module__.startswith("transformers.") and type(processor).__name__ in ELEMENTWISE


@contextmanager
def selective(model: Any, processor: MaskwrightLogitsProcessor, max_ids: int | None = None) -> Iterator[SelectiveHead]:
    """A context in which the model computes only the logits that the masks keep, if faster.

    model : of transformers. Its last layer is a plain torch.nn.Linear, which its forward calls.
        What the model does with each logit afterwards (scaling, a soft cap) stays in force.
    processor : the masks' logits processor, as passed to `generate`.
    max_ids : the most ids a row for which rows are selected. By default it is measured for the
        device.

    It takes part in greedy search and sampling, in every step but the first. The full product is
    computed as usual in other modes (beams compare normalised logits of all tokens), under
    torch.compile, under autocast or with gradients, with output_logits, and after a processor that
    is not known to treat each logit by itself. The results are those of the full product up to
    rounding: see the module. Not for two threads at a time.

        with selective(model, processor):
            model.generate(ids, logits_processor=[processor])

    Raises: as `SelectiveHead`.
    """
    state = SelectiveHead(model, processor, max_ids)
    shadowed = (
        (model, "prepare_inputs_for_generation", state._prepare),
        (model, "_get_logits_processor", state._processors),
        (state.head, "forward", state._forward),
    )
    try:
        for owner, name, wrap in shadowed:
            setattr(owner, name, wrap(getattr(owner, name)))
        yield state
    finally:
        for owner, name, _ in shadowed:
            vars(owner).pop(name, None)


__all__ = ["SelectiveHead", "selective"]
