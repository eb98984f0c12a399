"""Automata of keys against what the patterns say of each key."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from automaton_texts import texts_of
from shares import share

from maskwright.analysis.errors import LimitError
from maskwright.analysis.regex import Dfa
from maskwright.analysis.regex.minimise import column_classes, distances
from maskwright.analysis.regex.spell import valid_utf8
from maskwright.analysis.schema import keys as keys_module
from maskwright.analysis.schema.keys import key_automaton, key_sets, with_classes
from maskwright.analysis.schema.shapes import KeyAutomaton, Objects
from maskwright.analysis.schema.strings import pattern_automaton, without

PATTERNS = ["^x", "y$", "^x-", "b+", "^[a-z]+$", "^$", "é", "^.{2}$", "^(ab)*$", "x.y"]
LETTERS = "xyab-é"
KEYS = ["".join(key) for n in range(5) for key in itertools.product(LETTERS, repeat=n)]


def ends(automaton: KeyAutomaton, key: str) -> int:
    state = 0
    for byte in key.encode():
        state = int(automaton.next_state[state, byte])
        if state < 0:
            return -1
    return int(automaton.ends[state])


def check_shape(automaton: KeyAutomaton) -> None:
    """Every state is reached, and can reach one that ends a key; nothing but UTF-8 is read."""
    table = automaton.next_state
    assert (table.dtype, automaton.ends.dtype) == (np.int32, np.int32)
    assert table.shape == (len(automaton.ends), 256)
    reached = {0}
    frontier = [0]
    for state in frontier:
        for target in table[state].tolist():
            if target >= 0 and target not in reached:
                reached.add(target)
                frontier.append(target)
    assert reached == set(range(len(table)))
    _, representatives = column_classes(table)
    assert len(distances(table[:, representatives].tolist(), automaton.ends >= 0)) == len(table)
    accepted = Dfa.minimal(table, automaton.ends >= 0)
    for text in texts_of(accepted, random.Random(0), 30):
        assert valid_utf8().matches(text.encode())
    assert not table.flags.writeable


@pytest.mark.parametrize("seed", share(range(40), 10))
def test_classes_are_those_of_the_patterns(seed: int) -> None:
    rng = random.Random(seed)
    texts = rng.sample(PATTERNS, rng.randint(0, 4))
    patterns = [pattern_automaton(text) for text in texts]
    class_of = {found: kind for found in range(1 << len(texts)) if (kind := rng.randint(-1, 2)) >= 0}
    but = set(rng.sample(KEYS, rng.randint(0, 6)))
    automaton = key_automaton(patterns, class_of, [key.encode() for key in but])
    for key in KEYS:
        found = sum(1 << i for i, pattern in enumerate(patterns) if pattern.matches(key.encode()))
        wanted = -1 if key in but else class_of.get(found, -1)
        assert (-1 if automaton is None else ends(automaton, key)) == wanted, key
    if automaton is not None:
        check_shape(automaton)


def test_no_key_is_left() -> None:
    assert key_automaton([], {}, []) is None
    assert key_automaton([pattern_automaton("^(a|b)$")], {1: 0}, [b"a", b"b"]) is None
    assert key_automaton([pattern_automaton("^(a|b)$")], {1: 0}, [b"a"]) is not None


def test_a_named_key_that_begins_others_does_not_end() -> None:
    automaton = key_automaton([], {0: 0}, [b"name", b"names", "é".encode()])
    assert automaton is not None
    assert [ends(automaton, key) for key in ("name", "names", "é", "nam", "namess", "", "éé")] == [
        -1,
        -1,
        -1,
        0,
        0,
        0,
        0,
    ]
    check_shape(automaton)


def test_many_named_keys_cost_little() -> None:
    but = [b"property-%d" % n for n in range(3000)]
    automaton = key_automaton([pattern_automaton("^x-")], {0: 0, 1: 1}, but)
    assert automaton is not None
    assert ends(automaton, "property-17") == -1
    assert ends(automaton, "property-3000") == 0
    assert ends(automaton, "x-a") == 1
    assert len(automaton.ends) < 5000


def test_hundreds_of_patterns_that_exclude_one_another() -> None:
    patterns = [pattern_automaton(f"^x{number}-") for number in range(200)]
    automaton = key_automaton(patterns, {1 << number: number for number in range(200)}, [b"x7-"])
    assert automaton is not None
    assert [ends(automaton, key) for key in ("x0-", "x7-", "x7-a", "x199-a", "x200-", "x19")] == [0, -1, 7, 199, -1, -1]
    check_shape(automaton)


def test_patterns_that_multiply_are_refused() -> None:
    patterns = [pattern_automaton(f"^(.{{{n}}})*$") for n in (11, 13, 17, 19)]
    with pytest.raises(LimitError, match="more than 20,000 states"):
        key_automaton(patterns, {15: 1}, [])
    with pytest.raises(LimitError, match="more than 20,000 states"):
        key_automaton([pattern_automaton(f"^{'a' * 500}")] * 400, {0: 0}, [])


def test_more_sets_than_are_told_apart_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    patterns = [pattern_automaton(letter) for letter in "xyzuvw"]
    assert key_automaton(patterns, {63: 0}, []) is not None
    monkeypatch.setattr(keys_module, "MOST_SETS", 60)
    with pytest.raises(LimitError, match=r"6 patterns .* match in more than 60 ways"):
        key_automaton(patterns[::-1], {63: 0}, [])


def test_a_second_request_is_a_look_up() -> None:
    pattern = pattern_automaton("^a")
    assert key_automaton([pattern], {0: 0, 1: 1}, [b"x", b"y"]) is key_automaton((pattern,), {1: 1, 0: 0}, {b"y", b"x"})


def test_what_is_in_no_pattern_is_the_complement() -> None:
    pattern = pattern_automaton("a.*b")
    automaton = key_automaton([pattern], {0: 0}, [])
    assert automaton is not None
    assert Dfa.minimal(automaton.next_state, automaton.ends == 0) == without(valid_utf8(), pattern)


SOME = ("^a", "b$", "^(a|b|ab)$", "^x.*y$", "^[ab]{1,3}$")


@pytest.mark.parametrize("patterns", [SOME[i:j] for i in range(5) for j in range(i, 6) if j - i < 4])
@pytest.mark.parametrize("but", [(), ("a",), ("a", "b", "ab", "xy")])
def test_sets_of_patterns_and_few_keys_are_those_of_the_definition(
    patterns: tuple[str, ...], but: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys_module, "MOST_NAMED", 12)
    automata = [pattern_automaton(text) for text in patterns]
    names = ["".join(letters) for n in range(6) for letters in itertools.product("abxy", repeat=n)]
    sets = {
        sum(1 << i for i, one in enumerate(automata) if one.matches(name.encode())) for name in names if name not in but
    }
    # every set is that of some short key of these letters, or of the key é
    sets.add(sum(1 << i for i, one in enumerate(automata) if one.matches("é".encode())))
    keys = [key.encode() for key in but]
    assert key_sets(automata, keys) == tuple(sorted(sets))
    for chosen in range(1 << (1 << len(automata)) if len(automata) < 3 else 8):
        class_of = {number: 0 for number in range(1 << len(automata)) if chosen >> number & 1}
        automaton = key_automaton(automata, class_of, keys)
        listed = [name for name in names if automaton is not None and ends(automaton, name) >= 0]
        n = len(keys)
        objects = Objects(tuple(sorted(keys)), (7,) * n, (True,) * n, (), None, 0, None, tuple(range(n)))
        made = with_classes(objects, automata, {number: (5,) for number in sets if number in class_of})
        if made.others:
            assert made.keys == objects.keys and len(listed) > 12
        else:
            assert [key.decode() for key in made.keys] == sorted([*but, *listed])
            assert made.values == tuple(7 if key in keys else 5 for key in made.keys)
            assert made.required == tuple(key in keys for key in made.keys)
            order = [key for _, key in sorted(zip(made.ranks or (), made.keys, strict=True))]
            assert order == [*objects.keys, *sorted(name.encode() for name in listed)]
