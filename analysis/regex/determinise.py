"""From a tree to a deterministic automaton over classes of characters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maskwright.analysis.regex.bounds import too_many_positions
from maskwright.analysis.regex.charset import LAST, Ranges
from maskwright.analysis.regex.machine import Machine
from maskwright.analysis.regex.minimise import distances
from maskwright.analysis.regex.tree import Chars, Choice, Look, Node, Repeat, Sequence, Source, children, factored, size


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
    bounds, class_of, masks = _partition(tree)
    machine = Machine(tree, masks, max_states)
    rows, is_accepting = machine.run(int(class_of.max()) + 1)
    return ClassDfa(
        bounds,
        class_of,
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
    match node:
        case Look():
            return Sequence(())
        case Sequence(parts):
            return Sequence(tuple(map(_without_looks, parts)))
        case Choice(options):
            return Choice(tuple(map(_without_looks, options)))
        case Repeat(body, least, most):
            return Repeat(_without_looks(body), least, most)
        case _:
            return node


def _partition(tree: Node) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], dict[Ranges, int]]:
    """The coarsest partition of the scalar values that respects every set of `tree`.

    Returns bounds and class_of as in `ClassDfa`, and for each set the bit mask of its classes.
    """
    sets: dict[Ranges, None] = {}
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, Chars):
            sets[node.ranges] = None
        stack.extend(children(node))
    edges = [np.array([[low, high + 1] for low, high in ranges], dtype=np.int64).reshape(-1) for ranges in sets]
    bounds = np.unique(np.concatenate([np.array([0, 0xD800, 0xE000], dtype=np.int64), *edges]))
    bounds = bounds[bounds <= LAST]
    inside = np.array([np.searchsorted(edge, bounds, side="right") & 1 for edge in edges], dtype=np.uint8)
    signatures = np.packbits(inside.reshape(len(sets), len(bounds)), axis=0)
    number: dict[bytes, int] = {}
    first: list[int] = []  # one interval of each class
    class_of = np.full(len(bounds), -1, dtype=np.int64)
    for interval, (bound, column) in enumerate(zip(bounds.tolist(), signatures.T, strict=True)):
        if bound != 0xD800:
            key = column.tobytes()
            if key not in number:
                number[key] = len(first)
                first.append(interval)
            class_of[interval] = number[key]
    masks = {ranges: sum(1 << c for c, i in enumerate(first) if inside[row, i]) for row, ranges in enumerate(sets)}
    return bounds, class_of, masks
