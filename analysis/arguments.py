"""Arguments of the wrong type: errors that say what was given and what is expected.

The functions share these arguments:

what : how the message begins, usually the argument's name.
value, values : what the caller gave.
expected : what is expected, in words.
kind : the class of the error that is raised.
"""

from __future__ import annotations

import inspect
import operator
import os
import re
from collections.abc import Iterable
from typing import Any, NoReturn, TypeGuard

import numpy as np

from maskwright.analysis.errors import MaskwrightError

Kind = type[MaskwrightError]
_COMMANDS = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]")
"""What commands a terminal or turns its text around, and what cannot be encoded."""


def clip(value: object) -> str:
    """The repr of a value, shortened to at most 120 characters for a message; never raises."""
    try:
        shown = repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits; lists in lists in lists
        shown = f"a value of type {type(value).__name__} that is too large to be shown"
    except Exception:
        shown = f"a value of type {type(value).__name__} whose repr fails"
    return shown if len(shown) <= 120 else f"{shown[:80]} ... {shown[-30:]}"


def printable(text: str) -> str:
    r"""A name as it can be shown: with escapes for what no terminal should get.

    Some characters cannot be encoded, and others move the cursor. All others stay, wide and narrow
    spaces and the joiners of emoji too: names that people write do not change.

    >>> print(printable("a\x1b[2Jb"), printable("日本　語"))
    a\x1b[2Jb 日本　語
    """
    return _COMMANDS.sub(lambda found: repr(found[0])[1:-1], text)


def a_type(value: object) -> str:
    """The name of a value's type with its article, as in `a str`, `an int`."""
    name = type(value).__name__
    return f"an {name}" if name[:1] in "AEIOaeio" else f"a {name}"


def refuse_argument(what: str, value: object, expected: str, kind: Kind = MaskwrightError) -> NoReturn:
    """Raises `kind` with a message that shows the value, its type, and what is expected."""
    raise kind(f"{what} is {clip(value)}, {a_type(value)}; expected {expected}")


def is_iterable(value: object) -> TypeGuard[Iterable[Any]]:
    """Whether a value can be iterated over. An array without dimensions only seems so."""
    try:
        iter(value)  # type: ignore[call-overload]
    except TypeError:
        return False
    return True


def need_type(
    what: str, value: object, types: type | tuple[type, ...], expected: str, kind: Kind = MaskwrightError
) -> None:
    """Check that a value is of one of some types.

    Raises: `kind` if it is not.
    """
    if not isinstance(value, types):
        refuse_argument(what, value, expected, kind)


def need_path(what: str, value: object) -> None:
    """Check that a value is a path: a str, bytes or an object such as `pathlib.Path`.

    Raises: MaskwrightError if it is not.
    """
    need_type(f"the path of {what}", value, (str, bytes, os.PathLike), "a str or a Path")


def need_progress(value: object) -> None:
    """Check that a value is a function that can be called with three arguments, or None.

    Functions written in C that do not state their arguments are accepted.

    Raises: MaskwrightError if it is neither.
    """
    if value is None:
        return
    expected = "a function of three arguments (what, done, total), or None"
    if not callable(value) or isinstance(value, type):
        refuse_argument("progress", value, expected)
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return
    try:
        signature.bind("", 0, 0)
    except TypeError:
        refuse_argument("progress", value, expected)


def as_integer(what: str, value: object, kind: Kind = MaskwrightError, expected: str = "an integer") -> int:
    """The value as an int.

    Any integer type is accepted, such as NumPy's, but no truth value.

    Raises: `kind` if it is not an integer.
    """
    if not isinstance(value, bool | np.bool_):
        try:
            return operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            pass
    refuse_argument(what, value, expected, kind)


def need_choice(what: str, value: object, choices: Iterable[str]) -> None:
    """Raises MaskwrightError for a value that is none of some texts."""
    if not isinstance(value, str) or value not in choices:
        raise MaskwrightError(f"{what} is {clip(value)}; expected {' or '.join(map(repr, choices))}")


def need_number(what: str, value: object) -> None:
    """Check that a value is a real number of Python or NumPy, and no truth value.

    Raises: MaskwrightError if it is not.
    """
    if not isinstance(value, int | float | np.integer | np.floating) or isinstance(value, bool):
        refuse_argument(what, value, "a number")


def as_boolean(what: str, value: object) -> bool:
    """The value as a bool.

    Only truth values of Python and NumPy are accepted. Python would also take the string "no" for
    true.

    Raises: MaskwrightError if it is another value.
    """
    need_type(what, value, (bool, np.bool_), "True or False")
    return bool(value)


def as_strings(what: str, values: Iterable[Any], expected: str, kind: Kind = MaskwrightError) -> tuple[str, ...]:
    """The strings of a list, or of another iterable that is not itself a text.

    Raises: `kind` if it is a text or no iterable, or if a member is not a str.
    """
    if isinstance(values, str | bytes | bytearray) or not is_iterable(values):
        refuse_argument(what, values, expected, kind)
    found = tuple(values)
    for value in found:
        need_type(f"a member of {what}", value, str, expected, kind)
    return found


def as_pairs(
    what: str, values: Iterable[Any], expected: str, kind: Kind = MaskwrightError
) -> tuple[tuple[Any, Any], ...]:
    """The pairs of a list, or of another iterable that is not itself a text.

    Raises: `kind` if it is a text or no iterable, or if a member does not have two members.
    """
    if isinstance(values, str | bytes) or not is_iterable(values):
        refuse_argument(what, values, expected, kind)
    found = tuple(tuple(pair) if is_iterable(pair) else () for pair in values)
    if not all(len(pair) == 2 for pair in found):
        refuse_argument(what, values, expected, kind)
    return found
