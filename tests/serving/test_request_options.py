"""What a request says of JSON beside its constraint."""

from __future__ import annotations

import json

import numpy as np
import pytest
from request_cases import takes

import maskwright as mw
from maskwright.serving.options import RequestOptions
from maskwright.serving.requests import RequestCompiler


def test_whitespace() -> None:
    compiler = RequestCompiler("python-tiny", on_disk=False)
    spec = '{"type": "array", "items": {"type": "integer"}}'
    for whitespace, good, bad in (
        ("compact", "[1,2]", "[1, 2]"),
        (1, "[1, 2]", "[1,  2]"),
        (" ?", "[1, 2]", "[1,\n2]"),
    ):
        store = compiler.compile("json", spec, RequestOptions(whitespace=whitespace))
        assert takes(store, good) and not takes(store, bad)
    assert takes(compiler.compile("json", spec), "[1,\n 2]")
    assert not takes(compiler.compile("json_object", "", RequestOptions(whitespace="compact")), "{ }")
    with pytest.raises(mw.MaskwrightError, match="white space"):
        compiler.check("json", spec, RequestOptions(whitespace="x+"))
    with pytest.raises(mw.LimitError, match="white space"):
        compiler.check("json", spec, RequestOptions(whitespace=" " * 2000))
    with pytest.raises(mw.MaskwrightError, match=r"about JSON \(whitespace\), but regex is not JSON"):
        compiler.check("regex", "a", RequestOptions(whitespace="compact"))


@pytest.mark.parametrize("first", [None, 1, 0])
@pytest.mark.parametrize("kind", ["json", "json_object", "structural_tag"])
def test_values_that_are_equal_and_not_the_same_are_other_requests(kind: str, first: int | None) -> None:
    """`True`, `1` and `1.0` are one key: which of them came before decides nothing."""
    tag = json.dumps({"type": "structural_tag", "format": {"type": "json_schema", "json_schema": True}})
    spec = tag if kind == "structural_tag" else '{"type": "array"}'
    compiler = RequestCompiler("python-tiny", on_disk=False)
    if first is not None:
        compiler.compile(kind, spec, RequestOptions(whitespace=first))
    for wrong in (True, False, 1.0, 0.0, None, [1], np.array([1, 2])):
        for ask in (compiler.check, compiler.compile):
            with pytest.raises(mw.UnknownNameError, match="whitespace is"):
                ask(kind, spec, RequestOptions(whitespace=wrong))  # type: ignore[arg-type]
    for wrong in (1, 0, "no", [], 1.0):
        for ask in (compiler.check, compiler.compile):
            with pytest.raises(mw.MaskwrightError, match="additional_properties is"):
                ask(kind, spec, RequestOptions(additional_properties=wrong))  # type: ignore[arg-type]
    for wrong in (["any"], True, "schema "):
        for name in ("key_order", "escapes"):
            with pytest.raises(mw.UnknownNameError, match=f"{name} is .*expected 'any'(, 'natural')? or"):
                compiler.check(kind, spec, RequestOptions(**{name: wrong}))


def test_the_order_of_members_and_escapes() -> None:
    schema = {"properties": {"why": {"type": "string"}, "so": {"type": "integer"}}, "additionalProperties": False}
    options = RequestOptions(key_order="schema", escapes="minimal")
    compiler = RequestCompiler("python-tiny", options=options, on_disk=False)
    every = RequestOptions(whitespace="any", escapes="any")
    store, free = (compiler.compile("json", json.dumps(schema), each) for each in (None, every))
    for text, is_kept in (
        ('{"why":"","so":1}', True),
        ('{"so":1,"why":""}', False),
        ('{"why":"\\u0061","so":1}', False),
    ):
        assert takes(store, text) == is_kept and takes(free, text)
    assert not takes(compiler.compile("json_object", ""), '{"a":"\\u0061"}')
    tag = json.dumps({"type": "structural_tag", "format": {"type": "json_schema", "json_schema": schema}})
    assert not takes(compiler.compile("structural_tag", tag), '{"why":"\\u0061","so":1}')
    assert takes(compiler.compile("structural_tag", tag, every), '{"why":"\\u0061","so":1}')
    assert takes(compiler.compile("regex", "a"), "a")
    for name in ("key_order", "escapes"):
        with pytest.raises(mw.MaskwrightError, match=rf"about JSON \({name}\), but regex"):
            compiler.check("regex", "a", RequestOptions()._replace(**{name: getattr(options, name)}))


def test_formats() -> None:
    """A setting of the server, for schemas and for those in structural tags."""
    schema = {"type": "string", "format": "date-time"}
    tag = {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": schema}}
    compiler = RequestCompiler("python-tiny", on_disk=False)
    for kind, spec in (("json", schema), ("structural_tag", tag)):
        for formats, local, word in (("assert", False, False), ("natural", True, False), ("annotate", True, True)):
            store = compiler.compile(kind, json.dumps(spec), RequestOptions(formats=formats))
            assert takes(store, '"2024-01-01T00:00:00"') is local and takes(store, '"x"') is word
    for wrong in ("strict", 1, None, {}):
        with pytest.raises(mw.UnknownNameError, match=r"formats is .*; expected assert or natural or annotate"):
            compiler.check("json", "{}", RequestOptions(formats=wrong))  # type: ignore[arg-type]


TEXTS = ('{"a":1,"b":"x"}', '{"a": 1, "b": "x"}', '{ "a": 1 , "b": "x"}', '{"a":1,"b":"\\u0041"}')


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        ({}, "++--"),
        ({"whitespace_flexible": False}, "+---"),
        ({"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}, "-+--"),
        ({"whitespace_pattern": " ", "whitespace_flexible": False}, "+++-"),
        ({"whitespace_pattern": ""}, "+---"),
        ({"json_allow_general_unicode_escapes": True}, "++-+"),
        ({"coerce_one_of": True, "lenient": None, "json_allowed_escapes": 'u"\\nrbtf'}, "++--"),
    ],
)
def test_what_a_schema_says_to_llguidance(said: dict[str, object], taken: str) -> None:
    schema = {"properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "x-guidance": said}
    store = RequestCompiler("python-tiny", on_disk=False).compile("json", json.dumps(schema))
    assert "".join("-+"[takes(store, text)] for text in TEXTS) == taken


def test_what_llguidance_has_and_no_style_says() -> None:
    compiler = RequestCompiler("python-tiny", on_disk=False)
    for said, place in (
        (5, ""),
        ({"whitespace": 1}, "/whitespace"),
        ({"lenient": "x"}, "/lenient"),
        ({"item_separator": "\\s*,"}, "/item_separator"),
        ({"item_separator": ", ", "key_separator": ": "}, "/item_separator"),
        ({"json_allowed_escapes": "n"}, "/json_allowed_escapes"),
    ):
        with pytest.raises(mw.SchemaError) as found:
            compiler.check("json", json.dumps({"x-guidance": said}))
        assert found.value.pointer == f"/x-guidance{place}"
    for pattern in ("a", ")|(?:", "[", "(", "compact"):
        with pytest.raises(mw.SchemaError, match="/x-guidance/whitespace_pattern: ") as found:
            compiler.check("json", json.dumps({"x-guidance": {"whitespace_pattern": pattern}}))
        assert found.value.pointer == "/x-guidance/whitespace_pattern"
    assert takes(compiler.compile("json", json.dumps({"x-guidance": None})), "[1, 2]")
    held = {"pattern": "(a)\\1", "x-guidance": {"lenient": True}}
    assert takes(compiler.compile("json", json.dumps(held)), '"x"')
    schema = {"type": "array", "x-guidance": {"whitespace_flexible": False}}
    tag = {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": schema}}
    store = compiler.compile("structural_tag", json.dumps(tag))
    assert takes(store, "[1,2]") and not takes(store, "[1, 2]")
    schema["x-guidance"] = {"whitespace": 1}
    with pytest.raises(
        mw.SchemaError, match="structural tag, /format: /x-guidance/whitespace: there is no such option"
    ):
        compiler.check("structural_tag", json.dumps(tag))
    text = f'start: "=" %json {json.dumps({"type": "array", "x-guidance": {"whitespace_flexible": False}})}'
    store = compiler.compile("grammar", text)
    assert takes(store, "=[1,2]") and not takes(store, "=[1, 2]")
