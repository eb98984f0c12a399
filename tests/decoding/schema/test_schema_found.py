"""Masks that were wrong, or calls that went astray, before somebody tried to break the engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mask_bits import check_mask

import maskwright as mw
from maskwright.decoding.matcher import Matcher
from maskwright.decoding.schema import constants
from maskwright.stores.schema_store import build_schema_store

TOKENS = (
    *(bytes([byte]) for byte in range(256)),
    *(
        b'\\"',
        b'\\":1',
        b'\xa9"',
        b'\\ude00"',
        b"-" * 80,
        b"1]",
        b'",',
        b',"ab',
        b'a","a',
        b'",t',
        b"true,t",
        b'"]][',
        b'",0',
    ),
    *(b'"a","a"', b'"":', b'"a":1,"a":1', b'a":1,"', b'u0061"', b"\\u0061", b"true,true", b'","', b'", "', b"rue]"),
)
VOCABULARY = mw.Vocabulary("found", (*TOKENS, b""), {len(TOKENS): "</s>"}, (len(TOKENS),))

STRINGS_OF_2 = {"type": "array", "items": {"type": "string", "maxLength": 2}, "uniqueItems": True}
STRINGS_OF_1 = {"type": "array", "items": {"type": "string", "maxLength": 1}, "uniqueItems": True}
STRINGS_OF_3 = {"type": "array", "items": {"type": "string", "maxLength": 3}, "uniqueItems": True}
STRINGS_AND_WORDS = {"type": "array", "items": {"type": ["string", "boolean"]}, "uniqueItems": True}
OPEN = {"type": "object", "additionalProperties": {"type": "integer"}}


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (OPEN, '{"a\\"":1,"a\\'),
        (OPEN, b'{"\xc3\xa9":1,"\xc3'),
        (OPEN, '{"😀":1,"\\ud83d'),
        (OPEN, '{"a":1,"\\'),
        (OPEN, '{"a":1,'),
        (OPEN, '{"a":1'),
        ({"type": "string", "maxLength": 70}, '"'),
        ({"type": "string", "maxLength": 79}, '"'),
        ({"type": "string", "maxLength": 80}, '"'),
        (STRINGS_OF_2, '["ab"'),
        (STRINGS_OF_2, '["ab","a'),
        (STRINGS_OF_1, '["'),
        (STRINGS_OF_1, '["a",'),
        (STRINGS_OF_1, '["a"'),
        (STRINGS_OF_3, '["]][",",",",'),
        (STRINGS_OF_2, '[",0",'),
        (STRINGS_AND_WORDS, "["),
        (STRINGS_AND_WORDS, '[true,"a'),
        (STRINGS_AND_WORDS, "[true,"),
        (STRINGS_AND_WORDS, "[false,t"),
        ({"type": "array", "items": {"type": ["string", "boolean"], "maxLength": 9}, "uniqueItems": True}, '[true,"a'),
        ({"type": "array", "items": {"enum": ["a", "ab", None]}, "uniqueItems": True}, '["a","a'),
    ],
)
def test_masks_are_what_can_be_read(schema: Any, text: str | bytes) -> None:
    matcher = build_schema_store(mw.load_schema(schema), VOCABULARY).matcher()
    matcher.advance_bytes(text if isinstance(text, bytes) else text.encode())
    check_mask(matcher)


def test_a_pattern_and_a_schema_do_not_share_masks() -> None:
    pattern = build_schema_store(mw.load_regex(r"-?(0|[1-9][0-9]*)(\.0+)?"), VOCABULARY).matcher()
    schema = mw.load_schema({"type": "array", "items": {"type": "integer"}}, whitespace="compact")
    numbers = build_schema_store(schema, VOCABULARY).matcher()
    pattern.advance_bytes(b"1")
    numbers.advance_bytes(b"[1")
    for matcher in (pattern, numbers, pattern):
        check_mask(matcher)


def test_unique_literals_of_a_vocabulary_without_some_bytes() -> None:
    tokens = (b"[", b'"', b"a", b",", b"]")
    vocabulary = mw.Vocabulary("few", (*tokens, b""), {5: "</s>"}, (5,))
    store = build_schema_store(
        mw.load_schema({"items": {"enum": ["a", "ab"]}, "uniqueItems": True, "type": "array"}), vocabulary
    )
    words = np.zeros(1, np.uint32)
    for text in (b'["a","a', b'["a'):
        matcher = store.matcher()
        try:
            matcher.advance_bytes(text)
            matcher.fill(words)
        except mw.MaskwrightError:
            continue
        assert [bool(words[0] >> np.uint32(token) & 1) for token in range(5)] == [
            matcher.is_allowed(t) for t in range(5)
        ]


def test_kept_masks_stay_within_their_room() -> None:
    store = build_schema_store(
        mw.load_schema(
            {"$defs": {"a": {"properties": {"x": {"$ref": "#/$defs/a"}}}}, "$ref": "#/$defs/a"}, whitespace="any"
        ),
        VOCABULARY,
    )
    matcher = store.matcher()
    work = matcher.text._work
    for depth in range(40):
        matcher.advance_bytes(b'{"x":' if depth % 3 else b'{"x" : ')
        work[constants.DATA_TOP] = max(
            int(work[constants.DATA_TOP]), int(work[constants.DATA_END]) - 2 * int(work[constants.RESERVE])
        )
        check_mask(matcher)
        assert work[constants.DATA_TOP] <= work[constants.DATA_END]
    matcher.text._workspace.forget()


def test_a_history_that_is_too_long() -> None:
    store = build_schema_store(mw.load_schema(OPEN), VOCABULARY)
    for n in (1 << 31, 1 << 40):
        with pytest.raises(mw.LimitError, match="smaller max_rollback"):
            store.matcher(n)


def test_an_interruption_between_text_and_record() -> None:
    matcher = build_schema_store(mw.load_schema(OPEN), VOCABULARY).matcher()

    class Interrupting(list):  # type: ignore[type-arg]
        def append(self, value: Any) -> None:
            if value == b'"a"':
                matcher.text.said = list(self)
                raise KeyboardInterrupt
            super().append(value)

    matcher.advance_bytes(b"{")
    matcher.text.said = Interrupting(matcher.text.said)
    with pytest.raises(KeyboardInterrupt):
        matcher.advance_bytes(b'"a"')
    matcher.advance_bytes(b":1}")
    assert matcher.said() == b'{"a":1}'
    matcher.rollback(2)
    assert matcher.said() == b"{"


def test_an_interruption_between_a_quick_call_and_its_record() -> None:
    matcher = build_schema_store(mw.load_schema(OPEN), VOCABULARY).matcher()

    class Interrupting(list):  # type: ignore[type-arg]
        def append(self, value: Any) -> None:
            raise KeyboardInterrupt

    token, words = VOCABULARY.tokens.index(b"{"), np.zeros(matcher.store.n_words, np.uint32)
    for take in (lambda: matcher.advance(token), lambda: matcher.step(token, words)):
        matcher._said = Interrupting()
        with pytest.raises(KeyboardInterrupt):
            take()
        assert matcher.said() == b"{" and not matcher.is_allowed(token)
        matcher.rollback(1)
        assert matcher.said() == b""


def test_a_matcher_becomes_one_of_the_same_store_only() -> None:
    one, other = (build_schema_store(mw.load_schema(OPEN), VOCABULARY) for _ in range(2))
    with pytest.raises(mw.MaskwrightError, match="same store"):
        Matcher(one).become(Matcher(other))


def test_nodes_of_too_many_shapes() -> None:
    schema = {"anyOf": [{"type": "object", "required": [f"k{i}"], "maxProperties": i + 1} for i in range(600)]}
    with pytest.raises(mw.LimitError, match="shapes"):
        build_schema_store(mw.load_schema(schema), VOCABULARY)


@pytest.mark.parametrize(
    "text", ['{"maximum":12345678901234567890.5}', '{"const":1e400}', '{"enum":[9007199254740993.0]}']
)
def test_numbers_that_a_float_rounds_are_refused(text: str) -> None:
    with pytest.raises(mw.SchemaError, match="than a float holds"):
        mw.load_schema(text)


@pytest.mark.parametrize("source", ["", "null", "5", '"a"', "a\0b"])
def test_texts_that_are_neither_schemas_nor_paths(source: str) -> None:
    with pytest.raises(mw.SchemaError, match="expected the JSON text of an object"):
        mw.load_schema(source)


def test_long_endings_and_large_batches_are_refused_soon() -> None:
    store = build_schema_store(mw.load_schema({"type": "array", "minItems": 1 << 63}), VOCABULARY)
    with pytest.raises(mw.LimitError, match="bytes"):
        store.matcher().shortest_ending()
    with pytest.raises(mw.LimitError, match="smaller batches"):
        store.batch(10**30)
    with pytest.raises(mw.GrammarError, match="flags is 5"):
        mw.load_regex("a", 5)  # type: ignore[arg-type]


def test_unions_are_types() -> None:
    pytest.importorskip("pydantic")
    matcher = build_schema_store(mw.load_schema(int | None), VOCABULARY).matcher()
    matcher.advance_bytes(b"null")
    assert matcher.is_accepting()
