"""The engine's kernels that Python calls.

`entries.fill(table, memory, region, words)` and so on; the kernels' modules say what they do. See
`analysis.ahead` for where the machine code comes from.
"""

from __future__ import annotations

from maskwright.analysis.ahead import EntryPoints, Signatures

PACKAGE = "maskwright.decoding.engine"
SIGNATURES: Signatures = {
    "_mask_kernels": {"fill": "int64(table, words, int64, words)"},
    "_text_kernels": {
        "read_token": "int64(table, words, int64, int64, boolean)",
        "read_bytes": "int64(table, words, boolean, int64, int64, words, int64, boolean)",
        "replay": "int64(table, words, longs, int64, words, longs)",
    },
    "_memory_kernels": {
        "reset": "void(table, words, int64)",
        "rollback": "void(table, words, int64, int64)",
        "collect": "void(table, words, int64, words)",
        "forget_walks": "void(table, words, int64, int64)",
    },
    "_end_kernels": {"can_end": "int64(table, words, int64)"},
    "_batch_kernels": {
        "fill_batch": "boolean(table, words, longs, rows, words, int64, int64)",
        "advance_batch": "boolean(table, words, longs, longs, words)",
    },
}

entries = EntryPoints(PACKAGE, SIGNATURES)
