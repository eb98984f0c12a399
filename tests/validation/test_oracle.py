"""The oracle against hand-made cases and brute force over short texts."""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from functools import lru_cache

import pytest
from oracle import Oracle
from random_patterns import random_pattern
from shares import share

from maskwright.analysis.grammar.grammar import Conflicts, Grammar, Lexing, Terminal
from maskwright.analysis.loading import Indenter, parse_grammar
from maskwright.validation.oracle import GrammarParse
from maskwright.validation.oracle_patterns import Pattern, first_bytes


@lru_cache(maxsize=64)
def toy(text: str) -> Oracle:
    return Oracle(parsed(text))


def parsed(text: str, conflicts: Conflicts | None = None) -> Grammar:
    """By the longest match, unless the text says otherwise."""
    lexing: Lexing | None = None if "maskwright: lexing" in text else "longest"
    return parse_grammar(text, lexing=lexing, conflicts=conflicts)


BACK = "start: (A | B | C)*\nA: /aaa/\nB: /a+b+z/\nC: /b+x/\n"
DOTS = 'start: (DOT | ELLIPSIS)*\nDOT: "."\nELLIPSIS: "..."\n'
ONE_ELLIPSIS = 'start: ELLIPSIS | DOT DOT "x"\nDOT: "."\nELLIPSIS: "..."\n'
COMMENT = 'start: N ("/" "*"? N)*\nN: /[a-z]/\n%ignore /\\/\\*(.|\\n)*?\\*\\//\n%ignore " "\n'
KEYWORD = 'start: (IF NAME ";")*\nIF: "if"\nNAME: /[a-z]+/\n%ignore " "\n'
SHADOWED = "start: N (C N)*\nN: /[a-z]/\nC: /#[a-z]*/\nD: /#[a-z]*;?/\n%ignore D\n"

STRINGS = """start: (N | s)*
s: FS (TEXT | "{" start "}")* FE
FS: "f'"
FE: "'"
TEXT: /[^{}']+/
N: /[a-z]+/
%ignore " "
// maskwright: verbatim = TEXT FE
"""
LINES = """start: (v _NL | "if" v ":" _NL _INDENT v _NL _DEDENT)*
v: N | "<" TEXT? (">" | "{" v "}" TEXT? ">")
N: /[a-z]+/
TEXT: /[^{}>]+/
_NL: /(\\n[ ]*)+/
%ignore " "
%declare _INDENT _DEDENT
// maskwright: verbatim = TEXT
"""
REFUSED = """start: "'" TEXT* FE
TEXT: /[^'\\n\\\\]+/
FE: "'"
BROKEN: /\\n|\\\\/
// maskwright: verbatim = TEXT FE
// maskwright: refused = BROKEN
"""
DIVIDE = """start: e (";" e)*
e: t ("/" t)*
t: N | /\\/[^\\/;]+\\//
N: /[a-z]/
// maskwright: lexing = contextual
// maskwright: reserved = all
"""
RESERVED = """start: "is" N "be" N
N: /[a-z]+/
%ignore " "
// maskwright: lexing = contextual
// maskwright: reserved = all
"""
SOFT = RESERVED.replace('N "be"', 'n "be"').replace("start", 'n: N | "be"\nstart')
TWO_WAYS = """start: (x | y)*
x: a N "."
a: N
y: b N TEXT ";"
b: N
N: "n"
TEXT: /[^;]+/
%ignore " "
// maskwright: verbatim = TEXT
"""


@pytest.mark.parametrize(
    ("grammar", "alphabet", "longest", "more"),
    [
        (BACK, "abxz", 4, 3),
        (DOTS, ".", 6, 3),
        (ONE_ELLIPSIS, ".x", 5, 3),
        (KEYWORD, "if ;", 3, 4),
        (SHADOWED, "x#;", 5, 3),
        (COMMENT, "/*x", 3, 6),
        ("start: D E | D F\nD: /[.]/\nE: /[.]{3}/\nF: /[.][0-9]/\n", ".1", 4, 4),
        ("start: F N | F E\nF: /[0-9]+[.]([0-9]+)?(e[0-9]+)?/\nN: /el/\nE: /e[0-9]/\n", "1.el", 3, 4),
        ("start: (A | B | C)*\nA: /a(?!b)/\nB: /ab+c/\nC: /x/\n", "abcx", 4, 3),
        ("start: A B C | D\nA: /a(?=bbc)/\nB: /bb/\nC: /c/\nD: /abx/\n", "abcx", 4, 3),
        ("start: (A | B)*\nA.2: /ab*/\nB: /abbc/\n", "abc", 4, 3),
        ("start: (A B | B A | N)*\nA: /if\\b/\nB: / /\nN: /n+/\n", "ifn ", 3, 4),
        ('start: S+\nS: /"(?!"")[ab]*?(?<!b)"/\n', '"ab', 4, 4),
        ("start: A (C | B)\nA: /a|ab/\nB: /b/\nC: /c/\n", "abc", 4, 3),  # /a|ab/ is its longest match
        ("start: A B | C\nA: /a/\nB: /b/\nC: /a(.|b)*z/\n", "abz", 4, 3),
        ("start: A B* \nA: /a$/\nB: /b/\n", "ab", 3, 3),
        (STRINGS, "f'{}", 3, 3),
        (DIVIDE, "a/;", 4, 3),
        ("start: A (C | B)*\nA: /a|ab/\nB: /b+/\nC: /cb?/\n// maskwright: verbatim = C\n", "abc", 4, 3),
        ("start: (A t E)*\nt: T?\nA: /a|aba/\nE: /b/\nT: /[^b]+b?/\n// maskwright: verbatim = T\n", "ab", 4, 4),
    ],
)
def test_a_prefix_is_legal_iff_a_legal_text_begins_with_it(
    grammar: str, alphabet: str, longest: int, more: int
) -> None:
    oracle = toy(grammar)
    lengths = range(longest + more + 1)
    texts = ["".join(text) for n in lengths for text in itertools.product(alphabet, repeat=n)]
    legal = [text for text in texts if oracle.root.feed(text.encode()).is_legal_text]
    begins = {text[:i] for text in legal for i in range(len(text) + 1)}
    assert legal
    for text in texts:
        if len(text) <= longest:
            assert oracle.root.feed(text.encode()).is_legal == (text in begins), text


def test_a_match_that_only_the_end_of_the_text_stops_is_not_backed_up() -> None:
    oracle = toy("start: F N\nF: /[0-9]+[.](e[0-9]+)?/\nN: /[a-z]+/\n")
    assert oracle.is_legal_text(b"1.e")  # another continuation than e5 stops F too
    assert not toy(COMMENT).is_legal_text(b"x/*x")  # nothing stops the comment


def test_look_aheads_past_the_lexeme_hold() -> None:
    """As in the engine, where the next byte decides them."""
    oracle = toy("start: A B\nA: /if\\b/\nB: /x/\n")
    assert oracle.is_legal_prefix(b"if") and not oracle.is_legal_prefix(b"ifx")


def test_newline_that_cannot_grow() -> None:
    block = "start: X NL _INDENT X NL _DEDENT\nX: /x/\nNL: /;[\\n][\\t]*/\n%declare _INDENT _DEDENT\n"
    with pytest.raises(ValueError, match="layout"):
        parse_grammar(block, layout="auto")
    oracle = Oracle(parse_grammar(block, lexing="longest", layout=Indenter("NL", "_INDENT", "_DEDENT", tab_length=4)))
    assert oracle.is_legal_prefix(b"x;\n")  # tabs may follow
    assert oracle.is_legal_text(b"x;\n\tx;\n")
    assert oracle.is_legal_text(b"x;\n\tx;\n\t")  # the end of the text closes the block
    assert oracle.is_legal_text(b"x;\n\tx;\n\t\t")  # whatever its column
    assert not oracle.is_legal_prefix(b"x;\n\tx;\n\tx")
    fixed = Indenter("NL", "_INDENT", "_DEDENT")
    oracle = Oracle(parse_grammar(block.replace("[\\t]*", ""), lexing="longest", layout=fixed))
    assert oracle.is_legal_prefix(b"x")
    assert not oracle.is_legal_prefix(b"x;")  # a newline at column 0 always: the block can never be indented


TEXTS = ["".join(text) for n in range(5) for text in itertools.product("abc", repeat=n)]
FOLLOWERS = [text for text in TEXTS if len(text) <= 3]
SINGLES = ("a", "b", "c", "[ab]", "[^a]", ".")
REPEATS = ("*", "+", "?", "*?", "+?", "??", "{1,2}", "{2}")
AROUND = ("(?!{})", "(?={})", "(?<!a){}", "(?<=b){}", "(?<!ab){}")
ORDERED = re.compile(r"[*+?]\?|\(\?")
"""Looks around, or prefers one match to another."""


@pytest.mark.parametrize("n", share([40, 400], 1))
def test_a_match_that_is_not_open_is_the_same_whatever_follows(n: int) -> None:
    rng = random.Random(5)
    decided: Counter[bool] = Counter()
    for _ in range(n):
        source = random_pattern(rng, 4, SINGLES, REPEATS, AROUND)
        pattern, is_ordered = Pattern(Terminal("T", source)), ORDERED.search(source) is not None
        assert is_ordered == (pattern._language is None)
        for text in rng.sample(TEXTS, 12):
            end, is_open = pattern.scan(text, 0)
            assert end == pattern.end(text, 0) == expected_end(source, text, is_ordered)
            if not is_open:
                assert {expected_end(source, text + more, is_ordered) for more in FOLLOWERS} == {end}, (source, text)
                decided[is_ordered] += 1
    assert min(decided.values()) > n


def expected_end(source: str, text: str, is_ordered: bool) -> int:
    """The end of the match as `re` finds it if the pattern prefers one, else of the longest; -1 for none."""
    if is_ordered:
        match = re.match(source, text)
        return match.end() if match else -1
    return max((end for end in range(len(text) + 1) if re.fullmatch(source, text[:end])), default=-1)


@pytest.mark.parametrize("pattern", ["a|ab", "a(b|bc)*", "ab?(bc)?", "(a|ab)(c|bcd)", "<|<=|<>", "(?i:a|aB)[]c]?"])
def test_the_longest_match_holds_within_a_pattern(pattern: str) -> None:
    """As in the engine; `re` prefers the first alternative."""
    oracle = toy(f'start: T "."?\nT: /{pattern}/\n')
    texts = [*TEXTS, "<", "<=", "<>", "a]", "aB]", "AbC"]
    assert [text for text in texts if oracle.is_legal_text(text.encode())] == [
        text for text in texts if re.fullmatch(pattern, text)
    ]
    assert all(
        oracle.is_legal_prefix(text[:end].encode())
        for text in texts
        if re.fullmatch(pattern, text)
        for end in range(len(text))
    )
    parse = GrammarParse(parsed(f"start: T\nT: /{pattern}/\n"))
    assert [text for text in texts if parse.refusal(text) is None] == [
        text for text in texts if re.fullmatch(pattern, text)
    ]


def test_an_empty_part_is_not_copied() -> None:
    pattern = Pattern(Terminal("T", "a(?:){100000000}((?:){0,100000000}b)*"))
    assert pattern.scan("abbc", 0) == (3, False)


def test_a_pattern_that_never_ends_is_not_open() -> None:
    pattern = Pattern(Terminal("T", r"a(b[^\s\S]|c)?"))
    assert [pattern.scan(text, 0) for text in ("a", "ab", "ac", "xa")] == [
        (1, True),
        (1, False),
        (2, False),
        (-1, False),
    ]


@pytest.mark.parametrize("character", "a\x7f\x80é\u07ff\u0800\u0905€\uffff\U00010000\U00050000\U0010ffff")
def test_first_bytes_are_those_of_utf8(character: str) -> None:
    """Those of some characters were taken for 0."""
    assert first_bytes(Terminal("T", f"[{character}]+a")) == {character.encode()[0]}
