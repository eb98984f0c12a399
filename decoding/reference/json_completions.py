"""Which values a reading can still become: a few of them, and whether one is new.

An item of an array without equal items must become another value than those before it. So a reading
within one is alive if the values that it can still become are not all known. As many of these as
there are known ones that begin like it, and one more, decide that: they are enumerated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NoReturn
from weakref import WeakKeyDictionary

from maskwright.analysis.errors import LimitError
from maskwright.analysis.schema.shapes import NO_NODE, Escapes
from maskwright.decoding.reference.json_characters import Ranges, spelled
from maskwright.decoding.reference.json_item_states import items_to_end
from maskwright.decoding.reference.json_places import (
    ArrayFrame,
    Digits,
    Frame,
    Gap,
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

DEEPEST = 64
"""BOUND: objects and arrays inside one another that are looked into for values."""

MOST_STEPS = 50_000
"""BOUND: members and items tried to tell whether one item can be new; a tenth of a second."""

_NO_KEYS: frozenset[int] = frozenset()
_NO_OTHERS: frozenset[bytes] = frozenset()
_NO_MEMBERS: Members = frozenset()


class Completions:
    """The values of nodes, and those that readings can still become.

    nodes : the shapes of each node of a graph.
    escapes : of its texts.
    object_of, array_of : the one value with some members, and with some items.
    """

    def __init__(
        self,
        nodes: Sequence[tuple[ReadShape, ...]],
        escapes: Escapes,
        object_of: Callable[[Members], ObjectValue],
        array_of: Callable[[tuple[Value, ...]], ArrayValue],
    ) -> None:
        self._nodes, self._escapes = nodes, escapes
        self._object_of, self._array_of = object_of, array_of
        self._made: dict[tuple[int, int, int], tuple[list[Value], bool, bool]] = {}
        self._alike: WeakKeyDictionary[Frame, dict[ArrayFrame, list[Value]]] = WeakKeyDictionary()
        self._is_cut = False  # whether values were left out for being too deep, since `_deeper` asked
        self._is_some = False  # whether values were left out since enough were found
        self._n_steps = 0  # since then

    # ----------------------------------------------------------------------------------- questions

    def is_new(self, reading: Reading) -> bool:
        """Whether each item under way can still become a value that its array does not have.

        Of scalars right in such an array the interpreter has asked that already.
        """
        frame = reading.frame
        if frame is None or not frame.is_compared or is_free(reading):
            return True
        at = frame.parent
        while at is not None and at.holds_compared:
            if (
                isinstance(at, ArrayFrame)
                and at.shape.shape.is_unique
                and at.known
                and not self._is_new_in(reading, at)
            ):
                return False
            at = at.parent
        return True

    def may_be_equal(self, reading: Reading) -> bool:
        """Whether an item under way, or the next one, may become equal to one before it."""
        at = reading.frame
        while at is not None and at.holds_compared:
            if isinstance(at, ArrayFrame) and at.known and (at is reading.frame or self._alike_here(reading, at)):
                return True
            at = at.parent
        return False

    def alike_rests(self, reading: Reading) -> set[bytes] | None:
        """What strings of known items still have, of those that begin like one under way.

        Returns None if the reading stands elsewhere than in a string's content, or in a character.
        Where what comes begins none of these, the items under way are new, if they can end.
        """
        place, at = reading.place, reading.frame
        if not isinstance(place, Quoted) or isinstance(place.shape, ObjectShape) or place.spelling:
            return None
        found: set[bytes] = set()
        while at is not None and at.holds_compared:
            if isinstance(at, ArrayFrame) and at.known:
                alike = self._alike_here(reading, at)
                found.update(one[len(place.content) :] for one in alike if isinstance(one, bytes))
            at = at.parent
        return found

    def has_new(self, shape: ReadShape, known: Known) -> bool:
        """Whether a shape has a value that is not known."""
        return not known or self._finds_new(
            lambda n, depth: self._some(self._shape(shape, n, depth), n), known, len(known)
        )

    def _is_new_in(self, reading: Reading, top: ArrayFrame) -> bool:
        """Whether the item under way of an array can still become a new one."""
        n_alike = len(self._alike_here(reading, top))
        return not n_alike or self._finds_new(
            lambda n, depth: self._completed(reading, top, n, depth), top.known, n_alike
        )

    def _finds_new(self, find: Callable[[int, int], list[Value]], known: Known, n_alike: int) -> bool:
        """Whether one of some values is not known.

        find : finds so many of them, of at most so many levels.
        n_alike : the most of them that may be known.

        PERF: nearly always one of two is new, so more are looked for only if none is.

        Raises: LimitError if so many were looked at that came to nothing.
        """
        n = 2
        while True:
            found = self._deeper(partial(find, n), n)
            if any(value not in known for value in found):
                return True
            # fewer than n may be found though there are more: some of n parts come to no whole
            if len(found) > n_alike or not self._is_some:
                return False
            n *= 8
            if n > MOST_STEPS:
                self._give_up()

    def _deeper(self, find: Callable[[int], list[Value]], n: int) -> list[Value]:
        """`n` values, or all if there are fewer, looked for ever deeper."""
        depth, self._n_steps = 1, 0
        while True:
            self._is_cut = self._is_some = False
            found = find(depth)
            if len(found) >= n or not self._is_cut:
                return found
            if depth >= DEEPEST:
                raise LimitError(
                    f"items are compared, and it takes more than {DEEPEST} levels to tell whether one is new"
                )
            depth *= 2

    # --------------------------------------------------------------- known values that begin alike

    def _alike_here(self, reading: Reading, top: ArrayFrame) -> list[Value]:
        """Parts of known items, at the place of a reading, that go on as it does; or some more."""
        frame, place = reading
        assert frame is not None
        if isinstance(place, Gap) and place.awaited not in ("value", "colon"):
            return self._own(frame, top)
        if isinstance(place, Quoted) and isinstance(place.shape, ObjectShape):
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

    def _node(self, node: int, n: int, depth: int) -> list[Value]:
        """`n` values of a node, or all if there are fewer, of at most `depth` levels."""
        if node == NO_NODE:
            return []
        key = node, n, depth
        if key not in self._made:
            before, self._is_cut, self._is_some = (self._is_cut, self._is_some), False, False
            values = (value for shape in self._nodes[node] for value in self._shape(shape, n, depth))
            found = self._some(values, n)
            self._made[key] = found, self._is_cut, self._is_some
            self._is_cut, self._is_some = before
        found, is_cut, is_some = self._made[key]
        self._is_cut |= is_cut
        self._is_some |= is_some
        return found

    def _shape(self, shape: ReadShape, n: int, depth: int) -> Iterator[Value]:
        """Values of a shape, each once."""
        if isinstance(shape, WordShape):
            yield from dict.fromkeys(shape.values.values())
        elif isinstance(shape, LiteralShape):
            yield from shape.texts
        elif isinstance(shape, AutomatonShape):
            yield from shape.strings(0, 0, b"", None, n)
        elif isinstance(shape, NumberShape):
            yield from shape.numbers(0, b"", n)
        elif depth == 0:
            self._is_cut = True
        elif isinstance(shape, ObjectShape):
            for members in self._objects(shape, _NO_KEYS, _NO_OTHERS, _NO_MEMBERS, n, depth - 1):
                yield self._object_of(members)
        else:
            for items in self._arrays(shape, (0, 0), frozenset(), (), n, depth - 1):
                yield self._array_of(items)

    def _objects(
        self,
        shape: ObjectShape,
        used: frozenset[int],
        others: frozenset[bytes],
        members: Members,
        n: int,
        depth: int,
        n_more: int = 0,
    ) -> Iterator[Members]:
        """The members with which an object can end; those it has among them.

        n_more : at least so many follow.
        """
        missing = shape.missing - used
        values = {key: self._node(shape.shape.values[key], n, depth) for key in shape.still_open(used, len(others))}
        if not all(values.get(key, True) for key in missing):
            return
        # PERF: keys without a value would be tried behind all members of the others
        keys = sorted((key for key in values if values[key]), key=lambda key: key not in missing)
        count = len(used) + len(others)
        least = max(shape.shape.least - count, n_more)
        most = None if shape.shape.most is None else shape.shape.most - count
        has_others = any(self._node(node, n, depth) for node in shape.shape.others)
        todo: list[tuple[int, Members, int, bool]] = [(0, members, 0, False)]
        while todo:
            self._step()
            at, found, n_new, is_there = todo.pop()
            if is_there:  # the member before is there, with each of its values
                key = keys[at - 1]
                name = shape.shape.keys[key]
                todo += [(at, found | {(name, value)}, n_new, False) for value in reversed(values[key])]
                continue
            n_needed = sum(key in missing for key in keys[at:])
            if most is not None and n_new + n_needed > most:
                continue
            if not has_others and n_new + len(keys) - at < least:
                continue
            if at == len(keys):
                yield from self._with_others(shape, others, found, least - n_new, most, n_new, n, depth)
                continue
            todo.append((at + 1, found, n_new + 1, True))
            if keys[at] not in missing:
                todo.append((at + 1, found, n_new, False))

    def _with_others(
        self,
        shape: ObjectShape,
        others: frozenset[bytes],
        members: Members,
        least: int,
        most: int | None,
        n_new: int,
        n: int,
        depth: int,
    ) -> Iterator[Members]:
        """Members of keys that are not named added to others: as few as possible, and one."""
        if least <= 0:
            yield members
        n_keys = max(least, 1)
        if not shape.shape.others or (most is not None and n_new + n_keys > most):
            return
        pairs: list[tuple[bytes, list[Value]]] = []
        for key in shape.other_keys(b"", 0, None, n_keys + n + len(others)):
            values = self._node(shape.shape.others[shape.class_of(key)], n, depth)
            self._is_some |= len(pairs) >= n
            if values and key not in others:
                pairs.append((key, values))
        first = frozenset((key, values[0]) for key, values in pairs[: n_keys - 1])
        for key, values in pairs[n_keys - 1 :]:
            for value in values:
                yield members | first | {(key, value)}

    def _arrays(
        self,
        shape: ArrayShape,
        counts: tuple[int, int],
        known: Known,
        items: tuple[Value, ...],
        n: int,
        depth: int,
        n_more: int = 0,
    ) -> Iterator[tuple[Value, ...]]:
        """The items with which an array can end; those it has among them.

        counts : how many it has, and how many of them are contained.
        """
        wanted = len(items) + n_more
        if self._lacks_items(shape, *counts, wanted, n, depth):
            return
        todo = [(items, *counts, known)]
        while todo:
            self._step()
            found, count, contained, there = todo.pop()
            if len(found) >= wanted and shape.may_end(count, contained):
                yield found
            for node, role in self._ways(shape, count, contained, n, depth):
                values = [value for value in self._node(node, n + len(there), depth) if value not in there]
                self._is_some |= len(values) > n
                for value in reversed(values[:n]):
                    after = there | {value} if shape.shape.is_unique else there
                    todo.append(((*found, value), count + 1, contained + role, after))

    def _ways(self, shape: ArrayShape, count: int, contained: int, n: int, depth: int) -> list[tuple[int, int]]:
        """What the next item may be, as `ArrayShape.ways`: last what leads to an end soonest."""
        found = shape.ways(count, contained)
        if shape.shape.states:
            far = items_to_end(shape.shape.states, lambda node: bool(self._node(node, n, depth)))
            found = [way for way in found if contained + way[1] in far]
            return sorted(found, key=lambda way: -far[contained + way[1]])
        least = 0 if shape.shape.contained is None else shape.shape.contained.least
        return found[::-1] if contained >= least else found

    def _lacks_items(self, shape: ArrayShape, count: int, contained: int, wanted: int, n: int, depth: int) -> bool:
        """Whether an item that must come has no value of at most `depth` levels.

        wanted : items that the array must have at least.

        PERF: it would be looked for behind all values of the items before it.
        """
        if shape.shape.states:
            return contained not in items_to_end(shape.shape.states, lambda node: bool(self._node(node, n, depth)))
        inside = shape.shape.contained
        n_prefix = max(len(shape.shape.prefix), 0 if inside is None else len(inside.prefix))
        least = max(shape.shape.least, wanted)
        for index in range(count, min(least, n_prefix + 1)):
            if not any(self._node(shape.node(index, role), n, depth) for role in (False, True)):
                return True
        if inside is None or contained >= inside.least:
            return False
        return not any(
            self._node(shape.node(index, True), n, depth) for index in range(count, max(count, n_prefix) + 1)
        )

    def _step(self) -> None:
        """Count a step of a search.

        Raises: LimitError past MOST_STEPS.
        """
        self._n_steps += 1
        if self._n_steps > MOST_STEPS:
            self._give_up()

    @staticmethod
    def _give_up() -> NoReturn:
        raise LimitError(f"items are compared, and it takes more than {MOST_STEPS:,} steps to tell whether one is new")

    def _some(self, values: Iterable[Value], n: int) -> list[Value]:
        """The first `n` different values."""
        found: dict[Value, None] = {}
        for value in values:
            found[value] = None
            if len(found) >= n:
                self._is_some = True
                break
        return list(found)

    # -------------------------------------------------------------------------- values of readings

    def _completed(self, reading: Reading, top: ArrayFrame, n: int, depth: int) -> list[Value]:
        """`n` values that the item under way of an array can become, or all if there are fewer."""
        frame = reading.frame
        found = self._begun(reading, n, depth)
        if is_between(reading):  # these are values of the frame itself
            assert frame is not None
            frame = frame.parent
        while frame is not None and frame is not top:
            found = self._some(self._closed(frame, found, n, depth), n)
            frame = frame.parent
        return found

    def _closed(self, frame: Frame, values: list[Value], n: int, depth: int) -> Iterator[Value]:
        """The values that a frame can become whose member or item under way becomes one of some."""
        for value in values:
            self._step()
            if isinstance(frame, ObjectFrame):
                members = frame.members | {(frame.key, value)}
                for found in self._objects(frame.shape, frame.used, frame.others, members, n, depth):
                    yield self._object_of(found)
                continue
            known = frame.known
            if frame.shape.shape.is_unique:
                if value in known:
                    continue
                known = known | {value}
            counts = frame.count, frame.contained
            for items in self._arrays(frame.shape, counts, known, (*frame.items, value), n, depth):
                yield self._array_of(items)

    def _begun(self, reading: Reading, n: int, depth: int) -> list[Value]:
        """`n` values of the scalar, object or array that a reading stands in."""
        frame, place = reading
        if isinstance(place, Word):
            return [place.shape.values[text] for text in place.shape.texts if text.startswith(place.text)]
        if isinstance(place, Digits):
            return self._some(place.shape.numbers(place.state, place.text, n), n)
        if isinstance(place, Quoted):
            return self._quoted(frame, place, n, depth)
        if place.awaited in ("value", "colon"):
            return self._node(place.node, n, depth)
        n_more = int(place.awaited in ("key", "item"))
        if isinstance(frame, ObjectFrame) and place.awaited == "bracket":
            return [self._object_of(frame.members)]
        if isinstance(frame, ArrayFrame) and place.awaited == "bracket":
            return [self._array_of(frame.items)]
        if isinstance(frame, ObjectFrame):
            members = self._objects(frame.shape, frame.used, frame.others, frame.members, n, depth, n_more)
            return self._some(map(self._object_of, members), n)
        assert isinstance(frame, ArrayFrame)
        counts = frame.count, frame.contained
        items = self._arrays(frame.shape, counts, frame.known, frame.items, n, depth, n_more)
        return self._some(map(self._array_of, items), n)

    def _quoted(self, frame: Frame | None, place: Quoted, n: int, depth: int) -> list[Value]:
        """As `_begun`, within a string or a key."""
        shape = place.shape
        ranges = self._ranges(place)
        if isinstance(shape, LiteralShape):
            return self._some((text for text in shape.begun(place.content) if goes_on(text, place.content, ranges)), n)
        if isinstance(shape, AutomatonShape):
            return self._some(shape.strings(place.state, place.length, place.content, ranges, n), n)
        assert isinstance(frame, ObjectFrame)
        return self._some(self._keyed(frame, shape, place, ranges, n, depth), n)

    def _keyed(
        self, frame: ObjectFrame, shape: ObjectShape, place: Quoted, ranges: Ranges | None, n: int, depth: int
    ) -> Iterator[Value]:
        """The values of an object whose next key has begun."""
        addable = shape.addable(frame.used, len(frame.others))
        for key in sorted(addable - {OTHER}):
            name = shape.shape.keys[key]
            if goes_on(name, place.content, ranges):
                for value in self._node(shape.shape.values[key], n, depth):
                    members = frame.members | {(name, value)}
                    for found in self._objects(shape, frame.used | {key}, frame.others, members, n, depth):
                        yield self._object_of(found)
        if OTHER not in addable or place.state < 0:
            return
        for other in shape.other_keys(place.content, place.state, ranges, n + len(frame.others)):
            if other in frame.others:
                continue
            for value in self._node(shape.shape.others[shape.class_of(other)], n, depth):
                members = frame.members | {(other, value)}
                for found in self._objects(shape, frame.used, frame.others | {other}, members, n, depth):
                    yield self._object_of(found)

    def _ranges(self, place: Quoted) -> Ranges | None:
        return spelled(place.spelling, self._escapes) if place.spelling else None
