"""The states of the texts of a schema or a pattern for the search for endings.

The readings of a JSON text are those of the plain interpreter, and their bounds are nearly exact
(`json_costs`). Of the shortest endings one is preferred that has the values which the schema names:
a named value is one move, which comes before those by bytes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

from maskwright.analysis.errors import DeadEndError, LimitError
from maskwright.analysis.kept import cached_property
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.regex.minimise import distances
from maskwright.analysis.schema.preferred import Preferred, Spot
from maskwright.analysis.schema.shapes import Texts
from maskwright.analysis.schema.spacing import CLOSES, GOES_ON
from maskwright.decoding.endings._ending_kernels import COSTLY
from maskwright.decoding.endings.ending_search import EndingSearch, Node
from maskwright.decoding.endings.ending_spelling import ONE_BYTE, PREFERRED, Spelling
from maskwright.decoding.endings.states import Move, States
from maskwright.decoding.reference.json_characters import QUOTE
from maskwright.decoding.reference.json_costs import Costs
from maskwright.decoding.reference.json_places import (
    ArrayFrame,
    Frame,
    Gap,
    ObjectFrame,
    Quoted,
    Reading,
    Readings,
    Word,
    level_of,
)
from maskwright.decoding.reference.json_shapes import ArrayShape, AutomatonShape, LiteralShape, ObjectShape
from maskwright.decoding.reference.json_texts import JsonInterpreter

COMPARED_NODES = 400
"""States that a search may look at where items are compared: bounds are less exact there."""
SECONDS, SECONDS_OF_A_BYTE = 0.7, 2e-4
"""BOUND: processor time of a search, and more for each byte that it must find at least."""
MOST_BYTES = 20_000
"""BOUND: the bytes of an ending that is searched for."""
MOST_READINGS = 64
"""BOUND: the readings that a state of a search has: of more, those that the fewest bytes end."""
PLANNED_NODES, DEEPEST = 2_000, 24
"""BOUND: states that the search for a value's plan may look at, and values inside one another."""
N_KEPT = 64
"""The texts whose readings are kept, for a decoder which asks at each step."""

_STRUCTURE = frozenset(b' \t\n\r{}[]",:-0123456789tfn\xf8')
_IN_NUMBER = _STRUCTURE | frozenset(b"+.eE")
_BEGINS = frozenset({"value", "first item", "item"})
_MEMBERS = frozenset({"first key", "key", "object's more"})
_PLAIN = re.compile(rb"[ !#-\[\]-~]*")
"""Keys of one shortest spelling, whose order of preference is that of their bytes."""
_ANY = frozenset(range(256))
_ESCAPED = frozenset(b"\\")
_ENDS = frozenset((b",", b"}", b"]", b'"'))


class _Named(bytes):
    """A value that the schema names, as a whole: nothing of it comes behind it."""


class _Planned(bytes):
    """What ends a string or an object as a whole. after : the readings behind it."""

    after: Readings


class JsonStates(States):
    """The readings of the texts of a schema.

    preferred : the values that the schema names; None for none.

    Of several shortest endings the search finds one that prefers, from left to right, for each
    value that begins in it, what the schema names: a `default`, one of `examples`, a `const`, of an
    `enum` the first; then printable ASCII. An object or array is so written as a whole where it
    needs no white space, and member by member.
    """

    may_settle = True
    size_of_move = 8
    _level, _behind, _depth = -1, 0, 0
    """Of the search for a value's plan: the levels around it, the bytes behind it, its depth."""

    def __init__(self, under: str, texts: Texts, preferred: Preferred | None = None) -> None:
        super().__init__(under, None)
        self.interpreter = JsonInterpreter(texts)
        self.costs = Costs(self.interpreter)
        self.is_vague = texts.graph.compares_items
        self._preferred = preferred
        self._spots: WeakKeyDictionary[Frame, Spot] = WeakKeyDictionary()
        self._kept: dict[bytes, Readings] = {}
        self._plans: dict[Any, bytes | None] = {}

    def spelled_by(self, spelling: Spelling) -> States:
        found = copy(self)
        found.spelling = spelling
        return found

    def most_nodes(self, wanted: int) -> int:
        return min(wanted, COMPARED_NODES) if self.is_vague else wanted

    def seconds(self, far: int) -> float:
        return SECONDS + SECONDS_OF_A_BYTE * far

    def start(self, text: Any) -> Readings:
        """As `States.start`. Raises: LimitError if its ending is too far."""
        found = self.readings(text.bytes_said())
        if min(map(self.costs.of, found)) > MOST_BYTES:
            raise LimitError(
                f"{self.under}: the shortest ending has more than {MOST_BYTES:,} bytes, so it is not searched for"
            )
        return self._nearest(found)

    def _nearest(self, readings: Readings) -> Readings:
        """Some of the readings, among them one that the fewest bytes end. Each can be ended."""
        few = len(readings) <= MOST_READINGS
        return readings if few else tuple(sorted(readings, key=self.costs.of)[:MOST_READINGS])

    def readings(self, said: bytes) -> Readings:
        """The readings of a text, from those of the longest beginning of it that is kept.

        Raises: DeadEndError if it is no legal prefix.
        """
        known = max((one for one in self._kept if said.startswith(one)), key=len, default=b"")
        found = self._kept.pop(known, ()) or self.interpreter.start()
        found = self.interpreter.read_bytes(found, said[len(known) :])
        if not found:
            raise DeadEndError(f"{self.under}: no bytes complete this text: it is no legal prefix")
        self._kept[said] = found
        if len(self._kept) > N_KEPT:
            del self._kept[next(iter(self._kept))]
        return found

    def bound(self, state: Readings) -> int:
        return min(COSTLY, min(map(self.costs.of, state)) - self._behind)

    def is_end(self, state: Readings) -> bool:
        if self._level < 0:
            return self.interpreter.is_complete(state)
        return any(
            level_of(frame) == self._level and isinstance(place, Gap) and place.awaited == "object's more"
            for frame, place in self.interpreter.ended(state)
        )

    def moves(self, state: Readings) -> Sequence[Move]:
        bytes_alone = _moves(_order(state, PREFERRED if self.spelling is None else self.spelling.alphabet))
        named = self._named(state) if self._preferred is not None else ()
        planned = self._planned(state) if self.spelling is None else ()
        return [*planned, *named, *bytes_alone] if named or planned else bytes_alone

    def after(self, state: Readings, data: bytes) -> Readings | None:
        if isinstance(data, _Planned):
            return data.after
        if isinstance(data, _Named):
            return self._nearest(self.interpreter.ended(self.interpreter.read_bytes(state, data))) or None
        return self._nearest(self.interpreter.read(state, data[0])) or None

    def straight(self, state: Readings) -> bytes | None:
        """As `States.straight`: by bytes after which the fewest are needed, as the bounds say.

        Of equal ones others are taken each time that none is nearer; and after some such bytes what
        ends a value, if that may come. So it does not write digits for ever.

        PERF: `taken` has, for each beginning of a scalar, the place in the alphabet of the byte
        that was written after it last. Those before it were mostly used up by earlier items, so
        they are tried last.
        """
        alphabet = PREFERRED if self.spelling is None else self.spelling.alphabet
        until = time.thread_time() + self.seconds(self.bound(state))
        data, spelt, stuck = bytearray(), 0, 0
        begun, taken = b"", dict[bytes | str, int]()  # the scalar so far, b"" between them
        while len(data) <= MOST_BYTES and time.thread_time() <= until:
            if self.is_end(state) and (self.spelling is None or self.spelling.is_whole(spelt)):
                return bytes(data)
            now, at = self.bound(state), state[0].place
            context = at.awaited if isinstance(at, Gap) else begun
            turn = 11 * stuck % len(alphabet) if stuck else taken.get(context, 0)
            order = _moves(_order(state, alphabet[turn:] + alphabet[:turn]))
            named = () if self._preferred is None else self._named(state)
            best: tuple[int, bytes, Readings, int] | None = None
            for text, _ in (*named, *order):
                after_spelt = 0 if self.spelling is None else self.spelling.after_all(spelt, text)
                after = self.after(state, text) if after_spelt >= 0 else None
                if not after:
                    continue
                cost = self.bound(after) + len(text) - 1
                if isinstance(text, _Named) and cost >= now:
                    continue
                cost += COSTLY if stuck > 4 and text not in _ENDS else 0
                if best is None or cost < best[0]:
                    best = cost, text, after, after_spelt
                if cost < now:
                    break  # it cannot be nearer
            if best is None:
                return None
            cost, text, state, spelt = best
            data += text
            if isinstance(text, _Named):
                stuck, begun = 0, b""
                continue
            taken[context] = alphabet.index(text)
            if cost >= now and len(begun) > 1:  # nothing short is left after this beginning
                taken[begun[:-1]] = (alphabet.index(begun[-1]) + 1) % len(alphabet)
            begun = b"" if isinstance(state[0].place, Gap) else begun + text
            stuck = 0 if cost < now or text in _ENDS else stuck + 1
        return None

    def _named(self, readings: Readings) -> list[Move]:
        """The values that the schema names for one that may begin here."""
        assert self._preferred is not None
        at = next((one for one in readings if isinstance(one.place, Gap) and one.place.awaited in _BEGINS), None)
        if at is None:
            return []
        around = at.frame.parent if isinstance(at.frame, ArrayFrame) else at.frame
        least = 0 if at.frame is None else self.costs.rest(around)
        spot = self._inside(self._preferred, at.frame)
        return [(_Named(text), least - self._behind) for text in self._preferred.texts(spot)]

    # ---------------------------------------------------------------------------------------- plans

    def _planned(self, readings: Readings) -> list[Move]:
        """What ends the string or object of the nearest reading as a whole, if bounds say that.

        It is what the search would find byte by byte, of as many bytes and as preferred. Of several
        readings that are as near all must end so.
        """
        costs = [*map(self.costs.of, readings)]
        least = min(costs)
        plans: list[_Planned] = []
        for reading, cost in zip(readings, costs, strict=True):
            plan = self._plan(reading) if cost == least else None
            if cost == least and (plan is None or (plans and plan != plans[0])):
                return []
            plans += [] if plan is None else [plan]
        plans[0].after = tuple(dict.fromkeys(one for plan in plans for one in plan.after))
        return [(plans[0], 0)]

    def _plan(self, reading: Reading) -> _Planned | None:
        frame, place = reading
        if (frame is not None and frame.holds_compared) or not isinstance(place, Gap | Quoted):
            return None
        text: bytes | None = None
        if isinstance(place, Quoted):
            if place.spelling:
                return None
            if isinstance(place.shape, AutomatonShape):
                text = self.costs.string(place, place.shape)
        if isinstance(frame, ObjectFrame) and (
            place.awaited in _MEMBERS if isinstance(place, Gap) else place.shape is frame.shape
        ):
            text, frame = self._members(frame, place), frame.parent
        if text is None:
            return None
        plan = _Planned(text)
        plan.after = tuple(self.interpreter.behind(frame, b""))
        return plan

    def _members(self, frame: ObjectFrame, place: Gap | Quoted) -> bytes | None:
        """The members that an object lacks, and its end; None where others may be nearer."""
        shape, spacing = frame.shape, self.interpreter.texts.spacing
        missing, ranks, keys = shape.missing - frame.used, shape.ranks, shape.shape.keys
        if max(missing, default=-1) >= shape.n_named or (
            shape.count(frame.used, len(frame.others)) + len(missing) < shape.shape.least
        ):
            return None
        order = sorted(missing, key=lambda i: (ranks[i] if ranks else 0, keys[i] + b'"'))
        if not all(_PLAIN.fullmatch(keys[i]) for i in order):
            return None

        def space(state: int, ends: int = GOES_ON) -> bytes:
            return spacing.shortest(state, ends, frame.level) or b""

        comma = space(0) + b"," + space(spacing.behind_comma)
        if isinstance(place, Quoted):
            begun = [i for i in order if i in frame.addable and keys[i].startswith(place.content)]
            if not begun:
                return None
            order.remove(begun[0])
            order.insert(0, begun[0])
        elif not order and place.awaited == "key":
            return None
        parts: list[bytes] = []
        for i in order:
            value = self._value(frame, i)
            if value is None:
                return None
            parts.append(b'"%b"%b:%b' % (keys[i], space(spacing.before_colon), value))
        members = comma.join(parts)
        if isinstance(place, Quoted):
            return members[1 + len(place.content) :] + space(0, CLOSES) + b"}"
        lead = b"" if not order else comma if place.awaited == "object's more" else space(place.space)
        return lead + members + space(0 if order else place.space, CLOSES) + b"}"

    def _value(self, frame: ObjectFrame, i: int) -> bytes | None:
        """The first shortest value of a member by offset, with the white space before it.

        It is searched for once for all members of the same values, of which the same are preferred.
        """
        node, key = frame.shape.shape.values[i], frame.shape.shape.keys[i]
        spacing, named = self.interpreter.texts.spacing, tuple[object, ...]()
        if self._preferred is not None:
            spot = self._preferred.inside(self._spot(self._preferred, frame), key.decode())
            is_scalar = not any(isinstance(one, ObjectShape | ArrayShape) for one in self.interpreter.nodes[node])
            if spot.values and not is_scalar:
                return None
            named = self._preferred.texts(spot) if is_scalar else self._preferred.naming(spot)
        kept = node, named, frame.level if spacing.indent > 0 else 0
        if self._depth == DEEPEST:
            return None
        if kept not in self._plans:
            one = self.interpreter.one
            there = one(ObjectFrame, frame.parent, frame.shape, frame.used | {i}, frame.others, key, frame.members)
            inside = copy(self)
            inside._level, inside._behind, inside._depth = frame.level, self.costs.rest(there), self._depth + 1
            start = (Reading(there, Gap(spacing.behind_colon, "value", node)),)
            with suppress(LimitError):
                self._plans[kept] = EndingSearch(inside).run(Node(start, 0, inside.bound(start)), PLANNED_NODES)
        return self._plans.setdefault(kept, None)

    def _inside(self, preferred: Preferred, frame: Frame | None, n_back: int = 0) -> Spot:
        """The place of the newest member of an open object, or of an array's next item but n."""
        if frame is None:
            return preferred.root
        step = frame.key.decode() if isinstance(frame, ObjectFrame) else frame.count - n_back
        return preferred.inside(self._spot(preferred, frame), step)

    def _spot(self, preferred: Preferred, frame: Frame) -> Spot:
        """The place of an open object or array."""
        above: list[Frame] = []
        at: Frame | None = frame
        while at is not None and at not in self._spots:
            above.append(at)
            at = at.parent
        for one in reversed(above):
            self._spots[one] = self._inside(preferred, one.parent, 1)
        return self._spots[frame]


@lru_cache(maxsize=1024)
def _moves(order: bytes) -> tuple[Move, ...]:
    return tuple([(ONE_BYTE[byte], 0) for byte in order])


def _order(readings: Readings, alphabet: bytes) -> bytes:
    """The bytes of an alphabet of which one must follow, and more; those that surely lead on first.

    PERF: in a key, or in one of some strings, they are the next bytes of those that may come. All
    others were tried in vain, at 5 us each, some twenty for each byte of an ending.
    """
    near: set[int] = set()
    others: set[int] = set()
    for frame, place in readings:
        if isinstance(place, Quoted):
            texts, is_open = _listed(frame, place)
            near.update(text[len(place.content)] if text != place.content else QUOTE for text in texts)
            others |= _ANY if is_open else _ESCAPED
        elif isinstance(place, Word):
            others |= _STRUCTURE.union(*place.shape.texts)
        else:
            others |= _STRUCTURE if isinstance(place, Gap) else _IN_NUMBER
    first = [byte for byte in alphabet if byte in near]
    return bytes([*first, *(byte for byte in alphabet if byte in others and byte not in near)])


def _listed(frame: Frame | None, place: Quoted) -> tuple[Sequence[bytes], bool]:
    """The listed texts that a string or a key may become, and whether others may come."""
    shape = place.shape
    if place.spelling:
        return (), True
    if isinstance(shape, LiteralShape):
        return shape.begun(place.content), False
    if not isinstance(shape, ObjectShape):
        return (), True
    assert isinstance(frame, ObjectFrame)
    named = [shape.shape.keys[i] for i in frame.addable if i < shape.n_named]
    return [key for key in named if key.startswith(place.content)], len(named) < len(frame.addable)


class PatternStates(States):
    """The states of an automaton of all texts. Their bounds are exact."""

    def __init__(self, under: str, automaton: Dfa, spelling: Spelling | None = None) -> None:
        super().__init__(under, spelling)
        self._automaton = automaton
        self._alphabet = PREFERRED if spelling is None else spelling.alphabet

    @cached_property
    def _distances(self) -> list[int]:
        rows = self._automaton.next_state.tolist()
        found = distances(rows, self._automaton.is_accepting)
        return [found.get(state, COSTLY) for state in range(len(rows))]

    def spelled_by(self, spelling: Spelling) -> States:
        return PatternStates(self.under, self._automaton, spelling)

    def start(self, text: Any) -> int:
        state = self._automaton.run(text.bytes_said())
        if state < 0:
            raise DeadEndError(f"{self.under}: no bytes complete this text: it is no legal prefix")
        return state

    def bound(self, state: int) -> int:
        return self._distances[state]

    def is_end(self, state: int) -> bool:
        return bool(self._automaton.is_accepting[state])

    def moves(self, state: int) -> list[Move]:
        row = self._automaton.next_state[state].tolist()
        return [(ONE_BYTE[byte], self._distances[row[byte]]) for byte in self._alphabet if row[byte] >= 0]

    def after(self, state: int, data: bytes) -> int | None:
        after = int(self._automaton.next_state[state, data[0]])
        return None if after < 0 else after
