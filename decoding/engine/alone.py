"""One call at a time: two calls in one text's memory would ruin it.

Compiled code may let other threads run. So whoever works in a matcher, a batch or resident rows
says so first, and a second caller gets an error instead of waiting. A flag is enough: under the
interpreter's lock no other thread runs between the question and the answer.

PERF: calls of `fill` and `advance` set and clear the flag themselves, for some 15 ns; `Alone` costs
150.
"""

from __future__ import annotations

from typing import NoReturn

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


class Alone:
    """A context in which no one else may use the owner.

    owner : the object that is used.

    Raises: MaskwrightError if somebody uses it already.

    Ctrl-C at the first instruction of `__exit__` leaves the owner in use: make it anew then.
    Nothing else that may be interrupted stands between setting the flag and clearing it.
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
