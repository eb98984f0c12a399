"""The judge of instances, and the checks of a schema's store: what they call right and wrong."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

import maskwright as mw
from maskwright.stores.schema_store import SchemaStore
from maskwright.validation import instances
from maskwright.validation.instances import InstanceJudge, respelled

LONG = "1" * 5_001
"""An integer of more digits than Python reads as an int."""


def judged(schema: Any, text: str) -> str:
    return InstanceJudge(mw.load_schema(schema)).judge(text).answer


@pytest.mark.parametrize(
    ("schema", "text", "answer"),
    [
        ({"type": "integer"}, "1.0", "accepted"),
        ({"type": "integer"}, "1.5", "refused"),
        ({"type": "integer"}, "true", "refused"),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}, "1.0", "refused"),
        ({"type": "number", "multipleOf": 0.1}, "0.3", "accepted"),
        ({"type": "number", "exclusiveMinimum": 0.1}, "0.10000000000000000000000001", "accepted"),
        ({"type": "string", "pattern": r"^\d$"}, '"\u0663"', "refused"),
        ({"type": "string", "format": "date"}, '"2024-02-30"', "refused"),
        ({}, '{"a":1,"a":2}', "refused"),
        ({}, "NaN", "refused"),
        ({}, "[1", "refused"),
        ({"type": "string", "pattern": r"^\p{L}$"}, '"a"', "not judged"),
        ({"type": "number"}, "1e99999999999999999999", "not judged"),
        ({"type": "integer"}, LONG, "accepted"),
        ({"type": "integer"}, f"-{LONG}", "accepted"),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}, LONG, "accepted"),
        ({"type": "string"}, LONG, "refused"),
        ({"type": "number", "maximum": 7}, LONG, "refused"),
        ({"uniqueItems": True}, f"[{LONG}, 2{LONG}]", "accepted"),
        ({"uniqueItems": True}, f"[{LONG}, {LONG}]", "refused"),
    ],
)
def test_what_the_judge_says(schema: Any, text: str, answer: str) -> None:
    assert judged(schema, text) == answer


def test_documents_are_known_to_the_judge() -> None:
    schema = mw.load_schema({"$ref": "https://example.org/n"}, documents={"https://example.org/n": {"type": "null"}})
    assert [InstanceJudge(schema).judge(text).answer for text in ("null", "1")] == ["accepted", "refused"]


def test_without_jsonschema_nothing_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise ImportError

    monkeypatch.setattr(instances, "_validator", missing)
    verdict = InstanceJudge(mw.load_schema({})).judge("1")
    assert verdict.answer == "not judged" and "pip install 'maskwright[schema]'" in verdict.message
    report = mw.validate(store({"type": "null"}), check="sample", amount=2)
    assert report.classes == {"accepted": 0, "drawn: nobody else judged": 2, "false permission": 0}
    assert report.settings["reference"] == "nobody (no jsonschema)"


def test_respelled() -> None:
    assert respelled(' {"1e2 \\" 1" : [ 1e2, -1.5E-1, 0.0 ] }\n') == '{"1e2 \\" 1":[100,-0.15,0.0]}'
    assert respelled("1e999999999") == "1e999999999"
    assert respelled("1e99999999999999999999") == "1e99999999999999999999"


def test_numbers_of_any_size_are_replayed(tmp_path: Path) -> None:
    texts = ("1e99999999999999999999", "-0.5E-99999999999999999999", LONG)
    assert classes_of(store({"type": "number"}), tmp_path, *texts) == ["replayed"] * 3
    assert classes_of(store({"type": "string"}), tmp_path, *texts) == [
        "outside: nobody else judged",
        "outside: nobody else judged",
        "outside: no instance",
    ]


def store(schema: Any) -> SchemaStore:
    return mw.build_store(schema, "python-tiny")


def classes_of(store: SchemaStore, tmp_path: Path, *texts: str) -> list[str]:
    """The class of each text."""
    (tmp_path / "t.jsonl").write_text("".join(f"{text}\n" for text in texts))
    names = [f"{tmp_path / 't.jsonl'}:{number}" for number in range(1, len(texts) + 1)]
    report = mw.validate(store, tmp_path / "t.jsonl", jsonl=True)
    found = {finding.name: finding.kind for finding in report.findings}
    assert report.n_failures == sum(f.is_failure for f in report.findings)
    return [found.get(name, "replayed") for name in names]


def test_classes_of_texts(tmp_path: Path) -> None:
    schema = {"properties": {"a": {"type": "integer", "minimum": 3}, "m": {"format": "email"}}}
    assert classes_of(
        store(schema), tmp_path, '{"a": 3}', '{"a": 2}', '{"a": 3e0}', '{"m": "a@b@c"}', '{"a": 3, "a": 3}', "{"
    ) == [
        "replayed",
        "outside: no instance",
        "outside: an instance that is spelled otherwise",
        "outside: by a format, which is stricter here",
        "outside: no instance",
        "outside: no instance",
    ]
    lenient = mw.load_schema({"type": "string", "pattern": r"^(a)\1$"}, lenient=True)
    assert classes_of(mw.build_store(lenient, "python-tiny"), tmp_path, '"b"') == [
        "allowed, since the reading is lenient"
    ]


def test_wrong_masks_are_found(tmp_path: Path) -> None:
    """The store of another schema in the place of the right one: too narrow, then too wide."""
    right, narrow, wide = ({"type": "integer", **more} for more in ({}, {"maximum": 3}, {"type": ["integer", "null"]}))
    judge = mw.load_schema(right, whitespace="compact")
    masks = dataclasses.replace(mw.build_store(mw.load_schema(narrow), "python-tiny"), constraint=judge)
    assert classes_of(masks, tmp_path, "2", '"a"') == ["replayed", "outside: no instance"]
    masks = dataclasses.replace(masks, constraint=mw.load_schema(right))
    assert classes_of(masks, tmp_path, "12", "2") == ["false refusal", "replayed"]
    assert classes_of(masks, tmp_path, "   12", "   2") == 2 * ["outside: an instance that is spelled otherwise"]
    found = dataclasses.replace(store(mw.load_schema(wide, whitespace="compact")), constraint=judge)
    assert classes_of(found, tmp_path, "12", "null") == ["replayed", "false permission"]
    found = dataclasses.replace(store({"type": "null"}), constraint=judge)
    report = mw.validate(found, check="sample", amount=4, budget=3)
    assert report.classes == {"accepted": 0, "false permission": 4} and not report.passed
    assert report.findings[0].more["text"].strip() == "null"


def test_files_of_stores_are_validated(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.json").write_text("12\n")
    (tmp_path / "texts" / "b.txt").write_text("no")
    store({"type": "integer"}).save(tmp_path / "s")
    report = mw.validate(tmp_path / "s", tmp_path / "texts")
    assert report.classes == {"replayed": 1, "false refusal": 0} and report.passed
    json.dumps(report.to_dict())
    with pytest.raises(mw.MaskwrightError, match=r"there is no such file"):
        mw.validate(tmp_path / "s", tmp_path / "nowhere")
