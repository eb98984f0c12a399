"""The kernels of names that Python calls, as `decoding.engine.entries` for the engine's."""

from __future__ import annotations

from maskwright.analysis.ahead import EntryPoints

entries = EntryPoints("maskwright.decoding.names", {"_names_kernels": ("read_held", "ends_held", "narrow")})
