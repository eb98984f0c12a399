"""What is nested is read the same way whoever asks: limits, and a stack of one's own.

Readers and compilers recurse over what stands inside one another: groups, subschemas, JSON values.
How deep Python lets them depends on the recursion limit, which any library may set, and on the
frames that the caller has. So each of them counts, and refuses more than `MOST_NESTED` by itself.
Up to there a thread's fresh stack suffices, and one is taken where the caller's is used.
"""

from __future__ import annotations

import contextvars
import functools
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from maskwright.analysis.deadline import HandedOver
from maskwright.analysis.errors import NestingError
from maskwright.analysis.locks import new_lock

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

MOST_NESTED = 100
"""BOUND: groups, subschemas or terminals inside one another; tests/analysis/test_nesting.py finds
that `_LEAST_LIMIT` frames suffice for each reader."""
MOST_NESTED_JSON = 250
"""BOUND: arrays and objects inside one another, where a subschema takes two of them."""

_SHALLOW = 150
"""Frames of a caller with which work begins on the same stack."""
_LEAST_LIMIT = 1000
"""The recursion limit that suffices on a fresh stack: Python's own."""


def on_own_stack(work: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """A function that does not depend on how deep its caller stands, nor on the recursion limit.

    PERF: a caller with few frames, as most are, pays a microsecond. Where there are many, or they
    do not suffice, the work is done, or done again, in a thread of its own, with the caller's
    context and what is left of its time (`deadline`); it ends when the caller is interrupted.

    Raises: what `work` raises, and NestingError where even a fresh stack does not suffice.

    Example:
        >>> on_own_stack(abs)(-1)
        1
    """

    @functools.wraps(work)
    def done(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            sys._getframe(_SHALLOW)
            is_deep = True
        except ValueError:
            is_deep = False
        if not is_deep:
            try:
                return work(*args, **kwargs)
            except RecursionError:
                pass  # of few frames that Python counts more for, or under a lowered limit
        return _in_thread(lambda: work(*args, **kwargs))

    return done


def _in_thread(work: Callable[[], Result]) -> Result:
    """What `work()` returns in a thread of its own. Raises: what it raises."""
    found: list[Result] = []
    errors: list[BaseException] = []
    context = contextvars.copy_context()
    # no Thread.join: in some versions of Python an interrupted one takes the thread for ended
    has_ended = threading.Event()
    handed_over = HandedOver(work)

    def run() -> None:
        try:
            with _enough():
                found.append(context.run(handed_over))
        except BaseException as error:
            errors.append(error)
        finally:
            has_ended.set()

    thread = threading.Thread(target=run, name="maskwright-stack", daemon=True)
    try:
        thread.start()
        while not has_ended.wait(0.1):
            pass
    except BaseException:  # as Ctrl-C
        handed_over.is_unwanted = True
        raise
    handed_over.charge()
    try:
        if errors:
            raise errors[0]
        return found[0]
    except RecursionError as error:
        raise NestingError("it is nested too deeply to be read or compiled; write it flatter") from error
    finally:
        errors.clear()  # or the error would hold itself


_lock = new_lock()
_raised: list[int] = []
"""For each thread that raised the limit, or found it raised: the host's limit."""


@contextmanager
def _enough() -> Iterator[None]:
    """A recursion limit of at least `_LEAST_LIMIT`, where the host has lowered it."""
    with _lock:
        limit = sys.getrecursionlimit()
        is_low = limit < _LEAST_LIMIT or bool(_raised)
        if is_low:
            _raised.append(_raised[0] if _raised else limit)
            sys.setrecursionlimit(max(limit, _LEAST_LIMIT))
    try:
        yield
    finally:
        if is_low:
            with _lock:
                limit = _raised.pop()
                if not _raised and sys.getrecursionlimit() == _LEAST_LIMIT:
                    sys.setrecursionlimit(limit)


def read_json(text: str | bytes, **options: Any) -> Any:
    """`json.loads` of what is not nested too deeply.

    options : as `json.loads`.

    Raises: json.JSONDecodeError for what is not JSON; NestingError, another ValueError, for what
    stands more than `MOST_NESTED_JSON` deep.
    """
    brackets: tuple[Any, Any] = ("{", "[") if isinstance(text, str) else (b"{", b"[")
    if text.count(brackets[0]) + text.count(brackets[1]) <= MOST_NESTED_JSON:  # PERF: as in most texts
        return on_own_stack(json.loads)(text, **options)
    return _read(lambda: json.loads(text, **options))


def read_json_at(text: str, at: int) -> tuple[Any, int]:
    """The JSON value that begins at an offset of a text, and where it ends.

    Raises: as `read_json`.
    """
    found: tuple[Any, int] = _read(lambda: json.JSONDecoder().raw_decode(text, at))
    return found


def _read(read: Callable[[], Any]) -> Any:
    try:
        found = on_own_stack(read)()
    except NestingError:
        raise NestingError(_DEEP_JSON) from None
    check_nesting(found)
    return found


def check_nesting(value: Any) -> None:
    """Raises: NestingError for a value of dicts, lists and tuples that is nested too deeply.

    Cost: O(values), 0.1 us each.
    """
    inside = {0: value}  # by identity: Python values may share parts
    for _ in range(MOST_NESTED_JSON + 1):
        if not inside:
            return
        inside = {
            id(each): each
            for one in inside.values()
            if isinstance(one, dict | list | tuple)
            for each in (one.values() if isinstance(one, dict) else one)
            if isinstance(each, dict | list | tuple)
        }
    raise NestingError(_DEEP_JSON)


_DEEP_JSON = f"arrays and objects stand more than {MOST_NESTED_JSON} deep inside one another; write it flatter"
