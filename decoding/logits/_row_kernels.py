"""Which resident row is a text's mask? The text's set of masks is looked up; a new set is composed.

`book` is one flat int64 array with four parts, in this order:

1. the header, whose indices are below;
2. a record for each row;
3. the heads of the hash table's chains;
4. the rows that were composed since N_NEW was last set to 0.

Row 0 allows nothing, as after the end of a text; it is never reused. The key of another row is its
store, whether end of text was taken out, and the numbers of its masks in ascending order. If not
all of these numbers are at hand, the key has the words themselves instead. That is so if a text's
cache had the remainder of a walk, or more than MOST_COLLECTED masks were collected.

A row is reused for another key only if neither this call nor the one before asked for it, as
LAST_USED says.

The kernels use the same names for the same arguments:

book : see above.
rows : (capacity, n_words) int32; the words of each row.
code : the hash code of a key.
kind : the number of the store, shifted left by two, with the bits WITHOUT_EOS and BY_WORDS.
key : (n,) int32; the masks, or with BY_WORDS the words.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maskwright.analysis.arrays import Int32, Int32_2D, Int64
from maskwright.analysis.jit import kernel
from maskwright.decoding.engine import constants as c
from maskwright.decoding.engine._end_kernels import can_end
from maskwright.decoding.engine._mask_kernels import find_masks, write_collected
from maskwright.decoding.engine._memory_kernels import make_room
from maskwright.maskstore.table import schema

# indices of the book's header
CAPACITY, CLOCK, N_USED, N_BUCKETS, N_NEW = range(5)
BOOK_HEADER = 5

# indices of a row's record
NEXT, LAST_USED, HASH, KIND, LENGTH, MASKS = range(6)
RECORD = MASKS + c.MOST_COLLECTED

# bits of KIND, below the number of the store
WITHOUT_EOS, BY_WORDS = 1, 2

NO_ROW = -32
"""A result: this call and the one before use all rows."""

NOTHING = 0
"""The row that allows nothing."""


def new_book(capacity: int) -> Any:
    """A book of `capacity` rows, of which only NOTHING is in use: (n,) int64."""
    n_buckets = 1 << capacity.bit_length()
    book = np.zeros(BOOK_HEADER + capacity * RECORD + n_buckets + capacity, np.int64)
    book[[CAPACITY, N_USED, N_BUCKETS]] = capacity, 1, n_buckets
    return book


def new_rows(book: Any) -> Any:
    """The rows composed since N_NEW was last set to 0: (n,) int64, a view of the book."""
    begin = len(book) - int(book[CAPACITY])
    return book[begin : begin + int(book[N_NEW])]


@kernel
def record_of(row):  # type: ignore[no-untyped-def]
    """The index in the book at which a row's record begins."""
    return BOOK_HEADER + row * RECORD


@kernel
def head_of(book, code):  # type: ignore[no-untyped-def]
    """The index in the book of the head of the chain for a hash code.

    A head of 0 is an empty chain, since row NOTHING is in no chain.
    """
    mixed = ((code ^ (code >> 31)) & 0x7FFFFFFF) * np.int64(0x9E3779B1)
    return BOOK_HEADER + book[CAPACITY] * RECORD + ((mixed >> 20) & (book[N_BUCKETS] - 1))


@kernel
def hash_of(values, kind):  # type: ignore[no-untyped-def]
    """A hash code of int32 values and a kind.

    It is a sum of products. In a chain of products each one would wait for the one before.

    BOUND: a product is below 2^61 and a code below 2^62, so nothing overflows.
    """
    code = np.int64(0)
    for i in range(values.shape[0]):
        factor = ((np.int64(i) * np.int64(0x9E3779B1) + kind) & 0x1FFFFFFF) | 1
        code = (code + (np.int64(values[i]) & 0xFFFFFFFF) * factor) & 0x3FFFFFFFFFFFFFFF
    return code


@kernel
def look_up(book, rows, code, kind, key):  # type: ignore[no-untyped-def]
    """The row of a key, or 0 if it has none."""
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
    """A row for a new key: an unused one, or else the least recently used; 0 if none may be reused.

    A reused row is taken out of its chain.
    """
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
    """Give words a row, under a key that has none. Returns the row, or NO_ROW.

    words : (n_words,) int32.
    """
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
    book[at + LAST_USED] = book[CLOCK]
    book[head] = row
    for w in range(rows.shape[1]):
        rows[row, w] = words[w]
    book[BOOK_HEADER + book[CAPACITY] * RECORD + book[N_BUCKETS] + book[N_NEW]] = row
    book[N_NEW] += 1
    return row


@kernel
def sort_masks(memory, begin, n):  # type: ignore[no-untyped-def]
    """Sort memory[begin : begin + n] in place: the order of collecting must not matter."""
    for i in range(begin + 1, begin + n):
        mask = memory[i]
        j = i
        while j > begin and memory[j - 1] > mask:
            memory[j] = memory[j - 1]
            j -= 1
        memory[j] = mask


@kernel
def has_token(table, memory, region, token, words):  # type: ignore[no-untyped-def]
    """Whether a token is in a noted mask, or in what has been written to words."""
    bit = np.int32(1) << np.int32(token & 31)
    if memory[region + c.WRITTEN] and words[token >> 5] & bit:
        return True
    for i in range(memory[region + c.N_COLLECTED]):
        offset = np.int64(table[schema.MASKS]) + 3 * np.int64(memory[region + c.COLLECTED + i])
        row = np.int64(table[offset])
        if row >= 0 and table[table[schema.ROWS] + row * table[schema.N_WORDS] + (token >> 5)] & bit:
            return True
        begin = np.int64(table[schema.MASK_IDS]) + table[offset + 1]
        for at in range(begin, begin + table[offset + 2]):
            if table[at] == token:
                return True
    return False


@kernel
def take_out_eos(table, words):  # type: ignore[no-untyped-def]
    """Refuse the end of the text in words. Returns whether they allow anything else.

    words : (n_words,) int32; changed.
    """
    for i in range(table[schema.N_EOS]):
        token = table[table[schema.EOS] + i]
        words[token >> 5] &= ~(np.int32(1) << np.int32(token & 31))
    is_left = False
    for w in range(words.shape[0]):
        is_left = is_left or words[w] != 0
    return is_left


@kernel
def find_row(table, memory, region, store, book, rows, scratch):  # type: ignore[no-untyped-def]
    """The row whose words are those that `fill` would write, or an error.

    region : of the text. The other arguments are those of `find_rows`.
    """
    if memory[region + c.FINISHED]:
        return np.int64(NOTHING)
    code = find_masks(table, memory, region, scratch)
    if code != c.OK:
        return np.int64(code)
    begin = region + c.COLLECTED
    n = np.int64(memory[region + c.N_COLLECTED])
    is_written = memory[region + c.WRITTEN] != 0
    if n == 0 and not is_written:
        return np.int64(c.DEAD_END)
    if is_written:
        write_collected(table, memory, region, scratch)
    kind = np.int64(store) << 2
    is_open = table[schema.EOS_IN_MASKS] == 0 and table[schema.N_EOS] > 0
    if is_open and has_token(table, memory, region, np.int64(table[table[schema.EOS]]), scratch):
        # as in `finish_mask`: under a layout the masks say only that the text or a block may end
        code = can_end(table, memory, region)
        if code == c.ILLEGAL:
            kind |= WITHOUT_EOS
        elif code != c.OK:
            return np.int64(code)
    if is_written:
        kind |= BY_WORDS
        if kind & WITHOUT_EOS and not take_out_eos(table, scratch):
            return np.int64(c.DEAD_END)
        key = scratch
    else:
        sort_masks(memory, begin, n)
        key = memory[begin : begin + n]
    row = look_up(book, rows, hash_of(key, kind), kind, key)
    if row == 0:
        if not is_written:
            # INVARIANT: this leaves the numbers of the masks, and so the key, where they are
            write_collected(table, memory, region, scratch)
            if kind & WITHOUT_EOS and not take_out_eos(table, scratch):
                return np.int64(c.DEAD_END)
        return add_row(book, rows, hash_of(key, kind), kind, key, scratch)
    book[record_of(row) + LAST_USED] = book[CLOCK]
    return row


@kernel(entry=True)
def find_words(book: Int64, rows: Int32_2D, words: Int32) -> int:
    """The row of a mask that was made somewhere else, or NO_ROW.

    words : (n_words,) int32.
    """
    kind = np.int64(BY_WORDS)
    row = look_up(book, rows, hash_of(words, kind), kind, words)
    if row == 0:
        return add_row(book, rows, hash_of(words, kind), kind, words, words)
    book[record_of(row) + LAST_USED] = book[CLOCK]
    return row


@kernel(entry=True)
def find_rows(
    table: Int32,
    memory: Int32,
    regions: Int64,
    store: int,
    book: Int64,
    rows: Int32_2D,
    scratch: Int32,
    ids: Int32,
    results: Int32,
) -> bool:
    """Find the rows of some texts of one store. Returns whether all results are OK or IDLE.

    table, memory : as for all kernels of the engine.
    regions : (n,) int64; of the texts.
    store : the store's number.
    scratch : (n_words,) int32; overwritten.
    ids : (n,) int32; written: a row, or -1.
    results : (n,) int32; IDLE marks texts to leave alone. For the others it is set to OK, to
        WANTS_CACHE (which means OK too), or to an error.
    """
    fine = True
    for text in range(regions.shape[0]):
        ids[text] = -1
        if results[text] == c.IDLE:
            continue
        region = regions[text]
        row = find_row(table, memory, region, store, book, rows, scratch)
        if row == c.NO_ROOM and make_room(table, memory, region):
            row = find_row(table, memory, region, store, book, rows, scratch)
        if row < 0:
            results[text] = row
            fine = False
            continue
        ids[text] = row
        # a text that has ended needs no cache
        if memory[region + c.CACHE] < 0 and not memory[region + c.FINISHED]:
            results[text] = c.WANTS_CACHE
            fine = False
        else:
            results[text] = c.OK
    return fine
