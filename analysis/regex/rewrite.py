"""Lazy, possessive and atomic parts, expressed by look-aheads.

Backtracking gives these parts their meaning: they decide *which* match is found, not whether there
is one. Let X be a body of which no match is a proper prefix of another. Then the iterations of X
over a text are one sequence of positions. With K for all that follows up to the pattern's end,
these forms are therefore exact:

    X{m,n}?  K   =   X{m} ((?!K) X){0,n-m} K        stop at the first position where K matches
    X{m,n}+      =   X{n} | X{m,n-1} (?!X)          stop only where X does not match
    (?>X)        =   X
    (?>X1|X2)    =   X1 | (?!X1) X2                 each of X1, X2 such a body
    (X1|X2)*? K  =   ((?!K) (X1 | (?!X1 X* K) X2))* K,   X standing for X1|X2

A lazy quantifier cannot matter if X{m,n} K has no match that is a proper prefix of another; it is
then taken as greedy. The same holds for a possessive quantifier if X{m,n} has no such match. In all
other cases the order of Python's search would decide, and that is an error here. Inside a
look-around only the existence of a match counts, so lazy is greedy there.
"""

from __future__ import annotations

from maskwright.analysis.errors import LimitError
from maskwright.analysis.regex.machine import is_prefix_free
from maskwright.analysis.regex.parse import Unsupported
from maskwright.analysis.regex.tree import (
    EMPTY,
    Atomic,
    Choice,
    Look,
    Node,
    Repeat,
    Sequence,
    Source,
    has_lazy,
    is_nullable,
    looks_ahead,
    sequence,
)

MOST_COPIES = 64
"""BOUND: copies of a repeated body that contains a lazy part.

Each copy has its own remainder of the pattern, so each is built separately.
"""


def resolve(tree: Node, max_states: int) -> Node:
    """An equivalent tree whose repetitions are all greedy, without atomic groups.

    tree : the tree of a whole pattern.
    max_states : limit on the states of the automata that decide which form is exact.

    Raises: Unsupported where no exact form is known, and for a look-ahead inside a look-behind;
    LimitError for a lazy part in a repetition of more than MOST_COPIES copies, and as
    `determinise`.
    """
    return _Rewriter(max_states).rewrite(tree, EMPTY)


class _Rewriter:
    def __init__(self, max_states: int) -> None:
        self._max_states = max_states

    def rewrite(self, node: Node, remainder: Node | None) -> Node:
        """The resolved form of `node`.

        remainder : the resolved remainder of the pattern, which follows `node`; None inside a
            look-around, where lazy is greedy.
        """
        match node:
            case Sequence(parts):
                return self._sequence(parts, remainder)
            case Choice(options):
                return Choice(tuple([self.rewrite(option, remainder) for option in options]))
            case Look(body, ahead, negated, source):
                if not ahead and looks_ahead(body):
                    raise Unsupported(
                        "a look-ahead (or $, \\b) inside a look-behind",
                        "move the look-ahead to the position after the look-behind",
                        source,
                    )
                return Look(self.rewrite(body, None), ahead, negated, source)
            case Atomic(body, source):
                return self._atomic(body, source)
            case Repeat():
                return self._repeat(node, remainder)
            case _:
                return node

    def _sequence(self, parts: tuple[Node, ...], remainder: Node | None) -> Node:
        done: list[Node] = []
        for part in reversed(parts):
            done.append(self.rewrite(part, remainder))
            if remainder is not None:
                remainder = sequence(self.rewrite(part, None) if has_lazy(part) else done[-1], remainder)
        return sequence(*reversed(done))

    def _repeat(self, node: Repeat, remainder: Node | None) -> Node:
        body, least, most = node.body, node.least, node.most
        if has_lazy(body) and max(least, most or 0) > MOST_COPIES:
            raise LimitError(f"a lazy quantifier inside a repetition of more than {MOST_COPIES} copies")
        plain = self.rewrite(body, None)
        if node.mode == "possessive":
            return self._possessive(plain, least, most, node.source)
        if remainder is None:
            return Repeat(plain, least, most)
        lazy = node.mode == "lazy" and least != most
        is_loose = lazy and not self._is_deterministic(plain)
        if is_loose or has_lazy(body):
            if self._is_deterministic(sequence(Repeat(plain, least, most), remainder)):
                return Repeat(plain, least, most)
            can_order = self._has_deterministic_options(plain) and max(least, most or 0) <= MOST_COPIES
            # behind an empty copy of endlessly many Python's `re` tries no other one
            if (is_loose and not can_order) or (most is None and has_lazy(body) and is_nullable(body)):
                raise Unsupported(
                    "a lazy quantifier whose body can match several lengths at one position",
                    "make the body one character class, or an alternation whose options each match one length",
                    node.source,
                )
        ordered = plain if is_loose and isinstance(plain, Choice) else None
        if not lazy and not has_lazy(body):
            return Repeat(plain, least, most)
        stop = (Look(remainder, ahead=True, negated=True),) if lazy else ()
        if not has_lazy(body) and ordered is None:
            most_more = None if most is None else most - least
            return sequence(Repeat(plain, least, least), Repeat(sequence(*stop, plain), 0, most_more))

        # The remainder of each copy of the body: the copies still to come, then `remainder`.
        def copy(copy_remainder: Node) -> Node:
            return self.rewrite(body, copy_remainder) if ordered is None else _in_order(ordered, copy_remainder, None)

        if most is None:
            more: Node = Repeat(plain, 0, None)
            done: Node = Repeat(sequence(*stop, copy(sequence(more, remainder))), 0, None)
        else:
            more = done = EMPTY
            for _ in range(most - least):
                done = Choice((sequence(*stop, copy(sequence(more, remainder)), done), EMPTY))
                more = Choice((sequence(plain, more), EMPTY))
        for _ in range(least):
            done = sequence(copy(sequence(more, remainder)), done)
            more = sequence(plain, more)
        return done

    def _possessive(self, plain: Node, least: int, most: int | None, source: Source | None) -> Node:
        whole = Repeat(plain, least, most)
        if self._is_deterministic(whole):
            return whole
        if self._is_deterministic(plain):  # and not nullable, or `whole` would be only the empty string
            stop = Look(plain, ahead=True, negated=True, source=source)
            if most is None:
                return sequence(whole, stop)
            return Choice((Repeat(plain, most, most), sequence(Repeat(plain, least, most - 1), stop)))
        raise Unsupported(
            "a possessive quantifier whose body can match several lengths at one position",
            "make the body one character class, or use the plain quantifier",
            source,
        )

    def _atomic(self, body: Node, source: Source | None) -> Node:
        plain = self.rewrite(body, None)
        if self._is_deterministic(plain):
            return plain
        if isinstance(plain, Choice) and self._has_deterministic_options(plain):
            return _in_order(plain, EMPTY, source)
        parts = body.parts if isinstance(body, Sequence) else (body,)
        last = parts[-1] if parts else EMPTY
        if isinstance(last, Repeat) and last.mode == "greedy" and not has_lazy(body):
            head = sequence(*[self.rewrite(part, None) for part in parts[:-1]])
            if self._is_deterministic(head):  # so only the last part can stop early
                return sequence(head, self._possessive(self.rewrite(last.body, None), last.least, last.most, source))
        raise Unsupported(
            "an atomic group that can match several lengths at one position",
            "use a plain group (?:...), or make sure that none of its matches is a prefix of another",
            source,
        )

    def _has_deterministic_options(self, plain: Node) -> bool:
        options = plain.options if isinstance(plain, Choice) else ()
        return bool(options) and not any(is_nullable(one) or not self._is_deterministic(one) for one in options)

    def _is_deterministic(self, plain: Node) -> bool:
        return is_prefix_free(plain, self._max_states)


def _in_order(choice: Choice, remainder: Node, source: Source | None) -> Node:
    """The first option from which `remainder` can be reached.

    Each option is tried after the options before it have failed.
    """
    options: list[Node] = []
    refused: tuple[Node, ...] = ()
    for option in choice.options:
        options.append(sequence(*refused, option))
        refused = (*refused, Look(sequence(option, remainder), ahead=True, negated=True, source=source))
    return Choice(tuple(options))
