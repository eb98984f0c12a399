"""What a server's compilations and masks cost, in the API server's `/metrics`.

The engine has a process of its own, so counts go through files, by prometheus_client's own means
for several processes. Source: prometheus_client.multiprocess.
"""

from __future__ import annotations

import os
import tempfile
from collections import deque
from collections.abc import Mapping
from functools import cache
from time import perf_counter
from typing import Any

from maskwright.analysis.locks import new_lock

FOLDER = "MASKWRIGHT_METRICS_DIR"
"""The variable that tells the processes of a server where the files are."""
_OF_ALL = "PROMETHEUS_MULTIPROC_DIR"
HELP = {
    "requests": "Constraints that came to the engine, by their kind.",
    "compile_seconds": "Wall seconds until they were there, by their kind.",
    "cache_hits": "Constraints whose store was there already.",
    "refusals": "Requests that were refused, by the error's name.",
    "masks": "Masks that were filled.",
    "mask_seconds": "Wall seconds that filling them took.",
    "failed_masks": "Masks that could not be made, so that requests end.",
    "cache_bytes": "About how many bytes the stores take that are kept.",
}
"""Counters, named `maskwright_..._total`; the last one is a gauge."""


OFTEN = 0.1
"""Seconds of which masks are written together."""


class Metrics:
    """The counts of this process, which threads share and forks do not; none without a folder."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self.reset()

    def reset(self) -> None:
        """Count from nothing, as in a fork: what was counted before is its parent's."""
        self._files: tuple[Any, ...] | None = None
        self._spent: deque[float] = deque()  # seconds of masks that are not written yet
        self._due = 0.0

    def count_mask(self, begin: float) -> None:
        """Count a mask that was begun at a reading of `perf_counter`, and is there.

        PERF: a write takes as long as a mask, so those of `OFTEN` are written together.
        """
        end = perf_counter()
        self._spent.append(end - begin)
        if end > self._due:
            self._due = end + OFTEN
            self.count("masks", 0)

    def count(self, name: str, amount: float = 1.0, **labels: str) -> None:
        """Add to a counter of `HELP`; a gauge is set. labels : their names and values."""
        with self._lock:
            spent = [self._spent.popleft() for _ in range(len(self._spent))]  # others may add some meanwhile
            self._write(name, amount, labels)
            if spent:
                self._write("masks", len(spent), {})
                self._write("mask_seconds", sum(spent), {})

    def _write(self, name: str, amount: float, labels: Mapping[str, str]) -> None:
        if self._files is None:
            folder, self._files = os.environ.get(_OF_ALL) or os.environ.get(FOLDER, ""), ()
            if os.path.isdir(folder):
                from prometheus_client.mmap_dict import MmapedDict

                paths = [f"{folder}/{kind}_maskwright-{os.getpid()}.db" for kind in ("counter", "gauge_sum")]
                self._files = tuple(MmapedDict(path) for path in paths)  # type: ignore[no-untyped-call]
        if self._files:
            is_gauge = name == "cache_bytes"
            key, file = _key(name, "" if is_gauge else "_total", *labels.items()), self._files[is_gauge]
            file.write_value(key, amount + (0.0 if is_gauge else file.read_value(key)[0]), 0.0)


@cache
def _key(name: str, end: str, *labels: tuple[str, str]) -> str:
    from prometheus_client.mmap_dict import mmap_key

    full = f"maskwright_{name}"
    return str(mmap_key(full, full + end, [label for label, _ in labels], [one for _, one in labels], HELP[name]))


@cache
def metrics() -> Metrics:
    """The counts of this process."""
    made = Metrics()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=made.reset)
    return made


@cache
def show_metrics() -> Any:
    """Let this process's registry show what its server's processes count, from now on.

    Returns what keeps the folder until the process ends; None where it is another's.
    """
    from prometheus_client import REGISTRY
    from prometheus_client.multiprocess import MultiProcessCollector

    made = None
    if not os.path.isdir(os.environ.get(FOLDER, "")):
        made = tempfile.TemporaryDirectory(prefix="maskwright-metrics-")
        os.environ[FOLDER] = made.name
    if _OF_ALL not in os.environ:  # else the server reads that folder by itself
        MultiProcessCollector(REGISTRY, path=os.environ[FOLDER])  # type: ignore[no-untyped-call]
    return made
