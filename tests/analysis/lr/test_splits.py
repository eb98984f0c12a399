"""Where parses of one text would lex differently, conflicts are decided as Lark decides them, or the grammar is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from maskwright.analysis.errors import LimitError
from maskwright.analysis.loading import load_grammar, parse_grammar
from maskwright.analysis.lr.splits import default_conflicts
from maskwright.lint import lint_grammar
from maskwright.maskstore.automaton.stack_automaton import build_lexer_and_parser

SPLIT = 'start: x "b" "c" | y "b" /[c-z]/\nx: "a"\ny: "a"\n'
AGREEING = 'start: x "b" "c" | y "b" "d"\nx: "a"\ny: "a"\n'
SUMS = 'start: start "+" start | start "*" start | N\nN: /[0-9]+/\nM: /x/\n%ignore " "\n'


@pytest.mark.parametrize(
    ("text", "lexing", "conflicts"),
    [
        (SPLIT, None, "shift"),
        (SPLIT, "longest", "all"),
        (SPLIT, "nfa", "all"),
        (AGREEING, None, "all"),
        (SUMS, None, "all"),
        (SPLIT + "// maskwright: conflicts = all\n", None, "all"),
        (SPLIT + "// maskwright: lexing = longest\n", None, "all"),
    ],
)
def test_conflicts_where_nobody_says(text: str, lexing: str | None, conflicts: str) -> None:
    assert parse_grammar(text, lexing=lexing).conflicts == conflicts  # type: ignore[arg-type]


def test_a_grammar_that_says_all_is_refused_when_it_is_compiled() -> None:
    grammar = parse_grammar(SPLIT, conflicts="all", name="split")
    message = r"grammar split: after the conflict before B, parses of one text stand where .* conflicts='shift'"
    with pytest.raises(LimitError, match=message):
        build_lexer_and_parser(grammar)
    assert build_lexer_and_parser(replace(grammar, conflicts="shift"))


def test_lint_says_so_with_a_text(tmp_path: Path) -> None:
    for conflicts, severity in ((None, "info"), ("all", "error")):
        report = lint_grammar(parse_grammar(SPLIT, conflicts=conflicts))  # type: ignore[arg-type]
        (finding,) = [finding for finding in report.findings if finding.code == "mode-conflict"]
        assert finding.severity == severity and finding.example == "'ab'" and "different terminals" in finding.message
    assert not any(f.code == "mode-conflict" for f in lint_grammar(parse_grammar(AGREEING)).findings)


@pytest.mark.slow
def test_our_own_grammar_of_python_has_conflicts_that_agree() -> None:
    """Its parses may stand where texts within strings are read, and elsewhere; the search shows that no two do so together."""
    grammar = load_grammar("python")
    assert grammar.conflicts == "all" and grammar.verbatim
    assert default_conflicts(grammar) == "all"
