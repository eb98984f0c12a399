"""The same from the definition, in plain Python: the decoder of lexing "nfa", and what other paths are held against."""

from maskwright.decoding.reference.reference import ReferenceDecoder, check_same_masks

__all__ = ["ReferenceDecoder", "check_same_masks"]
