"""The engine's kernels on a GPU: `_slot_kernels` with a thread for each slot.

A block for each slot writes the rows.

The functions that read tokens and find masks are those that run on the CPU. numba-cuda compiles
what a kernel calls for the device, Numba dispatchers included. So there is one source for both,
tested where there is no GPU. Only what is spread over threads is written here.

Each slot has one thread, and that thread has a warp to itself. What slots do differs at every step,
so threads of one warp would wait for each other.

Compiling takes one and a half minutes. So machine code is kept where Numba keeps it for the CPU,
for each device, under a checksum of everything that it was made of. (numba-cuda itself looks at
this file only.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda, int64

from maskwright.analysis.jit import resolve
from maskwright.analysis.kernel_sources import checksum
from maskwright.decoding.engine import constants as c
from maskwright.decoding.gpu import _slot_kernels as slots
from maskwright.decoding.gpu._slot_kernels import OK_WITHOUT_EOS
from maskwright.maskstore.table import schema

MOST_COLLECTED = c.MOST_COLLECTED
"""The size of a shared array: a plain name, since numba-cuda takes no attribute of a module."""
WARP = 32
"""Threads of a block that works with one thread only."""
WRITERS = 256
"""Threads that write a slot's row."""


@cuda.jit(device=True)
def claim(owners, slot):  # type: ignore[no-untyped-def]
    """Claim a deep region that no slot has: its number, or -1. Threads of all slots may compete."""
    for deep in range(owners.shape[0]):
        if cuda.atomic.cas(owners, deep, np.int32(-1), np.int32(slot)) == -1:
            return np.int64(deep)
    return np.int64(-1)


def _compiled(source: int) -> Any:
    """The kernels `advance`, `find`, `write`, `begin` and `load`.

    source : a checksum of what they are made of. The kernels close over it, which keeps machine
        code of other sources apart.
    """
    resolve(slots)

    @cuda.jit(cache=True)
    def advance(table, memory, regions, owners, results, lengths, tokens, deep_first, deep_stride, deep_capacity):  # type: ignore[no-untyped-def]
        """`advance_slots`. Grid: (n_slots,) blocks of `WARP` threads."""
        source  # noqa: B018
        slot = cuda.blockIdx.x
        if cuda.threadIdx.x != 0 or results[slot] != c.OK or tokens[slot] == -1:
            return
        while slots.advance_slot(table, memory, regions, results, lengths, np.int64(slot), tokens[slot]):
            deep = claim(owners, slot) if regions[slot] < deep_first else np.int64(-1)
            if deep < 0:
                break
            slots.to_deep(memory, regions, owners, np.int64(slot), deep, deep_first, deep_stride, deep_capacity)

    @cuda.jit(cache=True)
    def find(table, memory, regions, owners, results, found, words, deep_first, deep_stride, deep_capacity):  # type: ignore[no-untyped-def]
        """`find_slots`. Grid: (n_slots,) blocks of `WARP` threads."""
        source  # noqa: B018
        slot = cuda.blockIdx.x
        if cuda.threadIdx.x != 0:
            return
        found[slot] = c.IDLE
        if results[slot] != c.OK:
            return
        while True:
            found[slot] = slots.find_slot(table, memory, regions, results, np.int64(slot), words[slot])
            if found[slot] != c.NO_ROOM:
                return
            deep = claim(owners, slot) if regions[slot] < deep_first else np.int64(-1)
            if deep < 0:
                return
            slots.to_deep(memory, regions, owners, np.int64(slot), deep, deep_first, deep_stride, deep_capacity)

    @cuda.jit(cache=True)
    def write(table, memory, regions, results, found, words, held, row_ids):  # type: ignore[no-untyped-def]
        """`write_slots`. Grid: (n_slots,) blocks of any number of threads."""
        source  # noqa: B018
        slot = cuda.blockIdx.x
        thread = cuda.threadIdx.x
        threads = cuda.blockDim.x
        bases = cuda.shared.array(MOST_COLLECTED, int64)
        if thread == 0:
            row_ids[slot] = -1 if results[slot] == c.IDLE else slot
        row = words[slot]
        is_live = found[slot] == c.OK or found[slot] == OK_WITHOUT_EOS
        region = np.int64(regions[slot])
        n_collected = np.int64(memory[region + c.N_COLLECTED]) if is_live else np.int64(0)
        is_written = is_live and memory[region + c.WRITTEN] != 0
        n_words = np.int64(table[schema.N_WORDS])
        for i in range(thread, n_collected, threads):
            number = np.int64(table[table[schema.MASKS] + 3 * np.int64(memory[region + c.COLLECTED + i])])
            bases[i] = table[schema.ROWS] + number * n_words if number >= 0 else -1
        cuda.syncthreads()
        for w in range(thread, row.shape[0], threads):
            word = row[w] if is_written else np.int32(0)
            if w < n_words:
                for i in range(n_collected):
                    if bases[i] >= 0:
                        word |= table[bases[i] + w]
            row[w] = word
        cuda.syncthreads()
        if is_live:
            for i in range(n_collected):
                offset = np.int64(table[schema.MASKS]) + 3 * np.int64(memory[region + c.COLLECTED + i])
                begin = np.int64(table[schema.MASK_IDS]) + table[offset + 1]
                for at in range(begin + thread, begin + table[offset + 2], threads):
                    token = np.int64(table[at])
                    cuda.atomic.or_(words, (slot, token >> 5), np.int32(1) << np.int32(token & 31))
        if found[slot] == OK_WITHOUT_EOS:
            cuda.syncthreads()
            for i in range(thread, table[schema.N_EOS], threads):
                token = np.int64(table[table[schema.EOS] + i])
                cuda.atomic.and_(words, (slot, token >> 5), ~(np.int32(1) << np.int32(token & 31)))
            cuda.syncthreads()
            left = np.int32(0)
            for w in range(thread, row.shape[0], threads):
                left |= row[w]
            if cuda.syncthreads_or(left) == 0:
                is_live = False
                if thread == 0:
                    results[slot] = c.DEAD_END
        if not is_live:
            for i in range(thread, held.shape[0], threads):
                cuda.atomic.or_(words, (slot, held[i] >> 5), np.int32(1) << np.int32(held[i] & 31))

    @cuda.jit(cache=True)
    def begin(table, memory, regions, owners, results, lengths, tokens, chosen, stride, result):  # type: ignore[no-untyped-def]
        """`begin_slots`. Grid: (n,) blocks of `WARP` threads."""
        source  # noqa: B018
        if cuda.threadIdx.x == 0:
            slot = np.int64(chosen[cuda.blockIdx.x])
            region = np.int64(slot * stride)
            slots.begin_text(table, memory, regions, owners, results, lengths, tokens, slot, region, result)

    @cuda.jit(cache=True)
    def load(memory, regions, owners, results, message, n, deep_first, deep_stride, deep_capacity):  # type: ignore[no-untyped-def]
        """`load_slots`. Grid: (n,) blocks of any number of threads."""
        source  # noqa: B018
        i = cuda.blockIdx.x
        thread = cuda.threadIdx.x
        into = cuda.shared.array(1, int64)
        if message[n + i] == 0:
            return
        slot = np.int64(message[i])
        image = message[message[n + i] : message[2 * n + i]]
        if thread == 0:
            into[0] = regions[slot]
            if not slots.fits(memory, into[0], image):
                deep = claim(owners, slot) if np.int64(image[c.USED]) < deep_capacity else np.int64(-1)
                into[0] = deep_first + deep * deep_stride if deep >= 0 else -1
        cuda.syncthreads()
        region = into[0]
        if region < 0:
            if thread == 0:
                results[slot] = c.NO_ROOM
            return
        slots.copy_image(memory, region, image, thread, cuda.blockDim.x)
        if thread == 0:
            regions[slot] = region
            results[slot] = c.AFTER_END if image[c.FINISHED] else c.OK

    return advance, find, write, begin, load


advance, find, write, begin, load = _compiled(checksum(__file__))
