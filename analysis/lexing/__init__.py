"""Where does a lexeme end, and which terminals compete for it?

In: a grammar's terminals, and which terminals a parser can take in each state. Out: an automaton
for each terminal, and the lexer as a transducer over bytes. Of the rules this folder reads only
which terminals they use, and which literals they offer beside a pattern. Knows nothing of tokens.
"""
