"""A decider's answer: yes, no or unknown, with the decider's name and the grounds."""

from __future__ import annotations

from dataclasses import dataclass, field

START = -1
"""The start of the text, as the first member of a context. The empty context means "anywhere"."""

Context = tuple[int, ...]
"""The terminals just before a sequence, the nearest last; see `START`."""

TerminalSequence = tuple[int, ...]
"""Terminal numbers."""

ClosedSet = tuple[tuple[str, tuple[tuple[str, ...], ...]], ...]
"""Pairs of a symbol just completed and the sequences that may be left to read then.

All are names; the pairs are sorted.
"""


@dataclass(frozen=True, slots=True)
class Verdict:
    """An answer with its grounds.

    holds : True or False where that is proved, None where the decider cannot tell.
    decider : what decided: "follow graph", "never_legal", "always_legal", "jointly_legal" or
        "prefix".
    reason : one sentence.
    witness : names of terminals, without the judged sequence: the beginning of a text that refutes
        the statement or, if `holds` is None, on which the decider got stuck. Of two judged
        sequences it ends in the one that is legal. () if there is none.
    closed_set : the proof: every derivation path from the context stays inside this set until its
        outcome is certain, and no member accepts (never), or no member refuses (always, jointly).
        () if the reason says all.
    """

    holds: bool | None
    decider: str
    reason: str
    witness: tuple[str, ...] = ()
    closed_set: ClosedSet = field(default=(), repr=False)

    def __bool__(self) -> bool:
        """Whether the statement is proved."""
        return self.holds is True
