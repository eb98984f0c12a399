"""Shapes as the interpreter reads them: which beginnings of a value can still become one.

Each class stands for one shape of a graph, its `shape`. Two are equal only if they are the same
object. That items of an array differ is no matter here: see `json_completions`.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from heapq import heappop, heappush
from math import inf
from typing import Any

from maskwright.analysis.kept import cached_property
from maskwright.analysis.marks import MARK
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.regex.minimise import distances
from maskwright.analysis.schema.lengths import ENDLESS, goes_on_for_ever, strings_left
from maskwright.analysis.schema.shapes import (
    NO_NODE,
    Arrays,
    Numbers,
    Objects,
    Shape,
    Spellings,
    StringLiterals,
    Strings,
)
from maskwright.decoding.reference.json_characters import Characters, Ranges, is_in
from maskwright.decoding.reference.json_values import Number, Value, value_of

OTHER = 1 << 30
"""Stands for a key that is not named."""


class WordShape:
    """Values of one spelling each."""

    def __init__(self, shape: Spellings) -> None:
        self.shape = shape
        self.texts = shape.texts
        self.values = {text: _value_of_text(text) for text in shape.texts}

    def begun(self, text: bytes) -> list[bytes]:
        """The spellings that begin with some text."""
        return [one for one in self.texts if one.startswith(text)]


def _value_of_text(text: bytes) -> Value:
    """What a JSON text is compared by. A part's mark is a value of its own."""
    if text[0] == MARK:
        return text
    value = json.loads(text, parse_int=str, parse_float=str)
    if isinstance(value, str):
        return value.encode() if text.startswith(b'"') else value_of(text)
    return text.decode()


class NumberShape:
    """Numbers. The state of the automaton and the text say where a number stands.

    rows : the next state for each state and byte, -1 for none.
    accepting : whether each state accepts.
    """

    def __init__(self, shape: Numbers) -> None:
        self.shape = shape
        self.rows: list[list[int]] = shape.automaton.next_state.tolist()
        self.accepting: list[bool] = shape.automaton.is_accepting.tolist()

    @cached_property
    def _has_digits(self) -> list[bool]:
        """For each state, whether digits may follow that are not all 0."""
        found, before = [any(row[byte] >= 0 for byte in b"123456789") for row in self.rows], list[bool]()
        while found != before:
            before = found
            found = [has or (row[0x30] >= 0 and before[row[0x30]]) for has, row in zip(before, self.rows, strict=True)]
        return found

    def values(self, state: int, text: bytes) -> Iterator[Number]:
        """The numbers that begin with `text`, which led to `state`, each once; the shortest first.

        It ends where there are finitely many, though they may have endlessly many spellings.
        """
        found: set[Number] = set()
        seen = {(state, text)}
        # the least length of what begins so, and of these the last one first: straight on to an end
        queue = [(len(text) + self.left.get(state, 0), 0, state, text)]
        while queue:
            _, _, at, begun = heappop(queue)
            is_zero = _is_zero_with_exponent(begun)
            if is_zero or self.accepting[at]:
                value = Number(False, "", 0) if is_zero else value_of(begun)
                if value not in found:
                    found.add(value)
                    yield value
            for byte in b"" if is_zero else b"Ee+-.2468093517":  # PERF: few of a text go on with the last ones
                after = self.rows[at][byte]
                longer = self._shortened(begun + bytes([byte]), after)
                if after in self.left and (after, longer) not in seen:
                    seen.add((after, longer))
                    heappush(queue, (len(longer) + self.left[after], -len(seen), after, longer))

    @cached_property
    def left(self) -> dict[int, int]:
        """For each state that leads to an end, the fewest bytes to it."""
        return distances(self.rows, self.accepting)

    def _shortened(self, text: bytes, state: int) -> bytes:
        """A beginning of the same values: without zeros that do not matter, whatever follows.

        They are those that begin an exponent, but for the last, and those behind the point where no
        other digit can follow. So a text has no more than the states can tell apart.
        """
        mantissa, mark, exponent = text.lower().partition(b"e")
        if not mark:
            return text if b"." not in text or self._has_digits[state] else text.rstrip(b"0")
        sign = exponent[:1] if exponent[:1] in (b"+", b"-") else b""
        digits = exponent[len(sign) :]
        return mantissa + mark + sign + (digits.lstrip(b"0") or digits[:1])


def _is_zero_with_exponent(text: bytes) -> bool:
    mantissa, mark, _ = text.lower().partition(b"e")
    return bool(mark) and not mantissa.strip(b"+-.0")


class LiteralShape:
    """Some strings. There is no state: what the string says so far is enough."""

    needs_content = True

    def __init__(self, shape: StringLiterals) -> None:
        self.shape = shape
        self.texts = shape.texts

    def after(self, state: int, content: bytes, character: bytes) -> int:
        """The state behind a character."""
        return state

    def strings(self, state: int, length: int, content: bytes, ranges: Ranges | None) -> Iterator[bytes]:
        """The strings that go on from here.

        state, length : behind `content`; the length in characters.
        content : UTF-8 of what the string says so far.
        ranges : of the next character; None if the string may also end here.
        """
        return (text for text in self.begun(content) if goes_on(text, content, ranges))

    def lives(self, state: int, length: int, content: bytes, ranges: Ranges | None) -> bool:
        """Whether a string goes on. Arguments as in `strings`."""
        return next(self.strings(state, length, content, ranges), None) is not None

    def begun(self, content: bytes) -> Sequence[bytes]:
        """The strings that begin with some content."""
        begin = bisect_left(self.texts, content)
        end = bisect_left(self.texts, content + b"\xff", begin)  # no UTF-8 has that byte
        return self.texts[begin:end]

    def ends(self, state: int, length: int, content: bytes) -> bool:
        """Whether `content` is a string of the shape."""
        return content in self.begun(content)[:1]


class AutomatonShape:
    """Strings of an automaton and a range of lengths. The methods are those of `LiteralShape`."""

    needs_content = False

    def __init__(self, shape: Strings) -> None:
        self.shape = shape
        self.characters = Characters(shape.automaton)
        self.least, self.most = shape.least, shape.most

    def after(self, state: int, content: bytes, character: bytes) -> int:
        """The state behind a character, or -1."""
        return self.characters.after(state, character)

    def _left(self, length: int) -> tuple[int, int | None]:
        """The least and the greatest number of characters behind so many."""
        return self.least - length, None if self.most is None else self.most - length

    def lives(self, state: int, length: int, content: bytes, ranges: Ranges | None) -> bool:
        """Whether a string goes on."""
        return self.characters.goes_on(state, *self._left(length), ranges)

    def strings(self, state: int, length: int, content: bytes, ranges: Ranges | None) -> Iterator[bytes]:
        """The strings that go on from here, the shortest first."""
        return self.characters.strings(state, *self._left(length), content, ranges)

    @cached_property
    def is_free(self) -> bool:
        """Whether infinitely many strings go on from wherever one has begun."""
        return self.most is None and (self.shape.automaton is None or goes_on_for_ever(self.shape.automaton))

    def ends(self, state: int, length: int, content: bytes) -> bool:
        """Whether a string may end here."""
        is_short = self.most is None or length <= self.most
        return self.characters.accepting[state] and self.least <= length and is_short

    def has(self, text: bytes) -> bool:
        """Whether a string is one of the shape. text : UTF-8 of what it says."""
        state = self.characters.after(0, text)
        return state >= 0 and self.ends(state, len(text.decode()), text)


def goes_on(text: bytes, content: bytes, ranges: Ranges | None) -> bool:
    """Whether a text begins with some content and a character of some ranges.

    text, content : UTF-8.
    ranges : None if the text may also end with the content.
    """
    if not text.startswith(content):
        return False
    if ranges is None:
        return True
    behind = text[len(content) : len(content) + 4].decode(errors="ignore")
    return bool(behind) and is_in(ord(behind[0]), ranges)


class ObjectShape:
    """Objects. Their members so far are the named keys, by offset, and the other keys.

    What is wanted has offsets behind those of the named keys, and its keys are among the others.
    """

    needs_content = True

    def __init__(self, shape: Objects) -> None:
        self.shape = shape
        self.index = {key: i for i, key in enumerate(shape.keys)}
        self.automaton = None if shape.key_automaton is None else Characters.of_keys(shape.key_automaton)
        self.ends = None if shape.key_automaton is None else shape.key_automaton.ends.tolist()
        n = self.n_named = len(shape.keys)
        wanted = range(n, n + len(shape.wanted))
        self.missing = frozenset([*(i for i, is_required in enumerate(shape.required) if is_required), *wanted])
        self.ranks = None if shape.ranks is None else (*shape.ranks, *[OTHER] * len(wanted))
        self.possible = [*(i for i, node in enumerate(shape.values) if node != NO_NODE), *wanted]
        self.addable = lru_cache(maxsize=4096)(self._addable)

    def count(self, used: frozenset[int], n_others: int) -> int:
        """The number of members."""
        return sum([i < self.n_named for i in used]) + n_others

    def node(self, i: int, key: bytes) -> int:
        """The node of a member by offset, or OTHER. key : the member's, if it is not named."""
        if i < self.n_named:
            return self.shape.values[i]
        return (self.shape.others if i == OTHER else self.shape.wanted[i - self.n_named])[self.class_of(key)]

    def still_open(self, used: frozenset[int], n_others: int) -> list[int]:
        """The named keys that the order and their nodes allow next, and what is wanted."""
        ranks = self.ranks
        if ranks is None:
            return [i for i in self.possible if i not in used]
        least_rank = OTHER if n_others else max((ranks[i] for i in used), default=0)
        return [i for i in self.possible if i not in used and ranks[i] >= least_rank]

    def is_completable(self, used: frozenset[int], n_others: int) -> bool:
        """Whether members can follow such that the object is legal."""
        still_open = self.still_open(used, n_others)
        missing = self.missing - used
        if not missing <= set(still_open):
            return False
        count = self.count(used, n_others)
        needed = max(self.shape.least, count + len(missing))
        n_others += max(0, needed - count - len(still_open))
        is_small = self.shape.most is None or needed <= self.shape.most
        return is_small and (not n_others or n_others <= self._n_names)

    @cached_property
    def _n_names(self) -> float:
        """The number of keys that are not named."""
        keys = self.shape.key_automaton
        found = 0 if not self.shape.others else ENDLESS
        if keys is not None:
            found = int(strings_left(Dfa(keys.next_state, keys.ends >= 0))[0])
        return found if found < ENDLESS else inf

    def _may_follow(self, i: int, used: frozenset[int], n_others: int) -> bool:
        return self.is_completable(used | {i}, n_others + (i >= self.n_named))

    def _addable(self, used: frozenset[int], n_others: int) -> frozenset[int]:
        """The named keys that may come next, what is wanted, and OTHER if any other may."""
        still_open, missing = self.still_open(used, n_others), self.missing - used
        if self.ranks is None:  # then it matters only which keys are required
            kinds = [[i for i in still_open if (i in missing) == is_missing] for is_missing in (False, True)]
            found = {i for kind in kinds if kind and self._may_follow(kind[0], used, n_others) for i in kind}
        else:
            last = min((self.ranks[i] for i in missing), default=max(self.ranks, default=0))
            near = [i for i in still_open if self.ranks[i] <= last]
            found = {i for i in near if self._may_follow(i, used, n_others)}
        if self.shape.others and self.is_completable(used, n_others + 1):
            found.add(OTHER)
        return frozenset(found)

    def may_end(self, used: frozenset[int], n_others: int) -> bool:
        """Whether the object may end here. INVARIANT: it is completable, so it is not too long."""
        return self.missing <= used and self.count(used, n_others) >= self.shape.least

    def after(self, state: int, content: bytes, character: bytes) -> int:
        """The state of the other keys' automaton behind a character of a key; -1 for none."""
        return state if self.automaton is None or state < 0 else self.automaton.after(state, character)

    def key_lives(
        self, state: int, content: bytes, ranges: Ranges | None, used: frozenset[int], others: frozenset[bytes]
    ) -> bool:
        """Whether a key that may come goes on so. Arguments as in `LiteralShape.strings`."""
        addable = self.addable(used, len(others))
        named = [i for i in sorted(addable) if i < self.n_named]
        if any(goes_on(self.shape.keys[i], content, ranges) for i in named):
            return True
        if len(named) == len(addable) or state < 0:
            return False
        if self.automaton is None:
            return True
        if not any(goes_on(key, content, ranges) for key in others):
            return self.automaton.goes_on(state, 0, None, ranges)
        return any(key not in others for key in self.other_keys(content, state, ranges))

    def key_indexes(
        self, state: int, content: bytes, used: frozenset[int], others: frozenset[bytes]
    ) -> list[tuple[int, int]]:
        """The offsets that a whole key may have (or OTHER), each with its value's node."""
        index, addable = self.index.get(content, OTHER), self.addable(used, len(others))
        if index != OTHER:
            return [(index, self.shape.values[index])] if index in addable else []
        if content in others or (self.ends is not None and (state < 0 or self.ends[state] < 0)):
            return []
        found = [(i, self.node(i, content)) for i in sorted(addable) if i >= self.n_named]
        return [(i, node) for i, node in found if node != NO_NODE]

    def other_keys(self, content: bytes, state: int, ranges: Ranges | None) -> Iterator[bytes]:
        """The keys that are not named and begin with `content`; the shortest first.

        state : of the other keys' automaton behind `content`.
        ranges : as in `LiteralShape.strings`.
        """
        found = (self.automaton or Characters(None)).strings(state, 0, None, content, ranges)
        return (key for key in found if key not in self.index)

    def class_of(self, key: bytes) -> int:
        """The class of a key that is not named."""
        return 0 if self.automaton is None or self.ends is None else self.ends[self.automaton.after(0, key)]


class ArrayShape:
    """Arrays. Their items so far are a number, and how many are `contained`, or their state."""

    def __init__(self, shape: Arrays) -> None:
        self.shape = shape
        self.is_completable = lru_cache(maxsize=4096)(self._is_completable)

    def node(self, index: int, is_contained: bool) -> int:
        """The node of the item at an offset, of those that are contained or of the others."""
        part = self.shape.contained if is_contained else self.shape
        if part is None:
            return NO_NODE
        return part.prefix[index] if index < len(part.prefix) else part.items

    def _is_completable(self, count: int, contained: int) -> bool:
        """Whether items can follow such that the numbers of items are legal."""
        shape = self.shape
        if shape.states:
            return True  # each state can reach an end
        least, most = (0, None) if shape.contained is None else (shape.contained.least, shape.contained.most)
        n_prefix = max(len(shape.prefix), 0 if shape.contained is None else len(shape.contained.prefix))
        fewest, greatest = contained, contained  # the items of the array that may be contained
        for n in range(count, n_prefix):
            if n == shape.most or (n >= shape.least and greatest >= least and (most is None or fewest <= most)):
                break
            is_free, is_in = self.node(n, False) != NO_NODE, self.node(n, True) != NO_NODE
            if not (is_free or is_in):
                break
            greatest += is_in
            fewest += not is_free
            count = n + 1
        more = max(0, shape.least - count)  # the items behind the prefix, which are all alike
        if count >= n_prefix:
            is_free, is_in = self.node(count, False) != NO_NODE, self.node(count, True) != NO_NODE
            if is_in:
                more = max(more, least - greatest)
            if more and not (is_free or is_in):
                return False
            greatest += more * is_in
            fewest += more * (not is_free)
            count += more
        is_long = count >= shape.least and (shape.most is None or count <= shape.most)
        return is_long and greatest >= least and (most is None or fewest <= most)

    def ways(self, count: int, contained: int) -> list[tuple[int, int]]:
        """What the next item may be: its node, and what it adds to the items that are contained."""
        if self.shape.states:
            return [(node, after - contained) for node, after in self.shape.states[contained].moves]
        found = []
        for role in (0, 1):
            node = self.node(count, bool(role))
            if node != NO_NODE and self.is_completable(count + 1, contained + role):
                found.append((node, role))
        return found

    @cached_property
    def far(self) -> dict[int, int]:
        """How many items each state is from an end."""
        states = self.shape.states
        return distances([[after for _, after in one.moves] for one in states], [one.is_end for one in states])

    def near_ways(self, count: int, contained: int) -> list[tuple[int, int]]:
        """As `ways`; first what leads to an end soonest."""
        found = self.ways(count, contained)
        if self.shape.states:
            return sorted(found, key=lambda way: self.far[contained + way[1]])
        is_enough = self.shape.contained is None or contained >= self.shape.contained.least
        return found if is_enough else found[::-1]

    def may_end(self, count: int, contained: int) -> bool:
        """Whether the array may end here."""
        shape = self.shape
        if shape.states:
            return shape.states[contained].is_end
        if shape.contained is not None and contained < shape.contained.least:
            return False
        return count >= shape.least  # INVARIANT: it is completable, so nothing is too much


StringShape = LiteralShape | AutomatonShape
ReadShape = WordShape | NumberShape | LiteralShape | AutomatonShape | ObjectShape | ArrayShape

_CLASSES: dict[type, Any] = {
    Spellings: WordShape,
    Numbers: NumberShape,
    StringLiterals: LiteralShape,
    Strings: AutomatonShape,
    Objects: ObjectShape,
    Arrays: ArrayShape,
}


class ReadNodes(Sequence[tuple[ReadShape, ...]]):
    """The shapes of each node of a graph. They are made when they are asked for: texts meet few."""

    def __init__(self, nodes: Sequence[tuple[Shape, ...]]) -> None:
        self._nodes = nodes
        self._made: dict[int, tuple[ReadShape, ...]] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def __getitem__(self, node: int) -> tuple[ReadShape, ...]:  # type: ignore[override]
        found = self._made.get(node)
        if found is None:
            shapes = tuple([_CLASSES[type(shape)](shape) for shape in self._nodes[node]])
            found = self._made.setdefault(node, shapes)  # another thread may have been faster
        return found
