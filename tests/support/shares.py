"""A share of many cases in every run; the rest are slow tests, run by `make test-slow`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet
from hypothesis import given, settings


def share(values: Iterable[Any], n: int) -> list[Any]:
    """Parameters for `pytest.mark.parametrize`: the first n values as they are, the others marked slow.

    values : what parametrize takes for several names too, tuples or `pytest.param`.
    """
    values = list(values)
    assert 0 < n < len(values)
    return [*values[:n], *map(_slow, values[n:])]


def every(step: int, values: Iterable[Any]) -> list[Any]:
    """The same, but each `step`-th value stays as it is: for values that are sorted by what they are about."""
    values = list(values)
    assert 1 < step < len(values)
    return [_slow(value) if number % step else value for number, value in enumerate(values)]


def _slow(value: Any) -> Any:
    if isinstance(value, ParameterSet):
        return pytest.param(*value.values, id=value.id, marks=(*value.marks, pytest.mark.slow))
    return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.slow)


def parts(n: int, size: int) -> list[range]:
    """The numbers from 0 to n - 1 in ranges of `size`; the last may be shorter."""
    return [range(begin, min(begin + size, n)) for begin in range(0, n, size)]


def check_examples(check: Callable[..., None], n: int, *strategies: Any) -> None:
    """Calls `check` with n examples that Hypothesis draws; an example that fails is made small, and shown."""
    settings(max_examples=n, deadline=None)(given(*strategies)(check))()
