"""Every kind of finding: a grammar with the defect, where it is found, and the grammar mended, where it is not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from engine_cases import random_longest_grammar
from lint.seeds import SEEDS, Seed, grammar_of, vocabulary
from paths import ROOT

from maskwright.lint import CODES, Report, lint_grammar
from maskwright.lint.facts import Facts
from maskwright.lint.lexings import _Larks

SENSIBLE = r"""
?start: value
?value: object | array | STRING | NUMBER | "true" | "false" | "null"
array: "[" [value ("," value)*] "]"
object: "{" [pair ("," pair)*] "}"
pair: STRING ":" value
STRING: /"([^"\\\x00-\x1f]|\\["\\\/bfnrt]|\\u[0-9a-fA-F]{4})*"/
NUMBER: /-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/
%ignore /[ \t\n\r]+/
"""


def lint(seed: Seed, text: str, missing: str) -> Report:
    uses_tokens = bool(seed.missing)
    return lint_grammar(grammar_of(text, **seed.options), vocabulary(missing.encode()) if uses_tokens else None)


@pytest.mark.parametrize("seed", SEEDS, ids=str)
def test_the_defect_is_found(seed: Seed) -> None:
    report = lint(seed, seed.defect, seed.missing)
    found = [f for f in report.findings if (f.code, f.severity) == (seed.code, seed.severity)]
    assert found, str(report)
    here = [f for f in found if (f.line, f.column) == seed.at]
    assert here, str(report)
    said = [f for f in here if all(word in f"{f.message} {f.decoding}" for word in seed.words)]
    assert said and (not seed.example or said[0].example == seed.example), str(report)
    assert said[0].remedy and said[0].decoding and said[0].file == "seed.lark"
    assert report.passed == all(f.severity == "info" for f in report.findings)


def test_what_differs_from_lark_at_the_end_of_a_text_has_its_own_remedy() -> None:
    for seed in (seed for seed in SEEDS if seed.code == "lark-differs"):
        remedies = {f.remedy for f in lint(seed, seed.defect, "").findings if f.code == seed.code}
        begin = "let texts end in bytes that continue no lexeme" if seed.example == "'bb'" else "declare keywords"
        assert remedies and all(remedy.startswith(begin) for remedy in remedies)


@pytest.mark.parametrize("seed", SEEDS, ids=str)
def test_the_mended_grammar_is_clean_of_it(seed: Seed) -> None:
    report = lint(seed, seed.clean, seed.clean_missing)
    assert [f for f in report.findings if f.code == seed.code] == [] and report.skipped == ()


def test_every_code_has_a_seed_and_a_section() -> None:
    # the last two depend on the vocabulary alone: test_tokens
    of_schemas = {
        "empty-schema",
        "idle-keyword",
        "inexact-schema",
        "needless-escapes",
        "unknown-keyword",
    }  # test_schemas
    others = {"no-eos", "special-token-text", "unused-part", *of_schemas}  # unused-part: test_composition_commands
    assert {seed.code for seed in SEEDS} | others == set(CODES)
    page = (ROOT / "docs" / "linting.md").read_text(encoding="utf-8")
    assert [code for code in CODES if f"### {code}\n" not in page] == []


def test_a_sensible_grammar_is_clean() -> None:
    report = lint_grammar(grammar_of(SENSIBLE), vocabulary())
    assert report.passed and [f.code for f in report.findings] == ["endless-whitespace"]


@pytest.mark.parametrize("lexing", ["longest", "contextual", "nfa"])
@pytest.mark.parametrize("conflicts", ["all", "shift"])
def test_the_same_findings_each_time(lexing: str, conflicts: str) -> None:
    text = SENSIBLE + 'dead: NAME\nNAME: /[a-z]+/\nIDLE: "x"\n'
    first, second = (lint_grammar(grammar_of(text, lexing=lexing, conflicts=conflicts)) for _ in range(2))
    assert first == second and {f.code for f in first.findings} >= {"unreachable-rule", "unused-terminal"}
    assert (first.skipped != ()) == (lexing == "nfa")


def test_a_parser_that_would_reduce_for_ever_is_given_up() -> None:
    """Where Lark shifts rather than reduces, empty rules may be reduced without end: what its lexers say is not known then."""
    grammar = replace(random_longest_grammar(68), ignored=frozenset())
    reader = _Larks(Facts(grammar, "f"), is_contextual=False)
    assert reader.read(b"aaaaaa") is None
    assert lint_grammar(grammar).findings


def test_a_newline_without_line_feed_is_said_once() -> None:
    """It never wins, and no other terminal is to blame: this was an error without a type."""
    layout = "%declare _INDENT _DEDENT"
    text = f'start: (A _NEWLINE | _NEWLINE _INDENT start _DEDENT)+\nA: "a"\n_NEWLINE: / +/\n{layout}'
    codes = [f.code for f in lint_grammar(grammar_of(text)).findings]
    assert "layout-newline" in codes and "never-lexed" not in codes
