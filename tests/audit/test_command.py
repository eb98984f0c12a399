"""`maskwright audit`: exit codes, messages and files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from maskwright.cli import app

HERE = Path(__file__).parent
TEXTS = ("[[a, b], [[c]], def]", "[]", "[[], [a], b]")


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    monkeypatch.delenv("LISTS_CASE", raising=False)
    return CliRunner()


@pytest.fixture
def arguments(tmp_path: Path, lists_engine: ModuleType, corpus: str) -> list[str]:
    """All but the engine."""
    tokenizers = pytest.importorskip("tokenizers")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {"<eos>": 0} | {character: i for i, character in enumerate(alphabet, start=1)}
    built = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, []))
    built.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    built.decoder = tokenizers.decoders.ByteLevel()
    built.add_special_tokens(["<eos>"])
    built.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "lists.lark").write_text(lists_engine.GRAMMAR)
    return ["--grammar", "lists.lark", "-t", str(tmp_path / "tokenizer.json"), corpus]


def test_agreement(runner: CliRunner, arguments: list[str]) -> None:
    result = runner.invoke(app, ["audit", "lists_engine:make", *arguments, "--json", "r.json"])
    assert result.exit_code == 0, result.output
    assert "lists_engine:make: agrees" in result.output and "us a mask" in result.output
    facts = json.loads(Path("r.json").read_text())
    assert facts["agrees"] and facts["counts"]["masks"] == sum(len(text) + 1 for text in TEXTS)
    assert facts["store"] == {"grammar": "lists.lark", "vocabulary": "tokenizer.json", "lexing": "contextual"}


def test_differences(runner: CliRunner, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LISTS_CASE", '{"refuse": ["after", ","]}')
    result = runner.invoke(app, ["audit", "lists_engine:make", *arguments])
    assert result.exit_code == 1, result.output
    assert "refuses the true next token: 1 place of the grammar" in result.output
    assert "after RSQB: COMMA  (2 masks, 2 tokens)" in result.output and "'[[]'  then  ','" in result.output
    assert "lists_engine:make: DIFFERS" in result.output
    result = runner.invoke(app, ["audit", "lists_engine:make", *arguments, "--json", "-", "-n", "4", "--seed", "3"])
    facts = json.loads(result.stdout)
    assert facts["settings"]["seed"] == 3 and facts["counts"]["masks"] <= 8
    assert result.exit_code == (0 if facts["agrees"] else 1)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["guidance"], "no engine is named 'guidance': expected interegular, llguidance, outlines, syncode, xgrammar"),
        (["nowhere_at_all:make"], "there is no module nowhere_at_all"),
        (["lists_engine:no_session"], "RuntimeError: this engine takes no such grammar"),
        (["lists_engine:make", "--json", "no/r.json"], "there is no folder"),
        (["lists_engine:make", "--lexing", "nfa"], "no exact masks to audit against"),
        (["lists_engine:make", "--engine-grammar", "none.ebnf"], "none.ebnf"),
        (["lists_engine:make", "--python", "no/python"], "cannot be run"),
        (["lists_engine:make", "nothing.jsonl"], "there is no such file"),
    ],
)
def test_bad_input_is_a_message_and_code_2(
    more: list[str], message: str, runner: CliRunner, arguments: list[str]
) -> None:
    result = runner.invoke(app, ["audit", *more, *arguments])
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.output.split()) and "Traceback" not in result.output


def test_a_tokenizer_must_be_named(runner: CliRunner, arguments: list[str]) -> None:
    result = runner.invoke(app, ["audit", "lists_engine:make", "--grammar", "lists.lark", arguments[-1]])
    assert result.exit_code == 2 and "--tokenizer" in result.output


def test_the_engine_s_own_grammar_reaches_it(runner: CliRunner, arguments: list[str]) -> None:
    Path("own.ebnf").write_text("nothing that it knows")
    result = runner.invoke(app, ["audit", "lists_engine:make", *arguments, "--engine-grammar", "own.ebnf"])
    assert result.exit_code == 2 and "AssertionError" in result.output


def test_a_pattern_is_both_grammars(runner: CliRunner, tmp_path: Path) -> None:
    """Of the engine and of what is right: with its slashes, from the command line or a file."""
    pytest.importorskip("interegular")
    (tmp_path / "t.jsonl").write_text('{"text": "12/7"}\n{"text": "0/345"}\n')
    command = ["audit", "interegular", "-t", "python-tiny", "t.jsonl", "--json", "-", "--grammar"]
    (tmp_path / "fraction.regex").write_text(r"[0-9]+/[0-9]+" + "\n")
    for pattern in ("[0-9]+/[0-9]+", r"[0-9]+\/[0-9]+", "fraction.regex"):
        result = runner.invoke(app, [*command, pattern, "--from", "regex"])
        assert result.exit_code == 0, result.output
        facts = json.loads(result.stdout)
        assert facts["agrees"] and facts["counts"]["masks"] >= 6 and facts["engine"]["grammar"] == "pattern.regex"
    wrong = runner.invoke(app, [*command, "[0-9", "--from", "regex"])
    assert wrong.exit_code == 2 and "[0-9" in wrong.output and "PATTERN: " not in wrong.output
    (tmp_path / "other.regex").write_text("[0-9]+/[0-8]+")
    result = runner.invoke(app, [*command, "[0-9]+/[0-9]+", "--from", "regex", "--engine-grammar", "other.regex"])
    assert result.exit_code == 1 and json.loads(result.stdout)["engine"]["grammar"] == "other.regex"
    result = runner.invoke(app, ["audit", "interegular", "[0-9]+"])
    assert result.exit_code == 2 and "--grammar PATTERN --from regex" in " ".join(result.output.split())


@pytest.mark.slow
def test_interrupted(runner: CliRunner, arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "asleep.py").write_text(
        "import os, time\n"
        "class Session:\n"
        "    def reset(self): pass\n"
        "    def fill(self, words):\n"
        "        with open('pid.tmp', 'w') as file: file.write(str(os.getpid()))\n"
        "        os.replace('pid.tmp', 'pid')\n"
        "        time.sleep(60)\n"
        "    def advance(self, token): return True\n"
        "def make(text, vocabulary): return Session\n"
    )
    command = [sys.executable, "-m", "maskwright", "audit", "asleep:make", *arguments, "--json", "r.json"]
    obey = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(command, stderr=subprocess.PIPE, preexec_fn=obey)
    for _ in range(4000):
        if Path("pid").exists() or process.poll() is not None:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130 and b"interrupted" in errors and not Path("r.json").exists()
    pid = int(Path("pid").read_text())
    with pytest.raises(ProcessLookupError):
        for _ in range(100):
            os.kill(pid, 0)
            time.sleep(0.05)
