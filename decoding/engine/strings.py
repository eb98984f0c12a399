"""What a composition asks of a part's text: its mask, with what may leave the part."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from maskwright.decoding.engine import constants
from maskwright.decoding.engine._string_kernels import MAY_END, SOME, STATE
from maskwright.decoding.engine.entries import entries
from maskwright.decoding.engine.slot import SlotText

Words = npt.NDArray[np.int32]

NO_TAILS = np.zeros(0, np.int32)
NO_TAILS.setflags(write=False)


def fill_part(
    text: SlotText,
    strings: Words,
    words: Words,
    inside: Words | None = None,
    n_tokens: int = -1,
    tails: Words = NO_TAILS,
) -> tuple[bool, bool]:
    """Write the mask of a text that is part of another one, without end-of-text tokens.

    strings : (n,) int32; as `maskstore.composition.strings.strings_array` makes it.
    tails : (n,) int32; the further bytes of strings of the kind GOES_ON.
    words : (>= n_words,) int32; the mask.
    inside : room for the text's own mask, if its vocabulary has more tokens than `words` has.
    n_tokens : the number of tokens of `words` then.

    Returns whether the text is legal as a whole, and whether the mask has tokens.

    Raises: LimitError as `Matcher.fill`.
    """
    texts = text.texts
    if texts._is_provisional:
        texts.renew()
    state = np.empty(STATE, np.int32)
    mask = words if inside is None else inside
    _, table, memory, _ = texts.bound
    code = entries.fill_part(table, memory, text.region, strings, tails, mask, words, n_tokens, state)
    if code == constants.NO_ROOM:
        given = strings, tails, mask, words, n_tokens, state
        code = text.with_room(lambda: entries.fill_part(*texts.bound[1:3], text.region, *given))
    if code:
        text.refuse_fill(text.finish_fill(code, mask))
    told = int(state[0])
    return told & MAY_END != 0, told & SOME != 0
