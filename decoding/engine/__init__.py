"""What is allowed next?

In: a store's table, tokens. Out: the states of texts and their masks, one text at a time or many,
in compiled code. Knows nothing of Lark, patterns or models.
"""
