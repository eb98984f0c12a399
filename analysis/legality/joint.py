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
    """For each case the index of an earlier case that is jointly legal with it, or its own index.

    Two cases with one left terminal are merged if their sequences are proved legal after the same
    prefixes that end in it (`Judge.jointly`). Only cases with equal signatures are compared: each
    of some derivation paths accepts both or neither. All cases merged get the index of the first.
    Not merged are cases without a left terminal, and sequences that are empty or longer than
    MAX_LENGTH.

    cases : pairs of a left terminal (or START, ANYWHERE) and a sequence.
    progress : called with 1 after each case that can be merged.

    Returns n_cases indices of `cases`.

    Cost: O(n^2) for n cases of one left terminal to compute signatures, and two proofs for each
    case and candidate; 0.5 s for python.lark.
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
    """For each query which derivation paths accept its sequence, as the bytes of a bit mask.

    The paths of a left terminal are one accepting path for each of its sequences, without
    repetitions.
    """
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
