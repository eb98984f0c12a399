"""The benchmarks of schemas: what they say of our own engine, the order of members, and why an instance is refused."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import Any

import pytest
from bench_scripts import bench_script

import maskwright as mw
from maskwright.maskstore.vocabulary.encoders import load_encoder


def test_our_own_engine_takes_its_documents() -> None:
    vocabulary, encoder = mw.load_vocabulary("python-tiny"), load_encoder("python-tiny")
    work = [
        {"schema": {"enum": ["a", "b"]}, "documents": [[*encoder.tokenize('"a"'), vocabulary.eos[0]]]},
        {"schema": {"enum": ["a", "b"]}, "documents": [encoder.tokenize('"c"')]},
        {"schema": {"type": "nothing"}, "documents": []},
    ]
    with bench_script("schemas") as script:
        found = script.ours(vocabulary, work, lenient=False)
    assert found["schemas"] == 3 and found["refused"] == 1
    assert found["valid tokens refused"] == 2  # the second document's, the first and the second time
    assert found["compile and first mask"]["n"] == 2 and found["step, third"]["n"] > 0


@pytest.mark.parametrize(
    ("schema", "value", "keys"),
    [
        ({"properties": {"b": {}, "a": {}}}, {"c": 1, "a": 1, "b": 1}, "bac"),
        ({"required": ["d", "a"], "properties": {"b": {}, "a": {}}}, {"c": 1, "d": 1, "a": 1, "b": 1}, "badc"),
        ({"allOf": [{"properties": {"c": {}}}], "properties": {"a": {}}}, {"a": 1, "c": 1}, "ca"),
        ({"properties": {"a": {}}, "allOf": [{"properties": {"c": {}}}]}, {"c": 1, "a": 1}, "ac"),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"b": {}, "a": {}}}}}, {"a": 1, "b": 1}, "ba"),
        # of alternatives that which the value fits
        (
            {"oneOf": [{"properties": {"a": {"const": 2}, "b": {}}}, {"properties": {"b": {}, "a": {"const": 1}}}]},
            {"a": 1, "b": 1},
            "ba",
        ),
        (
            {"if": {"required": ["a"]}, "then": {"properties": {"c": {}}}, "else": {"properties": {"b": {}}}},
            {"a": 1, "b": 1, "c": 1},
            "cab",
        ),
        (True, {"b": 1, "a": 1}, "ba"),
    ],
)
def test_members_come_in_the_order_of_the_schema(schema: Any, value: dict[str, int], keys: str) -> None:
    with bench_script("member_order") as script:
        order = script.MemberOrder(schema)
    found = order.ordered(value)
    assert "".join(found) == keys and found == value


def test_members_of_members_too() -> None:
    schema = {
        "properties": {"list": {"items": {"$ref": "#"}}},
        "patternProperties": {"^x": {"prefixItems": [{"$ref": "#"}]}},
        "additionalProperties": {"properties": {"z": {}, "y": {}}},
    }
    value = {
        "x1": [{"o": 1, "list": []}, {"o": 1, "list": []}],
        "other": {"y": 1, "z": 1},
        "list": [{"o": {"y": 1, "z": 1}, "list": []}],
    }
    with bench_script("member_order") as script:
        found = script.MemberOrder(schema).ordered(value)
    assert json.dumps(found) == json.dumps(
        {
            "list": [{"list": [], "o": {"z": 1, "y": 1}}],
            "x1": [{"list": [], "o": 1}, {"o": 1, "list": []}],
            "other": {"z": 1, "y": 1},
        }
    )


def test_a_keyword_is_left_out_and_names_are_not() -> None:
    schema = {"format": "date", "properties": {"format": {"format": "x", "type": "string"}}, "enum": [{"format": 1}]}
    with bench_script("schema_orders"):
        from peers.schema_counts import without
    assert without(schema, "format") == {"properties": {"format": {"type": "string"}}, "enum": [{"format": 1}]}


def test_why_an_instance_is_refused() -> None:
    """Of our own engine, which takes members as the schema has them where it is told to, and forces nothing."""
    with bench_script("schema_orders") as script:
        from peers import schema_counts
        from peers.engine import Work
        from peers.ours import Engine
        from peers.tokenizers import BYTES

        single = [bytes([byte]) for byte in range(256)]
        engine = Engine()
        engine.load_vocabulary(Work("schemas", BYTES, [*single, b""], {256: "</s>"}, [256], [], None))
        schema = {"type": "object", "properties": {"a": {"format": "date"}, "b": {}}, "additionalProperties": False}
        instances = script.instances(
            schema,
            [{"valid": True, "data": data} for data in ({"b": 1, "a": "2026-01-01"}, {"a": "never"}, {"c": 1})],
            lambda text: list(text.encode()),
            engine.vocabulary,
        )
        work = {"schema": json.dumps(schema), "instances": instances}
        found = schema_counts.judge(engine, engine, work, 256)["instances"]
        assert found == [{order: why for order in script.ORDERS} for why in (None, "format", "additionalProperties")]

        class Forcing:
            """One token in its mask where the text has another one."""

            def matcher(self) -> Any:
                one = engine.matcher()
                inner = one.fill

                def fill() -> None:
                    inner()
                    one.words[:] = 0
                    one.words[0] = 2

                one.fill = fill
                return one

            compile_schema, reads = engine.compile_schema, engine.reads

        found = schema_counts.judge(Forcing(), engine, {**work, "instances": instances[:1]}, 256)["instances"]
        assert set(found[0].values()) == {schema_counts.FORCED}
        facts = script.summary(
            [{"instances": found}, {"refused": "Unknown format: x"}, {"refused": "Unknown format: y", "lenient": True}]
        )
    assert facts["schemas read"] == 1 and facts["schemas read leniently"] == 2
    assert facts["schemas refused"] == {"Unknown format: ...": 2} and facts["refused"] == {
        "as it stands": 1,
        "schema": 1,
    }


def test_limited_work_ends_by_its_cpu_time() -> None:
    with bench_script("schema_orders"):
        from peers.process import limited

        def spins() -> dict[str, Any]:
            while True:
                pass

        assert limited(lambda: {"found": 1}, 5) == {"found": 1}
        assert limited(lambda: {"found": time.sleep(0.2)}, 1) == {"found": None}
        assert limited(spins, 1) == {"refused": "not done within 1 s"}
        assert limited(lambda: {"found": 1 // 0}, 5)["refused"].startswith("ZeroDivisionError")
        assert limited(lambda: {"found": os.kill(os.getpid(), signal.SIGKILL)}, 5) == {"refused": "the process ended"}


@pytest.mark.parametrize("name", ["mistral-7b-v0.1", "tekken"])
def test_the_tokenizer_s_own_tokens_spell_a_piece(name: str) -> None:
    pytest.importorskip("mistral_common")
    with bench_script("schema_orders"):
        from peers.tokenizers import encoder, inner_encoder

        inner, whole = inner_encoder(name), encoder(name)
    tokens = mw.load_vocabulary(name).tokens
    for piece in ("name", " name", '{"a": ["é", 1]}', "\n\n  x", ""):
        assert b"".join(tokens[token] for token in inner(piece)) == piece.encode()
        assert inner(piece.encode()) == inner(piece)
    # what stands in the middle of a text is encoded as there
    assert whole('["name": 1')[-len(inner('": 1')) :] == inner('": 1')
