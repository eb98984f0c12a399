"""Compiled loops of the vocabulary walk. Callers own all arrays and have checked them.

A vocabulary is flat here: token i is data[offsets[i] : offsets[i + 1]]. An index into `data` stands
for the token's bytes from there on.
"""

from __future__ import annotations

import numpy as np

from maskwright.analysis.arrays import Bool, Int32, Int32_2D, Int64, UInt8, UInt32, UInt32_2D
from maskwright.analysis.jit import kernel

NO_COLUMN = -1
LINE_FEED = 10
SPACE = 32


@kernel(entry=True)
def scan_fresh(
    next_set: Int32_2D,
    accepts: Int32,
    counts_columns: Bool,
    moves: Int32_2D,
    absolute: int,
    data: UInt8,
    offsets: Int64,
    found: Int32_2D,
) -> None:
    """How far the lexeme that begins at each byte of each token goes by longest match.

    next_set : (n_sets, 256) int32; the sets of the union automaton. Set 0 is the start, -1 means
        that nothing is alive.
    accepts : (n_sets,) int32; the number of the set of terminals that end there, 0 for none.
    counts_columns : (n_accepts,) bool; whether such a set of terminals has the newline.
    moves : (n_moves, 33) int32; see `Moves.table`.
    absolute : the number of the move of a line feed.
    data, offsets : (n_bytes,) uint8, (n_tokens + 1,) int64; the tokens.

    found : (4, n_bytes) int32, written. Its rows are

    end_set : the set alive at the token's end, or -1.
    cut : the index behind the longest accepted lexeme, if that ends before the token does; else -1.
    accepted : the number of the set of terminals that end there, else 0.
    move : the number of its move, if it is a newline with a line feed; else NO_COLUMN.
    """
    end_set, cut, accepted, move = found[0], found[1], found[2], found[3]
    for token in range(offsets.shape[0] - 1):
        last = offsets[token + 1]
        for begin in range(offsets[token], last):
            state = 0
            longest = -1
            who = 0
            index = begin
            while index < last:
                state = next_set[state, data[index]]
                if state < 0:
                    break
                index += 1
                if accepts[state] != 0:
                    longest = index
                    who = accepts[state]
            end_set[begin] = state
            move[begin] = NO_COLUMN
            if longest < 0 or longest == last:
                cut[begin] = -1
                accepted[begin] = 0
                continue
            cut[begin] = longest
            accepted[begin] = who
            if counts_columns[who]:
                for index in range(longest - 1, begin - 1, -1):
                    if data[index] == LINE_FEED:
                        move[begin] = move_after(data, index + 1, longest, moves, absolute)
                        break


@kernel
def move_after(data, begin, end, moves, number):  # type: ignore[no-untyped-def]
    """The number of the move that goes on from move `number` over the bytes `begin` to `end` - 1.

    moves : (n_moves, 33) int32; see `Moves.table`.
    """
    for index in range(begin, end):
        if data[index] <= SPACE:
            number = moves[number, data[index]]
    return number


@kernel(entry=True)
def scan_state(
    next_state: Int32_2D, is_accepting: Bool, state: int, data: UInt8, offsets: Int64, end_state: Int32, cut: Int32
) -> bool:
    """What each token does to the terminal under way in lexer state `state`.

    next_state, is_accepting : the automaton of that terminal, with -1 for a dead end.
    data, offsets : the tokens, as in `scan_fresh`.

    Written, each (n_tokens,) int32:

    end_state : the state of the terminal's automaton after the whole token, or -1.
    cut : the index in `data` at which the terminal ends by longest match, if that is before the
        token's end (offsets[i]: before its first byte); else -1.

    Returns whether any token has a byte that the terminal reads.
    """
    read_on = False
    for token in range(offsets.shape[0] - 1):
        begin = offsets[token]
        last = offsets[token + 1]
        here = state
        longest = begin if is_accepting[state] else -1
        index = begin
        while index < last:
            here = next_state[here, data[index]]
            if here < 0:
                break
            index += 1
            if is_accepting[here]:
                longest = index
        read_on = read_on or index > begin
        end_state[token] = here
        cut[token] = -1 if longest == last else longest
    return read_on


@kernel(entry=True)
def leave_newline(data: UInt8, offsets: Int64, cut: Int32, table: Int32_2D, moves: Int32) -> None:
    """The move of the part of each token that belongs to the newline under way.

    cut : (n_tokens,) int32; as from `scan_state`.
    table : (n_moves, 33) int32; see `Moves.table`.
    moves : (n_tokens,) int32, written; the number of the move. Left alone where cut is -1.
    """
    for token in range(offsets.shape[0] - 1):
        if cut[token] >= 0:
            moves[token] = move_after(data, offsets[token], cut[token], table, 0)


@kernel(entry=True)
def group_equal(keys: Int64, group: Int32, firsts: Int32, slots: Int32) -> int:
    """Number equal keys alike, in the order of first occurrence. Returns the number of groups.

    keys : (n,) int64.
    group : (n,) int32, written; the number of each key.
    firsts : (n,) int32, written; the first index of each group.
    slots : int32, scratch; a power of two and at least 2n long, all -1.
    """
    mask = slots.shape[0] - 1
    n_groups = 0
    for i in range(keys.shape[0]):
        key = keys[i]
        h = (key ^ (key >> 17) ^ (key >> 37)) & mask
        while True:
            known = slots[h]
            if known < 0:
                slots[h] = n_groups
                firsts[n_groups] = i
                group[i] = n_groups
                n_groups += 1
                break
            if keys[firsts[known]] == key:
                group[i] = known
                break
            h = (h + 1) & mask
    return n_groups


@kernel(allocates=True)
def sort_numbers(numbers, n):  # type: ignore[no-untyped-def]
    """Sort numbers[:n] in ascending order."""
    if n >= 24:
        numbers[:n] = np.sort(numbers[:n])
        return
    for i in range(1, n):
        number = numbers[i]
        j = i
        while j > 0 and numbers[j - 1] > number:
            numbers[j] = numbers[j - 1]
            j -= 1
        numbers[j] = number


@kernel(entry=True)
def stable_order(keys: Int32, starts: Int64, order: Int64) -> None:
    """Sort small numbers by counting. Equal ones stay in their order.

    keys : (n,) int32, from 0 to n_keys - 1.
    starts : (n_keys + 1,) int64, zero before, written; where each number begins in `order`.
    order : (n,) int64, written; the indices of the keys, sorted.
    """
    for i in range(keys.shape[0]):
        starts[keys[i] + 1] += 1
    for key in range(starts.shape[0] - 1):
        starts[key + 1] += starts[key]
    for i in range(keys.shape[0]):
        order[starts[keys[i]]] = i
        starts[keys[i]] += 1
    for key in range(starts.shape[0] - 1, 0, -1):
        starts[key] = starts[key - 1]
    starts[0] = 0


@kernel(entry=True)
def join_groups(ids: Int32, starts: Int64, class_of: Int32, is_first: Bool, members: Int32, found: Int64) -> None:
    """Write groups of tokens that are unions of classes as groups of classes.

    ids, starts : as of `split_classes`.
    class_of : (n_tokens,) int32; the class of each token.
    is_first : (n_tokens,) bool; whether a token is the first of its class.
    members : int32, written; the classes, by group.
    found : (n_groups + 1,) int64, zero before, written; where each group begins in `members`.
    """
    n = 0
    for group in range(starts.shape[0] - 1):
        for i in range(starts[group], starts[group + 1]):
            if (i == starts[group] or ids[i] != ids[i - 1]) and is_first[ids[i]]:
                members[n] = class_of[ids[i]]
                n += 1
        found[group + 1] = n


@kernel(entry=True)
def split_classes(
    ids: Int32,
    starts: Int64,
    class_of: Int32,
    sizes: Int32,
    n_classes: int,
    met: Int32,
    counts: Int32,
    after: Int32,
) -> int:
    """Split classes of tokens until some groups are unions of classes.

    What is said of tokens here holds of anything with a number, as of classes that are to be
    joined.

    ids : int32; tokens sorted by group; equal ones in a group are beside each other.
    starts : (n_groups + 1,) int64; group i is ids[starts[i] : starts[i + 1]].
    class_of : (n_tokens,) int32, changed; the class of each token.
    sizes : (n_tokens + 1,) int32, changed; the number of tokens of each class.
    n_classes : the number of classes.
    met, counts, after : (n_tokens + 1,) int32; scratch, `counts` zero between calls.

    Returns the number of classes. New classes have the next numbers.
    """
    for group in range(starts.shape[0] - 1):
        n_met = 0
        for i in range(starts[group], starts[group + 1]):
            # a lexer with modes may read a token in two ways that are of one group
            if i > starts[group] and ids[i] == ids[i - 1]:
                continue
            here = class_of[ids[i]]
            if counts[here] == 0:
                met[n_met] = here
                n_met += 1
            counts[here] += 1
        are_split = False
        for i in range(n_met):
            here = met[i]
            after[here] = here
            if counts[here] < sizes[here]:
                are_split = True
                after[here] = n_classes
                sizes[n_classes] = counts[here]
                sizes[here] -= counts[here]
                n_classes += 1
            counts[here] = 0
        if are_split:
            for i in range(starts[group], starts[group + 1]):
                if i == starts[group] or ids[i] != ids[i - 1]:
                    class_of[ids[i]] = after[class_of[ids[i]]]
    return n_classes


@kernel(entry=True)
def spread_classes(words: UInt32_2D, start: Int64, ids: Int32, found: UInt32_2D) -> None:
    """Write bitmasks of classes as bitmasks of their tokens.

    words : (n, words of a bitmask of classes) uint32.
    start, ids : the classes; class i is ids[start[i] : start[i + 1]].
    found : (n, n_words) uint32, zero before, written; row i are the tokens of words[i].
    """
    for row in range(words.shape[0]):
        for w in range(words.shape[1]):
            word = words[row, w]
            for bit in range(32):
                if (word >> np.uint32(bit)) & np.uint32(1) != 0:
                    number = 32 * w + bit
                    for i in range(start[number], start[number + 1]):
                        found[row, ids[i] >> 5] |= np.uint32(1) << np.uint32(ids[i] & 31)


@kernel(entry=True)
def union_of_groups(members: Int32, member_start: Int64, groups: Int64, token_ids: Int32, words: UInt32) -> int:
    """Set the bits of all tokens of some groups. Returns how many tokens they are.

    members, member_start : the groups; group g is members[member_start[g] : member_start[g + 1]].
        Groups do not overlap.
    groups : the numbers of the groups.
    token_ids : (n_tokens,) int32; the id of each token.
    words : (n_words,) uint32, zero before.
    """
    count = 0
    for group in groups:
        for index in range(member_start[group], member_start[group + 1]):
            token = token_ids[members[index]]
            words[token >> 5] |= np.uint32(1) << np.uint32(token & 31)
        count += member_start[group + 1] - member_start[group]
    return count
