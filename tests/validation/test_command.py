"""`maskwright validate`: exit codes, messages and files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from maskwright.cli import app
from maskwright.decoding.matcher import Matcher
from maskwright.stores.store import Store
from maskwright.validation.replay import plain_replay


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    return CliRunner()


@pytest.fixture
def file(store: Store, tmp_path: Path) -> str:
    store.save(tmp_path / "lines.safetensors")
    return str(tmp_path / "lines.safetensors")


def test_passed(runner: CliRunner, file: str, corpus: Path, tokenizer: str) -> None:
    result = runner.invoke(
        app, ["validate", file, str(corpus), "-t", tokenizer, "--suffix", ".txt", "--json", "r.json"]
    )
    assert result.exit_code == 0, result.output
    assert "replay: passed" in result.output and f"{corpus}/more/operator.txt:2:7" in result.output
    facts = json.loads(Path("r.json").read_text())
    assert facts["passed"] and facts["classes"]["replayed"] == 4 and facts["check"] == "replay"


def test_failed(runner: CliRunner, file: str, corpus: Path, tokenizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill = Matcher.fill

    def without_eos(self: Matcher, bitmask: np.ndarray) -> None:
        fill(self, bitmask)
        bitmask[0] &= ~np.uint32(1)

    monkeypatch.setattr(Matcher, "fill", without_eos)
    monkeypatch.setattr(Matcher, "replay", plain_replay)
    arguments = ["validate", file, str(corpus), "-t", tokenizer, "--suffix", ".txt"]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 1 and "replay: FAILED: 4 of 7" in result.output
    result = runner.invoke(app, [*arguments, "--json", "-"])
    assert result.exit_code == 1 and json.loads(result.stdout)["failures"] == 4


def test_an_unreadable_file_fails_but_is_no_end(runner: CliRunner, file: str, corpus: Path, tokenizer: str) -> None:
    (corpus / "m.txt").write_bytes(b"x\xff")
    result = runner.invoke(app, ["validate", file, str(corpus), "-t", tokenizer, "--suffix", ".txt"])
    assert (
        result.exit_code == 1 and "not UTF-8 at byte 1" in result.output and "replay: FAILED: 1 of 8" in result.output
    )


def test_samples_need_no_texts_and_no_tokenizer(runner: CliRunner, file: str) -> None:
    result = runner.invoke(app, ["validate", file, "--check", "sample", "-n", "5", "--budget", "4", "--cuts", "1"])
    assert result.exit_code == 0, result.output
    assert "sample: passed" in result.output
    result = runner.invoke(app, ["validate", file, "--check", "sample", "-n", "5", "--reference", "false"])
    assert result.exit_code == 1 and "sample: FAILED: 5 of 5" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no texts to validate on"),
        (["nowhere"], "nowhere: there is no such file or folder"),
        (["empty"], "has no files with the suffix .txt"),
        (["empty.jsonl"], "there is no text in empty.jsonl"),
        (["corpus", "--json", "no/r.json"], "there is no folder"),
        (["corpus", "--resume", "no/log"], "there is no folder"),
        (["corpus", "--jobs", "2", "--scheduler", "tcp://x"], "give one of the two"),
        (["corpus", "--reference", "no-such-command-here"], "cannot be run"),
        (["corpus", "--check", "negative"], "does not say where its text goes wrong"),
        (["corpus", "--resume", "corpus/more/plain.txt"], "is among the texts that are read"),
        (["corpus", "--resume", "notes"], "not a result of maskwright validate"),
    ],
)
def test_bad_input_is_a_message_and_code_2(
    arguments: list[str], message: str, runner: CliRunner, file: str, corpus: Path, tokenizer: str
) -> None:
    Path("empty").mkdir()
    Path("empty.jsonl").touch()
    Path("notes").write_text("a note\n")
    result = runner.invoke(app, ["validate", file, *arguments, "-t", tokenizer, "--suffix", ".txt"])
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.output.split()) and "Traceback" not in result.output


def test_other_tokenizers_and_stores(runner: CliRunner, file: str, corpus: Path) -> None:
    result = runner.invoke(app, ["validate", file, str(corpus), "--suffix", ".txt"])
    assert result.exit_code == 2 and "--tokenizer" in result.output
    pytest.importorskip("mistral_common")
    result = runner.invoke(app, ["validate", file, str(corpus), "--suffix", ".txt", "-t", "mistral-7b-v0.1"])
    assert result.exit_code == 2 and "is not the one that the store was built for" in " ".join(result.output.split())
    result = runner.invoke(app, ["validate", "lark:python", str(corpus)])
    assert result.exit_code == 2 and "is a grammar, not a store" in result.output
    result = runner.invoke(app, ["validate", file, str(corpus), "--check", "nothing"])
    assert result.exit_code == 2


def test_interrupted(
    runner: CliRunner, file: str, corpus: Path, tokenizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from maskwright.validation import run

    def stop(*_: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "run_here", stop)
    arguments = ["validate", file, str(corpus), "-t", tokenizer, "--suffix", ".txt"]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 130 and "interrupted; nothing was kept (use --resume FILE)" in result.output
    result = runner.invoke(app, [*arguments, "--resume", "log.jsonl"])
    assert result.exit_code == 130 and "interrupted; what was done is kept in log.jsonl" in result.output


def test_what_is_wrong_with_the_input_is_said_before_a_store_is_built(
    runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store takes half a minute to build: what can be told without it comes first, and what is missing before what is unsaid."""
    import maskwright.cli.validate as command

    def build(*_: object, **__: object) -> None:
        raise AssertionError("the store was built first")

    monkeypatch.setattr(command, "load_or_build_store", build)
    Path("text.json").write_text("[1]")
    for arguments, message in (
        (["json", "nothing.json"], "nothing.json: there is no such file or folder"),
        (
            ["json", "no*.json", "-t", "tekken"],
            "no*.json: there is no such file or folder, and as a pattern it matches no file",
        ),
        (["none.safetensors", "nothing.json"], "nothing.json: there is no such file or folder"),
        (["json", "-t", "tekken"], "no texts to validate on"),
        (["json", "text.json", "-t", "tekken", "--reference", "python:nowhere"], "names no program"),
        (["json", "text.json", "-t", "tekken", "--reference-seconds", "0", "--reference", "json"], "time limit is 0 s"),
        (["json", "text.json", "-t", "tekken", "--model", "m"], "a model draws samples"),
    ):
        result = runner.invoke(app, ["validate", *arguments])
        assert result.exit_code == 2 and message in " ".join(result.stderr.split()), (arguments, result.output)


def test_a_store_of_the_bundled_vocabulary_knows_its_tokenizer(runner: CliRunner) -> None:
    Path("text.json").write_text('{"a": [1, 2.5]}')
    assert runner.invoke(app, ["export", "json", "-t", "python-tiny", "-o", "json.safetensors"]).exit_code == 0
    result = runner.invoke(app, ["validate", "json.safetensors", "text.json"])
    assert result.exit_code == 0 and "replay: passed" in result.output, result.output
