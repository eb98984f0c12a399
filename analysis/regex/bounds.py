"""What the automaton of a pattern takes at least, known from the tree before anything is built.

A pattern that is far too large must be refused at once, and none that fits may be. So all numbers
here are lower bounds of what the limits of `determinise` and `spell` count, in whatever way these
simplify the tree before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from maskwright.analysis.errors import LimitError
from maskwright.analysis.regex.charset import Ranges
from maskwright.analysis.regex.tree import Atomic, Chars, Choice, Look, Node, Repeat, Sequence, children


class Least(NamedTuple):
    """Lower bounds for a tree.

    length : the characters of its shortest text, if all look-arounds hold.
    positions : the positions of its automaton, in a tree that is not searched for.
    is_whole : whether nothing in it can make its language empty, so that some text is so long.
    chars : the set of which its texts are rows, if that shows; else None.
    longest : the characters of such a row at most; None for no limit.
    """

    length: int
    positions: int
    is_whole: bool = True
    chars: Ranges | None = None
    longest: int | None = None


def too_many_positions(max_states: int) -> LimitError:
    """The error for a tree of more than 4 * `max_states` positions."""
    return LimitError(
        f"it has more than {4 * max_states:,} positions (characters, with the copies that repetitions make)"
    )


def check_least(tree: Node, max_states: int, *, is_search: bool = False) -> None:
    """Refuse a tree whose automaton is too large in any case.

    max_states : the limit that `determinise` or `spell` will get.
    is_search : whether it is searched for, not to match whole texts; then of its repetitions as few
        as can be are built.

    Raises: LimitError where it is certain that these would raise one, or that another part of the
        pattern is refused.
    Cost: O(tree), with the logarithm of the number of options.
    """
    found = least(tree)
    if not is_search and found.positions > 4 * max_states:
        raise too_many_positions(max_states)
    # a shortest text passes no state twice; of finitely many texts, none does
    length = found.length if is_search or found.longest is None else found.longest
    if found.is_whole and length >= max_states:
        raise LimitError(f"its automaton needs more than {max_states:,} states")


def least(tree: Node) -> Least:
    """The lower bounds for a tree.

    They hold for what is built, too: `simplify.merged` makes one repetition of rows of one set
    inside one another, and `factored` one option of those that begin alike. Both keep at least the
    positions counted here.

    Example: ``(?:ab){3}`` has 6 positions, ``(?:a{1,5}){2}`` 10, ``ab|ac|b`` 4.
    """
    match tree:
        case Chars(ranges):
            return Least(1, 1, bool(ranges), ranges, 1)
        case Sequence(parts):
            return _of_sequence(parts)
        case Choice(options):
            return _of_choice(options)
        case Repeat():
            return _of_repeat(tree)
        case Atomic(body):
            return least(body)._replace(is_whole=False)
        case Look():
            return Least(0, 0, False)


def looking_before(node: Node, consumed: int = 0) -> dict[str, None]:
    """The look-behinds that reach back before a text of at least `consumed` characters."""
    found: dict[str, None] = {}
    if isinstance(node, Look) and not node.ahead:
        # `re` takes a look-behind only if all its texts have one length
        return {} if node.source is None or least(node.body).length <= consumed else {node.source.text: None}
    for child in children(node):
        found |= looking_before(child, consumed)
        consumed += least(child).length if isinstance(node, Sequence) else 0
    return found


def _of_sequence(parts: tuple[Node, ...]) -> Least:
    length = positions = row = 0
    is_whole, is_bounded = True, True
    sets: set[Ranges | None] = set()
    for part in parts:
        if isinstance(part, Chars):  # PERF: most parts are
            length, positions, row = length + 1, positions + 1, row + 1
            is_whole = is_whole and bool(part.ranges)
            if len(sets) < 2:
                sets.add(part.ranges)
            continue
        found = least(part)
        length, positions, row = length + found.length, positions + found.positions, row + (found.longest or 0)
        is_whole = is_whole and found.is_whole
        is_bounded = is_bounded and found.longest is not None
        sets.add(found.chars)
    chars = sets.pop() if len(sets) == 1 else None
    return Least(length, positions, is_whole, chars, row if is_bounded else None)


def _of_choice(options: tuple[Node, ...]) -> Least:
    if len(options) < 2:
        return least(options[0]) if options else Least(0, 0, False)
    found = [least(option) for option in options]
    positions = max(_beginnings(options), max(one.positions for one in found))
    length, is_whole = min(one.length for one in found), all(one.is_whole for one in found)
    return Least(length, positions, is_whole)


def _of_repeat(tree: Repeat) -> Least:
    inner = least(tree.body)
    few, most = tree.least, tree.most
    is_whole = inner.is_whole and tree.mode != "possessive"
    length = inner.length * few
    if most == 0:
        return Least(0, 0, is_whole, inner.chars, 0)
    if inner.chars is None:
        return Least(length, inner.positions * max(few if most is None else most, 1), is_whole)
    longest = None if most is None or inner.longest is None else inner.longest * most
    return Least(length, length if longest is None else longest, is_whole, inner.chars, longest)


def _beginnings(options: tuple[Node, ...]) -> int:
    """How many different rows of sets the options begin with, which no factoring makes fewer."""
    if len(options) < 3:
        return 0
    number: dict[Ranges, int] = {}
    rows: list[str] = []
    for option in options:
        row: list[str] = []
        for part in option.parts if isinstance(option, Sequence) else (option,):
            if not isinstance(part, Chars):
                break
            row.append(chr(number.setdefault(part.ranges, len(number))))
        rows.append("".join(row))
    return n_beginnings(rows)


def n_beginnings(rows: Iterable[str]) -> int:
    """How many different rows, not empty, some rows begin with.

    >>> n_beginnings(["ab", "ac", "b", "ab"])
    4
    """
    found, before = 0, ""
    for row in sorted(rows):
        differs = (i for i, (mine, other) in enumerate(zip(row, before, strict=False)) if mine != other)
        found += len(row) - next(differs, min(len(row), len(before)))
        before = row
    return found
