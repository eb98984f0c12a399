"""A share of many cases in every run; the rest are slow tests, run by `make test-slow`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet


def share(values: Iterable[Any], n: int) -> list[Any]:
    """Parameters for `pytest.mark.parametrize`: the first n values as they are, the others marked slow.

    values : what parametrize takes for several names too, tuples or `pytest.param`.
    """
    values = list(values)
    assert 0 < n < len(values)
    return [*values[:n], *map(_slow, values[n:])]


def _slow(value: Any) -> Any:
    if isinstance(value, ParameterSet):
        return pytest.param(*value.values, id=value.id, marks=(*value.marks, pytest.mark.slow))
    return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.slow)


def parts(n: int, size: int) -> list[range]:
    """The numbers from 0 to n - 1 in ranges of `size`; the last may be shorter."""
    return [range(begin, min(begin + size, n)) for begin in range(0, n, size)]
