"""Forecasts of costs: deterministic, counted rightly, near to what is measured, and with causes that rewriting removes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from engine_cases import longest
from grammars import JSON

from maskwright.analysis.grammar.grammar import Grammar
from maskwright.maskstore.automaton.stack_automaton import Budget, build_automaton
from maskwright.maskstore.vocabulary import load_vocabulary
from maskwright.report import forecast as module
from maskwright.report.analysis import analyze
from maskwright.report.forecast import SIZES, forecast, generic_tokens

RIGHT = 'start: e\ne: NAME | NAME "?" e | "(" e ")"\nNAME: /[a-z]+/'
LEFT = 'start: e\ne: t | e "?" t\nt: NAME | "(" e ")"\nNAME: /[a-z]+/'
ALIKE = r"""
start: (p | q)+
p: "(" x ")" | "[" x "]"
q: "(" y ">" | "[" y "}"
x: NAME "+"
y: NAME "-"
NAME: /[a-z]+/
"""
FACTORED = r"""
start: p+
p: "(" NAME ("+" ")" | "-" ">") | "[" NAME ("+" "]" | "-" "}")
NAME: /[a-z]+/
"""


def test_generic_tokens_are_distinct_and_the_same_again() -> None:
    grammar = longest(JSON)
    small, large = generic_tokens(grammar).values()
    assert generic_tokens(grammar) == dict(zip(SIZES, (small, large), strict=True))
    assert large[: len(small)] == small and len(set(large)) == len(large) > 1.5 * len(small)
    assert small[:256] == [bytes([byte]) for byte in range(256)] and b" true" in small
    assert 1200 < len(small) < 3000


def test_facts_are_json_and_deterministic() -> None:
    grammar = longest(JSON)
    facts = forecast(grammar)
    assert json.loads(json.dumps(facts)) == facts == forecast(replace(grammar, lexing="nfa"))
    assert facts["is_open"] is False and facts["stack_reads"]["mean"] >= 1.0
    assert sum(cause["share"] for cause in facts["causes"]) <= 1.01
    for size in map(str, SIZES):
        entries = facts["entries"][size]
        assert 0 < entries["mean"] <= entries["worst"] <= entries["all"]
        assert facts["worst_states"][0]["entries"][size] <= entries["worst"]
    small, large = (facts["bytes"][str(size)] for size in SIZES)
    assert small < large


def test_it_is_near_what_a_tokenizer_costs() -> None:
    """Within a factor of two for JSON; `reports/bench/forecast.py` does the same for many grammars."""
    grammar = longest(JSON)
    facts, counts = forecast(grammar), build_automaton(grammar, load_vocabulary("mistral-7b-v0.1")).counts
    entries = facts["entries"][str(SIZES[0])]["all"]
    for guess, truth in (
        (entries, counts["entries"]),
        (facts["nodes"], counts["nodes"]),
        (facts["edges"], counts["edges"]),
    ):
        assert truth / 2 < guess < truth * 2
    assert counts["suspended"] / 2 < facts["undecided"] < counts["suspended"] * 2


def test_a_grammar_that_costs_more_is_forecast_to() -> None:
    plain = longest('start: NAME ("," NAME)*\nNAME: /[a-z]+/\n%ignore " "')
    small, large = forecast(plain), forecast(longest(JSON))
    for key in ("undecided", "nodes", "edges"):
        assert small[key] < large[key]
    assert small["entries"][str(SIZES[0])]["all"] < large["entries"][str(SIZES[0])]["all"]


@pytest.mark.parametrize(
    ("text", "rewritten", "kind", "rule"),
    [(RIGHT, LEFT, "right recursion", "e : NAME"), (ALIKE, FACTORED, "common beginning", "x : NAME .")],
)
def test_causes_and_advice(text: str, rewritten: str, kind: str, rule: str) -> None:
    facts, better = forecast(longest(text)), forecast(longest(rewritten))
    found = [cause for cause in facts["causes"] if cause["kind"] == kind]
    assert found and any(rule in cause["rule"] for cause in found)
    assert any(found[0]["rule"] in sentence for sentence in facts["advice"])
    assert not [cause for cause in better["causes"] if cause["kind"] == kind]
    assert better["stack_reads"]["mean"] <= facts["stack_reads"]["mean"]


def test_a_terminal_with_many_states_is_named() -> None:
    grammar = longest('start: (WORD | "x")*\nWORD: /[a-w](b(c(d(e(f(g)?)?)?)?)?)?/\n%ignore " "')
    assert any("terminal WORD has" in sentence for sentence in forecast(grammar)["advice"])


def test_an_automaton_past_its_budget_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BUDGET", Budget(edges=10, bytes=1 << 20))
    facts = forecast(longest(JSON))
    assert facts["is_open"] and facts["edges"] is None and facts["stack_reads"] is None
    assert "past the forecast's budget" in facts["advice"][0]


def endless() -> Grammar:
    return replace(longest('start: c\nb: a\na: b | "a"\nc: a | b'), conflicts="shift")


def test_a_grammar_without_an_engine_says_why() -> None:
    assert "infinite ambiguity" in forecast(endless())["unavailable"]


def test_analyze_shows_it_with_and_without_a_vocabulary(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    grammar = longest(RIGHT)
    for vocabulary in (None, load_vocabulary("mistral-7b-v0.1")):
        report = analyze(grammar, vocabulary, pairs=False)
        assert report.to_dict()["forecast"] == forecast(grammar)
        Console(width=100).print(report)
        shown, page = capsys.readouterr().out, report.to_html()
        assert "Forecast of costs" in shown and "128k tokens" in shown and "right recursion" not in shown
        assert "Forecast of costs" in page and "write it left-recursively" in page
    assert "forecast" not in analyze(grammar, forecast=False).to_dict()
    unavailable: Any = analyze(endless())
    Console(width=100).print(unavailable)
    assert "none: " in capsys.readouterr().out and "There is none" in unavailable.to_html()
