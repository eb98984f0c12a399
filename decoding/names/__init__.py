"""Which tokens spell one of some names, where a terminal is held to names given at run time?

In: a text's state in the engine, and names. Out: its mask without the tokens that spell no name.
"""
