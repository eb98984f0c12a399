"""Compiled loops of one step: a parser that knows only the top of its stack reads one more cell.

`x` is an `Exploration`, see `exploration_tables`.
"""

from __future__ import annotations

import numpy as np

from maskwright.analysis.jit import kernel
from maskwright.analysis.lr.encoding import ACCEPT, CONFLICT
from maskwright.maskstore.automaton import exploration_tables as exploring
from maskwright.maskstore.tokens._hash_kernels import number_of_key, number_of_run, value_of_key


@kernel(forceinline=True)
def configuration(continuation, pops, pushed):  # type: ignore[no-untyped-def]
    """The key of a configuration.

    It discards `pops` cells, pushes `pushed` onto the next cell, then reads `continuation`.
    """
    # BOUND: continuations, pops and nonterminals fit 32, 12 and 18 bits, see `check_size`
    return (np.int64(continuation) << np.int64(30)) | (np.int64(pops) << np.int64(18)) | np.int64(pushed + 1)


@kernel(forceinline=True)
def parts_of(key):  # type: ignore[no-untyped-def]
    """The continuation of a configuration, the cells that it discards, and what it pushes then."""
    return key >> np.int64(30), (key >> np.int64(18)) & np.int64(0xFFF), (key & np.int64(0x3FFFF)) - 1


@kernel
def representative(continuation, tops, symbol, shape, outcomes, table):  # type: ignore[no-untyped-def]
    """The representative of a continuation with one of a set of states on top.

    It is the first equivalent continuation that was met (see `equivalence`). If none was met, the
    continuation itself becomes the representative.

    tops : the number of the set of states.
    symbol, shape : `Continuations.symbol`, `Positions.shape`.

    Returns REFUSED_CONTINUATION if no stack accepts the continuation.
    """
    begin = outcomes[continuation]
    column = symbol[continuation]
    mine = outcomes[begin + shape[column, tops, 1]]
    if mine == 0:
        return exploring.REFUSED_CONTINUATION
    key = (np.int64(shape[column, tops, 0]) << np.int64(32)) ^ np.int64(mine)
    fresh = table.size[0]
    row = number_of_key(key, table)
    if row == fresh:
        table.value[row] = continuation
    return table.value[row]


@kernel(forceinline=True)
def add_configuration(continuation, pops, pushed, cell, x, n_found):  # type: ignore[no-untyped-def]
    """Add a configuration, with the representative of its continuation, to found[n_found:].

    Nothing is added if no stack accepts the continuation. cell : the last cell read.

    Returns the new n_found.
    """
    if continuation >= 0 and x.outcomes[continuation] >= 0:
        key = pushed * exploring.MAX_POPS + pops
        at = x.positions.start[cell]
        # BOUND: `Positions` has all positions of each cell, so the loop ends
        while x.positions.keys[at] != key:
            at += 1
        continuation = representative(
            continuation,
            x.positions.numbers[at],
            x.continuations.symbol,
            x.positions.shape,
            x.outcomes,
            x.representatives,
        )
        if continuation == exploring.REFUSED_CONTINUATION:
            return n_found
    x.scratch.found[n_found] = number_of_key(configuration(continuation, pops, pushed), x.configurations)
    return n_found + 1


@kernel
def continuation_key(continuation, top, n_states):  # type: ignore[no-untyped-def]
    """One int64 key for a continuation (of either kind) and the state on top."""
    return (np.int64(continuation) * 2 if continuation >= 0 else np.int64(-continuation) * 2 + 1) * n_states + top


@kernel(forceinline=True)
def continuation_after(continuation, top, n_states, known):  # type: ignore[no-untyped-def]
    """The known equivalent of a continuation with state `top` on top, or the continuation itself.

    Returns REFUSED_CONTINUATION if no stack below accepts it.
    """
    return value_of_key(continuation_key(continuation, top, n_states), known, continuation)


@kernel(forceinline=True)
def push_branch(height, continuation, branches, scratch):  # type: ignore[no-untyped-def]
    """Put the parse in progress, stack[:height], on the agenda. Returns the number of branches."""
    for i in range(height):
        scratch.branches[branches, i] = scratch.stack[i]
    scratch.heights[branches] = height
    scratch.continuations[branches] = continuation
    return branches + 1


@kernel(forceinline=True)
def index_of(bit):  # type: ignore[no-untyped-def]
    """The index of the only bit set in a uint64."""
    index = 0
    if bit & np.uint64(0xFFFFFFFF00000000):
        index += 32
    if bit & np.uint64(0xFFFF0000FFFF0000):
        index += 16
    if bit & np.uint64(0xFF00FF00FF00FF00):
        index += 8
    if bit & np.uint64(0xF0F0F0F0F0F0F0F0):
        index += 4
    if bit & np.uint64(0xCCCCCCCCCCCCCCCC):
        index += 2
    if bit & np.uint64(0xAAAAAAAAAAAAAAAA):
        index += 1
    return index


@kernel
def next_rule(members, top, after, parser, set_bits, bits):  # type: ignore[no-untyped-def]
    """The next rule after rule `after` by which state `top` reduces before a terminal of a set.

    Rules are in ascending order.

    members : the number of the set. set_bits : `TerminalSets.items`.
    bits : (n_words,) uint64, written; all terminals of the set before which `top` reduces by this
        rule.

    Returns -1 if there is no such rule, -2 if the state shifts one of the terminals, or accepts.
    """
    best = 1 << 30
    for word in range(bits.shape[0]):
        bits[word] = np.uint64(0)
    for word in range(bits.shape[0]):
        left = set_bits[members * bits.shape[0] + word] & parser.acts[top, word]
        while left != 0:
            bit = left & (~left + np.uint64(1))
            left ^= bit
            action = parser.action[top, 64 * word + index_of(bit)]
            first = 0
            count = 1
            if action >= CONFLICT:
                first = action - CONFLICT + 1
                count = parser.alternatives[first - 1]
            for i in range(count):
                each = action if first == 0 else parser.alternatives[first + i]
                if each > 0:
                    return -2
                rule = -each - 1
                if rule <= after or rule > best:
                    continue
                if rule < best:
                    best = rule
                    for w in range(bits.shape[0]):
                        bits[w] = np.uint64(0)
                bits[word] |= bit
    return -1 if best == 1 << 30 else best


@kernel(forceinline=True)
def advance_configuration(continuation, pushed, cell, x, n_found):  # type: ignore[no-untyped-def]
    """Read one cell and go on until the next cell is needed.

    Each configuration that waits for the next cell is added to found[n_found:]. Facts of `x.known`
    replace continuations by equivalent ones, so that fewer parses are followed.

    continuation : symbols to read (>= 0), or lookahead set -continuation - 1. Set 0 means "whatever
        comes".
    pushed : the nonterminal to push onto `cell` first, or NOTHING.

    Returns the new n_found, or IS_ACCEPTED, ENDLESS, TOO_DEEP or NO_SETS.
    """
    parser, scratch, symbol = x.parser, x.scratch, x.continuations.symbol
    following = x.continuations.next_continuation
    stack = scratch.stack
    n_states, n_columns = parser.action.shape
    stack[0] = cell
    height = np.int64(1)
    if pushed != exploring.NOTHING:
        stack[1] = parser.goto[cell, pushed]
        height = np.int64(2)
        if stack[1] < 0:
            return n_found
    branches = push_branch(height, continuation, 0, scratch)
    steps = 0
    while branches > 0:
        branches -= 1
        height = np.int64(scratch.heights[branches])
        continuation = np.int64(scratch.continuations[branches])
        for i in range(height):
            stack[i] = scratch.branches[branches, i]
        while True:
            steps += 1
            if continuation == -1:
                return exploring.IS_ACCEPTED
            if (
                steps > exploring.MAX_STEPS
                or branches + 8 > exploring.MAX_BRANCHES
                or n_found + 8 > scratch.found.shape[0]
            ):
                return exploring.ENDLESS
            if height + 2 > stack.shape[0]:
                return exploring.TOO_DEEP
            top = stack[height - 1]
            if continuation >= 0 and symbol[continuation] >= n_columns:
                # contextual lexing: the symbol says in which mode the next lexeme was read
                if parser.mode[top] != symbol[continuation] - n_columns:
                    break
                continuation = continuation_after(following[continuation], top, n_states, x.known)
                if continuation == exploring.REFUSED_CONTINUATION:
                    break
                continue
            rule = np.int64(parser.default_rule[top])
            if rule < 0:
                if continuation < 0:
                    n_found, branches = follow_lookahead_set(continuation, top, height, cell, x, n_found, branches)
                    if n_found < 0:
                        return n_found
                    break
                action = np.int64(parser.action[top, symbol[continuation]])
                if action == 0:
                    break
                if action == ACCEPT:
                    return exploring.IS_ACCEPTED  # the symbol is the end of the text, and so the last one
                if action >= CONFLICT:
                    n_found, branches = follow_conflict(action, continuation, height, cell, x, n_found, branches)
                    if n_found < 0:
                        return n_found
                    break
                if action > 0:
                    stack[height] = action - 1
                    height += 1
                    if branches == 0:
                        steps = 0  # MAX_STEPS is for one shift: a long token takes many steps in all
                    continuation = continuation_after(following[continuation], action - 1, n_states, x.known)
                    if continuation == exploring.REFUSED_CONTINUATION:
                        break
                    continue
                rule = -action - 1
            length = parser.rule_length[rule]
            pushed = parser.rule_lhs[rule]
            if height <= length:
                n_found = add_configuration(continuation, length - height, pushed, cell, x, n_found)
                break
            height -= length
            stack[height] = parser.goto[stack[height - 1], pushed]
            height += 1
    return n_found


@kernel(forceinline=True)
def follow_conflict(action, continuation, height, cell, x, n_found, branches):  # type: ignore[no-untyped-def]
    """Follow each action of a conflict as a parse of its own.

    Returns the new n_found, or IS_ACCEPTED or ENDLESS; and the new number of branches.
    """
    parser, stack = x.parser, x.scratch.stack
    first = action - CONFLICT + 1
    for i in range(first, first + parser.alternatives[first - 1]):
        each = np.int64(parser.alternatives[i])
        if each == ACCEPT:
            return exploring.IS_ACCEPTED, branches
        if branches == exploring.MAX_BRANCHES or n_found == x.scratch.found.shape[0]:
            return exploring.ENDLESS, branches
        if each > 0:
            stack[height] = each - 1
            after = continuation_after(
                x.continuations.next_continuation[continuation], each - 1, parser.action.shape[0], x.known
            )
            if after != exploring.REFUSED_CONTINUATION:
                branches = push_branch(height + 1, after, branches, x.scratch)
        else:
            n_found, branches = reduce_apart(continuation, -each - 1, height, cell, x, n_found, branches)
    return n_found, branches


@kernel(forceinline=True)
def follow_lookahead_set(continuation, top, height, cell, x, n_found, branches):  # type: ignore[no-untyped-def]
    """Follow what a state does before the terminals of a lookahead set.

    If it shifts one of them, the set is accepted. Otherwise each reduction is a parse of its own.
    It asks for one of those terminals before which the state does this reduction.

    Returns the new n_found, or IS_ACCEPTED, ENDLESS or NO_SETS; and the new number of branches.
    """
    bits = x.scratch.bits
    rule = next_rule(-continuation - 1, top, -1, x.parser, x.sets.items, bits)
    if rule == -2:
        return exploring.IS_ACCEPTED, branches
    while rule >= 0:
        if branches == exploring.MAX_BRANCHES or n_found == x.scratch.found.shape[0]:
            return exploring.ENDLESS, branches
        ending = -number_of_run(bits, bits.shape[0], x.sets) - 1
        if ending == 0:
            return exploring.NO_SETS, branches
        n_found, branches = reduce_apart(ending, rule, height, cell, x, n_found, branches)
        rule = next_rule(-continuation - 1, top, rule, x.parser, x.sets.items, bits)
    return n_found, branches


@kernel(forceinline=True)
def reduce_apart(continuation, rule, height, cell, x, n_found, branches):  # type: ignore[no-untyped-def]
    """Follow a reduction as a parse of its own; the parse in progress, stack[:height], stays.

    Returns the new n_found and the new number of branches.
    """
    stack = x.scratch.stack
    length = x.parser.rule_length[rule]
    pushed = x.parser.rule_lhs[rule]
    if height <= length:
        return add_configuration(continuation, length - height, pushed, cell, x, n_found), branches
    below = height - length
    kept = stack[below] if below < height else 0
    stack[below] = x.parser.goto[stack[below - 1], pushed]
    branches = push_branch(below + 1, continuation, branches, x.scratch)
    stack[below] = kept
    return n_found, branches
