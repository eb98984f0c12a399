"""How does a text end soonest, and what must come in any case?

In: what may follow a text. Out: a shortest ending, as bytes and as tokens; bytes that begin every
continuation. Knows nothing of engines and models.
"""
