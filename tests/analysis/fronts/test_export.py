"""Grammars written as GBNF and in llguidance's dialect: round trips, other readers, and what cannot be said."""

from __future__ import annotations

import random

import numpy as np
import pytest
from naive_fronts import Recogniser, read

import maskwright as mw
from maskwright.analysis.fronts import parse_gbnf, parse_llguidance, to_gbnf, to_llguidance
from maskwright.analysis.grammar import Grammar

ALPHABET = [
    b"a", b"b", b"if", b"(", b")", b" ", b"1", b"2.", b",", b'"', b"\\", b"-", b"]", b"^", "é".encode(), b"\n", b"{",
    b"}",
]  # fmt: skip
VOCABULARY = mw.Vocabulary.from_tokens(
    [b"</s>", *ALPHABET, *(bytes([b]) for b in range(128) if bytes([b]) not in ALPHABET)], eos=[0]
)

SAYABLE = {
    "list": 'start: "[" [value ("," value)*] "]"\nvalue: start | N\nN: /-?[0-9]+(\\.[0-9]+)?/\n%ignore /[ \\n]+/',
    "quoted": 'start: /"([^"\\\\]|\\\\.)*"/ ("," start)?',
    "signs": 'start: "]" start "^" | "-" | "\\\\" | "\\"" | "é"i',
    "left": 'start: start "," item | item\nitem: "a" | "(" start ")"',
    "empty": 'start: "a"* ["b"] ',
    "longest": '// maskwright: lexing = longest\nstart: (NAME | "if" "(" start ")") ","\nNAME: /[a-i]+/',
    "ignored": 'start: "a" start "b" |\n%ignore " "\n%ignore /#[^#]*#/',
}


def compare(first: Grammar, second: Grammar, seed: str) -> None:
    """Random texts of each are texts of the other, and so are their beginnings."""
    stores = [mw.build_store(grammar, VOCABULARY) for grammar in (first, second)]
    choose = random.Random(seed)
    for turn in range(10):
        matchers = [store.matcher() for store in stores]
        for _ in range(7):
            assert len({matcher.is_accepting() for matcher in matchers}) == 1
            allowed = [_allowed(matcher) for matcher in matchers]
            assert allowed[0] == allowed[1]
            if not allowed[turn % 2]:
                break
            token = choose.choice(sorted(allowed[turn % 2]))
            for matcher in matchers:
                matcher.advance_bytes(token)


def _allowed(matcher: mw.Matcher) -> set[bytes]:
    """What of ALPHABET the mask allows."""
    words = np.zeros(matcher.store.n_words, np.uint32)
    matcher.fill(words)
    return {token for number, token in enumerate(ALPHABET, start=1) if words[number >> 5] >> (number & 31) & 1}


@pytest.mark.parametrize("name", SAYABLE)
def test_round_trips_keep_the_language(name: str) -> None:
    grammar = mw.parse_grammar(SAYABLE[name])
    compare(grammar, parse_gbnf(to_gbnf(grammar)), name)
    compare(grammar, parse_llguidance(to_llguidance(grammar)), name)


@pytest.mark.parametrize("name", ["json", "json.compact"])
def test_grammars_of_the_library(name: str) -> None:
    grammar = mw.load_grammar(name)
    compare(grammar, parse_gbnf(to_gbnf(grammar)), name)
    compare(grammar, parse_llguidance(to_llguidance(grammar)), name)


def test_another_reader_reads_the_same() -> None:
    grammar = mw.parse_grammar(SAYABLE["list"])
    naive, store = Recogniser(read(to_gbnf(grammar))), mw.build_store(grammar, VOCABULARY)
    for text in ("[]", " [1, -2.5 , [ ]]\n", "[1,]", "[", "[1 2]", ""):
        matcher = store.matcher()
        try:
            matcher.advance_bytes(text.encode())
            assert matcher.is_accepting() == naive.matches(text.encode()), text
        except mw.IllegalTokenError:
            assert not naive.is_beginning(text.encode()), text


def test_gbnf_has_no_recursion_on_the_left() -> None:
    text = to_gbnf(mw.parse_grammar(SAYABLE["left"]))
    assert all(line.split()[0] != line.split()[2] for line in text.splitlines())
    with pytest.raises(mw.GrammarError, match="rule 'x' can begin with itself through other rules"):
        to_gbnf(mw.parse_grammar('start: x "!"\nx: y "," | "a"\ny: x "+" | "b" x'))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'start: "a" _NEWLINE _INDENT start _DEDENT | "b"\n%declare _INDENT _DEDENT\n_NEWLINE: /(\\n[ ]*)+/',
            "GBNF cannot say indentation",
        ),
        ('// maskwright: verbatim = T\nstart: "{" T "}"\nT: /[^}]+/', "GBNF cannot say verbatim terminals"),
        (
            "// maskwright: refused = B\nstart: A\nA: /a/\nB: /b/",
            "terminal B is in no rule, so that texts with it are refused",
        ),
        ('// maskwright: conflicts = shift\nstart: "a" start | "a"', "that conflicts are decided by shifting"),
        ('start: NAME "=" NAME | "if" NAME\nNAME: /[a-z]+/', "terminals IF and NAME have texts in common"),
        (
            "// maskwright: lexing = longest\nstart: (NAME | N)+\nNAME: /[a-z]+/\nN: /[0-9]+/",
            "a lexeme of N may run on",
        ),
        ("start: /a{0,3000}b/", "a repetition of up to 3000 is more than the 2000 of llama.cpp"),
    ],
)
def test_what_gbnf_cannot_say(text: str, message: str) -> None:
    with pytest.raises(mw.GrammarError, match=message):
        to_gbnf(mw.parse_grammar(text))


def test_what_llguidance_can_say_and_gbnf_cannot() -> None:
    grammar = mw.parse_grammar('start: (NAME | N)+\nNAME: /[a-z]+/\nN: /[0-9]+/\n%ignore " "')
    compare(grammar, parse_llguidance(to_llguidance(grammar)), "names")
    with pytest.raises(mw.GrammarError, match="the longest match decides here"):
        to_gbnf(grammar)
    with pytest.raises(mw.GrammarError, match="llguidance's dialect cannot say so"):
        to_llguidance(mw.parse_grammar('start: ("." | "..." | "a")+'))  # it does not back up


COMPETING = {
    "merged": 'start: "abc" e "a" "b" | "b" e "ab"\ne: "c"',
    "merged lists": 'start: "<" list "ab" | "[" list "a" "b"\nlist: "x" | list "x"',
    "merged, behind an empty rule": 'start: "<" e "ab" | "[" e "a" "b"\ne: "x" f\nf: | "f"',
    "an end that does not compete": 'start: "<" x | "k" ".."\nx: ("." | "..." | "a")+',
}
APART = {
    "read in place": 'start: ("<" | "[") e ("a" "b" | "ab")\ne: "c"',
    "by the same way": 'start: "<" list ">" | "[" list "]"\nlist: item list |\nitem: "x" | "a" | "ab" | "b"',
    "never together": 'start: "<" "a" "b" | "[" "ab" "a"',
    "an end": 'start: "<" x | "k" ".."\nx: ("." | "..." | "a" | "..")+',
}


@pytest.mark.parametrize("name", COMPETING)
def test_terminals_that_compete_by_merged_states_are_refused(name: str) -> None:
    """llguidance knows exactly what can come, and would read "ab" as "a", "b" where we read one lexeme."""
    with pytest.raises(mw.GrammarError, match="terminals compete"):
        to_llguidance(mw.parse_grammar(COMPETING[name]))


@pytest.mark.parametrize("name", APART)
def test_terminals_that_compete_alike_can_be_said(name: str) -> None:
    grammar = mw.parse_grammar(APART[name])
    compare(grammar, parse_llguidance(to_llguidance(grammar)), name)


def test_other_types_are_refused() -> None:
    for write in (to_gbnf, to_llguidance):
        with pytest.raises(mw.GrammarError, match="grammar"):
            write("json")  # type: ignore[arg-type]
