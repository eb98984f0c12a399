"""Bounds that are known before an automaton is built refuse only what the automaton refuses."""

from __future__ import annotations

import functools
import random
import re

import pytest
from random_patterns import random_pattern
from shares import share

from maskwright.analysis.errors import LimitError, MaskwrightError
from maskwright.analysis.lexing import terminals
from maskwright.analysis.lexing.terminals import compile_pattern
from maskwright.analysis.regex import ecma, parse, positions, spell, whole
from maskwright.analysis.regex.bounds import check_least, least
from maskwright.analysis.regex.machine import determinise
from maskwright.analysis.regex.rewrite import resolve
from maskwright.analysis.regex.simplify import without_ends
from maskwright.analysis.regex.tree import Node

SINGLES = ("a", "b", "ab", "aab", "[ab]", ".", "", r"[^\s\S]", "(?:a|ab|abc)", "(?:ab|ac|b|)", "\u00e9")
REPEATS = ("*", "+", "?", "{1,2}", "{2}", "{0,3}", "{1,}", "{0}", "{3,9}", "{7}")
AROUND = ("({})", "(?={})", "(?!{})", "(?<!a)(?:{})", "(?:{})*?", "(?:{}){{2,5}}?", "(?>{})", "(?:{})++")


def _is_refused(build: object, *arguments: object) -> bool:
    try:
        build(*arguments)  # type: ignore[operator]
    except (MaskwrightError, parse.Unsupported):
        return True
    return False


def _lexed(tree: Node, most: int) -> None:
    determinise(resolve(tree, most), most)


def _matched(tree: Node, most: int) -> None:
    tree = whole._without_edges(whole._greedy(tree))
    spell.spell(tree if positions.is_plain(tree) else resolve(tree, most), most)


@pytest.fixture
def no_early_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """`spell` builds all, and counts nothing before."""
    monkeypatch.setattr(spell, "check_least", lambda *_, **__: None)


@pytest.mark.usefixtures("no_early_count")
@pytest.mark.parametrize("seed", range(8))
def test_what_is_refused_early_is_refused_late(seed: int) -> None:
    rng = random.Random(seed)
    n_refused = 0
    for _ in range(400):
        pattern = random_pattern(rng, rng.randrange(1, 6), SINGLES, REPEATS, AROUND)
        most = rng.choice((1, 2, 3, 5, 8, 13, 21))
        try:
            tree = parse.parse(pattern)
        except (re.error, parse.Unsupported):
            continue
        if not _is_refused(check_least, tree, most):
            continue
        n_refused += 1
        assert _is_refused(_lexed, tree, most), (pattern, most)
        assert _is_refused(_matched, tree, most), (pattern, most)
    assert n_refused > 50


@pytest.mark.usefixtures("no_early_count")
@pytest.mark.parametrize("seed", range(8))
def test_what_is_refused_early_is_refused_late_where_it_is_searched_for(seed: int) -> None:
    rng = random.Random(seed)
    n_refused = 0
    for _ in range(400):
        pattern = random_pattern(rng, rng.randrange(1, 6), SINGLES, REPEATS, ("({})", "^{}", "{}$", "(?={})", "(?!{})"))
        most = rng.choice((1, 2, 3, 5, 8, 13))
        try:
            tree = without_ends(ecma.parse(pattern))[0]
        except ecma.PatternError:
            continue
        for is_search in (True, False):
            if _is_refused(functools.partial(check_least, is_search=is_search), tree, most):
                n_refused += 1
                build = functools.partial(spell.spell, tree, most, is_search=is_search)
                assert _is_refused(build), (pattern, most, is_search)
    assert n_refused > 50


@pytest.mark.parametrize(
    ("pattern", "length", "n_positions"),
    [
        ("(?:ab){3}", 6, 6),
        ("(?:a{1,5}){2}", 2, 10),
        ("(?:a{1,5})+", 1, 1),
        ("ab|ac|b", 1, 4),
        ("abc|abd|abe|x", 1, 6),
        ("a?b?", 0, 2),
        ("(?:(?:a{1000}){1000}){1000}", 10**9, 10**9),
        ("(?:a{100000}){0}b", 1, 1),
        ("(?=aaa)b", 1, 1),
    ],
)
def test_bounds(pattern: str, length: int, n_positions: int) -> None:
    found = least(parse.parse(pattern))
    assert (found.length, found.positions) == (length, n_positions)


WORDS = "|".join("".join(random.Random(n).choices("abcdefghijklmnopqrstuvwxyz", k=12)) for n in range(60_000))
HUGE = {
    "dots": "." * 150_000,
    "letters": "a" * 150_000,
    "optional": "a?" * 300_000,
    "classes": "[ab][cd]" * 40_000,
    "words": WORDS,
    "nested": "((a{1000}){1000}){1000}",
}


@pytest.mark.parametrize("name", share(sorted(HUGE), 2))
def test_what_is_far_too_large_is_refused_before_it_is_built(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("it was built")

    monkeypatch.setattr(positions, "run", never)
    monkeypatch.setattr(terminals, "resolve", never)
    monkeypatch.setattr(spell, "merged", never)
    with pytest.raises(LimitError, match="more than"):
        whole.regex_automaton(HUGE[name])
    with pytest.raises(LimitError, match="more than"):
        compile_pattern(HUGE[name])
