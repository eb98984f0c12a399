"""Which resident row is a text's mask: the set of masks that it marks is looked up; only a set not met before is composed.

`book` is one flat int64 array: the places below, a record for each row, the heads of the hash table's chains, and the rows that were
composed since NEW was last set to 0. Row 0 allows nothing, as after the end of a text; it is never given away. A row's key is its store,
whether end of text was taken out, and the masks in order of their numbers; or, where a run came upon its continuation in a text's cache
and its masks are not known, the words themselves.

A row gives way only if neither this call nor the one before asked for it: LAST_USED says when that was.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maskwright.analysis.jit import kernel
from maskwright.decoding.engine._end_kernels import can_end
from maskwright.decoding.engine._mask_kernels import find_masks, write_collected
from maskwright.decoding.engine._memory_kernels import make_room
from maskwright.decoding.engine.constants import (
    CACHE,
    COLLECTED,
    DEAD_END,
    FINISHED,
    IDLE,
    ILLEGAL,
    MOST_COLLECTED,
    N_COLLECTED,
    NO_ROOM,
    OK,
    WANTS_CACHE,
    WRITTEN,
)
from maskwright.maskstore.table.schema import EOS, EOS_IN_MASKS, N_EOS

# places of the book
CAPACITY, CLOCK, N_USED, N_BUCKETS, N_NEW = range(5)
BOOK_HEADER = 5

# places of a row's record
NEXT, LAST_USED, HASH, KIND, LENGTH, MASKS = range(6)
RECORD = MASKS + MOST_COLLECTED

# bits of KIND, below the number of the store
WITHOUT_EOS, BY_WORDS = 1, 2

NO_ROW = -32
"""A result: all rows are in use by this call and the one before."""

NOTHING = 0
"""The row that allows nothing."""


def new_book(capacity: int) -> Any:
    """A book of `capacity` rows, of which only NOTHING is in use."""
    n_buckets = 1 << capacity.bit_length()
    book = np.zeros(BOOK_HEADER + capacity * RECORD + n_buckets + capacity, np.int64)
    book[[CAPACITY, N_USED, N_BUCKETS]] = capacity, 1, n_buckets
    return book


def new_rows(book: Any) -> Any:
    """The rows composed since NEW was last set to 0."""
    begin = len(book) - int(book[CAPACITY])
    return book[begin : begin + int(book[N_NEW])]


@kernel
def record_of(row):  # type: ignore[no-untyped-def]
    """Where a row's record begins."""
    return BOOK_HEADER + row * RECORD


@kernel
def head_of(book, code):  # type: ignore[no-untyped-def]
    """The place of the head of the chain for a hash code; 0 is an empty chain, since row NOTHING is in none."""
    mixed = ((code ^ (code >> 31)) & 0x7FFFFFFF) * np.int64(0x9E3779B1)
    return BOOK_HEADER + book[CAPACITY] * RECORD + ((mixed >> 20) & (book[N_BUCKETS] - 1))


@kernel
def hash_of(values, kind):  # type: ignore[no-untyped-def]
    """A hash code of int32 values. A sum of products: in a chain of products each would wait for the one before.

    BOUND: a product is below 2^61 and a code below 2^62, so nothing overflows.
    """
    code = np.int64(0)
    for i in range(values.shape[0]):
        factor = ((np.int64(i) * np.int64(0x9E3779B1) + kind) & 0x1FFFFFFF) | 1
        code = (code + (np.int64(values[i]) & 0xFFFFFFFF) * factor) & 0x3FFFFFFFFFFFFFFF
    return code


@kernel
def look_up(book, rows, code, kind, key):  # type: ignore[no-untyped-def]
    """The row of a key, or 0. key : int32, masks, or with BY_WORDS the words."""
    row = book[head_of(book, code)]
    while row != 0:
        at = record_of(row)
        if book[at + HASH] == code and book[at + KIND] == kind and book[at + LENGTH] == key.shape[0]:
            same = True
            for i in range(key.shape[0]):
                if key[i] != (rows[row, i] if kind & BY_WORDS else book[at + MASKS + i]):
                    same = False
                    break
            if same:
                return row
        row = book[at + NEXT]
    return np.int64(0)


@kernel
def take_row(book):  # type: ignore[no-untyped-def]
    """A row that holds nothing yet, or the least recently used one, taken out of its chain; 0 if none may give way."""
    if book[N_USED] < book[CAPACITY]:
        book[N_USED] += 1
        return book[N_USED] - 1
    found = np.int64(0)
    oldest = book[CLOCK] - 1
    for row in range(1, book[CAPACITY]):
        used = book[record_of(row) + LAST_USED]
        if used < oldest:
            oldest = used
            found = np.int64(row)
    if found != 0:
        at = head_of(book, book[record_of(found) + HASH])
        while book[at] != found:
            at = record_of(book[at]) + NEXT
        book[at] = book[record_of(found) + NEXT]
    return found


@kernel
def add_row(book, rows, code, kind, key, words):  # type: ignore[no-untyped-def]
    """Give words a row, under a key that has none. Returns it, or NO_ROW."""
    row = take_row(book)
    if row == 0:
        return np.int64(NO_ROW)
    at = record_of(row)
    book[at + HASH] = code
    book[at + KIND] = kind
    book[at + LENGTH] = key.shape[0]
    if not kind & BY_WORDS:
        for i in range(key.shape[0]):
            book[at + MASKS + i] = key[i]
    head = head_of(book, code)
    book[at + NEXT] = book[head]
    book[head] = row
    for w in range(rows.shape[1]):
        rows[row, w] = words[w]
    book[BOOK_HEADER + book[CAPACITY] * RECORD + book[N_BUCKETS] + book[N_NEW]] = row
    book[N_NEW] += 1
    return row


@kernel
def sort_masks(memory, begin, n):  # type: ignore[no-untyped-def]
    """Marked masks in order of their numbers, in place: what they were marked in does not matter."""
    for i in range(begin + 1, begin + n):
        mask = memory[i]
        j = i
        while j > begin and memory[j - 1] > mask:
            memory[j] = memory[j - 1]
            j -= 1
        memory[j] = mask


@kernel
def has_bit(words, token):  # type: ignore[no-untyped-def]
    return (words[token >> 5] >> np.int32(token & 31)) & 1 != 0


@kernel
def take_out_eos(table, words):  # type: ignore[no-untyped-def]
    """Refuse the end of the text. Returns whether anything is left."""
    for i in range(table[N_EOS]):
        token = table[table[EOS] + i]
        words[token >> 5] &= ~(np.int32(1) << np.int32(token & 31))
    is_left = False
    for w in range(words.shape[0]):
        is_left = is_left or words[w] != 0
    return is_left


@kernel
def find_row(table, memory, region, ends, store, book, rows, scratch):  # type: ignore[no-untyped-def]
    """The row whose words are what `fill` would write, or an error. Arguments as of `find_rows`, for one region."""
    if memory[region + FINISHED]:
        return np.int64(NOTHING)
    code = find_masks(table, memory, region, scratch)
    if code != OK:
        return np.int64(code)
    begin = region + COLLECTED
    n = np.int64(memory[region + N_COLLECTED])
    is_written = memory[region + WRITTEN] != 0
    if n == 0 and not is_written:
        return np.int64(DEAD_END)
    if is_written:
        write_collected(table, memory, region, scratch)
    kind = np.int64(store) << 2
    if table[EOS_IN_MASKS] == 0 and table[N_EOS] > 0:
        # as in `fill`: under layout the masks say only that the text or a block may end
        may_end = is_written and has_bit(scratch, table[table[EOS]])
        if not is_written:
            for i in range(begin, begin + n):
                may_end = may_end or ends[memory[i]] != 0
        if may_end:
            code = can_end(table, memory, region)
            if code == ILLEGAL:
                kind |= WITHOUT_EOS
            elif code != OK:
                return np.int64(code)
    if is_written:
        kind |= BY_WORDS
        if kind & WITHOUT_EOS and not take_out_eos(table, scratch):
            return np.int64(DEAD_END)
        key = scratch
    else:
        sort_masks(memory, begin, n)
        key = memory[begin : begin + n]
    hashed = hash_of(key, kind)
    row = look_up(book, rows, hashed, kind, key)
    if row == 0:
        if not is_written:
            write_collected(table, memory, region, scratch)  # INVARIANT: leaves the numbers of the masks where they are
            if kind & WITHOUT_EOS and not take_out_eos(table, scratch):
                return np.int64(DEAD_END)
        row = add_row(book, rows, hashed, kind, key, scratch)
        if row < 0:
            return row
    book[record_of(row) + LAST_USED] = book[CLOCK]
    return row


@kernel
def find_rows(table, memory, regions, ends, store, book, rows, scratch, ids, results):  # type: ignore[no-untyped-def]
    """The rows of some texts of one store. Returns whether all are OK.

    table, memory : as everywhere. regions : (n,) int64, of the texts. ends : (n_masks,) uint8, the masks with end of text, (0,) if it
    needs no check. store : its number. book, rows : as `new_book` makes it, and (capacity, n_words) int32. scratch : (n_words,) int32.
    ids : (n,) int32, written: a row, or -1. results : (n,) int32, IDLE for texts to leave alone, else what came of it is written.
    """
    fine = True
    for text in range(regions.shape[0]):
        ids[text] = -1
        if results[text] == IDLE:
            continue
        region = regions[text]
        row = find_row(table, memory, region, ends, store, book, rows, scratch)
        if row == NO_ROOM and make_room(table, memory, region):
            row = find_row(table, memory, region, ends, store, book, rows, scratch)
        if row < 0:
            results[text] = row
            fine = False
            continue
        ids[text] = row
        # a text that ended keeps no wish
        if memory[region + CACHE] < 0 and not memory[region + FINISHED]:
            results[text] = WANTS_CACHE
            fine = False
        else:
            results[text] = OK
    return fine
