"""A tensor of a safetensors file as the file's own pages: no copy, and processes share them."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.maskstore.file.fileheader import METADATA_KEY, Header


def map_tensor(path: str | os.PathLike[str], name: str, header: Header) -> npt.NDArray[np.int32] | None:
    """A tensor of dtype I32, read-only; None if the file is not the one of this header any more.

    path : the file.
    name : the tensor.
    header : what was read of the file before.

    safetensors has checked the file's header, but does not tell where a tensor lies. So we read the
    header once more. A tensor that does not begin at a multiple of four bytes is copied.

    Raises: OSError or ValueError as opening and mapping do.
    """
    _, shape = header.tensors[name]
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > os.fstat(file.fileno()).st_size:
            return None
        try:
            heads: Any = json.loads(file.read(length))
            is_same = heads["__metadata__"][METADATA_KEY] == header.text and tuple(heads[name]["shape"]) == shape
            begin = 8 + length + int(heads[name]["data_offsets"][0])
        except (ValueError, KeyError, TypeError):
            return None
        if not is_same:
            return None
        if 0 in shape:
            mapped: npt.NDArray[np.int32] = np.zeros(shape, np.int32)
        else:
            mapped = np.memmap(file, "<i4", "r", begin, shape).view(np.ndarray)
    # PERF: compiled code is made for native, aligned arrays; this copies only arrays that are not
    array = np.require(mapped, np.int32, ["C", "A"])
    array.setflags(write=False)
    return array
