"""Facts to render: of a small grammar with layout-free rules, alone and with a vocabulary, and of one whose names are hostile."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from maskwright.analysis.grammar.grammar import Grammar, Rule, Terminal
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.report.analysis import analyze

SCRIPT = "<script>alert('x')</script>"
HOSTILE_NAME = f'a "&" {SCRIPT} [bold]'
HOSTILE_TEXT = f"\"{SCRIPT}&'\n\u202e"


def sum_grammar(name: str = "sums", number: str = "NUMBER", other: str = "other") -> Grammar:
    """Sums and differences of numbers and brackets: ``sum : item | sum + item | sum - item``, blanks ignored."""
    terminals = (
        Terminal(number, "[0-9]+"),
        Terminal("__ANON_0", r"\+", literal="+"),
        Terminal("__ANON_1", r"\-", literal="-"),
        Terminal("LPAR", r"\(", literal="("),
        Terminal("RPAR", r"\)", literal=")"),
        Terminal(other, "[x]", literal="x"),
        Terminal("BLANK", " +"),
    )
    n = len(terminals)
    right = ((n + 1,), (n, 1, n + 1), (n, 2, n + 1))
    items = ((0,), (3, n, 4), (5,))
    rules = (*(Rule(n, rhs) for rhs in right), *(Rule(n + 1, rhs) for rhs in items))
    return Grammar(name, terminals, ("sum", "item"), rules, n, ignored=frozenset({6}))


def small_vocabulary(name: str = "letters") -> Vocabulary:
    texts = [
        "0", "1", "12", "+", "-", "(", ")", "x", " ", "1+", "+1", "(x", "x)", "1 + ", ") -", "+)", "((", "1)+(", "x-x",
    ]  # fmt: skip
    return Vocabulary(name, (b"", *(text.encode() for text in texts)), {0: "</s>"}, (0,))


@pytest.fixture(scope="session")
def _facts() -> dict[str, Any]:
    return analyze(sum_grammar(), small_vocabulary()).to_dict()


@pytest.fixture
def facts(_facts: dict[str, Any]) -> dict[str, Any]:
    """Facts of a grammar with a vocabulary."""
    return deepcopy(_facts)


@pytest.fixture(scope="session")
def grammar_facts() -> dict[str, Any]:
    """Facts of a grammar alone."""
    return analyze(sum_grammar()).to_dict()


@pytest.fixture(scope="session")
def engine_facts() -> dict[str, Any]:
    """Facts with those of the exact engine."""
    return analyze(sum_grammar(), small_vocabulary(), exact=True).to_dict()


@pytest.fixture
def hostile_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts with markup, quotes, control and direction characters in every name and text that a user chooses."""
    hostile = {"NUMBER": HOSTILE_NAME, "BLANK": HOSTILE_NAME + "2"}

    def renamed(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: renamed(item) for key, item in value.items()}
        if isinstance(value, list):
            return [renamed(item) for item in value]
        return hostile.get(value, value) if isinstance(value, str) else value

    changed: dict[str, Any] = renamed(facts)
    changed["grammar"].update(name=HOSTILE_NAME, start=HOSTILE_NAME)
    changed["grammar"]["terminal_texts"][:2] = [HOSTILE_TEXT, HOSTILE_TEXT]
    changed["grammar"]["layout"] = {
        "newline": HOSTILE_NAME,
        "indent": HOSTILE_NAME,
        "dedent": HOSTILE_NAME,
        "brackets": [[HOSTILE_NAME, HOSTILE_NAME]],
        "tab_length": 8,
        "tabs": "lark",
    }
    changed["grammar"]["declared"] = [HOSTILE_NAME]
    changed["tokenizer"]["name"] = HOSTILE_NAME
    for state in changed["states"]:
        state["text"] = HOSTILE_TEXT
    return changed
