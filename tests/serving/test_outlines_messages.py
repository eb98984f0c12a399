"""What the backend for Outlines says of a pattern, without Outlines: it hands patterns on in brackets."""

from __future__ import annotations

import time

import pytest

import maskwright as mw
from maskwright.serving import outlines as ours


@pytest.mark.parametrize("pattern", [r"(a)\1", r"[(]\)(b)\1", "(", r"(?<=a)b"])
def test_a_message_shows_the_pattern_without_the_brackets(pattern: str) -> None:
    backend = ours.BackendMasks(mw.load_vocabulary("python-tiny"), "numpy")
    with pytest.raises(mw.MaskwrightError) as error:
        backend.get_regex_logits_processor(f"({pattern})")
    assert repr(pattern) in str(error.value)


def test_other_patterns_are_shown_as_they_are() -> None:
    backend = ours.BackendMasks(mw.load_vocabulary("python-tiny"), "numpy")
    for pattern in (r"(a)|(b)\1", r"(?:(a)\1)"):
        with pytest.raises(mw.MaskwrightError) as error:
            backend.get_regex_logits_processor(pattern)
        assert repr(pattern) in str(error.value)


def test_brackets_that_are_around_all_of_it() -> None:
    for pattern in (r"((a)\1)", r"([)]\))", "([^)]a)", "(()", "([)"):
        assert ours._is_in_brackets(pattern), pattern
    for pattern in (r"(a)\1", "(a)|(b)", "(?:a)", r"(a\)", "a"):
        assert not ours._is_in_brackets(pattern), pattern


def test_brackets_without_an_end_cost_nothing_unusual() -> None:
    begin = time.process_time()
    ours._is_in_brackets("(" + "[" * 100_000 + ")")
    assert time.process_time() - begin < 1
