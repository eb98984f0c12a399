"""Verdicts byte for byte, held against a reference of a few lines; outcomes of texts that ought to be accepted or refused."""

from __future__ import annotations

import itertools

import byte_parser as reach
import pytest
from byte_parser import ByteParser, Reach, TextResult, byte_vocabulary, judge_negative, judge_positive
from paths import ROOT

from maskwright.analysis.errors import GrammarError, LimitError, MaskwrightError
from maskwright.analysis.loading import parse_grammar

PAIRS = 'start: "a" start "b" | "a" "b"'
SUMS = 'start: start "+" start | /[ab]é?/\n%ignore " "'


@pytest.fixture(scope="module")
def pairs() -> ByteParser:
    return ByteParser(parse_grammar(PAIRS, name="pairs"))


@pytest.fixture(scope="module")
def sums() -> ByteParser:
    """Ambiguous: its parser follows several stacks."""
    return ByteParser(parse_grammar(SUMS, name="sums"))


def plain_refusal(text: bytes) -> int | None:
    """a^n b^n, n > 0, from its definition."""
    n = 0
    while text[n : n + 1] == b"a":
        n += 1
    closed = 0
    while closed < n and text[n + closed : n + closed + 1] == b"b":
        closed += 1
    return None if n > 0 and closed == n and len(text) == 2 * n else n + closed


def test_every_short_text(pairs: ByteParser) -> None:
    for n in range(7):
        for letters in itertools.product(b"abc", repeat=n):
            text = bytes(letters)
            assert pairs.refusal(text) == plain_refusal(text), text
            assert pairs.accepts(text) == (plain_refusal(text) is None)


def test_offsets_are_bytes_and_may_stand_within_a_character(sums: ByteParser) -> None:
    assert sums.refusal("aé + b +bé".encode()) is None
    assert sums.refusal("aé é".encode()) == 4
    assert sums.refusal(b"a\xc3\xa8") == 2  # an e with another accent: its first byte is right
    assert sums.refusal(b"a\xc3") == 2  # half a character at the end: only the end is wrong
    assert sums.refusal(b"") == 0
    assert sums.refusal(b"a+") == 2


def test_it_starts_afresh_with_each_text(sums: ByteParser) -> None:
    assert sums.refusal(b"a+") == 2
    assert sums.refusal(b"a") is None


def test_long_texts(pairs: ByteParser) -> None:
    assert pairs.refusal(b"a" * 5000 + b"b" * 5000) is None
    assert pairs.refusal(b"a" * 5000 + b"b" * 5001) == 10_000


def test_nfa_lexing_has_no_engine() -> None:
    with pytest.raises(GrammarError, match="lexing 'nfa' has no exact engine"):
        ByteParser(parse_grammar(PAIRS, lexing="nfa"))


def test_vocabulary_of_bytes() -> None:
    vocabulary = byte_vocabulary()
    assert [vocabulary.tokens[byte] for byte in (0, 65, 255)] == [b"\0", b"A", b"\xff"]
    assert vocabulary.eos == (256,) and vocabulary.size == 257


def test_positive_outcomes(pairs: ByteParser) -> None:
    good, bad = judge_positive(pairs, [("good", b"aabb"), ("bad", b"abb")])
    assert good == TextResult("good", reach.ACCEPTED, True)
    assert bad == TextResult("bad", reach.REFUSED, False, 2, shown="ab¦b")


def test_negative_outcomes(pairs: ByteParser) -> None:
    cases = [
        ("exact", b"abb", 2, 2),
        ("end", b"aab", 3, 3),
        ("early", b"abb", 3, 3),
        ("late", b"abb", 0, 1),
        ("no", b"ab", 0, 2),
    ]
    found = list(judge_negative(pairs, cases))
    assert [outcome.verdict for outcome in found] == [
        reach.REFUSED,
        reach.REFUSED,
        reach.EARLY,
        reach.LATE,
        reach.ACCEPTED,
    ]
    assert [outcome.is_right for outcome in found] == [True, True, False, False, False]
    assert [outcome.at for outcome in found] == [2, 3, 2, 2, None]
    assert found[3].expected == (0, 1) and found[3].shown == "ab¦b"


@pytest.mark.parametrize(("lower", "upper"), [(-1, 2), (2, 1), (0, 4)])
def test_an_impossible_interval_is_no_case(pairs: ByteParser, lower: int, upper: int) -> None:
    with pytest.raises(MaskwrightError, match=r"case odd: its first bad byte .* within 0 \.\. 3"):
        list(judge_negative(pairs, [("odd", b"abb", lower, upper)]))


def test_what_the_engine_cannot_decide_is_an_outcome(pairs: ByteParser, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusal(self: ByteParser, data: bytes) -> int | None:
        raise LimitError("too many stacks")

    monkeypatch.setattr(ByteParser, "refusal", refusal)
    (good,) = judge_positive(pairs, [("good", b"ab")])
    (bad,) = judge_negative(pairs, [("bad", b"abb", 0, 2)])
    assert good == TextResult("good", reach.OVER_LIMIT, False, why="too many stacks")
    assert bad == TextResult("bad", reach.OVER_LIMIT, False, expected=(0, 2), why="too many stacks")


def test_counts_and_exceptions(pairs: ByteParser) -> None:
    cases = [("one", b"ab"), ("two", b"b"), ("three", b"a")]
    found = Reach(tuple(judge_positive(pairs, cases)), {"two": "a cause", "one": "no longer"})
    assert found.counts == {"texts": 3, "right": 1, "known": 1, reach.ACCEPTED: 1, reach.REFUSED: 2}
    assert [outcome.name for outcome in found.wrong] == ["two", "three"]
    assert [outcome.name for outcome in found.unexplained] == ["three"]
    assert found.stale == ("one",)


def test_excerpt_is_one_line() -> None:
    assert reach.excerpt("é\n\xa0x".encode(), 3) == "\\xe9\\n¦\\xa0x"
    assert reach.excerpt(b"\xff\x00", 1) == "\\\\xff¦\\x00"


def test_corpora_are_of_the_form_that_the_driver_needs() -> None:
    bench = ROOT / "reports" / "bench"
    driver = (bench / "reach.py").read_text(encoding="utf-8")
    for path in sorted((bench / "corpora").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert f'"{path.stem}"' in driver, f"{path.name} is no source"
        assert "def positive(" in text and "def negative(" in text, path.name
        assert text.startswith('"""'), f"{path.name} does not say which corpus and which reference"
