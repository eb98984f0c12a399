"""The audit of a JSON schema finds what an engine ignores, and nothing of one that is right."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from audit.test_peers import python_with
from shares import share
from typer.testing import CliRunner

from maskwright.analysis.errors import MaskwrightError
from maskwright.audit import SchemaAuditReport, audit_schema
from maskwright.audit.mutations import exactly, keywords_of, mutated, smaller, spell, words_of
from maskwright.audit.report import ACCEPTS, REFUSES
from maskwright.cli import app
from maskwright.validation.instances import value_of

HERE = Path(__file__).parent
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2, "pattern": "^[a-z]+$"},
        "n": {"type": "integer", "minimum": 3, "maximum": 9},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "uniqueItems": True},
        "o": {"type": ["null", "boolean"]},
    },
    "required": ["name"],
    "additionalProperties": False,
    "$defs": {"tag": {"enum": ["a", "b"]}},
}
POINTERS = {
    "minLength": "/properties/name/minLength",
    "uniqueItems": "/properties/tags/uniqueItems",
    "enum": "/$defs/tag/enum",
    "required": "/required",
    "additionalProperties": "/additionalProperties",
}


def run(monkeypatch: pytest.MonkeyPatch, ignored: str = "", case: str = "", **options: Any) -> SchemaAuditReport:
    monkeypatch.setenv("PYTHONPATH", f"{HERE}:{HERE.parent.parent / 'src'}")
    monkeypatch.setenv("IGNORED", ignored)
    monkeypatch.setenv("VALUES_CASE", case)
    options = {"values": 120, "seed": 1, **options}
    return audit_schema(options.pop("schema", SCHEMA), "values_engine:make", **options)


def test_nothing_is_found_of_an_engine_that_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    report = run(monkeypatch)
    assert report.agrees and not report.differences and report.counts["values"] == 120
    assert report.counts["instances"] > 10 and report.counts["not_instances"] > 10
    assert all(tried and not accepted for tried, accepted in report.keywords.values())


@pytest.mark.parametrize("keyword", share(["uniqueItems", "required", "minLength", "enum", "additionalProperties"], 1))
def test_an_ignored_keyword_is_found_and_no_other(keyword: str, monkeypatch: pytest.MonkeyPatch) -> None:
    report = run(monkeypatch, ignored=keyword, values=400)
    assert {(one.kind, one.keyword, one.pointer) for one in report.differences} == {
        (ACCEPTS, keyword, POINTERS[keyword])
    }
    (one,) = report.differences
    broken = [*jsonschema.Draft202012Validator(SCHEMA).iter_errors(json.loads(one.text))]
    assert [error.validator for error in broken] == [keyword] and one.why == broken[0].message
    tried, accepted = report.keywords[keyword, POINTERS[keyword]]
    assert tried == accepted > 0 and not report.agrees
    # it is small: nothing can be left out of it, as the keyword needs what is there
    assert len(one.text) <= len('{"name":"aa","tags":["a","a"]}') + 2


def test_a_refused_instance_is_found_at_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    report = run(monkeypatch, case="refuse null")
    assert {(one.kind, one.pointer) for one in report.differences} == {(REFUSES, "/o")}
    assert '"o":null' in report.differences[0].text.replace(" ", "")


def test_failures_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    report = run(monkeypatch, case="raise", values=5)
    assert report.counts["failed"] == 5 and not report.agrees
    assert report.failures == (("exception: RuntimeError: no end in sight", 5),)
    report = run(monkeypatch, case="die", values=20)
    assert "started again 5 times" in report.gave_up and report.counts["values"] == 5


def test_texts_to_begin_with_are_tried_first(monkeypatch: pytest.MonkeyPatch) -> None:
    report = run(monkeypatch, ignored="minimum", values=1, texts=['{"name": "aa", "n": -5}'])
    assert [one.keyword for one in report.differences] == ["minimum"] and report.untested
    with pytest.raises(MaskwrightError, match="a text to begin with is not JSON"):
        run(monkeypatch, texts=["{"])


@pytest.mark.parametrize("options", [{"values": 0}, {"examples": -1}, {"timeout": 0}])
def test_numbers_out_of_range(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MaskwrightError, match="expected at least 1"):
        run(monkeypatch, **options)


def test_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("PYTHONPATH", f"{HERE}:{HERE.parent.parent / 'src'}")
    monkeypatch.setenv("IGNORED", "enum")
    Path("p.json").write_text(json.dumps(SCHEMA))
    arguments = ["audit", "values_engine:make", "-g", "p.json", "--values", "150", "--json", "r.json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1, result.output
    assert "enum at /$defs/tag/enum" in result.output and "DIFFERS" in result.output
    facts = json.loads(Path("r.json").read_text())
    assert facts["differences"][0]["keyword"] == "enum" and facts["settings"]["values"] == 150
    for more, message in (
        (["p.json", "--python", "no/python"], "cannot be run"),
        (["values_engine:make", "-g", "p.json", "-t", "python-tiny"], "--tokenizer is for a grammar"),
        (["values_engine:make", "-g", "json", "--values", "3"], "--values is for a JSON schema"),
        (["values_engine:make"], "name what is right"),
        (["values_engine:make", "-g", "json"], "no texts to audit on"),
    ):
        result = CliRunner().invoke(app, ["audit", *more])
        assert result.exit_code == 2 and message in " ".join(result.output.split()), result.output


@pytest.mark.parametrize(
    ("engine", "package", "keyword"),
    [
        ("xgrammar", "xgrammar", "uniqueItems"),
        ("outlines", "outlines_core", "minimum"),
        ("llguidance", "llguidance", ""),
    ],
)
def test_peers(engine: str, package: str, keyword: str) -> None:
    python = python_with(package)
    if python is None:
        pytest.skip(f"{package} is not installed")
    schema = json.loads(json.dumps(SCHEMA))
    if engine == "llguidance":  # it refuses uniqueItems, openly
        del schema["properties"]["tags"]["uniqueItems"]
    report = audit_schema(schema, engine, python=python, values=400)
    assert report.counts["failed"] == 0 and report.counts["instances"] > 20
    found = {one.keyword for one in report.differences}
    assert keyword in found if keyword else not found


def test_words_and_changes() -> None:
    words = words_of(SCHEMA)
    assert words.names[:4] == ("name", "n", "tags", "o") and {2, 3, 4, 8, 9, 10, "a", "b"} <= {
        one for one in words.values if not isinstance(one, list | dict)
    }
    rng = random.Random(0)
    value: Any = {"name": "aa", "tags": ["a", "b"], "n": Decimal("3.5")}
    for _ in range(300):
        before = spell(value)
        changed = mutated(value, words, rng)
        assert spell(value) == before and value_of(spell(changed)) == changed
        assert all(len(spell(one)) < len(spell(changed)) for one in smaller(changed))
        value = changed if len(spell(changed)) < 300 else {"name": "aa"}


def test_numbers_are_spelled_without_exponents() -> None:
    values = [exactly(value_of(text)) for text in ("1e9999999", "-1E-9999999", "1.50e1", "2.5", "0e5", "1e3")]
    assert [spell(value) for value in values] == ["1", "1", "15", "2.5", "0", "1000"]


def test_keywords_that_say_nothing_are_not_asked_for() -> None:
    schema = {
        "required": [],
        "minLength": 0,
        "uniqueItems": False,
        "minimum": 0,
        "not": {"const": 1},
        "properties": {"a/b": {"maxItems": 0}},
    }
    assert [*keywords_of(schema)] == [
        ("minimum", "/minimum"),
        ("not", "/not"),
        ("maxItems", "/properties/a~1b/maxItems"),
    ]
