"""Properties of characters by name, against the package `regex`, whose version of Unicode may be another one."""

from __future__ import annotations

import json
import re
import unicodedata
from functools import cache

import pytest
from paths import ROOT

import maskwright as mw
from maskwright.analysis.lexing.terminals import compile_pattern
from maskwright.analysis.regex.properties import property_of, with_classes


@cache
def assigned() -> list[str]:
    """The characters of this Python's Unicode that are there in the table's too, where each has a script."""
    table = json.loads((ROOT / "analysis" / "regex" / "unicode_properties.json").read_text(encoding="utf-8"))
    ranges = [one for name in table["scripts"] for one in property_of(f"Script={name}") or ()]
    codes = {code for begin, end in ranges for code in range(begin, end + 1)}
    return [chr(code) for code in sorted(codes) if unicodedata.category(chr(code)) not in ("Cn", "Cs", "Co")]


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("Script=Greek", "Script=Greek"),
        ("sc=Cyrl", "Script=Cyrillic"),
        ("Script=Han", "Script=Han"),
        ("Script=Common", "Script=Common"),
        ("XID_Start", "XID_Start"),
        ("IDC", "ID_Continue"),
        ("Alphabetic", "Alphabetic"),
        ("White_Space", "White_Space"),
        ("Emoji", "Emoji"),
        ("Uppercase", "Uppercase"),
        ("Any", "Any"),
        ("ASCII", "ASCII"),
    ],
)
def test_properties_are_those_of_regex(name: str, theirs: str) -> None:
    other = pytest.importorskip("regex").compile(rf"\p{{{theirs}}}")
    ranges = property_of(name)
    assert ranges is not None and property_of(name.lower().replace("_", " "), is_loose=True) == ranges
    codes = {code for begin, end in ranges for code in range(begin, end + 1)}
    differ = [each for each in assigned() if (ord(each) in codes) != bool(other.match(each))]
    assert len(differ) <= len(codes) // 500, differ[:10]


def test_names_are_said_exactly_where_ecmascript_wants_that() -> None:
    assert all(
        property_of(name) is None for name in ("Greek", "greek", "Script=greek", "alphabetic", "gc=Any", "Script=", "")
    )
    assert property_of("greek", is_loose=True) == property_of("Script=Greek")
    with pytest.raises(mw.GrammarError, match="unknown property 'Greece' at position 1"):
        mw.load_regex(r"a\p{Greece}")
    with pytest.raises(mw.GrammarError, match="misplaced property"):  # a comment may hold a bracket
        mw.load_regex("(?x)a # [\n\\p{Greek}")
    for pattern in (r"[!-\p{Lu}]", r"(?i)[\P{Lu}]", r"(?#[)\p{L}"):
        with pytest.raises(mw.GrammarError, match="misplaced property"):
            mw.load_regex(pattern)
    for pattern in (r"\p{Script=Greek}+", r"[\p{Alphabetic}]"):
        mw.load_regex(pattern, dialect="ecma")


@pytest.mark.parametrize(
    ("pattern", "texts", "others"),
    [
        (r"\p{Greek}+", ["α", "βγ"], ["a", ""]),
        (r"\P{Greek}", ["a", "-"], ["α"]),
        (r"\p{^Greek}", ["a"], ["α"]),
        (r"\P{^Greek}", ["α"], ["a"]),
        (r"[\p{Greek}_-]+", ["α_-"], ["a"]),
        (r"[^\p{Greek}_]", ["a"], ["α", "_"]),
        (r"[]\p{Greek}]\]", ["]]", "α]"], ["α"]),
        (r"[[]\p{Greek}", ["[α"], ["[", "α"]),
        (r"[a[]\p{Lu}[\]]", ["[A]", "aB]"], ["a]"]),
        (r"\\p{2}", [r"\pp"], ["α"]),
        (r"[\\]\p{Nd}", ["\\1"], ["1"]),
        (r"\[\p{Lu}\]", ["[A]"], ["A"]),
        (r"(?i:\P{Lu})", ["-"], ["a", "A"]),
        (r"a|\P{Any}", ["a"], ["]", "b"]),
        (r"[\p{Lu}-]a", ["-a", "Aa"], ["ba"]),
    ],
)
def test_python_s_patterns_take_them_as_regex_does(pattern: str, texts: list[str], others: list[str]) -> None:
    theirs = pytest.importorskip("regex").compile(pattern)
    dfa, ours = compile_pattern(pattern), re.compile(with_classes(pattern))
    for text in [*texts, *others]:
        wanted = text in texts
        assert (theirs.fullmatch(text) is not None) == (ours.fullmatch(text) is not None) == wanted, text
        assert dfa.matches(text.encode()) == wanted, text


def test_terminals_of_grammars() -> None:
    grammar = mw.parse_grammar('start: (NAME ".")+\nNAME: /[\\p{XID_Start}_][\\p{XID_Continue}]*/')
    matcher = mw.build_store(
        grammar, mw.Vocabulary.from_tokens([b"</s>", *(bytes([i]) for i in range(256))], eos=[0])
    ).matcher()
    assert matcher.try_bytes("größe.λ_1.".encode()) and matcher.is_accepting() and not matcher.try_bytes(b"1")
