"""The mask benchmark's parts: the work that all engines get, one adapter an engine, one process a run, what is made of the figures.

`work` writes vocabulary and documents to a folder; `process` runs one engine on it in a Python of its own (numpy is all it needs beside
the engine); `summary` and `chart` turn the times into tables, ratios and a picture. Adapters: `ours`, `llguidance`, `xgrammar`,
`outlines`, `kbnf`, `syncode`.
"""
