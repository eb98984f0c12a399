"""What an LR parser does with a grammar. In: Grammar. Out: LALR(1) tables as arrays, and conflicts.

Knows nothing of tokens. The steps are: automaton (LR(0) states) -> lookaheads (DeRemer and
Pennello) -> tables -> domination (tables without superfluous actions) -> bisimulation (the same
language from smaller tables).
"""
