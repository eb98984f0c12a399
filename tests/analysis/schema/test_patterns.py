"""Patterns as ECMA 262 reads them, against the answers of Node.js."""

from __future__ import annotations

import json
import lzma
import random
import re
import shutil
import statistics
import time
from typing import Any

import pytest
from ecma_patterns import FILE, Case, of_node, random_cases
from paths import SHARED

from maskwright.analysis.errors import SchemaError
from maskwright.analysis.regex import ecma
from maskwright.analysis.regex.spell import spell, valid_utf8
from maskwright.analysis.schema.graph import build_graph
from maskwright.analysis.schema.load import load_schema
from maskwright.analysis.schema.strings import pattern_automaton


def answer(pattern: str, texts: list[str]) -> str | None:
    dfa = pattern_automaton(pattern)
    return "".join("01"[dfa.matches(text.encode())] for text in texts)


def check(cases: list[Case], answers: list[str | None]) -> int:
    """Compares; the number of patterns that no automaton is known for."""
    unknown = 0
    for (pattern, texts), wanted in zip(cases, answers, strict=True):
        try:
            found = answer(pattern, texts)
        except SchemaError as error:
            unknown += "inside a look-behind" in str(error)
            found = wanted if "inside a look-behind" in str(error) else None
        assert found == wanted, (pattern, texts)
    return unknown


def test_node_found_the_same() -> None:
    made = json.loads(FILE.read_text(encoding="utf-8"))["cases"]
    cases = [(pattern, texts) for pattern, texts, _ in made]
    answers = [wanted for _, _, wanted in made]
    assert len(cases) == 600
    everything = "".join(wanted or "" for wanted in answers)
    assert everything.count("0") > 1000 and everything.count("1") > 1000
    assert check(cases, answers) < 30


FLAGGED = [
    "(?i)^a[b-d]",
    "(?i)k",
    "^(?i:k)S",
    "(?i)[^s]",
    "(?i)^(?-i:a)b",
    "(?s)^a.b",
    "^a.b",
    "(?is)^a.B",
    "(?i)^\\x61b",
]
FLAGGED += [
    "(?i)^ß",
    "(?i)[b-d]{2}",
    "(?i)é|Σ",
    "(?i)^[^a-k]*$",
    r"(?i)^[\d_]",
    "(?s:a.)(?i:S|(?-i:é))",
    "(?i)",
]


@pytest.mark.parametrize("pattern", FLAGGED)
def test_flags_are_those_of_python(pattern: str) -> None:
    rng = random.Random(pattern)
    texts = ["", *("".join(rng.choices("aAbBkKsSéÉßσς1_-\n", k=rng.randint(1, 5))) + "a" for _ in range(400))]
    texts += [text.replace("s", "\u017f").replace("k", "\u212a") for text in texts]
    found = answer(pattern, texts)
    assert found == "".join("01"[re.search(pattern, text) is not None] for text in texts)
    assert pattern == "(?i)" or {*found} == {"0", "1"}


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
@pytest.mark.parametrize("seed", range(3))
def test_node_finds_the_same(seed: int) -> None:
    cases = random_cases(seed, 400, 20)
    assert check(cases, of_node(cases)) < 40


@pytest.mark.parametrize(
    ("pattern", "found", "not_found"),
    [
        (r"^\d$", ["7"], ["٣"]),
        (r"^\w$", ["a", "_"], ["é"]),
        (r"^\s$", ["\ufeff", "\u2028", "\v"], ["\x1c", "\x85"]),
        ("^a$", ["a"], ["a\n"]),
        ("^.$", ["😀", "\x85"], ["\n", "\r", "\u2028", "\u2029"]),
        (r"^\/\-\_$", ["/-_"], ["\\/-_"]),
        (r"^\cJ\x41\u0042\u{43}$", ["\nABC"], ["\ncABC"]),
        (r"^\ud83d\ude00$", ["😀"], []),
        (r"^[\b]$", ["\b"], ["b"]),
        (r"^[\d-x]$", ["5", "-", "x"], ["a"]),
        (r"^(?<year>\d{4})$", ["2024"], ["24"]),
        (r"^\p{Lu}\p{Letter}\p{gc=Nd}\p{General_Category=Decimal_Number}$", ["Éé1٣"], ["éé11"]),
        (r"^[^]$", ["\n", "a"], ["", "ab"]),
        (r"^[]$", [], ["", "a"]),
        ("^{$", ["{"], ["a"]),
        ("^a{,2}$", ["a{,2}"], ["a", "aa"]),
        ("^]}$", ["]}"], []),
        (r"\bfoo\b", ["a foo b", "foo"], ["foobar", "éfoo_"]),
        (r"(?i)^\w$", ["k", "\u017f", "\u212a"], ["\u0131", "\u0130", "é"]),  # all of these as Node.js
        (r"(?i)^\W$", ["\u0131", "é"], ["k", "s", "\u017f", "\u212a"]),
        (r"(?i)^[^\w]$", ["é"], ["s", "\u017f", "\u212a"]),
        (r"^[\W]$", ["\u017f", "\u212a"], ["s"]),
        (r"(?i)^\b", ["\u017f"], ["é"]),
        (r"(?i)^\P{Lu}$", ["A", "a", "1"], []),
        (r"(?i)^[^\P{Lu}]$", [], ["A", "a", "1"]),
        ("(?<=a)b", ["ab"], ["b", "bb"]),
        ("(?<!a)b", ["b", "bb"], ["ab"]),
        ("(?=a)*b", ["b"], ["a"]),
        ("(^)*a", ["ba"], ["b"]),
        ("^(?!.*--)[a-z-]+$", ["a-b"], ["a--b"]),
    ],
)
def test_patterns_and_texts(pattern: str, found: list[str], not_found: list[str]) -> None:
    dfa = pattern_automaton(pattern)
    assert [text for text in found if not dfa.matches(text.encode())] == []
    assert [text for text in not_found if dfa.matches(text.encode())] == []


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("a(", r"a \( that is not closed, at offset 1"),
        ("a)", r"a \) that closes nothing, at offset 1"),
        ("[a", r"a \[ that is not closed, at offset 0"),
        ("a**", "nothing to repeat, at offset 2"),
        ("*", "nothing to repeat, at offset 0"),
        ("^*", "nothing to repeat, at offset 0"),
        (r"a\b+", "nothing to repeat, at offset 1"),
        ("(?<=a)*", "nothing to repeat, at offset 0"),
        ("{1}", "nothing to repeat, at offset 0"),
        ("a{2,1}", r"the quantifier \{2,1\} has its bounds in the wrong order, at offset 1"),
        ("a{99999999}", "more than 1,048,576 repetitions, at offset 1"),
        ("[z-a]", "a range whose end is before its start, at offset 0"),
        ("a(?i)", r".*flags are i and s, as in \(\?i:...\), or first of all as in \(\?i\), at offset 1"),
        ("(?m)a", r".*flags are i and s, .*, at offset 0"),
        ("(?P<n>a)", r"a group \(\?...\) that ECMA 262 does not know"),
        (r"(a)\1", "a back-reference, which no automaton reads, at offset 3"),
        (r"(?<n>a)\k<n>", "a back-reference, which no automaton reads"),
        (r"\Aa", r"the escape \\A, which ECMA 262 does not know; write \^"),
        (r"a\Z", r"the escape \\Z, which ECMA 262 does not know; write \$"),
        (r"\x4", "an escape that needs 2 hexadecimal digits"),
        (r"\u{110000}", r"an escape \\u\{...\} that names no character"),
        (r"\ud83d", "half a surrogate pair, which no text has"),
        (r"\u{d83d}\u{de00}", "half a surrogate pair, which no text has"),
        (r"\ud83d\u{de00}", "half a surrogate pair, which no text has"),
        (r"\p{Foo}", "the property 'Foo' of characters is not known"),
        ("a\\", r"a \\ with nothing behind it"),
        ("(?<=a$)", "a look-ahead .* inside a look-behind, of which no automaton is known"),
        ("(" * 101 + ")" * 101, "more than 100 groups inside one another"),
    ],
)
def test_what_is_wrong_is_said(pattern: str, message: str) -> None:
    with pytest.raises(
        SchemaError, match=r"^/properties/a/pattern: the pattern .* cannot be used: " + message
    ) as error:
        build_graph({"properties": {"a": {"pattern": pattern}}})
    assert error.value.pointer == "/properties/a/pattern"


def common_patterns() -> list[str]:
    """The patterns of the schemas of SchemaStore, sorted."""
    found: set[str] = set()

    def walk(value: object) -> None:
        if isinstance(value, dict):
            for key, one in value.items():
                if key == "pattern" and isinstance(one, str):
                    found.add(one)
                if key == "patternProperties" and isinstance(one, dict):
                    found.update(one)
                walk(one)
        elif isinstance(value, list):
            for one in value:
                walk(one)

    with lzma.open(SHARED / "jsonschema" / "schemastore.jsonl.xz", "rt", encoding="utf-8") as lines:
        for line in lines:
            walk(json.loads(line)["schema"])
    return sorted(found)


@pytest.mark.skipif(not (SHARED / "jsonschema").is_dir(), reason="the data is not here")
def test_common_patterns_take_about_a_millisecond() -> None:
    """With much room for a slow machine."""
    valid_utf8()
    taken = []
    for pattern in common_patterns():
        before = time.perf_counter()
        spell(ecma.parse(pattern), is_search=True)
        taken.append(time.perf_counter() - before)
    assert len(taken) > 100
    assert statistics.median(taken) < 0.01


def test_whether_automata_are_too_many_does_not_depend_on_schemas_before() -> None:
    """Automata that another schema has made cost as much as new ones."""

    def schema(numbers: range) -> dict[str, Any]:
        texts = {k: [f"^[ab]*a[ab]{{9}}{k}$", "^[a-z0-9]*$"] for k in numbers}
        return {"properties": {f"p{k}": {"allOf": [{"pattern": text} for text in each]} for k, each in texts.items()}}

    for k in range(3):
        load_schema(schema(range(10 * k, 10 * k + 10)))
    with pytest.raises(SchemaError, match="multiply too far"):
        load_schema(schema(range(30)))
