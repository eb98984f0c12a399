"""One call at a time: compiled code lets other threads run, and two calls in one text's memory would ruin it.

So whoever works in a matcher, a batch or resident rows says so first, and a second caller gets an error instead of a turn. A flag does:
under the interpreter's lock no other thread runs between the question and the answer.

PERF: a call of `fill` or `advance` sets and clears the flag by itself, for some 15 ns; `Alone` costs 150.
"""

from __future__ import annotations

from typing import NoReturn

from maskwright.analysis.errors import MaskwrightError


class Shared:
    """What one thread at a time may use."""

    _is_busy = False
    _what = "this"
    _remedy = ""

    def _refuse_sharing(self) -> NoReturn:
        raise MaskwrightError(
            f"{self._what} is in use by another thread, or by a call that has not returned; give each thread one of its own: {self._remedy}"
        )


class Alone:
    """As a context: no one else may use the owner. Raises MaskwrightError if somebody does.

    INVARIANT: nothing that may be interrupted stands between the flag's being set and the block that clears it.
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
