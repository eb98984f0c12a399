"""What may come in the middle, where the text behind it is given?

In: a grammar's text behind the prefix, and the suffix. Out: where the middle may end, whether there
is one at all, which tokens still lead to one, and the shortest.
"""
