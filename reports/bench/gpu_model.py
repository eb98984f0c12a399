"""A model of Llama-8B's shape with random weights, and its decoding step on forced tokens as CUDA graphs. In: shape, texts. Out: steps.

The step is what a server runs: embed, all layers over a static cache, logits, argmax. The token that argmax takes is kept and counted, and
the text's own token follows instead. Nothing in a step depends on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gpu_clock as clock
import torch
from gpu_work import Place

ATTENTION = "maskwright_bench"


@dataclass(frozen=True)
class Shape:
    """Llama-3-8B's numbers by default."""

    layers: int = 32
    hidden: int = 4096
    intermediate: int = 14336
    heads: int = 32
    kv_heads: int = 8


def padded(size: int) -> int:
    """Columns of the logits: more than the vocabulary has tokens, as models do, so that padding is masked too."""
    return (size // 64 + 1) * 64


def build_model(shape: Shape, columns: int, positions: int, device: torch.device, dtype: torch.dtype) -> Any:
    """A transformers' LlamaForCausalLM. Raises ImportError without transformers."""
    from transformers import AttentionInterface, LlamaConfig, LlamaForCausalLM

    AttentionInterface.register(ATTENTION, _attend)
    config = LlamaConfig(
        vocab_size=columns,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        max_position_embeddings=positions,
        attn_implementation=ATTENTION,
        pad_token_id=None,
    )
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        torch.manual_seed(0)
        with torch.device(device):
            model = LlamaForCausalLM(config)
    finally:
        torch.set_default_dtype(before)
    return model.eval().requires_grad_(False)


_visible: list[Any] = []
"""The additive mask (1, 1, 1, L) of the step that is being run or captured."""


def _attend(module: Any, query: Any, key: Any, value: Any, attention_mask: Any, **more: Any) -> tuple[Any, None]:
    """Attention of one new token over the static cache; the heads of a group are the rows of one query, so no key is copied.

    query : (B, heads, 1, d). key, value : (B, kv_heads, L, d).
    """
    batch, heads, _, width = query.shape
    grouped = query.view(batch, key.shape[1], heads // key.shape[1], width)
    found = torch.nn.functional.scaled_dot_product_attention(grouped, key, value, attn_mask=_visible[-1])
    return found.reshape(batch, heads, 1, width).transpose(1, 2), None


class Decode:
    """One batch of forced texts under a model.

    forced : (steps + 1, B) int64 on the device: step t reads forced[t] and has forced[t + 1] as the text's next token.
    tokens : (B,) int32, what the step reads, for `advance`. samples : (steps, B), what argmax took. refused : how many of the forced
    tokens had a logit of -inf. logits : (B, columns), set by `forward`.
    """

    def __init__(self, model: Any, texts: Sequence[Place], steps: int, device: torch.device) -> None:
        from transformers import StaticCache

        self.model, self.device, self.steps, self.batch = model, device, steps, len(texts)
        rows = [list(tokens[begin : begin + steps + 1]) for tokens, begin in texts]
        self.forced = torch.tensor(rows, dtype=torch.int64).T.contiguous().to(device)
        length = -(-steps // 64) * 64
        self.cache = StaticCache(config=model.config, max_cache_len=length)
        self.at = torch.zeros(1, dtype=torch.int64, device=device)
        self.places = torch.arange(length, device=device)
        self.all_visible = torch.zeros(length, dtype=model.dtype, device=device)
        self.ids = torch.zeros((self.batch, 1), dtype=torch.int64, device=device)
        self.tokens = torch.zeros(self.batch, dtype=torch.int32, device=device)
        self.samples = torch.zeros((steps, self.batch), dtype=torch.int64, device=device)
        self.refused = torch.zeros(1, dtype=torch.int64, device=device)

    def restart(self) -> None:
        """Back to the first step."""
        self.cache.reset()
        self.at.zero_()
        self.refused.zero_()
        self.samples.zero_()
        self.ids.copy_(self.forced[0][:, None])
        self.tokens.copy_(self.forced[0])

    def forward(self) -> Any:
        """The logits (B, columns) of the next token. The cache grows by one."""
        visible = self.all_visible.masked_fill(self.places > self.at, -torch.inf)
        _visible.append(visible[None, None, None])
        try:
            found = self.model(
                input_ids=self.ids, position_ids=self.at[None], past_key_values=self.cache, use_cache=True
            )
        finally:
            _visible.pop()
        return found.logits[:, -1]

    def tail(self, logits: Any) -> None:
        """The sampler, and the forced token in its place. The last step's forced token is kept for no step."""
        self.samples.index_copy_(0, self.at, logits.argmax(-1)[None])
        self.at.add_(1)
        following = self.forced.index_select(0, self.at)[0]
        self.refused.add_(torch.isneginf(logits.gather(1, following[:, None])).sum())
        self.ids.copy_(following[:, None])
        self.tokens.copy_(following)

    def captured(self, step: Callable[[], Any], prepare: Callable[[], Any] | None = None) -> Callable[[], Any]:
        """A step as a graph. prepare : puts what the step changes, beside this, to the start; called after `restart`."""

        def restore() -> None:
            self.restart()
            if prepare:
                prepare()

        restore()
        return clock.captured(step, self.device, restore)


class Parts:
    """Forward and tail as two graphs, with the logits between them: what engines need that mask from the host."""

    def __init__(self, decode: Decode) -> None:
        self.logits: Any = None

        def forward() -> None:
            # under a graph the tensor's place is the graph's, and stays the same in all replays
            self.logits = decode.forward()

        self.forward = decode.captured(forward)
        self.tail = decode.captured(lambda: decode.tail(self.logits))
