"""What is asked of the stack, closed over all stacks?

In: sequences of terminals with what may come behind (`tokens`), and LR tables. Out: an automaton that reads the parser's stack from the top
and ends in a mask. Knows nothing of bytes.
"""
