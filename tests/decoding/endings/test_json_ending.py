"""Shortest endings of JSON texts: legal by their definition, and none shorter."""

from __future__ import annotations

import itertools
import random
from types import SimpleNamespace
from typing import Any

import pytest
from json_endings import JsonEndings
from naive_json_texts import STYLES, is_legal, respaced, small_texts
from random_graphs import automaton, random_graph
from random_texts import ESCAPES, random_text
from shares import share

import maskwright as mw
from maskwright.analysis.errors import DeadEndError, IllegalTokenError, LimitError
from maskwright.analysis.schema.shapes import Arrays, Numbers, Objects, SchemaGraph, Spellings, Strings, Texts
from maskwright.analysis.schema.spacing import ANY, everywhere, spacing_of
from maskwright.decoding.endings import ending, ending_search
from maskwright.decoding.endings.ending import Ending
from maskwright.decoding.reference import json_costs
from maskwright.decoding.reference.json_texts import JsonInterpreter
from maskwright.decoding.schema import ending_states as schema_states
from maskwright.maskstore.vocabulary.vocabulary import Vocabulary

SMALL = small_texts(10, (b"a", b"b"), b"01", (b"null", b"true"))
SPACINGS = (ANY, *map(everywhere, map(automaton, (" ?", "\n *| "))), *map(spacing_of, STYLES))


def shortest_ending(texts: Texts, prefix: bytes, vocabulary: Vocabulary | None = None) -> Ending:
    endings = JsonEndings(texts, vocabulary)
    return endings.shortest(endings.readings(prefix))


@pytest.mark.parametrize("seed", share(range(1000, 1060), 6))
def test_endings_are_legal_and_not_longer_than_bounds_and_small_texts(seed: int) -> None:
    rng = random.Random(seed)
    texts = Texts(random_graph(rng), rng.choice(SPACINGS), ESCAPES[seed % 3])
    endings = JsonEndings(texts)
    legal = [text for text in (respaced(texts, text) for text in SMALL) if is_legal(texts, text)]
    prefixes = [text[: rng.randint(0, len(text))] for text in [random_text(texts, rng, 3) for _ in range(8)]]
    prefixes += [text[: rng.randint(0, len(text))] for text in rng.sample(legal, min(8, len(legal)))]
    for prefix in prefixes:
        readings = endings.readings(prefix)
        ending = endings.shortest(readings)
        assert is_legal(texts, prefix + ending.data), prefix
        assert ending.is_shortest
        bound = min(endings.costs.of(reading) for reading in readings)
        assert bound <= len(ending.data) == endings.min_bytes_left(readings), prefix
        known = min((len(text) - len(prefix) for text in legal if text.startswith(prefix)), default=len(ending.data))
        assert len(ending.data) <= known, prefix
        # whatever was asked before
        assert ending == endings.shortest(readings) == shortest_ending(texts, prefix), prefix


INTEGER = (Numbers(automaton("0|-?[1-9][0-9]*")),)
PERSON = Objects((b"age", b"name"), (1, 2), (True, True), (2,), None, 4, None)
PEOPLE = Texts(SchemaGraph(((Arrays((), 3, 2, None),), INTEGER, (Strings(None, 1, 9),), (PERSON,)), 0))


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        (b'[{"age":1,"name":" ","":" "', b',"b":" "},{"":" ","age":0,"name":" "," ":" "}]'),
        (b'[{"age":1,"name":" ","x":"a', None),
        (b'[{"a', None),
        (b'[{"name":"\\ud83d', None),
    ],
)
def test_objects_of_other_keys(prefix: bytes, expected: bytes | None) -> None:
    ending = shortest_ending(PEOPLE, prefix)
    assert is_legal(PEOPLE, prefix + ending.data)
    assert expected is None or len(ending.data) == len(expected)


def test_distinct_items() -> None:
    texts = Texts(SchemaGraph(((Arrays((), 1, 12, None, None, True),), INTEGER), 0))
    ending = shortest_ending(texts, b"[5")
    assert is_legal(texts, b"[5" + ending.data) and len(ending.data) == len(",0,1,2,3,4,6,7,8,9,10,11]")


def test_what_is_complete_ends_at_once() -> None:
    texts = Texts(SchemaGraph((INTEGER,), 0))
    assert shortest_ending(texts, b"12").data == b"" and shortest_ending(texts, b"-").data == b"1"


def test_tokens_spell_the_ending() -> None:
    texts = Texts(SchemaGraph(((Spellings((b"false", b"true")), *INTEGER),), 0))
    vocabulary = Vocabulary("few", (b"fal", b"se", b"false", b"1", b"t"), {}, ())
    assert shortest_ending(texts, b"fa", vocabulary=None).data == b"lse"
    assert shortest_ending(texts, b"", vocabulary).tokens == (3,)
    assert shortest_ending(texts, b"fal", vocabulary).tokens == (1,)
    with pytest.raises(DeadEndError, match="no token contains"):
        shortest_ending(texts, b"f", Vocabulary("none", (b"x",), {}, ()))


def test_the_vocabulary_makes_the_ending_longer() -> None:
    texts = Texts(SchemaGraph((INTEGER,), 0))
    vocabulary = Vocabulary("long", (b"-22", b"7]"), {}, ())
    found = shortest_ending(texts, b"", vocabulary)
    assert found.data == b"-22" and found.tokens == (0,)


def test_errors() -> None:
    with pytest.raises(DeadEndError, match="no legal prefix"):
        shortest_ending(PEOPLE, b"{")
    endings = JsonEndings(PEOPLE)
    with pytest.raises(LimitError, match="given up"):
        endings.shortest(endings.readings(b"["), max_nodes=-(10**6))


def test_an_object_whose_members_cannot_be_empty_ends_with_a_blank_behind_its_commas() -> None:
    """A bound that was nearly that of what never ends made a table of all lengths."""
    schema = {"type": "object", "additionalProperties": {"const": {"c": 1}}, "minProperties": 1}
    matcher = mw.build_store(mw.load_schema(schema, style="json.dumps"), "python-tiny").matcher()
    assert matcher.short_ending().data == matcher.shortest_ending().data == b'{"": {"c": 1}}'


def test_a_byte_where_a_part_begins_is_refused_in_words() -> None:
    host = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"], "additionalProperties": False}
    matcher = mw.build_store(mw.compose(host, {"/properties/q": 'start: "say " /[a-z]+/'}), "python-tiny").matcher()
    matcher.advance_bytes(b'{"q": ')
    with pytest.raises(IllegalTokenError, match="cannot come here"):
        matcher.advance_bytes(b"1")


def answer(endings: JsonEndings, prefix: bytes, limit: int | None) -> Any:
    """The ending of a text, or that a limit is met. limit : of states; None for a short ending."""
    readings = endings.readings(prefix)
    try:
        return endings.short(readings) if limit is None else endings.shortest(readings, limit)
    except LimitError:
        return "given up"


SEARCHED = {
    "type": "object",
    "properties": {"a": {"type": "string", "pattern": "^(.*[a-z]{3}){2}$"}, "b": {"type": "array", "minItems": 3}},
    "required": ["a", "b"],
    "additionalProperties": {"type": "string", "minLength": 5},
    "minProperties": 4,
}


@pytest.mark.parametrize("seconds", [None, 20, 100])
def test_limits_do_not_depend_on_what_was_asked_before(seconds: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """By states alone, and by a clock that each state moves on."""
    clock = itertools.count()
    fake = SimpleNamespace(thread_time=lambda: next(clock) if seconds else 0)
    monkeypatch.setattr(ending_search, "time", fake)
    monkeypatch.setattr(schema_states, "time", fake)
    monkeypatch.setattr(ending_search, "NODES_OF_A_BYTE", 1)
    monkeypatch.setattr(ending, "SHORT_NODES", 30)
    monkeypatch.setattr(schema_states, "SECONDS", seconds or 1)
    monkeypatch.setattr(schema_states, "SECONDS_OF_A_BYTE", 0)
    texts = mw.load_schema(SEARCHED).texts
    text = b'{"a":"xyz abc","b":[1,2,3],"other":"value","more":"values"}'
    asked = [(text[:n], limit) for n in range(0, len(text), 3) for limit in (None, -20, 0, 30, 200, 100_000)]
    fresh = {(prefix, limit): answer(JsonEndings(texts), prefix, limit) for prefix, limit in asked}
    assert "given up" in fresh.values() and len(set(map(str, fresh.values()))) > 5
    for order in (
        asked,
        asked[::-1],
        sorted(asked, key=lambda one: one[1] or 0),
        random.Random(1).sample(asked, len(asked)),
    ):
        endings = JsonEndings(texts)
        assert {one: answer(endings, *one) for one in order} == fresh
        assert endings.endings.search()._tails


def test_what_is_kept_of_objects_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects have keys of any text, so that there is no end of them."""
    texts = mw.load_schema({"type": "object", "required": ["a"], "minProperties": 3}).texts

    def bounds(most: int) -> tuple[list[int], int]:
        monkeypatch.setattr(json_costs, "MOST_TAILS", most)
        interpreter = JsonInterpreter(texts)
        costs = json_costs.Costs(interpreter)
        said = [interpreter.read_bytes(interpreter.start(), b'{"%d":1,"b":"' % number) for number in range(60)]
        return [min(map(costs.of, each)) for each in said], len(costs._tails)

    few, many = bounds(8), bounds(1000)
    assert few[0] == many[0] and few[1] <= 8 < many[1]
