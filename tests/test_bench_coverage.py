"""The script that compares engines on JSON Schema: its spellings, its verdicts, and engines that end or hang."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from bench_scripts import bench_script

ENDS = "import sys; print('\"1.0\"', flush=True); sys.stdin.readline(); sys.exit(3)"
HANGS = "import sys, time; print('\"1.0\"', flush=True); sys.stdin.readline(); time.sleep(60)"
TAKES_ALL = """
import json, sys
print('"1.0"', flush=True)
for line in sys.stdin:
    print('{"compiled": true, "reason": ""}')
    for texts in json.loads(line)["tests"]:
        print(json.dumps([True for text in texts]), flush=True)
"""
GROUP = {"forms": ["{}"], "valid": [True, False], "about": ["yes", "no"], "tests": [["1"], ["2", "2.0"]]}


@pytest.fixture(scope="module")
def coverage() -> Iterator[Any]:
    with bench_script("schema_coverage") as script:
        yield script


@pytest.mark.parametrize(
    "value", [1.0, 1e5, -0.5, 10**30, True, None, "é", "\ud800", [1, [2.0]], {"b": 1, "a": {"d": 1.5, "c": [True]}}]
)
def test_spellings_are_the_value(coverage: Any, value: Any) -> None:
    texts = coverage.spellings(value, {"properties": {"a": {"properties": {"c": {}}}}})
    assert len(texts) == len(set(texts)) >= 1
    for text in texts:
        text.encode()
        assert json.loads(text, parse_float=Decimal) == value


def test_spellings_name_keys_as_the_schema_does(coverage: Any) -> None:
    value = {key: 1 for key in "edcba"}
    schema = {"properties": {"b": {}, "a": {}}, "required": ["c"]}
    texts = coverage.spellings(value, schema)
    assert texts[0] == json.dumps(value)
    assert '{"b":1,"a":1,"c":1,"e":1,"d":1}' in texts and '{"b": 1.0, "a": 1.0, "c": 1.0, "e": 1.0, "d": 1.0}' in texts
    assert '{"b":1,"a":2}' in coverage.spellings({"a": 2, "b": 1}, {})


def test_verdicts(coverage: Any) -> None:
    def verdict(is_valid: bool, answers: Any) -> str:
        return coverage.judge({"valid": [is_valid]}, answers, 0)

    assert verdict(True, [True, False]) == "right" and verdict(True, [False, True]) == "otherwise spelled"
    assert verdict(True, [False, False]) == "refused" and verdict(True, "ValueError: x") == "errors"
    assert verdict(False, [False, False]) == "right" and verdict(False, [False, True]) == "accepted"


def test_an_engine_that_ends_or_hangs_has_failed_and_the_run_goes_on(
    coverage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = coverage.Engine("ours", sys.executable)
    for script, said in ((ENDS, "the process ended with code 3"), (HANGS, "no answer within 0.5 s")):
        monkeypatch.setattr(coverage, "LIMIT", 0.5 if script == HANGS else 10.0)
        engine.command = [sys.executable, "-c", script]
        counts, notes = coverage.run(engine, GROUP)
        assert counts["failed groups"] == 1 and not counts["compiled"] and notes == {"failed": said}
    monkeypatch.setattr(coverage, "LIMIT", 10.0)
    engine.command = [sys.executable, "-c", TAKES_ALL]
    counts, notes = coverage.run(engine, GROUP)
    engine.close()
    assert counts == {"groups": 1, "tests": 2, "compiled": 1, "judged": 2, "right": 1, "accepted": 1}
    assert notes == {"accepted": ["no"]}
