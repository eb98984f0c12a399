"""The commands on schemas, patterns and other engines' grammars: what they print, their exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from maskwright.cli import app
from maskwright.cli.constraints import GrammarOptions, is_constraint, syntax_of

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 2}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")
    Path("p.json").write_text(json.dumps(SCHEMA))
    Path("g.gbnf").write_text('root ::= "a" root | "b"\n')
    Path("answers.txt").write_text("yes\nno\n")
    Path("good.json").write_text('{"name": "Jo", "age": 3}\n')
    Path("bad.json").write_text('{"name": "J", "age": 3}\n')
    return CliRunner()


def facts_of(runner: CliRunner, *arguments: str, code: int = 0) -> Any:
    """What a command writes as JSON."""
    found = runner.invoke(app, [*arguments, "--json", "-"])
    assert found.exit_code == code, found.output
    return json.loads(found.stdout)


def refused(runner: CliRunner, *arguments: str) -> str:
    """The message of a command that ends with 2."""
    found = runner.invoke(app, list(arguments))
    assert found.exit_code == 2 and not found.stdout, found.output
    return " ".join(found.stderr.split())


@pytest.mark.parametrize(
    ("source", "syntax", "expected"),
    [
        ("json", None, "lark"),
        ("lark:python", None, "lark"),
        ("x.lark", None, "lark"),
        ("x.json", None, "schema"),
        ("x.GBNF", None, "gbnf"),
        ("x.ebnf", None, "ebnf"),
        ('{"type": "null"}', None, "schema"),
        ('root ::= "a"', None, "gbnf"),
        ('start: "a"\n', None, "lark"),
        ("[a-z]+", "regex", "regex"),
        ("p.json", "regex", "regex"),
    ],
)
def test_what_a_constraint_is_written_in(source: str, syntax: Any, expected: str) -> None:
    options = GrammarOptions(syntax=syntax)
    assert syntax_of(source, options) == expected and is_constraint(source, options)


def test_stores_are_no_constraints() -> None:
    assert not is_constraint("x.safetensors", GrammarOptions()) and not is_constraint("x", GrammarOptions())


def test_lint(runner: CliRunner) -> None:
    facts = facts_of(runner, "lint", "p.json", "-t", "python-tiny")
    assert facts["passed"] and facts["grammar"] == "p.json" and facts["tokenizer"] == "python-tiny"
    Path("odd.json").write_text('{"type": "object", "required": ["a"], "properties": {"a": false}, "minLength": 3}')
    found = runner.invoke(app, ["lint", "odd.json"])
    assert found.exit_code == 1
    assert "odd.json: error empty-schema: no value satisfies the schema: type" in found.stdout
    assert "odd.json#/minLength: warning idle-keyword" in found.stdout
    assert facts_of(runner, "lint", "odd.json", "--allow", "empty-schema", "--allow", "idle-keyword")["allowed"] == 2
    assert runner.invoke(app, ["lint", '{"type": "nul"}']).exit_code == 2
    Path("inexact.json").write_text(json.dumps({"type": "string", "pattern": r"(a)\1"}))
    assert facts_of(runner, "lint", "inexact.json", code=1)["counts"]["error"] == 1
    assert facts_of(runner, "lint", "inexact.json", "--lenient", code=1)["counts"] == {
        "error": 0,
        "warning": 1,
        "info": 0,
    }
    assert facts_of(runner, "lint", "g.gbnf")["grammar"].startswith("g")
    assert "in which there is nothing to lint" in refused(runner, "lint", "answers.txt", "--from", "choice")


def test_analyze(runner: CliRunner) -> None:
    facts = facts_of(runner, "analyze", "p.json", "-t", "python-tiny", "--whitespace", "2")
    assert facts["nodes"] == 3 and facts["shapes"] == {"Numbers": 1, "Objects": 1, "Strings": 1}
    assert facts["keys"] == facts["required_keys"] == 2 and facts["whitespace"] == 2 and facts["table_bytes"] > 100
    found = runner.invoke(
        app, ["analyze", '{"properties": {"a": {"$ref": "#"}, "b": {"pattern": "(a)\\\\1"}}}', "--lenient"]
    )
    assert found.exit_code == 0 and "of them inside themselves" in found.stdout and "left out" in found.stdout
    assert facts_of(runner, "analyze", "answers.txt", "--from", "choice")["automata"] == {
        "count": 1,
        "states": 5,
        "largest": 5,
    }
    assert "--html and --exact are for one" in refused(runner, "analyze", "p.json", "--exact")


def test_explain(runner: CliRunner) -> None:
    found = runner.invoke(app, ["explain", "p.json", "--text", "bad.json"])
    assert found.exit_code == 1 and "$.name: the string is shorter than 2 characters" in found.stdout
    assert runner.invoke(app, ["explain", "p.json", "--text", "good.json"]).exit_code == 0
    facts = facts_of(runner, "explain", "p.json", "-t", "python-tiny", "--token", "0", code=1)
    assert facts["verdict"] == "refused" and "may not end the text here" in facts["summary"]
    found = runner.invoke(app, ["explain", "[a-z]+", "--from", "regex", "--token", "'1'"])
    assert found.exit_code == 1 and "'1', cannot come here; allowed: 'a' to 'z'" in found.stdout
    assert "is an id, but no tokenizer is given" in refused(runner, "explain", "p.json", "--token", "5")
    assert "out of range" in refused(runner, "explain", "p.json", "-t", "python-tiny", "--token", "99999")


def test_validate_replays_instances(runner: CliRunner) -> None:
    facts = facts_of(runner, "validate", "p.json", "good.json", "bad.json", "-t", "python-tiny")
    assert facts["classes"] == {"replayed": 1, "outside: no instance": 1, "false refusal": 0}
    (finding,) = facts["findings"]
    assert finding["name"] == "bad.json" and "shorter than 2" in finding["why"] and "too short" in finding["said"][0]
    Path("some.jsonl").write_text('{"name":"Jo","age":1}\n\n{"age":1}\n{"name":"Jo","age":1e0}\n')
    facts = facts_of(runner, "validate", "p.json", "some.jsonl", "--jsonl", "-t", "python-tiny")
    assert facts["classes"]["outside: an instance that is spelled otherwise"] == 1 and facts["texts"] == 3
    assert [each["name"] for each in facts["findings"]] == ["some.jsonl:3", "some.jsonl:4"]
    runner.invoke(app, ["export", "p.json", "-t", "python-tiny", "-o", "p.safetensors", "--whitespace", "compact"])
    facts = facts_of(runner, "validate", "p.safetensors", "good.json", code=1)  # vacuous: nothing was replayed
    assert facts["classes"]["outside: an instance that is spelled otherwise"] == 1
    Path("escaped.json").write_text('{"name":"\\u004ao","age":1}')
    facts = facts_of(
        runner, "validate", "p.json", "escaped.json", "good.json", "-t", "python-tiny", "--escapes", "minimal"
    )
    assert facts["classes"] == {"replayed": 1, "outside: an instance that is spelled otherwise": 1, "false refusal": 0}


def test_validate_draws_instances(runner: CliRunner) -> None:
    facts = facts_of(runner, "validate", "p.json", "-t", "python-tiny", "-n", "6", "--budget", "20", "--cuts", "2")
    assert facts["check"] == "sample" and facts["classes"] == {"accepted": 6, "false permission": 0}
    assert facts["settings"]["reference"] == "jsonschema" and facts["figures"]["closed"] == 18
    facts = facts_of(runner, "validate", "p.json", "-t", "python-tiny", "-n", "2", "--reference", "none")
    assert facts["classes"] == {"accepted": 0, "drawn: nobody else judged": 2, "false permission": 0}
    facts = facts_of(runner, "validate", "(a|b)+", "--from", "regex", "-t", "python-tiny", "-n", "2", "--budget", "9")
    assert facts["classes"]["accepted"] == 2
    facts = facts_of(
        runner, "validate", "p.json", "good.json", "-t", "python-tiny", "--check", "sample", "-n", "3", "-j", "2"
    )
    assert facts["classes"] == {"accepted": 3, "false permission": 0}


def test_validate_refuses(runner: CliRunner) -> None:
    begin = ["validate", "p.json", "-t", "python-tiny"]
    assert "is for a grammar; for p.json, a schema or a pattern, there are replay and sample" in refused(
        runner, *begin, "good.json", "--check", "oracle"
    )
    assert "--resume is not for a schema or a pattern, as p.json is one" in refused(runner, *begin, "--resume", "log")
    assert "instances are judged by jsonschema" in refused(runner, *begin, "--reference", "json")
    assert "instances of a schema only (--jsonl)" in refused(
        runner, "validate", "json", "good.json", "-t", "python-tiny", "--jsonl"
    )


def test_export_info_and_complete(runner: CliRunner) -> None:
    facts = facts_of(runner, "export", "p.json", "-t", "python-tiny", "-o", "p.safetensors", "--key-order", "schema")
    assert facts["kind"] == "schema" and facts["schema"]["key_order"] == "schema"
    shown = runner.invoke(app, ["info", "p.safetensors"]).stdout
    assert "white space natural, key order schema, escapes natural" in " ".join(shown.split()) and "p.json" in shown
    assert facts_of(runner, "info", "answers.txt", "--from", "choice", "-t", "python-tiny")["kind"] == "pattern"
    pytest.importorskip("transformers")
    facts = facts_of(runner, "complete", "p.safetensors", '{"name": "', "--max-tokens", "25")
    assert facts["is_complete"] and facts["verdict"] == {"by": "jsonschema", "answer": "accepted", "message": ""}
    of_choice = "--from", "choice", "--max-tokens", "5", "--instruction", "Is it so? "
    facts = facts_of(runner, "complete", "answers.txt", "y", *of_choice)
    assert (facts["completion"], facts["verdict"], facts["instruction"]) == ("es", None, "Is it so? ")
    assert "cannot stand at byte 0" in refused(runner, "complete", "p.json", "[")


def test_documents_that_a_schema_refers_to(runner: CliRunner) -> None:
    Path("refers.json").write_text('{"properties": {"who": {"$ref": "parts/person.json"}}, "required": ["who"]}')
    Path("folder/parts").mkdir(parents=True)
    Path("folder/parts/person.json").write_text(json.dumps(SCHEMA))
    Path("right.json").write_text('{"who": {"name": "Jo", "age": 3}}')
    Path("wrong.json").write_text('{"who": {"name": "J", "age": 3}}')
    given = "--documents", "folder"
    assert "leads to nothing that is given" in refused(runner, "info", "refers.json", "-t", "python-tiny")
    assert facts_of(runner, "info", "refers.json", "-t", "python-tiny", *given)["kind"] == "schema"
    assert facts_of(runner, "lint", "refers.json", code=1)["counts"]["error"] == 1
    assert facts_of(runner, "lint", "refers.json", *given)["counts"]["error"] == 0
    validate = "validate", "refers.json", "-t", "python-tiny", "right.json", "wrong.json", *given
    assert facts_of(runner, *validate)["classes"] == {"replayed": 1, "outside: no instance": 1, "false refusal": 0}
    assert runner.invoke(app, ["export", "refers.json", "-t", "python-tiny", "-o", "r.store", *given]).exit_code == 0
    assert "whose grammar is fixed: --documents is for" in refused(runner, "info", "r.store", *given)
    assert "--documents is for one" in refused(runner, "lint", "json", *given)
    assert "which is no folder" in refused(runner, "lint", "refers.json", "--documents", "right.json")


@pytest.mark.parametrize(
    "command", [("complete", "yes.txt", ""), ("info", "yes.txt"), ("explain", "yes.txt", "--token", "1")]
)
def test_a_file_that_may_be_of_any_kind(runner: CliRunner, command: tuple[str, ...]) -> None:
    Path("yes.txt").write_text("yes\nno\n")
    said = refused(runner, *command)
    assert "yes.txt does not begin as a store does." in said and "--from lark, schema, regex, choice, gbnf" in said


def test_options_of_another_kind_are_refused(runner: CliRunner) -> None:
    assert "p.json is not a grammar in Lark, and --lexing is for one" in refused(
        runner, "lint", "p.json", "--lexing", "nfa"
    )
    assert "json is not a JSON schema, and --lenient is for one" in refused(runner, "lint", "json", "--lenient")
    assert "--escapes is for one" in refused(runner, "analyze", "g.gbnf", "--escapes", "minimal")
    assert "--key-order is for one" in refused(runner, "analyze", "g.gbnf", "--key-order", "schema")
    for option in (["--original"], ["--context", "2"]):
        assert "does not apply" in refused(runner, "export", "p.json", "-t", "python-tiny", "-o", "x", *option)
    assert "only these are audited" in refused(runner, "audit", "m:C", "good.json", "-g", "g.gbnf", "-t", "python-tiny")
    assert "--lexing is for one" in refused(runner, "audit", "m:C", "-g", "p.json", "--lexing", "longest")
    assert "--lexing is for one" in refused(runner, "warm-up", "p.json", "-t", "python-tiny", "--lexing", "longest")
    assert "whose grammar is fixed: --lenient is for" in refused(runner, "info", "p.safetensors", "--lenient")
    assert "is a grammar, not a store: name the tokenizer" in refused(runner, "info", "p.json")
