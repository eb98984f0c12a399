"""A tensor of a safetensors file: copied, or as the file's own pages, which processes share."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.nesting import read_json
from maskwright.maskstore.file.fileheader import METADATA_KEY, Header


def read_tensor(path: str | os.PathLike[str], name: str, header: Header, mapped: bool) -> npt.NDArray[np.int32] | None:
    """A tensor of dtype I32, read-only; None if the file is not the one of this header any more.

    path : the file.
    name : the tensor.
    header : what was read of the file before.
    mapped : the file's own pages instead of a copy. What is written into the file later is then
        read, and reading what was cut off ends the process (SIGBUS).

    safetensors has checked the file's header, but does not tell where a tensor lies. So we read the
    header once more. A tensor that does not begin at a multiple of four bytes is always
    copied.

    Raises: OSError or ValueError as opening, reading and mapping do.
    """
    _, shape = header.tensors[name]
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > os.fstat(file.fileno()).st_size:
            return None
        try:
            heads: Any = read_json(file.read(length))
            is_same = heads["__metadata__"][METADATA_KEY] == header.text and tuple(heads[name]["shape"]) == shape
            begin = 8 + length + int(heads[name]["data_offsets"][0])
        except (ValueError, KeyError, TypeError):
            return None
        if not is_same:
            return None
        if 0 in shape:
            found: npt.NDArray[np.int32] = np.zeros(shape, np.int32)
        elif mapped:
            found = np.memmap(file, "<i4", "r", begin, shape).view(np.ndarray)
        else:
            found = np.fromfile(file, "<i4", math.prod(shape), offset=begin - file.tell())
            if found.size != math.prod(shape):
                return None
            found = found.reshape(shape)
    # PERF: compiled code is made for native, aligned arrays; this copies only arrays that are not
    array = np.require(found, np.int32, ["C", "A"])
    array.setflags(write=False)
    return array
