"""A folder with a random language model and its tokenizer, as transformers writes it."""

from __future__ import annotations

from pathlib import Path

import pytest
from grammars import json_text

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

JSON_TEXT = json_text(r'"[a-zà-ÿ ]{0,6}"', r"-?(0|[1-9][0-9]{0,4})", r"[ \n]{1,3}")
CONTEXT = 64


def save_model(folder: Path, rows: int = 320, seed: int = 0) -> None:
    """A byte-level tokenizer with some merges, and a random Llama with more rows than it has tokens."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    tokens = {"<eos>": 0} | {symbol: i for i, symbol in enumerate(alphabet, start=1)}
    merges = [("t", "r"), ("u", "e"), ("tr", "ue"), ("[", "["), ("]", "]"), ('"', ":"), ("1", "2"), ("a", "b")]
    for left, right in merges:
        tokens[left + right] = len(tokens)
    built = tokenizers.Tokenizer(tokenizers.models.BPE(tokens, merges))
    built.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    built.decoder = tokenizers.decoders.ByteLevel()
    built.add_special_tokens(["<eos>"])
    transformers.PreTrainedTokenizerFast(tokenizer_object=built, eos_token="<eos>", bos_token="<eos>").save_pretrained(
        folder
    )
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(
        vocab_size=rows, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=CONTEXT, bos_token_id=0, eos_token_id=0, pad_token_id=0,
        initializer_range=0.5,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
