"""`maskwright explain`: texts and tokens, exit codes, JSON, and bad input."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from engine_cases import longest, vocabulary_of
from typer.testing import CliRunner

from maskwright.cli import app
from maskwright.stores.build import build_store

SMALL = """
start: "def" NAME "(" ")" ":" | NAME "=" NUMBER
NAME: /[a-z]+/
NUMBER: /[0-9]+/
%ignore /[ ]+/
"""


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "small.lark").write_text(SMALL)
    return CliRunner()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("store") / "small.safetensors"
    built = build_store(longest(SMALL, "small.lark"), vocabulary_of(b"def ", b"x1", b"12", singles=bytes(range(256))))
    built.save(path)
    return str(path)


def test_a_text_that_is_illegal(runner: CliRunner) -> None:
    Path("text").write_text("def f(x")
    result = runner.invoke(app, ["explain", "small.lark", "--text", "text"])
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert "line 1, column 7: NAME cannot come here; expected RPAR" in lines[0]
    assert lines[1] == "1 | def f(x" and lines[2].index("^") == lines[1].index("x")
    assert "expected: RPAR" in lines


@pytest.mark.parametrize(("text", "whole"), [("x = 1", True), ("def f", False), ("", False)])
def test_legal_texts(runner: CliRunner, text: str, whole: bool) -> None:
    result = runner.invoke(app, ["explain", "small.lark", "--text", "-", "--json", "-"], input=text)
    assert result.exit_code == 0
    facts = json.loads(result.stdout)
    assert facts["verdict"] == "allowed" and facts["is_whole"] is whole


def test_tokens_of_a_store(runner: CliRunner, store: str) -> None:
    for token, code, word in [("0", 0, "may come next"), ("1", 1, "byte 1 of it"), ("2", 1, "it cannot come")]:
        result = runner.invoke(app, ["explain", store, "--token", token])
        assert result.exit_code == code and word in result.stdout, token
    result = runner.invoke(
        app, ["explain", store, "--text", "-", "--token", "'x1'", "--json", "facts.json"], input="def "
    )
    assert result.exit_code == 1 and "nearest tokens that are allowed" in result.stdout
    facts = json.loads(Path("facts.json").read_text())
    assert (
        facts["what"] == "token 1 (b'x1')"
        and facts["nearest"][0]["data"] == "'x'"
        and facts["nearest"][0]["shared"] == 1
    )


def test_the_end_of_the_text_is_a_token(runner: CliRunner, store: str) -> None:
    end = str(3 + 256)
    assert runner.invoke(app, ["explain", store, "--text", "-", "--token", end], input="x=1").exit_code == 0
    result = runner.invoke(app, ["explain", store, "--text", "-", "--token", end], input="x=")
    assert result.exit_code == 1 and "NUMBER" in result.stdout


def test_a_literal_needs_no_tokenizer(runner: CliRunner) -> None:
    result = runner.invoke(app, ["explain", "small.lark", "--text", "-", "--token", "b'\\x31'"], input="x=")
    assert result.exit_code == 0 and "NUMBER" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "text", "message"),
    [
        (["--text", "-"], "é".encode("latin-1"), "not in UTF-8: byte 0 (line 1) is b'\\xe9'"),
        (["--text", "-"], "x=1".encode("utf-16"), "is in UTF-16"),
        (
            ["--text", "none"],
            b"",
            "the file 'none' cannot be read: No such file or directory; --text takes a file; --text - reads",
        ),
        (["--text", "."], b"", ". cannot be read"),
        ([], b"", "nothing to explain"),
        (["--token", "def"], b"", "neither an id nor a text in quotes"),
        (["--token", "''"], b"", "neither an id"),
        (["--token", "'\\ud800'"], b"", "neither an id"),
        (["--token", "12"], b"", "no tokenizer is given"),
        (["--text", "-", "--lexing", "nfa"], b"x", "lexing='longest'"),
        (["--text", "-", "--json", "no/such/folder.json"], b"x", "cannot be written"),
    ],
)
def test_bad_input(runner: CliRunner, arguments: list[str], text: bytes, message: str) -> None:
    result = runner.invoke(app, ["explain", "small.lark", *arguments], input=text)
    assert result.exit_code == 2
    assert message in result.stderr and "Traceback" not in result.output


def test_stores_that_explain_nothing(runner: CliRunner) -> None:
    result = runner.invoke(app, ["explain", "nothing.safetensors", "--token", "1"])
    assert result.exit_code == 2 and "nothing.safetensors" in result.stderr
    grammar = longest(SMALL)
    from dataclasses import replace

    build_store(replace(grammar, lexing="nfa"), vocabulary_of(singles=bytes(range(256)))).save("nfa.safetensors")
    result = runner.invoke(app, ["explain", "nfa.safetensors", "--token", "1"])
    assert result.exit_code == 2 and "lexing 'nfa'" in result.stderr


@pytest.mark.parametrize("text", ["x = 1", "?"])
@pytest.mark.parametrize("token", ["100000", "9" * 30])
def test_an_id_that_the_vocabulary_lacks_is_bad_input(runner: CliRunner, store: str, text: str, token: str) -> None:
    result = runner.invoke(app, ["explain", store, "--text", "-", "--token", token], input=text)
    assert result.exit_code == 2
    assert f"token {token} is out of range: the vocabulary has the ids 0 to" in result.output.replace("\n", " ")


def test_the_help_shows_how_a_shell_hands_on_a_text_in_quotes(runner: CliRunner) -> None:
    shown = " ".join(runner.invoke(app, ["explain", "--help"]).output.split())
    (example,) = re.findall(r"in quotes: (--token .*?)\. ", shown)
    option, text = shlex.split(example)
    assert option == "--token" and text == "' def'"
    found = runner.invoke(app, ["explain", "small.lark", option, text.replace("def", "or")])
    assert found.exit_code == 0 and "' or' may come next" in found.stdout
