"""Regular expressions as whole texts, against `re.fullmatch`."""

from __future__ import annotations

import random
import re
import time
import warnings

import pytest
from random_patterns import random_pattern
from shares import share

from maskwright.analysis.errors import GrammarError, LimitError, MaskwrightError
from maskwright.analysis.regex import Dfa, intersect
from maskwright.analysis.regex.spell import valid_utf8
from maskwright.analysis.regex.whole import regex_automaton

SINGLES = (
    "a", "b", "é", "😀", ".", "[ab]", "[^a]", r"\d", r"\w", r"\s", r"\D", r"\W", r"\S", r"\.", "-", r"\x61", r"\u0062",
    r"\n", "k",
)  # fmt: skip
SINGLES += (r"[\d-]", r"[a-cé]", " ", "_", "1", "$", "^", "(?:)", r"\Z", r"\A", r"\b", r"\B", "A")
REPEATS = ("*", "+", "?", "{1,2}", "{2}", "{0,3}", "{1,}", "*?", "+?", "??", "{1,2}?", "*+", "?+", "++", "{1,2}+")
AROUND = (
    "({})", "(?:{})", "(?={})", "(?!{})", "(?<={})", "(?<!{})", "^{}$", "{}$", "(?>{})", "(?i:{})", "(?s:{})",
    "(?m:{})", "(?a:{})",
)  # fmt: skip
LETTERS = "ab1_ -.x/\n\té😀AZ\xa0\u2028٣\0kK\u212a"
FLAGS = ("", "", "", "i", "m", "s", "a", "ms", "ia")


def compiled(pattern: str, flags: str) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern, sum(int(getattr(re, letter.upper())) for letter in flags))
    except re.error:
        return None


@pytest.mark.parametrize("seed", share(range(50), 1))  # 10,000 patterns, each with 25 texts
def test_fullmatch_says_the_same(seed: int) -> None:
    rng = random.Random(seed)
    used = refused = 0
    for _ in range(200):
        pattern, flags = random_pattern(rng, rng.randint(1, 4), SINGLES, REPEATS, AROUND), rng.choice(FLAGS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            python = compiled(pattern, flags)
            try:
                dfa = regex_automaton(pattern, flags)
            except MaskwrightError as error:
                known = "can match several lengths" in str(error) or "inside a look-behind" in str(error)
                assert known if python else "re refuses it" in str(error), (pattern, error)
                refused += 1
                continue
        assert python is not None, pattern
        used += 1
        for _ in range(25):
            text = "".join(rng.choice(LETTERS if rng.random() < 0.3 else "ab1\n") for _ in range(rng.randint(0, 6)))
            try:
                wanted = python.fullmatch(text) is not None
            except SystemError:  # a fault of some versions of re
                continue
            assert dfa.matches(text.encode()) == wanted, (pattern, flags, text)
        assert intersect(dfa, valid_utf8()) == dfa
    assert used > 160 and refused < 40


@pytest.mark.parametrize(
    ("pattern", "same"),
    [
        ("a*?b", "a*b"),
        ("(?>a|b)c", "[ab]c"),
        ("(?>a|bc)c", "ac|bcc"),
        ("a*+b", "a*b"),
        ("[ab]*+b", "(?!)"),
        ("(?=a).b", "ab"),
        ("(?!a)[ab]", "b"),
        ("a(?=b)", "(?!)"),
        ("^a$", "a"),
        (r"\Aa\Z", "a"),
        ("a$\n", "a\n"),
        ("(?m)a$\nb", "a\nb"),
        ("(?i:k)", "[kK\u212a]"),
        ("((a+)+)+", "a+"),
        (".{2}.{1,3}", ".{3,5}"),
    ],
)
def test_equal_patterns_have_equal_automata(pattern: str, same: str) -> None:
    assert regex_automaton(pattern) == regex_automaton(same)


def test_the_dialects_differ() -> None:
    assert regex_automaton(r"\d").matches("٣".encode())
    assert not regex_automaton(r"\d", dialect="ecma").matches("٣".encode())
    assert regex_automaton(r"[^]", dialect="ecma").matches(b"\n")
    assert regex_automaton("a|b", "u", "ecma") == regex_automaton("[ab]")
    assert regex_automaton("a.", "s").matches(b"a\n")


@pytest.mark.parametrize(
    ("pattern", "flags", "dialect", "message"),
    [
        (r"(a)\1", "", "python", r"a back-reference \(\\1 at offset 3\) cannot be compiled"),
        (r"(a)(?(1)b|c)", "", "python", "a conditional group"),
        ("(?>a*b?)a", "", "python", "an atomic group that can match several lengths"),
        ("(?<=a$)", "", "python", "inside a look-behind"),
        ("a(", "", "python", "Python's re refuses it"),
        ("a", "z", "python", "flag 'z' is not one of"),
        ("a", "au", "python", "ASCII and UNICODE flags are incompatible"),
        ("(?a)(?u)x", "", "python", "ASCII and UNICODE flags are incompatible"),
        ("a", "i", "ecma", "the flags 'i' of ECMA 262 are not known"),
        ("a", "", "posix", "the dialect 'posix' is not known"),
        (r"(a)\1", "", "ecma", "a back-reference, which no automaton reads, at offset 3"),
    ],
)
def test_what_is_wrong_is_said(pattern: str, flags: str, dialect: str, message: str) -> None:
    with pytest.raises(GrammarError, match=message):
        regex_automaton(pattern, flags, dialect)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "pattern",
    [
        "((ab?){1,100}){1,100}",
        "(x|yz){1000000}",
        "(a|b)*a(a|b){20}",
        "(?!.*(a|b).{30}c).*",
        ".{20000}",
        "(" * 300 + "a" + ")*" * 300,
        "a{" + "9" * 5_000 + "}",
    ],
)
def test_patterns_that_are_too_large_are_refused_soon(pattern: str) -> None:
    before = time.process_time()
    with pytest.raises(LimitError, match=r"pattern .*: it"):
        regex_automaton(pattern)
    assert time.process_time() - before < 5  # a tenth of it on a quiet machine


@pytest.mark.parametrize(
    ("pattern", "text"),
    [(r"\-\_\@", "-_@"), ("a{,2}", "a{,2}"), (r"[\w-a]", "-"), (r"[a-\d]", "-"), ("{]}", "{]}"), ("(?=a)+a", "a")],
)
def test_what_the_flag_u_refuses_and_schemas_have(pattern: str, text: str) -> None:
    assert regex_automaton(pattern, dialect="ecma").matches(text.encode())


def test_a_second_request_is_a_look_up() -> None:
    found = regex_automaton("a+b")
    assert isinstance(found, Dfa)
    assert regex_automaton("a+b") is found
