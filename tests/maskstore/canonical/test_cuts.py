"""Where patterns of tokenizers cut texts, against the package regex."""

from __future__ import annotations

import random

import pytest
from shares import parts, share

from maskwright.analysis.errors import VocabularyError
from maskwright.maskstore.canonical.cuts import Course, Cuts
from maskwright.maskstore.vocabulary.encoders import RANK_FILE_PATTERN

_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
PATTERNS = {
    "cl100k": RANK_FILE_PATTERN,
    "cl100k, possessive": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "o200k": rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_ENDINGS}"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "python-tiny": r"(?:\r?\n[ \t]*)+| ?(?:_*\p{L}+|_+|\p{N}{1,3}|[^\s_\p{L}\p{N}]+)|[^\S\r\n]+(?!\S)|\s",
    "lazy": r"\s+?|[a-z]+?(?!b)|(?s:.)",
}
LETTERS = "ab LlsVvERre'' '  \n\r\t12.;/_éßǅʰ漢\u0301_S"


def cuts_of(cuts: Cuts, text: str) -> list[tuple[int, ...]]:
    """The cuts of every guess that holds at the end of a text."""
    guesses: set[tuple[Course, tuple[int, ...]]] = {(cuts.start(), ())}
    for index, character in enumerate(text):
        kind = int(cuts.classes[ord(character)])
        guesses = {
            (then, (*found, index) if is_cut else found)
            for course, found in guesses
            for is_cut in (True, False)
            if (then := cuts.step(course, kind, is_cut)) is not None
        }
        assert all(cuts.is_possible(course) for course, _ in guesses if cuts.can_end(course))
    return [found for course, found in guesses if cuts.can_end(course)]


@pytest.mark.parametrize("seeds", share(parts(60, 6), 1))
@pytest.mark.parametrize("name", PATTERNS)
def test_one_guess_holds_and_is_what_the_package_finds(name: str, seeds: range) -> None:
    regex = pytest.importorskip("regex")
    cuts = Cuts(PATTERNS[name], name)
    oracle = regex.compile(PATTERNS[name])
    for seed in seeds:
        rng = random.Random(seed)
        for _ in range(50):
            text = "".join(rng.choice(LETTERS) for _ in range(rng.randint(1, 9)))
            expected = tuple(match.start() for match in oracle.finditer(text))
            assert cuts_of(cuts, text) == [expected], text


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (r"(?<=a)b|(?s:.)", "look-aheads of one character"),
        (r"a(?!bc)|(?s:.)", "look-aheads of one character"),
        (r"[a-z]", "between two matches"),
        (r"ab|[^a]", "between two matches"),
        (r"a*|(?s:.)", "the empty text"),
        (r"a++ab|(?s:.)", "possessive"),
        (r"(?>a+)a|(?s:.)", "atomic"),
        (r"a{1,1000}|(?s:.)", "more than 64 times"),
        (r"\p{Greek}+|(?s:.)", "the property Greek"),
        (r"(a", "cannot be read"),
        (r"(a)\1|(?s:.)", "back-reference"),
    ],
)
def test_what_cannot_be_followed_is_refused(pattern: str, why: str) -> None:
    with pytest.raises(VocabularyError, match=why):
        Cuts(pattern, "t")
