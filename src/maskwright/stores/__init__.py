"""What do users hold? Stores: built, loaded, saved, kept in a cache.

In: a grammar and a vocabulary, or a file. Out: a `Store`, which makes matchers, or an `EntryStore`
for lexing "nfa". Brings together the data of `maskstore`, the engines of `decoding` and the
findings of `lint`. Knows nothing of the command line.
"""

# PERF: nothing is imported here. Loading a store needs none of the modules that build one, which
# would make the import half as long again.
