"""Which tokens does a parser's stack allow, for every stack?

In: continuations (from `tokens`) and LALR tables. Out: the closed stack automaton, which reads the
parser's stack from the top and ends in a mask. Knows nothing of bytes, except for
`stack_automaton`, which puts lexer, parser, tokens and closure together.
"""
