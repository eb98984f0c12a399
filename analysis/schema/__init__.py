"""Which JSON values does a schema allow, and which texts a pattern?

In: a JSON schema, or a type of which pydantic tells one; a regular expression, a list of texts.
Out: a graph of shapes (`shapes.py`), in which nothing is left of keywords, references and
negations; automata over bytes. Knows nothing of tokens, and of texts only how values are spelled.

Reading order: `shapes.py`, `load.py`, `graph.py`, `normal.py` (what holds at a place, by type),
`builder.py` (nodes), `scalars.py`, `objects.py` and `arrays.py` (their drafts).
"""
