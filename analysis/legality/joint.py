"""Merging sequences that are legal after the same prefixes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from maskwright.analysis.legality.deciders import MAX_LENGTH, Query
from maskwright.analysis.legality.judge import Judge, Symbols


def joint_representatives(
    judge: Judge,
    cases: Sequence[tuple[int, Symbols]],
    progress: Callable[[int], None] | None = None,
) -> list[int]:
    """For each (left terminal, sequence) the index of the first case with that left whose sequence is proved jointly legal with it.

    A sequence equal to none before it stands for itself; so do cases with no terminal to the left, the empty sequence, and sequences past
    MAX_LENGTH. Candidates are found by what is accepted on some fixed ways up, and each merge is then proved (`Judge.jointly`).

    Cost: O(cases) plus two proofs for each candidate, about 0.2 ms each for python.lark.
    """
    representative = list(range(len(cases)))
    judged = [i for i, (left, sequence) in enumerate(cases) if left >= 0 and 0 < len(sequence) <= MAX_LENGTH]
    signatures = judge.always_deciders.signatures([Query(*cases[i]) for i in judged])
    prover = judge.always_deciders.prover()
    leaders: dict[tuple[int, bytes], list[int]] = {}
    for index, signature in zip(judged, signatures, strict=True):
        left, sequence = cases[index]
        alike = leaders.setdefault((left, signature.tobytes()), [])
        for leader in alike:
            if judge.jointly(prover, left, cases[leader][1], sequence):
                representative[index] = leader
                break
        else:
            alike.append(index)
        if progress is not None:
            progress(1)
    return representative
