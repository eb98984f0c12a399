"""`Matcher.restrict` at two places of a text, against the definition."""

from __future__ import annotations

import itertools
import random
import re

import pytest
from engine_cases import longest, vocabulary_of

from maskwright.stores.build import compile_store


@pytest.mark.parametrize("seed", range(20))
def test_lexemes_of_two_calls_are_those_of_the_definition(seed: int) -> None:
    """All short texts over few letters, read by a pattern, under two calls at two places."""
    rng = random.Random(seed)
    store = compile_store(
        longest('start: (NAME | NUMBER | "," | "ab")*\nNAME: /[ab]+/\nNUMBER: /1+/\n%ignore " "'),
        vocabulary_of(singles=b"ab1, "),
    )
    words = [bytes(word) for n in (1, 2, 3) for word in itertools.product(b"ab", repeat=n)]
    texts = [bytes(text) for n in range(6) for text in itertools.product(b"ab1, ", repeat=n)]
    for _ in range(4):
        text = bytes(rng.choices(b"ab1, ", weights=(4, 4, 1, 2, 1), k=5))
        first, second = sorted(rng.sample(range(5), 2))
        names = [set(rng.sample(words, 6)) for _ in range(2)]
        matcher = store.matcher()
        matcher.advance_bytes(text[:first])
        matcher.restrict("NAME", names[0])
        if not matcher.try_bytes(text[first:second]):
            continue
        matcher.restrict("NAME", names[1])
        for more in rng.sample(texts, 300):
            is_left = _is_left(text[:second] + more, first, second, *names)
            there = matcher.fork()
            assert (there.try_bytes(more) and there.is_accepting()) == is_left, (text, more, first, second, names)


def _is_left(text: bytes, first: int, second: int, names: set[bytes], others: set[bytes]) -> bool:
    """Whether the lexemes of a text are names where `restrict` was called at two places of it."""
    seen = [lexeme for lexeme in re.finditer(rb"[ab]+|1+|,", text)]
    at_first = next((one for one in seen if one.start() >= first), None)
    if at_first is not None and at_first.start() < second <= at_first.end() and at_first[0][:1] in b"ab":
        return at_first[0] == b"ab" or at_first[0] in names & others
    at_second = next((one for one in seen if one.start() >= second), None)
    is_first = at_first is None or at_first.start() >= second or not _is_word(at_first[0]) or at_first[0] in names
    return is_first and (at_second is None or not _is_word(at_second[0]) or at_second[0] in others)


def _is_word(lexeme: bytes) -> bool:
    return lexeme[:1] in b"ab" and lexeme != b"ab"
