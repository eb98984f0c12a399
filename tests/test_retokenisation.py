"""Texts in the tokens that a model likes (Domino's Algorithm 3)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import maskwright as mw
from maskwright.completion import LanguageModel
from maskwright.decoding.generation.logits import ModelReader
from maskwright.maskstore.vocabulary import Vocabulary

TOKENS = (b"a", b"b", b"ab", b"ba", b"aba", b"a", b"\xc3", b"\xa9", b"\xc3\xa9", b"cd", b"")


class Characters:
    """A tokenizer of single letters."""

    def __call__(self, text: str) -> dict[str, list[int]]:
        return {"input_ids": [TOKENS.index(letter.encode()) for letter in text]}


def model(logits: Any) -> LanguageModel:
    vocabulary = Vocabulary("few", TOKENS, {10: "</s>"}, (10,))
    return LanguageModel("few", logits, Characters(), vocabulary, 0, (10,))


def test_each_token_is_the_likeliest_that_fits() -> None:
    """Against all tokens tried one by one, with a model that looks at what came before."""
    rng = random.Random(1)

    def logits(tokens: Sequence[int]) -> Any:
        return np.random.default_rng([*tokens, 5]).normal(size=len(TOKENS) + 3)

    n_long = 0
    for _ in range(40):
        text = "".join(rng.choices(["a", "b", "é"], k=rng.randrange(9)))
        prompt = rng.choice(["", "a", "ab"])
        found = mw.retokenise(model(logits), prompt, rng.choice([text, text.encode()]))
        read, left = [10, *(TOKENS.index(letter.encode()) for letter in prompt)], text.encode()
        for token in found:
            fitting = [other for other, data in enumerate(TOKENS) if data and left.startswith(data)]
            assert token == max(fitting, key=lambda other: logits(read)[other])
            read, left = [*read, token], left[len(TOKENS[token]) :]
            n_long += len(TOKENS[token]) > 1
        assert not left
    assert n_long > 20


def test_nothing_is_taken_behind_which_the_rest_cannot_be_spelled() -> None:
    tokens = (b"a", b"ab", b"bc", b"")
    few = LanguageModel(
        "few", lambda _: np.array([0, 9, 0, 0]), Characters(), Vocabulary("few", tokens, {3: ""}, (3,)), 0, (3,)
    )
    assert mw.retokenise(few, "", "abc") == (0, 2), "not ab, whose c is no token"
    with pytest.raises(
        mw.VocabularyError, match=r"no tokens of vocabulary few spell the text b'abd'; give one of bytes"
    ):
        mw.retokenise(few, "", "abd")
    for prompt, text, message in (
        (b"\xff", "a", "the prompt is not UTF-8"),
        (3, "a", "the prompt is 3"),
        ("", 3, "the text is 3"),
        ("", "\ud800", "the text is .* half a surrogate pair"),
    ):
        with pytest.raises(mw.MaskwrightError, match=message):
            mw.retokenise(few, prompt, text)  # type: ignore[arg-type]


def test_the_bundled_model_likes_its_own_spelling() -> None:
    """What it wrote greedily it would write again, though single bytes spell it too."""
    bundled = mw.load_model()
    store = mw.build_store(mw.load_regex("(.|\\n)*"), bundled.vocabulary)
    prompt = "def mean(numbers):\n    "
    free = mw.complete(store, prompt, bundled, max_tokens=12, constrained=False, heal=False)
    assert mw.retokenise(bundled, prompt, free.data) == free.tokens


def test_logits_asked_twice_are_the_same() -> None:
    pytest.importorskip("torch")
    reader = ModelReader(mw.load_model(device="cpu").model, [0, 5])
    for token in (7, 8):
        reader.launch()
        first = reader.logits()
        expected = first.copy()
        first[:] = 0  # the caller may write into them
        assert (reader.logits() == expected).all() and (reader.logits() == expected).all()
        reader.launch()  # is known
        reader.push(token)
    assert reader.calls == 2
    reader.launch()
    reader.push(9)  # without a question
    np.testing.assert_allclose(reader.logits(), ModelReader(reader._model, [0, 5, 7, 8, 9]).logits(), atol=1e-3)
    assert reader.calls == 4
