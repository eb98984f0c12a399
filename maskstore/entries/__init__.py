"""What does each token begin, under lexing "nfa"?

In: the lexer's NFA, a vocabulary, and verdicts on terminal sequences. Out: an `EntryTable`, that is
entries (lexer state, terminal sequence) -> tokens, without those that the verdicts make
superfluous. Knows nothing of the lexing "longest" or "contextual".
"""
