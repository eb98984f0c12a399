"""Texts of one grammar: what the engine reads, with endings, explanations and names.

In: texts of the engine. Out: what `Matcher` and `Batch` ask of a text. Knows nothing of arguments.
"""
