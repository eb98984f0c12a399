"""What a pickle of a matcher or a batch holds, and the texts that are made of it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.kernel_sources import checksum

SOURCE = checksum(str(Path(__file__).with_name("_text_kernels.py")))
"""A checksum of the code that lays out a text's memory."""


def restored(
    cls: type[Any], arguments: tuple[Any, ...], state: tuple[int, npt.NDArray[np.int32], npt.NDArray[np.int64]]
) -> Any:
    """A pickled matcher or batch.

    cls, arguments : the class, and what it is made from.
    state : a checksum of the code that laid the memory out; (m,) int32, the memory; (size,) int64,
        where each region begins.

    Raises: MaskwrightError if another version wrote it, whose memory is laid out differently.
    """
    source, memory, regions = state
    if source != SOURCE:
        raise MaskwrightError(
            "the matcher or batch was pickled by another version of maskwright, which stores texts differently; read the texts again"
        )
    texts = cls(*arguments)
    # a copy: the pickle's may be read-only, or shared
    texts._bound, texts._regions = texts._bound_to(texts._table, np.array(memory), texts._words), regions
    return texts
