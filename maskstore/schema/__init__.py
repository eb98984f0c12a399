"""What the schema engine reads, as flat arrays: of a schema and of a vocabulary.

In: a graph of shapes (`analysis/schema/shapes.py`), or a vocabulary. Out: int32 arrays, laid out as
`layout.py` says. No masks are in them: the engine makes masks when they are asked for, and keeps
them by what they depend on. Knows nothing of keywords, and nothing of a text under way.
"""
