"""The backend in Outlines' own generators, over a random model of transformers."""

from __future__ import annotations

import json
import re
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from huggingface_cases import EOS, N_ROWS, PAIRS_TEXT, store

from maskwright.analysis.errors import MaskwrightError, MissingExtraError
from maskwright.serving import outlines as ours

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
outlines = pytest.importorskip("outlines", reason="Outlines is not installed: pip install 'outlines>=1.3'")
tokenizers = pytest.importorskip("tokenizers")


@pytest.fixture(scope="module")
def model() -> Any:
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {"</s>": 0, **{character: n + 1 for n, character in enumerate(alphabet)}}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, []))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="</s>", pad_token="</s>")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=264, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=512, eos_token_id=0, pad_token_id=0, bos_token_id=0,
    )  # fmt: skip
    return outlines.from_transformers(transformers.LlamaForCausalLM(config).eval(), tokenizer)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlines.backends, "_get_backend", outlines.backends._get_backend)
    ours.register()
    ours.register()


def test_texts_match_their_types(model: Any) -> None:
    torch.manual_seed(1)
    expression = outlines.Generator(model, outlines.regex("[a-c]{3}x?"), backend="maskwright")
    for prompt in ("a", "b", "a b"):
        assert re.fullmatch("[a-c]{3}x?", expression(prompt, max_new_tokens=10, do_sample=True))
    batch = expression.batch(["one", "another"], max_new_tokens=10, do_sample=True)
    assert all(re.fullmatch("[a-c]{3}x?", text) for text in batch)
    schema = outlines.json_schema(json.dumps({"enum": [{"a": [1, 2]}, "xyz"]}))
    assert json.loads(
        outlines.Generator(model, schema, backend="maskwright")("p", max_new_tokens=200, do_sample=True)
    ) in ({"a": [1, 2]}, "xyz")
    grammar = outlines.cfg('start: "(" start ")" | "x"')
    text = outlines.Generator(model, grammar, backend="maskwright")("p", max_new_tokens=40, do_sample=True)
    assert re.fullmatch(r"\(*x?\)*", text)


def test_a_refused_type_says_why(model: Any) -> None:
    with pytest.raises(MaskwrightError, match=r"pattern|expression|parenthes"):
        outlines.Generator(model, outlines.regex("("), backend="maskwright")
    with pytest.raises(ValueError, match="not supported"):
        outlines.Generator(model, outlines.regex("a"), backend="no such")
    with pytest.raises(MaskwrightError, match="OpenAI"):
        ours.make_backend(type("OpenAI", (), {})())


@pytest.mark.parametrize("library", ["torch", "numpy", "mlx"])
def test_arrays_of_each_library(library: str) -> None:
    if library == "mlx":
        pytest.importorskip("mlx.core", reason="MLX is not installed")
    make = {"torch": torch.from_numpy, "numpy": np.asarray}.get(library)
    if make is None:
        import mlx.core as mx

        make = mx.array
    processor = ours._classes()[1](store(PAIRS_TEXT), library)
    for text, wanted in ((b"", b"a"), (b"aa", b"ab"), (b"aab", b"b")):
        ids = make(np.array([[5, 6, *text]] * 2))
        found = np.asarray(processor(ids, make(np.zeros((2, N_ROWS), np.float32))))
        for row in found:
            assert [token for token in np.flatnonzero(row == 0).tolist() if token < 256] == list(wanted)
    found = np.asarray(processor(make(np.array([[5, 6, *b"aabb", EOS]] * 2)), make(np.zeros((2, N_ROWS), np.float32))))
    assert np.flatnonzero(found[0] == 0).tolist() == [EOS]


def test_without_outlines_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "outlines", SimpleNamespace())
    with pytest.raises(MissingExtraError, match="pip install"):
        ours.register()
