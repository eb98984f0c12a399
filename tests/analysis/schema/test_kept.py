"""Results that are kept up to a number of bytes."""

from __future__ import annotations

import numpy as np
import pytest

from maskwright.analysis.schema.kept import Kept, size


def test_a_result_is_made_once_and_an_error_each_time() -> None:
    asked = []

    def half(n: int) -> int:
        asked.append(n)
        if n % 2:
            raise ValueError("odd")
        return n // 2

    kept = Kept(half)
    assert [kept(4), kept(4), kept(6)] == [2, 2, 3]
    for _ in range(2):
        with pytest.raises(ValueError, match="odd"):
            kept(3)
    assert asked == [4, 6, 3, 3] and kept.misses == 2
    kept.forget()
    assert kept(4) == 2 and kept.misses == 3


def test_the_first_results_are_forgotten_past_the_limit() -> None:
    kept = Kept(lambda n: np.zeros(n, np.uint8), most_bytes=5000)
    first = kept(2000)
    assert kept(2000) is first
    kept(2001), kept(2002)
    assert kept(2000) is not first
    large = kept(10_000)  # more than the limit by itself: it is all that is kept
    assert kept(10_000) is large
    assert size(large) > 5000


def test_long_texts_are_forgotten_as_large_results_are() -> None:
    kept = Kept(lambda *texts: object(), most_bytes=5000)
    for texts in (("a" * 4000,), (("b" * 2000, b"c" * 2000),)):
        first = kept(*texts)
        assert kept(*texts) is first
        kept("d" * 4000)
        assert kept(*texts) is not first
