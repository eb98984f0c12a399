"""What is found once, also where it cannot be found."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, Generic, TypeVar, overload

from maskwright.analysis.errors import MaskwrightError

T = TypeVar("T")


class remembered(Generic[T]):
    """As `functools.cached_property`, but a `MaskwrightError` is kept too, and raised again whenever the value is asked for.

    INVARIANT: the error kept is a copy that nobody has raised: one that was raised holds the frames that it came through, and their values.

    PERF: each check asks for the lexer; one over a limit would be built up to the limit for each of them.
    """

    def __init__(self, find: Callable[[Any], T]) -> None:
        self._find = find
        self._name = find.__name__
        self.__doc__ = find.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> remembered[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> remembered[T] | T:
        if instance is None:
            return self
        known = instance.__dict__
        failures: dict[str, MaskwrightError] = known.setdefault("_failures", {})
        if self._name in failures:
            raise copy(failures[self._name])
        try:
            found = self._find(instance)
        except MaskwrightError as error:
            failures[self._name] = copy(error)
            raise
        # a value among the instance's own attributes is found before this descriptor, which sets nothing
        known[self._name] = found
        return found
