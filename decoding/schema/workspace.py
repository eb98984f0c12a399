"""Workspaces: scratch and kept masks.

There is one for each vocabulary, for texts of certain escapes, era of content ids and thread that
fills masks.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.kept import kept_with
from maskwright.analysis.locks import new_lock
from maskwright.analysis.schema.shapes import Escapes
from maskwright.decoding.schema import constants
from maskwright.decoding.schema.entries import entries
from maskwright.maskstore.schema import layout
from maskwright.maskstore.schema._utf8_kernels import N_UTF8_STATES
from maskwright.maskstore.schema.vocabulary_tables import vocabulary_tables
from maskwright.maskstore.vocabulary.vocabulary import Vocabulary

Array = npt.NDArray[np.int32]

_N_SLOTS = 1 << 15
_LOOPS = 1 << 12
_KEY = 1 << 12
_ROWS_KEPT, _WORDS_KEPT = 900, 1_900_000
"""The rows that fit, and the greatest number of their words: 3.6 MB for 32,000 tokens, 7.6 MB for
131,072. Memory is taken as it is used."""


class Workspace:
    """What fills masks of one vocabulary, one call at a time: for texts of certain escapes, under
    tables of one era.

    voc : (n,) int32, read-only; the vocabulary's tables.
    work : (m,) int32; see `constants`.
    lock : held while `call` calls.
    """

    __slots__ = ("__weakref__", "lock", "voc", "work")

    def __init__(self, voc: Array, work: Array) -> None:
        self.voc, self.work, self.lock = voc, work, new_lock()
        _ALL.add(self)

    def call(self, entry: Callable[..., Any], *arguments: Any) -> Any:
        """What an entry point returns; nobody else uses the workspace meanwhile."""
        with self.lock:
            self.work[constants.BUSY] = 1
            try:
                return entry(*arguments)
            finally:
                self.work[constants.BUSY] = 0

    def forget(self) -> None:
        """Forget all masks that were kept."""
        self.call(entries.forget_all, self.work)


_ALL: weakref.WeakSet[Workspace] = weakref.WeakSet()


def _after_fork() -> None:
    """A fork has no other threads: what one of them had begun is thrown away."""
    for workspace in list(_ALL):
        workspace.work[constants.BUSY] = 0
        entries.forget_all(workspace.work)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def make_workspace(voc: Array) -> Workspace:
    """A workspace in which nothing is kept yet. voc : a vocabulary's tables."""
    n_words = int(voc[layout.N_ROW_WORDS])
    longest = int(voc[layout.MOST_BYTES])
    threads = (constants.MOST_THREADS + 2) * constants.THREAD
    levels = min(longest + 2, 256) * (64 * constants.THREAD + 16) + longest * 144
    sizes = {
        constants.LIST: 3 * int(voc[layout.N_TOKENS]) + 64,
        constants.LEVELS: 4 * threads + levels,
        constants.KEY_BUFFER: _KEY,
        constants.THREADS_1: threads,
        constants.THREADS_2: threads,
        constants.LOOPS: _LOOPS,
        constants.SAVED: constants.N_MARKS + constants.THREAD,
        constants.PLACES: 2 * constants.N_PLACES,
        constants.CLASSES: constants.CLASS * constants.MOST_THREADS,
        constants.FRONT_1: constants.N_PLACES,
        constants.FRONT_2: constants.N_PLACES,
        constants.LEADS: 32,
        constants.BASES: 64,
        constants.UTF8_STATES: N_UTF8_STATES,
        constants.MASKS: constants.MOST_READINGS,
        constants.SLOTS: constants.SLOT * _N_SLOTS,
        constants.DATA: min(_ROWS_KEPT * n_words, max(_WORDS_KEPT, 64 * n_words))
        + 4 * int(voc[layout.N_TOKENS])
        + (1 << 19),
    }
    at = constants.WORK_HEADER
    header = {}
    for field, size in sizes.items():
        at += constants.MASK_HEADER + 1  # `LIST` and `KEY_BUFFER` have something before them
        header[field] = at
        at += size
    work = np.zeros(at, np.int32)
    for field, begin in header.items():
        work[field] = begin
    for field in (constants.LIST, constants.LEVELS, constants.KEY_BUFFER, constants.DATA):
        work[field + 1] = header[field] + sizes[field]
    work[constants.N_LOOPS], work[constants.N_SLOTS] = _LOOPS, _N_SLOTS
    work[constants.DATA_TOP] = header[constants.DATA]
    # a mask has at most three rows, two sets of tails and a list (`MOST_LISTED`); and some more
    work[constants.RESERVE] = 8 * n_words + (int(voc[layout.N_TAILS]) >> 3) + 4096
    return Workspace(voc, work)


@kept_with
def workspaces_of(vocabulary: Vocabulary) -> dict[tuple[Escapes, int], Workspace]:
    """The workspaces that texts of a vocabulary share, by `shared_workspace`'s other arguments."""
    return {}


def shared_workspace(vocabulary: Vocabulary, escapes: Escapes = "any", era: int = 0) -> Workspace:
    """The workspace that texts of a vocabulary share, unless they want their own.

    escapes : of the texts: masks of others differ.
    era : of their tables: in another one the same content id stands for something else.
    """
    known = workspaces_of(vocabulary)
    found = known.get((escapes, era))
    if found is None:  # two threads may both make it; one of the two is kept
        found = known.setdefault((escapes, era), make_workspace(vocabulary_tables(vocabulary, escapes)))
        for old in [one for one in known.copy() if one[0] == escapes and one[1] < era]:
            known.pop(old, None)  # texts that use it hold it
    return found
