"""Results that are kept up to a number of bytes."""

from __future__ import annotations

import numpy as np
import pytest

from maskwright.analysis.kept import Kept, size
from maskwright.analysis.lexing import terminals
from maskwright.analysis.regex import whole


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


def test_what_automata_of_patterns_hold_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server reads patterns of many requests: it keeps a number of bytes, not of automata."""
    for kept, arguments in ((whole._automaton, ("", "python")), (terminals._compile, ("", 20_000))):
        kept.forget()
        monkeypatch.setattr(kept, "_most", 1 << 20)
        found = [kept(f"[a-c]{{{n}}}", *arguments) for n in range(400, 410)]
        assert 4 * size(found[-1]) > 1 << 20 > size(found[-1]) > 400 * 256 * 4
        assert len(kept._kept) == 2 and kept._held <= 1 << 20
        assert kept("[a-c]{409}", *arguments) is found[-1] and kept("[a-c]{400}", *arguments) is not found[0]
        kept.forget()
