"""Findings of schemas: each at its place; schemas that are as they should be have none."""

from __future__ import annotations

from random import Random
from typing import Any

import jsonschema
import pytest
from random_schemas import Schemas, random_value
from written_cases import parameters

import maskwright as mw
from maskwright.analysis.errors import SchemaError, UnknownNameError
from maskwright.analysis.schema.mistakes import empty_subschemas
from maskwright.lint import lint_schema

EMPTY, IDLE, UNKNOWN, INEXACT = "empty-schema", "idle-keyword", "unknown-keyword", "inexact-schema"
OF_SCHEMAS = (EMPTY, IDLE, UNKNOWN, INEXACT)

SEEDS = parameters("schemas", "findings")


@pytest.mark.parametrize(("code", "severity", "pointer", "said", "schema"), SEEDS)
def test_the_defect_is_found_at_its_place(code: str, severity: str, pointer: str, said: str, schema: Any) -> None:
    report = lint_schema(schema)
    (found,) = (f for f in report.findings if (f.code, f.pointer) == (code, pointer))
    assert found.severity == severity and said in found.message and found.remedy and found.decoding
    assert found.place == (f"schema#{pointer}" if pointer else "schema")
    assert report.passed == (severity == "info")
    assert report.to_dict()["findings"][0]["pointer"] is not None
    assert [f.code for f in lint_schema(schema, allow=[code]).findings if f.code == code] == []


def test_every_code_of_schemas_has_a_seed() -> None:
    assert {seed.values[0] for seed in SEEDS} == set(OF_SCHEMAS)


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {"type": "object", "properties": {"a": False}},
        {"not": {"enum": []}},
        {"if": {"type": "string", "maxLength": -0}, "then": {"minLength": 0}},
        {"type": ["integer", "string"], "minLength": 2, "minimum": 3},
        {"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 3}]},
        {"$schema": "http://json-schema.org/draft-07/schema#", "items": [True], "additionalItems": {"type": "null"}},
        {"title": "t", "description": "d", "x-more": 1, "properties": {"minLength": {"type": "integer"}, "then": True}},
        {
            "$defs": {"list": {"type": "object", "properties": {"next": {"$ref": "#/$defs/list"}}}},
            "$ref": "#/$defs/list",
        },
    ],
)
def test_what_is_meant_so_has_no_finding(schema: Any) -> None:
    report = lint_schema(schema)
    assert report.findings == () and report.passed, str(report)


def test_lenient_reading_makes_a_warning_of_what_is_left_out() -> None:
    schema = {"type": "string", "pattern": r"(a)\1"}
    assert [f.severity for f in lint_schema(schema).findings] == ["error"]
    loaded = mw.load_schema(schema, lenient=True, name="mine")
    (found,) = lint_schema(loaded).findings
    assert (found.severity, found.code, found.file) == ("warning", INEXACT, "mine")


def test_a_vocabulary_that_cannot_spell_is_found() -> None:
    schema = {"type": "integer"}
    tokens = mw.Vocabulary.from_tokens([b"", b"a"], eos=[0])
    assert [f.code for f in lint_schema(schema, tokens).findings] == ["no-text"]
    digits = mw.Vocabulary.from_tokens([b"1"], eos=[])
    assert [f.code for f in lint_schema(schema, digits).findings] == ["no-eos"]
    report = lint_schema({"enum": []}, tokens)
    assert report.skipped == ("the vocabulary: no store can be built",)


def test_errors() -> None:
    with pytest.raises(SchemaError, match="type is 'nul'"):
        lint_schema({"type": "nul"})
    with pytest.raises(UnknownNameError, match="no finding has the code 'empty-shema'"):
        lint_schema({}, allow=["empty-shema"])


@pytest.mark.parametrize("draft", [7, 2020])
def test_subschemas_that_are_called_empty_have_no_value(draft: int) -> None:
    """Random schemas and values: no value is an instance of a subschema that is named."""
    judge = jsonschema.Draft7Validator if draft == 7 else jsonschema.Draft202012Validator
    n_named = 0
    for seed in range(150):
        rng = Random(seed)
        schema = Schemas(rng, draft).whole(2)
        if not isinstance(schema, dict):
            continue
        try:
            empty = empty_subschemas(schema, default_draft=draft)
        except SchemaError:
            continue
        values = [random_value(rng, 2) for _ in range(60)]
        for pointer in (*empty.subschemas, *[""] * empty.is_empty):
            n_named += 1
            part = resolved(schema, pointer)
            whole = {"definitions": schema.get("definitions", {}), **part} if isinstance(part, dict) else part
            assert not any(judge(whole).is_valid(value) for value in values), (seed, pointer)
    assert n_named > 10


def resolved(schema: Any, pointer: str) -> Any:
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        schema = schema[int(key)] if isinstance(schema, list) else schema[key]
    return schema


@pytest.mark.parametrize(
    ("options", "codes"),
    [
        ({}, []),
        ({"style": "compact"}, []),
        ({"style": "any"}, ["endless-whitespace", "needless-escapes"]),
        ({"whitespace": r"\s*"}, ["endless-whitespace"]),
        ({"whitespace": 4}, []),
        ({"escapes": "any"}, ["needless-escapes"]),
    ],
)
def test_styles_that_let_a_model_run_on_are_told(options: dict[str, Any], codes: list[str]) -> None:
    report = lint_schema(mw.load_schema({"type": "object"}, **options))
    assert [one.code for one in report.findings] == codes and report.passed
    assert [one.code for one in lint_schema({}, style=options.get("style", "natural")).findings] == (
        codes if "style" in options else []
    )
