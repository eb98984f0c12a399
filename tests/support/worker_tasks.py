"""What workers of tests answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from maskwright.analysis.deadline import look
from maskwright.analysis.errors import LimitError, SchemaError


def answering(*, works: bool = True) -> Callable[[Any], Any]:
    return answer


def failing() -> Callable[[Any], Any]:
    raise RuntimeError("nothing to answer with")


def answer(asked: tuple[str, Any]) -> Any:
    what, value = asked
    if what == "echo":
        return value
    if what == "arrays":
        return [np.arange(size, dtype=np.int32) for size in value]
    if what == "refuse":
        raise SchemaError(f"no {value}", "/a/b")
    if what == "spin and look":
        while True:
            look()
    if what == "spin":
        return sum(range(10**12))
    if what == "work":
        end = time.thread_time() + value
        while time.thread_time() < end:
            look()
        return value
    if what == "sleep":
        return time.sleep(value)
    assert what == "fill"
    try:
        return len(bytes(value))
    except MemoryError as error:
        raise LimitError("too large") from error
