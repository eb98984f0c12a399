"""How many strings go on from each state of an automaton: beside all short strings."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np
import pytest
from mixed_schemas import pattern

from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.schema.lengths import ENDLESS, FOR_EVER, goes_on_for_ever, least_left, strings_left
from maskwright.analysis.schema.strings import pattern_automaton


def left(automaton: Dfa) -> list[int]:
    return strings_left(automaton).tolist()


def n_of_length(automaton: Dfa, state: int, n: int) -> int:
    """The strings of n bytes that go on from a state."""
    counts = {state: 1}
    for _ in range(n):
        after: dict[int, int] = {}
        for one, count in counts.items():
            for target in automaton.next_state[one].tolist():
                if target >= 0:
                    after[target] = after.get(target, 0) + count
        counts = after
    return sum(count for one, count in counts.items() if automaton.is_accepting[one])


def reached(automaton: Dfa, state: int) -> Iterator[int]:
    seen = {state}
    while True:
        more = {int(t) for one in seen for t in automaton.next_state[one] if t >= 0} - seen
        if not more:
            return iter(seen)
        seen |= more


@pytest.mark.parametrize("seed", range(40))
def test_counts_are_those_of_all_strings(seed: int) -> None:
    automaton = pattern_automaton(pattern(Random(f"left {seed}")))
    n = automaton.n_states
    found = left(automaton)
    for state in range(n):
        # a string longer than there are states comes by one of them twice
        is_endless = any(n_of_length(automaton, state, length) for length in range(n, 2 * n))
        assert (found[state] >= ENDLESS) == is_endless
        if not is_endless:
            assert found[state] == sum(n_of_length(automaton, state, length) for length in range(n))
    for state in range(n):
        assert (found[state] == FOR_EVER) == all(found[one] >= ENDLESS for one in reached(automaton, state))
    assert goes_on_for_ever(automaton) == (min(found) == FOR_EVER)


@pytest.mark.parametrize("seed", range(20))
def test_the_fewest_behind_a_character_are_those_of_some_character(seed: int) -> None:
    automaton = pattern_automaton(pattern(Random(f"least {seed}")))
    counts = strings_left(automaton)
    least = least_left(automaton, counts).tolist()
    if counts[0] == FOR_EVER:
        assert set(least) == {FOR_EVER}
        return
    some = [chr(code).encode() for code in [*range(0x180), 0x20AC, 0x1F600]]
    for text in (b"", *some[:0x180:7], b"a", b"b", b"aa", b"ab", b"ba"):
        state = automaton.run(text)
        if state >= 0:
            after = [automaton.run(text + one) for one in some]
            assert least[state] == min([int(counts[one]) for one in after if one >= 0], default=FOR_EVER)


def test_more_than_any_text_has_is_endless() -> None:
    assert left(pattern_automaton("^[ab]{30}$"))[0] == 1 << 30
    assert left(pattern_automaton("^[ab]{31}$"))[:1] == [ENDLESS]
    assert left(pattern_automaton("^[0-9]{300}(x|y)$"))[0] == ENDLESS
    assert not goes_on_for_ever(pattern_automaton("^[0-9]{300}$"))
    assert goes_on_for_ever(pattern_automaton("^[^]*$")) and left(
        Dfa(np.full((1, 256), -1, np.int32), np.array([True]))
    ) == [1]
