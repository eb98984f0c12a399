"""Constraints in other engines' languages, with languages inside them.

In: a text, a file or a list of grammars. Out: a `Grammar`, or a `Composition`. Knows nothing of
tokens.
"""

from maskwright.analysis.dialects.llguidance import read_llguidance
from maskwright.analysis.dialects.sources import read_constraint

__all__ = ["read_constraint", "read_llguidance"]
