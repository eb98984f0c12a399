"""Rust's regular expressions: what they match, where they differ from Python's, and what is refused."""

from __future__ import annotations

import re

import pytest
from written_cases import parameters

import maskwright as mw
from maskwright.analysis.fronts.expressions import Expr, from_pattern, in_both, without
from maskwright.analysis.fronts.reading import Reader
from maskwright.analysis.fronts.rust_regex import read_rust_regex


def expression(pattern: str, flags: str = "") -> Expr:
    return read_rust_regex(Reader(pattern, "p"), 0, len(pattern), flags)


def matches(pattern: str, text: str, flags: str = "") -> bool:
    return re.fullmatch(str(expression(pattern, flags).pattern), text) is not None


@pytest.mark.parametrize(("pattern", "flags", "good", "bad"), parameters("fronts", "rust_regex_texts"))
def test_what_patterns_match(pattern: str, flags: str, good: list[str], bad: list[str]) -> None:
    assert [matches(pattern, text, flags) for text in good + bad] == [True] * len(good) + [False] * len(bad)


def test_and_and_not() -> None:
    words = without(expression("[a-z]+"), expression("if|else|for"))
    assert [re.fullmatch(str(words.pattern), t) is not None for t in ("if", "iff", "i", "else", "els", "")] == [
        *(False, True, True, False, True, False)
    ]
    both = in_both(expression("a*b*"), expression("(ab)*|é"))
    assert [re.fullmatch(str(both.pattern), t) is not None for t in ("", "ab", "abab", "é")] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    "pattern", [r'"(?:[^"\\]|\\.)*"', r"0(?!1)[0-9]*", r'".*?(?<!\\)"', r"(?i:ab)|c{2,4}", r"a++b"]
)
def test_patterns_of_python_keep_their_texts(pattern: str) -> None:
    from maskwright.analysis.lexing.terminals import compile_pattern

    assert compile_pattern(str(from_pattern(pattern).pattern)) == compile_pattern(pattern)


def test_repetitions_of_repetitions_are_counted_by_depth() -> None:
    assert matches("(?:a+)?b" * 101, "ab" * 101)
    with pytest.raises(mw.GrammarError, match="too many repetitions of repetitions"):
        expression("a" + "+" * 102)
