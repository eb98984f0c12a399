"""Benchmarks on one's own files: what `--data` finds in them, and what is said where there is nothing."""

from __future__ import annotations

import argparse
import json
import lzma
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from bench_scripts import FOLDER, bench_script

SCHEMA = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "required": ["a"]}
FILES = {
    "p/one.py": "x = 1\n",
    "p/deeper/two.py": "def f(:\n",
    "p/empty.py": "",
    "j/good.json": '{"a": 1}',
    "j/bad.json": "{",
    "t/a.toml": "a = 1\n",
    "t/b.toml": "a = \n",
    "q/some.sql": "select 'a;b';\n\nselect 2;",
    "s/schemas/thing.json": json.dumps(SCHEMA),
    "s/test/thing/yes.json": '{"a": 1}',
    "s/negative_test/thing/no.json": "{}",
    "u/draft7/optional/some.json": json.dumps(
        [{"description": "d", "schema": {"$ref": "http://localhost:1234/x"}, "tests": []}]
    ),
}


@pytest.fixture
def common(tmp_path: Path) -> Iterator[ModuleType]:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "p" / "latin.py").write_bytes(b"x = '\xe9'\n")
    with bench_script("common") as module:
        yield module


def given(common: ModuleType, *paths: Path) -> None:
    parser = argparse.ArgumentParser()
    common.add_data(parser)
    parser.parse_args(["--data", *map(str, paths)])


def test_own_files(common: ModuleType, tmp_path: Path) -> None:
    given(common, tmp_path)
    there = [name for name in common.SUFFIXES if common.has_records(f"source/{name}")]
    found = {name: [each["text"] for each in common.shared_records(f"source/{name}")] for name in there}
    json_texts = found.pop("json")
    assert found == {"python": ["x = 1\n"], "toml": ["a = 1\n"], "sql_statements": ["select 'a;b';", "select 2;"]}
    assert '{"a": 1}' in json_texts and "{" not in json_texts
    assert [each["path"] for each in common.python_files()] == ["p/one.py"]
    (schema,) = common.shared_records("jsonschema/schemastore")
    assert schema["schema"] == SCHEMA
    assert schema["tests"] == [{"data": {}, "valid": False}, {"data": {"a": 1}, "valid": True}]
    (group,) = common.shared_records("jsonschema/json_schema_test_suite")
    assert group["id"] == "suite/draft7/optional/some.json#d" and group["draft"] == "draft7" and group["needs_remotes"]


def test_single_files_and_packed_data(common: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "packed" / "source").mkdir(parents=True)
    with lzma.open(tmp_path / "packed" / "source" / "python.jsonl.xz", "wt", encoding="utf-8") as lines:
        lines.write('{"text": "y = 2"}\n')
    given(common, tmp_path / "packed", tmp_path / "p" / "one.py")
    assert [record["text"] for record in common.python_files()] == ["y = 2", "x = 1\n"]


def test_what_is_not_there_is_said(
    common: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(common, "SHARED", tmp_path / "nowhere")
    assert not common.has_records("source/go")
    with pytest.raises(SystemExit, match=r"evaluation data is not there \(source/go\.jsonl\.xz\).*--data PATH reads"):
        list(common.shared_records("source/go"))
    with pytest.raises(SystemExit, match="evaluation data is not there"):
        list(common.shared_records("negative/go"))
    with pytest.raises(SystemExit):
        given(common, tmp_path / "nowhere")
    assert "no such file or folder" in capsys.readouterr().err
    given(common, tmp_path)
    with pytest.raises(SystemExit, match="nothing for source/go in --data"):
        common.data_files("source/go")
    assert common.data_files("source/python") == [tmp_path]
    assert list(common.shared_records("negative/go")) == []
    assert "no negative/go.jsonl.xz there; measured without" in capsys.readouterr().err


def test_records_of_own_data_stand_beside(common: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common, "ROOT", tmp_path)
    assert common.records_folder() == common.RECORDS
    given(common, tmp_path / "p")
    path = common.write_record("x", "python reports/bench/schemas.py", {})
    assert path.parent == tmp_path / "out" / "record"
    assert json.loads(path.read_text("utf-8"))["data"] == ["p"]


def test_each_script_takes_it() -> None:
    """Whatever reads the evaluation data and has a command line."""
    reads = re.compile(
        r"shared_records\(|python_files\(|python_documents\(|write_work\(|data_files\(|^def corpora_of", re.MULTILINE
    )
    scripts = [path for path in FOLDER.glob("*.py") if path.name not in ("common.py", "gpu_work.py")]
    readers = [path for path in scripts if reads.search(path.read_text("utf-8"))]
    assert len(readers) > 15
    assert [path.name for path in readers if "add_data(parser)" not in path.read_text("utf-8")] == []


def test_a_script_on_own_schemas(
    tmp_path: Path, common: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["schema_refusals.py", "--data", str(tmp_path / "s")])
    with bench_script("schema_refusals") as script:
        refusals: Any = script
        refusals.main()
    assert capsys.readouterr().out == "schemastore: 1 schemas, 0 refused\n"
