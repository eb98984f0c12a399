"""What is allowed next?

In: a store's table, tokens. Out: masks for one text (`Matcher`) or many (`Batch`), in compiled code.
"""
