"""One call at a time: two calls in one text's memory would ruin it.

Compiled code may let other threads run. So whoever works in a matcher, a batch or resident rows
says so first, and a second caller gets an error instead of waiting. A flag is enough: under the
interpreter's lock no other thread runs between the question and the answer.

PERF: calls of `fill` and `advance` set and clear the flag themselves, for some 15 ns; `alone` and
`Alone` cost 150.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, NoReturn, ParamSpec, TypeVar

from maskwright.analysis.errors import MaskwrightError


class Shared:
    """An object that one thread at a time may use."""

    _is_busy = False
    _what = "this"
    _remedy = ""

    def _refuse_sharing(self) -> NoReturn:
        raise MaskwrightError(
            f"{self._what} is in use by another thread, or by a call that has not returned; give each thread one of its own: {self._remedy}"
        )


SharedT = TypeVar("SharedT", bound=Shared)
P = ParamSpec("P")
R = TypeVar("R")


def alone(method: Callable[Concatenate[SharedT, P], R]) -> Callable[Concatenate[SharedT, P], R]:
    """A method during which no one else may use its object.

    The object is free again behind the call, however that ends: Python looks for Ctrl-C where a
    function begins, and none does between the call and the flag.
    """

    @functools.wraps(method)
    def used(self: SharedT, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._is_busy:
            self._refuse_sharing()
        self._is_busy = True
        try:
            return method(self, *args, **kwargs)
        finally:
            self._is_busy = False

    return used


class Alone:
    """`alone` as a context: of an object that is used beside another.

    owner : the object that is used.

    Raises: MaskwrightError if somebody uses it already.

    Ctrl-C at the first instruction of `__exit__` leaves the owner in use: make it anew then.
    """

    __slots__ = ("_owner",)

    def __init__(self, owner: Shared) -> None:
        self._owner = owner

    def __enter__(self) -> None:
        owner = self._owner
        if owner._is_busy:
            owner._refuse_sharing()
        owner._is_busy = True

    def __exit__(self, *error: object) -> None:
        self._owner._is_busy = False
