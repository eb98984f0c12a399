"""The same from the definition, in plain Python, with a reason for each refusal.

In: a grammar and a text, or a store of entries. Out: the readings of the text and why they stop
(`interpreter`), or masks (`decoder`: the decoder of lexing "nfa"). Both parse with `parser`. There
is no compiled code.
"""

from maskwright.decoding.reference.decoder import ReferenceDecoder, check_same_masks

__all__ = ["ReferenceDecoder", "check_same_masks"]
