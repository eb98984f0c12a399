"""Regular expressions as trees.

`parse` makes them, `rewrite` simplifies them, `machine` determinises them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import dropwhile
from typing import Literal, TypeAlias

from maskwright.analysis.regex.charset import EVERYTHING, Ranges


@dataclass(frozen=True, slots=True)
class Source:
    """A construct and where it stands in the pattern.

    text : the construct itself, ``pattern[start:start + len(text)]`` if `start` is known.
    start : offset in the pattern, in characters; -1 if unknown.
    """

    text: str
    start: int = -1


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Sequence:
    """One part after the other; the empty sequence matches the empty string."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the options; the empty choice matches nothing."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`least` to `most` copies of the body.

    most : None for any number.
    mode : "greedy", "lazy" or "possessive": which number of copies is tried first, and whether it
        is final.
    source : the quantifier in the pattern; None if it is greedy.
    """

    body: Node
    least: int
    most: int | None
    mode: Literal["greedy", "lazy", "possessive"] = "greedy"
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Atomic:
    """The body, whose first match is final.

    source : the construct in the pattern, or None.
    """

    body: Node
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """A condition on the text after or before the present position; it consumes nothing.

    ahead : whether the condition is on the text after the position.
    negated : whether the body must not match.
    source : the construct in the pattern; None for a condition that `rewrite` has added.
    """

    body: Node
    ahead: bool
    negated: bool
    source: Source | None = None


Node: TypeAlias = Chars | Sequence | Choice | Repeat | Atomic | Look

EMPTY = Sequence(())
NEVER = Choice(())
ANY = Chars(EVERYTHING)


def sequence(*parts: Node) -> Node:
    """The parts in a row, with nested sequences flattened; a single part stays as it is."""
    flat: list[Node] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, Sequence) else (part,))
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def boundary(word: Ranges, is_wanted: bool, source: Source | None = None) -> Node:
    r"""``\b`` or ``\B``: whether just one of the characters beside a position is one of a word."""

    def sides(before: bool, after: bool) -> Node:
        return Sequence(
            (
                Look(Chars(word), ahead=False, negated=not before, source=source),
                Look(Chars(word), ahead=True, negated=not after, source=source),
            )
        )

    return Choice((sides(True, not is_wanted), sides(False, is_wanted)))


def children(node: Node) -> tuple[Node, ...]:
    """The direct subtrees, in the pattern's order."""
    match node:
        case Sequence(parts):
            return parts
        case Choice(options):
            return options
        case Repeat(body=body) | Atomic(body=body) | Look(body=body):
            return (body,)
        case _:
            return ()


def rebuilt(node: Node, change: Callable[[Node], Node]) -> Node:
    """The node with what `change` makes of its direct subtrees."""
    match node:
        case Sequence(parts):
            return sequence(*map(change, parts))
        case Choice(options):
            return Choice(tuple(map(change, options)))
        case Repeat() | Atomic() | Look():
            return replace(node, body=change(node.body))
        case _:
            return node


def sets(tree: Node) -> list[Ranges]:
    """The sets of characters in a tree, each once."""
    found: dict[Ranges, None] = {}
    agenda = [tree]
    for node in agenda:  # grows while it is read
        if isinstance(node, Chars):
            found[node.ranges] = None
        agenda += children(node)
    return list(found)


MOST_FACTORED = 100
"""BOUND: the height of a tree on which `factored` makes more nested choices.

Beyond that it leaves choices as they are.
"""


def factored(tree: Node) -> Node:
    """An equivalent tree in which options of a choice do not begin with the same character set.

    An automaton over 1,000 words is then at a few positions of the tree at a time, not at 1,000.
    Nodes that occur several times stay one node.

    tree : without lazy, possessive and atomic parts, whose meaning depends on the order of options.

    Example: ``abc|abd`` becomes ``ab(?:c|d)``.
    """
    return _factored(tree, {}, MOST_FACTORED - _height(tree))[0]


def _height(node: Node) -> int:
    """The most nodes on a path from the root to a leaf, sequences aside."""
    height = int(not isinstance(node, Sequence | Chars))
    for child in children(node):
        if not isinstance(child, Chars):
            height = max(height, _height(child) + (not isinstance(node, Sequence)))
    return height


def _factored(node: Node, known: dict[int, tuple[Node, int]], most: int) -> tuple[Node, int]:
    """The factored tree, and how many nested choices were made on one of its paths.

    most : how many may be.
    """
    if id(node) in known:
        return known[id(node)]
    done = [_factored(child, known, most) for child in children(node)]
    depth = max((made for _, made in done), default=0)
    found = node
    match node:
        case Sequence():
            found = sequence(*(part for part, _ in done))
        case Choice():
            options = [option.parts if isinstance(option, Sequence) else (option,) for option, _ in done]
            found, depth = _factored_choice(options, depth, most)
        case Repeat() | Look():
            found = replace(node, body=done[0][0])
    known[id(node)] = found, depth
    return known[id(node)]


def _factored_choice(options: list[tuple[Node, ...]], depth: int, most: int) -> tuple[Node, int]:
    """The choice between sequences, and how many nested choices were made on one path.

    depth : how many were made on one path in and around this choice before.
    """
    groups: dict[object, list[tuple[Node, ...]]] = {}
    for at, parts in enumerate(options):
        can_share = depth < most and parts and isinstance(parts[0], Chars)
        groups.setdefault(parts[0] if can_share else at, []).append(parts)
    found: list[Node] = []
    deepest = depth
    for group in groups.values():
        first, n = group[0], 0
        if len(group) == 1:
            found.append(sequence(*first))
            continue
        while n < min(map(len, group)) and isinstance(first[n], Chars) and all(parts[n] == first[n] for parts in group):
            n += 1
        remainder, made = _factored_choice([parts[n:] for parts in group], depth + 1, most)
        found.append(sequence(*first[:n], remainder))
        deepest = max(deepest, made)
    return found[0] if len(found) == 1 else Choice(tuple(found)), deepest


def has_lazy(node: Node) -> bool:
    """Whether a lazy quantifier occurs outside look-arounds.

    Inside a look-around only the existence of a match counts. ``{n}?`` leaves no choice and does
    not count either.
    """
    if isinstance(node, Look):
        return False
    lazy = isinstance(node, Repeat) and node.mode == "lazy" and node.least != node.most
    return lazy or any(map(has_lazy, children(node)))


def looks_ahead(node: Node) -> bool:
    """Whether a look-ahead occurs in the tree."""
    return (isinstance(node, Look) and node.ahead) or any(map(looks_ahead, children(node)))


def looks_ahead_first(tree: Node) -> bool:
    """Whether look-aheads stand at the beginning only: the text decides them, not the match."""
    parts = tree.parts if isinstance(tree, Sequence) else (tree,)
    return not any(map(looks_ahead, dropwhile(lambda part: isinstance(part, Look), parts)))


def is_nullable(node: Node, looks_hold: bool = True) -> bool:
    """Whether the empty string matches, if all look-arounds are taken to hold, or to fail."""
    match node:
        case Chars():
            return False
        case Choice(options):
            return any([is_nullable(option, looks_hold) for option in options])
        case Repeat(least=0):
            return True
        case Look():
            return looks_hold
        case _:
            return all([is_nullable(part, looks_hold) for part in children(node)])


def size(node: Node) -> int:
    """An upper bound on the number of automaton positions, copies of repetitions included."""
    match node:
        case Chars():
            return 1
        case Repeat(body=body, least=least, most=most):
            return (size(body) + 1) * max(least if most is None else most, 1) + 1
        case _:
            return 1 + sum(map(size, children(node)))
