"""`maskwright complete` and its Python: small random models in folders, made here, and the bundled one."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_model import CONTEXT, JSON_TEXT, save_model
from shares import share
from typer.testing import CliRunner

from maskwright.analysis.errors import IllegalTokenError, MaskwrightError, UnknownNameError, VocabularyError
from maskwright.analysis.loading import load_grammar, parse_grammar
from maskwright.cli import app
from maskwright.completion import LanguageModel, ModelDraw, check_model, complete, load_model, start_completion
from maskwright.decoding.adapters import apply_mask
from maskwright.decoding.generation.completion import Step
from maskwright.decoding.generation.generation import Generation
from maskwright.decoding.generation.logits import ModelReader, Sampler
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.models import BUNDLED
from maskwright.prompts import read_prompt
from maskwright.stores.build import build_store, compile_store
from maskwright.stores.store import Store

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    save_model(path)
    return path


@pytest.fixture(scope="module")
def model(folder: Path) -> LanguageModel:
    return load_model(folder)


@pytest.fixture(scope="module")
def store(model: LanguageModel) -> Store:
    return compile_store(parse_grammar(JSON_TEXT, name="json"), model.vocabulary)


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "120")
    Path("json.lark").write_text(JSON_TEXT)
    return CliRunner()


def test_what_a_model_is_loaded_as(model: LanguageModel) -> None:
    assert model.context == CONTEXT and model.vocabulary.eos == (0,) and model.vocabulary.size == 265
    assert model.tokens_of("[[true") == [model.vocabulary.tokens.index(b"[["), model.vocabulary.tokens.index(b"true")]
    assert model.tokens_of("") == [0]


@pytest.mark.parametrize("seeds", share([range(1), range(1, 3)], 1), ids=str)
def test_completions_are_texts_of_the_grammar(store: Store, model: LanguageModel, seeds: range) -> None:
    """Greedy and sampled, with prompts that end inside a token and inside a character."""
    for prompt in ("", "[1, ", '{"ab": [tr', '["', "[[", '{"é"'):
        for seed in seeds:
            for options in ({}, {"temperature": 1.0}, {"temperature": 1.5, "top_k": 50, "heal": False}):
                found = complete(store, prompt, model, max_tokens=24, seed=seed, **options)  # type: ignore[arg-type]
                json.loads(prompt.encode() + found.data)
                assert found.is_complete


def test_texts_longer_than_the_context(store: Store, model: LanguageModel) -> None:
    """A prompt that the model cannot see whole, and a completion that outgrows what it can see."""
    prompt = "[" + "1, " * (2 * CONTEXT)
    found = complete(store, prompt, model, max_tokens=3 * CONTEXT, temperature=1.0)
    assert json.loads(prompt.encode() + found.data)
    long = complete(store, "[", model, max_tokens=3 * CONTEXT, temperature=2.0, seed=1)
    assert json.loads(b"[" + long.data)
    free = start_completion(store, "[", model, constrained=False, temperature=3.0, max_tokens=3 * CONTEXT).run()
    assert len(free.tokens) > 2 * CONTEXT


def test_without_masks_it_is_what_transformers_generates(store: Store, model: LanguageModel) -> None:
    """Greedy, with the cache; and with masks the same as long as it is legal."""
    for prompt in ("[", "[true, ", '{"ab": 12'):
        free = start_completion(store, prompt, model, constrained=False, heal=False, max_tokens=20).run()
        ids = torch.tensor([model.tokens_of(prompt)])
        theirs = model.model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=20, do_sample=False)
        expected = theirs[0, ids.shape[1] :].tolist()
        assert list(free.tokens) == expected[: expected.index(0) if 0 in expected else None]
        matcher = store.matcher()
        matcher.advance_bytes(prompt.encode())
        n_legal = 0
        while n_legal < len(free.tokens) and matcher.is_allowed(free.tokens[n_legal]):
            matcher.advance(free.tokens[n_legal])
            n_legal += 1
        held = start_completion(store, prompt, model, heal=False, max_tokens=20 + 40).run()
        assert held.tokens[:n_legal] == free.tokens[:n_legal]


def test_the_first_token_begins_inside_the_prompts_last(store: Store, model: LanguageModel) -> None:
    """`[tr` is taken back to `[`, and `true` is one token then."""

    class Wants:
        config = model.model.config
        device = model.model.device

        def forward(self) -> None: ...

        def __call__(self, ids: Any, **_: Any) -> Any:
            seen.append(ids[0].tolist())
            logits = torch.zeros(1, 1, 320)
            logits[0, 0, model.vocabulary.tokens.index(b"true")] = 9
            return type("Output", (), {"logits": logits, "past_key_values": None})()

    seen: list[list[int]] = []
    wants = LanguageModel("wants", Wants(), model.tokenizer, model.vocabulary, CONTEXT)
    found = complete(store, "[1,tr", wants, max_tokens=20)
    assert found.data.startswith(b"ue") and found.tokens[0] == model.vocabulary.tokens.index(b"true")
    assert seen[0] == model.tokens_of("[1,")
    raw = complete(store, "[1,tr", wants, max_tokens=20, heal=False)
    assert raw.data.startswith(b"ue") and raw.tokens[0] != found.tokens[0]


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        (
            "[1, }",
            r"'}' cannot stand at byte 4, line 1:5\n    \[1, }\n        \^\nAllowed there: .*'0' to '9', '\[', 'f', 'n', 't', '{'\.",
        ),
        (
            '{"ab":\n  [1,\n "é" 2]}',
            r"'2' cannot stand at byte 19, line 3:6\n     \"é\" 2\]}\n         \^\nAllowed there",
        ),
        ("]", r"']' cannot stand at byte 0, line 1:1\n    \]\n    \^\n.*'t', '{'"),
        ("[1] 2", r"The longest legal beginning is its first 4 of 5 bytes; it is complete\."),
        ("[tru1", r"Allowed there: 'e'\.\n.*first 4 of 5 bytes; it is complete if 'e\]' follows"),
        ('"' + "é" * 5 + "1", r"'1' cannot stand at byte 11, line 1:7"),
        ("[" + "1, " * 60 + "x" + ", 1" * 60, r"line 1:182\n    \.\.\..*, x, 1, .*\.\.\.\n {57}\^\n"),
    ],
)
def test_a_prompt_that_no_text_begins_with(store: Store, prompt: str, message: str) -> None:
    with pytest.raises(IllegalTokenError, match=message) as caught:
        read_prompt(store.matcher(), prompt.encode())
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("the prompt is not the beginning of a text of json") and len(lines) == 5
    assert (
        lines[1][lines[2].index("^")]
        == prompt[len(prompt.encode()[: int(lines[0].split("byte ")[1].split(",")[0])].decode())]
    )


def test_a_refused_prompt_is_found_where_reading_byte_by_byte_finds_it(store: Store) -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        data = bytes(rng.choice(list(b'[]{}:,"1a t'), size=12).tolist())
        matcher = store.matcher()
        good = 0
        while good < len(data):
            try:
                matcher.advance_bytes(data[good : good + 1])
            except IllegalTokenError:
                break
            good += 1
        if good < len(data):
            with pytest.raises(IllegalTokenError, match=rf"cannot stand at byte {good}, "):
                read_prompt(store.matcher(), data)
        else:
            read_prompt(store.matcher(), data)


def test_a_store_for_another_tokenizer(store: Store, model: LanguageModel) -> None:
    tokens = list(store.vocabulary.tokens)
    tokens[7], tokens[8] = tokens[8], tokens[7]
    other = Vocabulary("other", tuple(tokens), {0: "<eos>"}, (0,))
    stranger = compile_store(store.grammar, other)
    with pytest.raises(VocabularyError, match=r"for another tokenizer: token 7 is .* in the store's vocabulary other"):
        start_completion(stranger, "[", model)
    ends = Vocabulary("ends", (*store.vocabulary.tokens, b""), {0: "<eos>", 265: "<end>"}, (265,))
    with pytest.raises(VocabularyError, match=r"ends texts with the tokens \[265\], model .* with \[0\]"):
        check_model(compile_store(store.grammar, ends), model)
    padded = Vocabulary("padded", (*store.vocabulary.tokens, *[b""] * 55), {0: "<eos>"}, (0,))
    assert complete(compile_store(store.grammar, padded), "[1, ", model, max_tokens=20).is_complete
    nfa = build_store(parse_grammar('start: "a"', name="nfa", lexing="nfa"), model.vocabulary)
    with pytest.raises(MaskwrightError, match="lexing='longest'"):
        start_completion(nfa, "a", model)  # type: ignore[arg-type]


def test_models_that_cannot_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        UnknownNameError, match=r"there is no model folder .*nothing; expected a folder with config.json"
    ):
        load_model(tmp_path / "nothing")
    with pytest.raises(UnknownNameError, match=r"it has no config\.json"):
        load_model(tmp_path)
    with pytest.raises(UnknownNameError, match="there is no model folder nothing"):
        load_model("./nothing")
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(
        UnknownNameError, match=r"no model 'nobody/nothing': .*HF_HUB_OFFLINE.*give the folder of a downloaded"
    ):
        load_model("nobody/nothing")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "https://hub.invalid")
    with pytest.raises(UnknownNameError, match=r"the Hugging Face hub cannot be reached \("):
        load_model("nobody/nothing")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(MaskwrightError, match="cannot be loaded"):
        load_model(tmp_path)
    few = tmp_path / "few"
    save_model(few, rows=100)
    with pytest.raises(VocabularyError, match=r"has 100 logits, but its tokenizer has tokens up to id 264"):
        load_model(few)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError, match=r"pip install 'maskwright\[hf\]'"):
        load_model(few)


def test_half_precision_is_raised_on_the_cpu(folder: Path, tmp_path: Path, store: Store) -> None:
    half = tmp_path / "half"
    save_model(half)
    transformers.LlamaForCausalLM.from_pretrained(folder).half().save_pretrained(half)
    loaded = load_model(half, "cpu")
    assert loaded.model.dtype == torch.float32
    assert complete(store, "[", loaded, max_tokens=12).is_complete
    with pytest.raises(MaskwrightError, match="cannot be put on device 'nowhere'"):
        load_model(half, "nowhere")


def test_the_command_writes_prompt_and_completion(runner: CliRunner, folder: Path) -> None:
    """Standard output is the text and nothing else; the rest goes to standard error."""
    arguments = ["complete", "json.lark", "-m", str(folder), "--max-tokens", "20", "--temperature", "1"]
    result = runner.invoke(app, [*arguments, "[1, "])
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("[1, ") and json.loads(result.stdout)
    assert "tokens in" in result.stderr and "json: accepted" in result.stderr
    assert runner.invoke(app, [*arguments, "[1, "]).stdout == result.stdout
    assert runner.invoke(app, [*arguments, "[1, ", "--seed", "5"]).stdout != result.stdout
    Path("prompt.txt").write_text("[1, ")
    assert runner.invoke(app, [*arguments, "--prompt-file", "prompt.txt"]).stdout == result.stdout
    for given in ([*arguments, "-"], arguments):
        assert runner.invoke(app, given, input="[1, ").stdout == result.stdout


def test_facts_of_a_comparison(runner: CliRunner, folder: Path) -> None:
    arguments = ["complete", "json.lark", '{"a":', "-m", str(folder), "--max-tokens", "20", "--compare"]
    result = runner.invoke(app, [*arguments, "--json", "-"])
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stdout)
    assert facts["grammar"] == "json.lark" and facts["prompt"] == '{"a":' and facts["is_complete"]
    assert json.loads(facts["prompt"] + facts["completion"]) and facts["verdict"]["answer"] == "accepted"
    free = facts["unconstrained"]
    assert free["verdict"]["answer"] == "refused" and free["closing"] == "" and free["is_complete"] is None
    assert facts["completion"].endswith(facts["closing"])
    assert facts["interventions"] and free["interventions"] == []
    assert all(one.keys() == {"index", "token", "probability"} for one in facts["interventions"])
    n = len(facts["interventions"])
    assert 0 < facts["seconds_masks"] + facts["seconds_model"] <= facts["seconds"] + 1e-3
    shown = runner.invoke(app, arguments)
    assert shown.exit_code == 0 and "without masks" in shown.stdout
    assert "json: accepted" in shown.stdout and "json: refused" in shown.stdout
    assert re.search(f"{n} interventions?: where masks", shown.stdout)
    held = runner.invoke(app, [*arguments, "--lookahead", "0", "--no-close", "--json", "-"])
    assert held.exit_code == 0, held.stderr
    negative = runner.invoke(app, [*arguments, "--lookahead", "-1"])
    assert negative.exit_code == 2 and "lookahead is -1; expected 0 or more" in negative.stderr


def test_a_store_file_and_its_prompt(runner: CliRunner, folder: Path, store: Store) -> None:
    store.save("store.safetensors")
    arguments = ["complete", "store.safetensors", "-m", str(folder), "--max-tokens", "9"]
    good = runner.invoke(
        app, [*arguments, "[[tr", "--stop", "zz", "--until-complete", "--reference", "none", "--no-heal"]
    )
    assert good.exit_code == 0 and json.loads(good.stdout), good.stderr
    bad = runner.invoke(app, [*arguments, "[[tr]"])
    assert bad.exit_code == 2 and bad.stdout == ""
    assert "']' cannot stand at byte 4, line 1:5" in bad.stderr and "Allowed there: 'u'" in bad.stderr
    # the prompt is refused before a model is looked for
    assert "cannot stand at byte 0" in runner.invoke(app, ["complete", "store.safetensors", "}", "-m", "./no"]).stderr
    early = runner.invoke(app, [*arguments, "[" * 20])
    assert early.exit_code == 2 and "max_tokens is 9, but the shortest ending of the text takes" in early.stderr
    opened = runner.invoke(app, [*arguments, "[" * 20, "--no-close"])
    assert opened.exit_code == 0 and opened.stdout.startswith("[" * 20)
    command = runner.invoke(app, [*arguments, "[", "--reference", f"{sys.executable} -c 'exit(3)'"])
    assert command.exit_code == 0 and "refused" in command.stderr


def test_bad_input_is_a_message_and_exit_code_2(runner: CliRunner, folder: Path) -> None:
    Path("latin.txt").write_bytes(b'["\xe9')
    arguments = ["complete", "json.lark", "-m", str(folder)]
    for given, message in (
        (["[", "--prompt-file", "latin.txt"], "the prompt is given twice"),
        (["--prompt-file", "latin.txt"], "the prompt is not UTF-8: unexpected end of data at byte 2"),
        (["--prompt-file", "nothing.txt"], "nothing.txt cannot be read: No such file"),
        (["[", "--max-tokens", "0"], "max_tokens is 0"),
        (["[", "--json", "no/where.json"], "there is no folder"),
        (["[", "--reference", "'"], "the reference command"),
        (["[", "--lexing", "nfa"], "has no masks at run time"),
    ):
        result = runner.invoke(app, [*arguments, *given])
        assert result.exit_code == 2 and message in result.stderr.replace("\n", " "), (given, result.stderr)
    missing = runner.invoke(app, ["complete", "none.safetensors", "["])
    assert missing.exit_code == 2 and "none.safetensors" in missing.stderr


def test_a_prompt_longer_than_the_context_is_noted(runner: CliRunner, folder: Path) -> None:
    prompt = "[" + "1, " * CONTEXT
    result = runner.invoke(app, ["complete", "json.lark", prompt, "-m", str(folder), "--max-tokens", "10"])
    assert result.exit_code == 0 and json.loads(result.stdout)
    assert f"sees {CONTEXT} at most, so not its beginning" in result.stderr


def test_the_bundled_model_by_default(runner: CliRunner) -> None:
    result = runner.invoke(app, ["complete", "json.lark", '{"a": ', "--max-tokens", "16", "--json", "-"])
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stdout)
    assert facts["model"] == BUNDLED and json.loads(facts["prompt"] + facts["completion"])
    assert facts["seconds_first_token"] < 5


@pytest.mark.slow
def test_python_completions_of_the_bundled_model() -> None:
    """A fresh matcher takes every text whole; CPython's own parser most of them, since python.lark takes more (`f() = 1`, `b"" ""`)."""
    import ast

    model = load_model()
    store = compile_store(load_grammar("lark:python"), model.vocabulary)
    n_taken = 0
    for prompt in ("def mean(numbers):\n", "import os\n\nclass Path", "for i in range(", "x = {"):
        for seed in range(5):
            found = complete(store, prompt, model, max_tokens=60, temperature=0.8, seed=seed)
            text = prompt + found.data.decode()
            matcher = store.matcher()
            matcher.advance_bytes(text.encode())
            assert matcher.is_accepting() and len(found.tokens) <= 60 + 8
            with warnings.catch_warnings(), contextlib.suppress(SyntaxError):
                warnings.simplefilter("ignore")
                ast.parse(text)
                n_taken += 1
    assert n_taken >= 12


def test_samples_drawn_by_a_model(store: Store, model: LanguageModel) -> None:
    """The drawing keeps a cache; a function that reads each text anew from its start draws the same."""
    fast, words = ModelDraw(model, seed=3), np.zeros(store.n_words, np.uint32)
    texts: list[list[int]] = []
    for number in (0, 1, 2, 1):
        fast.begin_text(number)
        sampler = Sampler(0.8, 0, 1.0, (3, number))
        matcher, tokens = store.matcher(), []
        while len(tokens) < 12 and not matcher.is_finished():
            matcher.fill(words)
            logits = ModelReader(model.model, [0, *tokens]).logits()
            apply_mask(logits, words)
            expected = sampler.choose(logits)
            assert fast(tokens, words) == expected, "also where a text is as long as the one before, or longer"
            matcher.advance(expected)
            tokens.append(expected)
        texts.append(tokens)
        assert all(one.index < 12 and 0 < one.probability <= 1 for one in fast.interventions)
    assert fast.interventions, "a random model wants what is illegal"
    # a sample is drawn again as it was, and others differ
    assert texts[3] == texts[1] and len({tuple(text) for text in texts}) == 3
    everything = np.full(store.n_words, 0xFFFFFFFF, np.uint32)
    for tokens in ([], [], [7], [7], [7, 8, 9], [7, 8]):  # the same text again, a longer one, a shorter one
        assert 0 <= fast(tokens, everything) < 32 * store.n_words


def test_validate_with_a_model(runner: CliRunner, folder: Path, store: Store) -> None:
    store.save("store.safetensors")
    arguments = ["validate", "store.safetensors", "--model", str(folder), "--reference", "json"]
    done = runner.invoke(app, [*arguments, "--check", "sample", "-n", "5", "--budget", "9", "--json", "-"])
    assert done.exit_code == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["classes"]["accepted"] == 5 and facts["figures"]["characters"] > 0
    assert facts["figures"]["interventions"] > 0
    assert 0 < facts["figures"]["masked_away"] <= facts["figures"]["interventions"]
    wrong = runner.invoke(app, arguments)
    assert wrong.exit_code == 2 and "a model draws samples (--check sample)" in wrong.stderr


WITHOUT_TORCH = """
import json, sys
from typer.testing import CliRunner
from maskwright.cli import app
for arguments in json.loads(sys.argv[1]):
    result = CliRunner().invoke(app, ["complete", *arguments])
    assert "torch" not in sys.modules and "transformers" not in sys.modules, arguments
    print(result.exit_code, " ".join(result.stderr.split())[:300])
"""


@pytest.mark.slow
def test_everything_is_checked_before_torch_is_loaded(folder: Path, store: Store, tmp_path: Path) -> None:
    store.save(tmp_path / "store.safetensors")
    (tmp_path / "json.lark").write_text(JSON_TEXT)
    mine = ["-m", str(folder)]
    cases = [
        (["json.lark", "[", *mine, "--max-tokens", "0"], "max_tokens is 0"),
        (["json.lark", "[", *mine, "--temperature", "-1"], "temperature is -1"),
        (["json.lark", "[", *mine, "--top-p", "2"], "top_p is 2"),
        (["json.lark", "[", *mine, "--seed", "-1"], "seed is -1; expected 0 or more"),
        (["json.lark", "[", *mine, "--reference", "python:nowhere"], "names no program"),
        (["json.lark", "[", *mine, "--stop", ""], "stop is ('',)"),
        (["none.lark", "[", *mine], "'none.lark' does not exist"),
        (["json.lark", "[", *mine, "--soft", "if"], "soft keyword 'if' is not a string literal"),
        (["json.lark", "[", *mine, "--lexing", "nfa"], "has no masks at run time"),
        (["json.lark", "[}", *mine], "'}' cannot stand at byte 1"),
        (["json.lark", "[[[[[[", *mine, "--max-tokens", "2"], "max_tokens is 2, but the shortest ending"),
        (["json.lark", "[", *mine, "-t", "nothing"], "no vocabulary 'nothing'"),
        (["json.lark", "[", *mine, "-t", "python-tiny"], "the store is for another tokenizer"),
        (["store.safetensors", "[", *mine, "-t", "python-tiny"], "the store is for another tokenizer"),
        (["store.safetensors", "[", *mine, "--soft", "if"], "--soft is for a grammar"),
        (["store.safetensors", "[", *mine, "--lexing", "longest"], "--lexing is for a grammar"),
        (["json.lark", "[", "-m", "./nowhere"], "there is no model folder"),
    ]
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, json.dumps([arguments for arguments, _ in cases])],
        cwd=tmp_path, env={**os.environ, "MASKWRIGHT_CACHE": str(tmp_path / "cache")}, capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    for line, (arguments, message) in zip(run.stdout.splitlines(), cases, strict=True):
        assert line.startswith("2 error: ") and message in line, (arguments, line)


def test_the_tokenizer_may_be_named_and_keywords_softened(runner: CliRunner, folder: Path) -> None:
    Path("words.lark").write_text('start: (NAME | "if" NAME)+\nNAME: /[a-z]+/\n%ignore " "\n')
    plain = ["complete", "words.lark", "if if ", "-m", str(folder), "--max-tokens", "8", "--reference", "none"]
    plain += ["--reserved", "words"]
    refused = runner.invoke(app, [*plain, "-t", str(folder)])
    assert refused.exit_code == 2 and "' ' cannot stand at byte 5" in refused.stderr
    taken = runner.invoke(app, [*plain, "-t", str(folder), "--soft", "if"])
    assert taken.exit_code == 0 and taken.stdout.startswith("if if"), taken.stderr


def test_an_error_begins_on_a_line_of_its_own(runner: CliRunner, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written before the error ends in a line feed, on standard output."""
    for pieces, expected in (((b"1", b"2"), "[12\n"), ((b"1\n",), "[1\n"), ((), "[\n"), ((b"\xc3",), "[\n")):

        def steps(self: Any, pieces: Any = pieces) -> Any:
            yield from map(Step, pieces)
            raise MaskwrightError("it went wrong")

        monkeypatch.setattr(Generation, "__iter__", steps)
        result = runner.invoke(app, ["complete", "json.lark", "[", "-m", str(folder)])
        assert result.exit_code == 2 and result.stdout == expected and "error: it went wrong" in result.stderr


@pytest.mark.slow
def test_an_older_python_does_not_judge(runner: CliRunner, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from maskwright.cli.complete import judged
    from maskwright.validation import references

    monkeypatch.setattr(references, "PYTHON_VERSIONS", {"python": (3, 99)})
    monkeypatch.setattr(references, "_newer_python", lambda version: None)
    nested = "x = f'{(}'\n"  # stands for what is new
    found = judged(nested, None, "python")
    assert found is not None and (found["by"], found["answer"]) == ("python", "not judged")
    assert re.match(
        r"this is Python 3\.\d+, older than the grammar's: name a newer one .*it says SyntaxError", found["message"]
    )
    assert judged("x = 1\n", None, "python") == {"by": "python", "answer": "accepted", "message": ""}
    # who names it gets its word, and other grammars have no version
    for reference, grammar in (("python", "python"), (None, "python.lark")):
        said = judged(nested, reference, grammar)
        assert said is not None and said["answer"] == "refused"
    monkeypatch.setattr(references, "_newer_python", lambda version: sys.executable)
    assert references.reference_for("python") == f"python:{sys.executable}"
    newer = judged("x = 1\n", None, "python")
    assert newer is not None and newer["by"] == f"python:{sys.executable}" and newer["answer"] == "accepted"


def test_the_files_of_a_model_say_what_the_model_says() -> None:
    from maskwright.completion import vocabulary_of

    assert vocabulary_of(BUNDLED) == load_model().vocabulary
    assert vocabulary_of("nobody/nothing") is None
