"""The mask benchmark's parts: the work that all engines get, one adapter an engine, one process a run, what is made of the figures.

`work` writes vocabulary and documents to a folder; `process` runs one engine on it in a Python of its own (which needs numpy, and the
tokenizer's package for an engine that encodes); `schema_times`, `schema_counts` and `regexes` do likewise for schemas and patterns.
`summary` and `chart` turn the times into tables, ratios and a picture. Adapters: `ours`, `llguidance`, `xgrammar`, `glrmask`, `outlines`,
`kbnf`, `syncode`.
"""
