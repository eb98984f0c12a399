"""What is allowed next in a text of several languages?

In: the stores of a host and its parts (`maskstore/composition`), tokens. Out: the states of texts,
each a host's text and perhaps a part's under way in it, and their masks. Knows nothing of how a
host or a part reads its own text: their own engines do that.
"""
