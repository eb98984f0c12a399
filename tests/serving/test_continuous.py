"""Masks in transformers' own loop of continuous batching: requests of many stores come and go, and each text is legal."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from huggingface_cases import BOS, EOS, JSON_TEXT, N_ROWS, PAIRS_TEXT, PROMPT, model, store, text_of, vocabulary

from maskwright.analysis.errors import MaskwrightError, VocabularyError
from maskwright.analysis.schema.load import load_schema
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.serving.continuous import ContinuousMasks
from maskwright.stores.build import build_store

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
processors = pytest.importorskip(
    "transformers.generation.continuous_batching.cb_logits_processors",
    reason="this transformers has no processors for continuous batching",
)

SCHEMA = {
    "type": "object",
    "properties": {"ab": {"type": "integer"}},
    "required": ["ab"],
    "additionalProperties": False,
}


def manager(masks: ContinuousMasks | None, seed: int = 0, **options: Any) -> Any:
    """A manager over a random model, not started."""
    config = transformers.GenerationConfig(
        max_new_tokens=30, eos_token_id=EOS, pad_token_id=0, bos_token_id=BOS, **{"do_sample": True, **options}
    )
    batching = transformers.ContinuousBatchingConfig(block_size=32, num_blocks=64, max_batch_tokens=128)
    made = model(seed).init_continuous_batching(generation_config=config, continuous_batching_config=batching)
    if masks is not None:
        masks.attach(made)
    return made


def outputs(made: Any, requests: list[dict[str, Any]]) -> list[Any]:
    """Run requests to their ends; their outputs in order."""
    names = [made.add_request(list(PROMPT), **request) for request in requests]
    made.start()
    found: dict[str, Any] = {}
    deadline = time.monotonic() + 100
    while len(found) < len(names):
        assert time.monotonic() < deadline, "the requests do not come to an end"
        output = made.get_result(timeout=1)
        if output is not None and output.is_finished():
            found[output.request_id] = output
    made.stop(block=True)
    return [found[name] for name in names]


def whole(which: Any, tokens: list[int]) -> bytes:
    """The text that tokens begin, with its shortest ending; fails if they are not legal."""
    matcher = which.matcher()
    for token in tokens:
        matcher.advance(token)
    return text_of(tokens) + matcher.shortest_ending().data


@pytest.mark.parametrize("do_sample", [False, True])
def test_each_request_is_masked_by_its_own_store(do_sample: bool) -> None:
    schema = build_store(load_schema(SCHEMA), vocabulary())
    stores = [store(JSON_TEXT), store(PAIRS_TEXT), schema, None] * 5
    torch.manual_seed(3)
    made = manager(ContinuousMasks(vocabulary()), do_sample=do_sample)
    found = outputs(made, [{"store": each, "max_new_tokens": 10 + n} for n, each in enumerate(stores)])
    free = set()
    for each, output in zip(stores, found, strict=True):
        assert output.error is None
        tokens = output.generated_tokens
        assert 1 <= len(tokens) <= 30
        if each is None:
            free |= set(tokens)
            continue
        text = whole(each, tokens)
        if each is schema:
            assert set(json.loads(text)) == {"ab"}
        elif each is store(JSON_TEXT):
            json.loads(text)
        else:
            assert text == b"a" * (len(text) // 2) + b"b" * (len(text) // 2)
    assert free - set(b'ab{}[]:,"0123456789'), "the requests without a store seem to be masked"


def test_masks_come_before_what_chooses_among_tokens() -> None:
    """Top-k of one token, after the mask, is greedy among the legal tokens, never nothing."""
    torch.manual_seed(5)
    made = manager(ContinuousMasks(vocabulary()), top_k=1, temperature=2.0)
    found = outputs(made, [{"store": store(PAIRS_TEXT)}] * 3)
    assert all(output.error is None for output in found)
    assert all(set(text_of(output.generated_tokens)) <= set(b"ab") for output in found)


def test_a_store_for_another_vocabulary_fails_its_request_alone() -> None:
    made = manager(ContinuousMasks(vocabulary()))
    wrong = build_store(load_schema({"const": 1}), Vocabulary.from_tokens([b"1", b""], eos=[1], name="other"))
    found = outputs(made, [{"store": wrong}, {"store": "json"}, {"store": store(PAIRS_TEXT)}])
    assert "for vocabulary other" in found[0].error and "build the store" in found[0].error
    assert "'json'" in found[1].error or "a str" in found[1].error
    assert found[2].error is None and set(text_of(found[2].generated_tokens)) <= set(b"ab")


def test_an_illegal_token_ends_its_request_alone() -> None:
    """A later processor forces a token on one row; the other goes on."""

    class Forcing:
        supports_continuous_batching = True

        def __call__(self, input_ids: Any, scores: Any) -> Any:
            row = (input_ids == ord("a")).nonzero().flatten()[:1]
            scores[row] = -float("inf")
            scores[row, ord("z")] = 0.0
            return scores

    made = manager(ContinuousMasks(vocabulary()), do_sample=False)
    made.logit_processor.logits_processor.append(Forcing())
    found = outputs(made, [{"store": store(PAIRS_TEXT), "max_new_tokens": 20}] * 2)
    assert "is not legal here" in found[0].error
    assert text_of(found[0].generated_tokens) == b"az"
    errors = [output.error for output in found]
    assert len(errors) == 2


def test_children_of_a_request_go_on_with_its_text() -> None:
    torch.manual_seed(11)
    made = manager(ContinuousMasks(vocabulary()), num_return_sequences=3)
    made.add_request(list(PROMPT), store=store(JSON_TEXT), max_new_tokens=12)
    made.start()
    found: list[Any] = []
    deadline = time.monotonic() + 100
    while len(found) < 3:
        assert time.monotonic() < deadline
        output = made.get_result(timeout=1)
        if output is not None:
            found.append(output)
    made.stop(block=True)
    for output in found:
        assert output.error is None
        json.loads(whole(store(JSON_TEXT), output.generated_tokens))


def request(tokens: list[int], which: Any, before: int = 0, name: str = "r") -> Any:
    """What transformers keeps of a request; the first `before` tokens came before it was put back to the queue."""
    state = transformers.generation.continuous_batching.requests.RequestState(
        request_id=name,
        initial_tokens=[1, 2, *tokens[:before]],
        generated_tokens=tokens[before:],
        logit_processor_kwargs={"store": which},
        _true_initial_tokens=2 if before else 0,
        eos_token_id=EOS,
    )
    return SimpleNamespace(state=state)


def attached() -> ContinuousMasks:
    masks = ContinuousMasks(vocabulary())
    masks.attach(manager(None))
    return masks


@pytest.mark.parametrize("before", range(4))
def test_a_request_that_was_put_back_is_read_again(before: int) -> None:
    """The mask is that of a fresh matcher over all tokens, however transformers keeps them."""
    masks, which = attached(), store(PAIRS_TEXT)
    tokens = list(b"aab")
    first, second = request(tokens[:before], which), request(tokens, which, before)
    masks.prepare_tensor_args([first])
    numbers = masks.prepare_tensor_args([request([], None), second])
    assert numbers.tolist() == [-1, 1]
    scores = torch.zeros((2, N_ROWS))
    masks(scores, numbers)
    matcher = which.matcher()
    for token in tokens:
        matcher.advance(token)
    assert scores[0].eq(0).all()
    assert scores[1].eq(0).nonzero().flatten().tolist() == [
        t for t in range(vocabulary().size) if matcher.is_allowed(t)
    ]


def test_after_the_end_only_ends_are_left_and_padding_is_masked() -> None:
    masks, which = attached(), store(PAIRS_TEXT)
    ended = request([*b"ab", EOS], which)
    numbers = masks.prepare_tensor_args([ended])
    scores = torch.zeros((1, N_ROWS))
    masks(scores, numbers)
    assert vocabulary().size < N_ROWS
    assert scores[0].eq(0).nonzero().flatten().tolist() == [EOS]
    ended.state.generated_tokens.append(ord("a"))
    assert masks.prepare_tensor_args([ended]).tolist() == [-1]
    assert "after the end" in ended.state.error
    assert masks.prepare_tensor_args([ended]).tolist() == [-1]


def test_rows_of_padding_are_not_constrained() -> None:
    masks = attached()
    values = torch.zeros((4,), dtype=torch.int32)
    masks.fill_defaults(values)
    assert values.tolist() == [-1] * 4


def test_finished_requests_are_forgotten() -> None:
    masks, which = attached(), store(PAIRS_TEXT)
    for n in range(300):
        masks.prepare_tensor_args([request(list(b"a"), which, name=f"r{n}")])
    assert len(masks._texts) < 100


def test_what_is_refused_says_what_to_do() -> None:
    masks = ContinuousMasks(vocabulary())
    with pytest.raises(MaskwrightError, match=r"the store is 'json', a str; expected a store, as mw.build_store"):
        masks.check("json")
    with pytest.raises(MaskwrightError, match=r"init_continuous_batching"):
        masks.attach(SimpleNamespace())
    ahead = manager(None)
    ahead.continuous_batching_config.use_async_batching = True
    with pytest.raises(MaskwrightError, match=r"use_async_batching=False"):
        masks.attach(ahead)
    compiled = manager(None)
    compiled.continuous_batching_config.varlen_compile_config = transformers.CompileConfig()
    with pytest.raises(MaskwrightError, match=r"leave varlen_compile_config"):
        masks.attach(compiled)
    late = manager(None)
    late.batch_processor = object()
    with pytest.raises(MaskwrightError, match=r"as soon as it is made"):
        masks.attach(late)
    wide = Vocabulary.from_tokens([b"a"] * (N_ROWS + 1) + [b""], eos=[N_ROWS + 1], name="wide")
    with pytest.raises(VocabularyError, match=r"288 logits.*up to id 289"):
        ContinuousMasks(wide).attach(manager(None))
    masks.attach(manager(None))
    with pytest.raises(MaskwrightError, match=r"serve a manager already"):
        masks.attach(manager(None))
    masks._rows = np.zeros((0, masks._rows.shape[1]), np.int32)
    with pytest.raises(MaskwrightError, match=r"at most 0"):
        masks.prepare_tensor_args([request([], None)])
