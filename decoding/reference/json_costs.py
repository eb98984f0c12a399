"""The fewest bytes that the rest of a JSON text takes: lower bounds, nearly exact.

Not taken into account are the greatest numbers of characters and items. Of the values that an array
of distinct items has already only scalars are, in arrays without states; numbers that take more
than `MOST_DIGITS` bytes, and values that take more than `MOST_COST`, are counted too often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial, wraps
from operator import add
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from maskwright.analysis.schema.shapes import NO_NODE
from maskwright.analysis.schema.spacing import CLOSES, GOES_ON
from maskwright.decoding.reference import json_places as p
from maskwright.decoding.reference.json_characters import ALL, Characters, left
from maskwright.decoding.reference.json_scalar_costs import (
    MOST_DIGITS,
    NEVER,
    CharacterCosts,
    key_costs,
    rest_of,
    short_numbers,
    string_costs,
    text_cost,
    written,
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
)
from maskwright.decoding.reference.json_texts import JsonInterpreter
from maskwright.decoding.reference.json_values import Known, value_of

DEEPEST = 16
"""BOUND: levels that are told apart where lines are indented; those below are as this one."""
MOST_COST = 64
"""BOUND: bytes of keys and items up to which it is counted how many there are of each length."""
MOST_TAILS, MOST_KEPT = 4_096, 64
"""BOUND: objects and arrays of which the bytes to the end are kept, and their members or items."""
MOST_LOWEST = 1_000
"""BOUND: bytes of the shortest key or item, from which on it is not counted."""
MOST_MORE = 20_000
"""BOUND: members or items still to come that are told apart. They take two bytes each or more."""
MOST_TOLD = 20_000
"""BOUND: numbers of items, and of those contained, that are told apart in one array."""
T = TypeVar("T")


def _kept(make: Callable[..., T]) -> Callable[..., T]:
    """A method of `Costs` that keeps what it makes of its arguments, which are given in order."""

    @wraps(make)
    def find(self: Costs, *key: Any) -> T:
        if any(isinstance(one, frozenset) and len(one) > MOST_KEPT for one in key):
            return make(self, *key)
        found: T | None = self._tails.get((make, *key))
        if found is None:
            if len(self._tails) >= MOST_TAILS:
                self._tails.clear()
            found = self._tails[make, *key] = make(self, *key)
        return found

    return find


def _shortest(lowest: int, n: int, n_of: Callable[[int], int]) -> list[int]:
    """The bytes of the `n` shortest of some things, or less.

    lowest : of the shortest. n_of : the number of things that take just so many bytes.
    """
    found: list[int] = []
    for cost in range(lowest, lowest + MOST_COST if lowest <= MOST_LOWEST else 0):
        found += [cost] * min(n_of(cost), n - len(found))
        if len(found) == n:
            return found
    return found + [lowest] * (n - len(found))


class Costs:
    """Lower bounds of the bytes that complete a text, from a level of nesting on.

    Where lines are indented each level has its own.
    """

    def __init__(self, interpreter: JsonInterpreter, levels: list[Costs] | None = None) -> None:
        self.interpreter = interpreter
        self._levels = [] if levels is None else levels
        self._level = len(self._levels)
        self._levels.append(self)
        self._spacing, self._escapes = interpreter.texts.spacing, interpreter.texts.escapes
        self._spaces: dict[tuple[int, int], int] = {}
        spacing = self._spacing
        self._opened, self._empty = self._space(spacing.opened, GOES_ON), self._space(spacing.opened, CLOSES)
        self._closing = self._space(0, CLOSES) + 1
        self._comma = self._space(0, GOES_ON) + 1 + self._space(spacing.behind_comma, GOES_ON)
        self._colon = self._space(spacing.before_colon, GOES_ON) + 1 + self._space(spacing.behind_colon, GOES_ON)
        self._keys: dict[tuple[ReadShape, tuple[int, ...]], CharacterCosts] = {}
        self._rests: WeakKeyDictionary[p.Frame, int] = WeakKeyDictionary()
        self._inside = self._at(self._level + 1)
        self._tails: dict[Any, Any] = {}
        self._node_costs: dict[int, int] = {}
        self._asked: dict[int, int] | None = None  # those that are worked out, the bounds so far

    def _at(self, level: int) -> Costs:
        """Those of a level, or of the deepest one."""
        if self._spacing.indent <= 0:
            return self._levels[0]
        level = min(level, DEEPEST)
        return self._levels[level] if level < len(self._levels) else Costs(self.interpreter, self._levels)

    def _space(self, state: int, ends: int) -> int:
        """The fewest bytes of white space from a state on, before what `ends` says."""
        found = self._spaces.get((state, ends))
        if found is None:
            text = self._spacing.shortest(state, ends, max(1, self._level))
            found = self._spaces[state, ends] = NEVER if text is None else len(text)
        return found

    # --------------------------------------------------------------------------------------- values

    def _of_keys(self, shape: ObjectShape, i: int = OTHER) -> CharacterCosts:
        """Those of keys that are not named, with the value behind each of them.

        i : the offset of what is wanted, or OTHER.
        """
        nodes = shape.shape.others if i == OTHER else shape.shape.wanted[i - shape.n_named]
        values = tuple(map(self._node_cost, nodes))
        found = self._keys.get((shape, values))
        if found is None:
            ends = [0] if shape.ends is None else shape.ends
            behind = [values[end] if end >= 0 else NEVER for end in ends]
            characters = shape.automaton or Characters(None)
            found = self._keys[shape, values] = CharacterCosts(characters, behind)
        return found

    def _value_cost(self, shape: ReadShape) -> int:
        """The bytes of a shortest value of a shape."""
        if isinstance(shape, WordShape):
            return min(map(len, shape.texts))
        if isinstance(shape, NumberShape):
            return shape.left.get(0, NEVER)
        if isinstance(shape, LiteralShape):
            return 2 + min(map(text_cost, shape.texts))
        if isinstance(shape, AutomatonShape):
            return 2 + string_costs(shape).rest(0, shape.least)
        inside, nothing = self._inside, frozenset[Any]()
        if shape.may_end(nothing, 0) if isinstance(shape, ObjectShape) else shape.may_end(0, 0):
            return 2 + inside._empty
        if isinstance(shape, ObjectShape):
            tail = inside._object_tail(shape, nothing, nothing, 0)
        else:
            tail = inside._array_tail(shape, 0, 0, 0, nothing)
        return NEVER if tail >= NEVER else min(NEVER, 1 + inside._opened + tail - inside._comma)

    def _node_cost(self, node: int) -> int:
        """The bytes of a shortest value of a node, without white space around it.

        PERF: it is worked out, with those that it needs, when it is asked for: endings need few.
        """
        found = NEVER if node == NO_NODE else self._node_costs.get(node)
        if found is not None:
            return found
        if self._asked is not None:
            return self._asked.setdefault(node, NEVER)
        asked = self._asked = {node: NEVER}
        before: dict[int, int] = {}
        try:
            while asked != before:
                before = dict(asked)
                for one in reversed(before):  # the last that were asked for need the fewest others
                    asked[one] = min(map(self._value_cost, self.interpreter.nodes[one]))
                self._tails.clear()
        finally:
            self._asked = None
            self._tails.clear()
        self._node_costs.update(asked)
        return asked[node]

    # --------------------------------------------------------------------------- objects and arrays

    def _member(self, key: int, value: int) -> int:
        """The bytes of a member, with its comma and the white space around that.

        key, value : the bytes of the key within its quotation marks, and of the value.
        """
        return min(NEVER, self._comma + key + 2 + self._colon + value)

    def _named(self, shape: ObjectShape, i: int) -> int:
        """The bytes of a member by offset, as in `_member`."""
        if i >= shape.n_named:
            return self._member(self._of_keys(shape, i).rest(0, 0), 0)
        return self._member(key_costs(shape)[i], self._node_cost(shape.shape.values[i]))

    @_kept
    def _object_tail(
        self, shape: ObjectShape, used: frozenset[int], others: frozenset[bytes], n_more: int, n_new: int = 0
    ) -> int:
        """The bytes to the end of an object, from behind a member.

        n_more : at least so many members follow.
        n_new : the members that are there beside `used` and `others`; they have other keys.
        """
        missing = shape.missing - used
        total = self._closing + sum(self._named(shape, i) for i in sorted(missing))
        count = shape.count(used, len(others)) + n_new
        extra = min(max(n_more, shape.shape.least - count) - len(missing), MOST_MORE)
        if extra <= 0:
            return min(total, NEVER)
        still_open = shape.still_open(used, len(others) + n_new)
        costs = [self._named(shape, i) for i in still_open if i not in missing]
        if shape.shape.others:
            costs += self._other_costs(shape, others, extra)
        costs.sort()
        return min(NEVER, total + (sum(costs[:extra]) if len(costs) >= extra else NEVER))

    def _other_costs(self, shape: ObjectShape, others: frozenset[bytes], n: int) -> list[int]:
        """The bytes of the `n` shortest members that are not named."""
        costs = self._of_keys(shape)
        if costs.rest(0, 0) >= NEVER:
            return []
        there = [*others, *(shape.shape.keys if shape.automaton is None else ())]
        behind = [self._node_cost(shape.shape.others[shape.class_of(key)]) for key in there]
        taken = Counter(map(add, map(text_cost, there), behind))
        found = _shortest(costs.rest(0, 0), n, lambda cost: costs.n_of(cost) - taken[cost])
        return [self._member(cost, 0) for cost in found]

    @_kept
    def _array_tail(self, shape: ArrayShape, count: int, contained: int, n_more: int, known: Known) -> int:
        """The bytes to the end of an array, from behind an item."""
        if shape.shape.states:
            return min(NEVER, self._closing + self._of_states(shape, n_more)[contained])
        if shape.shape.is_unique:
            return self._unique_tail(shape, count, n_more, known)
        least, most = (0, None) if shape.shape.contained is None else shape.shape.contained[:2]
        n_least = max(shape.shape.least, count + n_more)
        n_prefix = max(len(shape.shape.prefix), len(shape.shape.contained.prefix) if shape.shape.contained else 0)
        best = NEVER
        costs = {contained: self._closing}
        n_told = 0
        for n in range(count, n_prefix):
            if n >= n_least:
                best = min([best, *(cost for inside, cost in costs.items() if inside >= least)])
            if best <= min(costs.values()):
                return best
            n_told += len(costs)
            if n_told > MOST_TOLD:
                ends = (cost + 2 * max(n_least - n, least - inside, 0) for inside, cost in costs.items())
                return min([best, *ends])
            longer: dict[int, int] = {}
            for inside, cost in costs.items():
                for role in (0, 1):
                    if most is None or inside + role <= most:
                        total = cost + self._item(shape.node(n, bool(role)))
                        longer[inside + role] = min(longer.get(inside + role, NEVER), total)
            costs = longer
        n = max(count, n_prefix)  # the items from here on are all alike
        out, into = self._item(shape.node(n, False)), self._item(shape.node(n, True))
        for inside, cost in costs.items():
            needed = max(0, least - inside)
            room = NEVER if most is None else most - inside - needed
            free = max(0, n_least - n - needed)
            more = min(free, room) if into < out else 0
            best = min(best, cost + (needed + more and (needed + more) * into) + (free - more and (free - more) * out))
        return best

    @_kept
    def _of_states(self, shape: ArrayShape, n_more: int) -> list[int]:
        """The bytes of the items to an end from each state, `n_more` items at least."""
        states = shape.shape.states

        def step(behind: list[int]) -> list[int]:
            return [min([NEVER, *(self._item(node) + behind[after] for node, after in one.moves)]) for one in states]

        found, before = [0 if one.is_end else NEVER for one in states], list[int]()
        while found != before:  # as many times as there are states, at most
            before, found = found, list(map(min, found, step(found)))
        for _ in range(n_more):
            found = step(found)
        return found

    def _item(self, node: int) -> int:
        """The bytes of an item, with its comma and the white space around that."""
        return min(NEVER, self._comma + self._node_cost(node))

    def _unique_tail(self, shape: ArrayShape, count: int, n_more: int, known: Known) -> int:
        """As `_array_tail`, of distinct items: the shortest ones that a node has."""
        n = min(max(shape.shape.least - count, n_more), MOST_MORE)
        total = self._closing
        for node, n_alike in Counter(shape.node(count + i, False) for i in range(n)).items():
            lowest, shapes = self._node_cost(node), self.interpreter.nodes[node]
            if (n_alike > 1 or known) and not any(isinstance(one, ObjectShape | ArrayShape) for one in shapes):
                total += sum(_shortest(lowest, n_alike, partial(self._n_of, shapes, known))) - n_alike * lowest
            total += n_alike * (self._comma + lowest)
        return min(total, NEVER)

    def _n_of(self, shapes: Sequence[ReadShape], known: Known, cost: int) -> int:
        """The number of values of shapes of just so many bytes that are not known, or more."""
        return sum(self._n_of_shape(shape, known, cost) for shape in shapes)

    def _n_of_shape(self, shape: ReadShape, known: Known, cost: int) -> int:
        if isinstance(shape, WordShape):
            return sum(len(text) == cost and shape.values[text] not in known for text in shape.texts)
        if isinstance(shape, LiteralShape):
            return sum(text_cost(text) + 2 == cost for text in shape.texts if text not in known)
        if isinstance(shape, AutomatonShape):
            there = [one for one in known if isinstance(one, bytes) and text_cost(one) + 2 == cost and shape.has(one)]
            return string_costs(shape).n_of(cost - 2) - len(there) if cost >= 2 else 0
        if isinstance(shape, NumberShape) and cost <= MOST_DIGITS:
            shortest = short_numbers(shape)
            return shortest.n_of[cost] - sum(shortest.length_of.get(one) == cost for one in known)
        return MOST_MORE

    # --------------------------------------------------------------------------------------- places

    def of(self, reading: p.Reading) -> int:
        """A lower bound of the bytes that complete a text from a reading."""
        frame, place = reading
        here = self._at(p.level_of(frame))
        if isinstance(place, p.Gap):
            return here._of_gap(frame, place)
        if isinstance(place, p.Quoted):
            return here._of_quoted(frame, place)
        if isinstance(place, p.Word):
            rest = min(map(len, place.shape.begun(place.text))) - len(place.text)
        else:
            rest = here._of_digits(frame, place)
        return max(rest + here.rest(frame), here._of_items(frame) - len(place.text))

    def _of_items(self, frame: p.Frame | None) -> int:
        """The bytes from the beginning of an item on that must differ from others; 0 elsewhere.

        It is one of the shortest that are left, or they all come behind it.
        """
        if not isinstance(frame, p.ArrayFrame) or not frame.shape.shape.is_unique or frame.shape.shape.states:
            return 0
        tail = self._array_tail(frame.shape, frame.count - 1, frame.contained, 1, frame.known)
        return NEVER if tail >= NEVER else tail - self._comma + self.rest(frame.parent)

    def _of_digits(self, frame: p.Frame | None, place: p.Digits) -> int:
        """The bytes to the end of a number."""
        left, known = place.shape.left, p.known_of(frame)
        nearest = left.get(place.state, NEVER)
        if nearest or not (known and value_of(place.text) in known):
            return nearest
        return 1 + min(left.get(after, NEVER) for after in place.shape.rows[place.state] if after >= 0)

    def rest(self, frame: p.Frame | None) -> int:
        """The bytes behind a value in a frame."""
        rests = self._levels[0]._rests
        above: list[p.Frame] = []
        at: p.Frame | None = frame
        while at is not None and at not in rests:
            above.append(at)
            at = at.parent
        total = self._space(self._spacing.outer, GOES_ON) if at is None else rests[at]
        for one in reversed(above):
            total = rests[one] = self._at(one.level)._tail(one) + total
        return total

    def _tail(self, frame: p.Frame, n_more: int = 0) -> int:
        if isinstance(frame, p.ObjectFrame):
            return self._object_tail(frame.shape, frame.used, frame.others, n_more)
        return self._array_tail(frame.shape, frame.count, frame.contained, n_more, frame.known)

    def _of_gap(self, frame: p.Frame | None, place: p.Gap) -> int:
        """The bytes from white space on."""
        awaited, on = place.awaited, self._space(place.space, GOES_ON)
        if awaited == "end":
            return on
        if awaited == "value":
            return on + self._node_cost(place.node) + self.rest(frame)
        if awaited == "colon":
            colon = on + 1 + self._space(self._spacing.behind_colon, GOES_ON)
            return colon + self._node_cost(place.node) + self.rest(frame)
        assert frame is not None
        closing = NEVER
        if awaited not in ("key", "item") and frame.may_end:
            closing = self._space(place.space, CLOSES) + 1
        if awaited in ("object's more", "array's more"):
            on += self._comma - self._space(0, GOES_ON)
        tail = self._tail(frame, 1) if closing >= NEVER else NEVER
        more = NEVER if tail >= NEVER else min(NEVER, on + tail - self._comma)
        return min(closing, more) + self.rest(frame.parent)

    def _of_quoted(self, frame: p.Frame | None, place: p.Quoted) -> int:
        shape = place.shape
        if isinstance(shape, ObjectShape):
            assert isinstance(frame, p.ObjectFrame)
            return self._of_key(frame, shape, place) + self.rest(frame.parent)
        known = p.known_of(frame)
        if isinstance(shape, LiteralShape):
            inside = min(rest_of(text, place, self._escapes) for text in shape.texts if text not in known)
        else:
            least = max(shape.least - place.length, int(place.content in known))
            inside = self._of_automaton(string_costs(shape), place, least)
        return max(inside + 1 + self.rest(frame), self._of_items(frame) - 1 - written(place))

    def string(self, place: p.Quoted, shape: AutomatonShape) -> bytes | None:
        """The first shortest rest of a string, between characters; None where that is unknown."""
        text = string_costs(shape).text(place.state, shape.least - place.length)
        is_known = text is not None and (shape.most is None or place.length + len(text) <= shape.most)
        return text + b'"' if is_known and text is not None else None

    def _of_automaton(self, costs: CharacterCosts, place: p.Quoted, least: int) -> int:
        """The bytes to the end of a string or key."""
        if not place.spelling:
            return costs.rest(place.state, least)
        ranges = place.ranges(self._escapes) or ALL
        states = costs.characters.steps(place.state, ranges)
        after = min((costs.rest(state, least - 1) for state in states), default=NEVER)
        return min(NEVER, left(place.spelling) + after)

    def _of_key(self, frame: p.ObjectFrame, shape: ObjectShape, place: p.Quoted) -> int:
        """The bytes to the end of an object, from within a key."""
        behind = 1 + self._colon
        best = NEVER
        addable = frame.addable
        missing = shape.missing - frame.used
        whole = self._tail(frame)
        is_enough = shape.count(frame.used, len(frame.others)) + len(missing) >= shape.shape.least
        for i in sorted(i for i in addable if i < shape.n_named):
            rest = rest_of(shape.shape.keys[i], place, self._escapes)
            if rest < NEVER:
                if i in missing:
                    tail = whole - self._named(shape, i)
                else:
                    tail = whole if is_enough else self._object_tail(shape, frame.used | {i}, frame.others, 0)
                best = min(best, rest + behind + self._node_cost(shape.shape.values[i]) + tail)
        for i in sorted(i for i in addable if i >= shape.n_named) if place.state >= 0 else ():
            is_new = i == OTHER
            tail = self._object_tail(shape, frame.used, frame.others, 0, 1) if is_new else whole - self._named(shape, i)
            is_taken = place.content in frame.others or place.content in shape.index
            rest = self._of_automaton(self._of_keys(shape, i), place, int(is_taken))
            best = min(best, rest + behind + tail)
        if not is_enough and best < NEVER:
            one_more = self._object_tail(shape, frame.used, frame.others, 1)
            best = max(best, one_more - self._comma - 1 - written(place))
        return best
