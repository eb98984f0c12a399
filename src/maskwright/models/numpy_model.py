"""The bundled model by NumPy alone, for those who have no PyTorch: the same logits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file

from maskwright.analysis.errors import MissingExtraError
from maskwright.models import model_folder

Array = npt.NDArray[np.float32]


def load_parts() -> tuple[NumpyModel, Any]:
    """The bundled model and its tokenizer. Raises: MissingExtraError without tokenizers."""
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingExtraError(
            "tokenizers is not installed, but the bundled model's texts need it: pip install 'maskwright[tokenizers]'"
        ) from error
    return NumpyModel(model_folder()), Tokenizer.from_file(str(model_folder() / "tokenizer.json"))


class NumpyModel:
    """A function from the ids of a text to the logits of the next token, of a small Llama.

    folder : of `model_folder`; Hugging Face's layout.

    What it has read stays in a cache, so that a token more costs one pass. When the context is
    full, the last three quarters of it are read again.

    Source: Touvron et al., LLaMA (arXiv 2302.13971), section 2.2; Su et al., RoFormer (arXiv
    2104.09864); as transformers' `LlamaForCausalLM` has them.
    """

    def __init__(self, folder: Path) -> None:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text())
        stored = load_file(folder / "model.safetensors")
        self._weights: dict[str, Array] = {
            name.removeprefix("model.").removesuffix(".weight"): np.ascontiguousarray(value, np.float32)
            for name, value in stored.items()
        }
        self.context: int = config["max_position_embeddings"]
        self._n_layers: int = config["num_hidden_layers"]
        self._epsilon: float = config["rms_norm_eps"]
        self._shape = config["num_key_value_heads"], config["num_attention_heads"] // config["num_key_value_heads"]
        half = config["head_dim"] // 2
        turns = np.outer(
            np.arange(self.context),
            config["rope_parameters"]["rope_theta"] ** -(np.arange(half, dtype=np.float32) / half),
        )
        both = np.concatenate([turns, turns], axis=1)
        self._cosines: Array = np.cos(both).astype(np.float32)
        self._sines: Array = np.sin(both).astype(np.float32)
        self._read = list[int]()
        keys = (self._n_layers, 2, self.context, self._shape[0], 2 * half)
        self._cache: Array = np.zeros(keys, np.float32)

    def __call__(self, tokens: Sequence[int]) -> Array:
        """The (N,) logits of the next token. tokens : ids of the text so far, at least one."""
        text = list(tokens)
        step = self.context // 4  # the window moves by so much, since all of it is then computed anew
        text = text[max(0, -(-(len(text) - self.context) // step)) * step :]
        n = next((i for i, pair in enumerate(zip(text, self._read, strict=False)) if pair[0] != pair[1]), None)
        n = min(len(text) - 1, len(self._read)) if n is None else n
        self._read = text[:n]  # where the work is interrupted, the rest of the cache is of no text
        states = self._weights["embed_tokens"][text[n:]]
        for layer in range(self._n_layers):
            name = f"layers.{layer}."
            states = states + self._attended(self._normed(states, name + "input_layernorm"), layer, n)
            inner = self._normed(states, name + "post_attention_layernorm")
            gate = inner @ self._weights[name + "mlp.gate_proj"].T
            inner = gate / (1 + np.exp(-gate)) * (inner @ self._weights[name + "mlp.up_proj"].T)
            states = states + inner @ self._weights[name + "mlp.down_proj"].T
        self._read = text
        logits: Array = self._weights["embed_tokens"] @ self._normed(states[-1], "norm")
        return logits

    def _normed(self, states: Array, name: str) -> Array:
        scale = np.sqrt(np.mean(states * states, axis=-1, keepdims=True) + self._epsilon)
        found: Array = states / scale * self._weights[name]
        return found

    def _attended(self, states: Array, layer: int, begin: int) -> Array:
        """What the tokens from `begin` on take from those up to themselves."""
        groups, heads = self._shape
        end = begin + len(states)
        name = f"layers.{layer}.self_attn."
        queries, keys, values = (states @ self._weights[f"{name}{kind}_proj"].T for kind in "qkv")
        cached_keys, cached_values = self._cache[layer]
        cached_keys[begin:end] = self._turned(keys.reshape(len(states), groups, -1), begin)
        cached_values[begin:end] = values.reshape(len(states), groups, -1)
        turned = self._turned(queries.reshape(len(states), groups * heads, -1), begin)
        turned = turned.reshape(len(states), groups, heads, -1)
        scores = np.einsum("tghd,sgd->ghts", turned, cached_keys[:end]) / np.sqrt(turned.shape[-1])
        scores[..., np.arange(end) > np.arange(begin, end)[:, None]] = -np.inf
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        mixed = np.einsum("ghts,sgd->tghd", shares, cached_values[:end]).reshape(len(states), -1)
        found: Array = mixed.astype(np.float32) @ self._weights[name + "o_proj"].T
        return found

    def _turned(self, heads: Array, begin: int) -> Array:
        """Vectors of heads, (T, heads, d), turned by their positions."""
        end, half = begin + len(heads), heads.shape[-1] // 2
        across: Array = np.concatenate([-heads[..., half:], heads[..., :half]], axis=-1, dtype=np.float32)
        return np.asarray(heads * self._cosines[begin:end, None] + across * self._sines[begin:end, None], np.float32)
