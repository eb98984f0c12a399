"""What a composition asks of a part's text: its mask, many byte strings at once, one token."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from maskwright.decoding.engine import constants
from maskwright.decoding.engine._string_kernels import MAY_END, SOME, STATE
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


def fill_part(
    texts: Texts,
    strings: npt.NDArray[np.int32],
    words: npt.NDArray[np.int32],
    inside: npt.NDArray[np.int32] | None = None,
    n_tokens: int = -1,
    tails: npt.NDArray[np.int32] = NO_TAILS,
) -> tuple[bool, bool]:
    """Write the mask of a matcher's text that is part of another one, without end-of-text tokens.

    strings, tails : as of `add_strings`.
    words : (>= n_words,) int32; the mask.
    inside : room for the text's own mask, if its vocabulary has more tokens than `words` has.
    n_tokens : the number of tokens of `words` then.

    Returns whether the text is legal as a whole, and whether the mask has tokens.

    Raises: LimitError as `Matcher.fill`; MaskwrightError if another thread uses the matcher.
    """
    if texts._is_busy:
        texts._refuse_sharing()
    texts._is_busy = True
    try:
        if texts._is_provisional:
            texts._take_table()
        state = np.empty(STATE, np.int32)
        mask = words if inside is None else inside
        for tries in itertools.count():
            code = entries.fill_part(texts._table, texts._memory, 0, strings, tails, mask, words, n_tokens, state)
            if code != constants.NO_ROOM:
                break
            texts._give_room(0, tries)
        if code:
            texts._finish_fill(0, code, mask)
        told = int(state[0])
        return told & MAY_END != 0, told & SOME != 0
    finally:
        texts._is_busy = False


def try_token(texts: Texts, token: int) -> bool:
    """Add a token to a matcher's text if it may come. Returns whether it may.

    token : an id of the vocabulary; no end-of-text token.

    Raises: LimitError as `Matcher.fill`; MaskwrightError if another thread uses the matcher.
    """
    if texts._is_busy:
        texts._refuse_sharing()
    texts._is_busy = True
    try:
        code = entries.read_token(texts._table, texts._memory, 0, token, True)
        if code == constants.NO_ROOM:
            code = texts._retry(0, token, code)
        if code in LIMITS:
            texts._refuse(0, token, code)
        return bool(code == constants.OK)
    finally:
        texts._is_busy = False
