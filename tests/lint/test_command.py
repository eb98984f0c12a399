"""The command, the report and the comments that allow findings."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from lint.seeds import grammar_of
from typer.testing import CliRunner

from maskwright.analysis.errors import UnknownNameError
from maskwright.analysis.loading import load_grammar
from maskwright.cli import app
from maskwright.lint import lint_grammar
from maskwright.lint.facts import Facts
from maskwright.lint.rules import rules_in_text

CLEAN = 'start: "a" "b"\n'
DEAD = CLEAN + 'dead: "c"\n'
AMBIGUOUS = 'start: s\ns: "i" s | "i" s "e" s | "j" s "e" s | "x"\n%ignore " "\n'


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "60")
    for name, text in {"clean": CLEAN, "dead": DEAD, "ambiguous": AMBIGUOUS}.items():
        Path(f"{name}.lark").write_text(text)
    return CliRunner()


def test_exit_codes_and_lines(runner: CliRunner) -> None:
    clean = runner.invoke(app, ["lint", "clean.lark"])
    assert clean.exit_code == 0 and clean.output == "clean.lark: 0 errors, 0 warnings, 0 info\n"
    dead = runner.invoke(app, ["lint", "dead.lark"])
    assert dead.exit_code == 1
    first, *rest = dead.output.splitlines()
    assert first == "dead.lark:2:1: warning unreachable-rule: start symbol 'start' does not lead to rule 'dead'"
    assert [line.split(":")[0].strip() for line in rest[:2]] == ["when decoding", "remedy"]
    started = runner.invoke(app, ["lint", "dead.lark", "--start", "dead"])
    assert started.exit_code == 1 and "rule 'start'" in started.output


def test_json_is_stable_and_alone(runner: CliRunner) -> None:
    result = runner.invoke(app, ["lint", "ambiguous.lark", "--json", "-"])
    facts = json.loads(result.stdout)
    assert result.exit_code == 1 and facts["version"] == 1 and facts["grammar"] == "ambiguous.lark"
    assert list(facts) == [
        "version", "grammar", "lexing", "conflicts", "tokenizer", "passed", "counts", "allowed", "skipped", "findings",
    ]  # fmt: skip
    ambiguity = next(f for f in facts["findings"] if f["code"] == "ambiguity")
    assert list(ambiguity) == [
        "code", "severity", "file", "line", "column", "message", "decoding", "remedy", "example", "pointer", "part",
    ]  # fmt: skip
    assert (ambiguity["line"], ambiguity["column"], ambiguity["example"]) == (2, 1, "'iixex'")
    written = runner.invoke(app, ["lint", "ambiguous.lark", "--json", "found.json"])
    assert json.loads(Path("found.json").read_text()) == facts and "ambiguity" in written.output


def test_options_reach_the_grammar(runner: CliRunner) -> None:
    shift = runner.invoke(app, ["lint", "ambiguous.lark", "--conflicts", "shift"])
    assert shift.exit_code == 0 and "info ambiguity" in shift.output
    nfa = runner.invoke(app, ["lint", "clean.lark", "--lexing", "nfa"])
    assert nfa.exit_code == 0 and "not checked: longest match: lexing is 'nfa'" in nfa.output
    soft = runner.invoke(app, ["lint", "clean.lark", "--soft", "a"])
    assert soft.exit_code == 2 and "soft keyword 'a'" in " ".join(soft.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.lark"], "does not exist"),
        (["bad.lark"], "bad.lark:1:8"),
        (["clean.lark", "--allow", "ambiguty"], "did you mean 'ambiguity'"),
        (["clean.lark", "--start", "nothing"], "no rule 'nothing'"),
        (["clean.lark", "--json", "no/such/x.json"], "no folder"),
        (["clean.lark", "-t", "tekkn"], "did you mean tekken"),
    ],
)
def test_bad_input_is_two(runner: CliRunner, arguments: list[str], message: str) -> None:
    Path("bad.lark").write_text('start: "a')
    result = runner.invoke(app, ["lint", *arguments])
    assert result.exit_code == 2 and message in " ".join(result.stderr.split()), result.output
    assert not list(Path().glob("*.json"))


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ('start: "k" a\na: a "x"\n', "unproductive-rule", "2:1"),
        ('start: start "x"\n', "unproductive-rule", "1:1"),
        ('start: "a"\nA: /a*/\nb: A\n', "unreachable-rule", "3:1"),
    ],
)
def test_a_grammar_that_can_be_read_has_findings(runner: CliRunner, text: str, code: str, place: str) -> None:
    """Exit code 1: the grammar is at fault; 2 is for input that is none."""
    Path("mine.lark").write_text(text)
    for more in ([], ["-t", "python-tiny"]):
        result = runner.invoke(app, ["lint", "mine.lark", *more])
        assert result.exit_code == 1, result.output
        assert f"mine.lark:{place}: " in result.output and code in result.output


def test_endless_derivations_are_told_and_pass(runner: CliRunner) -> None:
    Path("mine.lark").write_text('start: "k" r*\nr: "x"?\n')
    result = runner.invoke(app, ["lint", "mine.lark"])
    assert result.exit_code == 0, result.output
    shown = " ".join(result.output.split())
    assert "mine.lark:1:1: " in shown and "endless-derivation" in shown
    assert "'start' repeats something that may be empty (start -> start)" in shown and "(part?)+ is part*" in shown


def test_findings_that_are_meant(runner: CliRunner) -> None:
    allowed = runner.invoke(app, ["lint", "dead.lark", "--allow", "unreachable-rule"])
    assert allowed.exit_code == 0 and "(1 finding allowed)" in allowed.output
    comment = "// lint: allow unreachable-rule\n"
    for text in (CLEAN + comment + 'dead: "c"', CLEAN + 'dead: "c" ' + comment):
        report = lint_grammar(grammar_of(text))
        assert report.findings == () and report.n_allowed == 1 and report.passed
    elsewhere = lint_grammar(grammar_of(comment + DEAD))
    assert [f.code for f in elsewhere.findings] == ["unreachable-rule"]
    everywhere = lint_grammar(grammar_of("// lint: allow-file ambiguity, unreachable-rule\n" + DEAD))
    assert everywhere.findings == () and everywhere.n_allowed == 1
    with pytest.raises(UnknownNameError, match="no finding has the code"):
        lint_grammar(grammar_of(CLEAN), allow=["nothing"])


def test_places_of_helper_rules_and_templates() -> None:
    grammar = grammar_of('start: list{item} item*\nlist{x}: x ("," x)*\nitem: "a" | "b"~2..60\n')
    facts = Facts(grammar, "x")
    places = {name: facts.at_rule(name) for name in grammar.nonterminals}
    assert places["start"] == (1, 1) and places["item"] == (3, 1)
    assert {place for name, place in places.items() if "list" in name} == {(2, 1)}
    assert {place for name, place in places.items() if "item" in name and "list" not in name} <= {(3, 1)}
    assert rules_in_text(grammar)["start"][1] == ("list", "item")


def test_python_of_larks_wheel_within_its_time() -> None:
    grammar = load_grammar("lark:python")
    begin = time.process_time()
    report = lint_grammar(grammar)
    assert time.process_time() - begin < 15  # some 4 s; more on a busy machine
    assert report.skipped == () and report.counts["error"] == 0
    found = {(f.code, f.line) for f in report.findings if f.severity == "warning"}
    assert {code for code, _ in found} <= {"unreachable-rule", "never-lexed", "open-lookahead"}


def test_an_interrupt_ends_it(tmp_path: Path) -> None:
    obey = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    command = [sys.executable, "-m", "maskwright", "lint", "lark:python", "--json", "x.json"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, preexec_fn=obey)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode in (130, -signal.SIGINT), errors
    assert b"Traceback" not in errors or process.returncode == -signal.SIGINT
    assert not list(tmp_path.iterdir())
