"""What a composition asks of a part's text: its mask, and many byte strings at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from maskwright.decoding.engine import constants
from maskwright.decoding.engine._string_kernels import MAY_END, SOME, STATE
from maskwright.decoding.engine.entries import entries
from maskwright.decoding.engine.slot import SlotText
from maskwright.decoding.engine.state import LIMITS

Words = npt.NDArray[np.int32]

NO_TAILS = np.zeros(0, np.int32)
NO_TAILS.setflags(write=False)


def add_strings(
    text: SlotText,
    strings: Words,
    allowed: Words,
    words: Words,
    tails: Words = NO_TAILS,
) -> None:
    """Add to a mask the tokens of the byte strings that a text allows.

    strings : (n,) int32; as `maskstore.composition.strings.strings_array` makes it.
    allowed : the mask of the text's own tokens.
    words : (>= n_words,) uint32; the mask that tokens are added to.
    tails : (n,) int32; the further bytes of strings of the kind GOES_ON.

    Raises: LimitError as `Matcher.fill`.
    """
    state = np.zeros(STATE, np.int32)
    texts = text.texts
    texts.renew()
    code = text.with_room(
        lambda: entries.read_strings(*texts.bound[1:3], text.region, strings, tails, allowed, words, state)
    )
    if code in LIMITS:
        raise text.limit(code)


def fill_part(
    text: SlotText,
    strings: Words,
    words: Words,
    inside: Words | None = None,
    n_tokens: int = -1,
    tails: Words = NO_TAILS,
) -> tuple[bool, bool]:
    """Write the mask of a text that is part of another one, without end-of-text tokens.

    strings, tails : as of `add_strings`.
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
