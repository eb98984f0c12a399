"""A random model, a vocabulary of bytes and pieces, and what a generation with masks is checked against."""

from __future__ import annotations

import functools
import json
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jsonschema
import pytest
from grammars import json_text

import maskwright as mw
from maskwright.analysis.loading import parse_grammar
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.stores.build import compile_store
from maskwright.stores.schema_store import SchemaStore, build_schema_store
from maskwright.stores.store import Store

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

JSON_TEXT = json_text(r'"[a-z ]{0,6}"', r"-?(0|[1-9][0-9]{0,4})(\.[0-9]{1,3})?", r"[ \n]{1,2}")
PAIRS_TEXT = 'start: "a" start "b" | "a" "b"'
PIECES = [
    '{"', '":', '": ', '",', ', "', "[[", "]]", "]}", "}}", "[1", "true", "false", "null", "12", "ab", "abc", "aab",
    "bb",
]  # fmt: skip
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


SCHEMA = {
    "type": "object",
    "properties": {
        "ab": {"type": "integer", "minimum": -9, "maximum": 99},
        "b": {"enum": ["abc", None, [1, 12]]},
        "c": {"type": "array", "items": {"type": "boolean"}, "maxItems": 3},
    },
    "required": ["ab"],
    "additionalProperties": False,
    "maxProperties": 2,
}
PATTERN = r"(ab|ba){2,5}c?"


def schema_store() -> SchemaStore:
    return build_schema_store(mw.load_schema(SCHEMA, whitespace="compact"), vocabulary())


STORES: dict[str, Callable[[], Any]] = {
    "json": store,
    "pairs": lambda: store(PAIRS_TEXT),
    "schema": schema_store,
    "pattern": lambda: build_schema_store(mw.load_regex(PATTERN), vocabulary()),
}


def check_whole(kind: str, data: bytes) -> None:
    """A whole text is what its store is for."""
    if kind == "pairs":
        assert data == b"a" * (len(data) // 2) + b"b" * (len(data) // 2) and data
    elif kind == "pattern":
        assert re.fullmatch(PATTERN, data.decode())
    else:
        value = json.loads(data)
        if kind == "schema":
            jsonschema.validate(value, SCHEMA)


def check(processor: Any, sequences: Any, start: int, kinds: Sequence[str] = ("json",)) -> int:
    """Every sequence is legal, and with its ending a whole text; how many ended by themselves.

    kinds : of the prompts' stores, in order; there may be as many sequences of each.
    """
    n_ended = 0
    endings = processor.endings(sequences)
    for row, tokens in enumerate(sequences[:, start:].tolist()):
        kind = kinds[row * len(kinds) // len(sequences)]
        tokens = [*tokens, EOS]
        end = tokens.index(EOS)
        assert set(tokens[end:]) <= {EOS, PAD}
        data = text_of(tokens[:end])
        matcher = STORES[kind]().matcher()
        matcher.advance_bytes(data)
        if end < len(tokens) - 1:
            n_ended += 1
            assert endings[row].data == b"" and matcher.is_accepting()
        assert text_of(list(endings[row].tokens)) == endings[row].data
        check_whole(kind, data + endings[row].data)
    return n_ended


PROMPT = [BOS, *b'x = [1, [1, [1, {"ab": "ab", "ab":']
