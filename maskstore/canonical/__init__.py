"""Which token sequences would the tokenizer itself make of a text?

In: a tokenizer of the kind BPE. Out: a `CanonicalTokens`, which says after each token which tokens
keep the sequence *canonical*: what the tokenizer makes of some text that begins like this one.
Knows nothing of grammars.

`spines` reads how the BPE joins symbols, and says which two tokens may be neighbours, `cuts`
follows where the pre-tokenizer cuts the text, `tokens` brings both together.
"""

from maskwright.maskstore.canonical.load import load_canonical
from maskwright.maskstore.canonical.tokens import CanonicalState, CanonicalTokens

__all__ = ["CanonicalState", "CanonicalTokens", "load_canonical"]
