"""What the vocabulary alone knows of a row: where a token's characters all do the same.

The *base* of a row is made of whole rows, some words at a time, instead of token by token. Take the
characters of a group (`layout.GROUPS`), and the state t that most of them lead to from where the
row begins. A token that begins with one of these, and has nothing behind it but characters on which
t stays where it is, is in the row. Which tokens these are, rows of groups say.
"""

from __future__ import annotations

import numpy as np

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.decoding.schema import constants as c
from maskwright.decoding.schema._automaton_kernels import next_state
from maskwright.maskstore.schema import layout
from maskwright.maskstore.schema._utf8_kernels import BACKSLASH, N_UTF8_STATES, QUOTE, SPACE, next_utf8

FIRST_WIDE, FIRST_LEAD = 0x80, 0xC0
ALL_GROUPS = 0x7FFFFFFF
"""The bits of groups 0 to 30."""


@kernel
def wide_target(voc: Int32, automata: Int32, automaton: int, start: int, group: int, work: Int32) -> int:
    """The state to which each character leads whose first byte is of a group beyond ASCII.

    0 if none may come, -1 if they differ, or if more comes than UTF-8. -1 may also be said where
    they are alike: it costs time alone.
    """
    states, is_any = work[c.UTF8_STATES], False
    for k in range(N_UTF8_STATES):
        work[states + k] = -1
    if not agrees(voc, automata, automaton, start, 0, group, work):
        return -1
    for utf8 in range(1, N_UTF8_STATES):
        is_any = is_any or work[states + utf8] > 0
    for utf8 in range(N_UTF8_STATES - 1 if is_any else 0, 0, -1):  # each comes before those behind it
        here = work[states + utf8]
        if here >= 0 and not agrees(voc, automata, automaton, here, utf8, group, work):
            return -1
    return int(work[states]) if is_any else 0


@kernel
def agrees(voc: Int32, automata: Int32, automaton: int, here: int, utf8: int, group: int, work: Int32) -> bool:
    """Whether a state takes what UTF-8 takes, and for each state of UTF-8 leads to one state.

    utf8 : that of UTF-8 here; 0 before the characters whose first byte is of a group.
    work : UTF8_STATES has the automaton's states by those of UTF-8, where they are noted.
    """
    states, group_of = work[c.UTF8_STATES], voc[layout.SIGNATURES] - 256
    for byte in range(FIRST_WIDE if utf8 == 0 else 0, 256):
        if utf8 == 0 and byte >= FIRST_LEAD and voc[group_of + byte] != group:
            continue
        after = next_utf8(utf8, byte)
        state = 0 if here <= 0 else next_state(automata, automaton, here, byte)
        if after < 0:
            if state != 0:
                return False
        elif work[states + after] < 0:
            work[states + after] = state
        elif work[states + after] != state:
            return False
    return True


@kernel
def loop_groups(voc: Int32, automata: Int32, automaton: int, state: int, work: Int32) -> int:
    """The groups of characters on all of which a state stays where it is, as bits."""
    group_of, found = voc[layout.SIGNATURES] - 256, ALL_GROUPS & ~layout.ANY_WIDE
    for byte in range(SPACE, FIRST_WIDE):
        if next_state(automata, automaton, state, byte) != state:
            found &= ~(1 << int(voc[group_of + byte]))
    if found != 0:  # PERF: a state that stays nowhere in ASCII is not looked at further
        for group in range(layout.WIDE_GROUP, layout.NO_GROUP):
            if wide_target(voc, automata, automaton, state, group, work) == state:
                found |= 1 << group
    return found


@kernel
def exit_groups(voc: Int32, automata: Int32, automaton: int, state: int, loops: int) -> int:
    """The other groups of which some character, or its first byte, may come in a state, as bits."""
    group_of, found = voc[layout.SIGNATURES] - 256, 0
    for byte in range(SPACE, 256):
        if byte not in (QUOTE, BACKSLASH) and next_state(automata, automaton, state, byte) != 0:
            found |= 1 << int(voc[group_of + byte])
    return found & ~loops


@kernel
def find_leads(voc: Int32, automata: Int32, automaton: int, start: int, work: Int32) -> None:
    """Write to LEADS, for each group, the state that most of its characters lead to; 0 for none.

    All characters of a group beyond ASCII lead there, or it is 0.
    """
    group_of, leads, votes = voc[layout.SIGNATURES] - 256, work[c.LEADS], work[c.BASES]
    for group in range(32):
        work[leads + group] = 0
        work[votes + group] = 0
    for byte in range(SPACE, FIRST_WIDE):  # a majority vote: R. S. Boyer and J S. Moore, MJRTY, 1981
        if byte not in (QUOTE, BACKSLASH):
            group, state = voc[group_of + byte], next_state(automata, automaton, start, byte)
            if work[votes + group] == 0:
                work[leads + group] = state
            work[votes + group] += 1 if work[leads + group] == state else -1
    known, is_wide = -1, False
    for group in range(layout.WIDE_GROUP, layout.NO_GROUP):
        target = wide_target(voc, automata, automaton, start, group, work)
        if target > 0 and target != known:
            # the other bytes of these characters are of the first of these groups
            known = target
            is_wide = wide_target(voc, automata, automaton, target, layout.WIDE_GROUP, work) == target
        work[leads + group] = target if target > 0 and is_wide else 0


@kernel
def write_bases(voc: Int32, automata: Int32, automaton: int, start: int, work: Int32, row: int) -> None:
    """Write a row's base: the tokens that rows of groups tell.

    LEADS has then, for each group, the state that its characters lead to, but for exceptions, and 0
    where the base has no token that begins with one; BASES has that state's `loop_groups` and
    `exit_groups`.

    work : behind the row there is room for another one.
    """
    leads, bases, n_words, groups = work[c.LEADS], work[c.BASES], voc[layout.N_ROW_WORDS], voc[layout.GROUP_ROWS]
    find_leads(voc, automata, automaton, start, work)
    words = work[row : row + n_words]  # PERF: over a view the compiler vectorises the loop
    for k in range(n_words):
        words[k] = 0
    for first in range(32):
        state = work[leads + first]
        is_new, n = state > 0, 0
        for group in range(32):
            if work[leads + group] == state:
                is_new = is_new and group >= first
                n += voc[groups + group * layout.GROUP_SIZE + layout.GROUP_COUNT]
        if not is_new:
            continue
        if n < n_words:  # they are looked at one by one in less time
            for group in range(32):
                if work[leads + group] == state:
                    work[leads + group] = 0
            continue
        loops = loop_groups(voc, automata, automaton, state, work)
        exits = exit_groups(voc, automata, automaton, state, loops)
        for group in range(32):
            if work[leads + group] == state:
                work[bases + 2 * group] = loops
                work[bases + 2 * group + 1] = exits
        add_base(voc, work, row, state, loops)
    take_exceptions(voc, automata, automaton, start, work, row)


@kernel
def add_base(voc: Int32, work: Int32, row: int, state: int, loops: int) -> None:
    """Add to a row the tokens of a base: of the groups of first bytes that lead to a state.

    loops : the groups of all that may stand behind it.
    """
    n_words, groups, leads = voc[layout.N_ROW_WORDS], voc[layout.GROUP_ROWS], work[c.LEADS]
    words, made = work[row : row + n_words], work[row + n_words : row + 2 * n_words]
    n_leading, n_others = 0, 0
    for group in range(layout.NO_GROUP):
        if voc[groups + group * layout.GROUP_SIZE + layout.GROUP_FIRST] > 0:
            n_leading += 1 if work[leads + group] == state else 0
            n_others += 1 if work[leads + group] != state else 0
    is_most = n_leading > n_others  # PERF: then the others are taken away
    for k in range(n_words):
        made[k] = -1 if is_most else 0
    for group in range(layout.NO_GROUP):
        at = voc[groups + group * layout.GROUP_SIZE + layout.GROUP_FIRST]
        if at > 0 and (work[leads + group] != state) == is_most:
            firsts = voc[at : at + n_words]
            if is_most:
                for k in range(n_words):
                    made[k] &= ~firsts[k]
            else:
                for k in range(n_words):
                    made[k] |= firsts[k]
    for group in range(layout.NO_GROUP):
        at = voc[groups + group * layout.GROUP_SIZE + layout.GROUP_REST]
        if at > 0 and (loops >> group) & 1 == 0:
            rests = voc[at : at + n_words]
            for k in range(n_words):
                made[k] &= ~rests[k]
    at = voc[layout.PLAIN_ROW]
    plain = voc[at : at + n_words]
    for k in range(n_words):
        words[k] |= made[k] & plain[k]


@kernel
def take_exceptions(voc: Int32, automata: Int32, automaton: int, start: int, work: Int32, row: int) -> None:
    """Take out of a row the tokens whose first character leads elsewhere than most of its group."""
    trie, group_of = voc[layout.FULL], voc[layout.SIGNATURES] - 256
    ends, tokens, ids = voc[trie + layout.TRIE_END], voc[trie + layout.TRIE_TOKENS], voc[trie + layout.TRIE_IDS]
    branch, last = voc[voc[layout.BRANCHES] + 256], voc[voc[layout.BRANCHES] + 257]
    while branch < last:
        byte, node = voc[branch], voc[branch + 1]
        branch += 2
        lead = work[work[c.LEADS] + voc[group_of + byte]]
        if byte >= FIRST_WIDE or lead <= 0 or next_state(automata, automaton, start, byte) == lead:
            continue
        for k in range(voc[tokens + node], voc[tokens + voc[ends + node]]):
            token = voc[ids + k]
            work[np.uint64(row + (token >> 5))] &= ~np.int32(np.uint32(1) << np.uint32(token & 31))
