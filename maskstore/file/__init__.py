"""How is a store kept?

In: a store. Out: one memory-mapped safetensors file; and back, with checks, since a file may come from anyone.
"""
