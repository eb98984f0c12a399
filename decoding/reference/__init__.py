"""The same from the definition, in plain Python.

In: a store of entries. Out: masks. This is the decoder of lexing "nfa", and other paths are
compared with it.
"""

from maskwright.decoding.reference.reference import ReferenceDecoder, check_same_masks

__all__ = ["ReferenceDecoder", "check_same_masks"]
