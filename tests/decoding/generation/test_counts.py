"""Counts of tokens: what is drafted is legal, files are checked, and the bundled model writes the same texts in fewer passes."""

from __future__ import annotations

import functools
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shares import share

import maskwright as mw
from maskwright.decoding.generation import counts as module
from maskwright.decoding.generation.counts import TokenCounts

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "size": {"type": "integer"},
        "enabled": {"type": "boolean"},
    },
    "required": ["name", "size", "enabled"],
    "additionalProperties": False,
}


@functools.cache
def store() -> Any:
    return mw.build_store(mw.load_schema(SCHEMA, whitespace="compact", key_order="schema"), "python-tiny")


def tokens_of(text: str) -> list[int]:
    """The longest token each time."""
    number = {data: token for token, data in reversed(list(enumerate(store().vocabulary.tokens))) if data}
    data, found = text.encode(), []
    while data:
        width = next(n for n in range(len(data), 0, -1) if data[:n] in number)
        found.append(number[data[:width]])
        data = data[width:]
    return found


def instance(rng: random.Random) -> str:
    name = "".join(rng.choices("abcdefg ", k=rng.randint(2, 9)))
    value = {"name": name, "size": rng.randint(0, 9999), "enabled": rng.random() < 0.5}
    return json.dumps(value, separators=(",", ":"))


def learned(n: int = 30, **options: Any) -> TokenCounts:
    found, rng = TokenCounts(store().vocabulary, **options), random.Random(1)
    for _ in range(n):
        tokens = tokens_of(instance(rng))
        assert found.learn(store().matcher(), tokens) == len(tokens)
    return found


def test_drafts_are_legal_and_what_came_before() -> None:
    found, rng = learned(), random.Random(2)
    words = np.zeros(store().n_words, np.int32)
    drafted = right = 0
    for _ in range(10):
        tokens = tokens_of(instance(rng))
        matcher, before = store().matcher(), -1
        for at, token in enumerate(tokens):
            matcher.fill(words)
            draft = found.draft(matcher, words, before)
            there = matcher.fork()
            for each in draft:
                there.advance(each)
            drafted += bool(draft)
            right += bool(draft) and draft == tokens[at : at + len(draft)]
            matcher.advance(token)
            before = token
    assert drafted > 40 and right > 0.5 * drafted


def test_a_token_must_have_come_often_enough() -> None:
    found = TokenCounts(store().vocabulary, least=2, share=0.6)
    place = found.place(np.zeros(4, np.int32), 3)
    assert found.likely(place) == -1
    found.count(place, 7)
    assert found.likely(place) == -1
    found.count(place, 7)
    assert found.likely(place) == 7
    found.count(place, 8)
    assert found.likely(place) == 7
    found.count(place, 8)
    assert found.likely(place) == -1
    assert found.place(np.zeros(4, np.int32), 4) != place != found.place(np.ones(4, np.int32), 3)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PLACES", 5)
    found = TokenCounts(store().vocabulary)
    for number in range(20):
        found.count(number.to_bytes(8, "little"), 1)
    assert len(found) == 5
    for token in range(100):
        found.count((19).to_bytes(8, "little"), token)
    assert len(found._counts[(19).to_bytes(8, "little")]) == module.MOST_TOKENS


def test_what_is_not_legal_ends_a_text() -> None:
    found = TokenCounts(store().vocabulary)
    tokens = tokens_of('{"name":"ab"')
    assert found.learn(store().matcher(), [*tokens, 10**6]) == len(tokens)
    assert found.learn(store().matcher(), [*tokens, *tokens_of("]")]) == len(tokens)


def test_a_file_holds_what_was_learned(tmp_path: Path) -> None:
    found = learned()
    found.save(tmp_path / "counts.json")
    again = TokenCounts.load(tmp_path / "counts.json", store().vocabulary, ahead=3)
    assert again._counts == found._counts and again.ahead == 3
    other = mw.load_vocabulary([b"a", b""], eos=[1])
    with pytest.raises(mw.VocabularyError, match="of another vocabulary"):
        TokenCounts.load(tmp_path / "counts.json", other)


@pytest.mark.parametrize(
    "text",
    ["", "[1", "[]", "{}", '{"format": 1}', '{"format": 9, "vocabulary": "", "counts": {}}', "[" * 100_000]
    + [
        f'{{"format": 1, "vocabulary": "x", "counts": {counts}}}'
        for counts in ("[]", '{"zz": {}}', '{"00": {"a": 1}}', '{"00": {"1": "x"}}')
    ]
    + [
        f'{{"format": 1, "vocabulary": "{"own"}", "counts": {counts}}}'
        for counts in (
            '{"00": {}}',
            '{"00": {"1": 0}}',
            '{"00": {"99999": 1}}',
            '{"00": {"-1": 1}}',
            '{"00": {"1": -3}}',
            '{"00": {"1": 1' + 400 * "0" + "}}",
        )
    ],
)
def test_damaged_files_are_errors(text: str, tmp_path: Path) -> None:
    path = tmp_path / "counts.json"
    path.write_text(text.replace('"own"', f'"{store().vocabulary.digest}"'))
    with pytest.raises(mw.MaskwrightError):
        TokenCounts.load(path, store().vocabulary)


def test_forged_counts_make_no_illegal_draft() -> None:
    """Any numbers may stand in a file."""
    found = TokenCounts(store().vocabulary, least=1, share=0.1)
    words = np.zeros(store().n_words, np.int32)
    matcher = store().matcher()
    matcher.fill(words)
    for token in (-5, 10**9, 0, store().vocabulary.eos[0], tokens_of("]")[0]):
        found._counts = {found.place(words, -1): {token: 9}}
        assert found.draft(matcher, words, -1) == []


def test_options_are_checked() -> None:
    for options in ({"ahead": 0}, {"least": 0}, {"share": 0}, {"share": 2}, {"ahead": "1"}):
        with pytest.raises(mw.MaskwrightError):
            TokenCounts(store().vocabulary, **options)
    other = TokenCounts(mw.load_vocabulary([b"a", b""], eos=[1]))
    with pytest.raises(mw.VocabularyError, match="learn them with this one"):
        mw.generate(lambda tokens: np.zeros(store().vocabulary.size), store().matcher(), [1], counts=other)


def test_a_function_for_a_model_is_asked_for_each_token() -> None:
    calls: list[int] = []

    def logits(tokens: Any) -> Any:
        calls.append(len(tokens))
        return np.random.default_rng(len(tokens)).normal(size=store().vocabulary.size)

    with_counts = mw.generate(logits, store().matcher(), [1], max_tokens=40, counts=learned()).run()
    n = len(calls)
    without = mw.generate(logits, store().matcher(), [1], max_tokens=40).run()
    assert with_counts.tokens == without.tokens and n == len(calls) - n == with_counts.model_calls


@pytest.mark.parametrize("n", share([1, 3], 1))
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_bundled_model_writes_the_same_texts_in_fewer_passes(temperature: float, n: int) -> None:
    pytest.importorskip("transformers")
    model = mw.load_model(device="cpu")
    calls = predicted = tokens = 0
    for seed in range(n):
        options: dict[str, Any] = {"max_tokens": 60, "temperature": temperature, "seed": seed, "heal": False}
        prompt = '{"name":"' + "abcdefg"[seed]
        usual = mw.complete(store(), prompt, model, **options)
        ahead = mw.complete(store(), prompt, model, counts=learned(), **options)
        assert (usual.data, usual.tokens) == (ahead.data, ahead.tokens)
        assert ahead.model_calls + ahead.predicted == usual.model_calls
        calls, predicted, tokens = calls + ahead.model_calls, predicted + ahead.predicted, tokens + len(ahead.tokens)
    assert predicted > 0 and calls < tokens


@pytest.mark.slow
def test_a_context_that_is_full_leaves_drafts_out() -> None:
    """The text outgrows the model's context with drafts under way."""
    pytest.importorskip("transformers")
    model = mw.load_model(device="cpu")
    under = mw.build_store("json", "python-tiny")
    found = TokenCounts(under.vocabulary, least=1, share=0.1)
    prompt = "[" + "1, " * 120
    options: dict[str, Any] = {"max_tokens": 300, "temperature": 0.7, "seed": 3, "heal": False}
    usual = mw.complete(under, prompt, model, **options)
    ahead = mw.complete(under, prompt, model, counts=found, **options)
    assert usual.tokens == ahead.tokens


class Recorder:
    """A model whose logits depend on all tokens so far; its cache is the list of them."""

    def __init__(self) -> None:
        import torch

        self.config = type("Config", (), {"max_position_embeddings": 40})()
        self.device = torch.device("cpu")

    def forward(self, ids: Any, past_key_values: Any = None, use_cache: bool = True, logits_to_keep: int = 0) -> Any:
        raise NotImplementedError

    def __call__(self, ids: Any, past_key_values: Any = None, use_cache: bool = True, logits_to_keep: int = 0) -> Any:
        import torch

        layer = past_key_values.layers[0] if past_key_values else DynamicLayer()
        rows = []
        for token in ids[0].tolist():
            layer.tokens.append(token)
            rows.append(self.row(layer.tokens))
        assert len(layer.tokens) <= 40
        cache = past_key_values or type("Cache", (), {"layers": [layer], "crop": lambda self, n: layer.crop(n)})()
        logits = torch.tensor(np.array(rows[-logits_to_keep:]))[None]
        return type("Found", (), {"logits": logits, "past_key_values": cache})()

    @staticmethod
    def row(tokens: Any) -> Any:
        return np.random.default_rng(tokens).normal(size=8).astype(np.float32)


class DynamicLayer:
    """Stands for the layer of transformers of that name."""

    is_sliding = False

    def __init__(self) -> None:
        self.tokens: list[int] = []

    def crop(self, n: int) -> None:
        del self.tokens[n:]


@pytest.mark.parametrize("seed", range(20))
def test_logits_ahead_are_those_of_the_text(seed: int) -> None:
    """Drafts that come true in part, tokens that are pushed without a question, a context that gets full."""
    pytest.importorskip("torch")
    from maskwright.decoding.generation.logits import ModelReader

    rng = random.Random(seed)
    model = Recorder()
    reader, text = ModelReader(model, [1]), [1]
    for _ in range(60):
        ahead = [rng.randrange(8) for _ in range(6)]
        if rng.random() < 0.8 and len(text) < 40:
            draft = ahead[: rng.randint(0, 6)] if not reader.is_ahead else []
            assert (reader.logits(draft) == model.row(text)).all()
        for token in ahead[: rng.randint(1, 3)] if rng.random() < 0.7 else [rng.randrange(8)]:
            reader.push(token)
            text.append(token)
    reader.logits()


@pytest.mark.parametrize("n", [39, 40, 41])
def test_a_prompt_that_fills_the_context_is_read_whole(n: int) -> None:
    pytest.importorskip("torch")
    from maskwright.decoding.generation.logits import ModelReader

    model, text = Recorder(), [token % 8 for token in range(n)]
    assert model.config.max_position_embeddings == 40
    assert (ModelReader(model, text).logits() == model.row(text if n <= 40 else text[-30:])).all()


@pytest.mark.parametrize("n", share([1, 2], 1))
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_counts_change_nothing_beside_forced_tokens(temperature: float, n: int) -> None:
    pytest.importorskip("transformers")
    model = mw.load_model(device="cpu")
    for seed in range(n):
        options: dict[str, Any] = {"max_tokens": 60, "temperature": temperature, "seed": seed, "fast_forward": True}
        prompt = '{"name":"' + "abcdefg"[seed]
        usual = mw.complete(store(), prompt, model, **options)
        ahead = mw.complete(store(), prompt, model, counts=learned(), **options)
        assert (usual.data, usual.tokens) == (ahead.data, ahead.tokens)


@pytest.mark.parametrize("token", [-1, 10**6, "special"])
def test_a_text_may_begin_behind_a_token_without_text(token: Any) -> None:
    """Its first token is counted where `learn` counts the first one of a text."""
    if token == "special":
        token = store().vocabulary.eos[0]
    found = TokenCounts(store().vocabulary)

    def logits(tokens: Any) -> Any:
        return np.arange(store().vocabulary.size, dtype=np.float32)

    written = mw.generate(logits, store().matcher(), [token], max_tokens=40, counts=found).run()
    assert found._counts[found.place(masked(), -1)] == {written.tokens[0]: 1}


def masked() -> Any:
    words = np.zeros(store().n_words, np.int32)
    store().matcher().fill(words)
    return words


def test_what_learn_takes_is_checked() -> None:
    found = TokenCounts(store().vocabulary)
    assert found.learn(store().matcher(), np.array(tokens_of('{"name'), np.uint16)) > 0
    with pytest.raises(mw.MaskwrightError, match="before is 1099511627776; expected a token, or -1"):
        found.learn(store().matcher(), tokens_of('{"name'), before=1 << 40)
    for matcher, tokens in ((None, [1]), (store(), [1]), (store().matcher(), ["a"]), (store().matcher(), [[1]])):
        with pytest.raises(mw.MaskwrightError):
            found.learn(matcher, tokens)
