"""Endings prefer the values that a schema names: where they are as short, and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import jsonschema
import pytest
from json_endings import JsonEndings
from shares import share

import maskwright as mw
from maskwright.analysis.schema.load import JsonSchema
from maskwright.decoding.schema import ending_states as schema_states

BYTES = mw.Vocabulary.from_tokens([b"", *(bytes([i]) for i in range(256))], eos=[0])

Span = tuple[int, int, tuple[str | int, ...]]
"""Where a value begins and ends in a text, and the way to it."""


def ending_behind(store: Any, text: bytes) -> bytes:
    matcher = store.matcher()
    if text:
        matcher.advance_bytes(text)
    return bytes(matcher.shortest_ending().data)


def ending(schema: Any, text: bytes = b"", **options: Any) -> bytes:
    matcher = mw.build_store(mw.load_schema(schema, **options), BYTES).matcher()
    matcher.advance_bytes(text)
    found = matcher.shortest_ending()
    assert found.is_shortest and matcher.min_bytes_left() == len(found.data)
    assert matcher.short_ending() == found
    return found.data


def member(schema: Any) -> Any:
    return {"type": "object", "properties": {"n": schema}, "required": ["n"], "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "integer"}, b"0"),
        ({"type": "integer", "default": 7}, b"7"),
        ({"type": "number", "default": 7.0}, b"7"),
        ({"type": "number", "default": -0.0, "examples": [5]}, b"0"),
        ({"type": "integer", "default": 17}, b"0"),
        ({"type": "integer", "minimum": 10, "default": 5, "examples": [100, 33]}, b"33"),
        ({"type": "integer", "minimum": 3, "examples": [5]}, b"5"),
        ({"type": "boolean", "default": False}, b"true"),
        ({"type": ["boolean", "null"], "default": None}, b"null"),
        ({"type": ["array", "object"], "default": {}}, b"{}"),
        ({"type": ["array", "object", "string"], "default": ""}, b'""'),
        ({"enum": ["b", "a"]}, b'"b"'),
        ({"enum": ["ab", "c", "b"]}, b'"c"'),
        ({"enum": ["b", "a"], "default": "a"}, b'"a"'),
        ({"anyOf": [{"const": "x"}, {"const": "a"}]}, b'"x"'),
        ({"type": "string", "minLength": 2, "default": '"\n'}, b'"  "'),
        ({"type": "string", "pattern": "^.{2}$", "examples": ["é", "ok"]}, b'"ok"'),
        ({"type": "array", "items": {"enum": ["b", "a"]}, "minItems": 2, "uniqueItems": True}, b'["b","a"]'),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2, "default": [3, 4, 5]}, b"[3,4]"),
        ({"type": ["array", "string"], "minLength": 1, "minItems": 1, "default": ["a"]}, b'" "'),
        ({"type": ["array", "string"], "minLength": 1, "minItems": 1, "default": [5]}, b"[5]"),
        ({**member({"type": "integer"}), "default": {"n": 6}}, b'{"n":6}'),
        ({"type": "integer", "default": {"a": [float("nan"), {1}, 10**50, "\ud800"]}}, b"0"),
    ],
)
def test_a_value_that_is_named(schema: Any, expected: bytes) -> None:
    assert ending(schema) == expected


def test_only_values_that_begin_in_the_ending_are_chosen() -> None:
    schema = member({"type": "integer", "minimum": 0, "default": 7})
    assert [ending(schema, text) for text in (b"", b'{"n":', b'{"n":1', b'{"n":7')] == [b'{"n":7}', b"7}", b"}", b"}"]


@pytest.mark.parametrize("style", ["natural", "compact", "json.dumps", "indent2", "any"])
def test_the_style_is_kept(style: Any) -> None:
    schema = member({"type": "array", "items": {"type": "integer"}, "minItems": 2, "default": [3, 4]})
    value = {"n": [3, 4]}
    expected = {"json.dumps": json.dumps(value), "indent2": json.dumps(value, indent=2)}.get(
        style, json.dumps(value, separators=(",", ":"))
    )
    assert ending(schema, style=style) == expected.encode()


@pytest.mark.parametrize(
    "more", [{}, {"$schema": "http://json-schema.org/draft-07/schema#"}, {"$id": "https://example.com/it"}]
)
def test_places_are_told_apart_where_they_allow_the_same(more: Any) -> None:
    """Nodes are shared; references, patterns and further members have values of their own."""
    schema = {
        **more,
        "$defs": {"color": {"enum": ["red", "tan", "sky"]}, "n": {"allOf": [{"type": "integer"}, {"examples": [8]}]}},
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/color"}, "b": {"$ref": "#/$defs/color", "default": "tan"}},
        "patternProperties": {"^x": {"$ref": "#/$defs/n"}, "^y": {"type": "integer", "default": 6}},
        "additionalProperties": {"type": "integer", "default": 9},
        "required": ["a", "b", "x1", "y1", "z"],
    }
    found = json.loads(ending(schema))
    assert found == {"a": "red", "b": "tan", "x1": 8, "y1": 6, "z": 9}
    nodes = mw.load_schema(schema).texts.graph.nodes
    plain = json.loads(json.dumps(schema).replace('"default"', '"title"').replace('"examples"', '"$comment"'))
    assert len(mw.load_schema(plain).texts.graph.nodes) == len(nodes)


def test_what_a_lenient_reading_left_out_names_nothing() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer", "default": 7}},
        "patternProperties": {r"^(.)\1$": {"type": "integer"}},
        "required": ["n"],
    }
    assert ending({"type": "object", "properties": {"m": schema}, "required": ["m"]}, lenient=True) == b'{"m":{"n":0}}'


def test_other_documents_and_stores_that_were_saved(tmp_path: Any) -> None:
    documents = {"https://example.com/size": {"type": "integer", "default": 4}}
    schema = mw.load_schema(member({"$ref": "https://example.com/size"}), documents=documents)
    store = mw.build_store(schema, BYTES)
    store.save(tmp_path / "it.safetensors")
    for one in (store, mw.load_store(tmp_path / "it.safetensors")):
        assert one.matcher().shortest_ending().data == b'{"n":4}'


def test_a_value_that_no_tokens_spell_is_not_taken() -> None:
    vocabulary = mw.Vocabulary.from_tokens([b"", b'"', b"a", b"b"], eos=[0])
    store = mw.build_store({"enum": ["c", "b", "a"]}, vocabulary)
    assert store.matcher().shortest_ending().data == b'"b"'


def test_what_is_only_near_has_named_values_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_states, "SECONDS", 10.0)  # on a slow machine too
    item = {"type": "object", "properties": {"n": {"type": "integer", "default": 5}, "id": {"type": "integer"}}}
    schema = {"type": "array", "uniqueItems": True, "minItems": 40, "items": {**item, "required": ["n", "id"]}}
    text = mw.build_store(mw.load_schema(schema), BYTES).matcher().text
    found = text._endings().search().states.straight(text._endings().search().start_of(text).state)
    assert [one["n"] for one in json.loads(found)] == [5] * 40
    jsonschema.validate(json.loads(found), schema)
    shortest = text.short_ending()
    assert len(shortest.data) <= len(found) and json.loads(shortest.data)[0]["n"] == 5
    jsonschema.validate(json.loads(shortest.data), schema)


# -- random schemas, with a naive twin: swap by brute force


def random_schema(rng: Random, depth: int) -> dict[str, Any]:
    """A schema that names values, legal ones and others. It may refer to `#/$defs/x`."""
    kind = rng.choice(["integer", "string", "enum", "any", "ref", *(["object", "array", "object"] if depth else [])])
    schema: dict[str, Any] = {}
    if kind == "integer":
        schema = {"type": "integer", "minimum": rng.randrange(12)}
    elif kind == "string":
        schema = {"type": "string", "minLength": rng.randrange(3)}
    elif kind == "enum":
        schema = {"enum": rng.sample([0, 5, 7, "a", "b", "cd", None, True, [], {}], 3)}
    elif kind == "any":
        schema = {rng.choice(["anyOf", "oneOf"]): [{"const": rng.choice("ab")}, {"type": ["integer", "null"]}]}
    elif kind == "ref":
        schema = {"$ref": "#/$defs/x"}
    elif kind == "object":
        keys = rng.sample("abc", 2)
        schema = {"type": "object", "properties": {key: random_schema(rng, depth - 1) for key in keys}}
        schema["required"] = rng.sample("abc", 2)
        schema["additionalProperties"] = random_schema(rng, depth - 1)
    else:
        schema = {"type": "array", "items": random_schema(rng, depth - 1), "minItems": rng.randrange(3)}
        if rng.random() < 0.5:
            schema["prefixItems"] = [random_schema(rng, depth - 1)]
    if rng.random() < 0.5:
        schema["default"] = rng.choice([0, 3, 9, 14, "", "a", "zz", None, [], [4], {}, {"a": 1, "b": 2}])
    if rng.random() < 0.3:
        schema["examples"] = rng.sample([1, 8, "b", "xy", True], 2)
    return schema


def spans(text: str) -> list[Span]:
    """The values of a JSON text without white space, as they begin."""
    found: list[Span] = []

    def value(at: int, path: tuple[str | int, ...]) -> int:
        place = len(found)
        found.append((at, at, path))
        if text[at] in "[{":
            end, count = at + 1, 0
            while text[end] not in "]}":
                end += text[end] == ","
                step: str | int = count
                if text[at] == "{":
                    step, end = json.JSONDecoder().raw_decode(text, end)
                    end += 1
                end, count = value(end, (*path, step)), count + 1
            end += 1
        else:
            end = json.JSONDecoder().raw_decode(text, at)[1]
        found[place] = at, end, path
        return end

    assert value(0, ()) == len(text)
    return found


def subschemas(schema: Any, root: Any) -> Iterator[Any]:
    """A schema and all that describes the same values."""
    if isinstance(schema, dict):
        yield schema
        if "$ref" in schema:
            yield from subschemas(root["$defs"]["x"], root)
        for keyword in ("anyOf", "oneOf"):
            for branch in schema.get(keyword, ()):
                yield from subschemas(branch, root)


def named(schema: Any, path: tuple[str | int, ...]) -> list[str]:
    """The values that are named for a place itself, those of `default` first, and so on."""
    here = list(subschemas(schema, schema))
    for step in path:
        below: list[Any] = []
        for one in here:
            if isinstance(step, str):
                below += [one.get("properties", {}).get(step, one.get("additionalProperties"))]
            else:
                prefix = one.get("prefixItems", [])
                below += [prefix[step] if step < len(prefix) else one.get("items")]
        here = [one for some in below for one in subschemas(some, schema)]
    values = [one["default"] for one in here if "default" in one]
    values += [value for one in here for value in one.get("examples", ())]
    values += [one["const"] for one in here if "const" in one]
    values += [value for one in here for value in one.get("enum", ())]
    return [json.dumps(value, separators=(",", ":")) for value in values]


def is_legal(schema: Any, text: str) -> bool:
    return bool(jsonschema.Draft202012Validator(schema).is_valid(json.loads(text)))


@pytest.mark.parametrize("seed", share([*range(120), 2786, 2891], 40))
def test_named_values_stand_wherever_they_can_be_swapped_in(seed: int) -> None:
    rng = Random(seed)
    schema = {**random_schema(rng, 3), "$defs": {"x": random_schema(Random(seed + 1000), 0)}}
    if "$ref" in schema["$defs"]["x"]:
        schema["$defs"]["x"] = {"type": "integer", "default": 2}
    loaded: JsonSchema = mw.load_schema(schema, style="compact")
    store = mw.build_store(loaded, BYTES)
    plain = JsonEndings(loaded.texts)
    whole = ending_behind(store, b"")
    for cut in range(0, len(whole) + 1, 3):
        begun = whole[:cut]
        found, without = ending_behind(store, begun), plain.shortest(plain.readings(begun)).data
        text = (begun + found).decode()
        assert len(found) == len(without) and is_legal(schema, text), (schema, begun)
        taken = cut
        for begin, end, path in spans(text):
            if begin < taken:
                continue  # it is there already, or a part of a value that is named as a whole
            short = [one for one in named(schema, path) if len(one) == end - begin]
            swaps = [one for one in short if is_legal(schema, text[:begin] + one + text[end:])]
            assert not swaps or text[begin:end] == swaps[0], (schema, begun, text, swaps)
            taken = end if swaps else cut


def test_the_order_in_which_values_are_named() -> None:
    schema = {"examples": [2, 3], "anyOf": [{"enum": [5, 4, 1]}, {"const": 6}], "default": 1}
    for without, expected in ((), b"1"), (("default",), b"6"), (("default", "anyOf"), b"2"):
        kept = {key: value for key, value in schema.items() if key not in without}
        assert ending({"type": "integer", **kept}) == expected


def test_endings_without_a_schema_are_as_before() -> None:
    """Tables that know no schema, and those of a pattern."""
    loaded = mw.load_schema({"type": "integer", "default": 7})
    endings = JsonEndings(loaded.texts, BYTES)
    assert endings.shortest(endings.readings(b"")).data == b"0"
    assert mw.build_store(mw.load_choice(["b", "a"]), BYTES).matcher().shortest_ending().data == b"a"


def test_dates_that_programs_have() -> None:
    schema = {"type": "object", "properties": {"d": {"type": "string", "format": "date"}}, "required": ["d"]}
    assert ending(schema) == b'{"d":"1970-01-01"}'
