"""Many byte strings as one array, so that the engine reads them all in one call.

Each has a question that the engine answers (a *kind*), and tokens that are allowed if the answer is
yes. The array is flat int32: the number of strings, then FIELDS integers for each, then their bytes
and tokens. The strings are sorted, so that what one is refused for is not looked at again for the
next.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

BEGIN, END, COMMON, NUMBER, KIND, TOKENS_BEGIN, TOKENS_END = range(7)
"""Fields of a string: where its bytes are, how many it shares with the string before, the token of
these very bytes or -1, the kind, and where its tokens are."""
FIELDS = 7

IS_TOKEN, ENDS, GOES_ON = range(3)
"""Kinds: yes if the token `number` is allowed; if the text may end behind the bytes; if one of some
further bytes may come behind them."""


class Asked(NamedTuple):
    """A byte string and what is asked of it.

    data : the bytes; may be empty.
    kind : IS_TOKEN, ENDS or GOES_ON.
    number : the id of a token of these very bytes: the answer is no if it is not allowed; or -1.
    tokens : the ids that are allowed if the answer is yes.
    """

    data: bytes
    kind: int
    number: int
    tokens: tuple[int, ...]


def strings_array(asked: Iterable[Asked]) -> npt.NDArray[np.int32]:
    """The array of some strings.

    Example:
        >>> strings_array([Asked(b"a", ENDS, 7, (3,))]).tolist()
        [1, 8, 9, 0, 7, 1, 9, 10, 97, 3]
    """
    found = sorted(asked, key=lambda one: one.data)
    fields: list[int] = []
    more: list[int] = []
    at = 1 + FIELDS * len(found)
    before = b""
    for one in found:
        common = 0
        while common < min(len(before), len(one.data)) and before[common] == one.data[common]:
            common += 1
        end = at + len(one.data)
        fields += [at, end, common, one.number, one.kind, end, end + len(one.tokens)]
        more += [*one.data, *one.tokens]
        at = end + len(one.tokens)
        before = one.data
    array = np.array([len(found), *fields, *more], np.int32)
    array.setflags(write=False)
    return array
