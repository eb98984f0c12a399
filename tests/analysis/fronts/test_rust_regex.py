"""Rust's regular expressions: what they match, where they differ from Python's, and what is refused."""

from __future__ import annotations

import re

import pytest

import maskwright as mw
from maskwright.analysis.fronts.expressions import Expr, from_pattern, in_both, without
from maskwright.analysis.fronts.reading import Reader
from maskwright.analysis.fronts.rust_regex import read_rust_regex


def expression(pattern: str, flags: str = "") -> Expr:
    return read_rust_regex(Reader(pattern, "p"), 0, len(pattern), flags)


def matches(pattern: str, text: str, flags: str = "") -> bool:
    return re.fullmatch(str(expression(pattern, flags).pattern), text) is not None


@pytest.mark.parametrize(
    ("pattern", "flags", "good", "bad"),
    [
        (r"[a-z&&[^aeiou]]+", "", ["bcd"], ["abc", ""]),
        (r"[\w--a-z]", "", ["A", "_", "é", "٣"], ["a", "-"]),
        (r"[a-c~~b-d]", "", ["a", "d"], ["b", "c"]),
        (r"[]a]|[^]a]", "", ["]", "a", "b"], ["ab"]),
        (r"[a\-z-]", "", ["a", "-", "z"], ["b"]),
        (r"[[:alpha:][:^ascii:]]", "", ["a", "é"], ["1"]),
        (r"\x41\x{42}\u{43}\u0044\U00000045", "", ["ABCDE"], ["abcde"]),
        (r"a.c", "", ["abc", "a\rc"], ["a\nc"]),
        (r"a.c", "s", ["a\nc"], ["ac"]),
        (r"(?i)select", "", ["SeLeCt", "ſelect"], ["selec"]),
        (r"i", "i", ["i", "I"], ["ı", "İ"]),
        (r"[^a]", "i", ["b"], ["a", "A"]),
        (r"a(?i:b)c|(?i)d(?-i)e", "", ["abc", "aBc", "De"], ["Abc", "DE"]),
        (r" a b # two" + "\n c", "x", ["abc"], ["a b"]),
        (r"\d{2,3}", "", ["12", "٣٣٣"], ["1", "1234"]),
        (r"\s", "", [" ", "\u2028", "\x0b"], ["\x1c", "a"]),
        (r"\p{Lu}\P{L}\pN", "", ["A-1"], ["a-1", "AB1"]),
        (r"\p{uppercase letter}\p{^lu}\p{ASCII}\P{Any}?", "", ["Aaa", "É1~"], ["AAA", "Aaé"]),
        (r"(?P<n>a|b)(?<m>c)(?:d)*", "", ["ac", "bcdd"], ["c"]),
        (r"\/\.\"\-", "", ['/."-'], ["x"]),
        (r"(a|)(b?){2}", "", ["", "a", "abb"], ["abbb"]),
    ],
)
def test_what_patterns_match(pattern: str, flags: str, good: list[str], bad: list[str]) -> None:
    assert [matches(pattern, text, flags) for text in good + bad] == [True] * len(good) + [False] * len(bad)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("a*?", "1:2: a lazy quantifier is not supported"),
        ("^a", "1:1: ^ is not supported"),
        (r"a\b", r"1:2: \b is not supported"),
        ("a(?=b)", "1:2: look-arounds"),
        ("a(?<!b)", "look-arounds"),
        ("(?-u)a", "the flag -u"),
        ("(?U)a", "the flag 'U' is not supported"),
        (r"\p{Greek}", "1:1: the property 'Greek' is not supported"),
        (r"\q", r"1:1: unknown escape \q"),
        ("(a", "expected ')' to close a group"),
        ("a)", "1:2: this closing parenthesis closes no group"),
        ("[a", "1:1: this class of the pattern has no closing bracket"),
        ("[z-a]", "1:2: the range z-a is none"),
        ("*a", "1:1: there is nothing to repeat"),
        ("a{3,1}", "fewer at most"),
        ("a{,3}", "1:2: this { begins no repetition"),
        (r"\ud83d\ude00", r"1:1: the escape \ud83d stands for no character"),
        (r"[\udc00]", r"1:2: the escape \udc00 stands for no character"),
        (r"\x4", "1:1: an escape that needs 2 hexadecimal digits"),
        ("a{99999999}", "1:2: more than 1,048,576 repetitions"),
        ("a" + "{2}" * 200, "too many repetitions of repetitions"),
        ("a\\", "the pattern ends in a backslash"),
        ("[[:foo:]]", "unknown class [:foo:]"),
        ("(" * 5000, "groups are nested more than"),
        ("[" * 5000, "groups are nested more than"),
    ],
)
def test_what_is_refused(pattern: str, message: str) -> None:
    with pytest.raises(mw.GrammarError, match=re.escape(message)):
        expression(pattern)


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
