"""Shapes before it is known which nodes are empty, and when such a shape has a value.

Node numbers are those of the builder here, not yet those of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, compress
from typing import NamedTuple

from maskwright.analysis.graphs import predecessors, reachable
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.schema import shapes as s
from maskwright.analysis.schema.keys import n_keys

ENOUGH = 1 << 20
"""BOUND: keys that an object does not use up; so many are as good as endlessly many."""


class Patterned(NamedTuple):
    """Objects whose other keys have classes by the patterns that match them.

    objects : with no others, and nothing that is wanted.
    automata : of the patterns.
    classes : set of patterns, as a sum of 1 << i -> the nodes of the keys that just these match:
        that of any member, and of each that is wanted (`Objects.wanted`). A set that is not there
        has no key beside the named ones.
    asked : for each member that is wanted the JSON pointer of where that is asked.
    """

    objects: s.Objects
    automata: tuple[Dfa, ...]
    classes: dict[int, tuple[int, ...]]
    asked: tuple[str, ...] = ()

    def lacking(self, is_there: Callable[[int], bool]) -> str:
        """Why an object may come to lack a member that is wanted; "" if none does."""
        for i in range(1, len(self.asked) + 1):
            sets = [number for number, row in self.classes.items() if is_there(row[i])]
            n = n_keys(self.automata, sets, self.objects.keys)
            if n is not None and n < ENOUGH:
                return f"it asks for some member among {n:,} others without names of their own, which is not counted"
            if self.objects.most is not None and len(sets) < sum([is_there(row[0]) for row in self.classes.values()]):
                return "it asks for some member among others of a pattern, which is not counted beside maxProperties"
        return ""


class Doubtful(NamedTuple):
    """A shape that says less than the schema.

    refused : JSON pointer and reason of what it leaves out.
    """

    shape: s.Shape | Patterned
    refused: tuple[tuple[str, str], ...]


Draft = s.Shape | Patterned | Doubtful


def shape_of(draft: Draft) -> s.Shape | Patterned:
    """What a draft says, doubtful or not."""
    return draft.shape if isinstance(draft, Doubtful) else draft


def nodes_of(draft: Draft) -> Sequence[int]:
    """The nodes of a draft's members or items."""
    if draft.__class__ in s.SCALARS:
        return ()
    draft = shape_of(draft)
    if isinstance(draft, Patterned):
        return (*draft.objects.values, *chain.from_iterable(draft.classes.values()))
    if isinstance(draft, s.Objects):
        return draft.values + draft.others
    return draft.item_nodes if isinstance(draft, s.Arrays) else ()


def _needed(draft: Draft) -> Iterator[int] | None:
    """The nodes that a draft has a value with, and none without one of them.

    Returns None where that is no matter of certain nodes: where limits leave a choice, or no value.
    """
    if draft.__class__ in s.SCALARS:
        return iter(())
    draft = shape_of(draft)
    objects = draft.objects if isinstance(draft, Patterned) else draft
    if isinstance(objects, s.Objects):
        n_required = objects.required.count(True)
        if isinstance(draft, Patterned) and draft.asked:
            return None
        if objects.least > n_required or (objects.most is not None and objects.most < n_required):
            return None
        return compress(objects.values, objects.required)
    if isinstance(objects, s.Arrays):
        is_empty = objects.most is not None and objects.most < objects.least
        if objects.states or objects.contained is not None or is_empty:
            return None
        needed = objects.prefix[: objects.least]
        return iter(needed if len(needed) == objects.least else (*needed, objects.items))
    return iter(())


def has_value(draft: Draft, is_there: Callable[[int], bool]) -> bool:
    """Whether a draft has a value, if just the nodes that `is_there` names have some."""
    if (needed := _needed(draft)) is not None:
        return all(map(is_there, needed))
    draft = shape_of(draft)
    if isinstance(draft, s.Arrays):
        return _array_exists(draft, is_there)
    objects = draft.objects if isinstance(draft, Patterned) else draft
    assert isinstance(objects, s.Objects)
    asked, rows = (draft.asked, draft.classes.values()) if isinstance(draft, Patterned) else ((), ())
    if objects.most is not None and objects.most < max(sum(objects.required) + len(asked), objects.least):
        return False
    if asked and not all([any(map(is_there, some)) for some in zip(*rows, strict=True)]):
        return False
    if not all(map(is_there, compress(objects.values, objects.required))):
        return False
    missing = objects.least - sum(map(is_there, objects.values))
    if missing <= 0 or not isinstance(draft, Patterned):
        return missing <= 0 or any(map(is_there, objects.others))
    sets = [number for number, row in draft.classes.items() if is_there(row[0])]
    if not sets or missing < 2:  # of each class there is a key
        return bool(sets)
    # PERF: keys are only counted where one of a class is not enough
    count = n_keys(draft.automata, sets, objects.keys)
    return count is None or count >= missing


def _array_exists(arrays: s.Arrays, is_there: Callable[[int], bool]) -> bool:
    """Whether some number of items is possible: each in the set, not in it, or either."""
    if arrays.states:
        return bool(living_states(arrays.states, is_there))
    n = len(arrays.prefix)
    least, most = arrays.least, arrays.most
    if most is not None and most < least:
        return False
    contained = arrays.contained
    assert contained is not None
    forced = possible = 0  # items that must be in the set, and that can be
    for size in range(n + 1):
        if size >= least and possible >= contained.least and (contained.most is None or forced <= contained.most):
            return True
        if size in (n, most):
            break
        outside, inside = is_there(arrays.prefix[size]), is_there(contained.prefix[size])
        if not (outside or inside):
            return False
        forced += not outside
        possible += inside
    outside, inside = is_there(arrays.items), is_there(contained.items)
    more = max(1, least - n, contained.least - possible if inside else 0)
    if not (outside or inside) or (most is not None and n + more > most):
        return False
    if possible + more * inside < contained.least:
        return False
    return contained.most is None or forced + (0 if outside else more) <= contained.most


def living_states(states: Sequence[s.ItemState], is_there: Callable[[int], bool]) -> tuple[s.ItemState, ...]:
    """The states that are reached and can reach an end by nodes that `is_there` names; () for none.

    The first one stays the first.
    """
    moves = [[(node, after) for node, after in one.moves if is_there(node)] for one in states]
    edges = [[after for _, after in some] for some in moves]
    ends = (number for number, one in enumerate(states) if one.is_end)
    alive = set(reachable(ends, predecessors(edges).__getitem__))
    if 0 not in alive:
        return ()
    kept = [number for number in reachable([0], edges.__getitem__) if number in alive]
    place = {number: i for i, number in enumerate(kept)}
    return tuple(
        s.ItemState(
            states[number].is_end, tuple([(node, place[after]) for node, after in moves[number] if after in place])
        )
        for number in kept
    )


def living(drafts: Mapping[int, Sequence[Draft]]) -> set[int]:
    """The nodes that have a value: the least set that the drafts allow.

    drafts : of each node; those of all nodes inside are there too.

    Cost: O(size of the drafts); of a draft with a limit or with `contained`, its size again for
    each of its nodes.
    """
    alive: set[int] = set()
    waiting: dict[int, list[tuple[int, Draft, Iterator[int] | None]]] = {}
    # most nodes stand behind those whose parts they are, so that one pass decides most of them
    for first in reversed(list(drafts)):
        some = drafts[first]
        is_new = not some or some[0].__class__ not in s.SCALARS
        if is_new:
            todo = [(first, draft, _needed(draft)) for draft in some]
        else:
            alive.add(first)
            todo = waiting.pop(first, [])
        while todo:
            node, draft, needed = one = todo.pop()
            if node in alive:
                continue
            if needed is None:
                if not has_value(draft, alive.__contains__):
                    for child in nodes_of(draft) if is_new else ():
                        waiting.setdefault(child, []).append(one)
                    continue
            else:
                # it goes on behind this one as soon as this one is alive
                missing = next((child for child in needed if child not in alive), None)
                if missing is not None:
                    waiting.setdefault(missing, []).append(one)
                    continue
            alive.add(node)
            todo.extend(waiting.pop(node, ()))
            is_new = False
    return alive
