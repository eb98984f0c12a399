"""What does each token ask of the parser?

In: a lexer and a vocabulary. Out: for each lexer state its groups of tokens, each with line breaks
and continuations. Knows nothing of stacks, except which LR states can be on top (`feasible`).
"""
