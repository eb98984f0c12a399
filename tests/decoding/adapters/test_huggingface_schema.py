"""Schemas and patterns in transformers' loops: what comes out is an instance, as `jsonschema` judges it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from huggingface_cases import BOS, EOS, JSON_TEXT, N_ROWS, PAD, PROMPT, generate, model, store, text_of, vocabulary
from shares import share

import maskwright as mw
from maskwright.analysis.errors import DeadEndError, IllegalTokenError, MaskwrightError, VocabularyError
from maskwright.decoding.adapters.huggingface import MaskwrightLogitsProcessor
from maskwright.decoding.adapters.selective import selective
from maskwright.models import model_folder
from maskwright.stores.schema_store import SchemaStore, build_schema_store

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

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


def pattern_store() -> SchemaStore:
    return build_schema_store(mw.load_regex(PATTERN), vocabulary())


def check(kind: str, data: bytes) -> None:
    """A whole text is what its store is for."""
    if kind == "schema":
        jsonschema.validate(json.loads(data), SCHEMA)
    elif kind == "pattern":
        assert re.fullmatch(PATTERN, data.decode())
    else:
        json.loads(data)


def check_all(processor: Any, found: Any, start: int, kinds: list[str]) -> int:
    """Every sequence with its ending is whole; how many ended by themselves."""
    n_ended = 0
    endings = processor.endings(found)
    for row, tokens in enumerate(found[:, start:].tolist()):
        tokens = [*tokens, EOS]
        end = tokens.index(EOS)
        assert set(tokens[end:]) <= {EOS, PAD}
        if end < len(tokens) - 1:
            n_ended += 1
            assert endings[row].data == b""
        whole = text_of(tokens[:end]) + endings[row].data
        assert text_of(list(endings[row].tokens)) == endings[row].data
        check(kinds[row * len(kinds) // len(found)], whole)
    return n_ended


MODES: dict[str, dict[str, Any]] = {
    "greedy": {"do_sample": False},
    "sampling": {"do_sample": True, "temperature": 1.3},
    "beams": {"do_sample": False, "num_beams": 3, "num_return_sequences": 3},
    "samples": {"do_sample": True, "num_return_sequences": 3},
    "prompt lookup": {"do_sample": False, "prompt_lookup_num_tokens": 6},
}


@pytest.mark.parametrize("n", share([2, 4], 1))
@pytest.mark.parametrize("mode", MODES)
def test_every_way_of_decoding_yields_instances(mode: str, n: int) -> None:
    ended = 0
    for seed in range(n):
        processor = MaskwrightLogitsProcessor(schema_store())
        found = generate(processor, [PROMPT[: 3 + seed]], seed, model=model(seed), **MODES[mode])
        ended += check_all(processor, found, 3 + seed, ["schema"])
    if mode in ("sampling", "beams", "samples"):
        assert ended, "no text ended by itself: the test would not see a wrong end"


@pytest.mark.parametrize("seeds", share([range(1), range(1, 3)], 1), ids=str)
@pytest.mark.parametrize("do_sample", [False, True])
def test_assisted_decoding(do_sample: bool, seeds: range) -> None:
    for seed in seeds:
        processor = MaskwrightLogitsProcessor(schema_store())
        options = {"assistant_model": model(seed + 1), "do_sample": do_sample}
        found = generate(processor, [PROMPT], seed, model=model(seed), **options)
        check_all(processor, found, len(PROMPT), ["schema"])


@pytest.mark.parametrize("seeds", share([range(1), range(1, 3)], 1), ids=str)
@pytest.mark.parametrize("beams", [1, 2])
def test_a_left_padded_batch_with_a_schema_a_pattern_and_a_grammar(beams: int, seeds: range) -> None:
    kinds = ["schema", "pattern", "grammar", "schema"]
    stores: list[Any] = [schema_store(), pattern_store(), store(JSON_TEXT), schema_store()]
    prompts = [PROMPT[: 2 + 4 * i] for i in range(4)]
    for seed in seeds:
        processor = MaskwrightLogitsProcessor(stores)
        found = generate(processor, prompts, seed, do_sample=beams == 1, num_beams=beams, num_return_sequences=beams)
        check_all(processor, found, len(prompts[-1]), kinds)


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


def test_after_the_end_only_end_of_text_is_left() -> None:
    processor = MaskwrightLogitsProcessor(schema_store(), prompt_lengths=1)
    ids = [[BOS, *b'{"ab":1}', EOS]]
    masked = processor(torch.tensor(ids), torch.zeros(1, N_ROWS))
    assert torch.isfinite(masked[0]).nonzero().flatten().tolist() == [EOS]
    assert processor.endings(ids)[0].data == b""


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
    check_all(processor, found, 3, ["schema"])


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
