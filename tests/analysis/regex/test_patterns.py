"""The language of a pattern against `re` itself: s is in L(P) iff P matches exactly s before some text."""

from __future__ import annotations

import bisect
import itertools
import re

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from shares import check_examples, share

from maskwright.analysis.errors import LimitError, TerminalError
from maskwright.analysis.grammar.grammar import Terminal
from maskwright.analysis.lexing import terminals
from maskwright.analysis.lexing.terminals import compile_pattern, lookahead_beyond_end
from maskwright.analysis.nesting import on_own_stack
from maskwright.analysis.regex import machine


def texts(alphabet: str, longest: int) -> list[str]:
    return ["".join(letters) for n in range(longest + 1) for letters in itertools.product(alphabet, repeat=n)]


ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\w", r"\W", r"\s", "(?s:.)", "(?i:A)", "é"])
ANCHORS = st.sampled_from([r"\b", "^", "$", r"\A", r"\Z", "(?m:^)", "(?m:$)"])
ALPHABET = "ab\n-é"


@st.composite
def looks(draw: st.DrawFn) -> str:
    """A look-around of at most two characters, so that two characters of following text decide it."""
    if draw(st.booleans()):
        return draw(ANCHORS)
    kind = draw(st.sampled_from(["(?=", "(?!", "(?<=", "(?<!"]))
    last = draw(st.sampled_from(["", "a", "[^a]"] if "<" in kind else ["", "b", "a?", "[^a]*"]))
    return f"{kind}{draw(ATOMS)}{last})"


@st.composite
def patterns(draw: st.DrawFn, depth: int = 4) -> tuple[str, bool]:
    """A pattern of free choices and look-arounds, and whether it may match the empty string."""
    kind = draw(st.integers(0, 4)) if depth else 0
    if kind == 0:
        return draw(ATOMS), False
    left, left_nullable = draw(patterns(depth - 1))
    if kind == 1:
        right, right_nullable = draw(patterns(depth - 1))
        return left + right, left_nullable and right_nullable
    if kind == 2:
        right, right_nullable = draw(patterns(depth - 1))
        return f"(?:{left}|{right})", left_nullable or right_nullable
    if kind == 3:
        look = draw(looks())
        return (look + left if draw(st.booleans()) else left + look), left_nullable
    if left_nullable:
        return left, True
    quantifier = draw(st.sampled_from(["*", "+", "?", "{2}", "{1,2}"]))
    return f"(?:{left}){quantifier}", quantifier in "*?"


@pytest.mark.parametrize("n", share([15, 150], 1))
def test_free_patterns_are_what_re_can_match_before_some_text(n: int) -> None:
    check_examples(check_free_pattern, n, patterns())


def check_free_pattern(drawn: tuple[str, bool]) -> None:
    pattern, _ = drawn
    dfa = compile_pattern(pattern)
    before = [(after, re.compile(f"(?:{pattern})(?={re.escape(after)}\\Z)")) for after in texts(ALPHABET, 2)]

    def can_match(text: str) -> bool:
        found = (matcher.match(text + after) for after, matcher in before)
        return any(match is not None and match.end() == len(text) for match in found)

    for text in texts(ALPHABET, 3):
        assert dfa.matches(text.encode()) == can_match(text), (pattern, text)


DETERMINISTIC = st.sampled_from(["a", "b", "c", ".", "[ab]", "[^a]", "(?:ab|c)", "(?:a|bc)"])
ITEMS = st.one_of(
    DETERMINISTIC,
    st.builds(str.__add__, DETERMINISTIC, st.sampled_from(["*?", "+?", "??", "{1,2}?", "{2,}?"])),
    st.builds(str.__add__, DETERMINISTIC, st.sampled_from(["*+", "++", "?+", "{1,2}+"])),
    st.sampled_from(["(?>a|ab)", "(?>ab|a)", "(?>bc|b|c)", "(?:a|ab)*?", "(?:bc|b|c)+?", "(?:ab|a){1,2}?"]),
    st.builds("(?>{}{})".format, DETERMINISTIC, st.sampled_from(["", "*", "+", "?"])),
    st.builds("({}{})".format, st.sampled_from(["?=", "?!", "?<=", "?<!"]), st.sampled_from("abc.")),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(ITEMS, min_size=1, max_size=4).map("".join))
def test_without_free_choices_the_language_is_what_re_returns(pattern: str) -> None:
    """No alternative or greedy quantifier leaves a choice here, so what `re.match` returns over all texts is L."""
    try:
        dfa = compile_pattern(pattern)
    except TerminalError:
        assume(False)
    matcher = re.compile(pattern)
    words = [*texts("abc", 7), *(f"{text}d" for text in texts("abc", 6))]  # what a look-ahead sees may be any character
    returned = {match[0] for match in map(matcher.match, words) if match is not None}
    for text in texts("abc", 4):
        assert dfa.matches(text.encode()) == (text in returned), (pattern, text)
    longer = compile_pattern(f"c{pattern}")
    if not longer.is_empty and not lookahead_beyond_end(Terminal("T", f"c{pattern}")):
        matcher = re.compile(f"c{pattern}")
        for text in texts("abc", 5):
            accepted = any(longer.matches(text[:n].encode()) for n in range(len(text) + 1))
            assert accepted == (matcher.match(text) is not None), (pattern, text)


LAZY = [
    (r'".*?"', '"ab'),
    (r"/\*(?:.|\n)*?\*/", "/*\n"),
    (r"<!--.*?-->", "<!->"),
    (r"a(?:b.*?c)*d?", "abcd"),
    (r"(?:a.*?b){2}", "abc"),
    (r"(?:a.*?b){1,2}", "abc"),
    (r"(?:a[^b]*?b){1,}?c", "abc"),
    (r"(?:a[^b]*?b){1,2}?c", "abc"),
    (r"(?:(?:a|bc)+?d)+?", "abcd"),
    (r"\w*?(?:abc|b)", "abc"),
    (r"a??(?:ab)?", "ab"),
    (r"x*?y*", "xy"),
    (r"(?:a|ab)*?c", "abc"),
    (r"\/(?!\/)(\\\/|\\\\|[^\/])*?\/[a]*", "/\\a"),
    (r"(?:ab|a|bc)*?(?:c|bb)", "abc"),
    (r"(?:ab|a|ba){1,3}?(?:b|cc)", "abc"),
    (r"a{2}?b", "ab"),
    (r"'(?:\\['\\]|\\a{2}|\\ab|\\b{3}|.)*?'", "'\\ab"),
    (r"(?=[ab]*?b)[ab]+c", "abc"),
    (r"(?<=ab)*?c|(?:ab)(?<=a{1}?b)", "abc"),
    (r"(?:b*?)+a", "abc"),
    (r"(?:b??)*a", "abc"),
    (r"(?:a*?b??)+?c", "abc"),
]


@pytest.mark.parametrize(("pattern", "alphabet"), LAZY)
def test_lazy_tails_are_what_re_returns(pattern: str, alphabet: str) -> None:
    dfa = compile_pattern(pattern)
    matcher = re.compile(pattern)
    returned = {match[0] for match in map(matcher.match, texts(alphabet, 7)) if match is not None}
    assert returned
    # The greedy parts and alternatives of these patterns leave no choice to a text that ends with the lexeme.
    for text in texts(alphabet, 6):
        match = matcher.match(text)
        assert dfa.matches(text.encode()) == (match is not None and match.end() == len(text)), text


def test_alternatives_are_free() -> None:
    assert compile_pattern("a|ab") == compile_pattern("ab|a") == compile_pattern("ab?")


def test_mode_that_cannot_matter_is_dropped() -> None:
    assert compile_pattern(r"(?>\w+;)x") == compile_pattern(r"(?:\w+;)x")
    assert compile_pattern(r"(?>ab+)c") == compile_pattern(r"ab++c") == compile_pattern("ab+c")


@pytest.mark.parametrize(
    ("pattern", "flags", "same"),
    [
        ("a.b", "s", "a(?s:.)b"),
        ("AbC", "i", "[aA][bB][cC]"),
        ("(?i)abc", "", "[aA][bB][cC]"),
        ("a(?i:b)c", "", "a[bB]c"),
        ("(?i:a(?-i:b))", "", "[aA]b"),
        (" a b # comment (?!x*?\n c", "x", "abc"),
        (r"\d+", "a", "[0-9]+"),
        (r"(?a:\w)", "", "[A-Za-z0-9_]"),
        (r"\x41\u00e9\101\n", "", "AéA\n"),
        (r"[\]\-a]", "", r"\]|-|a"),
        ("(?P<name>a)(?:b)(c)", "", "abc"),
        ("a(?#comment)b", "", "ab"),
        (r"^a\b$\Z", "", "a"),
        ("a{,2}", "", "a?a?"),
        ("a{0}b", "", "b"),
    ],
)
def test_syntax_and_flags(pattern: str, flags: str, same: str) -> None:
    assert compile_pattern(pattern, flags) == compile_pattern(same)


def test_multiline_anchors() -> None:
    dfa = compile_pattern(r"(?:^\w$\n?)+", "m")
    assert dfa.matches(b"a\nb\n") and dfa.matches(b"a\nb") and not dfa.matches(b"ab")
    assert compile_pattern(r"a$\n", "").matches(b"a\n") and not compile_pattern(r"a$\nb").matches(b"a\nb")


OPTIONS = st.lists(
    st.text("ab", max_size=4).flatmap(lambda t: st.sampled_from([t, t + "(?=b)", t + "(?!a)a", "(?<=a)" + t, f"{t}(?:a|ab|{t})*"])),
    min_size=2,
    max_size=7,
)  # fmt: skip


@pytest.mark.parametrize("n", share([15, 150], 1))
def test_factored_choices_have_the_same_automaton(n: int) -> None:
    check_examples(check_factored, n, st.lists(OPTIONS, min_size=1, max_size=2), st.sampled_from(["", "*", "{1,2}"]))


def check_factored(choices: list[list[str]], quantifier: str) -> None:
    pattern = "x" + "".join(f"(?:{'|'.join(options)}){quantifier}" for options in choices)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(machine, "factored", lambda tree: tree)
        plain = terminals._compile.__wrapped__(pattern, "", 20_000).dfa  # past its cache
    dfa = terminals._compile.__wrapped__(pattern, "", 20_000).dfa
    assert np.array_equal(dfa.next_state, plain.next_state) and np.array_equal(dfa.is_accepting, plain.is_accepting)


@pytest.mark.parametrize("quantifier", ["", "+", "{1,3}"])
def test_a_choice_of_many_words(quantifier: str) -> None:
    """Each word's end leads to all of their beginnings: 1,000 places of the pattern, a few of the factored one."""
    words = ["".join(letters) for letters in itertools.islice(itertools.product("abcdefghij", repeat=5), 0, 50_000, 50)]
    dfa = compile_pattern(f"(?:{'|'.join(words)}){quantifier}")
    assert dfa.matches(words[7].encode()) and not dfa.matches(b"abcd")
    assert dfa.matches(f"{words[7]}{words[-1]}".encode()) == bool(quantifier)


def nested(levels: int, words: int, inner: str = "z") -> str:
    """Groups in groups, the last option of each of which leads to the next; all options begin alike."""
    options = "|".join("a" * n + "b" for n in range(words))
    return f"(?:{options}|{'a' * words}" * levels + inner + ")" * levels


@pytest.mark.parametrize("levels, words", share([(3, 100), (10, 35), (60, 3), (5, 100), (12, 100)], 3))
def test_groups_whose_options_begin_alike(levels: int, words: int) -> None:
    dfa = compile_pattern(nested(levels, words))
    assert dfa.matches(b"a" * (levels * words) + b"z") and dfa.matches(b"a" * (2 * words + 1) + b"b")
    assert not dfa.matches(b"a" * (levels * words) + b"b") and not dfa.matches(b"a" * (levels * words) + b"zb")


@pytest.mark.slow
def test_the_innermost_choice_of_deep_groups() -> None:
    """Factored it is too deep for the stack, as it stands it is not."""
    words = "|".join("a" * n + "b" for n in range(100))
    # the first depth that is too much is looked for by halving
    deepest = 10 * (
        bisect.bisect_left(range(40), True, key=lambda n: not is_compiled("(?:x|y" * 10 * n + "z" + ")" * 10 * n)) - 1
    )
    assert deepest >= 50
    dfa = on_own_stack(compile_pattern)("(?:x|y" * (deepest - 10) + f"(?:{words})" + ")" * (deepest - 10))
    assert dfa.matches(b"y" * (deepest - 10) + b"aaab") and not dfa.matches(b"y" * (deepest - 10) + b"aaa")


def is_compiled(pattern: str) -> bool:
    try:
        on_own_stack(compile_pattern)(pattern)
    except LimitError:
        return False
    return True


@pytest.mark.parametrize("longest", share([700, 1_500], 1))
def test_words_that_begin_with_one_another(longest: int) -> None:
    dfa = compile_pattern("|".join("a" * n for n in range(1, longest, 7)))
    assert [n for n in range(30) if dfa.matches(b"a" * n)] == [1, 8, 15, 22, 29]
