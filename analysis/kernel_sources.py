"""Which source files the machine code of a file's kernels comes from, and a checksum of them.

Knows nothing of what the kernels do, nor of who compiles them.
"""

from __future__ import annotations

import functools
import os
import re
import zlib

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""The folder of our modules."""

_IMPORT = re.compile(rb"^from (maskwright(?:\.\w+)*) import (?:\(([^)]*)\)|([^\n]*))", re.MULTILINE)


@functools.cache
def checksum(path: str) -> int:
    """CRC-32 of all source files that the kernels of a file depend on.

    Results are cached, so a file that changes while the process runs keeps its checksum.

    path : the file of the kernels. The checksum is 0 if it cannot be read.
    """
    found = 0
    for source in sources(path).values():
        found = zlib.crc32(source, found)
    return found


def sources(path: str) -> dict[str, bytes]:
    """The source files that the kernels of a file depend on: path -> content.

    These are the file itself and our modules that it imports from. Where such a module has kernels
    of its own, the modules that it imports from are added too, and so on. A file that cannot be
    read is left out.

    path : the file of the kernels.
    """
    found = {}
    agenda = [os.path.abspath(path)]
    for one in agenda:  # grows while it is read
        try:
            with open(one, "rb") as file:
                source = file.read()
        except OSError:
            continue
        found[one] = source
        if one == agenda[0] or has_kernels(source):
            agenda += [other for other in _imported(source) if other not in agenda]
    return found


def has_kernels(source: bytes) -> bool:
    """Whether a module's source defines functions that the kernels of other modules may call."""
    return b"\n@kernel" in source


def _imported(source: bytes) -> list[str]:
    """The files of those of our modules that a module imports from, in the order of its imports."""
    found = []
    for match in _IMPORT.finditer(source):
        module = os.path.join(PACKAGE, *match[1].decode().split(".")[1:])
        names = re.findall(r"(\w+)(?: as \w+)?", (match[2] or match[3]).decode())
        inside = [path for name in names if os.path.isfile(path := os.path.join(module, f"{name}.py"))]
        found += inside or [
            path for path in (f"{module}.py", os.path.join(module, "__init__.py")) if os.path.isfile(path)
        ]
    return found
