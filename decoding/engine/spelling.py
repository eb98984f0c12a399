"""Old spellings of calls that still work, each with a DeprecationWarning."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any


class Question:
    """A method without arguments that was a property in the past.

    ``text.is_finished()`` is the call; ``if text.is_finished:`` still works, with a warning.

    ask : the method: from the object to the answer.
    """

    def __init__(self, ask: Callable[[Any], bool]) -> None:
        self._ask = ask
        self.__doc__ = ask.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.__name__ = name

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return self if owner is None else Answer(self._ask, owner, self.__name__)

    def __call__(self, owner: Any) -> bool:
        return self._ask(owner)


class Answer:
    """A `Question` of one object. A call returns the answer.

    As a truth value or a number it is the answer, too, with a DeprecationWarning.

    ask : the method: from the object to the answer.
    owner : the object.
    name : the method's name, for the warning.
    """

    __slots__ = ("_ask", "_name", "_owner")

    def __init__(self, ask: Callable[[Any], bool], owner: Any, name: str) -> None:
        self._ask, self._owner, self._name = ask, owner, name

    def __call__(self) -> bool:
        return self._ask(self._owner)

    def _old(self) -> bool:
        warnings.warn(
            f"{self._name} is a method: write {self._name}(); without the parentheses it will always be true in a later version",
            DeprecationWarning,
            stacklevel=3,
        )
        return self._ask(self._owner)

    def __bool__(self) -> bool:
        return self._old()

    def __int__(self) -> int:
        return int(self._old())

    def __index__(self) -> int:
        return int(self._old())

    def __eq__(self, other: object) -> bool:
        return self._old() == (other._ask(other._owner) if isinstance(other, Answer) else other)

    def __hash__(self) -> int:
        return hash(self._old())

    def __add__(self, other: int) -> int:
        return self._old() + other

    __radd__ = __add__

    def __repr__(self) -> str:
        return repr(self._old())
