"""Explanations of a store's texts: for patterns, by id, and by a matcher; they agree with the masks."""

from __future__ import annotations

import json
from random import Random

import pytest
from shares import share

import maskwright as mw
from maskwright.analysis.errors import IllegalTokenError, MaskwrightError
from maskwright.decoding.explain.explain import explain_schema

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}, "required": ["a"]}
PATTERN = mw.load_regex(r"(ab)+\n?")


def vocabulary() -> mw.Vocabulary:
    return mw.Vocabulary.from_tokens([b"", *(bytes([i]) for i in range(256)), b'{"', b"ab", b""], eos=[0])


def test_texts_of_patterns() -> None:
    texts, name = PATTERN.automaton, PATTERN.name
    whole, begun, wrong = (explain_schema(texts, name, text) for text in (b"abab", b"aba", b"ab\nab"))
    assert whole.is_allowed and whole.is_whole and begun.is_allowed and begun.is_whole is False
    assert (
        not wrong.is_allowed and wrong.position is not None and (wrong.position.line, wrong.position.column) == (2, 1)
    )
    assert "'a' cannot come here; allowed: nothing" in wrong.summary
    token = explain_schema(texts, name, b"ab", b"abb")
    assert not token.is_allowed and "byte 2 of it, 'b', cannot come here; allowed: '\\n', 'a'" in token.summary
    assert token.bytes_allowed == b"\na" and json.dumps(token.to_dict())
    assert explain_schema(texts, name, b"ab", b"ab").is_allowed
    assert explain_schema(texts, name, b"bb", b"ab").what == "the text", "the text itself is explained"
    with pytest.raises(MaskwrightError, match="the text is"):
        explain_schema(texts, name, "ab")  # type: ignore[arg-type]


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
                found = explain_schema(store.texts, store.name, matcher.said(), token, store.vocabulary)
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


@pytest.mark.parametrize(
    ("schema", "text", "why"),
    [
        ({"required": ["b", "c"]}, b'{"b":1}', 'property "c" must be there; allowed'),
        ({"required": ["b", "c"]}, b"{}", 'properties "b" and "c" must be there; allowed'),
        (
            {"anyOf": [{"required": ["b"]}, {"required": ["c"]}]},
            b"{}",
            'property "b" must be there, or $: property "c" must be there; allowed',
        ),
        ({"minProperties": 2}, b'{"b":1}', "at least 2 properties must be there, and there is 1; allowed"),
        ({"type": "array", "minItems": 2}, b"[]", "at least 2 items must be there, and there are none; allowed"),
        ({"type": "string", "minLength": 2}, b'"a"', "the string is shorter than 2 characters (minLength 2); allowed"),
    ],
)
def test_the_error_names_what_is_missing(schema: dict[str, object], text: bytes, why: str) -> None:
    """Also behind bytes that were read, in a batch, and in a part of a composition."""
    store = mw.build_store({"type": "object", **schema}, vocabulary())
    matcher = store.matcher()
    with pytest.raises(IllegalTokenError) as found:
        matcher.advance_bytes(text)
    assert f"{text[-1:]!r}, cannot come here: $: {why}" in str(found.value) and matcher.said() == b""
    matcher.advance_bytes(text[:-1])
    assert f"cannot come here: $: {why}" in matcher.why(text[-1] + 1)
    batch = store.batch(2)
    batch.advance_bytes(1, text[:-1])
    assert f"cannot come here: $: {why}" in batch.explain(1, text[-1] + 1)
    composed = mw.compose('start: "x" PART "y"\n%declare PART', {"PART": mw.load_schema({"type": "object", **schema})})
    for so_far in (b"", b"x", b"x" + text[:-1]):
        inside = mw.build_store(composed, vocabulary()).matcher()
        inside.advance_bytes(so_far)
        with pytest.raises(IllegalTokenError) as found:
            inside.advance_bytes((b"x" + text + b"y")[len(so_far) :])
        assert f"cannot come here: $: {why}" in str(found.value)


def test_the_error_of_a_long_text_does_not_read_it_again() -> None:
    matcher = mw.build_store({"type": "object", "required": ["b"]}, vocabulary()).matcher()
    matcher.advance_bytes(b'{"a":"' + b"x" * 5_000 + b'"')
    with pytest.raises(IllegalTokenError, match="cannot come here; allowed"):
        matcher.advance_bytes(b"}")
    assert 'property "b" must be there' in matcher.explain(b"}"[0] + 1).summary


def test_behind_a_part_that_may_end_its_schema_says_nothing() -> None:
    composed = mw.compose('start: PART "y"\n%declare PART', {"PART": mw.load_schema({"type": "object"})})
    matcher = mw.build_store(composed, vocabulary()).matcher()
    with pytest.raises(IllegalTokenError, match=r"Byte 2 of it, b'z', cannot come here; allowed"):
        matcher.advance_bytes(b"{}z")
