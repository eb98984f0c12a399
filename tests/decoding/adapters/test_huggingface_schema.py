"""Schemas and patterns in transformers' loops: what comes out is an instance, as `jsonschema` judges it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from huggingface_cases import BOS, N_ROWS, PROMPT, SCHEMA, check, generate, model, schema_store, vocabulary

import maskwright as mw
from maskwright.analysis.errors import DeadEndError, IllegalTokenError, MaskwrightError, VocabularyError
from maskwright.decoding.adapters.huggingface import MaskwrightLogitsProcessor
from maskwright.decoding.adapters.selective import selective
from maskwright.models import model_folder

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


def test_masks_are_those_of_a_matcher_and_of_the_call() -> None:
    processor = MaskwrightLogitsProcessor(schema_store(), prompt_lengths=1)
    matcher = schema_store().matcher()
    tokens = [BOS]
    for byte in b'{"ab":1':
        tokens.append(byte)
        matcher.advance(byte)
        words = processor.masks([tokens])
        allowed = {token for token in range(vocabulary().size) if matcher.is_allowed(token)}
        assert {token for token in range(vocabulary().size) if words[0, token >> 5] >> (token & 31) & 1} == allowed
        masked = processor(torch.tensor([tokens]), torch.zeros(1, N_ROWS))
        assert set(torch.isfinite(masked[0]).nonzero().flatten().tolist()) == allowed


def test_errors_are_those_of_grammars() -> None:
    """A token that the masks refuse, all allowed tokens ruled out, another vocabulary, resident rows."""
    processor = MaskwrightLogitsProcessor(schema_store(), prompt_lengths=1)
    with pytest.raises(IllegalTokenError, match="row 0, position 2: token 98"):
        processor(torch.tensor([[BOS, ord("{"), ord("b")]]), torch.zeros(1, N_ROWS))
    with pytest.raises(MaskwrightError, match=r"none of the .* tokens that the grammar allows has a finite logit"):
        processor(torch.tensor([[BOS]]), torch.full((1, N_ROWS), -torch.inf))
    other = mw.build_store({"type": "integer"}, "python-tiny")
    with pytest.raises(VocabularyError, match="the stores of one batch are for different vocabularies"):
        MaskwrightLogitsProcessor([schema_store(), other])


def test_a_dead_end_names_its_row() -> None:
    """The vocabulary lacks a byte that comes next; the other row's masks are as they were."""
    tokens = mw.Vocabulary.from_tokens([b"", b"a", b"c"], eos=[0])
    stores = [mw.build_store(mw.load_regex(pattern), tokens) for pattern in ("ac", "ab")]
    processor = MaskwrightLogitsProcessor(stores, prompt_lengths=0)
    masked = processor(torch.tensor([[1], [1]])[:, :0], torch.zeros(2, 3))
    assert torch.isfinite(masked).tolist() == [[False, True, False]] * 2
    with pytest.raises(DeadEndError, match=r"row 1: no token of vocabulary .* can come next"):
        processor(torch.tensor([[1], [1]]), torch.zeros(2, 3))


def test_a_store_file_serves(tmp_path: Path) -> None:
    schema_store().save(tmp_path / "s.safetensors")
    processor = MaskwrightLogitsProcessor(tmp_path / "s.safetensors")
    found = generate(processor, [PROMPT[:3]], do_sample=True)
    check(processor, found, 3, ["schema"])


def test_selective_products_give_the_same_tokens() -> None:
    made = model(3)
    plain = generate(MaskwrightLogitsProcessor(schema_store()), [PROMPT[:3]], model=made, do_sample=False)
    processor = MaskwrightLogitsProcessor(schema_store())
    with selective(made, processor, max_ids=N_ROWS) as head:
        found = generate(processor, [PROMPT[:3]], model=made, do_sample=False)
    assert found.tolist() == plain.tolist() and head.n_selective > 3


def test_the_bundled_model_writes_instances() -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(model_folder(), padding_side="left")
    bundled = transformers.AutoModelForCausalLM.from_pretrained(model_folder())
    stores = [mw.build_store(SCHEMA, tokenizer), mw.build_store(mw.load_choice(["yes", "no"]), tokenizer)]
    processor = MaskwrightLogitsProcessor(stores, tokenizer)
    inputs = tokenizer(["# a record\n", "# does it end?\n"], return_tensors="pt", padding=True)
    outputs = bundled.generate(**inputs, max_new_tokens=30, logits_processor=[processor], do_sample=False)
    texts = []
    for row, ending in zip(outputs, processor.endings(outputs), strict=True):
        new = tokenizer.decode(row[inputs["input_ids"].shape[1] :], skip_special_tokens=True)
        texts.append(new + ending.data.decode())
    jsonschema.validate(json.loads(texts[0]), SCHEMA)
    assert texts[1] in ("yes", "no")
