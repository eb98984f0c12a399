"""Kernels that make a vocabulary's tries."""

from __future__ import annotations

from maskwright.analysis.arrays import Int32, Int64, UInt8
from maskwright.analysis.jit import kernel
from maskwright.maskstore.schema._utf8_kernels import BACKSLASH, N_UTF8_STATES, QUOTE, SPACE, next_utf8


@kernel(entry=True)
def build_trie(data: UInt8, starts: Int64, ends: Int64, byte: Int32, end: Int32, tokens: Int32, path: Int32) -> int:
    """Write the trie of sorted texts in preorder. Returns its number of nodes.

    data, starts, ends : bytes; (n,), where each text begins in them and ends.
    byte, end, tokens : see `layout`; room for a node for each byte, and one more.
    path : scratch for a node for each byte of a text, and one more.
    """
    n = 1
    byte[0] = -1
    path[0] = 0
    tokens[0] = 0
    depth = 0
    for i in range(len(starts)):
        start = starts[i]
        length = ends[i] - start
        common = 0
        if i > 0:
            before = starts[i - 1]
            while common < length and common < ends[i - 1] - before and data[before + common] == data[start + common]:
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
def find_signatures(byte: Int32, end: Int32, group_of: Int32, signatures: Int32) -> int:
    """Write, by node, the groups of the bytes of its subtree without its own, as bits. Returns 0.

    byte, end : columns of a trie (see `layout`).
    group_of : (256,) int32; 0 to 31.
    signatures : (n_nodes,) int32; written.
    """
    for node in range(len(byte) - 1, -1, -1):
        found = 0
        child = node + 1
        while child < end[node]:
            found |= (int(signatures[child]) & 0xFFFFFFFF) | (1 << int(group_of[byte[child]]))
            child = end[child]
        signatures[node] = found if found < 1 << 31 else found - (1 << 32)
    return 0


@kernel(entry=True)
def find_pure(byte: Int32, end: Int32, pure: Int32) -> int:
    """Write, by node, whether all of its subtree without its own byte is string content. Returns 0.

    Bit u of `pure` says so where UTF-8 is in state u (`next_utf8`) behind the node's byte.

    byte, end : columns of a trie (see `layout`).
    pure : (n_nodes,) int32; written.
    """
    for node in range(len(byte) - 1, -1, -1):
        found = (1 << N_UTF8_STATES) - 1
        child = node + 1
        while child < end[node]:
            value = byte[child]
            for state in range(N_UTF8_STATES):
                after = next_utf8(state, value)
                is_content = after >= 0 and value != QUOTE and value != BACKSLASH and value >= SPACE
                if not is_content or not (pure[child] >> after) & 1:
                    found &= ~(1 << state)
            child = end[child]
        pure[node] = found
    return 0
