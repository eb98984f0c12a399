"""Bytes to the tokens that are certain whatever comes behind them."""

from __future__ import annotations

import functools
import random
from typing import Any

import pytest

import maskwright as mw
from maskwright.maskstore.vocabulary.encoders import load_encoder

TEXTS = (
    "def mean(numbers):\n    return sum(numbers) / len(numbers)\n\n\n",
    '{"name": "Zoë", "n": [1.5e-3, 20000],\t"ok": true}',
    "   leading,  trailing   \n\n  x = ''' and \"\"\"",
)


@functools.cache
def canonical() -> mw.CanonicalTokens:
    pytest.importorskip("tokenizers")
    return mw.load_canonical("python-tiny")


def naive(state: Any, data: bytes) -> tuple[list[int], bytes]:
    """By the definition: all canonical spellings of the bytes and of what may come behind are followed."""
    tokens = state.tokens.vocabulary.tokens
    known: dict[Any, tuple[set[int], bool]] = {}

    def next_tokens(at: int, there: Any) -> tuple[set[int], bool]:
        """The tokens inside the bytes that some spelling has next, and whether some spelling passes their end."""
        key = at, there.spot
        if key not in known:
            inside, passes = set(), at == len(data) and there.can_end()
            for token, text in enumerate(tokens):
                if not text or not there.is_canonical(token):
                    continue
                if len(text) > len(data) - at:
                    passes |= text.startswith(data[at:])
                elif data.startswith(text, at):
                    after = there.fork()
                    after.advance(token)
                    more, beyond = next_tokens(at + len(text), after)
                    if more or beyond:
                        inside.add(token)
            known[key] = inside, passes
        return known[key]

    found: list[int] = []
    while True:
        inside, passes = next_tokens(len(data) - len(data[sum(len(tokens[token]) for token in found) :]), state)
        if passes or len(inside) != 1:
            return found, data[sum(len(tokens[token]) for token in found) :]
        found += inside
        state = state.fork()
        state.advance(found[-1])


def test_tokens_are_those_that_every_text_has() -> None:
    rng, tokenize, compared = random.Random(2), load_encoder("python-tiny").tokenize, 0
    for _ in range(60):
        text = rng.choice(TEXTS)
        begin = text[: rng.randrange(len(text) + 1)]
        tokens, left = mw.tokenize_partial(canonical().start(), begin.encode())
        spelled = b"".join(canonical().vocabulary.tokens[token] for token in tokens)
        assert spelled + left == begin.encode()
        for _ in range(5):
            other = rng.choice([text[len(begin) :], *TEXTS, "", "s", "1", "\n", " ", "é"])
            assert tokenize(begin + other)[: len(tokens)] == tokens, (begin, other)
        compared += len(tokens)
        assert len(left) < 24
    assert compared > 300


def test_no_token_more_is_certain() -> None:
    """Against the definition, also behind recent tokens."""
    rng, tokenize = random.Random(4), load_encoder("python-tiny").tokenize
    n_tokens = n_left = 0
    for _ in range(14):
        text = rng.choice(TEXTS)
        at = rng.randrange(len(text))
        state = canonical().start()
        recent = tokenize(text[:at])
        for token in recent:
            state.advance(token)
        data = text[at : at + rng.randrange(7)].encode()
        found = mw.tokenize_partial(state, data)
        assert found == naive(state, data)
        n_tokens, n_left = n_tokens + len(found[0]), n_left + len(found[1])
    assert n_tokens > 3 and n_left > 10


def test_what_is_no_bytes() -> None:
    with pytest.raises(mw.MaskwrightError, match=r"data is 'text', .*encode it"):
        mw.tokenize_partial(canonical().start(), "text")  # type: ignore[arg-type]
    assert mw.tokenize_partial(canonical().start(), b"") == ([], b"")


def test_what_is_no_state_and_no_matcher() -> None:
    state, matcher = canonical().start(), mw.build_store("json", "python-tiny").matcher()
    for wrong in (None, "", 3, object()):
        with pytest.raises(mw.MaskwrightError, match=r"^state is .*expected a CanonicalState"):
            mw.tokenize_partial(wrong, b"a")  # type: ignore[arg-type]
        with pytest.raises(mw.MaskwrightError, match=r"^state is .*expected a CanonicalState"):
            mw.forced_tokens(matcher, wrong)  # type: ignore[arg-type]
        with pytest.raises(mw.MaskwrightError, match=r"^matcher is .*expected a Matcher"):
            mw.forced_tokens(wrong, state)  # type: ignore[arg-type]


def test_examples_of_llguidances_article() -> None:
    """Mistral's `fileName` is one token and `filePath` two: `file` must not be forced. A quote may become `":`."""
    name = "mistral-7b-v0.1"
    tokens, vocabulary = mw.load_canonical(name), mw.load_vocabulary(name)

    def after_quote(*keys: str) -> tuple[bytes, list[bytes]]:
        schema = {
            "type": "object",
            "properties": {key: {"type": "string"} for key in keys},
            "additionalProperties": False,
        }
        required = {"required": list(keys)} if len(keys) == 1 else {"minProperties": 1}
        store = mw.build_store(mw.load_schema(schema | required, style="compact"), vocabulary)
        matcher, state = store.matcher(), tokens.start()
        begin = vocabulary.tokens.index(b'{"')
        matcher.advance(begin)
        state.advance(begin)
        return matcher.forced_bytes(), [vocabulary.tokens[token] for token in mw.forced_tokens(matcher, state)]

    assert after_quote("filePath", "fileName") == (b"file", [])
    parts = [b"name", b"_", b"of", b"_", b"the", b"_", b"person"]
    assert after_quote("name_of_the_person") == (b'name_of_the_person":"', parts)
    certain, left = mw.tokenize_partial(tokens.start(), b'name_of_the_person"')
    assert ([vocabulary.tokens[token] for token in certain], left) == (parts, b'"')
