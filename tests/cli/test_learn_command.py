"""`maskwright learn`, and `complete --counts`: what is written, what is refused, fewer passes of the model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import maskwright as mw
from maskwright.cli import app

SCHEMA = '{"type": "object", "properties": {"name": {"type": "string"}, "size": {"type": "integer"}}, "required": ["name", "size"]}'


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    Path("schema.json").write_text(SCHEMA)
    records = [json.dumps({"text": json.dumps({"name": "ab" * (i % 4), "size": i})}) for i in range(40)]
    Path("texts.jsonl").write_text("\n".join([*records, '{"text": "[1, 2]"}', '{"other": 1}']))
    return CliRunner()


def test_what_is_learned_saves_passes_of_the_model(runner: CliRunner) -> None:
    result = runner.invoke(
        app, ["learn", "schema.json", "texts.jsonl", "-t", "python-tiny", "-o", "a.counts", "--json", "-"]
    )
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert (facts["texts"], facts["cut"], facts["unreadable"]) == (41, 1, 1) and facts["places"] > 5
    pytest.importorskip("transformers")
    found = []
    for more in ([], ["--counts", "a.counts"]):
        result = runner.invoke(
            app, ["complete", "schema.json", '{"name": "a', "--max-tokens", "40", "--json", "-", *more]
        )
        assert result.exit_code == 0, result.output
        found.append(json.loads(result.stdout))
    assert found[0]["completion"] == found[1]["completion"]
    assert found[1]["model_calls"] + found[1]["predicted"] == found[0]["model_calls"] and found[1]["predicted"] > 0


def test_grammars_and_compositions(runner: CliRunner) -> None:
    Path("mine.lark").write_text('start: "<" A ">"\n%regex A /[a-z]+/\n')
    Path("a.txt").write_text("<abc>")
    for source in ("mine.lark", "json"):
        result = runner.invoke(app, ["learn", source, "a.txt", "-t", "python-tiny", "-o", "a.counts"])
        assert (result.exit_code == 0) == (source == "mine.lark"), result.output
    assert "is it the right grammar?" in result.stderr


def test_a_folder_of_a_languages_files(runner: CliRunner) -> None:
    """Suffixes come from the grammar's name, as for `validate`; `--suffix` replaces them."""
    Path("code").mkdir()
    Path("code/a.py").write_text("x = 1\n")
    Path("code/b.txt").write_text("y = 2\n")
    Path("code/c.md").write_text("z = 3\n")
    for more, n in (([], 2), (["--suffix", ".md"], 1)):
        result = runner.invoke(
            app, ["learn", "lark:python", "code", "-t", "python-tiny", "-o", "a.counts", "--json", "-", *more]
        )
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout)["texts"] == n


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["schema.json", "texts.jsonl", "-o", "a.counts"], "name the tokenizer"),
        (["schema.json", "missing", "-t", "python-tiny", "-o", "a.counts"], "missing"),
        (["schema.json", "texts.jsonl", "-t", "python-tiny", "-o", "texts.jsonl"], "texts.jsonl"),
        (["schema.json", "texts.jsonl", "-t", "python-tiny", "-o", "-"], "not written to standard output"),
    ],
)
def test_errors(runner: CliRunner, arguments: list[str], said: str) -> None:
    result = runner.invoke(app, ["learn", *arguments])
    assert result.exit_code == 2 and said in result.stderr and not Path("a.counts").exists()


def test_counts_of_another_kind_are_refused(runner: CliRunner) -> None:
    pytest.importorskip("transformers")
    Path("a.counts").write_text("[]")
    result = runner.invoke(app, ["complete", "schema.json", "{", "--counts", "a.counts"])
    assert result.exit_code == 2 and "holds no counts" in result.stderr


@pytest.mark.parametrize(("name", "reason"), [("missing.counts", "No such file"), (".", "Is a directory")])
def test_counts_that_cannot_be_read(runner: CliRunner, name: str, reason: str) -> None:
    pytest.importorskip("transformers")
    result = runner.invoke(app, ["complete", "schema.json", "{", "--counts", name])
    assert result.exit_code == 2 and "cannot be read" in result.stderr and reason in result.stderr


def test_texts_of_which_none_can_be_read(runner: CliRunner) -> None:
    Path("latin.txt").write_bytes(b"caf\xe9")
    result = runner.invoke(app, ["learn", "schema.json", "latin.txt", "-t", "python-tiny", "-o", "a.counts"])
    assert result.exit_code == 2 and not Path("a.counts").exists()
    assert "no text could be read" in result.stderr and "latin.txt: " in result.stderr


def test_a_store_of_another_tokenizer_asks_for_it(runner: CliRunner) -> None:
    mw.build_store("json", mw.load_vocabulary([bytes([byte]) for byte in range(256)] + [b""], eos=[256])).save("own.st")
    result = runner.invoke(app, ["learn", "own.st", "texts.jsonl", "-o", "a.counts"])
    assert result.exit_code == 2 and "name the tokenizer that encodes the texts (--tokenizer)" in result.stderr
