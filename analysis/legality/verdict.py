"""What a decider answers: yes, no or unknown, by which decider, and on what grounds."""

from __future__ import annotations

from dataclasses import dataclass

START = -1
"""As the first member of a context: the start of the text. The empty context means "anywhere"."""

Context = tuple[int, ...]
"""The terminals just before a sequence, nearest last; see `START`."""

TerminalSequence = tuple[int, ...]
"""Terminal numbers."""

ClosedSet = tuple[tuple[str, tuple[tuple[str, ...], ...]], ...]
"""Pairs of a symbol that has just been completed, and the sequences that may be left to read then; names, sorted."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """An answer with its grounds.

    holds : True or False where it is proved, None where this decider cannot tell.
    decider : what decided: "follow graph", "never_legal", "always_legal", "jointly_legal" or "prefix".
    reason : one sentence.
    witness : names of terminals; a text's beginning that shows the contrary (or, for None, on which the decider got stuck), the
        judged sequence not included; () if there is none.
    closed_set : what proves it: every derivation path from the context stays inside this set, and none of its members accepts (never), or
        none refuses (always, jointly). () where the reason says all.
    """

    holds: bool | None
    decider: str
    reason: str
    witness: tuple[str, ...] = ()
    closed_set: ClosedSet = ()

    def __bool__(self) -> bool:
        """Whether the statement is proved."""
        return self.holds is True
