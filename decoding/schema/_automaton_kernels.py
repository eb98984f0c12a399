"""Automata: steps, ends, and whether a string of an allowed length can still be completed."""

from __future__ import annotations

from maskwright.analysis.arrays import Int32
from maskwright.analysis.jit import kernel
from maskwright.maskstore.schema.layout import AUTOMATON_HEADER, CLASS_OF, LENGTHS_HEADER, N_CLASSES, N_STATES


@kernel(forceinline=True)
def next_state(automata: Int32, automaton: int, state: int, byte: int) -> int:
    """The state behind a byte; 0 is dead."""
    column = automata[automaton + CLASS_OF + byte]
    return automata[automaton + AUTOMATON_HEADER + state * automata[automaton + N_CLASSES] + column]


@kernel(forceinline=True)
def end_of(automata: Int32, automaton: int, state: int) -> int:
    """0 if nothing ends in a state; else 1, or 1 + the class of the key that ends there."""
    n = automata[automaton + N_STATES] * automata[automaton + N_CLASSES]
    return automata[automaton + AUTOMATON_HEADER + n + state]


@kernel(forceinline=True)
def n_left(automata: Int32, automaton: int, state: int) -> int:
    """The number of keys that go on from a state of an automaton of keys.

    ENDLESS or FOR_EVER for infinitely many, see `analysis.schema.lengths`.
    """
    n_states = automata[automaton + N_STATES]
    return automata[automaton + AUTOMATON_HEADER + n_states * (automata[automaton + N_CLASSES] + 2) + state]


@kernel(forceinline=True)
def least_left(automata: Int32, automaton: int, state: int) -> int:
    """The fewest keys that go on behind one more character, as `n_left`."""
    n_states = automata[automaton + N_STATES]
    return automata[automaton + AUTOMATON_HEADER + n_states * (automata[automaton + N_CLASSES] + 1) + state]


@kernel
def can_have_length(
    automata: Int32, automaton: int, lengths: int, state: int, least: int, most: int, length: int
) -> bool:
    """Whether from a state, behind `length` characters, some string of `least` to `most` ends.

    lengths : the offset of the automaton's lengths; -1 where a string of each length can end.
    most : -1 for no limit.
    """
    if lengths < 0:
        return True
    preperiod, period, left, shift = automata[lengths], automata[lengths + 1], max(least - length, 0), 0
    if left >= preperiod:
        shift = left - preperiod - (left - preperiod) % period
    row = lengths + LENGTHS_HEADER + (left - shift) * automata[automaton + N_STATES]
    found = automata[row + state]
    return found >= 0 and (most < 0 or found + shift + length <= most)
