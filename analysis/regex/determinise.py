"""From a tree to a deterministic automaton over classes of characters."""

from __future__ import annotations

from maskwright.analysis.regex.bounds import too_many_positions
from maskwright.analysis.regex.charset import partition
from maskwright.analysis.regex.machine import Machine
from maskwright.analysis.regex.minimise import distances
from maskwright.analysis.regex.positions import ClassRows
from maskwright.analysis.regex.tree import EMPTY, Chars, Look, Node, Source, factored, rebuilt, sets, size


def determinise(tree: Node, max_states: int) -> tuple[ClassRows, frozenset[Source]]:
    """The automaton of the strings that `tree` matches as a whole, before some further text.

    tree : without lazy, possessive and atomic parts (`rewrite.resolve`).
    max_states : limit on the states.

    Returns also the pattern's look-aheads that an accepted lexeme can leave open at its end.
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
    return ClassRows(bounds, class_of, rows, is_accepting), frozenset(machine.beyond)


def is_prefix_free(tree: Node, max_states: int) -> bool:
    """Whether no match of `tree` is a proper prefix of another one, look-arounds left out.

    tree, max_states : as for `determinise`.

    Raises: as `determinise`.

    Example: ``[0-9]`` and ``ab|cd`` are prefix-free; ``[0-9]+`` and ``a|ab`` are not.
    """
    if isinstance(tree, Chars):
        return True
    found, _ = determinise(_without_looks(tree), max_states)
    live = distances(found.rows, found.is_accepting)
    return not any(
        accepts and not live.keys().isdisjoint(row) for row, accepts in zip(found.rows, found.is_accepting, strict=True)
    )


def _without_looks(node: Node) -> Node:
    """The tree with the empty string instead of each look-around."""
    return EMPTY if isinstance(node, Look) else rebuilt(node, _without_looks)
