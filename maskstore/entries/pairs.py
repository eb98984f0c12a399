"""Counts the entries that a second terminal of context would save in each lexer state.

This is the first "future work" of the streamlining post. A store keyed by the last two terminals
would have a cell for each lexer state and each terminal before the state's own. A decoder could
make those that occur, lazily. Here they are only counted.

Source: Tran-Thien's streamlining post (2025).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.legality.judge import Case, Judge
from maskwright.maskstore.entries.entries import Entries
from maskwright.maskstore.entries.sequences import spoken_sequence
from maskwright.maskstore.entries.streamline import Streamlined


@dataclass(frozen=True, slots=True)
class PairSavings:
    """Mean entries of a lexer state, judged after one terminal and after two.

    The mean is over all pairs of a lexer state and a terminal that can stand before the state's
    own. The start of the text is left out, and so are states inside ignored terminals and newlines:
    they have no left terminal.

    n_contexts : the number of pairs.
    mean_after_one : mean entries if only the state's own terminal is known; 0.0 without pairs.
    mean_after_two : mean entries if the terminal before it is known too; 0.0 without pairs.
    """

    n_contexts: int
    mean_after_one: float
    mean_after_two: float


def pair_savings(grammar: Grammar, entries: Entries, result: Streamlined, judge: Judge) -> PairSavings:
    """Count the entries that never- and always-verdicts after two terminals leave.

    entries : the entries before streamlining.
    result : how they were streamlined.
    judge : the grammar's judge.

    Cost: about 5 us for each (pair of terminals, sequence); 2 s for python.lark at V = 32k.
    """
    states: dict[int, list[list[int]]] = {}
    for state in entries.states:
        if state.left >= 0:
            mapped = result.final(state.left)[state.sequences]
            states.setdefault(state.left, []).append(np.unique(mapped[mapped >= 0]).tolist())
    before = {
        left: [int(y) for y in np.flatnonzero(judge.follow[:-1, left]) if int(y) not in grammar.ignored]
        for left in states
    }
    cases: list[Case] = []
    numbers: list[tuple[int, int, int]] = []
    for left, sequences in states.items():
        used = sorted({number for state_sequences in sequences for number in state_sequences if number})
        for second in before[left]:
            for number in used:
                cases.append((second, (left, *spoken_sequence(entries.walk.codes, result.table[number]))))
                numbers.append((second, left, number))
    never = judge.never(cases)
    prover = judge.always_deciders.prover()
    outcome: dict[tuple[int, int, int], int] = {}
    for (second, sequence), key, is_never in zip(cases, numbers, never.tolist(), strict=True):
        if is_never:
            outcome[key] = -1
        else:
            plain = judge.newline not in (second, *sequence) and min(sequence) >= 0
            outcome[key] = 0 if plain and prover.implies(second, sequence[:1], sequence) else key[2]
    one: list[int] = []
    two: list[int] = []
    for left, sequences in states.items():
        for second in before[left]:
            for state_sequences in sequences:
                left_over = {outcome[second, left, number] if number else 0 for number in state_sequences}
                one.append(len(state_sequences))
                two.append(len(left_over - {-1}))
    if not one:
        return PairSavings(0, 0.0, 0.0)
    return PairSavings(len(one), float(np.mean(one)), float(np.mean(two)))
