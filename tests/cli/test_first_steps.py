"""What a new user meets: headings in the help, messages that say what to give, verdicts that say what they leave out."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from maskwright.cli import app
from maskwright.cli.complete import _intervened

LISTS = 'start: "x" ("," "x")*\n'
PERSON = {"properties": {"age": {"type": "integer"}}, "required": ["age"]}


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.chdir(tmp_path)
    Path("mine.lark").write_text(LISTS)
    Path("person.json").write_text(json.dumps(PERSON))
    return CliRunner()


def output_of(runner: CliRunner, line: str, code: int = 0) -> str:
    result = runner.invoke(app, line.split(), env={"COLUMNS": "200"})
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def test_options_stand_under_headings(runner: CliRunner) -> None:
    shown = output_of(runner, "complete --help")
    parts = re.split("Options:|Constraint:|Model and tokenizer:|Output:", shown)
    for part, options in zip(
        parts[1:], (("--max-tokens", "--stop"), ("--lexing", "--key-order"), ("--model",), ("--json",)), strict=True
    ):
        assert all(f" {option} " in part for option in options)


def test_explain_says_what_it_needs(runner: CliRunner) -> None:
    shown = output_of(runner, "explain --help")
    assert "One of --text and --token is needed" in shown and """--token "' def'".""" in shown


def test_interventions_are_of_the_models_probability() -> None:
    found: Any = SimpleNamespace(interventions=[SimpleNamespace(probability=0.9), SimpleNamespace(probability=0.7)])
    assert _intervened(found).endswith("they took away 80 % of the model's probability, at those tokens")


@pytest.mark.parametrize("command", ["export", "validate", "learn", "verify", "info"])
def test_who_needs_a_tokenizer_says_so(runner: CliRunner, command: str) -> None:
    assert "Required for a grammar or a schema" in output_of(runner, f"{command} --help")


def test_a_missing_file_is_a_file_and_a_similar_one_is_named(runner: CliRunner) -> None:
    for command in ("complete persn.json2 x", "verify persn.json2"):
        shown = output_of(runner, command, 2)
        assert "there is no file 'persn.json2'; did you mean person.json?; expected a store's file" in shown
    assert "did you mean" not in output_of(runner, "complete zzzz.zz x", 2)
    assert "did you mean python?" in output_of(runner, "complete pyton x", 2)


def test_budgets_name_the_option(runner: CliRunner) -> None:
    Path("long.lark").write_text('start: "abcdefgh"~40\n')
    shown = output_of(runner, "complete long.lark a --max-tokens 3", 2)
    assert "let the text stay open (--no-close)" in shown and "close=False" not in shown


def test_objects_can_be_closed(runner: CliRunner) -> None:
    Path("more.txt").write_text('{"age": 3, "b": 1}')
    assert "legal" in output_of(runner, "explain person.json --text more.txt")
    shown = output_of(runner, "explain person.json --text more.txt --no-additional-properties", 1)
    assert "line 1, column 10: $: no further property may come" in shown
    assert output_of(runner, "lint person.json --no-additional-properties", 0)


def test_a_folder_is_taken_whole_and_the_verdict_names_what_is_outside(runner: CliRunner) -> None:
    Path("texts").mkdir()
    for name, text in (("a.txt", "x,x"), ("b", "x\n"), ("c.md", "y")):
        Path("texts", name).write_text(text)
    shown = output_of(runner, "validate mine.lark texts --tokenizer python-tiny")
    assert "replay: passed; 2 texts are not of the grammar: see above" in shown
    assert shown.count("ends with a line feed that the grammar does not have") == 1
    assert "replay: passed; 1 text is not of" in output_of(
        runner, "validate mine.lark texts -t python-tiny --suffix .txt --suffix .md"
    )


def test_lint_warns_where_a_store_can_be_built_and_shows_literals(runner: CliRunner) -> None:
    Path("dead.lark").write_text('start: "x" ("y" | b)\nb: "k" b\n')
    shown = output_of(runner, "lint dead.lark", 1)
    assert "warning unproductive-rule" in shown and 'terminal "k" stands only in rules' in shown
    Path("dead.lark").write_text('start: "x" b\nb: K b\nK: "k"\n')
    assert "error unproductive-rule" in output_of(runner, "lint dead.lark", 1)


def test_an_analysis_begins_with_sentences(runner: CliRunner) -> None:
    shown = output_of(runner, "analyze mine.lark --no-lint")
    assert re.match(r"\d+ of \d+ pairs of terminals can never .*A mask store for a tokenizer of 32k tokens has", shown)
    shown = output_of(runner, "analyze mine.lark --no-lint --tokenizer python-tiny")
    assert re.match(
        r"\d+ of \d+ pairs of terminals .*So \d+ entries of a mask store become \d+.*A mask asks the parser", shown
    )
