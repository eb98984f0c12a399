"""Matchers of schemas and patterns: what users call, and what they get wrong."""

from __future__ import annotations

import json
import os
import threading
from typing import Any

import numpy as np
import pytest

import maskwright as mw
from maskwright.decoding.schema import constants
from maskwright.stores.schema_store import SchemaStore, build_schema_store

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 5}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def vocabulary() -> mw.Vocabulary:
    return mw.load_vocabulary("python-tiny")


@pytest.fixture(scope="module")
def store(vocabulary: mw.Vocabulary) -> SchemaStore:
    return build_schema_store(mw.load_schema(SCHEMA, style="any"), vocabulary)


def spelled(matcher: Any, text: bytes) -> None:
    """Advance by bytes, looking at each byte's token in the mask before."""
    for byte in text:
        assert bytes([byte]) in matcher.allowed_tokens(as_bytes=True), (matcher.said(), byte)
        matcher.advance_bytes(bytes([byte]))


@pytest.mark.parametrize(
    "text",
    [
        '{"name":"ab"}',
        ' { "age" : 12 , "name" : "\\u0061\\ud83d\\ude00" } ',
        '{"n\\u0061me":"","age":0}',
        '{"name":"é\\n"}',
    ],
)
def test_legal_texts(store: SchemaStore, text: str) -> None:
    matcher = store.matcher()
    spelled(matcher, text.encode())
    assert matcher.is_accepting()
    matcher.advance(store.vocabulary.eos[0])
    assert matcher.is_finished()
    assert matcher.allowed_tokens(as_bytes=True) == []


MINIMAL = {
    "type": "object",
    "properties": {
        "a/b": {"type": "string"},
        'q"\n': {"enum": ["\x07", "é\\"]},
        "n": {"pattern": "^[\\x00-\\x1f]{2}$"},
    },
    "required": ["a/b", 'q"\n'],
    "additionalProperties": {"maxLength": 3, "type": "string"},
}


@pytest.mark.parametrize(
    "value",
    [{"a/b": "\x7f\u2028\t😀", 'q"\n': "\x07"}, {'q"\n': "é\\", "a/b": "", "n": "\x1f\b", "other\x00": '\\"\n'}],
)
def test_minimal_escapes_are_those_of_the_standard_library(vocabulary: mw.Vocabulary, value: dict[str, str]) -> None:
    store = build_schema_store(mw.load_schema(MINIMAL, escapes="minimal"), vocabulary)
    matcher = store.matcher()
    spelled(matcher, json.dumps(value, ensure_ascii=False).encode())
    assert matcher.is_accepting()


@pytest.mark.parametrize(
    ("text", "legal"),
    [
        ('{"a\\/b"', 4),
        ('{"\\u0061', 6),
        ('{"a/b":"\\u0061"', 12),
        ('{"a/b":"\\u000a"', 13),
        ('{"a/b":"\\u001F"', 13),
        ('{"a/b":"\\ud83d', 10),
        ('{"a/b":"\\/', 9),
        ('{"q\\u0022', 7),
        ('{"q\\"\\n":"\\b', 11),
        ('{"q\\"\\n":"\\u0007x', 16),
        ('{"n":"\\"', 7),
        ('{"n":"\\u000b\\u001g', 17),
    ],
)
def test_where_texts_of_minimal_escapes_go_wrong(vocabulary: mw.Vocabulary, text: str, legal: int) -> None:
    matcher = build_schema_store(mw.load_schema(MINIMAL, escapes="minimal"), vocabulary).matcher()
    matcher.advance_bytes(text[:legal].encode())
    assert not matcher.try_bytes(text[legal : legal + 1].encode())
    other = build_schema_store(mw.load_schema(MINIMAL, style="any"), vocabulary).matcher()
    other.advance_bytes(text[:legal].encode())  # masks of one vocabulary, of texts of both kinds
    for each in (matcher, other):
        words = np.zeros(each.store.n_words, np.uint32)
        each.fill(words)
        bits = np.unpackbits(words.view(np.uint8), bitorder="little")
        assert [t for t in range(vocabulary.size) if bits[t] != each.is_allowed(t)] == []


@pytest.mark.parametrize(
    "value", [None, {}, [], [{}, [[1.5, {"a": "b"}]], {"é😀\x7f": [True], 'q"\\/\n\x1f': "\u2028ü"}]]
)
@pytest.mark.parametrize("is_ascii", [True, False])
@pytest.mark.parametrize(
    "layout",
    [{}, {"indent": 2}, {"indent": 4}, {"indent": "\t"}, {"indent": 0}, {"separators": (",", ":")}, {"indent": 10}],
)
def test_the_natural_style_is_what_programs_write(
    vocabulary: mw.Vocabulary, value: Any, is_ascii: bool, layout: dict[str, Any]
) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii, **layout)
    for written in (text, text + "\n", text.replace("\n", "\r\n")):
        matcher = build_schema_store(mw.load_schema(True), vocabulary).matcher()
        spelled(matcher, written.encode())
        assert matcher.is_accepting()


@pytest.mark.parametrize(
    ("text", "legal"),
    [
        ("  ", 1),
        ("\n\n", 1),
        ("\n" + 129 * " ", 129),
        ("[1,  2]", 4),
        ("[1, \n2]", 4),
        ('{"\\u006d', 6),
        ('"\\u0061"', 5),
        ('"\\/', 2),
        ('"\\u000a', 6),
        ('"\\u007e', 6),
    ],
)
def test_the_natural_style_has_no_runs_of_blanks_and_no_needless_escapes(
    vocabulary: mw.Vocabulary, text: str, legal: int
) -> None:
    matcher = build_schema_store(mw.load_schema(True), vocabulary).matcher()
    matcher.advance_bytes(text[:legal].encode())
    assert not matcher.try_bytes(text[legal : legal + 1].encode())


def test_keys_are_forced_where_escapes_are_minimal(vocabulary: mw.Vocabulary) -> None:
    found = {}
    for escapes in ("any", "natural", "minimal"):
        schema = mw.load_schema(SCHEMA, whitespace="compact", escapes=escapes)  # type: ignore[arg-type]
        matcher = build_schema_store(schema, vocabulary).matcher()
        found[escapes] = matcher.forced_bytes()
        if escapes != "any":
            matcher.advance_bytes(b'{"n')
            assert matcher.forced_bytes() == b'ame":"'
            matcher.reset()
            matcher.advance_bytes(b'{"name":"\\u00')
            said = matcher.explain(vocabulary.tokens.index(b"6")).summary
            assert f"$.name: this character is spelled otherwise: escapes are {escapes}" in said
    assert found == {"any": b'{"', "natural": b'{"', "minimal": b'{"'}
    with pytest.raises(mw.UnknownNameError, match=r"style is 'json'; .*natural"):
        mw.load_schema(SCHEMA, style="json")  # type: ignore[arg-type]
    with pytest.raises(mw.UnknownNameError, match="escapes is 'json'; expected 'any', 'natural' or 'minimal'"):
        mw.load_schema(SCHEMA, escapes="json")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "legal"),
    [
        ('{"name":"abcdef"}', 14),
        ('{"name":"\\ud83d"}', 15),
        ('{"name":"a","name"', 13),
        ('{"age":1}', 8),
        ('{"age":-1', 8),
        ('{"age":1,"name":"","x', 18),
        ("[", 0),
        ('{"name":"a\n', 10),
        ('{"age":01', 8),
        ('{"nome', 3),
    ],
)
def test_illegal_texts_stop_at_the_first_wrong_byte(store: SchemaStore, text: str, legal: int) -> None:
    matcher = store.matcher()
    data = text.encode()
    with pytest.raises(mw.IllegalTokenError, match=f"Byte {legal} of it"):
        matcher.advance_bytes(data)
    matcher.advance_bytes(data[:legal])
    with pytest.raises(mw.IllegalTokenError, match=r"cannot come here: \$.*; allowed"):
        matcher.advance_bytes(data[legal : legal + 1])
    assert matcher.said() == data[:legal]


def test_a_long_text_takes_little_memory(vocabulary: mw.Vocabulary) -> None:
    store = build_schema_store(mw.load_schema({"type": "array", "items": {"type": "array"}}), vocabulary)
    matcher = store.matcher()
    matcher.advance_bytes(b"[")
    for _ in range(20_000):
        matcher.advance_bytes(b"[1,2],")
    assert matcher.n_bytes < 1_000_000
    matcher.advance_bytes(b"[" * 3000 + b"]" * 3001)
    assert matcher.is_accepting()


def test_matchers_in_many_threads(store: SchemaStore, vocabulary: mw.Vocabulary) -> None:
    others = [build_schema_store(mw.load_schema({"enum": [f"v{i}", i]}), vocabulary) for i in range(8)]
    wrong: list[str] = []

    def work(number: int) -> None:
        matcher = others[number].matcher()
        for _ in range(200):
            matcher.reset()
            if sorted(matcher.allowed_tokens(as_bytes=True)) != sorted(
                set(others[number].matcher().allowed_tokens(as_bytes=True))
            ):
                wrong.append("mask")
            matcher.advance_bytes(f'"v{number}"'.encode())
            if not matcher.is_accepting():
                wrong.append("end")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    ("pattern", "legal", "illegal"),
    [(r"\d{4}-\d\d", b"2024-10", b"2024/"), (r'"[^"\n]*"|\\', b'"a\\b"', b'"\n'), (r"(a|b)*abb", b"ababb", b"abc")],
)
def test_patterns(vocabulary: mw.Vocabulary, pattern: str, legal: bytes, illegal: bytes) -> None:
    store = build_schema_store(mw.load_regex(pattern), vocabulary)
    matcher = store.matcher()
    spelled(matcher, legal)
    assert matcher.is_accepting()
    with pytest.raises(mw.IllegalTokenError):
        store.matcher().advance_bytes(illegal)


def test_choices(vocabulary: mw.Vocabulary) -> None:
    matcher = build_schema_store(mw.load_choice(["yes", "no", "not sure"]), vocabulary).matcher()
    spelled(matcher, b"no")
    assert matcher.is_accepting()
    spelled(matcher, b"t sure")
    assert matcher.is_accepting()


def test_whitespace_and_order(vocabulary: mw.Vocabulary) -> None:
    compact = build_schema_store(mw.load_schema(SCHEMA, whitespace="compact", key_order="schema"), vocabulary)
    matcher = compact.matcher()
    assert matcher.allowed_tokens(as_bytes=True) == [b"{"]
    spelled(matcher, b'{"name":"a","age":1}')
    with pytest.raises(mw.IllegalTokenError):
        compact.matcher().advance_bytes(b'{"age')
    with pytest.raises(mw.IllegalTokenError):
        compact.matcher().advance_bytes(b"{ ")
    some = build_schema_store(mw.load_schema(SCHEMA, whitespace=2), vocabulary)
    some.matcher().advance_bytes(b'  {\n\t"name"')
    with pytest.raises(mw.IllegalTokenError):
        some.matcher().advance_bytes(b"   ")
    for wrong in ("none", -1, True, "a+", 1.5):
        with pytest.raises(mw.MaskwrightError, match="whitespace is"):
            mw.load_schema(SCHEMA, whitespace=wrong)  # type: ignore[arg-type]


def test_a_fork_while_another_thread_fills(store: SchemaStore) -> None:
    """A child process has no other thread that would give the workspace's lock back."""
    if not hasattr(os, "fork"):
        pytest.skip("this system has no fork")
    matcher = store.matcher()
    workspace = matcher.text._workspace
    with workspace.lock:
        workspace.work[constants.BUSY] = 1
        child = os.fork()
        if child == 0:
            legal = store.matcher().allowed_tokens(as_bytes=True)
            os._exit(0 if b"{" in legal else 1)
        workspace.work[constants.BUSY] = 0
        _, status = os.waitpid(child, 0)
    assert status == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"age": 1}', r"\$\.age: .* \(minimum 18, maximum 150\)"),
        ('{"d": "2026-02-30"', r'\$\.d: .* \(format "date"\)'),
        ('{"c": "a', r'\$\.c: .* \(pattern "\^\[A-Z\]\+\$"\)'),
        ('{"n x": [3,', r'\$\["n x"\]\[0\]: .* \(multipleOf 5\)'),
    ],
)
def test_a_refused_scalar_is_told_with_its_keywords(text: str, said: str) -> None:
    schema = {
        "properties": {
            "age": {"type": "integer", "minimum": 18, "maximum": 150},
            "d": {"$ref": "#/$defs/day"},
            "c": {"type": "string", "pattern": "^[A-Z]+$"},
            "n x": {"type": "array", "items": {"type": "number", "multipleOf": 5}},
        },
        "additionalProperties": False,
        "type": "object",
        "$defs": {"day": {"type": "string", "format": "date"}},
    }
    matcher = mw.build_store(mw.load_schema(schema), "python-tiny").matcher()
    with pytest.raises(mw.IllegalTokenError, match=said):
        matcher.advance_bytes(text.encode())
