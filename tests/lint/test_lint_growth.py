"""Lint of large simple grammars ends soon or says what was not checked; Ctrl-C is obeyed on the way."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from own_process import cpu_seconds_of, seconds_to_end
from shares import share

from maskwright.analysis.errors import BackupError, GrammarError, LimitError, MaskwrightError
from maskwright.analysis.lexing.modes import lexing_modes
from maskwright.analysis.loading import parse_grammar
from maskwright.lint import backup, lexings, lint_grammar, run
from maskwright.lint import facts as facts_module
from maskwright.lint.facts import Facts, remembered
from maskwright.lint.finding import Report

LONGEST = "// maskwright: lexing = longest\n"


def alternatives(n: int) -> str:
    return "start: " + " | ".join(f'"kw{i}x" "y{i}"' for i in range(n)) + "\n"


def chain(n: int) -> str:
    return "start: r0\n" + "".join(f'r{i}: "k_{i}" r{i + 1} | "z_{i}" r{i + 1}\n' for i in range(n)) + f'r{n}: "end"\n'


GRAMMARS: dict[str, tuple[Callable[[int], str], int, int]] = {
    "alternatives": (alternatives, 300, 5_000),
    "alternatives, longest": (lambda n: LONGEST + alternatives(n), 300, 5_000),
    "alternatives, as large as is looked at": (lambda n: LONGEST + alternatives(n), 300, 2_000),
    "a chain of rules": (chain, 300, 3_000),
    "repeated literals": (lambda n: "start: (" + " | ".join(f'"kw{i}x"' for i in range(n)) + ")*\n", 300, 2_000),
    "literals and names": (
        lambda n: "start: (" + " | ".join(f'"kw{i}x"' for i in range(n)) + ' | NAME)*\nNAME: /[a-z][a-z0-9]*/\n%ignore " "\n',
        100,
        500,
    ),
    "a long literal": (lambda n: f'start: "{"x" * n}"\n', 30_000, 400_000),
}  # fmt: skip
"""A text for n, n for an ordinary test, and for a slow one."""

FAULT = '%extend start: Q | R\nQ: /q+!/\nR: /q+!/\nunused: "u"\n'
"""Two terminals that match the same, and a rule that nothing uses: for the checks of lexers and of rules."""

IN_LEXING, OF_FAULT = {"equal-terminals"}, {"unreachable-rule"}
MODES = "contextual lexing has more than 256 different sets of competing terminals"
STATES = "its LR tables have"
SOME = ("lexings are compared on some neighbours only: there are too many of them to try all",)
NO_LEXER = ("lexing, texts and the vocabulary: a terminal has no automaton",)

FOUND: dict[str, tuple[set[str], str, tuple[str, ...], set[str]]] = {
    "alternatives": ({"too-large"}, MODES, (), set()),
    "alternatives, longest": (set(), "", (), IN_LEXING),
    "alternatives, as large as is looked at": (set(), "", (), IN_LEXING),
    "a chain of rules": ({"too-large"}, MODES, (), set()),
    "repeated literals": (set(), "", (), IN_LEXING),
    "literals and names": ({"endless-whitespace"}, "blanks are ignored", SOME, {*IN_LEXING, "lark-differs"}),
    "a long literal": ({"too-large"}, 'terminal "xxx', NO_LEXER, set()),
}
"""At n for an ordinary test: codes, what the first finding says, what is skipped, and codes of a fault added that is not of the rules."""

FULL = (
    "what needs the parser's full tables: they have {} states over {} symbols, {} cells, past lint's limit of 33554432"
)
NO_TABLES = {
    "alternatives": FULL.format(10_002, 10_002, 100_040_004),
    "alternatives, longest": FULL.format(10_002, 10_002, 100_040_004),
    "a chain of rules": FULL.format(12_004, 9_004, 108_084_016),
}

FOUND_LARGE: dict[str, tuple[set[str], str, tuple[str, ...]]] = {
    **{name: found[:3] for name, found in FOUND.items()},
    **{name: ({"too-large"}, STATES, (left_out,)) for name, left_out in NO_TABLES.items()},
    "repeated literals": (set(), "", SOME),
}


def linted(text: str) -> tuple[Report, float]:
    """What lint says, and the CPU seconds that it took."""
    start = time.process_time()
    report = lint_grammar(parse_grammar(text))
    return report, time.process_time() - start


def check_said(report: Report, codes: set[str], said: str, skipped: tuple[str, ...]) -> None:
    assert {finding.code for finding in report.findings} == codes
    assert all(said in finding.message for finding in report.findings)
    assert report.skipped == skipped


@pytest.mark.parametrize("name", share(GRAMMARS, 3))
def test_a_simple_grammar_is_linted_soon(name: str) -> None:
    write, n, _ = GRAMMARS[name]
    report, seconds = linted(write(n))
    check_said(report, *FOUND[name][:3])
    assert seconds < 10


@pytest.mark.parametrize("name", share(GRAMMARS, 1))
def test_a_fault_in_a_simple_grammar_is_found(name: str) -> None:
    """As large, with a fault: a lint that looks at nothing would say nothing."""
    write, n, _ = GRAMMARS[name]
    codes, _, skipped, more = FOUND[name]
    report, seconds = linted(write(n) + FAULT)
    assert {finding.code for finding in report.findings} == codes | more | OF_FAULT
    assert report.skipped == skipped
    assert seconds < 10


@pytest.mark.slow
@pytest.mark.parametrize("name", GRAMMARS)
def test_a_large_simple_grammar_is_linted_or_refused(name: str) -> None:
    write, _, n = GRAMMARS[name]
    report, seconds = linted(write(n))
    check_said(report, *FOUND_LARGE[name])
    assert seconds < 40


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [3, 6])
@pytest.mark.parametrize("name", GRAMMARS)
def test_interrupting_lint_ends_it_soon(name: str, seconds: int, tmp_path: Path) -> None:
    """After so many CPU seconds, when all is imported: Ctrl-C is obeyed, and the exit code says so; no report comes instead."""
    write, _, n = GRAMMARS[name]
    path = tmp_path / "large.lark"
    path.write_text(write(n))
    command = [sys.executable, "-m", "maskwright", "lint", str(path)]
    for at in (seconds, seconds - 0.5):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            while cpu_seconds_of(process.pid) < at:
                if process.poll() is not None:
                    pytest.skip("lint ended before it could be interrupted")
                time.sleep(0.05)
            if process.poll() is not None:
                pytest.skip("lint ended before it could be interrupted")
            assert seconds_to_end(process) < 2  # a second is promised
            if process.returncode in (0, 1) and at == seconds:
                continue  # it may have had its report when it was interrupted, but not half a second earlier too
            assert process.stderr is not None
            assert process.stderr.read() == "interrupted; nothing was written\n"
            assert process.returncode == 130
            break


def test_more_modes_than_are_supported_are_one_finding_and_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = Facts(parse_grammar(alternatives(300)), "x")
    searches = []

    def counted(*arguments: Any) -> Any:
        searches.append(1)
        return lexing_modes(*arguments)

    monkeypatch.setattr(facts_module, "lexing_modes", counted)
    for _ in range(2):
        with pytest.raises(LimitError, match="contextual lexing has more than 256 different sets"):
            _ = facts.lexer
    assert searches == [1]
    report = lint_grammar(parse_grammar(alternatives(300)))
    assert [finding.code for finding in report.findings] == ["too-large"]


def test_tables_too_large_to_look_at_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts_module, "MAX_CELLS", 100)
    report = lint_grammar(parse_grammar(alternatives(10)))
    assert not report.findings
    assert len(report.skipped) == 1
    assert "past lint's limit of 100" in report.skipped[0]
    with pytest.raises(GrammarError, match="past lint's limit of 100"):
        _ = Facts(parse_grammar(alternatives(10)), "x").tables


def test_neighbours_not_compared_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    text = GRAMMARS["repeated literals"][0](8)
    assert not lint_grammar(parse_grammar(text)).skipped
    monkeypatch.setattr(lexings, "MAX_PAIRS", 8)
    assert "on some neighbours only" in lint_grammar(parse_grammar(text)).skipped[0]


def test_a_literal_longer_than_a_lexer_is_a_short_finding() -> None:
    report = lint_grammar(parse_grammar(f'start: "{"x" * 60_001}"\n'))
    assert [finding.code for finding in report.findings] == ["too-large"]
    assert "its automaton has 60002 states" in report.findings[0].message
    assert len(str(report)) < 2_000


@pytest.mark.slow
@pytest.mark.parametrize("n", share([1_001, 60_001], 1))
def test_more_literals_than_a_lexer_has_states_are_a_finding(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert backup.STATE_LIMIT == 60_000
    monkeypatch.setattr(backup, "STATE_LIMIT", n - 1)
    report = lint_grammar(parse_grammar(LONGEST + "start: " + " | ".join(f'"{i}"' for i in range(n)) + "\n"))
    assert [finding.code for finding in report.findings] == ["too-large"]
    assert f"has {n} string literals, but a lexer has at most {n - 1} states" in report.findings[0].message


def test_what_the_transducer_says_is_said_whole() -> None:
    """Messages are cut behind the grammar's name only: this one has no other colon."""
    facts = Facts(parse_grammar('start: "a"\n', name="odd: name"), "x")
    assert facts.without_name(LimitError("grammar odd: name: too large: so it is")) == "too large: so it is"
    assert facts.without_name(LimitError("grammar odd has too much")) == "grammar odd has too much"


def test_a_value_and_an_error_are_remembered() -> None:
    class Asked:
        n = 0

        @remembered
        def value(self) -> int:
            """A value."""
            self.n += 1
            return 7

        @remembered
        def error(self) -> int:
            self.n += 1
            raise LimitError("too large")

    asked = Asked()
    assert [asked.value, asked.value] == [7, 7]
    for _ in range(2):
        with pytest.raises(LimitError, match="too large"):
            _ = asked.error
    assert asked.n == 2
    assert Asked.value.__doc__ == "A value."


@pytest.mark.slow
def test_a_remembered_error_holds_no_frames() -> None:
    """What the search had in its hands when it failed is given back: arrays up to the limit."""

    class Held:
        pass

    seen: list[weakref.ref[Held]] = []

    class Asked:
        @remembered
        def error(self) -> int:
            held = Held()
            seen.append(weakref.ref(held))
            try:
                raise ValueError(held)
            except ValueError as cause:
                raise BackupError("too large", (3, 5)) from cause

    asked = Asked()
    for _ in range(3):
        with pytest.raises(BackupError, match=r"^too large$") as caught:
            _ = asked.error
        assert caught.value.terminals == (3, 5)
        del caught
        gc.collect()
        assert [held() for held in seen] == [None]


@pytest.mark.parametrize("kind", [LimitError, GrammarError])
def test_what_the_trial_without_text_leaves_out_is_said(
    kind: type[MaskwrightError], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit that only the store of the trial meets: there is no finding that would say so."""

    def refuse(*_: object) -> None:
        raise kind("grammar <text>: the table would be too large")

    grammar = parse_grammar(LONGEST + 'start: N "x"\nN: /[0-9a-z]+/\n')
    assert "no-text" in {finding.code for finding in lint_grammar(grammar).findings}
    monkeypatch.setattr(run, "build_engine_table", refuse)
    report = lint_grammar(grammar)
    assert "no-text" not in {finding.code for finding in report.findings}
    said = "whether any text can be finished: the table would be too large"
    assert report.skipped == (said,) and said in str(report)


def test_what_the_trial_without_text_leaves_out_is_said_once() -> None:
    """The transducer has said that there is none; the trial needs it too."""
    text = 'start: (A | LONG | END)* | A A\nA: "a"\nLONG: /a+b/\nEND: "c"\nNEVER: /a+b/\n'
    report = lint_grammar(parse_grammar(LONGEST + text))
    assert {"endless-backup"} <= {finding.code for finding in report.findings}
    assert not report.skipped
