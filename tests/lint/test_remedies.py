"""Remedies are tried before they are offered."""

from __future__ import annotations

from dataclasses import replace

import pytest
from engine_cases import random_longest_grammar
from lint.seeds import grammar_of
from shares import share

from maskwright.lint import Report, lint_grammar, run
from maskwright.lint.facts import Facts
from maskwright.lint.remedies import MAX_TRIALS, Remedy, Trials, contextual, higher_priority, ignored_blanks

AGENT = """
start: "Thought: " TEXT "\\nAction: " TOOL "\\nInput: " TEXT "\\n"
TOOL: "search" | "calculator"
TEXT: /[^\\n]+/
"""
LOG = """
start: line+
line: DATE " " TIME " " LEVEL " [" MODULE "] " MESSAGE "\\n"
DATE: /\\d{4}-(0[1-9]|1[0-2])-([0-2]\\d|3[01])/
TIME: /([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d/
LEVEL: "INFO" | "WARN" | "ERROR"
MODULE: /[a-z.]+/
MESSAGE: /[^\\n]+/
"""


def n_findings(report: Report) -> int:
    return report.counts["error"] + report.counts["warning"]


def remedies(report: Report, code: str) -> str:
    return "\n".join(f.remedy for f in report.findings if f.code == code)


@pytest.mark.parametrize("text", [AGENT, LOG], ids=["agent", "log"])
def test_what_makes_it_worse_is_not_offered(text: str) -> None:
    """Blanks help nothing where a text may hold them. And more priority for the tools takes their words from the text."""
    grammar = replace(grammar_of(text), lexing="longest")
    report = lint_grammar(grammar)
    blanks = ignored_blanks(grammar)
    assert (blanks.changed is None) == (text is LOG)  # whose rules have blanks
    if blanks.changed is not None:
        assert n_findings(lint_grammar(blanks.changed)) >= n_findings(report)
    assert not report.passed and "%ignore" not in str(report)


def test_what_helps_is_offered() -> None:
    joined = lint_grammar(replace(grammar_of("start: N M\nN: /[a-z]+/\nM: /[a-z0-9]*[0-9]/"), lexing="longest"))
    assert '%ignore " "' in remedies(joined, "never-adjacent") + remedies(joined, "stuck-after-terminal")
    hidden = lint_grammar(
        replace(grammar_of('start: "[" (NAME | KEY) "]"\nKEY: /k[0-9]/\nNAME: /[a-z0-9]+/'), lexing="longest")
    )
    assert "give KEY a higher priority (KEY.1)" in remedies(hidden, "never-lexed")
    above = lint_grammar(
        replace(grammar_of('start: "[" (NAME | KEY) "]"\nKEY: /k[0-9]/\nNAME.3: /[a-z0-9]+/'), lexing="longest")
    )
    assert "(KEY.4)" in remedies(above, "never-lexed")


@pytest.mark.parametrize("seeds", share([range(12), range(12, 120)], 1), ids=str)
def test_what_is_offered_helps(seeds: range) -> None:
    """Each remedy that a report names, applied to the grammar."""
    n_offered = n_left_out = 0
    for seed in seeds:
        grammar = replace(random_longest_grammar(seed), ignored=frozenset())
        report = lint_grammar(grammar)
        tried = [contextual(grammar), ignored_blanks(grammar)]
        tried += [
            higher_priority(grammar, t, [o])
            for t in range(grammar.n_terminals)
            for o in range(grammar.n_terminals)
            if t != o
        ]
        for remedy in tried:
            if remedy.changed is None or not any(remedy.text in f.remedy for f in report.findings):
                n_left_out += 1
                continue
            n_offered += 1
            before, after = run._counts(grammar), run._counts(remedy.changed)
            assert before is not None and after is not None
            assert sum(after) < sum(before) and after[0] <= before[0], (seed, remedy.text)
    assert n_offered > len(seeds) // 60 and n_left_out > 5


def test_trials_have_a_limit() -> None:
    grammar = grammar_of('start: "a"')
    counted: list[str] = []

    def count(changed: object) -> tuple[int, int]:
        counted.append(str(changed))
        return 0, len(counted) == 1

    trials = Trials(grammar, count)
    changed = [replace(grammar, name=f"changed-{i}") for i in range(MAX_TRIALS + 3)]
    assert [trials.helps(Remedy("", one)) for one in changed] == [True] * MAX_TRIALS + [False] * 3
    assert trials.helps(Remedy("", changed[0])) and not trials.helps(Remedy("", None))
    assert len(counted) == 1 + MAX_TRIALS
    facts = Facts(grammar, "f")
    assert facts.remedy("otherwise", Remedy("this", changed[0])) == "otherwise"
