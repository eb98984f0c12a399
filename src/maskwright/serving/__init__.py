"""How do inference servers use it? A request's constraint becomes a store, and masks their batches.

In: what requests of a server say (a kind and a text, options), and the server's own objects. Out:
stores by `RequestCompiler`, and a server's interfaces in terms of their matchers. It stands above
`stores`. Servers are imported inside functions only; a plain installation imports every module.
"""

# PERF: nothing is imported here. A server's process needs one of the modules.
