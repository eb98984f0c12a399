"""The same from the definition, in plain Python, with a reason for each refusal.

In: a grammar and a text, or a store of entries. Out: the readings of the text and why they stop
(`interpreter`), or masks (`decoder`: the decoder of lexing "nfa"). Both parse with
`parser`, an LR parser with the layout around it; so does lint, which finds whole lexemes with
`machine`. There is no compiled code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maskwright.decoding.reference.decoder import ReferenceDecoder, check_same_masks

__all__ = ["ReferenceDecoder", "check_same_masks"]


def __getattr__(name: str) -> Any:
    """The decoder, loaded where it is asked for: others need no code that builds entries."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from maskwright.decoding.reference import decoder

    return getattr(decoder, name)
