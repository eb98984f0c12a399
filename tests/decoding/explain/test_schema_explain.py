"""Explanations of a store's texts: for patterns, by id, and by a matcher; they agree with the masks."""

from __future__ import annotations

import json
from random import Random

import pytest
from shares import share

import maskwright as mw
from maskwright.analysis.errors import IllegalTokenError, MaskwrightError
from maskwright.decoding.explain.schema_explain import explain_schema_id, explain_schema_text, explain_schema_token

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}, "required": ["a"]}
PATTERN = mw.load_regex(r"(ab)+\n?")


def vocabulary() -> mw.Vocabulary:
    return mw.Vocabulary.from_tokens([b"", *(bytes([i]) for i in range(256)), b'{"', b"ab", b""], eos=[0])


def test_texts_of_patterns() -> None:
    texts, name = PATTERN.automaton, PATTERN.name
    whole, begun, wrong = (explain_schema_text(texts, name, text) for text in (b"abab", b"aba", b"ab\nab"))
    assert whole.is_allowed and whole.is_whole and begun.is_allowed and begun.is_whole is False
    assert (
        not wrong.is_allowed and wrong.position is not None and (wrong.position.line, wrong.position.column) == (2, 1)
    )
    assert "'a' cannot come here; allowed: nothing" in wrong.summary
    token = explain_schema_token(texts, name, b"ab", b"abb")
    assert not token.is_allowed and "byte 2 of it, 'b', cannot come here; allowed: '\\n', 'a'" in token.summary
    assert token.bytes_allowed == b"\na" and json.dumps(token.to_dict())
    assert explain_schema_token(texts, name, b"ab", b"ab").is_allowed
    assert explain_schema_token(texts, name, b"bb", b"ab").what == "the text", "the text itself is explained"
    with pytest.raises(MaskwrightError, match="the text is"):
        explain_schema_text(texts, name, "ab")  # type: ignore[arg-type]


@pytest.mark.parametrize("n", share([1, 3], 1))
@pytest.mark.parametrize("kind", ["schema", "pattern"])
def test_explanations_agree_with_the_masks(kind: str, n: int) -> None:
    """Random legal texts: what is explained as allowed is what the matcher allows, for each token."""
    store = mw.build_store(SCHEMA if kind == "schema" else PATTERN, vocabulary())
    rng = Random(1)
    for _ in range(n):
        matcher = store.matcher()
        for _ in range(8):
            allowed = [token for token in range(store.vocabulary.size) if matcher.is_allowed(token)]
            for token in rng.sample(range(store.vocabulary.size), 40) + allowed[:5]:
                found = explain_schema_id(store, matcher.said(), token)
                assert found.is_allowed == (token in allowed), (matcher.said(), token)
                assert found.summary == matcher.explain(token).summary
                assert matcher.why(token).startswith(f"token {token}")
            texts = [token for token in allowed if token]
            if not texts:
                break
            matcher.advance(rng.choice(texts))


def test_other_tokens() -> None:
    store = mw.build_store(SCHEMA, vocabulary())
    matcher = store.matcher()
    size = store.vocabulary.size
    assert "stands for no text" in matcher.explain(size - 1).summary
    assert matcher.explain(size).summary == f"token {size} is out of range: the vocabulary has the ids 0 to {size - 1}"
    assert "is out of range" in matcher.explain(10**30).summary
    assert "may not end the text here" in matcher.explain(0).summary
    with pytest.raises(IllegalTokenError, match="expected an integer"):
        matcher.explain("a")  # type: ignore[arg-type]
    matcher.advance_bytes(b'{"a":3}')
    assert matcher.explain(0).is_allowed and matcher.explain(0).is_whole
    matcher.advance(0)
    assert "comes after the end of the text" in matcher.explain(1).summary
    assert store.batch(1).explain(0, 257 + 5).startswith("token 262 is out of range")
    assert "may come next" in store.batch(1).explain(0, 257)
