"""Trees with fewer positions and the same matches, as far as a caller asks for matches."""

from __future__ import annotations

from maskwright.analysis.regex.charset import EVERYTHING, Ranges
from maskwright.analysis.regex.positions import END, START
from maskwright.analysis.regex.tree import (
    EMPTY,
    Chars,
    Choice,
    Look,
    Node,
    Repeat,
    Sequence,
    is_nullable,
    rebuilt,
    sequence,
)

Copies = tuple[Ranges, int, int | None]
"""Of a set, at least and at most so many characters; None for no limit."""


def copies(tree: Node) -> Copies | None:
    """The set of which a tree matches all rows of so many characters, and nothing else.

    Returns None for any other tree.

    Example: ``(a{1,5}){2,3}a`` matches 3 to 16 times a.
    """
    match tree:
        case Chars(ranges):
            return ranges, 1, 1
        case Repeat(body=body, least=least, most=most):
            inner = copies(body)
            if inner is None:
                return None
            ranges, few, many = inner
            if not _meet(few, many, least, most):
                return None
            if most == 0 or many == 0:
                return ranges, 0, 0
            return ranges, few * least, None if many is None or most is None else many * most
        case Sequence(parts) if parts:
            done = [copies(part) for part in parts]
            found = [one for one in done if one is not None]
            if len(found) < len(done) or any(ranges != found[0][0] for ranges, _, _ in found):
                return None
            limits = [many for _, _, many in found if many is not None]
            return found[0][0], sum(few for _, few, _ in found), sum(limits) if len(limits) == len(found) else None
        case _:
            return None


def _meet(few: int, many: int | None, least: int, most: int | None) -> bool:
    """Whether n times `few` to `many`, for n from `least` to `most`, leave out no number between.

    They meet everywhere if the first two do.
    """
    if few <= 1 or least == most:
        return True
    return least > 0 if many is None else many * least + 1 >= few * (least + 1)


def without_ends(tree: Node) -> tuple[Node, bool, bool]:
    """A tree without the start and the end of the text at its edges, and whether each was there."""
    parts = tree.parts if isinstance(tree, Sequence) else (tree,)
    begins, ends = parts[:1] == (START,), parts[-1:] == (END,)
    return sequence(*parts[begins : len(parts) - ends]), begins, ends


def whole_copies(tree: Node) -> Copies | None:
    """The same for the texts in which a match of the tree is found. None for any other tree.

    Example: ``^a+$`` is found in one a or more; ``b*`` is found in every text.
    """
    inner, begins, ends = without_ends(tree)
    found = (EVERYTHING, 0, 0) if inner == EMPTY else copies(inner)
    if found is None or (begins and ends):
        return found
    ranges, least, _ = found
    if least == 0:  # the empty string is found in every text
        return EVERYTHING, 0, None
    return (ranges, least, None) if ranges == EVERYTHING else None


def merged(tree: Node) -> Node:
    """An equivalent tree with one repetition instead of several inside one another, if that can be.

    tree : without lazy, possessive and atomic parts.

    Example: ``(a{1,50}){1,50}`` becomes ``a{1,2500}``, and ``(a+)+`` becomes ``a+``.
    """
    if isinstance(tree, Repeat) and not isinstance(tree.body, Chars):
        found = copies(tree)
        if found is not None:
            return Repeat(Chars(found[0]), *found[1:])
    return tree if isinstance(tree, Look) else rebuilt(tree, merged)


def shortest_found(tree: Node) -> Node:
    """A tree that is found in the same texts, with fewer repetitions at its ends.

    tree : without lazy, possessive and atomic parts. It is searched for anywhere in a text.

    Example: ``a+b{2,5}`` is found where ``ab{2}`` is.
    """
    return _shortened(_shortened(tree, is_front=True), is_front=False)


def _shortened(tree: Node, is_front: bool) -> Node:
    """The tree with as few copies as can be at its front, or at its back."""
    if is_nullable(tree, looks_hold=False):
        return EMPTY
    match tree:
        case Repeat(body=body, least=least):
            one = _shortened(body, is_front)
            others = (Repeat(body, least - 1, least - 1),) * (least > 1)
            return sequence(one, *others) if is_front else sequence(*others, one)
        case Sequence(parts):
            kept = list(parts if is_front else reversed(parts))
            while is_nullable(kept[0], looks_hold=False):
                del kept[0]
            kept[0] = _shortened(kept[0], is_front)
            return sequence(*(kept if is_front else reversed(kept)))
        case Choice(options):
            return Choice(tuple([_shortened(option, is_front) for option in options]))
        case _:
            return tree
