"""A second terminal of context, the first "future work" of the streamlining post.

A store keyed by the last two terminals has a cell for each lexer state and each terminal before the
state's own: `build_entry_table` with context 2. `pair_savings` only counts what that gives.

Source: Tran-Thien's streamlining post (2025).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.legality.judge import Case, Judge
from maskwright.maskstore.entries.entries import Entries
from maskwright.maskstore.entries.sequences import spoken_sequence
from maskwright.maskstore.entries.streamline import DELETED, Streamlined


def pair_savings(grammar: Grammar, entries: Entries, result: Streamlined, judge: Judge) -> tuple[int, float, float]:
    """Count the entries that never- and always-verdicts after two terminals leave.

    entries, result, judge : as of `pair_mappings`.

    Returns the number of pairs of a lexer state and a terminal that can stand before the state's
    own, and means over these: the entries after the state's own terminal, and after both. States
    inside ignored terminals and newlines have none, and are left out.

    Cost: about 5 us for each (pair of terminals, sequence); 2 s for python.lark at V = 32k.
    """
    counts = [
        [len(np.unique(mapped[mapped >= 0])) for mapped in (result.final(left)[used], mapping[used])]
        for _, left, mapping in pair_mappings(grammar, entries, result, judge)
        for used in (state.sequences for state in entries.states if state.left == left)
    ]
    one, two = np.mean(counts or [[0, 0]], axis=0).tolist()
    return len(counts), one, two


def pair_mappings(
    grammar: Grammar, entries: Entries, result: Streamlined, judge: Judge
) -> Iterator[tuple[int, int, npt.NDArray[np.int32]]]:
    """What never- and always-verdicts after two terminals make of the sequences.

    entries : the entries before streamlining.
    result : how they were streamlined.
    judge : the grammar's judge.

    Yields each terminal that can stand before a state's own, the state's own, and the mapping of
    the sequences after both, as `Streamlined.final` has it after the state's own.
    """
    used: dict[int, set[int]] = {}
    for state in entries.states:
        if state.left >= 0:
            used.setdefault(state.left, set()).update(result.final(state.left)[state.sequences].tolist())
    pairs = [
        (second, left)
        for left in used
        for second in np.flatnonzero(judge.follow[:-1, left]).tolist()
        if second not in grammar.ignored
    ]
    numbers = {left: sorted(number for number in found if number > 0) for left, found in used.items()}
    cases: list[Case] = [
        (second, (left, *spoken_sequence(entries.walk.codes, result.table[number])))
        for second, left in pairs
        for number in numbers[left]
    ]
    never = iter(judge.never(cases).tolist())
    prover = judge.always_deciders.prover()
    each = iter(cases)
    for second, left in pairs:
        outcome = np.arange(len(result.table), dtype=np.int32)
        for number in numbers[left]:
            _, sequence = next(each)
            plain = judge.newline not in (second, *sequence) and min(sequence) >= 0
            if next(never):
                outcome[number] = DELETED
            elif plain and prover.implies(second, sequence[:1], sequence):
                outcome[number] = 0
        mapping = result.final(left)
        yield second, left, np.where(mapping >= 0, outcome[mapping], DELETED)
