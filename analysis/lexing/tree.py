"""Regular expressions as trees: what `parse` makes, `rewrite` simplifies and `machine` determinises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from maskwright.analysis.lexing.charset import EVERYTHING, Ranges


@dataclass(frozen=True, slots=True)
class Source:
    """Where a construct stands in the pattern: `text` is ``pattern[start:start+len(text)]``; start is -1 if unknown."""

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
    """`least` to `most` (None: any number) copies of the body."""

    body: Node
    least: int
    most: int | None
    mode: Literal["greedy", "lazy", "possessive"] = "greedy"
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Atomic:
    """The body, whose first match is final."""

    body: Node
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """A condition on the text after (`ahead`) or before the present position; it consumes nothing.

    source : the construct in the pattern, or None for a condition that `rewrite` has put in.
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
    """The parts in a row, nested sequences flattened."""
    flat: list[Node] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, Sequence) else (part,))
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


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


def has_lazy(node: Node) -> bool:
    """Whether a lazy quantifier occurs outside look-arounds (inside one, only the existence of a match counts)."""
    if isinstance(node, Look):
        return False
    lazy = isinstance(node, Repeat) and node.mode == "lazy" and node.least != node.most
    return lazy or any(map(has_lazy, children(node)))


def is_nullable(node: Node) -> bool:
    """Whether the empty string matches, look-arounds taken to hold."""
    match node:
        case Chars():
            return False
        case Sequence(parts):
            return all(map(is_nullable, parts))
        case Choice(options):
            return any(map(is_nullable, options))
        case Repeat(body=body, least=least):
            return least == 0 or is_nullable(body)
        case Atomic(body=body):
            return is_nullable(body)
        case _:
            return True


def size(node: Node) -> int:
    """An upper bound on the number of automaton positions, counted copies of repetitions included. Cost: O(tree)."""
    match node:
        case Chars():
            return 1
        case Repeat(body=body, least=least, most=most):
            return (size(body) + 1) * max(least if most is None else most, 1) + 1
        case _:
            return 1 + sum(map(size, children(node)))
