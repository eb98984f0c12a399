"""Matchers of schemas and patterns: what users call, and what they get wrong."""

from __future__ import annotations

import copy
import json
import os
import pickle
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


def allowed(matcher: Any) -> list[bytes]:
    vocabulary = matcher.store.vocabulary
    words = np.zeros(matcher.store.n_words, np.uint32)
    matcher.fill(words)
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")[: vocabulary.size]
    return [vocabulary.tokens[token] for token in np.flatnonzero(bits)]


def spelled(matcher: Any, text: bytes) -> None:
    """Advance by bytes, looking at each byte's token in the mask before."""
    for byte in text:
        assert bytes([byte]) in allowed(matcher), (matcher.said(), byte)
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
    assert allowed(matcher) == []


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
    [
        {"a/b": "\x7f\u2028\t😀", 'q"\n': "\x07"},
        {'q"\n': "é\\", "a/b": "", "n": "\x1f\b", "other\x00": '\\"\n'},
    ],
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


@pytest.mark.parametrize("back", [0, 1, 2, 3])
def test_a_pickle_remembers_as_many_tokens_as_the_matcher(store: SchemaStore, back: int) -> None:
    matcher, batch = store.matcher(max_rollback=3), store.batch(2, 3)
    for part in (b"{", b'"name"', b":", b'"a', b'"'):
        matcher.advance_bytes(part)
        batch.advance_bytes(1, part)
    matcher.rollback(back)
    batch.rollback(1, back)
    again, texts = pickle.loads(pickle.dumps(matcher)), pickle.loads(pickle.dumps(batch))
    assert repr(again) == repr(matcher) and f"{3 - back} of 3 tokens" in repr(again)
    for undo in (matcher.rollback, again.rollback, lambda n: texts.rollback(1, n)):
        with pytest.raises(mw.MaskwrightError, match=f"cannot roll back {4 - back} tokens"):
            undo(4 - back)
        undo(3 - back)
    assert matcher.said() == again.said() == b'{"name"'
    assert allowed(again) == allowed(matcher)


def test_rollback_fork_reset(store: SchemaStore) -> None:
    matcher = store.matcher(max_rollback=4)
    for part in (b"{", b'"name"', b":", b'"a', b'"', b"}"):
        matcher.advance_bytes(part)
    other = matcher.fork()
    other.rollback(3)
    assert other.said() == b'{"name":'
    assert matcher.is_accepting() and not other.is_accepting()
    other.advance_bytes(b'"b"}')
    with pytest.raises(mw.MaskwrightError, match="cannot roll back 5"):
        matcher.rollback(5)
    assert copy.copy(matcher).said() == pickle.loads(pickle.dumps(matcher)).said() == matcher.said()
    matcher.reset()
    assert matcher.said() == b"" and b"{" in allowed(matcher)
    eos = store.vocabulary.eos[0]
    with pytest.raises(mw.IllegalTokenError, match="not complete"):
        matcher.advance(eos)
    matcher.advance_bytes(b'{"name":""}')
    matcher.advance(eos)
    with pytest.raises(mw.IllegalTokenError, match="after the end"):
        matcher.advance_bytes(b" ")
    matcher.rollback()
    assert not matcher.is_finished() and matcher.is_accepting()


def test_a_long_text_takes_little_memory(vocabulary: mw.Vocabulary) -> None:
    store = build_schema_store(mw.load_schema({"type": "array", "items": {"type": "array"}}), vocabulary)
    matcher = store.matcher()
    matcher.advance_bytes(b"[")
    for _ in range(20_000):
        matcher.advance_bytes(b"[1,2],")
    assert matcher.n_bytes < 1_000_000
    matcher.advance_bytes(b"[" * 3000 + b"]" * 3001)
    assert matcher.is_accepting()


def test_step_and_replay(store: SchemaStore) -> None:
    vocabulary = store.vocabulary
    by_text = {text: token for token, text in reversed(list(enumerate(vocabulary.tokens)))}
    tokens = [by_text[bytes([byte])] for byte in b'{"name":"ab"}']
    first, second = store.matcher(), store.matcher()
    words, other = (np.zeros(store.n_words, np.uint32) for _ in range(2))
    for token in tokens:
        first.step(token, words)
        second.advance(token)
        second.fill(other)
        assert np.array_equal(words, other)
    assert store.matcher().replay(tokens) == len(tokens)
    assert store.matcher().replay([*tokens[:3], tokens[0], *tokens]) == 3
    with pytest.raises(mw.IllegalTokenError, match="out of range"):
        first.advance(vocabulary.size)
    with pytest.raises(mw.IllegalTokenError, match="expected an integer"):
        first.advance("a")  # type: ignore[arg-type]
    assert not first.is_allowed(tokens[0]) and first.is_allowed(vocabulary.eos[0])


def test_a_batch(store: SchemaStore) -> None:
    for n_threads in (1, 3):
        batch = store.batch(5, n_threads=n_threads)
        words = np.zeros((5, store.n_words), np.uint32)
        batch.advance_bytes(1, b'{"name":"')
        batch.advance_bytes(2, b'{"age":1')
        batch.copy(1, 3)
        batch.fill(words)
        for slot in range(5):
            matcher = store.matcher()
            matcher.advance_bytes((b"", b'{"name":"', b'{"age":1', b'{"name":"', b"")[slot])
            row = np.zeros(store.n_words, np.uint32)
            matcher.fill(row)
            assert np.array_equal(row, words[slot])
        with pytest.raises(mw.MaskwrightError, match="slot 5"):
            batch.fill(words, [5])
        tokens = [store.vocabulary.tokens.index(b"{"), -1, -1, -1, store.vocabulary.tokens.index(b"}")]
        with pytest.raises(mw.IllegalTokenError, match="slot 4"):
            batch.advance(tokens)
        assert batch.is_allowed(0, store.vocabulary.tokens.index(b'"'))
        assert repr(batch).startswith("<Batch")


def test_matchers_in_many_threads(store: SchemaStore, vocabulary: mw.Vocabulary) -> None:
    others = [build_schema_store(mw.load_schema({"enum": [f"v{i}", i]}), vocabulary) for i in range(8)]
    wrong: list[str] = []

    def work(number: int) -> None:
        matcher = others[number].matcher()
        for _ in range(200):
            matcher.reset()
            if sorted(allowed(matcher)) != sorted(set(allowed(others[number].matcher()))):
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
    [
        (r"\d{4}-\d\d", b"2024-10", b"2024/"),
        (r'"[^"\n]*"|\\', b'"a\\b"', b'"\n'),
        (r"(a|b)*abb", b"ababb", b"abc"),
    ],
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
    assert allowed(matcher) == [b"{"]
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
            legal = allowed(store.matcher())
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
