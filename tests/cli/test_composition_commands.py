"""The commands with compositions: Lark files that name parts of other languages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from maskwright.cli import app

HOST = """start: "<when>" DATE "</when>" ANSWER? CODE?
%regex DATE /[0-9]{4}-[0-9]{2}/
%schema ANSWER {"type": "object",
  "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false}
%grammar CODE code.lark
"""
CODE = 'start: "go " WORD ";"\nWORD: /[a-z]+/\n'


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    Path("host.lark").write_text(HOST)
    Path("code.lark").write_text(CODE)
    return CliRunner()


def test_lint_of_a_clean_composition(runner: CliRunner) -> None:
    for more in ([], ["--tokenizer", "python-tiny"]):
        result = runner.invoke(app, ["lint", "host.lark", *more])
        assert (result.exit_code, result.output) == (0, "host.lark: 0 errors, 0 warnings, 0 info\n")


def test_lint_names_host_and_parts(runner: CliRunner) -> None:
    Path("host.lark").write_text(
        HOST.replace('"type": "integer"', '"type": "integer", "minLength": 3')
        + 'dead: "x"\n%regex UNUSED /abc/\n%token CALL <|x|>\n'
    )
    Path("code.lark").write_text(CODE + 'lost: "c"\n')
    result = runner.invoke(app, ["lint", "host.lark", "--json", "-"])
    found = [
        (one["code"], one["file"], one["line"], one["pointer"], one["part"])
        for one in json.loads(result.stdout)["findings"]
    ]
    assert result.exit_code == 1
    assert found == [
        ("unused-part", "host.lark", 7, "", "UNUSED"),
        ("unused-part", "host.lark", 8, "", "CALL"),
        ("unreachable-rule", "host.lark", 6, "", ""),
        ("idle-keyword", "schema", 0, "/properties/a/minLength", "ANSWER"),
        ("unreachable-rule", "code.lark", 3, "", "CODE"),
    ]
    allowed = ["--allow", "unreachable-rule", "--allow", "idle-keyword", "--allow", "unused-part"]
    assert runner.invoke(app, ["lint", "host.lark", *allowed]).exit_code == 0


def test_lint_of_a_host_whose_only_part_is_unused(runner: CliRunner) -> None:
    Path("host.lark").write_text('start: "a"\n%regex DATE /b/\n')
    result = runner.invoke(app, ["lint", "host.lark"])
    assert result.exit_code == 1
    assert result.output.startswith("host.lark:2:1 (part DATE): error unused-part: no rule uses DATE")


def test_lint_shows_parts_by_name(runner: CliRunner) -> None:
    Path("host.lark").write_text("start: a | b\na: DATE\nb: DATE\n%regex DATE /b/\n")
    result = runner.invoke(app, ["lint", "host.lark"])
    assert result.exit_code == 0 and "info ambiguity" in result.output
    assert "<DATE>" in result.output and "xf8" not in result.output


def test_lint_refuses_options_of_one_language(runner: CliRunner) -> None:
    result = runner.invoke(app, ["lint", "host.lark", "--start", "other"])
    assert result.exit_code == 2 and "names parts of other languages" in result.output


@pytest.mark.parametrize(
    ("text", "said"), [("<when>20x6", "part DATE"), ('<when>2026-01</when>{"b"', "part ANSWER"), ("<whem", "host.lark")]
)
def test_explain_names_the_part_that_refuses(runner: CliRunner, text: str, said: str) -> None:
    Path("text").write_text(text)
    result = runner.invoke(app, ["explain", "host.lark", "--text", "text", "--tokenizer", "python-tiny", "--json", "-"])
    found = json.loads(result.stdout)
    assert result.exit_code == 1 and found["verdict"] == "refused"
    assert any(one["why"].startswith(f"{said}: ") for one in found["attempts"])


def test_explain_of_a_legal_text(runner: CliRunner) -> None:
    Path("text").write_text("<when>2026-01</when>go x;")
    result = runner.invoke(app, ["explain", "host.lark", "--text", "text", "--tokenizer", "python-tiny"])
    assert result.exit_code == 0 and "it is a complete text" in result.output
    without = runner.invoke(app, ["explain", "host.lark", "--text", "text"])
    assert without.exit_code == 2 and "--tokenizer" in without.output


def test_validate_names_the_part_that_refuses(runner: CliRunner) -> None:
    Path("good.txt").write_text('<when>2026-01</when>{"a": 1}go x;')
    Path("bad.txt").write_text('<when>2026-01</when>{"b": 1}')
    command = ["validate", "host.lark", "--tokenizer", "python-tiny", "--json", "-"]
    good = runner.invoke(app, [*command, "good.txt"])
    assert good.exit_code == 0 and json.loads(good.stdout)["classes"] == {"replayed": 1, "refused": 0}
    bad = runner.invoke(app, [*command, "bad.txt"])
    found = json.loads(bad.stdout)["findings"]
    assert bad.exit_code == 1 and [(one["class"], one["part"]) for one in found] == [("refused", "ANSWER")]
    other = runner.invoke(app, [*command, "good.txt", "--check", "oracle"])
    assert other.exit_code == 2 and "there is replay" in other.output


def test_commands_take_structural_tags_or_say_so(runner: CliRunner) -> None:
    texts = {"none": {"type": "const_string", "value": "abc"}, "one": {"type": "regex", "pattern": "a+"}}
    for name, form in texts.items():
        path = Path(f"{name}.json")
        path.write_text(json.dumps({"type": "structural_tag", "format": form}))
        tokens = ["--tokenizer", "python-tiny"]
        for command in (["export", str(path), "-o", "s.safetensors"], ["info", str(path)], ["analyze", str(path)]):
            run = runner.invoke(app, [*command, *tokens])
            assert run.exit_code == 0, run.output
        refused = runner.invoke(app, ["validate", str(path), *tokens])
        assert refused.exit_code == 2 and "which this command does not read" in " ".join(refused.output.split())
    lint = runner.invoke(app, ["lint", "one.json"])
    assert lint.exit_code == 2 and "a structural tag is for mw.read_structural_tag" in " ".join(lint.output.split())


def test_analyze_and_info_show_host_and_parts(runner: CliRunner) -> None:
    Path("inner.lark").write_text('start: "<" CALL ">"\n%schema CALL {"type": "array"}\n')
    Path("host.lark").write_text(HOST.replace("CODE?", "CODE? DEEP?") + "%grammar DEEP inner.lark\n")
    plain = runner.invoke(app, ["analyze", "host.lark"])
    assert plain.exit_code == 0, plain.output
    lines = [line.split() for line in plain.stdout.splitlines()]
    assert lines[0] == ["composition", "host.lark:", "4", "parts,", "2", "languages", "deep"]
    assert [line[0] for line in lines[2:]] == ["(host)", "DATE", "ANSWER", "CODE", "DEEP", "(host)", "CALL"]
    facts = json.loads(runner.invoke(app, ["analyze", "host.lark", "--json", "-"]).stdout)
    assert [(part["name"], part["kind"], part["in_rules"]) for part in facts["parts"]] == [
        ("DATE", "pattern", 1),
        ("ANSWER", "schema", 1),
        ("CODE", "grammar", 1),
        ("DEEP", "composition", 1),
    ]
    assert "table_bytes" not in facts and facts["parts"][3]["composition"]["parts"][0]["kind"] == "schema"
    measured = json.loads(runner.invoke(app, ["info", "host.lark", "-t", "python-tiny", "--json", "-"]).stdout)
    sizes = [measured["host"]["table_bytes"], *(part["table_bytes"] for part in measured["parts"][:3])]
    assert all(sizes) and measured["table_bytes"] > sum(sizes)
    with_tokens = runner.invoke(app, ["analyze", "host.lark", "-t", "python-tiny"])
    assert "table bytes" in with_tokens.stdout and "vocabulary python-tiny" in with_tokens.stdout


def test_analyze_of_another_dialect_with_parts(runner: CliRunner) -> None:
    Path("tool.lark").write_text('start: "a" obj\nobj: %json {"type": "object"}\n')
    result = runner.invoke(app, ["analyze", "tool.lark", "--from", "llguidance", "--json", "-"])
    assert result.exit_code == 0 and json.loads(result.stdout)["parts"][0]["kind"] == "schema"
    exported = runner.invoke(
        app, ["export", "tool.lark", "--from", "llguidance", "-t", "python-tiny", "-o", "x.safetensors"]
    )
    assert exported.exit_code == 0
    assert json.loads(runner.invoke(app, ["info", "x.safetensors", "--json", "-"]).stdout)["kind"] == "composition"
    refused = runner.invoke(app, ["verify", "tool.lark", "--from", "llguidance", "-t", "python-tiny"])
    assert refused.exit_code == 2 and "has other languages inside" in refused.stderr


@pytest.mark.parametrize("option", [["--then", "A"], ["--html", "x.html"], ["--exact"]])
def test_analyze_refuses_what_is_for_grammars(runner: CliRunner, option: list[str]) -> None:
    result = runner.invoke(app, ["analyze", "host.lark", *option])
    assert result.exit_code == 2 and "host.lark is no grammar" in result.stderr


def test_analyze_shows_parts_that_are_tokens(runner: CliRunner) -> None:
    Path("host.lark").write_text('start: "a" CALL\n%token CALL <|call|>\n')
    result = runner.invoke(app, ["analyze", "host.lark"])
    assert result.exit_code == 0 and "token <|call|>" in result.stdout
