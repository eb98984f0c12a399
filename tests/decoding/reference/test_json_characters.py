"""Spellings of characters, and automata over characters, against all characters one by one."""

from __future__ import annotations

import json
import random
from itertools import islice, product

import numpy as np
import pytest
from random_graphs import automaton
from shares import share

from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.schema.shapes import Numbers
from maskwright.decoding.reference.json_characters import ALL, Characters, is_in, left, spelled
from maskwright.decoding.reference.json_shapes import NumberShape
from maskwright.decoding.reference.json_values import value_of

SAMPLE = [*range(0x300), *range(0xD700, 0xE100, 7), 0x20AC, 0xFFFF, 0x10000, 0x1F600, 0x1F601, 0x10FFFF]
CHARACTERS = [chr(point) for point in SAMPLE if not 0xD800 <= point < 0xE000]


def spellings(character: str) -> list[bytes]:
    """All spellings, but those that mix small and capital digits, by what JSON says of strings."""
    units = character.encode("utf-16-be").hex()
    escape = "".join("\\u" + units[i : i + 4] for i in range(0, len(units), 4))
    found = [escape.encode(), escape.upper().replace("U", "u").encode()]
    if character >= " " and character not in '"\\':
        found.append(character.encode())
    short = {'"': '"', "\\": "\\", "/": "/", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
    return found + ([b"\\" + short[character].encode()] if character in short else [])


@pytest.mark.parametrize("character", CHARACTERS[::5])
def test_spellings_of_a_character(character: str) -> None:
    for spelling in spellings(character):
        assert json.loads(b'"' + spelling + b'"') == character
        for end in range(1, len(spelling) + 1):
            assert is_in(ord(character), spelled(spelling[:end])), spelling[:end]
            assert (left(spelling[:end]) == 0) == (end == len(spelling)), spelling[:end]
            assert left(spelling[:end]) <= len(spelling) - end, spelling[:end]
        assert spelled(spelling) == ((ord(character), ord(character)),)


def test_minimal_escapes_give_each_character_one_spelling() -> None:
    """That of the standard library; and no other bytes are one, or the beginning of one."""
    spelling_of = {character: json.dumps(character, ensure_ascii=False)[1:-1].encode() for character in CHARACTERS}
    for character in CHARACTERS:
        for spelling in spellings(character):
            found = spelled(spelling, "minimal")
            assert found == (((ord(character), ord(character)),) if spelling == spelling_of[character] else ())
        own = spelling_of[character]
        for end in range(1, len(own) + 1):
            begun = {ord(other) for other, text in spelling_of.items() if text.startswith(own[:end])}
            assert {point for point in begun if not is_in(point, spelled(own[:end], "minimal"))} == set()
    for beginning in (b"\\/", b"\\u1", b"\\u01", b"\\u002", b"\\u001A", b"\\u000a", b"\\ud", b"\\x"):
        assert spelled(beginning, "minimal") == (), beginning
    assert spelled(b"\\", "minimal") == tuple((point, point) for point in (*range(32), 34, 92))
    assert spelled(b"\\u00", "minimal") == tuple(
        (point, point) for point in range(32) if point not in (8, 9, 10, 12, 13)
    )


def test_natural_escapes_are_those_of_the_standard_library_in_either_case() -> None:
    for character in CHARACTERS:
        wanted = {json.dumps(character, ensure_ascii=ascii_only)[1:-1].encode() for ascii_only in (True, False)}
        wanted |= {one[:2] + one[2:].upper().replace(b"U", b"u") for one in wanted if one[:2] == b"\\u"}
        for spelling in spellings(character):
            is_natural = spelling in wanted or (
                spelling[:2] == b"\\u" and spelling.lower() in {w.lower() for w in wanted}
            )
            assert spelled(spelling, "natural") == (((ord(character), ord(character)),) if is_natural else ()), spelling
            for end in range(1, len(spelling) + 1 if is_natural else 1):
                assert is_in(ord(character), spelled(spelling[:end], "natural")), spelling[:end]
    for beginning in (b"\\/", b"\\u002", b"\\u006", b"\\u007e", b"\\u000a", b"\\x"):
        assert spelled(beginning, "natural") == (), beginning


def test_characters_of_a_beginning_are_those_that_are_spelled_so() -> None:
    beginnings: dict[bytes, set[int]] = {}
    for character in CHARACTERS:
        for spelling in spellings(character):
            for end in range(1, len(spelling)):
                beginnings.setdefault(spelling[:end], set()).add(ord(character))
    for beginning, points in beginnings.items():
        found = spelled(beginning)
        assert {ord(c) for c in CHARACTERS if is_in(ord(c), found)} >= points
        if beginning[:1] != b"\\" or b"a" > beginning[-1:] >= b"0":  # small digits spell as capital ones do
            assert {ord(c) for c in CHARACTERS if is_in(ord(c), found)} == points, beginning


def states_after(dfa: Dfa, points: np.ndarray, state: int) -> np.ndarray:
    """The state after each character, read from `state` byte by byte in UTF-8; -1 for none."""
    n_bytes = 1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000)
    found = np.full(len(points), state)
    for n, lead in ((1, 0), (2, 0xC0), (3, 0xE0), (4, 0xF0)):
        some, after = points[n_bytes == n], found[n_bytes == n]
        for place in range(n):
            bits = some >> 6 * (n - 1 - place)
            byte = lead | bits if place == 0 else 0x80 | bits & 0x3F
            after = np.where(after >= 0, dfa.next_state[after, byte], -1)
        found[n_bytes == n] = after
    for at in range(0, len(points), 20_011):
        assert found[at] == dfa.run(chr(points[at]).encode(), state)
    return found


@pytest.mark.parametrize(
    "pattern", share(["[^a]b?", "(😀|a){0,3}", "é|[à-ü]+", "[\U00010000-\U00020000]", "[ -~]*"], 1)
)
@pytest.mark.parametrize("n_states", share([1, 2], 1))
def test_steps_are_those_of_all_characters(pattern: str, n_states: int) -> None:
    rng = random.Random(pattern)
    dfa = automaton(pattern)
    characters = Characters(dfa)
    points = np.concatenate([np.arange(first, last + 1) for first, last in ALL])
    points = points[(points < 0xD800) | (points >= 0xE000)]
    for ranges in (ALL, ((0x61, 0x61),), ((0, 0xFF),), ((0xE0, 0x1F600),), ((rng.randrange(0x800), 0xFFFF),)):
        for state in range(min(dfa.n_states, n_states)):
            chosen = np.concatenate([points[(points >= first) & (points <= last)] for first, last in ranges])
            after = states_after(dfa, chosen, state)
            states, counts = np.unique(after[after >= 0], return_counts=True)
            found = dict(zip(states.tolist(), counts.tolist(), strict=True))
            if ranges == ALL:
                assert characters.steps(state, ranges) == found
            else:
                assert found.keys() <= characters.steps(state, ranges).keys()


@pytest.mark.parametrize("pattern", ["(ab)*", "a|b+", "[ab]{1,2}", "(aa)+|b", "(aaa)*", "b?[ab]{3}|a{7}"])
def test_strings_of_some_lengths(pattern: str) -> None:
    dfa = automaton(pattern)
    characters = Characters(dfa)
    of_length = [
        [text for text in ("".join(t).encode() for t in product("ab", repeat=n)) if dfa.matches(text)] for n in range(9)
    ]
    for least, most in product(range(9), range(9)):
        wanted = [text for texts in of_length[least : most + 1] for text in texts]
        assert list(characters.strings(0, least, most)) == wanted
        assert characters.goes_on(0, least, most) == bool(wanted)
        for first in "ab":
            behind = [text for text in wanted if text[:1] == first.encode()]
            ranges = ((ord(first), ord(first)),)
            assert list(characters.strings(0, least, most, b"", ranges)) == behind
            assert characters.goes_on(0, least, most, ranges) == bool(behind)
    is_endless = "*" in pattern or "+" in pattern
    assert len(list(islice(characters.strings(0, 20, None), 2))) == (2 if is_endless else 0)
    assert characters.goes_on(0, 20, None) == is_endless


NUMBERS = ("0|1", r"1\.0+", r"0(\.0*1)?", "-?0(e[0-9]+)?", "1(0*|0*e-?[0-9]+)", r"[1-9]e-1|0\.[1-9]0*", "1e(0|1)[01]?")


@pytest.mark.parametrize("pattern", NUMBERS)
def test_new_numbers_that_go_on(pattern: str) -> None:
    """Against all numbers of up to nine bytes, with known numbers that are among the shorter ones."""
    dfa = automaton(pattern)
    shape = NumberShape(Numbers(dfa))
    texts = [b""]
    for text in texts:  # grows while it is read
        if len(text) < 8:
            texts += [text + bytes([b]) for b in b"0123456789.-e" if dfa.run(text + bytes([b])) >= 0]
        if len(texts) > 10_000:
            break
    whole_ones = [text for text in texts if dfa.matches(text)]
    rng = random.Random(pattern)
    for _ in range(10):
        known = frozenset(value_of(text) for text in rng.sample(whole_ones[:12], min(3, len(whole_ones[:12]))))
        for text in texts[:60]:
            if len(text) > 4:
                continue
            values = shape.values(dfa.run(text), text)
            wanted = any(one.startswith(text) and value_of(one) not in known for one in whole_ones)
            assert any(value not in known for value in values) == wanted, (text, known)


@pytest.mark.parametrize("text", [b"0", b"-1.50e1", b"1e5", b"-0.0e7", b"100", b"0.001", b"1E-03", b"120e-1"])
def test_values_of_numbers(text: bytes) -> None:
    value = value_of(text)
    sign = -1 if value.is_negative else 1
    assert sign * int(value.digits or 0) * 10.0**value.exponent == pytest.approx(float(text))
    assert value_of(b"1e" + b"9" * 5000).exponent == 10**5000 - 1
