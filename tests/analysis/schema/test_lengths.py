"""The numbers of characters of an automaton's strings, against a naive count over bytes."""

from __future__ import annotations

import random
import time
from functools import cache

import pytest
from random_patterns import random_pattern

from maskwright.analysis.errors import LimitError
from maskwright.analysis.regex import Dfa
from maskwright.analysis.regex.spell import valid_utf8
from maskwright.analysis.regex.whole import regex_automaton
from maskwright.analysis.schema.lengths import LengthTable, length_table, lengths_exist
from maskwright.analysis.schema.strings import format_automaton, literals

SINGLES = ["a", "b", "é", "€", "😀", "[a-z]", ".", "[^a]", "(ab)", "(é😀)"]


def naive(dfa: Dfa, most: int) -> list[list[bool]]:
    """Whether from each state some accepted string has exactly k further characters, for k up to `most`.

    A byte begins a character unless it is one of 0x80..0xBF.
    """
    rows = [
        sorted({(target, not 0x80 <= byte < 0xC0) for byte, target in enumerate(row) if target >= 0})
        for row in dfa.next_state.tolist()
    ]

    @cache
    def exists(state: int, k: int) -> bool:
        if k == 0 and dfa.is_accepting[state]:
            return True
        return any(k >= begins and exists(target, k - begins) for target, begins in rows[state])

    return [[exists(state, k) for k in range(most + 1)] for state in range(dfa.n_states)]


def check(dfa: Dfa, table: LengthTable) -> None:
    m, p = table.preperiod, table.period
    assert p >= 1 and m >= 0
    assert table.next_length.shape == (m + p, dfa.n_states)
    most = m + 3 * p + 2
    possible = naive(dfa, most + p)
    for state in range(dfa.n_states):
        for k in range(most + 1):
            wanted = next((length for length in range(k, most + p + 1) if possible[state][length]), -1)
            assert table.after(k, state) == wanted, (state, k)


@pytest.mark.parametrize(
    ("pattern", "m", "p"),
    [
        ("(aa)*", 0, 2),
        ("(aa)*b", 1, 2),
        ("a{3,5}", 6, 1),
        ("(é😀)*", 0, 2),
        ("(aaa)*|(bb)*", 0, 6),
        ("(aaa)*|b{7}", 8, 3),
        (".*", 0, 1),
        ("[^a]{2}(€€€)+", 3, 3),
        ("(?!)", 0, 1),
        ("", 1, 1),
    ],
)
def test_tables_of_known_patterns(pattern: str, m: int, p: int) -> None:
    dfa = regex_automaton(pattern)
    table = length_table(dfa)
    check(dfa, table)
    assert (table.preperiod, table.period) == (m, p)


@pytest.mark.parametrize("seed", range(150))
def test_tables_are_what_a_naive_count_says(seed: int) -> None:
    dfa = regex_automaton(random_pattern(random.Random(seed), 4, SINGLES))
    check(dfa, length_table(dfa))


def test_a_format_has_the_lengths_that_it_has() -> None:
    dfa = format_automaton("uuid")
    assert dfa is not None
    table = length_table(dfa)
    assert (table.after(0, 0), table.after(36, 0), table.after(37, 0)) == (36, 36, -1)
    check(dfa, table)


def test_lengths_exist() -> None:
    even = regex_automaton("(aa)*")
    assert lengths_exist(even, 3, 4) and not lengths_exist(even, 3, 3)
    assert lengths_exist(even, 10**9, None) and not lengths_exist(even, 10**9 + 1, 10**9 + 1)
    few = literals([b"a", "éé".encode(), "😀😀😀".encode()])
    assert [n for n in range(6) if lengths_exist(few, n, n)] == [1, 2, 3]
    assert not lengths_exist(few, 4, None)
    assert lengths_exist(valid_utf8(), 10**12, 10**12)


def test_periods_that_are_too_long_are_refused_soon() -> None:
    dfa = regex_automaton(
        "|".join(f"({letter}{{{n}}})*" for letter, n in zip("abcdefg", (7, 11, 13, 17, 19, 23, 29), strict=True))
    )
    before = time.perf_counter()
    with pytest.raises(LimitError, match="repeat so late"):
        length_table(dfa)
    assert time.perf_counter() - before < 10


def test_tables_that_are_too_large_are_refused() -> None:
    with pytest.raises(LimitError, match=r"16,777,216 entries"):
        length_table(regex_automaton("a{5000}"))


def test_a_second_request_is_a_look_up() -> None:
    dfa = regex_automaton("(ab)*")
    assert length_table(dfa) is length_table(Dfa.minimal(dfa.next_state, dfa.is_accepting))
    with pytest.raises(ValueError, match="read-only"):
        length_table(dfa).next_length[0, 0] = 1
