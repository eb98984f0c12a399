"""The quick way from trees to automata against the way of terminals."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest
from growth import growth
from random_patterns import random_pattern
from shares import share

from maskwright.analysis.errors import LimitError
from maskwright.analysis.regex import Dfa, ecma, positions
from maskwright.analysis.regex.charset import EVERYTHING, complement
from maskwright.analysis.regex.dfa import MAX_STATES
from maskwright.analysis.regex.machine import determinise
from maskwright.analysis.regex.minimise import minimise, minimise_labelled
from maskwright.analysis.regex.positions import END
from maskwright.analysis.regex.simplify import copies, merged, shortest_found, whole_copies
from maskwright.analysis.regex.spell import in_bytes, of_columns, spell, valid_utf8
from maskwright.analysis.regex.tree import ANY, Chars, Node, Repeat, sequence

SINGLES = (
    "a", "b", "é", "😀", ".", "[ab]", "[^a]", r"\w", r"\p{L}", "^", "$", "[]", "[^]", r"[^é-\u{1F600}]",
    r"[\u{800}-\u{FFFF}]", "ab",
)  # fmt: skip
AROUND = ("({})", "(?={})", "(?!{})", "(?<!a)", r"\b{}", "(^|{})", "({}|$)")
LIMIT = 20_000
ANYTHING = Repeat(ANY, 0, None)


def slowly(tree: Node, is_search: bool) -> Dfa:
    around = (ANYTHING,) if is_search else ()
    return in_bytes(determinise(sequence(*around, tree, *around, END), LIMIT)[0], LIMIT)


@pytest.mark.parametrize("seed", share(range(100), 20))
def test_both_ways_give_equal_automata(seed: int) -> None:
    rng = random.Random(seed)
    tree = ecma.parse(random_pattern(rng, 4, SINGLES, around=AROUND))
    for is_search in (False, True):
        assert spell(tree, is_search=is_search) == slowly(tree, is_search)


def test_many_words_are_determinised_alike() -> None:
    rng = random.Random(0)
    words = ["".join(rng.choice("abcd") for _ in range(rng.randint(2, 8))) for _ in range(150)]
    tree = ecma.parse("|".join(words))
    assert spell(tree) == slowly(tree, False)
    assert spell(tree, is_search=True) == slowly(tree, True)


def test_both_ways_are_taken() -> None:
    plain = [positions.is_plain(ecma.parse(text)) for text in ("^a+$", "(^|a)b|$", "(?=a)b", r"\b", "(?!a)", "(?<!^)a")]
    assert plain == [True, True, False, False, False, False]


def test_a_tree_that_is_never_met_has_no_string() -> None:
    for text in ("[]", "a^b", "$a", "[]a|b[]"):
        assert spell(ecma.parse(text), is_search=True).is_empty
    assert spell(Chars(())).is_empty


def test_the_empty_pattern_is_found_everywhere() -> None:
    for text in ("", "a*", "(|a)", "^|a", "()"):
        assert spell(ecma.parse(text), is_search=True) == valid_utf8()


@pytest.mark.parametrize(
    "ranges", [((0x80, 0x7FF),), ((0x7FF, 0x800),), ((0xFFFF, 0x10000),), ((0x10FFFF, 0x10FFFF),), EVERYTHING]
)
def test_sets_at_the_edges_of_lengths(ranges: tuple[tuple[int, int], ...]) -> None:
    for one in (ranges, complement(ranges)):
        dfa = spell(Chars(one))
        assert dfa == slowly(Chars(one), False)
        for code in (0, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF):
            assert dfa.matches(chr(code).encode()) == any(low <= code <= high for low, high in one)


def test_limits() -> None:
    with pytest.raises(LimitError, match="more than 400 positions"):
        spell(ecma.parse("a{500}"), 100)
    with pytest.raises(LimitError, match=r"needs more than 100 states$"):
        spell(ecma.parse("a{150}"), 100)
    with pytest.raises(LimitError, match="more than 100 states over UTF-8 bytes"):
        spell(ecma.parse("^.{50}a$"), 100)
    with pytest.raises(LimitError, match="more than 600,000 steps"):
        spell(ecma.parse("^((ab?){1,100}){1,100}$"), is_search=True)


@pytest.mark.parametrize("seed", range(60))
def test_simpler_trees_have_the_same_texts(seed: int) -> None:
    rng = random.Random(seed)
    tree = ecma.parse(random_pattern(rng, 4, SINGLES, ("*", "+", "?", "{2}", "{2,3}", "{2,}", "{0,2}"), AROUND))
    assert slowly(merged(tree), False) == slowly(tree, False)
    assert slowly(shortest_found(tree), True) == slowly(tree, True)
    counted = copies(tree)
    if counted is not None:
        assert spell(Repeat(Chars(counted[0]), *counted[1:])) == slowly(tree, False)


def test_copies_of_one_set() -> None:
    letter = ((97, 97),)
    assert copies(ecma.parse("(a{1,5}){2,3}a")) == (letter, 3, 16)
    assert copies(ecma.parse("ab")) is None
    assert whole_copies(ecma.parse("^a+$")) == (letter, 1, None)
    assert whole_copies(ecma.parse("b*")) == (EVERYTHING, 0, None)


def test_labels_are_kept_apart() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(1, 7))
        table = np.full((n, 256), -1, np.int32)
        table[:, [97, 98]] = rng.integers(-1, n, (n, 2))
        labels = rng.integers(-1, 3, n).astype(np.int32)
        small, kept = minimise_labelled(table, labels)
        for label in range(3):
            mine = minimise(small, kept == label)
            wanted = minimise(table, labels == label)
            assert np.array_equal(mine[0], wanted[0]) and np.array_equal(mine[1], wanted[1])
        assert len(small) <= n or n == 0


def test_automata_of_columns() -> None:
    column_of = np.full(256, -1, np.intp)
    column_of[list(b"abc")] = [0, 0, 1]
    dfa = of_columns([[1, -1], [1, 0], [2, 2]], [False, True, False], column_of)
    assert dfa == spell(ecma.parse("([ab]+c)*[ab]+"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "n"),
    [("[a-z]{2,N}", 5_000), (".{1,N}", 1_200), ("^([a-z]+-){HALF,N}end$", 4_000), ("[^<>]{0,N}>", 1_500)],
)
def test_a_repetition_of_twice_the_length_takes_twice_as_long(pattern: str, n: int) -> None:
    def seconds(n: int) -> float:
        tree = ecma.parse(pattern.replace("N", str(n)).replace("HALF", str(n // 2)))
        start = time.process_time()
        assert n < spell(tree).n_states <= MAX_STATES
        return time.process_time() - start

    seconds(100)
    assert growth(seconds, n) < 2.6
