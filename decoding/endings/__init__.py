"""How does a text end soonest?

In: a text's state in the engine. Out: a shortest ending, as bytes and as tokens. Knows nothing of
models.
"""
