"""What does each token begin, under lexing "nfa"?

In: the lexer's NFA and a vocabulary. Out: entries (sequences of terminals with their tokens), and which of them never, always or
interchangeably follow. Knows nothing of longest match.
"""
