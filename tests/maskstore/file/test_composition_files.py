"""Files of compositions: the same store comes back, and what maskwright did not write is refused."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paths import TESTS
from shares import every
from stores import read_parts, write_parts

import maskwright as mw
from maskwright.analysis.composition.structural_tags_schemas import narrowed
from maskwright.analysis.composition.structural_tags_xml import STYLES
from maskwright.analysis.composition.token_parts import AtMostTokens, token_set
from maskwright.analysis.errors import StoreError
from maskwright.analysis.schema.load import Narrowing
from maskwright.analysis.schema.text_patterns import load_regex
from maskwright.maskstore.file.fileformat import store_info

VOCABULARY = mw.Vocabulary(
    "some",
    (b"", *(bytes([i]) for i in range(256)), b'{"', b'":', b"x=1", b'"}.', b"", b""),
    {0: "</s>", 261: "<call>", 262: "<other>"},
    (0,),
)
HOST = r"""
start: "x=" VALUE "." SQL | "q" CALL DATE BOTH | CALL BUDGET SOME
%declare VALUE SQL CALL DATE BOTH BUDGET SOME
"""
INNER = mw.compose('start: "<" VALUE ">"\n%declare VALUE', {"VALUE": {"type": "boolean"}})
PARTS = {
    "VALUE": {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False},
    "SQL": mw.in_json_string('start: "select " /[a-z]+/'),
    "CALL": mw.special_token("<call>"),
    "DATE": load_regex("[0-9]{4}-[0-9]{2}"),
    "BOTH": INNER,
    "BUDGET": AtMostTokens(load_regex("[ab]*c"), 3),
    "SOME": AtMostTokens(token_set(["a", "b", 262]), 2),
}
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}, "n": {"type": "integer"}}, "required": ["q"]}
TAGS = json.loads((TESTS / "data" / "cases" / "structural_tags.json").read_text(encoding="utf-8"))


def in_grammar() -> mw.Composition:
    return mw.compose(HOST, PARTS)


def in_schema() -> mw.Composition:
    host = mw.load_schema(SCHEMA, whitespace=1, key_order="schema")
    return mw.compose(host, {"/properties/q": 'start: "select " /[a-z]+/'}, name="query")


def check_same(one: Any, other: Any, n_texts: int = 12, length: int = 40) -> None:
    """Both stores allow the same in texts that one of them chooses."""
    words = [np.zeros(store.n_words, np.uint32) for store in (one, other)]
    n_read = 0
    for seed in range(n_texts):
        rng = random.Random(seed)
        matchers = [store.matcher() for store in (one, other)]
        for _ in range(length):
            for matcher, mask in zip(matchers, words, strict=True):
                matcher.fill(mask)
            assert (words[0] == words[1]).all()
            token = rng.choice(matchers[0].allowed_tokens())
            for matcher in matchers:
                matcher.advance(token)
            n_read += 1
            if matchers[0].is_finished():
                break
        assert matchers[0].is_finished() or matchers[0].short_ending() == matchers[1].short_ending()
    assert n_read > 3 * n_texts


@pytest.mark.parametrize("make", [in_grammar, in_schema])
def test_the_same_composition_comes_back(tmp_path: Path, make: Any) -> None:
    store = mw.build_store(make(), VOCABULARY)
    store.save(tmp_path / "s")
    for given in ({}, {"vocabulary": VOCABULARY, "mapped": True}):
        found = mw.load_store(tmp_path / "s", **given)
        assert isinstance(found, mw.ComposedStore)
        assert (found.name, found.vocabulary) == (store.name, store.vocabulary)
        assert [part.name for part in found.composition.parts] == [part.name for part in store.composition.parts]
        check_same(store, found)
        found.save(tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == (tmp_path / "s").read_bytes()
    info = store_info(tmp_path / "s")
    assert info["kind"] == "composition" and len(info["composition"]["parts"]) == len(store.parts)
    json.dumps(info)


@pytest.mark.parametrize("case", every(9, TAGS))
def test_tags_of_all_styles_come_back(tmp_path: Path, case: dict[str, Any]) -> None:
    vocabulary = mw.load_vocabulary("python-tiny")
    store = mw.build_store(mw.read_structural_tag(case["tag"]), vocabulary)
    store.save(tmp_path / "s")
    check_same(store, mw.load_store(tmp_path / "s", vocabulary=vocabulary), 3)


ARGUMENTS = {
    "type": "object",
    "properties": {
        "a": {"type": "string"},
        "n": {"type": ["integer", "array"], "items": {"type": "integer"}},
        "o": {"type": "object", "properties": {"s": {"type": "string"}}, "required": ["s"]},
        "e": {"enum": [None, True, 7]},
    },
    "required": ["a", "n", "o", "e"],
    "additionalProperties": False,
}


def narrowings() -> list[dict[str, Any]]:
    """Formats whose schemas are parts of a schema, or say less than it."""
    said = [{"style": style, "json_schema": ARGUMENTS} for style in STYLES]
    said += [{**one, "excludes": ["</x"]} for one in said if not STYLES[one["style"]].nests]
    return [*said, {"json_schema": ARGUMENTS, "excludes": ["bad", "if"]}]


@pytest.mark.parametrize("how", every(4, narrowings()), ids=lambda how: f"{how.get('style')}-{len(how)}")
def test_parts_of_schemas_come_back(tmp_path: Path, how: dict[str, Any]) -> None:
    tag = {"type": "structural_tag", "format": {"type": "json_schema", **how}}
    vocabulary = mw.load_vocabulary("python-tiny")
    store = mw.build_store(mw.read_structural_tag(tag), vocabulary)
    store.save(tmp_path / "s")
    found = mw.load_store(tmp_path / "s")
    # whole texts, since those that are written by chance end in a string
    ending = store.matcher().short_ending().data
    for at in range(len(ending)):
        one, other = store.matcher(), found.matcher()
        for matcher in (one, other):
            matcher.advance_bytes(ending[:at])
        assert one.allowed_tokens() == other.allowed_tokens()
    check_same(store, found, 4)
    found.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "s").read_bytes()


@pytest.mark.parametrize(
    "change",
    [
        {"node": 99},
        {"node": -1},
        {"kinds": ["string"]},
        {"kinds": [[]]},
        {"kinds": [], "node": 99},
        {"excluded": [7]},
        {"is_tight": 1},
        {"more": 1},
        {"sha256": "0" * 64},
    ],
)
def test_parts_of_schemas_that_were_never_written_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    tag = {"type": "structural_tag", "format": {"type": "json_schema", "style": "qwen_xml", "json_schema": ARGUMENTS}}
    mw.build_store(mw.read_structural_tag(tag), "python-tiny").save(tmp_path / "s")
    facts, tensors = read_parts(tmp_path / "s")
    one = next(one for one in facts["languages"] if one["kind"] == "schema")
    one["narrowing"][0] |= change
    write_parts(tmp_path / "s", facts, tensors)
    with pytest.raises(StoreError, match=r"narrowing|no node|no values"):
        mw.load_store(tmp_path / "s")


def test_kinds_that_repeat_are_taken_once() -> None:
    schema = mw.load_schema({"properties": {f"a{i}": {"type": "integer"} for i in range(300)}})
    once, often = (
        narrowed(schema, Narrowing(schema.texts.graph.root, ("object",) * n, (), is_tight=False)) for n in (1, 100_000)
    )
    assert once.texts == often.texts and once.texts.digest == often.texts.digest


def test_what_is_taken_twice_was_never_written(tmp_path: Path) -> None:
    tag = {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": ARGUMENTS, "excludes": ["bad"]}}
    mw.build_store(mw.read_structural_tag(tag), "python-tiny").save(tmp_path / "s")
    facts, tensors = read_parts(tmp_path / "s")
    next(one for one in facts["languages"] if one["kind"] == "schema")["narrowing"] *= 2
    write_parts(tmp_path / "s", facts, tensors)
    with pytest.raises(StoreError, match="comes to other texts"):
        mw.load_store(tmp_path / "s")


def test_digests_of_many_like_strings_come_soon() -> None:
    members = {f"m{i}": {"type": "string", "format": "date-time", "maxLength": 30 + i} for i in range(400)}
    schema = mw.load_schema({"type": "object", "properties": members})
    begin = time.process_time()
    found = narrowed(schema, Narrowing(schema.texts.graph.root, (), ("</parameter>",), is_tight=False))
    assert len(found.texts.digest) == 64
    assert time.process_time() - begin < 2


def test_a_place_may_have_any_name(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"a\tb": {"type": "string"}}, "required": ["a\tb"]}
    store = mw.build_store(mw.compose(schema, {"/properties/a\tb": mw.load_regex("x+")}), VOCABULARY)
    store.save(tmp_path / "s")
    check_same(store, mw.load_store(tmp_path / "s"), 4)


def test_a_language_with_many_places_is_built_once(tmp_path: Path) -> None:
    """64 places of 64 places of 64 places of one pattern."""
    found: Any = mw.load_regex("x+")
    for _ in range(3):
        names = [f"P{number}" for number in range(64)]
        host = f"start: {' | '.join(names)}\n%declare {' '.join(names)}"
        found = mw.compose(host, dict.fromkeys(names, found))
    begin = time.process_time()
    mw.build_store(found, VOCABULARY).save(tmp_path / "s")
    loaded = mw.load_store(tmp_path / "s")
    assert time.process_time() - begin < 20
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "s").read_bytes()
    assert store_info(tmp_path / "s")["composition"]["languages"] == {"automaton": 3, "composition": 3, "pattern": 1}


def test_ids_of_hosts_do_not_wrap(tmp_path: Path) -> None:
    mw.build_store(in_grammar(), VOCABULARY).save(tmp_path / "s")
    facts, tensors = read_parts(tmp_path / "s")
    name = next(name for name in tensors if name.endswith("host_ids") and len(tensors[name]) > 4)
    ids = tensors[name].astype(np.int32)
    ids[:5] = 0, 2**31 - 1, -(2**31), -1, 5
    write_parts(tmp_path / "s", facts, {**tensors, name: ids})
    with pytest.raises(StoreError, match="expected ids of marked tokens"):
        mw.load_store(tmp_path / "s")


def test_a_language_with_several_places_stands_in_a_file_once(tmp_path: Path) -> None:
    parts = {"A": {"type": "integer"}, "B": 'start: "b"+'}
    store = mw.build_store(mw.compose("start: A B\n%declare A B", parts), VOCABULARY)
    twice = mw.build_store(mw.compose("start: A\n%declare A", {"A": store.composition}), VOCABULARY)
    twice.save(tmp_path / "s")
    assert store_info(tmp_path / "s")["composition"]["languages"] == {"automaton": 3, "composition": 2, "schema": 1}


def test_parts_of_several_compositions_are_built_once(tmp_path: Path) -> None:
    pattern = mw.load_regex("x+")
    hosts = {name: mw.compose(f'start: "{name}" X\n%declare X', {"X": pattern}) for name in "AB"}
    both = mw.compose("start: A B X\n%declare A B X", {**hosts, "X": pattern})
    store = mw.build_store(both, VOCABULARY)
    store.save(tmp_path / "s")
    assert store_info(tmp_path / "s")["composition"]["languages"] == {"automaton": 3, "composition": 3, "pattern": 1}
    check_same(store, mw.load_store(tmp_path / "s"), 4)
    mw.load_store(tmp_path / "s").save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "s").read_bytes()


def test_a_file_for_something_else_is_refused(tmp_path: Path) -> None:
    mw.build_store(in_schema(), VOCABULARY).save(tmp_path / "s")
    with pytest.raises(StoreError, match=r"is the store of a composition, not of the grammar .*json"):
        mw.load_store(tmp_path / "s", grammar="json")
    with pytest.raises(StoreError, match="was made for the vocabulary"):
        mw.load_store(tmp_path / "s", vocabulary=mw.Vocabulary.from_tokens([b"a"], eos=[]))


def of(kind: str, number: int = 0) -> Any:
    """From the languages of a file the one of a kind, of several the one of a number."""
    return lambda languages: [one for one in languages if one["kind"] == kind][number]


def part(kind: str) -> Any:
    return lambda languages: next(one for one in languages[-1]["parts"] if one["kind"] == kind)


HOSTILE: list[tuple[Any, str, Any, str]] = [
    (of("composition", -1), "host", 99, "names language 99, expected one before it"),
    (of("composition", -1), "host", -1, "names language -1, expected one before it"),
    (of("composition", -1), "host", "a", "host is 'a', expected int"),
    (of("composition", -1), "kind", "schema", "is no composition|lacks the members"),
    (of("composition", -1), "kind", "entries", "kind is 'entries', expected one of"),
    (of("composition", -1), "kind", ["a"], "kind is .*expected one of"),
    (of("composition", -1), "parts", [], "has marks of more than its 0 parts"),
    (of("composition", -1), "parts", [5], "expected dict"),
    (of("schema"), "schema", '{"type":"nul"}', "its schema is not read: .*type is 'nul'"),
    (of("schema"), "schema", '"/etc/passwd"', "its schema is not read: schema is a str"),
    (of("automaton"), "counts", [["a", -1]], "expected no name twice and no count below 0"),
    (of("automaton"), "table_checksum", "0", "its table has checksum"),
    (of("automaton"), "grammar_sha256", "0" * 64, "grammar_sha256 is"),
    (of("automaton"), "lexing", "nfa", "lexing is 'nfa', expected"),
    (part("text"), "most", 0, "takes at most 0 tokens, which cannot be"),
    (part("text"), "most", 2, "takes at most 2 tokens, which cannot be"),
    (part("text"), "language", 99, "names language 99, expected one before it"),
    (part("special token"), "tokens", [], "the special token is ''"),
    (part("special token"), "tokens", [True], "the special token is True"),
    (part("special token"), "tokens", ["<absent>"], "has no special token '<absent>'"),
    (part("token set"), "tokens", [[]], r"a token is \[\]"),
    (part("token set"), "most", 2**31, "which cannot be"),
]


@pytest.mark.parametrize(("chosen", "member", "value", "said"), HOSTILE)
def test_hostile_facts_are_refused(tmp_path: Path, chosen: Any, member: str, value: Any, said: str) -> None:
    mw.build_store(in_grammar(), VOCABULARY).save(tmp_path / "s")
    facts, tensors = read_parts(tmp_path / "s")
    chosen(facts["languages"])[member] = value
    write_parts(tmp_path / "s", facts, tensors)
    with pytest.raises(StoreError, match=said):
        mw.load_store(tmp_path / "s")


def test_hostile_ids_of_hosts_are_refused(tmp_path: Path) -> None:
    mw.build_store(in_grammar(), VOCABULARY).save(tmp_path / "s")
    facts, tensors = read_parts(tmp_path / "s")
    name = f"{len(facts['languages']) - 1}.host_ids"
    ids = tensors[name]
    for wrong in (ids[::-1], ids[1:], ids + 1, np.where(ids == ids[-1], ids[-2], ids), ids[:0], ids - 1):
        write_parts(tmp_path / "s", facts, {**tensors, name: np.ascontiguousarray(wrong, np.int32)})
        with pytest.raises(StoreError):
            mw.load_store(tmp_path / "s")


@pytest.mark.parametrize("kind", ["pattern", "composition"])
def test_a_host_of_another_kind_is_refused(tmp_path: Path, kind: str) -> None:
    mw.build_store(in_grammar(), VOCABULARY).save(tmp_path / "s")
    facts, tensors = read_parts(tmp_path / "s")
    languages = facts["languages"]
    languages[-1]["host"] = next(number for number, one in enumerate(languages) if one["kind"] == kind)
    for ids in (tensors[f"{len(languages) - 1}.host_ids"], np.zeros(0, np.int32)):
        write_parts(tmp_path / "s", facts, {**tensors, f"{len(languages) - 1}.host_ids": ids})
        with pytest.raises(StoreError, match=f"has a {kind} with .* host_ids as its host"):
            mw.load_store(tmp_path / "s")


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ([[[0, "61"], ["62"]]], "start leads back to itself before it has read something"),
        ([[[1, "61"]], [[], [0]]], "leads back to itself before it has read something"),
        ([[[0]]], "no text is legal"),
        ([], "has a rule that is not among the 0"),
        ([[[7]]], "has a rule that is not among the 1"),
        ([[[-2]]], "has a rule that is not among the 1"),
        ([[["zz"]]], "its rules are not read"),
        ([[[""]]], "which is no literal"),
        ([[[None]]], "which is no literal"),
        ([[["f84040"]]], "which is no literal"),  # the mark of a part, of which there is none
        ([[5]], "its rules are not read"),
        ([5], "expected list"),
        ([[[]]], None),
        ([[["61", 0], ["62"]]], None),
    ],
)
def test_hostile_rules_of_tags_are_refused(tmp_path: Path, rules: Any, said: str | None) -> None:
    form = {"type": "structural_tag", "format": {"type": "const_string", "value": "a"}}
    mw.build_store(mw.read_structural_tag(form), VOCABULARY).save(tmp_path / "s")
    facts, tensors = read_parts(tmp_path / "s")
    of("tag")(facts["languages"])["rules"] = rules
    write_parts(tmp_path / "s", facts, tensors)
    if said is None:
        assert mw.load_store(tmp_path / "s").matcher().short_ending() is not None
        return
    with pytest.raises(StoreError, match=said):
        mw.load_store(tmp_path / "s")
