"""Kernels that make a vocabulary's tries."""

from __future__ import annotations

from maskwright.analysis.arrays import Int32, Int64, UInt8
from maskwright.analysis.jit import kernel
from maskwright.maskstore.schema._utf8_kernels import BACKSLASH, N_UTF8_STATES, QUOTE, SPACE, next_utf8


@kernel(entry=True)
def build_trie(data: UInt8, starts: Int64, ends: Int64, byte: Int32, end: Int32, tokens: Int32, path: Int32) -> int:
    """Write the trie of sorted texts in preorder. Returns its number of nodes.

    data, starts, ends : bytes; (n,), where each text begins in them and ends.
    byte, end, tokens : see `layout`; zeros, with room for a node for each byte, and one more.
    path : zeros: scratch for a node for each byte of a text, and one more.
    """
    n = 1
    byte[0] = -1
    depth = 0  # the length of the text before
    for i in range(len(starts)):
        start = starts[i]
        length = ends[i] - start
        common = 0
        while common < min(depth, length) and data[starts[i - 1] + common] == data[start + common]:
            common += 1
        for k in range(depth, common, -1):
            end[path[k]] = n
        for k in range(common, length):
            byte[n] = data[start + k]
            tokens[n] = i
            path[k + 1] = n
            n += 1
        depth = length
    for k in range(depth, -1, -1):
        end[path[k]] = n
    tokens[n] = len(starts)
    return n


@kernel(entry=True)
def find_below(byte: Int32, end: Int32, group_of: Int32, signatures: Int32, pure: Int32) -> int:
    """Write what is below each node, its own byte aside. Returns 0.

    byte, end : columns of a trie (see `layout`).
    group_of : (256,) int32; 0 to 31.
    signatures : (n_nodes,) int32; written: the groups of the bytes, as bits.
    pure : (n_nodes,) int32; written: as bit u, whether all of it is string content where UTF-8 is
        in state u (`next_utf8`) behind the node's byte.
    """
    for node in range(len(byte) - 1, -1, -1):
        groups, states = 0, (1 << N_UTF8_STATES) - 1
        child = node + 1
        while child < end[node]:
            value = byte[child]
            groups |= (int(signatures[child]) & 0xFFFFFFFF) | (1 << int(group_of[value]))
            for state in range(N_UTF8_STATES):
                after = next_utf8(state, value)
                is_content = after >= 0 and value != QUOTE and value != BACKSLASH and value >= SPACE
                if not is_content or not (pure[child] >> after) & 1:
                    states &= ~(1 << state)
            child = end[child]
        signatures[node] = groups if groups < 1 << 31 else groups - (1 << 32)
        pure[node] = states
    return 0
