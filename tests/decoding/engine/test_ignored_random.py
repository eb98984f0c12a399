"""Ignored terminals of the other terminals' letters: they can end anywhere, and the lexer backs up over them."""

from __future__ import annotations

import random
import re

import pytest
from engine_cases import compile_strictly, vocabulary_of
from mask_bits import row
from naive_engine import NaiveEngine
from random_patterns import random_pattern
from shares import share

from maskwright.analysis.errors import DeadEndError, MaskwrightError
from maskwright.analysis.loading import parse_grammar
from maskwright.decoding.matcher import Matcher
from maskwright.stores.build import compile_store

WORDS = ("a", "b", "ab", "ba", "aa", "bb", "aab", "c")
MOST = 80
"""Texts of one length that are followed."""


def random_text(seed: int, lexing: str) -> str:
    """A grammar of few words, and what may stand between them."""
    rng = random.Random(seed)
    words = rng.sample(WORDS, rng.randint(1, 3))
    starts = [" ".join(f'"{rng.choice(words)}"' for _ in range(rng.randint(1, 3))) for _ in range(rng.randint(1, 2))]
    patterns: list[str] = []
    while len(patterns) < (2 if seed % 3 == 0 else 1):
        pattern = random_pattern(rng, 3, ("a", "b", "ab", "ba", "[ab]", "c"))
        if not re.fullmatch(pattern, ""):
            patterns.append(pattern)
    ignored = "".join(f"%ignore /{pattern}/\n" for pattern in patterns)
    return f"// maskwright: lexing = {lexing}\nstart: {' | '.join(starts)}\n{ignored}"


def bytes_allowed(matcher: Matcher) -> set[bytes]:
    """The next bytes; none at a dead end, which such grammars have: nothing keeps two lexemes apart."""
    try:
        return {matcher.store.vocabulary.tokens[i] for i in row(matcher)} - {b""}
    except DeadEndError:
        return set()


def check_nothing_legal_is_refused(seed: int, lexing: str) -> int:
    """The engine's bytes hold all those of its naive twin, along all short texts. Returns how many texts were looked at."""
    text = random_text(seed, lexing)
    try:
        grammar = parse_grammar(text)
        store = compile_strictly(grammar, vocabulary_of(singles=b"abc"))
    except MaskwrightError:  # some back up without end, some derive nothing
        return 0
    naive = NaiveEngine(grammar)
    looked_at, texts = 0, [b""]
    for _ in range(6):
        longer = []
        for begun in texts:
            matcher = store.matcher()
            matcher.advance_bytes(begun)
            allowed = bytes_allowed(matcher)
            expected = {bytes([byte]) for byte in b"abc" if naive.is_legal_prefix(begun + bytes([byte]))}
            assert expected <= allowed, (text, begun)
            assert matcher.is_accepting() or not naive.is_legal_text(begun), (text, begun)
            longer += [begun + byte for byte in sorted(expected)]
            looked_at += 1
        texts = longer[:MOST]
    return looked_at


@pytest.mark.parametrize("lexing", ["longest", "contextual"])
def test_nothing_legal_is_refused(lexing: str) -> None:
    assert sum(check_nothing_legal_is_refused(seed, lexing) for seed in (*range(20), 227)) > 500


@pytest.mark.slow
@pytest.mark.parametrize("lexing", ["longest", "contextual"])
def test_nothing_legal_is_refused_by_many(lexing: str) -> None:
    assert sum(check_nothing_legal_is_refused(seed, lexing) for seed in range(1000, 1400)) > 8_000


@pytest.mark.parametrize("n", share([5, 40], 1))
@pytest.mark.parametrize("lexing", ["longest", "contextual"])
def test_what_is_taken_whole_is_taken_byte_by_byte(lexing: str, n: int) -> None:
    """However a text is cut into tokens."""
    rng, taken = random.Random(0), 0
    for seed in range(n):
        try:
            store = compile_store(parse_grammar(random_text(seed, lexing)), vocabulary_of(singles=b"abc"))
        except MaskwrightError:
            continue
        for _ in range(60):
            text = bytes(rng.choices(b"abc", weights=(3, 3, 1), k=rng.randint(2, 8)))
            matcher = store.matcher()
            try:
                matcher.advance_bytes(text)
            except MaskwrightError:
                continue
            taken += 1
            single = store.matcher()
            for byte in text:
                single.advance_bytes(bytes([byte]))
            assert single.is_accepting() == matcher.is_accepting()
    assert taken > 6 * n
