"""Sets of characters and their UTF-8 form, over all 1,112,064 scalar values."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shares import every, share

from maskwright.analysis.lexing.terminals import compile_pattern
from maskwright.analysis.regex import Dfa
from maskwright.analysis.regex.charset import EVERYTHING, LAST, Ranges, complement, difference, normalise
from maskwright.analysis.regex.parse import parse
from maskwright.analysis.regex.tree import Chars

SCALARS = "".join(chr(code) for code in range(LAST + 1) if not 0xD800 <= code < 0xE000)


def ranges_of(text: str) -> Ranges:
    return normalise((ord(character), ord(character)) for character in text)


def count(dfa: Dfa) -> int:
    """How many strings a finite language has."""
    ways = np.zeros(dfa.n_states, dtype=object)
    ways[0] = 1
    total = 0
    while any(ways):
        total += sum(ways[dfa.is_accepting])
        after = np.zeros(dfa.n_states, dtype=object)
        for state in np.flatnonzero(ways):
            for target in dfa.next_state[state][dfa.next_state[state] >= 0]:
                after[target] += ways[state]
        ways = after
    return total


@pytest.mark.parametrize("flags", share(["", "a", "i", "ai"], 1))
@pytest.mark.parametrize("source", share([r"\w", r"[^\W\d]", r"[^\s]", r"\s", r"\D"], 2))
def test_categories_are_those_of_re(source: str, flags: str) -> None:
    tree = parse(source, flags)
    assert isinstance(tree, Chars)
    assert tree.ranges == ranges_of("".join(re.findall(f"(?{flags}){source}" if flags else source, SCALARS)))


CASED = [
    "k", "K", "\u212a", "s", "ſ", "ß", "ẞ", "i", "İ", "ı", "µ", "Σ", "ς", "ǅ", "ꙋ", "ΐ", "ſt", "𐐀", "é", "[^k]",
    "[a-z]", "[A-Z]",
]  # fmt: skip
CASED += ["[à-ý]", "[^à-ý]", "[0-9]", r"[\wſ]", "[\u0100-\U0001ffff]", "[^\U00010400-\U00010427]", "[İ-ı]"]


@pytest.mark.parametrize("flags", share(["i", "ai"], 1))
@pytest.mark.parametrize("source", every(6, CASED))
def test_ignoring_case_is_that_of_re(source: str, flags: str) -> None:
    tree = parse(source, flags)
    if isinstance(tree, Chars):
        assert tree.ranges == ranges_of("".join(re.findall(f"(?{flags}){source}", SCALARS)))
    else:
        assert compile_pattern(source, flags) == compile_pattern("".join(f"(?{flags}:{c})" for c in source))


RANGES = st.lists(st.tuples(st.integers(0, LAST), st.integers(0, LAST)).map(sorted).map(tuple), max_size=5).map(
    normalise
)


@settings(max_examples=60, deadline=None)
@given(RANGES, RANGES)
def test_set_operations(first: Ranges, second: Ranges) -> None:
    def members(ranges: Ranges) -> np.ndarray:
        inside = np.zeros(LAST + 1, dtype=bool)
        for low, high in ranges:
            inside[low : high + 1] = True
        return inside

    everything = members(EVERYTHING)
    assert np.array_equal(members(complement(first)), everything & ~members(first))
    assert np.array_equal(members(difference(first, second)), members(first) & ~members(second))
    assert normalise(difference(first, second)) == difference(first, second)
    assert complement(complement(first)) == first


NEAR = st.sampled_from([0, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x3FFFF, 0x40000, LAST])
CODES = st.builds(lambda near, by: min(max(near + by, 0), LAST), NEAR, st.integers(-70, 70))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(CODES, CODES).map(sorted).map(tuple), min_size=1, max_size=4).map(normalise).filter(bool))
def test_utf8_of_a_set(ranges: Ranges) -> None:
    dfa = compile_pattern("[" + "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges) + r"]|(?!)")
    edges = {edge + by for bounds in ranges for edge in bounds for by in (-1, 0, 1)}
    for code in edges:
        if 0 <= code <= LAST and not 0xD800 <= code < 0xE000:
            assert dfa.matches(chr(code).encode()) == any(low <= code <= high for low, high in ranges)
    # The encodings of all members, and nothing else: no overlong form, no surrogate, nothing above U+10FFFF.
    assert count(dfa) == sum(high - low + 1 for low, high in ranges)


def test_every_character_and_only_valid_utf8() -> None:
    dfa = compile_pattern(".", "s")
    assert count(dfa) == len(SCALARS) == 1_112_064
    assert all(dfa.matches(character.encode()) for character in SCALARS[::97])
    for invalid in (
        b"\xc0\x80",
        b"\xe0\x80\x80",
        b"\xed\xa0\x80",
        b"\xf0\x8f\xbf\xbf",
        b"\xf4\x90\x80\x80",
        b"\x80",
        b"\xff",
    ):
        assert dfa.run(invalid) == -1


def test_name_is_unicode() -> None:
    name = compile_pattern(r"[^\W\d]\w*")
    for text in ("x", "é1", "名前", "_", "𝔘", "a٣"):
        assert name.matches(text.encode())
    for text in ("1a", "٣", "-", "a b", ""):
        assert not name.matches(text.encode())
