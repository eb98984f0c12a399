"""Work looks at its clock itself, also where another thread does it."""

from __future__ import annotations

import time

import pytest

from maskwright.analysis.deadline import OutOfTimeError, look, time_limit
from maskwright.analysis.nesting import on_own_stack


def spin(seconds: float) -> None:
    """Use CPU time, and look at the clock."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        look()


@on_own_stack
def nested(seconds: float) -> None:
    spin(seconds)


def deep(frames: int, seconds: float) -> None:
    """Call `nested` where so many frames stand already."""
    if frames:
        deep(frames - 1, seconds)
    else:
        nested(seconds)


@pytest.mark.parametrize("frames", [0, 300])
def test_work_ends_when_its_time_is_up(frames: int) -> None:
    begin = time.thread_time()
    with (
        pytest.raises(OutOfTimeError, match=r"the test took more than 0\.05 s of CPU time"),
        time_limit(0.05, "the test"),
    ):
        deep(frames, 60)
    assert time.thread_time() - begin < 1
    with time_limit(10, "the test"):
        deep(frames, 0.01)


def test_time_that_another_thread_spends_counts() -> None:
    with pytest.raises(OutOfTimeError, match="both"), time_limit(0.1, "both"):
        deep(300, 0.07)
        spin(0.07)


def test_of_two_limits_the_sooner_ends_the_work() -> None:
    with pytest.raises(OutOfTimeError, match="outer"), time_limit(0.05, "outer"), time_limit(50, "inner"):
        deep(300, 60)
    with time_limit(50, "outer"):
        with pytest.raises(OutOfTimeError, match="inner"), time_limit(0.05, "inner"):
            deep(300, 60)
        deep(300, 0.01)
