"""Which values a reading can still become, and whether one of them is new.

An item of an array without equal items must become another value than those before it. So a reading
within one is alive if the values that it can still become are not all known. They are enumerated
until one is new: each comes once, so there is one, or the last of finitely many is soon there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

from maskwright.analysis.errors import LimitError
from maskwright.analysis.schema.shapes import NO_NODE, Escapes
from maskwright.decoding.reference.json_characters import walked
from maskwright.decoding.reference.json_places import (
    ArrayFrame,
    Digits,
    Frame,
    ObjectFrame,
    Quoted,
    Reading,
    Word,
    is_between,
    is_free,
)
from maskwright.decoding.reference.json_shapes import (
    OTHER,
    ArrayShape,
    AutomatonShape,
    LiteralShape,
    NumberShape,
    ObjectShape,
    ReadShape,
    WordShape,
    goes_on,
)
from maskwright.decoding.reference.json_values import ArrayValue, Known, Members, ObjectValue, Value

MOST_STEPS = 50_000
"""BOUND: members and items tried to tell whether one item can be new; a tenth of a second."""

_Items = tuple[tuple[Value, ...], int, int, Known]
"""Items, how many they are and how many contained, and those that may not come again."""


class Completions:
    """The values of nodes, and those that readings can still become.

    nodes : the shapes of each node of a graph.
    escapes : of its texts.
    one : the one object or array, of its class, with some members or items.
    """

    def __init__(self, nodes: Sequence[tuple[ReadShape, ...]], escapes: Escapes, one: Callable[..., Any]) -> None:
        self._nodes, self._escapes = nodes, escapes
        self._object_of, self._array_of = partial(one, ObjectValue), partial(one, ArrayValue)
        self._made: dict[int, _Values] = {}
        self._alike: WeakKeyDictionary[Frame, dict[ArrayFrame, list[Value]]] = WeakKeyDictionary()
        self._n_steps = 0  # since the last question
        self.n_cuts = 0  # see `_Values`

    # ----------------------------------------------------------------------------------- questions

    def is_new(self, reading: Reading) -> bool:
        """Whether each item under way can still become a value that its array does not have.

        Raises: LimitError if so many were looked at that came to nothing.
        """
        at = reading.frame
        if at is None or not at.holds_compared or is_free(reading):
            return True
        if is_between(reading):
            if isinstance(at, ArrayFrame) and at.shape.shape.is_unique and len(at.known) < at.count:
                return False  # the last item was there before
            at = at.parent
        alike = (top for top in _compared(at) if self._alike_here(reading, top))
        return all(self._has_new(self._items(reading, top), top.known) for top in alike)

    def has_new(self, node: int, known: Known) -> bool:
        """Whether a node has a value that is not known. Raises: as `is_new`."""
        return not known or self._has_new(self._node(node), known)

    def _has_new(self, values: Iterable[Value], known: Known) -> bool:
        self._n_steps = 0
        return any(value not in known for value in values)

    def may_be_equal(self, reading: Reading) -> bool:
        """Whether an item under way, or the next one, may become equal to one before it."""
        return any(top is reading.frame or self._alike_here(reading, top) for top in _compared(reading.frame))

    def alike_rests(self, reading: Reading) -> set[bytes] | None:
        """What strings of known items still have, of those that begin like one under way.

        Returns None if the reading stands elsewhere than in a string's content, or in a character.
        Where what comes begins none of these, the items under way are new, if they can end.
        """
        place = reading.place
        if not isinstance(place, Quoted) or isinstance(place.shape, ObjectShape) or place.spelling:
            return None
        found: set[bytes] = set()
        for top in _compared(reading.frame):
            alike = self._alike_here(reading, top)
            found.update(one[len(place.content) :] for one in alike if isinstance(one, bytes))
        return found

    # --------------------------------------------------------------- known values that begin alike

    def _alike_here(self, reading: Reading, top: ArrayFrame) -> list[Value]:
        """Parts of known items, at the place of a reading, that go on as it does; or some more."""
        frame, place = reading
        assert frame is not None
        if is_between(reading):
            return self._own(frame, top)
        found = self._under(frame, top)
        if isinstance(place, Quoted):
            return [one for one in found if isinstance(one, bytes) and one.startswith(place.content)]
        return found

    def _own(self, frame: Frame, top: ArrayFrame) -> list[Value]:
        """Objects or arrays in known items that agree with what a frame has so far."""
        kept = self._alike.setdefault(frame, {})
        if top not in kept:
            assert frame.parent is not None
            found = self._under(frame.parent, top)
            if isinstance(frame, ObjectFrame):
                kept[top] = [one for one in found if isinstance(one, ObjectValue) and frame.members <= one.members]
            else:
                n = len(frame.items)
                kept[top] = [one for one in found if isinstance(one, ArrayValue) and one.items[:n] == frame.items]
        return kept[top]

    def _under(self, frame: Frame, top: ArrayFrame) -> list[Value]:
        """Of these, the member or item that is under way."""
        if frame is top:
            return list(top.known)
        found = self._own(frame, top)
        if isinstance(frame, ObjectFrame):
            parts = [one.get(frame.key) for one in found if isinstance(one, ObjectValue)]
            return [one for one in parts if one is not None]
        n = len(frame.items)
        return [one.items[n] for one in found if isinstance(one, ArrayValue) and len(one.items) > n]

    # ------------------------------------------------------------------------------ values of nodes

    def _node(self, node: int) -> _Values:
        """The values of a node, each once."""
        found = self._made.get(node)
        if found is None:
            shapes = self._nodes[node]
            found = self._made[node] = _Values(lambda: (one for each in shapes for one in self._of_shape(each)), self)
        return found

    def _of_shape(self, shape: ReadShape) -> Iterator[Value]:
        if isinstance(shape, WordShape):
            yield from shape.values.values()
        elif isinstance(shape, LiteralShape):
            yield from shape.texts
        elif isinstance(shape, AutomatonShape):
            yield from shape.strings(0, 0, b"", None)
        elif isinstance(shape, NumberShape):
            yield from shape.values(0, b"")
        elif isinstance(shape, ObjectShape):
            yield from map(self._object_of, self._objects(shape))
        else:
            yield from map(self._array_of, self._arrays(shape, ((), 0, 0, frozenset())))

    def _objects(
        self,
        shape: ObjectShape,
        used: frozenset[int] = frozenset(),
        others: frozenset[bytes] = frozenset(),
        members: Members = frozenset(),
        n_more: int = 0,
    ) -> Iterator[Members]:
        """The members with which an object can end; those it has among them.

        n_more : at least so many follow.
        """
        missing = shape.missing - used
        keys = sorted(shape.still_open(used, len(others)), key=lambda key: key not in missing)
        count = shape.count(used, len(others))
        least = max(shape.shape.least - count, n_more)
        most = None if shape.shape.most is None else shape.shape.most - count
        n_keys, n_missing = len(keys), len(missing)

        def longer(begun: tuple[int, Members, int]) -> Iterator[tuple[int, Members, int]]:
            at, found, n_new = begun
            self._step()
            n_left = max(n_missing - at - 1, 0)  # required keys come first
            has_room = most is None or n_new + 1 + n_left <= most
            if at < n_keys:
                if at >= n_missing and (shape.shape.others or n_new + n_keys - at - 1 >= least):
                    yield at + 1, found, n_new
                for name in self._keys_at(shape, keys[at], others, found) if has_room else ():
                    for value in self._node(shape.node(keys[at], name)):
                        yield at + 1, found | {(name, value)}, n_new + 1
            elif has_room and any(True for node in shape.shape.others for _ in self._node(node)):
                for place, name in enumerate(islice(shape.other_keys(b"", 0, None), at - n_keys, None), at + 1):
                    self._step()
                    if name not in others and all(key != name for key, _ in found):
                        for value in self._node(shape.node(OTHER, name)):
                            yield place, found | {(name, value)}, n_new + 1

        return (found for at, found, n_new in walked((0, members, 0), longer) if at >= n_keys and n_new >= least)

    def _keys_at(self, shape: ObjectShape, i: int, others: frozenset[bytes], found: Members) -> Iterator[bytes]:
        """The keys of a member by offset, beside other keys and some members."""
        if i < shape.n_named:
            yield shape.shape.keys[i]
            return
        there = others.union(key for key, _ in found)
        for name in shape.other_keys(b"", 0, None):
            self._step()
            if name not in there and shape.node(i, name) != NO_NODE:
                yield name

    def _arrays(self, shape: ArrayShape, begun: _Items, n_more: int = 0) -> Iterator[tuple[Value, ...]]:
        """The items with which an array can end; those it has among them.

        n_more : at least so many follow.
        """
        wanted = len(begun[0]) + n_more

        def longer(one: _Items) -> Iterator[_Items]:
            items, count, contained, known = one
            self._step()
            for node, role in shape.near_ways(count, contained):
                for value in self._node(node):
                    if value not in known:
                        there = known | {value} if shape.shape.is_unique else known
                        yield (*items, value), count + 1, contained + role, there

        for items, count, contained, _ in walked(begun, longer):
            if len(items) >= wanted and shape.may_end(count, contained):
                yield items

    def _step(self) -> None:
        """Count a step of a search. Raises: LimitError past MOST_STEPS."""
        self._n_steps += 1
        if self._n_steps > MOST_STEPS:
            raise LimitError(
                f"items are compared, and it takes more than {MOST_STEPS:,} steps to tell whether one is new"
            )

    # -------------------------------------------------------------------------- values of readings

    def _items(self, reading: Reading, top: ArrayFrame) -> Iterator[Value]:
        """The values that the item of an array can still become."""
        values, at = self._begun(reading), reading.frame
        if is_between(reading) and at is not None:
            at = at.parent
        while at is not None and at is not top:
            values = self._around(at, values)
            at = at.parent
        return values

    def _around(self, frame: Frame, values: Iterator[Value]) -> Iterator[Value]:
        """The values of an object or array whose member or item under way becomes one of some."""
        for value in values:
            if isinstance(frame, ObjectFrame):
                members = frame.members | {(frame.key, value)}
                found = self._objects(frame.shape, frame.used, frame.others, members)
                yield from map(self._object_of, found)
            elif value not in frame.known:
                known = frame.known | {value} if frame.shape.shape.is_unique else frame.known
                begun = (*frame.items, value), frame.count, frame.contained, known
                yield from map(self._array_of, self._arrays(frame.shape, begun))

    def _begun(self, reading: Reading) -> Iterator[Value]:
        """The values of the scalar, object or array that a reading stands in."""
        frame, place = reading
        if isinstance(place, Word):
            return iter(dict.fromkeys(place.shape.values[text] for text in place.shape.begun(place.text)))
        if isinstance(place, Digits):
            return place.shape.values(place.state, place.text)
        if isinstance(place, Quoted):
            if isinstance(place.shape, ObjectShape):
                return map(self._object_of, self._keyed(frame, place.shape, place))  # type: ignore[arg-type]
            return place.shape.strings(place.state, place.length, place.content, place.ranges(self._escapes))
        if place.awaited in ("value", "colon"):
            return iter(self._node(place.node))
        n_more = int(place.awaited in ("key", "item"))
        if isinstance(frame, ObjectFrame):
            members = self._objects(frame.shape, frame.used, frame.others, frame.members, n_more)
            return map(self._object_of, [frame.members] if place.awaited == "bracket" else members)
        assert isinstance(frame, ArrayFrame)
        begun = frame.items, frame.count, frame.contained, frame.known
        items = self._arrays(frame.shape, begun, n_more)
        return map(self._array_of, [frame.items] if place.awaited == "bracket" else items)

    def _keyed(self, frame: ObjectFrame, shape: ObjectShape, place: Quoted) -> Iterator[Members]:
        """The members of an object whose next key has begun."""
        addable, ranges = frame.addable, place.ranges(self._escapes)
        named = [i for i in sorted(addable) if i < shape.n_named]
        for key in named:
            name = shape.shape.keys[key]
            if goes_on(name, place.content, ranges):
                for value in self._node(shape.shape.values[key]):
                    members = frame.members | {(name, value)}
                    yield from self._objects(shape, frame.used | {key}, frame.others, members)
        if len(named) == len(addable) or place.state < 0:
            return
        for other in shape.other_keys(place.content, place.state, ranges):
            self._step()
            for i in sorted(addable.difference(named)) if other not in frame.others else ():
                node = shape.node(i, other)
                for value in self._node(node) if node != NO_NODE else ():
                    used, members = frame.used | ({i} - {OTHER}), frame.members | {(other, value)}
                    yield from self._objects(shape, used, frame.others | {other}, members)


def _compared(at: Frame | None) -> Iterator[ArrayFrame]:
    """The arrays from a frame on that have items with which one under way is compared."""
    while at is not None and at.holds_compared:
        if isinstance(at, ArrayFrame) and at.known:
            yield at
        at = at.parent


class _Values:
    """The values of a node, each once. They are made when they are wanted, and kept.

    make : begins to make them; some may come several times.
    owner : counts how often values were wanted while they were made, as those of a node inside
        itself: then only those that are there count. So they are made anew until none is new.
    """

    def __init__(self, make: Callable[[], Iterator[Value]], owner: Completions) -> None:
        self._make, self._owner = make, owner
        self._made: set[Value] = set()
        self._order: list[Value] = []
        self._is_busy = self._is_whole = False
        self._begin()

    def _begin(self) -> None:
        self._more, self._cuts_before = self._make(), self._owner.n_cuts

    def __iter__(self) -> Iterator[Value]:
        at = 0
        while at < len(self._order) or self._has_more():
            yield self._order[at]
            at += 1

    def _has_more(self) -> bool:
        """Makes one more value, if there is one."""
        if self._is_whole:
            return False
        if self._is_busy:
            self._owner.n_cuts += 1
            return False
        self._is_busy = True
        try:
            for _ in range(2):  # what was begun before may have missed values that are there by now
                for value in self._more:
                    if value not in self._made:
                        self._made.add(value)
                        self._order.append(value)
                        return True
                self._is_whole = self._owner.n_cuts == self._cuts_before
                if self._is_whole:
                    break
                self._begin()
            return False
        except BaseException:  # what was given up is begun anew
            self._begin()
            raise
        finally:
            self._is_busy = False
