"""The schema engine's kernels that Python calls.

See `analysis.ahead` for where the machine code comes from.
"""

from __future__ import annotations

from maskwright.analysis.ahead import EntryPoints

entries = EntryPoints(
    "maskwright.decoding.schema",
    {
        "_text_kernels": (
            "begin",
            "fill",
            "read_token",
            "read_bytes",
            "rollback",
            "can_end",
            "forget_all",
            "move",
        ),
        "_quick_kernels": ("note_addresses", "quick_fill", "quick_read", "quick_step"),
    },
)
