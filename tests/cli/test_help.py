"""What `--help` shows is whole, and what the pages say of commands and options is there."""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
import typer
from forked import Commands
from paths import ROOT
from shares import share
from typer.testing import CliRunner

import maskwright
from maskwright.analysis.loading.names import known_grammars
from maskwright.cli import app
from maskwright.cli.constraints import OF_LARK, OF_SCHEMAS, GrammarOptions, option_of
from maskwright.maskstore.vocabulary.vocabulary import BUILT_IN

MAIN = typer.main.get_command(app)
COMMANDS: dict[str, click.Command] = dict(MAIN.commands)  # type: ignore[attr-defined]
PAGES = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]


def shown(*arguments: str, width: int = 1000) -> str:
    """Output of a command without frames, in one line."""
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": str(width), "TERMINAL_WIDTH": str(width)})
    assert result.exit_code == 0, result.output
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", result.output).split())


@pytest.mark.parametrize("name", ["", *sorted(COMMANDS)])
def test_help_is_whole(name: str) -> None:
    """No text of an option, argument or command loses anything to markup; at 80 columns every word is there."""
    command = COMMANDS.get(name, MAIN)
    arguments = [name] if name else []
    wide, narrow = shown(*arguments, "--help"), shown(*arguments, "--help", width=80)
    texts = [command.help or "", command.epilog or ""]
    for parameter in command.params:
        texts.append(getattr(parameter, "help", None) or "")
        assert not isinstance(parameter, click.Option) or all(option in wide for option in parameter.opts)
        assert not parameter.metavar or parameter.metavar in wide
    assert any(texts)
    for text in texts:
        plain = " ".join(text.replace("\\[", "[").split())
        assert plain in wide, plain
        assert set(re.findall(r"\w{3,}", plain)) <= set(re.findall(r"\w{3,}", narrow)) or "-" in plain


@pytest.mark.parametrize("width", [60, 80, 120])
def test_help_is_plain_at_any_width(width: int) -> None:
    """No types of Python, nothing cut, no word longer than the line; what a command reads is called GRAMMAR throughout."""
    for name, command in [("maskwright", MAIN), *COMMANDS.items()]:
        parent = None if command is MAIN else MAIN.context_class(MAIN, info_name="maskwright", terminal_width=width)
        found = MAIN.get_command(parent, name) if parent is not None else MAIN  # type: ignore[attr-defined]
        text = found.get_help(found.context_class(found, parent=parent, info_name=name, terminal_width=width))
        assert not re.search(r"<(bool|int|str|float|path|file)\b|…|\{[A-Z]|\\\[|STORE\b", text), text
        assert "..." not in text.replace("PATH...", "").replace("ARGS]...", "").replace("GRAMMAR...", "").replace(
            ", ...", ""
        )
        assert max(map(len, text.splitlines())) <= width, text
        for parameter in command.params:
            for option in parameter.opts if isinstance(parameter, click.Option) else ():
                assert option in text


@pytest.mark.parametrize("name", share(["export", *sorted(COMMANDS.keys() - {"export"})], 1))
def test_the_short_option_shows_the_same(name: str) -> None:
    assert shown(name, "-h") == shown(name, "--help")


def test_a_pattern_in_the_help_is_not_eaten() -> None:
    assert "function_name=[a-z_]+" in shown("info", "--help")


NOT_TAKEN = {
    "audit": {*OF_SCHEMAS},
    "learn": {*OF_LARK},
    "validate": {*OF_LARK} - {"restrict"},
    "verify": {*OF_SCHEMAS},
    "warm-up": {*OF_SCHEMAS},
}
"""The options of how a grammar is read that a command does not have."""


def test_commands_pass_on_every_option_of_how_a_grammar_is_read() -> None:
    asked = {
        name: {each.name: each.opts for each in command.params}
        for name, command in COMMANDS.items()
        if ": GrammarOptions = DEFAULTS" in inspect.getsource(inspect.unwrap(command.callback or test_help_is_whole))
    }
    assert len(asked) == 12 and asked.keys() >= NOT_TAKEN.keys()
    for name, options in asked.items():
        taken = [field for field in GrammarOptions._fields if field not in NOT_TAKEN.get(name, ())]
        found = [field for field in GrammarOptions._fields if field in options]
        assert found == taken, name
        assert all(option_of(field) in options[field] for field in taken), name


OF_SERVERS = {
    "--additional-config",
    "--constrained-json-disable-any-whitespace",
    "--constrained-json-whitespace-pattern",
    "--reasoning-parser",
    "--speculative-config",
}
"""Options of vLLM and SGLang that our pages name."""


def snippets(page: str) -> list[str]:
    """Code of a page: blocks, whose lines that end in a backslash are joined, and spans."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = "\n".join(re.findall(r"```\w*\n(.*?)```", text, re.DOTALL)).replace("\\\n", " ")
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    return [*blocks.splitlines(), *spans]


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_options_of_the_pages_exist(page: str) -> None:
    everywhere = {
        option
        for command in (MAIN, *COMMANDS.values())
        for p in command.params
        for option in (*p.opts, *p.secondary_opts)
    }
    for code in snippets(page):
        for call in re.findall(r"(?<!import)(?:^|[ ;|(/])maskwright ((?:--)?[a-z][^;|`]*)", code):
            first = call.split()[0]
            if first.startswith("--"):
                assert first in everywhere | OF_SERVERS, code
                continue
            # `maskwright analyze | export` names two
            assert first in COMMANDS, f"{page}: {code}"
            options = {option for p in COMMANDS[first].params for option in (*p.opts, *p.secondary_opts)} | {
                "--help",
                "-h",
            }
            for option in re.findall(r"(?<=[ \[(])--?[a-z][a-z-]*", call):
                assert option in options, f"{page}: {first} has no {option}: {code}"
        if re.fullmatch(r"--[a-z-]+( .*)?", code):
            assert code.split()[0].rstrip(",") in everywhere | OF_SERVERS, f"{page}: {code}"


def test_the_page_of_the_commands_names_every_one() -> None:
    table = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8").split("## Commands")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `maskwright ([\w-]+)", table, re.MULTILINE)) == set(COMMANDS)
    for check in ("replay", "sample", "streamlined", "oracle", "negative"):
        assert check in table


def test_help_is_there_without_docstrings() -> None:
    """Options and their help stand in docstrings, which Python leaves out if it is told so."""
    command = [sys.executable, "-OO", "-m", "maskwright", "warm-up", "--help"]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "1000"})
    assert "-t, --tokenizer T" in run.stdout and "Put stores into the cache" in run.stdout


def test_version() -> None:
    assert shown("--version") == f"maskwright {maskwright.__version__}"


def test_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = json.loads(CliRunner().invoke(app, ["list", "--json", "-"]).stdout)
    assert [each["name"] for each in facts["grammars"]] == known_grammars()
    assert all(5 < len(each["language"]) < 180 for each in facts["grammars"])
    assert [each["name"] for each in facts["tokenizers"]] == list(BUILT_IN)
    assert facts["tokenizers"][-1] == {"name": "python-tiny", "package": "maskwright.models", "installed": True}
    text = shown("list", width=80)
    assert "python Python 3.13, as `ast.parse` reads it" in text and "lark:python python.lark" in text
    assert "python-tiny package maskwright.models" in text
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "mistral_common" else find(name))
    assert "tekken package mistral_common, which is not installed: pip install 'maskwright[tokenizers]'" in shown(
        "list"
    )
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, ["list", "--json", "no/where.json"]).exit_code == 2
    assert CliRunner().invoke(app, ["list", "--json", "names.json"]).exit_code == 0
    assert set(json.loads(Path("names.json").read_text())) == {"grammars", "tokenizers"}


@pytest.mark.parametrize(
    ("words", "expected"),
    share(
        [
            ("maskwright li", ["lint", "list"]),
            ("maskwright lint py", ["python"]),
            ("maskwright export json --tokenizer my", ["my.lark", "mydir/"]),
            ("maskwright lint my", ["my.lark", "mydir/"]),
            ("maskwright export json --tokenizer mist", ["mistral-7b-v0.1", "mistral-7b-v0.3"]),
            ("maskwright info --re", ["--reserved", "--restrict", "--refresh"]),
        ],
        3,
    ),
)
def test_shells_complete(tmp_path: Path, words: str, expected: list[str], commands: Commands) -> None:
    (tmp_path / "my.lark").touch()
    (tmp_path / "mydir").mkdir()
    variables = {"_MASKWRIGHT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    run = commands.run(folder=tmp_path, **variables)
    assert run.stdout.split() == expected, run.stderr
