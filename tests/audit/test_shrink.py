"""Shrinking: the shortest text by hand, and what may not happen on the way."""

from __future__ import annotations

import itertools
import random

import pytest

from maskwright.audit.shrink import shrink


def balanced(text: bytes) -> bool:
    opened = []
    for byte in text.decode():
        if byte in "([{":
            opened.append({"(": ")", "[": "]", "{": "}"}[byte])
        elif byte in ")]}" and (not opened or opened.pop() != byte):
            return False
    return not opened


@pytest.mark.parametrize(
    ("text", "needle", "expected"),
    [
        ("a\nb\nc needle d\ne\n", "needle", "needle"),
        ("no such\nline\n", "", ""),
        ("(((a) [b{c!}]))\n(d)\n", "!", "!"),
        ("one two\nüber äöü\nthree\n", "ö", "ö"),
        ("x" * 3000 + "!" + "y" * 3000, "!", "!"),
    ],
)
def test_what_is_sought_is_left(text: str, needle: str, expected: str) -> None:
    found = shrink(text.encode(), lambda data: needle.encode() in data and balanced(data))
    assert found == expected.encode()


def test_things_that_go_only_together() -> None:
    # a line and the indentation of the next
    text = b"class t:\n def f"
    assert shrink(text, lambda data: data in (text, b"def f")) == b"def f"
    # what must be there may be something shorter
    assert shrink(b"[[[b]],", lambda data: data.endswith(b",") and data[:-1] in (b"[[[b]]", b"[[b]", b"[a")) == b"[a,"


def test_another_text_is_taken_if_it_is_shorter() -> None:
    tried = []

    def shows(data: bytes) -> bool:
        tried.append(data)
        return data in (b"long text here", b"ab", b"a c")

    assert shrink(b"long text here", shows, others=[b"a c", b"something longer than it", b"ab"]) == b"ab"
    assert b"something longer than it" not in tried and tried[:2] == [b"", b"ab"]


@pytest.mark.parametrize("seed", range(20))
def test_nothing_more_can_be_removed(seed: int) -> None:
    chosen = random.Random(seed)
    text = "".join(chosen.choice("ab(c)\n d") for _ in range(chosen.randrange(1, 60))).encode()
    wanted = bytes(chosen.sample(sorted(text), min(3, len(text))))

    def shows(data: bytes) -> bool:
        return all(data.count(byte) >= wanted.count(byte) for byte in wanted)

    found = shrink(text, shows)
    assert shows(found) and len(found) == len(wanted)
    assert not any(shows(found[:i] + found[j:]) for i, j in itertools.combinations(range(len(found) + 1), 2))


def test_a_text_is_tried_once_and_not_past_the_budget() -> None:
    tried: list[bytes] = []

    def shows(data: bytes) -> bool:
        tried.append(data)
        return b"!" in data

    text = b"".join(b"line %d!\n" % i for i in range(200))
    assert shrink(text, shows) == b"!"
    assert len(tried) == len(set(tried))
    del tried[:]
    found = shrink(text, shows, tests=3)
    assert len(tried) == 3 and b"!" in found and len(found) <= len(text)
    assert shrink(text, shows, seconds=0) == text


def test_characters_are_not_cut() -> None:
    text = "äöüß€𝄞".encode()
    seen = []
    shrink(text, lambda data: seen.append(data) is None and "€".encode() in data)
    for data in seen:
        data.decode()
