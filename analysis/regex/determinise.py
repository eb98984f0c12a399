"""From a tree to a deterministic automaton over classes of characters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maskwright.analysis.regex.bounds import too_many_positions
from maskwright.analysis.regex.charset import partition
from maskwright.analysis.regex.machine import Machine
from maskwright.analysis.regex.minimise import distances
from maskwright.analysis.regex.tree import EMPTY, Chars, Look, Node, Source, factored, rebuilt, sets, size


@dataclass(frozen=True, slots=True)
class ClassDfa:
    """A deterministic automaton over classes of scalar values, not minimised.

    bounds : (n_intervals,) int64; first character of each interval, sorted. The first bound is 0.
    class_of : (n_intervals,) int64; the class of each interval's characters, -1 for the surrogates.
    next_state : (n_states, n_classes) int32; the next state, -1 for no transition. State 0 is
        initial.
    is_accepting : (n_states,) bool.
    beyond : the pattern's look-aheads that an accepted lexeme can leave open at its end.
    """

    bounds: npt.NDArray[np.int64]
    class_of: npt.NDArray[np.int64]
    next_state: npt.NDArray[np.int32]
    is_accepting: npt.NDArray[np.bool_]
    beyond: frozenset[Source]


def determinise(tree: Node, max_states: int) -> ClassDfa:
    """The automaton of the strings that `tree` matches as a whole, before some further text.

    tree : without lazy, possessive and atomic parts (`rewrite.resolve`).
    max_states : limit on the states.

    Raises: LimitError if more than `max_states` states are needed, if repetitions unfold to more
    than 4 * `max_states` positions, or if the construction takes too many steps
    (`STEPS_PER_STATE`); TypeError if an atomic group is left in the tree.
    Cost: that of the subset construction, exponential at worst; O(states * classes * threads a
    state).
    """
    tree = factored(tree)
    if size(tree) > 4 * max_states:
        raise too_many_positions(max_states)
    bounds, class_of, classes_of, n_classes = partition(sets(tree))
    masks = {ranges: sum(1 << c for c in inside) for ranges, inside in classes_of.items()}
    machine = Machine(tree, masks, max_states)
    rows, is_accepting = machine.run(n_classes)
    return ClassDfa(
        np.array(bounds, dtype=np.int64),
        np.array(class_of, dtype=np.int64),
        np.array(rows, dtype=np.int32).reshape(len(rows), -1),
        np.array(is_accepting, dtype=np.bool_),
        frozenset(machine.beyond),
    )


def is_prefix_free(tree: Node, max_states: int) -> bool:
    """Whether no match of `tree` is a proper prefix of another one, look-arounds left out.

    tree, max_states : as for `determinise`.

    Raises: as `determinise`.

    Example: ``[0-9]`` and ``ab|cd`` are prefix-free; ``[0-9]+`` and ``a|ab`` are not.
    """
    if isinstance(tree, Chars):
        return True
    dfa = determinise(_without_looks(tree), max_states)
    live = np.append(distances(dfa.next_state, dfa.is_accepting) >= 0, False)
    return not live[dfa.next_state[dfa.is_accepting]].any()


def _without_looks(node: Node) -> Node:
    """The tree with the empty string instead of each look-around."""
    return EMPTY if isinstance(node, Look) else rebuilt(node, _without_looks)
