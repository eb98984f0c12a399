"""What does each token ask of the parser?

In: a lexer and a vocabulary. Out: for each state of the lexer the sequences of terminals that tokens complete there, with the newlines on
their way, and what may come behind. Knows nothing of stacks but the states that a parser can be in.
"""
