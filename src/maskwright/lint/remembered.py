"""A cached property that remembers errors too."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, Generic, TypeVar, overload

from maskwright.analysis.errors import MaskwrightError

T = TypeVar("T")


class remembered(Generic[T]):
    """Like `functools.cached_property`, but a `MaskwrightError` is remembered and raised again.

    INVARIANT: the remembered error is a copy that was never raised. A raised error holds the frames
    that it passed through, and their values.

    PERF: each check asks for the lexer. Without this, a lexer over a limit would be built up to the
    limit for each check.
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
        # The value becomes an attribute of the instance, which Python finds before this descriptor,
        # because it defines no `__set__`.
        known[self._name] = found
        return found
