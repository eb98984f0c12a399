"""Sets of strings: boolean operations, finite sets, and patterns that only count characters."""

from __future__ import annotations

import itertools
import json
import random
import time
from typing import Any

import numpy as np
import pytest
from naive_json_texts import is_text_of
from random_patterns import random_pattern
from shares import share

from maskwright.analysis.errors import LimitError, SchemaError
from maskwright.analysis.regex import Dfa, intersect
from maskwright.analysis.regex.spell import valid_utf8
from maskwright.analysis.schema.graph import build_graph
from maskwright.analysis.schema.lengths import length_table
from maskwright.analysis.schema.shapes import Strings
from maskwright.analysis.schema.strings import (
    both,
    either,
    finite_language,
    format_automaton,
    literals,
    pattern_automaton,
    repeated_class,
    searched,
    without,
)

SINGLES = ["a", "b", "é", "[ab]", "[^a]", ".", "^", "$", r"\b"]
TEXTS = ["".join(text) for n in range(5) for text in itertools.product("abé\n", repeat=n)]


def language(dfa: Dfa) -> set[str]:
    return {text for text in TEXTS if dfa.matches(text.encode())}


def is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def test_only_valid_utf8_is_a_string() -> None:
    rng = random.Random(0)
    pieces = [
        b"a", b"\x7f", b"\x80", b"\xbf", b"\xc0", b"\xc1", b"\xc2", b"\xdf", b"\xe0", b"\xed", b"\xef", b"\xf0",
        b"\xf4", b"\xf5", b"\xff",
    ]  # fmt: skip
    pieces += [b"\x9f", b"\xa0", b"\x8f", b"\x90", "é".encode(), "€".encode(), "😀".encode()]
    for _ in range(20_000):
        data = b"".join(rng.choice(pieces) for _ in range(rng.randint(0, 5)))
        assert valid_utf8().matches(data) == is_utf8(data), data
    for code in (0, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF):
        assert valid_utf8().matches(chr(code).encode())
    for code in (0xD800, 0xDBFF, 0xDC00, 0xDFFF):
        assert not valid_utf8().matches(chr(code).encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("seed", range(60))
def test_operations_are_those_of_sets(seed: int) -> None:
    rng = random.Random(seed)
    a, b = (pattern_automaton(random_pattern(rng, 3, SINGLES)) for _ in range(2))
    in_a, in_b = language(a), language(b)
    assert language(both(a, b)) == in_a & in_b
    assert language(either(a, b)) == in_a | in_b
    assert language(without(a, b)) == in_a - in_b
    others = without(valid_utf8(), a)
    assert language(others) == set(TEXTS) - in_a
    assert without(valid_utf8(), others) == a
    for one in (a, others, either(a, b), without(a, b)):
        assert intersect(one, valid_utf8()) == one


def test_literals_are_themselves() -> None:
    texts = ["", "a", "ab", "é", "éa", "b"]
    dfa = literals([text.encode() for text in texts])
    assert finite_language(dfa, 10) == tuple(sorted(text.encode() for text in texts))
    assert literals([]).is_empty
    assert literals(iter([b"b", b"a", b"b"])) is literals([b"a", b"b"])
    with pytest.raises(LimitError, match="different beginnings"):
        literals([b"%05d" % n for n in range(20_000)])
    with pytest.raises(LimitError, match="different beginnings; give fewer or shorter ones"):
        literals([bytes(100_000_000)])  # refused after 20,000 of its bytes


def test_finite_languages() -> None:
    assert finite_language(pattern_automaton("^(a|bc)?$"), 3) == (b"", b"a", b"bc")
    assert finite_language(pattern_automaton("^(a|bc)?$"), 2) is None
    assert finite_language(pattern_automaton("^a*$"), 10**9) is None
    assert finite_language(pattern_automaton("^[ab]{40}$"), 1000) is None
    assert finite_language(pattern_automaton("[]"), 0) == ()
    colours = pattern_automaton("^(red|green|blue)$")
    assert finite_language(colours, 5) == (b"blue", b"green", b"red")


def counts(text: str) -> tuple[int, int | None] | None:
    found = repeated_class(text)
    return None if found is None else found[1:]


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("^.{1,5000}$", 1, 5000),
        (r"^[\w ]{0,255}$", 0, 255),
        ("^[a-z]+$", 1, None),
        ("^[a-z]*$", 0, None),
        ("^[a-z]$", 1, 1),
        ("^[a-z][a-z]{0,62}$", 1, 63),
        ("^([a-z]{1,50}){1,50}$", 1, 2500),
        ("^(?:[a-z]{2,3}){2,}$", 4, None),
        ("^((ab|c))$", None, None),
        ("^(aa)*$", None, None),
        ("^(a{2}){1,3}$", None, None),
        ("^(a{3,4}){1,2}$", None, None),
        ("^(a{3,4}){2,3}$", 6, 12),
        ("^(a{3,4}){3,4}$", 9, 16),
        ("^(a{2,})*$", None, None),
        ("^(a{2,}){0,1}$", None, None),
        ("^(a{2,}){3,4}$", 6, None),
        ("^(a{5}){4}$", 20, 20),
        ("^(a{2,3}){0}$", 0, 0),
        ("^(a{0,3}){0,5}$", 0, 15),
        ("^a+b+$", None, None),
        ("^$", 0, 0),
        ("", 0, None),
        ("a*", 0, None),
        ("^[a-z]{0,3}", 0, None),
        ("a+", None, None),
        (r"[\s\S]{3,5}", 3, None),
        (r"^[\s\S]{3,5}", 3, None),
        (r"^[\s\S]{3,5}$", 3, 5),
        ("^a|a$", None, None),
        ("a(", None, None),
        (r"(a)\1", None, None),
    ],
)
def test_patterns_that_only_count(text: str, least: int | None, most: int | None) -> None:
    assert counts(text) == (None if least is None else (least, most))


@pytest.mark.parametrize("seed", range(200))
def test_counted_patterns_have_the_strings_of_their_automaton(seed: int) -> None:
    rng = random.Random(seed)
    repeats = ("*", "+", "?", "{2}", "{0,3}", "{2,3}", "{2,}", "{3,4}", "{0}", "{1,2}")
    text = f"({rng.choice(['a', '[ab]', '.', '[a-z]'])}{rng.choice(repeats)})"
    for _ in range(rng.randint(0, 2)):
        text = f"({text}{rng.choice(['', 'a', '(?:a{0,2})'])}){rng.choice(repeats)}"
    text = rng.choice(["^{}$", "^{}$", "^{}", "{}"]).format(text)
    found = repeated_class(text)
    if found is None:
        return
    whole = pattern_automaton(text)
    dfa, least, most = found
    upper = 60 if most is None else most + 2
    for n in range(min(upper, 60)):
        for letter in "abé\n":
            word = letter * n
            wanted = dfa.matches(word.encode()) and least <= n and (most is None or n <= most)
            assert whole.matches(word.encode()) == wanted, (text, word)


def test_counted_patterns_cost_nothing() -> None:
    taken = []
    for n in range(1000, 1200):
        before = time.perf_counter()
        assert repeated_class(f"^[^/]{{1,{n}}}$") is not None
        taken.append(time.perf_counter() - before)
    assert sorted(taken)[len(taken) // 2] < 0.005


@pytest.mark.parametrize(
    "text",
    share(
        [
            "^((ab?){1,100}){1,100}$",
            "(x|y|z){1000000}",
            "^((x|yy){1,1000}){1,1000}$",
            "(a|b)*a(a|b){20}$",
            "(((a|bb){99}){99}){99}",
            r"^\p{L}{1,300}\d$",
            r"^.{1,5000}x$",
            "^(?!.*(a|b).{30}c).*$",
            "^(?=(.*a){30}b)(?=(.*c){30}d)(?=(.*e){30}f).*$",
        ],
        6,
    ),
)
def test_patterns_that_are_too_large_are_refused_soon(text: str) -> None:
    before = time.process_time()
    with pytest.raises(SchemaError, match=r"^the pattern .* cannot be used: (its automaton|it has more than)"):
        pattern_automaton(text)
    assert time.process_time() - before < 5  # a tenth of it on a quiet machine
    assert isinstance(searched.cache.get((text,)), str)  # it is not compiled again


@pytest.mark.parametrize(
    "text", ["(a+)+$", "([a-z]{1,50}){1,50}", "(a*)*b", "^(a?){300}a{300}$", "(x+x+)+y", "(.*a){20}"]
)
def test_nested_quantifiers_that_can_be_said_are(text: str) -> None:
    dfa = pattern_automaton(text)
    assert not dfa.is_empty
    assert dfa.n_states < 1000


def test_a_second_request_is_a_look_up() -> None:
    assert pattern_automaton("^a+b$") is pattern_automaton("^a+b$")
    a, b = pattern_automaton("^a"), pattern_automaton("b$")
    copy = Dfa(np.array(a.next_state), np.array(a.is_accepting))
    assert both(a, b) is both(copy, b)
    assert length_table(a) is length_table(copy)


@pytest.mark.parametrize(
    ("pattern", "least", "is_counted"), [("^[ab]+$", 1, False), ("^[ab]*$", 2, False), ("^[ab]*$", 300, True)]
)
def test_an_automaton_counts_a_few_characters_itself(pattern: str, least: int, is_counted: bool) -> None:
    ((shape,),) = build_graph({"type": "string", "pattern": pattern, "minLength": least}).nodes
    assert isinstance(shape, Strings) and shape.automaton is not None
    assert (shape.least > 0) == is_counted
    for n in (least - 1, least, least + 7):
        is_there = shape.automaton.matches(b"a" * n) and n >= shape.least
        assert is_there == (n >= least)


def test_patterns_that_repeat_a_set_too_often_for_an_automaton() -> None:
    pattern, longest = {"pattern": "^[a-z]{2,50000}$"}, "a" * 50_000
    texts = ["", "a", "ab", "AB", longest, longest + "a"]
    taken = {"ab", longest}
    schemas: list[tuple[dict[str, Any], set[str]]] = [
        (pattern, taken),
        ({"not": pattern}, {*texts} - taken),
        ({"not": {"not": pattern}}, taken),
        ({"enum": texts, **pattern}, taken),
        ({"enum": texts, "not": pattern}, {*texts} - taken),
        ({"oneOf": [pattern, {"pattern": "^[ab]{1,50001}$"}]}, {"a", longest + "a"}),
        ({"oneOf": [pattern, {"maxLength": 1}]}, {*texts} - {"AB", longest + "a"}),
    ]
    for schema, said in schemas:
        graph = build_graph({"type": "string", **schema})
        assert {text for text in texts if is_text_of(graph, json.dumps(text))} == said, schema


def test_an_email_beside_a_long_pattern() -> None:
    schema = {"type": "string", "format": "email", "pattern": '^[^\\s@"]{1,64}@[^\\s@]{1,255}$'}
    ((shape,),) = build_graph(schema).nodes
    assert isinstance(shape, Strings) and shape.automaton is not None
    email, pattern = format_automaton("email"), pattern_automaton(schema["pattern"])
    assert email is not None
    local, domain = (
        ["a", "a" * 64, "a" * 65, '"b"', "a.b", "a..b"],
        ["c.de", "x" * 63 + ".y" * 96, "x" * 63 + ".y" * 97],
    )
    for text in (f"{one}@{other}".encode() for one in local for other in domain):
        assert shape.automaton.matches(text) == (email.matches(text) and pattern.matches(text)), text


def test_what_is_too_large_together_says_what_helps() -> None:
    lengths = [{"pattern": f"^(?:[a-f]{{{n}}})*$"} for n in (211, 223)]
    with pytest.raises(SchemaError, match=r"that are asked for together need .* make the repetitions of one shorter"):
        build_graph({"type": "string", "allOf": lengths})
