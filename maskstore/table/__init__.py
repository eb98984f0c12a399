"""What does the engine's flat table hold, and is it safe to run?

In: lexer, parser and stack automaton. Out: an `EngineTable`, one int32 array with its grammar and
vocabulary; and the checks that a table from a file must pass. The checks know nothing of where a
table came from.
"""
