"""A random model, a vocabulary of bytes and pieces, and what a generation with masks is checked against."""

from __future__ import annotations

import functools
import json
import warnings
from typing import Any

import pytest
from grammars import json_text

from maskwright.analysis.loading import parse_grammar
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

JSON_TEXT = json_text(r'"[a-z ]{0,6}"', r"-?(0|[1-9][0-9]{0,4})(\.[0-9]{1,3})?", r"[ \n]{1,2}")
PAIRS_TEXT = 'start: "a" start "b" | "a" "b"'
PIECES = [
    '{"',
    '":',
    '": ',
    '",',
    ', "',
    "[[",
    "]]",
    "]}",
    "}}",
    "[1",
    "true",
    "false",
    "null",
    "12",
    "ab",
    "abc",
    "aab",
    "bb",
]
EOS, PAD, BOS = 256 + len(PIECES), 257 + len(PIECES), 258 + len(PIECES)
N_ROWS = 288
"""Of the embedding: more than the tokenizer has ids."""


@functools.cache
def vocabulary() -> Vocabulary:
    tokens = [bytes([byte]) for byte in range(256)] + [piece.encode() for piece in PIECES] + [b"", b"", b""]
    return Vocabulary("bytes", tuple(tokens), {EOS: "</s>", PAD: "<pad>", BOS: "<s>"}, (EOS,))


@functools.cache
def store(text: str = JSON_TEXT) -> Store:
    return compile_store(parse_grammar(text, name="json" if text == JSON_TEXT else "pairs"), vocabulary())


@functools.cache
def model(seed: int = 0, rows: int = N_ROWS) -> Any:
    """A random Llama that likes brackets to close and texts to end, or generations would be long."""
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(
        vocab_size=rows, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=512, bos_token_id=BOS, eos_token_id=EOS, pad_token_id=PAD,
        initializer_range=0.5,
    )  # fmt: skip
    made = transformers.LlamaForCausalLM(config).eval()
    made.generation_config.pad_token_id = PAD
    made.generation_config.eos_token_id = EOS
    return made


def generate(processor: Any, prompts: list[list[int]], seed: int = 0, **options: Any) -> Any:
    """`model.generate` on left-padded prompts."""
    width = max(map(len, prompts))
    ids = torch.tensor([[PAD] * (width - len(prompt)) + prompt for prompt in prompts])
    which = options.pop("model", None) or model()  # making it draws numbers
    torch.manual_seed(seed)
    extra = [] if processor is None else [processor]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return which.generate(
            ids, attention_mask=(ids != PAD).long(), logits_processor=extra, **{"max_new_tokens": 40, **options}
        )


def text_of(tokens: list[int]) -> bytes:
    return b"".join(vocabulary().tokens[token] for token in tokens)


def check(processor: Any, sequences: Any, start: int, texts: list[str] | None = None) -> int:
    """Every sequence is legal, and with its ending a whole text; how many ended by themselves."""
    n_ended = 0
    endings = processor.endings(sequences)
    for row, tokens in enumerate(sequences[:, start:].tolist()):
        grammar = JSON_TEXT if texts is None else texts[row * len(texts) // len(sequences)]
        tokens = [*tokens, EOS]
        end = tokens.index(EOS)
        assert set(tokens[end:]) <= {EOS, PAD}
        data = text_of(tokens[:end])
        matcher = store(grammar).matcher()
        matcher.advance_bytes(data)
        if end < len(tokens) - 1:
            n_ended += 1
            assert endings[row].data == b"" and matcher.is_accepting()
        whole = data + endings[row].data
        if grammar == JSON_TEXT:
            json.loads(whole)
        else:
            assert whole == b"a" * (len(whole) // 2) + b"b" * (len(whole) // 2) and whole
    return n_ended


PROMPT = [BOS, *b'x = [1, [1, [1, {"ab": "ab", "ab":']
