"""Merging sequences that are legal after the same prefixes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from maskwright.analysis.legality.deciders import MAX_LENGTH, Query
from maskwright.analysis.legality.judge import Judge, Symbols


def joint_representatives(
    judge: Judge,
    cases: Sequence[tuple[int, Symbols]],
    progress: Callable[[int], None] | None = None,
) -> list[int]:
    """For each (left terminal, sequence) the index of the first case with that left whose sequence is proved jointly legal with it.

    A sequence equal to none before it stands for itself; so do cases with no terminal to the left, the empty sequence, and sequences past
    MAX_LENGTH. Candidates are sequences accepted on the same of some derivation paths, and each merge is then proved (`Judge.jointly`).

    Cost: O(cases of one left terminal squared) to sign, and two proofs for each merge and candidate; 0.5 s for python.lark.
    """
    representative = list(range(len(cases)))
    judged = [i for i, (left, sequence) in enumerate(cases) if left >= 0 and 0 < len(sequence) <= MAX_LENGTH]
    prover = judge.always_deciders.prover()
    leaders: dict[tuple[int, bytes], list[int]] = {}
    for index, signature in zip(judged, _signatures(judge, [Query(*cases[i]) for i in judged]), strict=True):
        left, sequence = cases[index]
        alike = leaders.setdefault((left, signature), [])
        for leader in alike:
            if judge.jointly(prover, left, cases[leader][1], sequence):
                representative[index] = leader
                break
        else:
            alike.append(index)
        if progress is not None:
            progress(1)
    return representative


def _signatures(judge: Judge, queries: list[Query]) -> list[bytes]:
    """On which of some derivation paths each sequence is accepted; among the paths of a left terminal each sequence has one of its own."""
    deciders = judge.always_deciders
    witnesses = deciders.witness_paths(queries)
    of_left: dict[int, dict[bytes, int]] = {}
    for query, path in zip(queries, witnesses, strict=True):
        of_left.setdefault(query.left, {}).setdefault(path.tobytes(), len(of_left[query.left]))
    pools = {left: number for number, left in enumerate(of_left)}
    paths = np.full((len(pools), max(map(len, of_left.values()), default=1), witnesses.shape[1]), -1, np.int32)
    for left, distinct in of_left.items():
        for content, number in distinct.items():
            paths[pools[left], number] = np.frombuffer(content, np.int32)
    return [row.tobytes() for row in deciders.signatures(queries, [pools[query.left] for query in queries], paths)]
