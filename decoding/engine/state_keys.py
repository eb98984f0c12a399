"""What a text's future depends on."""

from __future__ import annotations

from typing import Any

from maskwright.decoding.engine import constants
from maskwright.decoding.engine.alone import Alone
from maskwright.decoding.engine.texts import Texts


def state_key(texts: Texts, slot: int = 0) -> tuple[Any, ...]:
    """The state of a text: two texts of a store with equal keys allow the same.

    texts : a matcher or a batch.
    slot : the text's slot.

    Raises: MaskwrightError if another thread uses the texts.
    Cost: O(depth of the stacks).
    """
    with Alone(texts):
        region = int(texts._regions[texts._slot(slot)])
        lexer = texts._memory[region : region + constants.DEPTH + 1].tolist()
        ended = int(texts._memory[region + constants.FINISHED])
        stacks = tuple(map(tuple, texts._read_stacks(slot)))
        return (*lexer, ended, tuple(texts._read_columns(slot)), stacks)
