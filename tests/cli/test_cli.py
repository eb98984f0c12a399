"""The command line: what it prints and writes, and that bad input ends in a message, exit code 2 and no file."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from paths import TESTS
from typer.testing import CliRunner

from maskwright.cli import app

SMALL = """
start: "def" NAME "(" ")" ":" | NAME "=" NUMBER
NAME: /[a-z]+/
NUMBER: /[0-9]+/
%ignore /[ ]+/
"""
STORES = TESTS / "data" / "stores"


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "120")
    return CliRunner()


@pytest.fixture
def tokenizer(tmp_path: Path) -> str:
    """A tiny byte-level tokenizer.json, so that no real one is needed."""
    tokenizers = pytest.importorskip("tokenizers")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {"<eos>": 0} | {character: i for i, character in enumerate(alphabet, start=1)}
    merges = [("d", "e"), ("de", "f"), ("(", ")"), ("()", ":")]
    for left, right in merges:
        vocabulary[left + right] = len(vocabulary)
    built = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, merges))
    built.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = tokenizers.decoders.ByteLevel()
    built.add_special_tokens(["<eos>"])
    path = tmp_path / "tokenizer.json"
    built.save(str(path))
    return str(path)


@pytest.fixture
def small(tmp_path: Path) -> str:
    path = tmp_path / "small.lark"
    path.write_text(SMALL)
    return str(path)


def test_analyze_writes_json_and_html(runner: CliRunner, small: str, tokenizer: str, tmp_path: Path) -> None:
    result = runner.invoke(app, ["analyze", small, "-t", tokenizer, "--json", "r.json", "--html", "r.html"])
    assert result.exit_code == 0, result.output
    facts = json.loads((tmp_path / "r.json").read_text())
    assert set(facts["grammar"]) >= {"terminals", "nonterminals", "rules"}
    assert set(facts["lexer"]) >= {"states", "transitions"}
    assert facts["token_nfa"]["rows"] > 0
    assert isinstance(facts["interchange"]["classes"], list)
    combinations = {(entry["reading"], entry["rules"]) for entry in facts["entries"]}
    assert combinations == {(reading, rules) for reading in ("post", "sound") for rules in ("lark", "normalised")}
    for entry in facts["entries"]:
        counts = [entry[step] for step in ("original", "classes", "follow", "pairs", "never", "always", "joint")]
        assert counts == sorted(counts, reverse=True) and counts[-1] > 0
    assert facts["parser_calls"]["streamlined"] < facts["parser_calls"]["original"]
    assert set(facts["seconds"]) >= {"lexer", "walk", "store", "legality", "streamline", "total"}
    assert facts["peak_rss_mb"] > 1
    page = (tmp_path / "r.html").read_text()
    assert page.startswith("<!DOCTYPE html>") and "<svg" in page
    assert "small.lark" in result.output


def test_analyze_exact(runner: CliRunner, small: str, tokenizer: str) -> None:
    result = runner.invoke(app, ["analyze", small, "-t", tokenizer, "--exact", "--json", "r.json", "--html", "r.html"])
    assert result.exit_code == 0, result.output
    facts = json.loads(Path("r.json").read_text())
    assert facts["grammar"]["lexing"] == "contextual" and facts["figures_for"] == {"lexing": "nfa"}
    engine = facts["engine"]
    assert set(engine) >= {"entries", "distinct", "nodes", "edges", "masks", "table_bytes", "seconds", "lexer_states"}
    assert engine["lexing"] == "contextual" and engine["entries"] >= engine["distinct"] > 0
    assert facts["seconds"]["engine"] == engine["seconds"] > 0
    assert (
        "Exact engine" in result.output
        and "Lexing contextual, built in" in result.output
        and 'id="exact-engine"' in Path("r.html").read_text()
    )
    for wrong in (["-t", tokenizer, "--lexing", "nfa"], []):
        refused = runner.invoke(app, ["analyze", small, "--exact", *wrong])
        assert refused.exit_code == 2 and "exact=True" in refused.stderr


def test_analyze_json_to_standard_output_is_json_alone(runner: CliRunner, small: str, tokenizer: str) -> None:
    result = runner.invoke(app, ["analyze", small, "-t", tokenizer, "--json", "-"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["grammar"]["name"] == "small.lark"


def test_analyze_without_a_tokenizer(runner: CliRunner, small: str) -> None:
    result = runner.invoke(app, ["analyze", small, "--json", "-"])
    facts = json.loads(result.stdout)
    assert facts["pairs"]["pairs"] == 49 and "entries" not in facts


def test_analyze_writes_a_subterminal_tree(runner: CliRunner, small: str, tokenizer: str, tmp_path: Path) -> None:
    result = runner.invoke(app, ["analyze", small, "-t", tokenizer, "--tree", "START"])
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("digraph ") and " -> " in result.stdout and result.stdout.endswith("}\n")
    facts = json.loads(runner.invoke(app, ["analyze", small, "-t", tokenizer, "--json", "-"]).stdout)
    state = next(one["state"] for one in facts["states"] if one["terminal"] is not None)
    inside = runner.invoke(app, ["analyze", small, "-t", tokenizer, "--tree", str(state)])
    assert inside.exit_code == 0 and f", state {state}" in inside.stdout
    for name, begin in (("tree.dot", result.stdout), ("tree.svg", "<svg "), ("tree.graphml", "<graphml ")):
        pytest.importorskip("networkx")
        drawn = runner.invoke(
            app, ["analyze", small, "-t", tokenizer, "--tree", "START", "--drawing", str(tmp_path / name)]
        )
        assert drawn.exit_code == 0, drawn.output
        assert (tmp_path / name).read_text("utf-8").startswith(begin)
    for arguments, message in (
        ([small, "--tree", "START"], "--tree shows tokens: add --tokenizer"),
        ([small, "-t", tokenizer, "--tree", "START", "--draw", "follow"], "leave out --then, --draw, --html"),
        ([small, "-t", tokenizer, "--tree", "NAME"], "--tree is 'NAME'; expected START, or the number"),
        ([small, "-t", tokenizer, "--tree", "99999"], "no text stands in lexer state 99999"),
        (
            ['{"type": "null"}', "-t", tokenizer, "--tree", "START"],
            "is no grammar: --check-certificates, --then, --drawing, --tree",
        ),
    ):
        refused = runner.invoke(app, ["analyze", *arguments])
        assert refused.exit_code == 2 and message in refused.stderr, refused.stderr


@pytest.mark.parametrize("lexing", ["contextual", "nfa"])
def test_export_then_info(runner: CliRunner, small: str, tokenizer: str, lexing: str) -> None:
    options = [] if lexing == "contextual" else ["--lexing", lexing]
    result = runner.invoke(app, ["export", small, "-t", tokenizer, "-o", "s.safetensors", *options])
    assert result.exit_code == 0, result.output
    assert "wrote s.safetensors" in result.output and "s of processor time" in result.output
    shown = runner.invoke(app, ["info", "s.safetensors", "--json", "-"])
    facts = json.loads(shown.stdout)
    assert facts["grammar"]["name"] == "small.lark" and facts["lexing"] == lexing
    assert facts["is_streamlined"] if lexing == "nfa" else facts["table_bytes"]["rows"] > 0
    assert 0 < facts["cpu_seconds"] < 10
    # a grammar and a tokenizer do where a store does
    again = runner.invoke(app, ["info", small, "-t", tokenizer, "--json", "-", *options])
    assert json.loads(again.stdout)["sha256"] == facts["sha256"]
    text = runner.invoke(app, ["info", "s.safetensors"]).output
    assert "8 terminals" in text and f"{facts['lexer_states']:,}" in text
    Path("text.txt").write_text("a")
    checked = runner.invoke(app, ["validate", "s.safetensors", "text.txt"])
    assert checked.exit_code < 3 and (("'nfa' has no matcher" in checked.stderr) == (lexing == "nfa"))
    if lexing == "contextual":
        rows = [line.split() for line in text.splitlines()]
        assert ["all", f"{sum(facts['table_bytes'].values()):,}", "100%"] in rows
        assert ["automaton", str(facts["nodes"]), "nodes,", str(facts["counts"]["edges"]), "edges"] in rows


def test_conflicts_are_an_option(runner: CliRunner, tokenizer: str, tmp_path: Path) -> None:
    (tmp_path / "sums.lark").write_text('start: start "+" start | NUMBER\nNUMBER: /[0-9]+/')
    found = {}
    for conflicts in ("all", "shift"):
        arguments = ["info", "sums.lark", "-t", tokenizer, "--json", "-", "--conflicts", conflicts]
        found[conflicts] = json.loads(runner.invoke(app, arguments).stdout)
    assert {conflicts: facts["conflicts"] for conflicts, facts in found.items()} == {"all": "all", "shift": "shift"}
    assert found["all"]["grammar"]["sha256"] != found["shift"]["grammar"]["sha256"]
    assert runner.invoke(app, ["info", "sums.lark", "-t", tokenizer, "--conflicts", "none"]).exit_code == 2


def test_export_keeps_entries_by_two_terminals(runner: CliRunner, small: str, tokenizer: str) -> None:
    command = ["export", small, "-t", tokenizer, "--lexing", "nfa", "--json", "-"]
    one, two = (
        json.loads(runner.invoke(app, [*command, "-o", f"{n}.safetensors", "--context", n]).stdout) for n in "12"
    )
    assert two["entries"] > one["entries"]
    read = json.loads(runner.invoke(app, ["info", "2.safetensors", "--json", "-"]).stdout)
    assert read["entries"] == two["entries"]


def test_export_original_keeps_every_entry(runner: CliRunner, small: str, tokenizer: str) -> None:
    runner.invoke(app, ["export", small, "-t", tokenizer, "-o", "s.safetensors", "--lexing", "nfa"])
    runner.invoke(app, ["export", small, "-t", tokenizer, "-o", "o.safetensors", "--original", "--lexing", "nfa"])
    streamlined, original = (
        json.loads(runner.invoke(app, ["info", name, "--json", "-"]).stdout)
        for name in ("s.safetensors", "o.safetensors")
    )
    assert not original["is_streamlined"] and original["entries"] > streamlined["entries"]


BAD_GRAMMARS = {
    "syntax": ('start: "a', r"bad\.lark:1:8"),
    "undefined": ('start: a b\na: "x"', r"'b' used but not defined"),
    "undefined terminal": ("start: MISSING", r"'MISSING' used but not defined"),
    "unproductive start": ('start: start "x"', r"unproductive"),
    "back-reference": (r"start: A" "\n" r"A: /(a)\1/", r"A.*back-?reference"),
    "empty terminal": ("start: A\nA: /a*/", r"A.*empty"),
    "enormous repetition": ("start: A\nA: /a{1,100000}/", r"A"),
    "declared only": ("%declare X\nstart: X", r"X"),
    "no start": ('s: "a"', r"no rule 'start'"),
}


@pytest.mark.parametrize("case", sorted(BAD_GRAMMARS))
@pytest.mark.parametrize("command", ["analyze", "export"])
def test_bad_grammars(runner: CliRunner, tokenizer: str, tmp_path: Path, case: str, command: str) -> None:
    import re

    text, message = BAD_GRAMMARS[case]
    (tmp_path / "bad.lark").write_text(text)
    target = ["-o", "out.safetensors"] if command == "export" else ["--json", "out.json", "--html", "out.html"]
    begin = time.monotonic()
    result = runner.invoke(app, [command, "bad.lark", "-t", tokenizer, *target])
    assert result.exit_code == 2, result.output
    assert re.search(message, result.stderr, re.IGNORECASE | re.DOTALL), result.stderr
    assert "Traceback" not in result.output
    assert not list(tmp_path.glob("out*"))
    assert time.monotonic() - begin < 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["analyze", "lark:pyton"], "did you mean 'lark:python'"),
        (["analyze", "missing.lark"], "does not exist"),
        (["analyze", "latin1.lark"], "not UTF-8"),
        (["analyze", "lark:lark", "-t", "tekkn"], "did you mean tekken"),
        (["analyze", "lark:lark", "-t", "broken.json"], "broken.json"),
        (["analyze", "lark:lark", "--json", "no/such/folder/x.json"], "no folder"),
        (["analyze", "lark:lark", "--start", "nothing"], "no rule 'nothing'"),
        (
            ["verify", "altered.safetensors", "-t", "mistral-7b-v0.1"],
            "name the grammar that it was built from; or leave --tokenizer out",
        ),
        (["analyze", "altered.safetensors"], "name the grammar that it was built from"),
        (["verify", "altered.safetensors", "--tokenizer", "--refresh"], "name a tokenizer behind it"),
        (["info", "lark:lark", "-t", "altered.safetensors"], "not a tokenizer; name the tokenizer.json"),
        (["export", "lark:lark", "-o", "x.safetensors"], "--tokenizer"),
        (["info", "lark:lark"], "--tokenizer"),
        (["info", "missing.safetensors"], "missing.safetensors"),
        (["info", "latin1.lark"], "--tokenizer"),
        (["info", "broken.json"], "broken.json"),
        (["info", "truncated.safetensors"], "truncated.safetensors"),
        (["info", "altered.safetensors"], "altered.safetensors"),
        (["info", "version-7.safetensors"], "expected version 3 but found version 7"),
    ],
)
def test_bad_arguments(runner: CliRunner, tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "latin1.lark").write_bytes('start: "é"'.encode("latin-1"))
    (tmp_path / "broken.json").write_text("{")
    whole = (STORES / "version-2.safetensors").read_bytes()
    (tmp_path / "truncated.safetensors").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "altered.safetensors").write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
    (tmp_path / "version-7.safetensors").write_bytes((STORES / "version-7.safetensors").read_bytes())
    before = sorted(tmp_path.iterdir())
    result = runner.invoke(app, arguments)
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.stderr.split())
    assert [path for path in sorted(tmp_path.iterdir()) if path.name != "cache"] == before


@pytest.mark.parametrize("option", [["--original"], ["--rules", "lark"], ["--context", "2"]])
def test_options_of_lexing_nfa_are_refused_elsewhere(
    runner: CliRunner, small: str, tokenizer: str, option: list[str], tmp_path: Path
) -> None:
    result = runner.invoke(app, ["export", small, "-t", tokenizer, "-o", "x.safetensors", *option])
    assert result.exit_code == 2 and not (tmp_path / "x.safetensors").exists()
    assert "has lexing 'contextual', whose stores hold no entries" in " ".join(result.stderr.split())
    assert runner.invoke(app, ["analyze", small, "--lexing", "wrong"]).exit_code == 2


@pytest.mark.parametrize("command", ["analyze", "export", "info"])
def test_help_has_an_example(runner: CliRunner, command: str) -> None:
    result = runner.invoke(app, [command, "--help"])
    assert result.exit_code == 0 and f"Example: maskwright {command}" in " ".join(result.output.split())


def test_interrupted_export_leaves_nothing(tmp_path: Path) -> None:
    command = [
        sys.executable, "-m", "maskwright", "export", "lark:python", "-t", "mistral-7b-v0.1", "-o", "x.safetensors",
    ]  # fmt: skip
    pytest.importorskip("mistral_common")
    import os

    environment = {**os.environ, "MASKWRIGHT_CACHE": str(tmp_path / "cache")}
    # a process started in the background may have been told to ignore the signal, and its children would too
    obey = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, preexec_fn=obey)
    time.sleep(1.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode in (130, -signal.SIGINT), errors
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == []


def test_soft_keywords(runner: CliRunner, tokenizer: str) -> None:
    Path("words.lark").write_text('start: (NAME | "if" NAME)+\nNAME: /[a-z]+/\n%ignore " "\n')
    command = ["info", "words.lark", "--tokenizer", tokenizer, "--json", "-"]
    plain, soft = runner.invoke(app, command), runner.invoke(app, [*command, "--soft", "if"])
    assert plain.exit_code == soft.exit_code == 0, soft.stderr
    assert json.loads(plain.stdout)["table_bytes"] != json.loads(soft.stdout)["table_bytes"]
    wrong = runner.invoke(app, [*command, "--soft", "else"])
    assert wrong.exit_code == 2 and "soft keyword 'else' is not a string literal" in wrong.stderr


def test_a_grammar_whose_file_has_a_line_feed_in_its_name(runner: CliRunner, tmp_path: Path) -> None:
    path = tmp_path / "g\n h.lark"
    path.write_text('start: "a"\n')
    assert runner.invoke(app, ["lint", str(path)]).exit_code == 0


def test_warm_up(runner: CliRunner, tokenizer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maskwright.stores.cache.why_others_cannot_read", lambda folder: None)  # pytest's folders
    (tmp_path / "small.lark").write_text(SMALL)
    command = ["warm-up", "small.lark", "json", "--tokenizer", tokenizer, "--readable", "--json", "facts.json"]
    run = runner.invoke(app, command)
    assert run.exit_code == 0, run.output
    assert run.output.count("MB, in") == 2
    stores = json.loads((tmp_path / "facts.json").read_text())["stores"]
    assert [Path(store["path"]).parent.name for store in stores] == ["cache", "cache"]
    assert all(Path(store["path"]).stat().st_size == store["bytes"] for store in stores)
    for source, files in (('{"type": "string"}', 0), ('start: "<" X ">"\n%grammar X json.compact in json string\n', 2)):
        run = runner.invoke(app, ["warm-up", source, "-t", tokenizer, "--readable", "--json", "more.json"])
        assert run.exit_code == 0, run.output
        facts = json.loads((tmp_path / "more.json").read_text())
        assert len([store for store in facts["stores"] if store["path"]]) == files
        assert facts["engines"][0]["cpu_seconds"] >= 0
    run = runner.invoke(app, ["warm-up", "json"])
    assert run.exit_code == 2 and "name at least one (--tokenizer)" in run.output


def test_a_store_is_not_written_to_standard_output(runner: CliRunner, small: str, tokenizer: str) -> None:
    result = runner.invoke(app, ["export", small, "-t", tokenizer, "-o", "-"])
    assert result.exit_code == 2 and "a store is not written to standard output; name a file" in result.output
