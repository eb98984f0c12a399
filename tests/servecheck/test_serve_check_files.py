"""`maskwright serve-check`: files that are missing or broken, and folders that bring code of their own."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from serve_check_cases import GRAMMAR, change
from typer.testing import CliRunner

import maskwright as mw
from maskwright.cli import app
from maskwright.completion import load_model
from maskwright.servecheck import check_serving
from maskwright.servecheck.folder import read_folder
from maskwright.servecheck.loading import decoders_of, package_lacking, tokenizer_refused
from maskwright.servecheck.report import Problem, ServeReport
from maskwright.servecheck.run import _Check


def check(folder: Path, **more: Any) -> ServeReport:
    return check_serving(folder, mw.parse_grammar(GRAMMAR), **more)


def codes(report: ServeReport) -> list[str]:
    return [problem.code for problem in report.problems]


def run(folder: Path, *more: str) -> tuple[int, str]:
    """The exit code and all output, with a "y" for whoever asks."""
    arguments = ["serve-check", str(folder), "-g", GRAMMAR, *more]
    result = CliRunner().invoke(app, arguments, input="y\n" * 9, env={"COLUMNS": "200"})
    return result.exit_code, result.output


def evil(folder: Path) -> Path:
    """A file that is there once the folder's own code has run."""
    trace = folder.parent / "has run"
    (folder / "evil.py").write_text(f"open({str(trace)!r}, 'w').close()\n")
    return trace


def of_a_model(folder: Path) -> None:
    codes = {"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model"}
    change(folder / "config.json", model_type="evil", auto_map=codes)


def of_a_tokenizer(folder: Path) -> None:
    change(
        folder / "tokenizer_config.json",
        tokenizer_class="Evil",
        auto_map={"AutoTokenizer": ["evil.Tokens", "evil.Tokens"]},
    )


@pytest.mark.parametrize("spoil", [of_a_model, of_a_tokenizer])
@pytest.mark.parametrize("n_tokens", ["0", "8"])
def test_a_folders_own_code_is_not_run_and_nobody_is_asked(
    folder: Path, spoil: Callable[[Path], None], n_tokens: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = evil(folder)
    asked: list[object] = []

    def answer(*prompt: object) -> str:
        asked.append(prompt)
        return "y"

    monkeypatch.setattr("builtins.input", answer)
    spoil(folder)
    code, said = run(folder, "--tokens", n_tokens)
    assert code == 1 and "error custom-code" in said and "not fit to serve" in said and not asked, said
    assert "--trust-remote-code" in said and "Do you wish" not in said and not trace.exists()
    with pytest.raises(mw.MaskwrightError, match="only be loaded by running code that comes with it"):
        load_model(folder, "cpu")
    assert not asked and not trace.exists()
    result = CliRunner().invoke(app, ["complete", "json.lark", "[", "-m", str(folder)], input="y\n" * 9)
    assert result.exit_code == 2 and "Do you wish" not in result.output and not trace.exists() and not asked


def test_a_model_of_a_known_kind_whose_own_class_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> Any:
        raise mw.MaskwrightError("refused") from ValueError("pass the argument `trust_remote_code=True`")

    monkeypatch.setattr("maskwright.servecheck.run.load_model", refused)
    report = check(folder)
    assert codes(report) == ["custom-code"] and "the model can only be loaded" in report.problems[0].message


@pytest.mark.parametrize(("file", "content"), [("config.json", b"[]"), ("model.safetensors", b"cut off")])
def test_files_that_transformers_stumbles_over_are_an_error_of_ours(folder: Path, file: str, content: bytes) -> None:
    (folder / file).write_bytes(content)
    with pytest.raises(mw.MaskwrightError, match="cannot be loaded: "):
        load_model(folder, "cpu")
    assert not check(folder).passed


def test_what_transformers_does_not_know(folder: Path) -> None:
    change(folder / "config.json", model_type="nobody-knows")
    report = check(folder)
    assert codes(report) == ["config-not-loaded"] and "nobody-knows" in report.problems[0].message
    assert any(said.startswith("generation: the folder's files cannot be loaded") for said in report.skipped)


def test_what_is_no_problem_of_a_tokenizer(folder: Path) -> None:
    error = OSError("there is no vocabulary")
    problem = tokenizer_refused(read_folder(folder), error)
    assert problem is not None and problem.code == "tokenizer-not-loaded" and "no vocabulary" in problem.message
    assert tokenizer_refused(read_folder(folder), ImportError("sentencepiece")) is None
    (folder / "config.json").unlink()
    assert tokenizer_refused(read_folder(folder), error) is None


@pytest.mark.parametrize("error", [None, ModuleNotFoundError("google")])
def test_a_package_that_transformers_lacks_is_no_problem_of_the_folder(
    folder: Path, error: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.model").write_bytes(b"\x0a\x0b")

    def find(name: str) -> object:
        if name == "google.protobuf" and error is not None:
            raise error
        return None if name == "google.protobuf" else SimpleNamespace(name=name)

    monkeypatch.setattr("importlib.util.find_spec", find)
    found = read_folder(folder)
    skipped: list[str] = []
    problems: list[Problem] = []
    monkeypatch.setattr("maskwright.servecheck.loading._transformers", fails)
    list(decoders_of(found, skipped, problems))
    assert skipped[0] == "the tokens against transformers: it needs protobuf for them: pip install protobuf"
    assert not problems
    checked = _Check(found)
    checked.generate(
        mw.build_store(mw.parse_grammar('start: "[" "]"\n'), mw.Vocabulary.from_tokens([b"", b"[", b"]"], eos=[0])), 1
    )
    assert checked.skipped == ["generation: transformers needs protobuf for the tokenizer: pip install protobuf"]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: SimpleNamespace(name=name))
    assert package_lacking(found) == ""


def fails(*_: object) -> Any:
    raise ValueError("an error that hides the cause")


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


@pytest.mark.parametrize("name", ["config.json", "generation_config.json"])
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: path.write_text("[]"), "holds []; expected a JSON object"),
        (lambda path: path.write_text("true"), "holds True; expected a JSON object"),
        (lambda path: path.write_text("{"), "is not JSON"),
        (lambda path: path.write_text("[" * 100_000), "is not JSON"),
        (lambda path: path.write_bytes(b"\xff{}"), "is not JSON"),
        (fifo, "is a named pipe"),
        (dangling, "cannot be read: No such file"),
        (lambda path: (path.unlink(), path.mkdir()), "is a folder"),
    ],
)
def test_configurations_that_cannot_be_read(folder: Path, name: str, spoil: Any, message: str) -> None:
    spoil(folder / name)
    report = check(folder)
    assert codes(report) == ["config-unreadable"] and not report.passed, str(report)
    assert message in report.problems[0].message and f"download {name} again" in report.problems[0].remedy
    assert "TypeError" not in str(report) and report.facts["eos"] == [0]
    assert any(said.startswith("the store: ") for said in report.checked)


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (None, "no-config", "has no config.json"),
        ("{}", "no-model-type", "names no model_type"),
        ('{"model_type": 5}', "no-model-type", "has the model_type 5, which is no name"),
    ],
)
def test_a_config_that_no_server_takes(folder: Path, content: str | None, code: str, message: str) -> None:
    (folder / "config.json").unlink()
    if content is not None:
        (folder / "config.json").write_text(content)
    report = check(folder)
    assert codes(report) == [code] and message in report.problems[0].message and report.problems[0].remedy
    status, said = run(folder)
    assert status == 1 and f"error {code}:" in said and "1 error: not fit to serve" in said


def test_formats_other_than_that_of_transformers(folder: Path, tmp_path: Path) -> None:
    (folder / "config.json").unlink()
    (folder / "params.json").write_text('{"vocab_size": 320}')
    report = check(folder)
    assert codes(report) == ["no-config"] and report.passed and report.facts["logits"] == 320
    assert "--config-format mistral" in report.problems[0].remedy
    several = tmp_path / "several"
    several.mkdir()
    for name in ("a.gguf", "b.gguf"):
        (several / name).touch()
    found = read_folder(several).problems
    assert [problem.code for problem in found] == ["no-config"] and "2 GGUF files" in found[0].message


def test_weights_that_are_missing(folder: Path) -> None:
    weights = folder / "model.safetensors"
    shards = [folder / f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    weights.rename(shards[0])
    shards[1].touch()
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": shards[0].name, "b": shards[1].name}}))
    assert read_folder(folder).problems == ()
    other = folder / "pytorch_model.bin.index.json"  # downloads that leave out the other form bring it all the same
    other.write_text(json.dumps({"weight_map": {"a": "pytorch_model-00001-of-00001.bin"}}))
    assert read_folder(folder).problems == ()
    other.unlink()
    shards[1].unlink()
    report = check(folder)
    assert codes(report) == ["lost-weights"] and "1 of 2 files of weights" in report.problems[0].message
    index.write_text(json.dumps({"weight_map": {"a": "x" * 300, "b": 5}}))
    assert codes(check(folder, n_tokens=0)) == ["lost-weights"]
    index.write_text("[")
    assert codes(check(folder, n_tokens=0)) == ["lost-weights"]
    index.unlink()
    shards[0].unlink()
    (folder / "training_args.bin").touch()
    report = check(folder)
    assert codes(report) == ["no-weights"] and report.passed
    assert str(report).endswith("0 errors: tokens and constraint fit; no weights to serve")
    status, said = run(folder)
    assert status == 0 and "note no-weights" in said
    for name in ("pytorch_model.bin", "consolidated.safetensors", "model.gguf"):
        (folder / name).touch()
        assert read_folder(folder).problems == ()
        (folder / name).unlink()


@pytest.mark.parametrize("file", ["generation_config.json", "config.json"])
@pytest.mark.parametrize("value", [1.5, [], True, "1", [0, "1"], {"id": 0}])
def test_ends_that_are_no_ids(folder: Path, file: str, value: Any) -> None:
    change(folder / file, eos_token_id=value)
    report = check(folder)
    assert not report.passed and codes(report) == ["end-no-id"], str(report)
    said = report.problems[0]
    assert f"{file} says that eos_token_id is {value!r}" in said.message and file in said.remedy
    change(folder / file, eos_token_id=None)
    assert codes(check(folder, n_tokens=0)) == []


def test_ends_are_attributed_to_their_files(folder: Path) -> None:
    tokens = folder / "tokenizer.json"
    values = json.loads(tokens.read_text())
    values["added_tokens"].append({**values["added_tokens"][0], "id": 265, "content": "<turn>"})
    tokens.write_text(json.dumps(values))
    for file in ("generation_config.json", "config.json"):
        change(folder / file, eos_token_id=265)
    report = check(folder, n_tokens=0)
    said = "end of text: tokens [0, 265]: [265] by generation_config.json, config.json; [0] by tokenizer_config.json"
    assert said in report.checked, str(report)
    assert codes(report) == ["other-end"] and report.passed
    assert (
        report.problems[0].message == "tokenizer_config.json ends texts with [0], but generation_config.json with [265]"
    )
    change(folder / "generation_config.json", eos_token_id=[0, 265])
    report = check(folder, n_tokens=0)
    assert codes(report) == [] and report.facts["eos"] == [0, 265]
    change(folder / "tokenizer_config.json", eos_token={"__type": "AddedToken", "content": "<turn>"})
    change(folder / "generation_config.json", eos_token_id=0)
    assert codes(check(folder, n_tokens=0)) == ["other-end"]


def test_packages_that_are_missing(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gguf", None)
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    (tmp_path / "m.gguf").touch()
    report = check(tmp_path / "m.gguf")
    assert codes(report) == ["no-package"] and "pip install 'maskwright[llama-cpp]'" in report.problems[0].remedy
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.model").write_bytes(b"\x0a\x0b")
    report = check(folder)
    assert codes(report) == ["no-package"] and "pip install 'maskwright[tokenizers]'" in report.problems[0].remedy
