"""The grammars json, json.compact and json.indent2: cases by hand, held against Python's json as well, and files of the data."""

from __future__ import annotations

import base64
import json
import random
import re
from typing import Any

import pytest
from library_cases import byte_parser, library_grammar, records, sampled, texts_of

NAMES = ("json", "json.compact", "json.indent2")


def python_takes(data: bytes) -> bool:
    def refuse(name: str) -> object:
        raise ValueError(f"{name} is not JSON")

    try:
        json.loads(data.decode(), parse_constant=refuse)
    except ValueError:
        return False
    return True


def test_python_takes_the_same() -> None:
    for name in NAMES:
        assert [text for text in texts_of(name, "accept") if not python_takes(text)] == []
    assert [text for text in texts_of("json", "refuse") if python_takes(text)] == []


@pytest.mark.parametrize(
    ("data", "at"),
    [
        (b'"\xff"', 1),
        (b'"\xc3"', 2),
        (b'"\xc0\xaf"', 1),  # overlong
        (b'"\xe0\x80\xaf"', 2),  # overlong
        (b'"\xed\xa0\x80"', 2),  # half a surrogate pair
        (b'"\xf4\x90\x80\x80"', 2),  # past U+10FFFF
        (b'"\xe2\x82', 3),  # half a character, only the end is wrong
        (b"\xe5", 0),
    ],
)
@pytest.mark.parametrize("name", NAMES)
def test_utf8(name: str, data: bytes, at: int) -> None:
    assert byte_parser(name).refusal(data) == at


def test_strings_and_numbers_are_the_same_in_all() -> None:
    patterns = {
        tuple((t.pattern, t.flags) for t in library_grammar(name).terminals if t.name in ("STRING", "NUMBER"))
        for name in NAMES
    }
    assert len(patterns) == 1 and len(patterns.pop()) == 2


def random_value(chosen: random.Random, depth: int) -> Any:
    kind = chosen.randrange(7 if depth else 5)
    if kind < 5:
        return (None, True, -1.5e-30, chosen.randrange(10**6), 'a "b" \\ é\n')[kind]
    values = [random_value(chosen, depth - 1) for _ in range(chosen.randrange(4))]
    return values if kind == 5 else {f"{i} :": value for i, value in enumerate(values)}


def test_what_json_dumps_writes() -> None:
    chosen = random.Random(3)
    for _ in range(100):
        value = random_value(chosen, 5)
        for is_ascii in (True, False):
            compact = json.dumps(value, separators=(",", ":"), ensure_ascii=is_ascii).encode()
            indented = json.dumps(value, indent=2, ensure_ascii=is_ascii).encode()
            assert byte_parser("json.compact").accepts(compact)
            assert byte_parser("json.indent2").accepts(indented)
            assert byte_parser("json").accepts(compact) and byte_parser("json").accepts(indented)
            assert byte_parser("json").accepts(json.dumps(value, ensure_ascii=is_ascii).encode())
            if b"\n" in indented:
                assert not byte_parser("json.compact").accepts(indented)
                assert not byte_parser("json.indent2").accepts(compact)


@pytest.mark.parametrize("name", NAMES)
def test_sampled_texts(name: str) -> None:
    for text in sampled(name, 60):
        assert python_takes(text.encode()), text
        if name == "json.compact":
            assert not re.search(r"\s", re.sub(r'"(?:[^"\\]|\\.)*"', "", text)), text


def test_real_files() -> None:
    for record in records("source/json", 150):
        assert byte_parser("json").refusal(record["text"].encode()) is None, record["path"]


def test_mutated_files_are_refused_at_the_very_byte() -> None:
    for record in records("negative/json", 150):
        assert byte_parser("json").refusal(record["text"].encode()) == record["first_bad_byte"], record["id"]


def test_conformance_suite() -> None:
    verdicts = {"y": 0, "n": 0}
    for record in records("negative/json_nst_test_parsing", 1000):
        data = record["text"].encode() if record["utf8"] else base64.b64decode(record["text_b64"])
        if record["expected"] in verdicts:
            verdicts[record["expected"]] += 1
            assert byte_parser("json").accepts(data) == (record["expected"] == "y"), record["name"]
    assert min(verdicts.values()) > 20
