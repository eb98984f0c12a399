"""Findings about a lexer that backs up: of which terminals, whatever these are called."""

from __future__ import annotations

import pytest

from maskwright.analysis.errors import BackupError, LimitError
from maskwright.analysis.loading import parse_grammar
from maskwright.lint import backup, lint_grammar
from maskwright.lint.facts import Facts


def test_the_place_is_that_of_the_terminal_that_goes_on() -> None:
    """`OR_B_GOES_ON` is what the message says, too: its name was looked for there, and the longest one found was taken."""
    text = (
        "// maskwright: lexing = longest\n"
        'start: (A | ON | LEXER_WOULD_HAVE_TO_GO_ON | END)*\nLEXER_WOULD_HAVE_TO_GO_ON: "q"\nA: "a"\nON: /a+b/\nEND: "c"\n'
    )
    (finding,) = (f for f in lint_grammar(parse_grammar(text)).findings if f.code == "endless-backup")
    assert finding.line == 5
    shorter = text.replace("LEXER_WOULD_HAVE_TO_GO_ON", "A_").replace("ON:", "A_A:").replace("| ON |", "| A_A |")
    (finding,) = (f for f in lint_grammar(parse_grammar(shorter)).findings if f.code == "endless-backup")
    assert finding.line == 5


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (BackupError("odd", (1, 0)), "endless-backup", 3),
        (BackupError("odd", (1,)), "endless-backup", 4),
        (LimitError("back up over: it cannot tell whether A or B"), "too-large", 0),
    ],
)
def test_what_the_error_says_is_not_read(
    error: LimitError, code: str, line: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr("maskwright.lint.facts.build_transducer", refuse)
    facts = Facts(parse_grammar('// maskwright: lexing = longest\nstart: A B\nA: "a"\nB: "b"\n'), "x")
    (finding,) = backup.backing_up(facts)
    assert (finding.code, finding.line) == (code, line)
