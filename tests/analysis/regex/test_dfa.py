"""Byte automata: canonical form and boolean operations against sets of strings."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shares import check_examples, share

from maskwright.analysis.errors import LimitError, TerminalError
from maskwright.analysis.lexing.terminals import compile_pattern
from maskwright.analysis.regex import Dfa, complement, concatenate, difference, intersect, union

LETTERS = b"ab"
WORDS = [bytes(word) for n in range(8) for word in itertools.product(LETTERS, repeat=n)]


@st.composite
def automata(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Any deterministic automaton over two bytes: unreachable, dead and equivalent states included."""
    n = draw(st.integers(1, 4))
    table = np.full((n, 256), -1, dtype=np.int32)
    for byte in LETTERS:
        table[:, byte] = draw(st.lists(st.integers(-1, n - 1), min_size=n, max_size=n))
    return table, np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))


def words_of(table: np.ndarray, accepting: np.ndarray) -> set[bytes]:
    found = set()
    for word in WORDS:
        state = 0
        for byte in word:
            state = table[state, byte] if state >= 0 else -1
        if state >= 0 and accepting[state]:
            found.add(word)
    return found


def language(dfa: Dfa) -> set[bytes]:
    return {word for word in WORDS if dfa.matches(word)}


@pytest.mark.parametrize("n", share([50, 200], 1))
def test_minimal_is_canonical(n: int) -> None:
    check_examples(check_minimal, n, automata(), automata())


def check_minimal(first: tuple[np.ndarray, np.ndarray], second: tuple[np.ndarray, np.ndarray]) -> None:
    left, right = Dfa.minimal(*first), Dfa.minimal(*second)
    assert language(left) == words_of(*first)
    # Two automata of 4 states and a common sink differ on a word of at most 4 + 4 + 1 - 2 letters, if at all.
    assert (left == right) == (language(left) == language(right))
    if left == right:
        assert hash(left) == hash(right)
    assert Dfa.minimal(left.next_state, left.is_accepting) == left


@settings(max_examples=150, deadline=None)
@given(automata())
def test_invariants_of_minimal(automaton: tuple[np.ndarray, np.ndarray]) -> None:
    dfa = Dfa.minimal(*automaton)
    if dfa.is_empty:
        assert dfa.n_states == 1 and (dfa.next_state == -1).all()
        return
    seen = [0]
    for state in seen:
        seen.extend(t for t in dict.fromkeys(dfa.next_state[state].tolist()) if t >= 0 and t not in seen)
    assert seen == list(range(dfa.n_states))  # reachable, numbered breadth-first
    residuals = set()
    for state in range(dfa.n_states):
        residuals.add(tuple((end := dfa.run(word, state)) >= 0 and bool(dfa.is_accepting[end]) for word in WORDS))
    assert len(residuals) == dfa.n_states and tuple([False] * len(WORDS)) not in residuals


@pytest.mark.parametrize("n", share([40, 150], 1))
def test_boolean_operations(n: int) -> None:
    check_examples(check_operations, n, automata(), automata())


def check_operations(first: tuple[np.ndarray, np.ndarray], second: tuple[np.ndarray, np.ndarray]) -> None:
    left, right = Dfa.minimal(*first), Dfa.minimal(*second)
    a, b = language(left), language(right)
    assert language(intersect(left, right)) == a & b
    assert language(union(left, right)) == a | b
    assert language(difference(left, right)) == a - b
    assert language(complement(left)) == set(WORDS) - a
    assert complement(complement(left)) == left
    both = {word for word in WORDS if any(word[:i] in a and word[i:] in b for i in range(len(word) + 1))}
    assert language(concatenate(left, right)) == both
    if a:
        shortest = min(a, key=lambda word: (len(word), word))
        assert left.shortest() == shortest


def test_complement_is_over_all_bytes() -> None:
    not_a = complement(Dfa.literal(b"a"))
    assert not_a.matches(b"") and not_a.matches(b"\xff\xfe") and not_a.matches(b"aa") and not not_a.matches(b"a")


def test_literal_is_minimal() -> None:
    for text in (b"", b"a", b"def", b"\xc3\xa9\x00"):
        dfa = Dfa.literal(text)
        assert dfa == Dfa.minimal(dfa.next_state, dfa.is_accepting) and dfa.n_states == len(text) + 1


def test_run_is_dead_after_a_byte_that_no_text_continues() -> None:
    dfa = compile_pattern("ab+")
    assert dfa.run(b"ab") == dfa.run(b"b", dfa.run(b"a")) == 2
    assert dfa.run(b"ba") == -1 and dfa.run(b"b", -1) == -1


def test_arrays_are_read_only() -> None:
    for dfa in (Dfa.literal(b"a"), compile_pattern("a+")):
        with pytest.raises(ValueError, match="read-only"):
            dfa.next_state[0, 0] = 0
        with pytest.raises(ValueError, match="read-only"):
            dfa.is_accepting[0] = True


def test_shortest_prefers_printable_bytes() -> None:
    assert compile_pattern(r"[\x00-\xff]", "s").shortest() == b" "
    assert compile_pattern(r"\x01|\x00").shortest() == b"\x00"


def test_repr_reads() -> None:
    assert repr(Dfa.literal(b"def")) == "<Dfa 4 states, 3 transitions, accepts b'def'>"
    assert repr(compile_pattern("(?!)")) == "<Dfa 1 states, 0 transitions, accepts nothing>"
    assert repr(Dfa.literal(b"x" * 30)).endswith("accepts b'xxxxxxxxxxxxxxxxxxxx'...>")


def test_not_equal_to_other_types() -> None:
    assert Dfa.literal(b"a") != "a"


def test_empty_language_has_no_shortest_string() -> None:
    with pytest.raises(TerminalError, match="accepts nothing"):
        compile_pattern("(?!)").shortest()


def test_products_stop_at_the_limit() -> None:
    left, right = compile_pattern("(?:a{7})*"), compile_pattern("(?:a{11})*")
    with pytest.raises(LimitError, match="product of two automata needs more than 50 states; raise max_states"):
        intersect(left, right, max_states=50)
    with pytest.raises(LimitError, match="concatenation of two automata needs more than 50 states"):
        concatenate(compile_pattern("[ab]*"), compile_pattern("a[ab]{8}"), max_states=50)
    assert intersect(left, right) == compile_pattern("(?:a{77})*")
