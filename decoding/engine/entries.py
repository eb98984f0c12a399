"""The engine's kernels that Python calls.

`entries.fill(table, memory, region, words)` and so on; the kernels' modules say what they do. See
`analysis.ahead` for where the machine code comes from.
"""

from __future__ import annotations

from maskwright.analysis.ahead import EntryPoints

entries = EntryPoints(
    "maskwright.decoding.engine",
    {
        "_mask_kernels": ("fill",),
        "_string_kernels": ("fill_part",),
        "_text_kernels": ("read_token", "read_bytes", "replay"),
        "_memory_kernels": ("reset", "rollback", "collect", "forget_walks"),
        "_end_kernels": ("can_end",),
        "_batch_kernels": ("fill_batch", "advance_batch"),
        "_quick_kernels": ("note_addresses", "quick_fill", "quick_read", "quick_step"),
    },
)
