"""Many byte strings that may come next in a text, in one call of the engine."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from maskwright.decoding.engine import constants
from maskwright.decoding.engine._string_kernels import STATE
from maskwright.decoding.engine.alone import Alone
from maskwright.decoding.engine.entries import entries
from maskwright.decoding.engine.texts import LIMITS, Texts

Words = npt.NDArray[np.uint32]

NO_TAILS = np.zeros(0, np.int32)
NO_TAILS.setflags(write=False)


def add_strings(
    texts: Texts,
    strings: npt.NDArray[np.int32],
    allowed: Words,
    words: Words,
    tails: npt.NDArray[np.int32] = NO_TAILS,
) -> None:
    """Add to a mask the tokens of the byte strings that a matcher's text allows.

    texts : a matcher.
    strings : (n,) int32; as `maskstore.composition.strings.strings_array` makes it.
    allowed : the mask of the text's own tokens.
    words : (>= n_words,) uint32; the mask that tokens are added to.
    tails : (n,) int32; the further bytes of strings of the kind GOES_ON.

    Raises: LimitError as `Matcher.fill`; MaskwrightError if another thread uses the matcher.
    """
    state = np.zeros(STATE, np.int32)
    mask, into = allowed.view(np.int32), words.view(np.int32)
    with Alone(texts):
        if texts._is_provisional:
            texts._take_table()
        for tries in itertools.count():
            code = entries.read_strings(texts._table, texts._memory, 0, strings, tails, mask, into, state)
            if code != constants.NO_ROOM:
                break
            texts._give_room(0, tries)
        if code in LIMITS:
            texts._refuse(0, None, code)
