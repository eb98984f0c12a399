"""Shortest endings of JSON texts: the fewest bytes that make a text so far legal, and their tokens.

The search goes over the readings of the reference interpreter, byte by byte, under a lower bound
that is nearly exact (`json_costs`). A state is looked at again only as far as its bytes are needed:
of the bytes that may follow, the next one is tried only when nothing nearer is left. Where it takes
long the search is given up, and an ending is written straight on.

Of the shortest endings one is preferred that has the values which the schema names. A named value
is tried as a whole where a value begins, before other bytes, and only while the bound says that
the ending gets no longer by it. So the search stays what it is: these are paths that it would take
byte by byte, taken sooner.

Source: Hart, Nilsson, Raphael (1968) for search under a lower bound; Yoshizumi, Miura, Ishida, "A*
with partial expansion" (2000).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from maskwright.analysis.errors import DeadEndError, LimitError
from maskwright.analysis.schema.preferred import Preferred, Spot
from maskwright.analysis.schema.shapes import Texts
from maskwright.decoding.endings.ending import Ending
from maskwright.decoding.endings.ending_spelling import PREFERRED, Spelling
from maskwright.decoding.reference.json_characters import QUOTE
from maskwright.decoding.reference.json_costs import Costs
from maskwright.decoding.reference.json_places import Frame, Gap, ObjectFrame, Quoted, Readings, Word
from maskwright.decoding.reference.json_scalar_costs import NEVER
from maskwright.decoding.reference.json_shapes import OTHER, LiteralShape, ObjectShape
from maskwright.decoding.reference.json_texts import JsonInterpreter

if TYPE_CHECKING:
    from maskwright.maskstore.vocabulary.vocabulary import Vocabulary

MAX_STEPS = 200_000
"""Bytes that a search may try beyond `STEPS_OF_A_BYTE` for each byte of the ending."""
COMPARED_STEPS = 2_000
"""Instead of `MAX_STEPS` where items are compared: bounds are less exact there."""
SHORT_STEPS = 20_000
"""Instead of `MAX_STEPS` where any short ending will do."""
STEPS_OF_A_BYTE = 200
SECONDS, SECONDS_OF_A_BYTE = 0.7, 2e-4
"""BOUND: processor time of a search, and more for each byte that it must find at least; and as much
again for what is written straight on. Where the vocabulary cannot spell what was found, both again.
"""
MOST_BYTES = 20_000
"""BOUND: the bytes of an ending that is searched for."""

MOST_REST_BYTES, REST_BYTES, MOST_NOTED = 4_000_000, 500, 500
"""BOUND: the bytes that are kept of what completes texts, what each takes beside; the texts that
one search notes."""

AGAIN = 1 << 40
"""More than a search has nodes: of equal ones, those that were looked at already come last."""

_STRUCTURE = frozenset(b' \t\n\r{}[]",:-0123456789tfn\xf8')
_IN_NUMBER = _STRUCTURE | frozenset(b"+.eE")


class _Rest(NamedTuple):
    """What completes a text, and what it took a search to find that.

    most : the most steps from there on, beyond `STEPS_OF_A_BYTE` for each byte since.
    seconds : processor time from there on.
    """

    data: bytes = b""
    most: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class _Visit:
    """A node that a search has come by, and its steps beyond `STEPS_OF_A_BYTE` for each byte.

    above : those before it. most : the most until the next visit.
    """

    node: int
    above: int
    most: int
    time: float


class JsonEndings:
    """Endings of the texts of a schema under a vocabulary. The same text has the same ending.

    interpreter : reads texts; its readings are where endings begin.
    vocabulary : None for endings of any bytes.
    preferred : the values that the schema names; None for none.

    Not safe for several threads at once.
    """

    def __init__(self, texts: Texts, vocabulary: Vocabulary | None = None, preferred: Preferred | None = None) -> None:
        self.interpreter = JsonInterpreter(texts)
        self._preferred = preferred
        self._spots: WeakKeyDictionary[Frame, Spot] = WeakKeyDictionary()
        self._rests: dict[Readings, _Rest] = {}
        self._n_rest_bytes = 0
        self.costs = Costs(self.interpreter)
        self._compares = texts.graph.compares_items
        self.spelling = None if vocabulary is None else Spelling(vocabulary)

    def readings(self, prefix: bytes) -> Readings:
        """The readings of a text so far. Raises: DeadEndError if it is no legal prefix."""
        found = self.interpreter.read_bytes(self.interpreter.start(), prefix)
        if not found:
            raise DeadEndError("no bytes complete this text: it is no legal prefix")
        return found

    def shortest(self, readings: Readings, max_steps: int | None = None) -> Ending:
        """A shortest byte string that completes a text, and the fewest tokens that spell it.

        readings : of the text so far; not empty. It can be kept and read on from by
            `interpreter.read_bytes`.
        max_steps : the bytes that may be tried; `MAX_STEPS` by default.

        Of several shortest endings it is always the same one. From left to right it prefers, for
        each value that begins in it, what the schema names: a `default`, one of `examples`, a
        `const`, of an `enum` the first; then printable ASCII. An object or array is so written as a
        whole where it needs no white space, and member by member. (Where the bound is not exact it
        may take others: where numbers of characters or items have a limit, or items are unique.)
        Where the search is given up, one is written straight on, and taken if the bound proves that
        none is shorter. Where items of any kind must differ it is taken in any case:
        `Ending.is_shortest` says which it is. The search has a limit of time, so on a slower
        machine it may be given up.

        Raises: DeadEndError if no tokens spell an ending; LimitError if none is found among so many
            bytes, or in the time that `SECONDS` and `SECONDS_OF_A_BYTE` give.
        Cost: some 100 us a byte of the ending.
        """
        return self._ending(readings, MAX_STEPS if max_steps is None else max_steps, self._compares)

    def short(self, readings: Readings) -> Ending:
        """As `shortest`; but where the search is given up, what is written straight on is taken.

        Raises: DeadEndError as `shortest`; LimitError if that comes to no end, either.
        """
        return self._ending(readings, SHORT_STEPS, True)

    def _ending(self, readings: Readings, limit: int, may_be_longer: bool) -> Ending:
        """As `shortest`. may_be_longer : whether one that is not proved shortest will do."""
        data, is_shortest = self._found(readings, None, limit, may_be_longer)
        if data is None:
            raise DeadEndError("no bytes complete this text")
        if self.spelling is None or not data:
            return Ending(data, (), is_shortest)
        tokens = self.spelling.fewest_tokens(data)
        if tokens is None:
            found, is_shortest = self._found(readings, self.spelling, limit, may_be_longer)
            if found is None or (tokens := self.spelling.fewest_tokens(found)) is None:
                raise DeadEndError(self.spelling.explanation(data))
            data = found
        return Ending(data, tokens, is_shortest)

    def min_bytes_left(self, readings: Readings) -> int:
        """The length of the ending of `shortest`, whether or not the vocabulary can spell it."""
        found, _ = self._found(readings, None, MAX_STEPS, self._compares)
        return 0 if found is None else len(found)

    def _found(
        self, readings: Readings, spelling: Spelling | None, limit: int, may_be_longer: bool
    ) -> tuple[bytes | None, bool]:
        """An ending, or None if there is none, and whether it is a shortest one."""
        least = min(map(self.costs.of, readings))
        if least > MOST_BYTES:
            raise LimitError(f"the shortest ending has more than {MOST_BYTES:,} bytes, so it is not searched for")
        seconds = SECONDS + SECONDS_OF_A_BYTE * least
        if self._compares:
            limit = min(limit, COMPARED_STEPS)
        try:
            return self._search(readings, spelling, limit, time.thread_time() + seconds), True
        except LimitError:
            if not may_be_longer and limit < MAX_STEPS:
                raise  # the caller wants no more tried than `max_steps`
            found = self._straight(readings, spelling, time.thread_time() + seconds)
            if found is None or (len(found) > least and not may_be_longer):
                raise  # other endings may exist, and be shorter
            return found, len(found) == least

    def _search(self, readings: Readings, spelling: Spelling | None, limit: int, until: float) -> bytes | None:
        """A shortest ending, or None if there is none.

        until : the thread's time at which it is given up.

        Entries of the queue are (bound of the whole, minus its length so far, number, node, the
        next byte to try, by its place); of equal ones the deepest and oldest comes first.
        """
        interpreter, costs = self.interpreter, self.costs
        alphabet = PREFERRED if spelling is None else spelling.alphabet
        queue: list[tuple[int, int, int, int, int]] = []
        nodes: list[tuple[Readings, int, int, int]] = []  # readings; bytes so far; spelling's state; node before
        last: list[bytes] = []  # the bytes that led to each node
        length_of: dict[tuple[Readings, int], int] = {}

        def add(found: Readings, length: int, state: int, before: int, data: bytes) -> int:
            """Take up a node unless it is known. Returns its bound."""
            bound = min(map(costs.of, found)) + length
            if bound < NEVER and length < length_of.get((found, state), NEVER):
                length_of[found, state] = length
                nodes.append((found, length, state, before))
                last.append(data)
                heappush(queue, (bound, -length, len(nodes), len(nodes) - 1, -1))
            return bound

        add(readings, 0, 0, -1, b"")
        # the last part of the search, in which it has not turned back
        steps, now, straight = 0, time.thread_time(), list[_Visit]()
        while queue:
            bound, _, _, node, place = heappop(queue)
            found, length, state, before = nodes[node]
            if length_of[found, state] < length:
                continue
            if place < 0:
                if straight and before != straight[-1].node:
                    straight.clear()
                above = steps - STEPS_OF_A_BYTE * length
                straight.append(_Visit(node, above, above, now))
                rest = _Rest() if spelling is not None else self._rests.get(found, _Rest())
                # it counts as if it were searched for again, whatever was asked before
                is_in_time = above + rest.most <= limit and now + rest.seconds <= until
                if rest.data and length + len(rest.data) == bound and is_in_time:
                    return self._noted(straight, nodes, self._bytes_to(node, nodes, last), rest)
                if interpreter.is_complete(found) and (spelling is None or spelling.is_whole(state)):
                    data = self._bytes_to(node, nodes, last)
                    return data if spelling is not None else self._noted(straight, nodes, data, _Rest())
                place = 0
                text, after, after_state = self._named_value(found, spelling, state, bound - length)
                steps += len(text)
                if after and add(after, length + len(text), after_state, node, text) <= bound:
                    heappush(queue, (bound, -length, len(nodes) + AGAIN, node, place))
                    continue
            order = _order(found, alphabet)
            while place < len(order):
                byte = order[place]
                place += 1
                after_state = 0 if spelling is None else spelling.after(state, byte)
                after = interpreter.read(found, byte) if after_state >= 0 else ()
                steps += 1
                if after and add(after, length + 1, after_state, node, bytes([byte])) <= bound:
                    heappush(queue, (bound, -length, len(nodes) + AGAIN, node, place))
                    break
            now, above = time.thread_time(), steps - STEPS_OF_A_BYTE * length
            straight[-1].most = max(straight[-1].most, above)
            if above > limit or now > until:
                raise LimitError(
                    f"no shortest ending was found among {steps:,} bytes that could follow: the search was given up"
                )
        return None

    def _straight(self, readings: Readings, spelling: Spelling | None, until: float) -> bytes | None:
        """An ending by bytes behind which the fewest are needed, as the bounds say.

        Of equal ones others are taken each time that none is nearer; and after some such bytes what
        ends a value, if that may come. So it does not write digits for ever.

        PERF: `taken` has, for each beginning of a scalar, the place in the alphabet of the byte
        that was written behind it last. Those before it were mostly used up by earlier items, so
        they are tried last.

        Returns None where the vocabulary cannot spell what comes so.
        Raises: LimitError past `MOST_BYTES`, and past `until`, the thread's time.
        """
        alphabet = PREFERRED if spelling is None else spelling.alphabet
        data, state, stuck = bytearray(), 0, 0
        begun, taken = b"", dict[bytes | str, int]()  # the scalar so far, b"" between them
        while len(data) <= MOST_BYTES and time.thread_time() <= until:
            if self.interpreter.is_complete(readings) and (spelling is None or spelling.is_whole(state)):
                return bytes(data)
            order, now = _order(readings, alphabet), min(map(self.costs.of, readings))
            text, after, after_state = self._named_value(readings, spelling, state, now)
            if after:
                data += text
                readings, state, stuck, begun = after, after_state, 0, b""
                continue
            best: tuple[int, int, Readings, int] | None = None
            at = readings[0].place
            context = at.awaited if isinstance(at, Gap) else begun
            turn = 11 * stuck % len(alphabet) if stuck else taken.get(context, 0)
            wanted = frozenset(order)
            for byte in (*alphabet[turn:], *alphabet[:turn]):
                after_state = 0 if spelling is None else spelling.after(state, byte)
                after = self.interpreter.read(readings, byte) if byte in wanted and after_state >= 0 else ()
                if not after:
                    continue
                cost = min(map(self.costs.of, after)) + (NEVER if stuck > 4 and byte not in _ENDS else 0)
                if best is None or cost < best[0]:
                    best = cost, byte, after, after_state
                if cost < now:
                    break  # it cannot be nearer
            if best is None:
                return None
            cost, byte, readings, state = best
            data.append(byte)
            taken[context] = alphabet.index(byte)
            if cost >= now and len(begun) > 1:  # nothing short is left behind this beginning
                taken[begun[:-1]] = (alphabet.index(begun[-1]) + 1) % len(alphabet)
            begun = b"" if isinstance(readings[0].place, Gap) else begun + bytes([byte])
            stuck = 0 if cost < now or byte in _ENDS else stuck + 1
        raise LimitError(f"no ending was found: the search was given up after {len(data):,} bytes")

    def _named_value(
        self, readings: Readings, spelling: Spelling | None, state: int, most: int
    ) -> tuple[bytes, Readings, int]:
        """The first named value that can stand here, the readings behind it, the spelling's state.

        most : the bytes that the rest of the text may take, with the value, as the bound says.

        Where none can, no readings.
        """
        for text in self._named(readings):
            after, after_state, left = readings, state, most
            for byte in text:
                after_state = 0 if spelling is None else spelling.after(after_state, byte)
                after, left = self.interpreter.read(after, byte) if after_state >= 0 else (), left - 1
                if not after or min(map(self.costs.of, after)) > left:
                    break
            else:
                after = self.interpreter.ended(after)
                if after and min(map(self.costs.of, after)) <= left:
                    return text, after, after_state
        return b"", (), -1

    def _named(self, readings: Readings) -> tuple[bytes, ...]:
        """The values that the schema names for one that may begin here."""
        if self._preferred is None:
            return ()
        at = next((one for one in readings if isinstance(one.place, Gap) and one.place.awaited in _BEGINS), None)
        if at is None:
            return ()
        if at.frame is None:
            return self._preferred.texts(self._preferred.root)
        step = at.frame.key.decode() if isinstance(at.frame, ObjectFrame) else at.frame.count
        return self._preferred.texts(self._preferred.inside(self._spot(self._preferred, at.frame), step))

    def _spot(self, preferred: Preferred, frame: Frame) -> Spot:
        """The place of an open object or array."""
        above: list[Frame] = []
        at: Frame | None = frame
        while at is not None and at not in self._spots:
            above.append(at)
            at = at.parent
        spot = preferred.root if at is None else self._spots[at]
        for one in reversed(above):
            if isinstance(one.parent, ObjectFrame):
                spot = preferred.inside(spot, one.parent.key.decode())
            elif one.parent is not None:
                spot = preferred.inside(spot, one.parent.count - 1)
            self._spots[one] = spot
        return spot

    def _noted(
        self, straight: list[_Visit], nodes: list[tuple[Readings, int, int, int]], begun: bytes, rest: _Rest
    ) -> bytes:
        """An ending, once it is noted what completes the texts that the search has come by.

        PERF: a text that goes on another way than its ending comes soon by one of the same states.

        INVARIANT: a search that begins at one of these texts finds the same, by the same steps: it
        has not turned back since, so at each it took the first byte behind which the bound does not
        rise.

        straight : the nodes that it has come by since it last turned back, `begun` to the last one.
        rest : what completes that.
        """
        if self._n_rest_bytes > MOST_REST_BYTES:
            self._rests.clear()
            self._n_rest_bytes = 0
        data, end = begun + rest.data, straight[-1]
        most = end.above + rest.most
        for at, visit in reversed([*enumerate(straight)]):
            most = max(most, visit.most)
            if at < MOST_NOTED:
                found, length, _, _ = nodes[visit.node]
                self._rests[found] = _Rest(data[length:], most - visit.above, end.time - visit.time + rest.seconds)
                self._n_rest_bytes += len(data) - length + REST_BYTES
        return data

    def _bytes_to(self, node: int, nodes: list[tuple[Readings, int, int, int]], last: list[bytes]) -> bytes:
        parts = []
        while nodes[node][3] >= 0:
            parts.append(last[node])
            node = nodes[node][3]
        return b"".join(reversed(parts))


_BEGINS = frozenset({"value", "first item", "item"})
_ANY = frozenset(range(256))
_ENDS = frozenset(b',}]"')
_ESCAPED = frozenset(b"\\")


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
    addable = shape.addable(frame.used, len(frame.others))
    keys = shape.shape.keys
    return [keys[i] for i in addable if i != OTHER and keys[i].startswith(place.content)], OTHER in addable


def short_ending(texts: Texts, prefix: bytes) -> Ending:
    """A short ending of a text so far, of any bytes; see `JsonEndings.short`.

    Raises: as `JsonEndings.readings` and `JsonEndings.short`.
    """
    endings = JsonEndings(texts)
    return endings.short(endings.readings(prefix))
