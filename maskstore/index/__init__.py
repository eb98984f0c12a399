"""Which tokens come next in each state of a pattern's automaton, all states ahead of time?

In: a pattern and a vocabulary. Out: the automaton over tokens, and the chains that it forces.
"""

from maskwright.maskstore.index.build import build_index
from maskwright.maskstore.index.token_index import Chain, TokenIndex

__all__ = ["Chain", "TokenIndex", "build_index"]
