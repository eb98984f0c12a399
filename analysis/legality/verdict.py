"""What a decider answers: yes, no or unknown, by which decider, and on what grounds."""

from __future__ import annotations

from dataclasses import dataclass

START = -1
"""As the first member of a context: the start of the text. The empty context means "anywhere"."""

Context = tuple[int, ...]
"""The terminals just before a sequence, nearest last; see `START`."""

TerminalSequence = tuple[int, ...]
"""A sequence of terminal numbers."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """An answer with its grounds.

    holds : True or False where it is proved, None where this decider cannot tell.
    decider : the name of what decided, e.g. "follow graph", "never_legal", "always_legal".
    reason : one sentence; names the witness or the closed set.
    witness : terminal names of a prefix that shows a legal use (for a refuted "never"), the refusing way up (for an unproved "always"),
        or () if there is none.
    """

    holds: bool | None
    decider: str
    reason: str
    witness: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether the statement is proved."""
        return self.holds is True
