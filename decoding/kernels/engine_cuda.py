"""The engine's kernels on a GPU: `_slot_kernels`, one thread a slot, and the rows written by a block a slot.

The functions that read and find are those that run on the CPU: numba-cuda compiles what a kernel calls for the device, Numba dispatchers
included. So there is one source for both, tested where there is no GPU; only what is spread over threads is written here.

A thread a slot, with a warp to itself: what slots do differs at every step, so threads of one warp would wait for each other.
"""

from __future__ import annotations

import numpy as np
from numba import cuda

from maskwright.decoding import _slot_kernels as slots
from maskwright.decoding._kernels import DEAD_END, IDLE, MARKED, N_MARKED, NO_ROOM, OK
from maskwright.decoding._slot_kernels import WITHOUT_END
from maskwright.maskstore.engine_table import EOS, MASK_IDS, MASKS, N_EOS

WARP = 32
WRITERS = 256
"""Threads that write a slot's row."""


@cuda.jit(device=True)
def claim(owners, slot):  # type: ignore[no-untyped-def]
    """A deep region that no slot has, or -1."""
    for deep in range(owners.shape[0]):
        if cuda.atomic.cas(owners, deep, np.int32(-1), np.int32(slot)) == -1:
            return np.int64(deep)
    return np.int64(-1)


@cuda.jit
def advance(table, memory, regions, owners, results, lengths, tokens, deep_first, deep_stride, deep_capacity):  # type: ignore[no-untyped-def]
    """`advance_slots`. Grid: (n_slots,) blocks of `WARP` threads."""
    slot = cuda.blockIdx.x
    if cuda.threadIdx.x != 0 or results[slot] != OK or tokens[slot] == -1:
        return
    while slots.advance_slot(table, memory, regions, results, lengths, np.int64(slot), tokens[slot]):
        deep = claim(owners, slot) if regions[slot] < deep_first else np.int64(-1)
        if deep < 0:
            break
        slots.to_deep(memory, regions, owners, np.int64(slot), deep, deep_first, deep_stride, deep_capacity)


@cuda.jit
def find(table, memory, regions, owners, results, found, words, deep_first, deep_stride, deep_capacity):  # type: ignore[no-untyped-def]
    """`find_slots`. Grid: (n_slots,) blocks of `WARP` threads."""
    slot = cuda.blockIdx.x
    if cuda.threadIdx.x != 0:
        return
    found[slot] = IDLE
    if results[slot] != OK:
        return
    while True:
        found[slot] = slots.find_slot(table, memory, regions, results, np.int64(slot), words[slot])
        if found[slot] != NO_ROOM:
            return
        deep = claim(owners, slot) if regions[slot] < deep_first else np.int64(-1)
        if deep < 0:
            return
        slots.to_deep(memory, regions, owners, np.int64(slot), deep, deep_first, deep_stride, deep_capacity)


@cuda.jit
def write(table, memory, regions, results, found, words, held, row_ids):  # type: ignore[no-untyped-def]
    """`write_slots`. Grid: (n_slots,) blocks of any number of threads."""
    slot = cuda.blockIdx.x
    thread = cuda.threadIdx.x
    threads = cuda.blockDim.x
    if thread == 0:
        row_ids[slot] = -1 if results[slot] == IDLE else slot
    row = words[slot]
    is_live = found[slot] == OK or found[slot] == WITHOUT_END
    region = np.int64(regions[slot])
    for w in range(thread, row.shape[0], threads):
        row[w] = slots.marked_word(table, memory, region, w, row) if is_live else np.int32(0)
    cuda.syncthreads()
    if is_live:
        for i in range(memory[region + N_MARKED]):
            place = np.int64(table[MASKS]) + 3 * np.int64(memory[region + MARKED + i])
            begin = np.int64(table[MASK_IDS]) + table[place + 1]
            for at in range(begin + thread, begin + table[place + 2], threads):
                token = np.int64(table[at])
                cuda.atomic.or_(words, (slot, token >> 5), np.int32(1) << np.int32(token & 31))
    if found[slot] == WITHOUT_END:
        cuda.syncthreads()
        for i in range(thread, table[N_EOS], threads):
            token = np.int64(table[table[EOS] + i])
            cuda.atomic.and_(words, (slot, token >> 5), ~(np.int32(1) << np.int32(token & 31)))
        cuda.syncthreads()
        left = np.int32(0)
        for w in range(thread, row.shape[0], threads):
            left |= row[w]
        if cuda.syncthreads_or(left) == 0:
            is_live = False
            if thread == 0:
                results[slot] = DEAD_END
    if not is_live:
        for i in range(thread, held.shape[0], threads):
            cuda.atomic.or_(words, (slot, held[i] >> 5), np.int32(1) << np.int32(held[i] & 31))


@cuda.jit
def begin(table, memory, regions, owners, results, lengths, chosen, first, stride, result):  # type: ignore[no-untyped-def]
    """`begin_slots`. Grid: one block."""
    if cuda.threadIdx.x == 0:
        slots.begin_slots(table, memory, regions, owners, results, lengths, chosen, first, stride, result)


@cuda.jit
def load(memory, regions, owners, results, chosen, image, deep_first, deep_stride, deep_capacity):  # type: ignore[no-untyped-def]
    """`load_slot` for slot chosen[0]. Grid: one block."""
    if cuda.threadIdx.x == 0:
        slots.load_slot(memory, regions, owners, results, chosen[0], image, deep_first, deep_stride, deep_capacity)
