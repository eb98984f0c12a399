"""What does the engine's flat table hold?

In: lexer, parser and stack automaton. Out: one array of int32 that compiled code reads, and the checks that a table of a file must pass.
"""
