"""Names and items of which finitely many begin alike: once all of these are there, none begins so again."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from json_endings import JsonEndings
from mask_bits import mask_of
from mixed_schemas import schema, whole_texts
from naive_json_texts import is_legal
from schema_masks import END, TOKENS, VOCABULARY, expected
from shares import parts, share

import maskwright as mw
from maskwright.analysis.schema import keys
from maskwright.analysis.schema.shapes import Texts
from maskwright.decoding.matcher import Matcher
from maskwright.decoding.reference.json_texts import JsonInterpreter
from maskwright.maskstore.schema.compiled import SchemaTables
from maskwright.maskstore.schema.write import write_schema


def matcher_of(texts: Texts, max_rollback: int = 8) -> Matcher:
    return Matcher(SchemaTables("mixed", texts, VOCABULARY, *write_schema(texts)), max_rollback)


def takes(matcher: Matcher, data: bytes) -> bool:
    """Whether bytes are legal here."""
    return matcher.fork().try_bytes(data)


def names(pattern: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "propertyNames": {"pattern": pattern}, **more}


@pytest.mark.parametrize(
    ("schema", "text", "refused", "goes_on"),
    [
        (names("^(default|x-.*)$"), b'{"default":1,"', [b"d", b"\\u006", b"\\u0064", b"default"], [b"x-"]),
        (names("^(default|x-.*)$"), b'{"default":1,', [b'"d', b' "de', b'"\\u0064'], [b'"', b' "x']),
        (names("^(default|x-.*)$"), b'{"default":1', [b',"d', b', "\\u0064'], [b",", b',"x-']),
        (names("^(default|x-.*)$"), b'{"default":"', [b'","d', b'a","\\u0064'], [b'","', b'","x']),
        (names("^(default|x-.*)$"), b'{"default":{"a":[{"b":"', [b'"}]},"d'], [b'"}]},"x', b'"},{"d']),
        (names("^(default|x-.*)$"), b'{"default":1,"\\u00', [b"64", b"6"], [b"78-"]),
        (names("^(default|x-.*)$"), b'{"x-d":1,"x-', [], [b"d", b"d2", b"\\u0064"]),
        (names("^a*b$"), b'{"ab":1,"', [b"ab", b"a\\u0062"], [b"b", b"aa", b"a"]),
        (names("^a*b$"), b'{"ab":1,"b":1,"', [b"b", b"ab"], [b"a", b"aab"]),
        (names("^(é|x.*)$"), b'{"\\u00e9":1,"', [b"\xc3", "é".encode(), b"\\u00e"], [b"\\u00", b"\\u0078"]),
        (names("^(😀|x.*)$"), '{"😀":1,"'.encode(), [b"\xf0", b"\\ud", b"\\ud83d"], [b"x", b"\\u0"]),
        (
            {"patternProperties": {"^(default|[1-5][0-9]{2})$": {"type": "integer"}, "^x-": {}},
             "type": "object", "additionalProperties": False},
            b'{"404":1,"',
            [b"404", b'404"'],
            [b"40", b"405", b"d"],
        ),
        (
            {"type": "object", "propertyNames": {"anyOf": [{"enum": ["main", "master"]}, {"pattern": "^feature/"}]}},
            b'{"main":1,"',
            [b"mai", b"main"],
            [b"ma", b"mas", b"f"],
        ),
        (
            {"anyOf": [names("^(ab|c.*)$", additionalProperties={"type": "null"}), names("^(a|d.*)$")]},
            b'{"ab":null,"',
            [b"a", b"d"],
            [b"c"],
        ),
    ],
)  # fmt: skip
def test_no_name_begins_like_those_that_are_used_up(
    schema: dict[str, Any], text: bytes, refused: list[bytes], goes_on: list[bytes]
) -> None:
    loaded = mw.load_schema(schema, style="any")
    vocabulary = mw.Vocabulary.from_tokens([b"", *refused, *goes_on], eos=[0], name="small")
    matcher = mw.build_store(loaded, vocabulary).matcher()
    matcher.advance_bytes(text)
    words = np.zeros(1, np.uint32)
    for _ in range(2):  # what is kept says the same
        matcher.fill(words)
        found = [vocabulary.tokens[i] for i in range(vocabulary.size) if words[0] >> i & 1 and i not in vocabulary.eos]
        assert sorted(found) == sorted(goes_on)
    interpreter = JsonInterpreter(loaded.texts)
    for token in refused:
        assert not takes(matcher, token)
        assert not interpreter.read_bytes(interpreter.start(), text + token)
    for token in goes_on:
        fork = matcher.fork()
        fork.advance_bytes(token)
        whole = text + token + JsonEndings(loaded.texts).short(JsonEndings(loaded.texts).readings(text + token)).data
        assert is_legal(loaded.texts, whole)


def test_an_ending_is_the_name_that_is_left() -> None:
    store = mw.build_store(mw.load_schema(names("^(de(fault|ny)|x-.*)$")), "python-tiny")
    matcher = store.matcher()
    matcher.advance_bytes(b'{"default":1,"d')
    assert matcher.short_ending().data.startswith(b'eny":')
    assert not takes(matcher, b"ef") and takes(matcher, b"en")


def test_forks_rollback_and_batches_know_which_names_are_there() -> None:
    store = mw.build_store(mw.load_schema(names("^(default|x-.*)$")), "python-tiny")
    matcher = store.matcher(max_rollback=10)
    matcher.advance_bytes(b"{")
    before = matcher.fork()
    matcher.advance_bytes(b'"default":1')
    assert not takes(matcher, b',"d') and takes(before, b'"d')
    matcher.rollback()
    assert takes(matcher, b'"d')
    batch = store.batch(2)
    batch.advance_bytes(0, b'{"default":1,"')
    batch.advance_bytes(1, b'{"x-d":1,"')
    rows = np.zeros((2, store.n_words), np.uint32)
    batch.fill(rows)
    d = store.vocabulary.tokens.index(b"d")
    assert [int(row[d >> 5]) >> (d & 31) & 1 for row in rows] == [0, 1]


def test_more_names_than_are_named_come_to_an_end() -> None:
    """There are 500: once all are there the object can only end, and before that one is left."""
    few = {"type": "object", "patternProperties": {"^[1-5][0-9]{2}$": {}}, "additionalProperties": False}
    texts = mw.load_schema(few).texts
    numbers = list(range(100, 600))
    random.Random(1).shuffle(numbers)
    matcher, interpreter = matcher_of(texts), JsonInterpreter(texts)
    data = "{" + ",".join(f'"{number}":1' for number in numbers[:-1])
    matcher.advance_bytes(data.encode())
    readings = interpreter.read_bytes(interpreter.start(), data.encode())
    assert mask_of(matcher) == expected(interpreter, readings)
    last = f'"{numbers[-1]}"'.encode()
    matcher.advance_bytes(b",")
    for n in range(1, len(last)):
        wrong = next(digit for digit in b"012345" if digit != last[n])
        assert not takes(matcher, last[:n] + bytes([wrong]))
    matcher.advance_bytes(last + b":1")
    readings = interpreter.read_bytes(readings, b"," + last + b":1")
    assert mask_of(matcher) == expected(interpreter, readings)
    assert not takes(matcher, b",") and takes(matcher, b"}")


@pytest.mark.parametrize(("schema", "is_deep"), [
    ({"type": "string", "maxLength": 1}, False),
    ({"type": "string", "minLength": 2, "maxLength": 2}, False),
    ({"type": "string", "pattern": "^x.?$"}, True),
])  # fmt: skip
def test_items_of_a_greatest_length_are_used_up_within_a_character(schema: dict[str, Any], is_deep: bool) -> None:
    texts = mw.load_schema({"type": "array", "items": schema, "uniqueItems": True}).texts
    assert texts.graph.compares_items == is_deep
    first = "" if "maxLength" in schema and "minLength" not in schema else "x"
    data = "[" + ",".join(json.dumps(first + chr(code), ensure_ascii=False) for code in range(0xC0, 0x100)) + ","
    matcher, interpreter = matcher_of(texts), JsonInterpreter(texts)
    for more in (f'"{first}', "\\u00"):
        data += more
        matcher.advance_bytes(data.encode()[len(matcher.said()) :])
        assert mask_of(matcher) == expected(interpreter, interpreter.read_bytes(interpreter.start(), data.encode()))
    matcher.rollback()
    assert not takes(matcher, b"\xc3") and not takes(matcher, b"\\u00e")
    assert takes(matcher, b"\xc4") and takes(matcher, b"\\u000")


def test_parts_of_a_composition_know_which_names_are_there() -> None:
    part = mw.load_schema(names("^(default|x-.*)$", additionalProperties={"type": "null"}))
    store = mw.build_store(mw.compose('start: "<" PART ">"\n%declare PART', {"PART": part}), "python-tiny")
    matcher = store.matcher()
    matcher.advance_bytes(b'<{"default":null,"')
    words = np.zeros(store.n_words, np.uint32)
    matcher.fill(words)
    d, x = (store.vocabulary.tokens.index(text) for text in (b"d", b"x"))
    assert [int(words[token >> 5]) >> (token & 31) & 1 for token in (d, x)] == [0, 1]
    assert matcher.short_ending().data.endswith(b"null}>")


def steps(texts: Texts, rng: random.Random, n: int) -> Iterator[tuple[Matcher, Any, JsonEndings]]:
    """A matcher and the readings of a random text, step by step: few names, often said again."""
    endings = JsonEndings(texts)
    interpreter, matcher = endings.interpreter, matcher_of(texts, rng.choice((0, 3, 256)))
    readings = interpreter.start()
    for _ in range(n):
        yield matcher, readings, endings
        tokens = sorted(expected(interpreter, readings) - {END})
        if not tokens:
            return
        structure = [token for token in tokens if TOKENS[token][:1] in b'"{}[],:']
        plain = [token for token in tokens if set(TOKENS[token]) <= set(b'ab1nul"{}[],:\xc3\xa9')]
        odd = [token for token in tokens if b"\\" in TOKENS[token] or TOKENS[token][:1] in b"0123456789u\xc3\xa9\xa0"]
        luck = rng.random()
        some = structure if luck < 0.45 else plain if luck < 0.85 else odd if luck < 0.93 else tokens
        token = rng.choice(some or tokens)
        luck = rng.random()
        if luck < 0.05:
            matcher = matcher.fork()
        matcher.advance(token)
        readings = interpreter.read_bytes(readings, TOKENS[token])
        if luck > 0.95 and matcher.max_rollback:
            matcher.rollback()
            readings = interpreter.read_bytes(interpreter.start(), matcher.said())


def check(seed: int) -> int:
    """Compare masks along a random text of a random schema; of each beginning there is an ending."""
    rng = random.Random(f"mixed {seed}")
    keys.MOST_NAMED = rng.choice((0, 1, 2, 255))  # names of automata may be few
    one = schema(rng)
    try:
        texts = mw.load_schema(
            one,
            key_order=rng.choice(("any", "any", "schema")),
            style="any",
            escapes=rng.choice(("any", "natural", "minimal")),
        ).texts
    except (mw.SchemaError, mw.LimitError):
        return 0
    interpreter = JsonInterpreter(texts)
    for text in whole_texts(rng, 6):
        readings = interpreter.read_bytes(interpreter.start(), text)
        assert interpreter.is_complete(readings) == is_legal(texts, text), (one, text)
    n_masks = 0
    for matcher, readings, endings in steps(texts, rng, rng.choice((8, 20, 30))):
        found, wanted = mask_of(matcher), expected(endings.interpreter, readings)
        text = matcher.said()
        assert found == wanted, (one, text, [TOKENS[token] if token < END else "end" for token in found ^ wanted][:8])
        n_masks += 1
        if rng.random() < 0.5:
            ending = endings.short(readings)
            fork = matcher.fork()
            fork.advance_bytes(ending.data)
            assert fork.is_accepting() and is_legal(texts, text + ending.data), (one, text, ending)
        tokens = sorted(wanted - {END})
        for token in rng.sample(tokens, min(2, len(tokens))):
            endings.short(endings.interpreter.read_bytes(readings, TOKENS[token]))
    return n_masks


@pytest.mark.parametrize("seeds", share(parts(10_000, 20), 1))
def test_masks_are_those_of_the_interpreter_and_lead_to_endings(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "MOST_NAMED", keys.MOST_NAMED)  # restored behind the test
    n_masks = 0
    for seed in seeds:
        try:
            n_masks += check(seed)
        except mw.LimitError:  # items are compared, or an ending is far
            continue
    assert n_masks > 5 * len(seeds)
