"""Why may a token not come?

In: a grammar and a text, or a matcher. Out: lexemes, terminals, stacks and items in words. The
text is read again by the interpreter of `decoding.reference`, from the grammar itself.
"""

from maskwright.decoding.explain.explain import explain_id, explain_next, explain_text, explain_token
from maskwright.decoding.explain.explanation import Explanation

__all__ = ["Explanation", "explain_id", "explain_next", "explain_text", "explain_token"]
