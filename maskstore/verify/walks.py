"""The bisimulation: a table's walks over stacks beside configuration sets of our own.

A *visit* is a node of the table's automaton, the last cell read, and the *items* there:
configuration sets, each with the classes of tokens that hang on it. The item `DONE` has classes
that an edge before has allowed. From each visit we read every cell that can lie below, and compare:
what the edge allows, its configuration set accepts, and the other way round. What an edge decides
before the configuration sets do is noted, and looked at once all visits are made: then every stack
below must decide so. This is `closed` of proofs/stack_automaton.v; the notes are its `always` and
`never`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from maskwright.maskstore.verify.claims import Claims, LineBreaks, Masks
from maskwright.maskstore.verify.configurations import ACCEPTED, REFUSED, Configurations

DONE = -1
"""Instead of a configuration set: the classes are allowed already, whatever else they come to."""

Items = tuple[tuple[int, int], ...]
"""Pairs of a configuration set (or DONE) and the classes that hang on it as bits, ascending."""


class Origin(NamedTuple):
    """Where walks begin: a lexer state, open brackets, and line breaks that come first."""

    state: int
    depth: int
    line_breaks: LineBreaks


class Found(NamedTuple):
    """A difference between the table and the parser.

    is_allowed : whether the table allows the classes and the parser refuses them, or the other way.
    is_early : whether the edge decides this before the stack does; `cells` shows where it is wrong.
    origin, cells : where the walk begins, and the cells read, the top first.
    node : the node of the edge that decides.
    classes : the classes of tokens, as bits.
    """

    is_allowed: bool
    is_early: bool
    origin: Origin
    cells: tuple[int, ...]
    node: int
    classes: int


class _Step(NamedTuple):
    """A node, a cell, and the visit before; below 0 it is origin -1 - before."""

    node: int
    cell: int
    before: int


class _Note(NamedTuple):
    """An early decision, or what became of one.

    place, classes : the edge that decides, and what. before : the key of the note before.
    """

    place: _Step
    classes: int
    before: tuple[int, int] | None


class Walks:
    """All walks of a table's automaton.

    found : the differences so far.
    """

    def __init__(self, claims: Claims, masks: Masks, configurations: Configurations) -> None:
        self._claims, self._masks, self._configurations = claims, masks, configurations
        self._below = configurations.parser.below
        self.found: list[Found] = []
        self._origins: list[Origin] = []
        self._visits: list[_Step] = []
        self._agenda: list[tuple[int, int]] = []
        self._seen: set[tuple[int, int, int]] = set()
        self._items: list[Items] = []
        self._items_number: dict[Items, int] = {}
        self._pairs: dict[tuple[int, int], tuple[int, int]] = {}
        self._after: dict[tuple[int, int], int] = {}
        self._early: dict[bool, dict[tuple[int, int], _Note]] = {True: {}, False: {}}
        self._collected = collected(claims, masks)

    def __len__(self) -> int:
        return len(self._visits)

    @property
    def n_waiting(self) -> int:
        """Visits that are still to be made."""
        return len(self._agenda)

    @property
    def n_early(self) -> int:
        """Pairs of a cell and a configuration set that some edge decides before the set does."""
        return len(self._early[True]) + len(self._early[False])

    def begin(self, origin: Origin, top: int, root: int, own: int, items: Items) -> None:
        """Check a look-up with one LR state on top.

        root : the node where the walk begins, 0 for none.
        own : the classes that the look-up allows whatever the stack is.
        items : what the tokens of this look-up come to once the top is read.
        """
        self._origins.append(origin)
        target, mask = self._claims.edge(root, top) if root else (0, 0)
        self._edge(_Step(root, top, -len(self._origins)), target, own | self._masks.bits(mask), items)

    def follow(self, until: int) -> None:
        """Make some visits, until none is left. until : the most of them."""
        for _ in range(until):
            if not self._agenda:
                return
            number, items = self._agenda.pop()
            place = self._visits[number]
            for cell in self._below[place.cell]:
                key = items, cell
                after = self._after.get(key)
                if after is None:
                    after = self._after[key] = self._numbered(self._read(self._items[items], cell))
                target, mask = self._claims.edge(place.node, cell)
                self._edge(_Step(place.node, cell, number), target, self._masks.bits(mask), self._items[after])

    def _read(self, items: Items, cell: int) -> Items:
        """The items once one more cell is read."""
        found: dict[int, int] = {}
        for number, classes in items:
            after = DONE if number == DONE else self._configurations.after(number, cell)
            found[after] = found.get(after, 0) | classes
        found.pop(REFUSED, None)
        return tuple(sorted(found.items()))

    def _edge(self, place: _Step, target: int, mask: int, items: Items) -> None:
        """Check an edge, and put its target on the agenda.

        mask : what it allows. items : what hangs there once its cell is read.
        """
        collected = self._collected[target]
        unexplained, done = mask, 0
        left: list[tuple[int, int]] = []
        for number, classes in items:
            unexplained &= ~classes
            if number == DONE:
                done |= classes
                continue
            if number == ACCEPTED:
                done |= classes
                if classes & ~mask:
                    self._add(False, place, classes & ~mask)
                continue
            if classes & mask:
                self._note(True, place, number, classes & mask)
                done |= classes & mask
                classes &= ~mask
            if classes & ~collected:
                self._note(False, place, number, classes & ~collected)
            if classes & collected:
                left.append((number, classes & collected))
        if unexplained:
            self._add(True, place, unexplained)
            done |= unexplained
        done &= collected
        if collected == done:
            return
        number = self._numbered(((DONE, done), *left) if done else tuple(left))
        key = target, place.cell, number
        if key not in self._seen:
            self._seen.add(key)
            self._agenda.append((len(self._visits), number))
            self._visits.append(_Step(target, place.cell, place.before))

    def _numbered(self, items: Items) -> int:
        """The number of items.

        PERF: many visits have the same ones, and many items the same pairs; both are kept once.
        """
        number = self._items_number.get(items)
        if number is None:
            items = tuple([self._pairs.setdefault(pair, pair) for pair in items])
            number = self._items_number[items] = len(self._items)
            self._items.append(items)
        return number

    def _note(self, is_allowed: bool, place: _Step, number: int, classes: int) -> None:
        """Note that an edge decides some classes, which hang on a configuration set, too early."""
        for each in (number,) if is_allowed else self._configurations.parts(number):
            self._early[is_allowed].setdefault((place.cell, each), _Note(place, classes, None))

    def _add(self, is_allowed: bool, place: _Step, classes: int) -> None:
        """Add a difference at an edge."""
        origin, cells = self._path(place)
        self.found.append(Found(is_allowed, False, origin, cells, place.node, classes))

    def _path(self, place: _Step) -> tuple[Origin, tuple[int, ...]]:
        """Where the walk to an edge begins, and the cells that it reads."""
        cells = [place.cell]
        before = place.before
        while before >= 0:
            visit = self._visits[before]
            cells.append(visit.cell)
            before = visit.before
        return self._origins[-1 - before], tuple(reversed(cells))

    def early(self) -> Iterator[None]:
        """Look at what was decided early, a pair of a cell and a set at a time.

        To be called once all visits are made.
        """
        for is_allowed, notes in self._early.items():
            agenda = list(notes)
            while agenda:
                yield
                key = cell, number = agenda.pop()
                note = notes[key]
                if is_allowed and not self._below[cell]:
                    self._add_early(is_allowed, key)
                for under in self._below[cell]:
                    after = self._configurations.after(number, under)
                    if after in (REFUSED, ACCEPTED):
                        if (after == ACCEPTED) != is_allowed:
                            self._add_early(is_allowed, key, under)
                        continue
                    for each in (after,) if is_allowed else self._configurations.parts(after):
                        if (under, each) not in notes:
                            notes[under, each] = _Note(note.place, note.classes, key)
                            agenda.append((under, each))

    def _add_early(self, is_allowed: bool, key: tuple[int, int], *under: int) -> None:
        """Add a difference that shows below an edge. under : the cell that shows it, if any."""
        note = self._early[is_allowed][key]
        cells = list(under)
        while note.before is not None:
            cells.append(key[0])
            key, note = note.before, self._early[is_allowed][note.before]
        origin, first = self._path(note.place)
        self.found.append(Found(is_allowed, True, origin, (*first, *reversed(cells)), note.place.node, note.classes))


def collected(claims: Claims, masks: Masks) -> list[int]:
    """For each node the classes that some walk from it collects, as bits."""
    found = [0] * claims.n_nodes
    before: list[set[int]] = [set() for _ in range(claims.n_nodes)]
    for node in range(1, claims.n_nodes):
        for target, mask in claims.pairs_of(node):
            found[node] |= masks.bits(mask)
            before[target].add(node)
    agenda = list(range(1, claims.n_nodes))
    while agenda:
        node = agenda.pop()
        for one in before[node]:
            if found[node] & ~found[one]:
                found[one] |= found[node]
                agenda.append(one)
    return found
