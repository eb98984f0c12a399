"""How is a store kept?

In: what a store holds. Out: one memory-mapped safetensors file; and back. The reader checks
everything, since a file may come from anyone.
"""
