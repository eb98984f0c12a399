"""The jitted engine for many texts at once: each stage of a mask or a token is done for all texts.

The stages are those of `_mask_kernels` and `_text_kernels`, which do them for one text after the
other.

PERF: a mask takes a dozen look-ups. Each waits for the one before, and the tables are larger than
the caches next to a core. Stage by stage, the look-ups of the next texts are under way while one
waits. Text by text, the writing of a row would come in between. Of texts with the same masks (half
of a batch of 128) one mask is written and copied. (With the functions inlined, 128 texts of
python.lark take 97 us a step instead of 134 at V = 32,000, and 173 instead of 237 at 131,072; numba
0.68.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload
from numba.np.arrayobj import make_array

from maskwright.analysis.arrays import Int32, Int32_2D, Int64
from maskwright.analysis.jit import kernel
from maskwright.decoding.engine import constants as c
from maskwright.decoding.engine._draft_kernels import begin_draft
from maskwright.decoding.engine._mask_kernels import (
    collect_mask,
    fill,
    find_masks,
    finish_mask,
    write_collected,
)
from maskwright.decoding.engine._memory_kernels import make_room
from maskwright.decoding.engine._text_kernels import read_plain, read_remaining, read_token
from maskwright.maskstore.table import schema
from maskwright.maskstore.table._table_kernels import edge_slot

WALKS = 4
"""The walks for each text, on average, that there is room for. Texts that find none are ALONE."""

ALONE = -1
"""Instead of the number of the text whose mask is copied: this text is filled by itself."""


def prefetch(array: Any, index: Any) -> None:
    """Ask the processor to fetch an element of an array. In plain Python this has no effect."""


@intrinsic
def _prefetch(context, array, index):  # type: ignore[no-untyped-def]
    def code(target, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array = make_array(signature.args[0])(target, builder, arguments[0])  # type: ignore[no-untyped-call]
        address = builder.bitcast(builder.gep(array.data, [arguments[1]]), ir.IntType(8).as_pointer())
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, word, word, word])
        instruction = builder.module.declare_intrinsic("llvm.prefetch", [address.type], kind)
        builder.call(instruction, [address, word(0), word(3), word(1)])  # to read, into all caches, data
        return target.get_dummy_value()

    return types.void(array, types.int64), code


@overload(prefetch)
def _(array, index):  # type: ignore[no-untyped-def]
    return lambda array, index: _prefetch(array, np.int64(index))  # type: ignore[call-arg]


@kernel
def begin_walks(table, memory, regions, words, results, begin, first, pairs, frames, slots):  # type: ignore[no-untyped-def]
    """Begin the walks of texts with one stack and no line breaks to read first.

    Returns the number of walks. This is the first stage of `find_masks` for n texts. Other texts
    become ALONE.

    regions : (n_slots,) int64; where each text's region begins.
    words, results : as of `fill_batch`.
    begin : the slot of the first text.
    first : (n,) int64, written; ALONE, or the text's own number, from 0 to n - 1, if its walks are
        begun.
    pairs, frames, slots : (WALKS n,) int64, written; for each walk the index in the table of its
        edge, the index in memory of its frame, and the number of its text.
    """
    n = first.shape[0]
    n_cells = table[schema.N_STATES] & c.NATURAL
    depth_case_start = table[schema.DEPTH_CASE_START] & c.NATURAL
    lookup_start = table[schema.LOOKUP_START] & c.NATURAL
    roots = table[schema.ROOTS] & c.NATURAL
    # until a text's walks are begun, `first` holds its depth case
    for i in range(n):
        region = regions[begin + i]
        state = memory[region + c.LEXER] & c.NATURAL
        depth_case = table[depth_case_start + state] & c.NATURAL
        n_depth_cases = (table[depth_case_start + state + 1] & c.NATURAL) - depth_case
        first[i] = depth_case + min(memory[region + c.DEPTH] & c.NATURAL, n_depth_cases - 1)
    n_walks = 0
    for i in range(n):
        region = regions[begin + i]
        lookup = table[lookup_start + first[i]] & c.NATURAL
        last = table[lookup_start + first[i] + 1] & c.NATURAL
        first[i] = ALONE
        stacks = np.int64(memory[region + c.STACKS])
        if (
            results[begin + i] == c.IDLE
            or memory[region + c.FINISHED]
            or stacks < 0
            or n_walks + last - lookup > WALKS * n
        ):
            continue
        memory[region + c.WRITTEN] = 0
        memory[region + c.N_COLLECTED] = 0
        frame = region + (memory[region + c.ARENA] & c.NATURAL) + c.RECORD * stacks
        state = memory[frame] & c.NATURAL
        n_before = n_walks
        first[i] = i
        while lookup < last:
            at = (table[schema.LOOKUPS] & c.NATURAL) + 3 * lookup
            root = np.int64(table[at + 1])
            if table[at] > 0 or root < 0:
                first[i] = ALONE
                n_walks = n_before
                break
            if table[at + 2] > 0:
                collect_mask(table, memory, region, np.int64(table[at + 2]), words[begin + i])
            if root > 0:
                pairs[n_walks] = roots + (root - 1) * n_cells + state
                frames[n_walks] = frame
                slots[n_walks] = i
                n_walks += 1
            lookup += 1
    for j in range(n_walks):
        pairs[j] = (table[schema.EDGE_PAIRS] & c.NATURAL) + 2 * (table[pairs[j]] & c.NATURAL)
    return n_walks


@kernel(allocates=True)
def take_walks(table, memory, regions, words, begin, first, pairs, frames, slots, n_walks):  # type: ignore[no-untyped-def]
    """Take all walks to their ends, one edge of each at a time, as `walk_stack` does.

    A text with a walk of more than LONG_WALK frames becomes ALONE. Arguments as of `begin_walks`.

    n_walks : the number of walks; they are the first of pairs, frames and slots.
    """
    nodes = (table[schema.NODES] & c.NATURAL) - 2 * ((table[schema.N_ROOTS] & c.NATURAL) + 1)
    edges = table[schema.EDGES] & c.NATURAL
    n_slots = table[schema.N_EDGE_SLOTS] & c.NATURAL
    n_cells = table[schema.N_STATES] & c.NATURAL
    starts = np.empty(pairs.shape[0], np.int64)
    keys = np.empty(pairs.shape[0], np.int64)
    steps = 1
    while n_walks > 0:
        kept = 0
        for j in range(n_walks):
            pair = pairs[j]
            i = slots[j]
            node = table[pair] & c.NATURAL
            mask = table[pair + 1] & c.NATURAL
            if mask > 0:
                prefetch(table, (table[schema.MASKS] & c.NATURAL) + 3 * mask)
                collect_mask(table, memory, regions[begin + i], mask, words[begin + i])
            below = np.int64(memory[frames[j] + 1])
            if node == 0 or below < 0:
                continue
            if steps == c.LONG_WALK:
                first[i] = ALONE
                continue
            pairs[kept] = node
            frames[kept] = regions[begin + i] + (memory[regions[begin + i] + c.ARENA] & c.NATURAL) + c.RECORD * below
            slots[kept] = i
            kept += 1
        n_walks = kept
        for j in range(n_walks):
            node = pairs[j]
            key = node * n_cells + memory[frames[j]]
            keys[j] = key
            starts[j] = edge_slot(key, n_slots)
            prefetch(table, edges + 2 * starts[j])
            prefetch(table, nodes + 2 * node)
        for j in range(n_walks):
            node = pairs[j]
            number = table[nodes + 2 * node] & c.NATURAL
            if table[nodes + 2 * node + 1] != 0:
                at = starts[j]
                while True:
                    found = table[edges + 2 * at]
                    if found == keys[j]:
                        number = table[edges + 2 * at + 1] & c.NATURAL
                        break
                    if found < 0:
                        break
                    at = at + 1 if at + 1 < n_slots else 0
            pairs[j] = (table[schema.EDGE_PAIRS] & c.NATURAL) + 2 * number
            prefetch(table, pairs[j])
        steps += 1


@kernel
def same_masks(memory, a, b):  # type: ignore[no-untyped-def]
    """Whether two texts have noted the same masks in the same order. a, b : their regions."""
    n = memory[a + c.N_COLLECTED]
    if n != memory[b + c.N_COLLECTED]:
        return False
    for i in range(n):  # noqa: SIM110
        if memory[a + c.COLLECTED + i] != memory[b + c.COLLECTED + i]:
            return False
    return True


@kernel
def join(memory, regions, begin, first, after, heads):  # type: ignore[no-untyped-def]
    """Chain the texts that have noted the same masks.

    first : (n,) int64, changed; for each text that is not ALONE the first text of its chain.
    after : (n,) int64, written; the next text of the chain, or n at its end.
    heads : (2^k,) int64; a hash table, with more slots than there are texts; scratch.
    """
    n = first.shape[0]
    heads[:] = -1
    for i in range(n):
        after[i] = n
        region = regions[begin + i]
        if first[i] == ALONE or memory[region + c.WRITTEN]:
            continue
        code = np.int64(0)
        for k in range(memory[region + c.N_COLLECTED]):
            code = (code * 0x9E3779B1 + memory[region + c.COLLECTED + k]) & c.NATURAL
        at = (code ^ (code >> 15)) & (heads.shape[0] - 1)
        while heads[at] >= 0 and not same_masks(memory, regions[begin + heads[at]], region):
            at = (at + 1) & (heads.shape[0] - 1)
        head = heads[at]
        if head < 0:
            heads[at] = i
        else:
            first[i] = head
            after[i] = after[head]
            after[head] = i


@kernel(entry=True, allocates=True)
def fill_batch(
    table: Int32, memory: Int32, regions: Int64, words: Int32_2D, results: Int32, begin: int, end: int
) -> bool:
    """`fill` for slots begin .. end - 1. Returns whether all results are OK.

    regions : (n_slots,) int64; where each slot's region begins.
    words : (n_slots, >= n_words) int32, written; a row for each slot.
    results : (n_slots,) int32, changed; IDLE for slots to leave alone, else any other value; then
        what `fill` returns.
    """
    n = end - begin
    first, after = np.empty(n, np.int64), np.empty(n, np.int64)
    walks = np.empty((3, WALKS * n), np.int64)
    n_walks = begin_walks(table, memory, regions, words, results, begin, first, walks[0], walks[1], walks[2])
    take_walks(table, memory, regions, words, begin, first, walks[0], walks[1], walks[2], n_walks)
    for i in range(n):
        region = regions[begin + i]
        if first[i] != ALONE or results[begin + i] == c.IDLE or memory[region + c.FINISHED]:
            continue
        if find_masks(table, memory, region, words[begin + i]) == c.OK:
            first[i] = i
    size = 4
    while size < 2 * n:
        size *= 2
    join(memory, regions, begin, first, after, np.empty(size, np.int64))
    fine = True
    for i in range(n):
        slot = begin + i
        region = regions[slot]
        if first[i] == ALONE and results[slot] != c.IDLE:
            code = fill(table, memory, region, words[slot])
            if code == c.NO_ROOM and make_room(table, memory, region):
                code = fill(table, memory, region, words[slot])
            results[slot] = code
            fine = fine and code == c.OK
        if first[i] != i:
            continue
        is_empty = memory[region + c.WRITTEN] == 0 and memory[region + c.N_COLLECTED] == 0
        write_collected(table, memory, region, words[slot])
        other = after[i]
        while other < n:
            mask, copy = words[slot], words[begin + other]
            for w in range(mask.shape[0]):
                copy[w] = mask[w]
            other = after[other]
        # INVARIANT: end-of-text tokens are taken out of a mask only after it has been copied
        other = i
        while other < n:
            slot = begin + other
            region = regions[slot]
            code = finish_mask(table, memory, region, words[slot], is_empty)
            if code == c.NO_ROOM and make_room(table, memory, region):
                code = fill(table, memory, region, words[slot])
            results[slot] = code
            fine = fine and code == c.OK
            other = after[other]
    return fine


@kernel(entry=True, allocates=True)
def advance_batch(table: Int32, memory: Int32, regions: Int64, tokens: Int64, results: Int32) -> bool:
    """`read_token` for slots whose result is IDLE. Returns whether all these results are OK.

    regions : (n_slots,) int64; where each slot's region begins.
    tokens : (n_slots,) int64; ids; -1 for nothing to read.
    results : (n_slots,) int32, changed; IDLE for slots to read in; then OK or the error of each.
    """
    n = regions.shape[0]
    spans = np.empty((2, n), np.int64)
    starts = table[schema.TOKEN_START] & c.NATURAL
    for slot in range(n):
        spans[0, slot] = spans[1, slot] = 0
        token = tokens[slot]
        region = regions[slot]
        if results[slot] == c.IDLE and 0 <= token < table[schema.N_TOKENS] and not memory[region + c.FINISHED]:
            spans[0, slot] = table[starts + token]
            spans[1, slot] = table[starts + token + 1]
            prefetch(table, (table[schema.TOKEN_BYTES] & c.NATURAL) + (spans[0, slot] >> 2))
            prefetch(memory, region + c.REGION_HEADER + c.SAVED * memory[region + c.HISTORY_AT])
            if memory[region + c.STACKS] >= 0:
                prefetch(memory, region + (memory[region + c.ARENA] & c.NATURAL) + c.RECORD * memory[region + c.STACKS])
    for slot in range(n):
        if spans[0, slot] < spans[1, slot]:
            begin_draft(memory, regions[slot])
            spans[0, slot] = read_plain(table, memory, True, spans[0, slot], spans[1, slot], memory, regions[slot])
        else:
            spans[1, slot] = -1
    fine = True
    for slot in range(n):
        if results[slot] != c.IDLE:
            continue
        code = np.int64(c.OK)
        region = regions[slot]
        token = tokens[slot]
        if spans[1, slot] >= 0:
            code = np.int64(read_remaining(table, memory, True, spans[0, slot], spans[1, slot], memory, region, True))
        elif token != -1:
            code = np.int64(read_token(table, memory, region, token, True))
        if code == c.NO_ROOM and make_room(table, memory, region):
            code = np.int64(read_token(table, memory, region, token, True))
        results[slot] = code
        fine = fine and code == c.OK
    return fine
