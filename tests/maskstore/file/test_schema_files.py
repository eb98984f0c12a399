"""Files of schemas and patterns: the same store comes back, and what maskwright did not write is refused."""

from __future__ import annotations

import dataclasses
import json
import pickle
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stores import read_parts, refusal, write_parts

import maskwright as mw
from maskwright.analysis.errors import GrammarError, StoreError
from maskwright.analysis.regex.dfa import MAX_STATES
from maskwright.maskstore.file.fileformat import read_store, store_info
from maskwright.maskstore.schema.write import tables_of
from maskwright.stores.schema_store import SchemaStore, build_schema_store

SCHEMA = {
    "title": "p",
    "type": "object",
    "properties": {"b": {"type": "integer"}, "a": {"$ref": "https://example.org/text"}},
    "required": ["b", "a"],
    "additionalProperties": False,
}
DOCUMENTS = {"https://example.org/text": {"type": "string", "maxLength": 3}}


def vocabulary() -> mw.Vocabulary:
    return mw.Vocabulary.from_tokens([b"", *(bytes([i]) for i in range(256)), b'{"', b'":'], eos=[0])


def schema_store(**options: Any) -> SchemaStore:
    return build_schema_store(mw.load_schema(SCHEMA, documents=DOCUMENTS, **options), vocabulary())


def pattern_store() -> SchemaStore:
    return build_schema_store(mw.load_regex("(ab|ba){2}c?"), vocabulary())


def masks(store: Any, text: bytes) -> list[list[int]]:
    """The mask before each byte, and at the end."""
    matcher, words, found = store.matcher(), np.zeros(store.n_words, np.uint32), []
    for end in range(len(text) + 1):
        if end:
            matcher.advance_bytes(text[end - 1 : end])
        matcher.fill(words)
        found.append(words.tolist())
    return found


@pytest.mark.parametrize(
    "options",
    [{}, {"whitespace": 2, "key_order": "schema"}, {"whitespace": "[ ]?", "lenient": True, "escapes": "minimal"}],
)
def test_the_same_schema_comes_back(tmp_path: Path, options: dict[str, Any]) -> None:
    store = schema_store(**options)
    store.save(tmp_path / "s")
    found = mw.load_store(tmp_path / "s")
    assert isinstance(found, SchemaStore) and isinstance(found.constraint, mw.JsonSchema)
    assert found.constraint.options == store.constraint.options  # type: ignore[union-attr]
    assert (found.name, found.vocabulary) == (store.name, store.vocabulary)
    text = b'{"b": 1, "a":"x"}' if not options else b'{"b":1,"a":"x"}'
    assert masks(found, text) == masks(store, text)
    mw.save_store(found, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "s").read_bytes()
    info = store_info(tmp_path / "s")
    assert info["kind"] == "schema" and info["schema"]["whitespace"] == options.get("whitespace", "natural")
    json.dumps(info)


def test_the_same_pattern_comes_back(tmp_path: Path) -> None:
    pattern_store().save(tmp_path / "s")
    found = mw.load_store(tmp_path / "s", vocabulary=vocabulary())
    assert isinstance(found, SchemaStore) and isinstance(found.constraint, mw.Regex)
    assert masks(found, b"abba") == masks(pattern_store(), b"abba")
    assert store_info(tmp_path / "s")["pattern"] == {"name": found.name, "states": found.constraint.automaton.n_states}
    assert masks(pickle.loads(pickle.dumps(found)), b"ab") == masks(found, b"ab")


def test_a_table_of_a_file_serves_decoders(tmp_path: Path) -> None:
    schema_store().save(tmp_path / "s")
    assert read_store(tmp_path / "s")[0].name == schema_store().name  # type: ignore[union-attr]
    tables = tables_of(schema_store().constraint, vocabulary())
    mw.save_store(tables, tmp_path / "t")
    assert (tmp_path / "t").read_bytes() == (tmp_path / "s").read_bytes()
    with pytest.raises(StoreError, match="keep the schema itself"):
        mw.save_store(dataclasses.replace(tables, constraint=None), tmp_path / "u")


def test_a_file_for_something_else_is_refused(tmp_path: Path) -> None:
    schema_store().save(tmp_path / "s")
    with pytest.raises(StoreError, match=r"is the store of a schema, not of the grammar .*json"):
        mw.load_store(tmp_path / "s", grammar="json")
    other = mw.Vocabulary.from_tokens([b"a"], eos=[])
    with pytest.raises(StoreError, match="was made for the vocabulary"):
        mw.load_store(tmp_path / "s", vocabulary=other)


def test_values_that_json_lacks_have_no_file(tmp_path: Path) -> None:
    made = mw.load_schema(SCHEMA, documents={**DOCUMENTS, "https://example.org/other": {"const": float("inf")}})
    with pytest.raises(StoreError, match="has values that JSON does not have"):
        build_schema_store(made, vocabulary()).save(tmp_path / "s")
    assert not (tmp_path / "s").exists()


HOSTILE: list[tuple[str, Any, str]] = [
    ("schema", "{", "its schema is not read: .*this is not JSON"),
    ("schema", '{"type":"nul"}', "its schema is not read: .*type is 'nul'"),
    ("schema", "false", "its schema is not read: .*no value satisfies"),
    ("schema", "[" * 100_000, "its schema is not read"),
    ("schema", 5, "metadata.schema is 5, expected str"),
    ("schema", '"/dev/null"', "its schema is not read: schema is a str; expected dict or bool"),
    ("schema", '"/nonexistent"', "its schema is not read: schema is a str"),
    ("schema", '"{}"', "its schema is not read: schema is a str"),
    ("schema", '"\\ud800"', "its schema is not read: schema is a str"),
    ("schema", "null", "its schema is not read: schema is a NoneType"),
    ("schema", "[]", "its schema is not read: schema is a list"),
    ("documents", '"/"', "its schema is not read: documents is a str"),
    ("documents", "[1]", "its schema is not read: documents is a list"),
    ("documents", "null", "its schema is not read: documents is a NoneType"),
    ("documents", '{"a":"/etc"}', "its schema is not read: .*leads to nothing that is given"),
    ("whitespace", "true", "its schema is not read: whitespace is a bool"),
    ("whitespace", "[1]", "its schema is not read: whitespace is a list; expected str or int"),
    ("whitespace", '{"a":1}', "its schema is not read: whitespace is a dict"),
    ("whitespace", '"\\ud800"', "its schema is not read"),
    ("whitespace", '"("', "its schema is not read: pattern"),
    ("whitespace", '"x"', "its schema is not read: whitespace is 'x'"),
    ("whitespace", "1e9", "its schema is not read: whitespace is"),
    ("key_order", "other", "its schema is not read: key_order is 'other'"),
    ("escapes", "none", "its schema is not read: escapes is 'none'; expected 'any', 'natural' or 'minimal'"),
    ("lenient", 1, "metadata.lenient is 1, expected bool"),
    ("kind", "table", "its kind is 'table', expected"),
    ("kind", ["schema"], "its kind is .*expected"),
    ("kind", "automaton", "lacks the members"),
    ("kind", "pattern", "metadata lacks the members|has .*not expected"),
]


@pytest.mark.parametrize(("member", "value", "said"), HOSTILE)
def test_hostile_facts_are_refused(tmp_path: Path, member: str, value: Any, said: str) -> None:
    schema_store().save(tmp_path / "s")
    facts, tensors = read_parts(tmp_path / "s")
    write_parts(tmp_path / "s", {**facts, member: value}, tensors)
    with pytest.raises(StoreError, match=said):
        mw.load_store(tmp_path / "s")


def test_a_file_of_a_schema_reads_no_other_file(tmp_path: Path) -> None:
    """The text of a string would name a file to `load_schema`."""
    (tmp_path / "secret.json").write_text('{"enum": ["secret"]}')
    schema_store().save(tmp_path / "s")
    facts, tensors = read_parts(tmp_path / "s")
    for path in (tmp_path / "secret.json", tmp_path / "absent.json", tmp_path):
        write_parts(tmp_path / "s", {**facts, "schema": json.dumps(str(path))}, tensors)
        assert "schema is a str; expected dict or bool" in refusal(tmp_path / "s")


@pytest.mark.parametrize("text", ["{", "[1]", "true", ""])
def test_what_a_file_says_is_checked_too(tmp_path: Path, text: str) -> None:
    schema_store().save(tmp_path / "s")
    facts, tensors = read_parts(tmp_path / "s")
    write_parts(tmp_path / "s", {**facts, "whitespace": text}, tensors)
    with pytest.raises(StoreError, match="whitespace"):
        store_info(tmp_path / "s")


def test_hostile_automata_are_refused(tmp_path: Path) -> None:
    pattern_store().save(tmp_path / "s")
    facts, tensors = read_parts(tmp_path / "s")
    table, accepting = tensors["automaton.next_state"], tensors["automaton.is_accepting"]
    dead = np.concatenate([table, np.full((1, 256), -1, table.dtype)])
    for next_state, ends, said in (
        (np.where(table == 3, len(table), table).astype(table.dtype), accepting, "has a state that is not among"),
        (np.where(table == 3, -2, table).astype(table.dtype), accepting, "has a state that is not among"),
        (table, np.zeros_like(accepting), "is not minimal, or accepts nothing"),
        (dead, np.append(accepting, accepting[:1]), "is not minimal"),
        (table[:0], accepting[:0], "has a state that is not among"),
        (table[:, :255], accepting, "has shape"),
        (table, accepting * 2, "expected 0 or 1"),
    ):
        write_parts(
            tmp_path / "s", facts, {**tensors, "automaton.next_state": next_state, "automaton.is_accepting": ends}
        )
        with pytest.raises(StoreError, match=said):
            mw.load_store(tmp_path / "s")


def test_an_automaton_past_the_limit_of_patterns_is_refused_unread(tmp_path: Path) -> None:
    pattern_store().save(tmp_path / "s")
    facts, tensors = read_parts(tmp_path / "s")
    n = MAX_STATES + 1
    chain = np.full((n, 256), -1, np.int16)
    chain[: n - 1, ord("a")] = np.arange(1, n)
    chosen = {"automaton.is_accepting": np.ones(n, np.uint8), "automaton.next_state": chain}
    write_parts(tmp_path / "s", facts, {**tensors, **chosen})
    begin = time.perf_counter()
    assert "its automaton has 60,001 states, and a pattern has at most 60,000" in refusal(tmp_path / "s")
    assert time.perf_counter() - begin < 10


def test_options_of_grammars_are_refused() -> None:
    for wrong in ({"streamlined": False}, {"rules": "lark"}):
        with pytest.raises(GrammarError, match="is no grammar, and its store holds no entries"):
            mw.build_store({"type": "null"}, vocabulary(), **wrong)  # type: ignore[call-overload]
