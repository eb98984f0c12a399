"""What do users hold? Stores: built, loaded, saved, kept in a cache.

In: a grammar and a vocabulary, or a file. Out: a `Store`, which makes matchers, or an `EntryStore` for lexing "nfa". Brings together the
data of `maskstore`, the engines of `decoding` and what `lint` says; knows nothing of the command line.
"""

# PERF: nothing is imported here: who loads a store needs none of what builds one, whose modules take half as long to import again
