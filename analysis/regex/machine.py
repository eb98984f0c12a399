"""From a tree to a deterministic automaton over classes of characters, look-arounds included.

The tree becomes a Thompson automaton. A *thread* is at one of its nodes and carries *obligations*,
one for each look-ahead that it has passed. An obligation is a set of threads that must match, or
must not match, from there. So a thread is an AND, and a set of threads is an OR.

A look-behind is a machine of its own. It runs beside the main one from the start of the lexeme. A
thread asks it at the moment it passes the look-behind.

One step of all of this by a class of characters is deterministic. The usual subset construction
therefore applies, and it does not matter where in the pattern a look-around stands.

A match may end while obligations are open. It counts if *some* text after the lexeme would fulfil
all of them.

Source: the AND/OR states are those of alternating automata: A. Chandra, D. Kozen, L. Stockmeyer,
Alternation, J. ACM 28 (1981), section 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from maskwright.analysis.deadline import look
from maskwright.analysis.errors import LimitError
from maskwright.analysis.regex import positions
from maskwright.analysis.regex.bounds import too_many_positions
from maskwright.analysis.regex.charset import Ranges, partition
from maskwright.analysis.regex.minimise import distances
from maskwright.analysis.regex.positions import ClassRows
from maskwright.analysis.regex.tree import (
    EMPTY,
    Chars,
    Choice,
    Look,
    Node,
    Repeat,
    Sequence,
    Source,
    factored,
    looks_ahead,
    rebuilt,
    sets,
    size,
)


def determinise(tree: Node, max_states: int, looks_beyond: bool = False) -> tuple[ClassRows, frozenset[Source]]:
    """The automaton of the strings that `tree` matches as a whole, before some further text.

    tree : without lazy, possessive and atomic parts (`rewrite.resolve`). max_states : limit on the
    states. looks_beyond : whether to find `ClassRows.refused`.

    Returns also the pattern's look-aheads that an accepted lexeme can leave open at its end.
    Raises: LimitError if more than `max_states` states are needed, 4 * `max_states` positions, or
    too many steps (`STEPS_PER_STATE`); TypeError if an atomic group is left in the tree.
    Cost: that of the subset construction; O(states * classes * threads a state).
    """
    if positions.is_plain(tree) and not looks_ahead(tree):
        return positions.run(tree, max_states, is_search=False), frozenset()
    tree = factored(tree)
    if size(tree) > 4 * max_states:
        raise too_many_positions(max_states)
    bounds, class_of, classes_of, n_classes = partition(sets(tree))
    masks = {ranges: sum(1 << c for c in inside) for ranges, inside in classes_of.items()}
    machine = Machine(tree, masks, max_states)
    rows, is_accepting = machine.run(n_classes)
    asked = range(len(rows)) if looks_beyond and machine.open else ()
    refused = tuple([machine.refused_before(n, n_classes) for n in asked])
    return ClassRows(bounds, class_of, rows, is_accepting, refused), frozenset(machine.beyond)


def is_prefix_free(tree: Node, max_states: int) -> bool:
    """Whether no match of `tree` is a proper prefix of another one, look-arounds left out.

    tree, max_states, Raises : as for `determinise`.

    Example: ``[0-9]`` and ``ab|cd`` are prefix-free; ``[0-9]+`` and ``a|ab`` are not.
    """
    if isinstance(tree, Chars):
        return True
    found, _ = determinise(_without_looks(tree), max_states)
    live = distances(found.rows, found.is_accepting)
    return not any(
        accepts and not live.keys().isdisjoint(row) for row, accepts in zip(found.rows, found.is_accepting, strict=True)
    )


def _without_looks(node: Node) -> Node:
    """The tree with the empty string instead of each look-around."""
    return EMPTY if isinstance(node, Look) else rebuilt(node, _without_looks)


STEPS_PER_STATE = 50
"""BOUND: thread steps allowed for each state of the limit.

An explosion of threads ends within about a second.
"""

_MATCH = 0  # the node where a machine has matched
_FALSE, _TRUE = 0, 1  # sets of threads: none; matched whatever follows
_Obligation = tuple[int, bool, int]  # number of its source, negated, set of threads
_Thread = tuple[int, tuple[_Obligation, ...]]
_Truth = tuple[bool, ...]  # for each look-behind, whether it holds at the present position
_ACCEPTED: _Thread = (_MATCH, ())


@dataclass(frozen=True, slots=True)
class _Char:
    mask: int
    following: int


@dataclass(slots=True)
class _Split:
    following: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Behind:
    """Passes if look-behind number `index` holds here, or, if not `wanted`, does not."""

    index: int
    wanted: bool
    following: int


@dataclass(frozen=True, slots=True)
class _Ahead:
    """Passes with an obligation on the machine that starts at node `start`.

    It must match from here, or must not if `negated`. `source` numbers the look-ahead.
    """

    source: int
    negated: bool
    start: int
    following: int


class Machine:
    """The alternating automaton of a tree, stepped set by set, with every step remembered.

    Sets of threads are numbered; number 0 has no thread, and number 1 has matched whatever follows.

    tree : as for `determinise`.
    masks : for each set of characters in the tree, the bit mask of its classes.
    max_states : limit on the states.
    beyond : the look-aheads found open at the end of an accepted lexeme; filled by `run`.
    open : state that accepts with such -> the set, and the look-behinds', to match behind it.
    """

    def __init__(self, tree: Node, masks: dict[Ranges, int], max_states: int) -> None:
        self._masks = masks
        self._max_states = max_states
        self._steps_left = STEPS_PER_STATE * max_states
        self._nodes: list[_Char | _Split | _Behind | _Ahead | None] = [None]
        self._sources: list[Source | None] = []
        self._behinds: list[int] = []
        self._built_looks: dict[int, int] = {}  # id of a Look -> number of its look-behind or start of its look-ahead
        self._sets: list[frozenset[_Thread]] = [frozenset(), frozenset([_ACCEPTED])]
        self._set_number = {threads: number for number, threads in enumerate(self._sets)}
        self._start_set, self._step = cache(self._find_start_set), cache(self._find_step)
        self._after = cache(self._find_after)
        self._satisfiable: dict[tuple[int, tuple[int, ...]], bool] = {}
        self.beyond: set[Source] = set()
        self.open: dict[int, tuple[int, tuple[int, ...]]] = {}
        self._start = self._build(tree, _MATCH)

    def run(self, n_classes: int) -> tuple[list[list[int]], list[bool]]:
        """The deterministic automaton, by the subset construction, over `n_classes` classes.

        Returns a row of successors by class for each state, -1 for none, and whether each state
        accepts. Raises: LimitError past `max_states` states, or `STEPS_PER_STATE` times the steps.
        """
        behinds, truth = self._look_back((_FALSE,) * len(self._behinds), None)
        initial = (self._start_set(self._start, truth, ahead=False), behinds)
        number = {initial: 0}
        states = [initial]
        rows: list[list[int]] = []
        is_accepting: list[bool] = []
        for state, behinds in states:  # grows while it is read
            look()
            row: list[int] = []
            self._spend(n_classes)
            is_accepting.append(self._accepts(state, behinds, n_classes, len(rows)))
            for c in range(n_classes):
                behinds_after, truth = self._look_back(behinds, c)
                after = self._step(state, c, truth, ahead=False)
                if after == _FALSE:
                    row.append(-1)
                    continue
                key = (after, behinds_after)
                target = number.setdefault(key, len(states))
                if target == len(states):
                    states.append(key)
                row.append(target)
            if len(states) > self._max_states:
                raise LimitError(f"its automaton needs more than {self._max_states:,} states")
            rows.append(row)
        return rows, is_accepting

    # Construction: Thompson's, from the end backwards.

    def _add(self, node: _Char | _Split | _Behind | _Ahead) -> int:
        self._nodes.append(node)
        return len(self._nodes) - 1

    def _build(self, tree: Node, following: int) -> int:
        """The node at which `tree` begins, if the node after it is `following`."""
        match tree:
            case Chars(ranges):
                return self._add(_Char(self._masks[ranges], following))
            case Sequence(parts):
                for part in reversed(parts):
                    following = self._build(part, following)
                return following
            case Choice(options):
                return self._add(_Split(tuple([self._build(option, following) for option in options])))
            case Repeat(body, least, most):
                return self._build_repeat(body, least, most, following)
            case Look():
                return self._build_look(tree, following)
            case _:
                raise TypeError(f"{type(tree).__name__} must be resolved (rewrite.resolve) before it is determinised")

    def _build_repeat(self, body: Node, least: int, most: int | None, following: int) -> int:
        leave = following
        if most is None:
            loop = _Split(())
            following = self._add(loop)
            loop.following = (self._build(body, following), leave)
        else:
            for _ in range(most - least):
                following = self._add(_Split((self._build(body, following), leave)))
        for _ in range(least):
            following = self._build(body, following)
        return following

    def _build_look(self, look: Look, following: int) -> int:
        built = self._built_looks.get(id(look))
        if built is None:
            built = self._build(look.body, _MATCH)
            if not look.ahead:
                self._behinds.append(built)  # after the look-behinds in its body, which it asks
                built = len(self._behinds) - 1
            self._built_looks[id(look)] = built
        if not look.ahead:
            return self._add(_Behind(built, not look.negated, following))
        if look.source not in self._sources:
            self._sources.append(look.source)
        return self._add(_Ahead(self._sources.index(look.source), look.negated, built, following))

    # Stepping.

    def _closure(self, node: int, obligations: tuple[_Obligation, ...], truth: _Truth) -> set[_Thread]:
        """The threads that a thread arriving at `node` becomes before the next character."""
        found: set[_Thread] = set()
        seen: set[_Thread] = set()
        stack = [(node, obligations)]
        while stack:
            look()
            thread = stack.pop()
            if thread in seen:
                continue
            seen.add(thread)
            at, carried = thread
            match self._nodes[at]:
                case _Split(targets):
                    stack.extend((target, carried) for target in targets)
                case _Behind(index, wanted, following):
                    if truth[index] == wanted:
                        stack.append((following, carried))
                case _Ahead(source, negated, start, following):
                    joined = self._oblige(carried, (source, negated, self._start_set(start, truth, ahead=True)))
                    if joined is not None:
                        stack.append((following, joined))
                case _:
                    found.add(thread)
        self._spend(len(seen))
        return found

    def _oblige(self, obligations: tuple[_Obligation, ...], obligation: _Obligation) -> tuple[_Obligation, ...] | None:
        """The conjunction with one more obligation; None if it is refused already.

        Negated obligations of one look-ahead merge: neither A nor B matches iff their union does
        not.
        """
        source, negated, threads = obligation
        if threads in (_FALSE, _TRUE):
            return obligations if negated == (threads == _FALSE) else None
        joined = set(obligations)
        if negated:
            for other in obligations:
                if other[:2] == (source, True):
                    joined.discard(other)
                    threads = self._intern(self._sets[threads] | self._sets[other[2]], ahead=True)
        joined.add((source, negated, threads))
        return tuple(sorted(joined))

    def _intern(self, threads: frozenset[_Thread], ahead: bool) -> int:
        """The number of a set of threads."""
        if ahead and _ACCEPTED in threads:
            return _TRUE
        threads = self._weakest(threads)
        number = self._set_number.setdefault(threads, len(self._sets))
        if number == len(self._sets):
            self._sets.append(threads)
        return number

    def _weakest(self, threads: frozenset[_Thread]) -> frozenset[_Thread]:
        """The set without threads that match only where another thread at their node matches.

        A set is an OR, so this changes nothing but its size.
        """
        at: dict[int, list[tuple[_Obligation, ...]]] = {}
        for node, obligations in threads:
            at.setdefault(node, []).append(obligations)
        if all(len(known) == 1 for known in at.values()):
            return threads
        found: set[_Thread] = set()
        for node, known in at.items():
            kept: list[tuple[_Obligation, ...]] = []
            for obligations in known:
                self._spend(len(kept))
                if not any(self._is_weaker(other, obligations) for other in kept):
                    kept = [other for other in kept if not self._is_weaker(obligations, other)] + [obligations]
            found.update((node, obligations) for obligations in kept)
        return frozenset(found)

    def _is_weaker(self, left: tuple[_Obligation, ...], right: tuple[_Obligation, ...]) -> bool:
        """Whether the right obligations imply the left ones, as far as the sets of threads show.

        Not (A or B) implies not A.
        """
        return all(
            any(
                (source, negated) == (other[0], other[1])
                and (threads == other[2] or (negated and self._sets[threads] <= self._sets[other[2]]))
                for other in right
            )
            for source, negated, threads in left
        )

    def _find_start_set(self, node: int, truth: _Truth, ahead: bool) -> int:
        """The number of the set of threads in which a machine starts at `node`."""
        return self._intern(frozenset(self._closure(node, (), truth)), ahead)

    def _find_step(self, threads: int, c: int, truth: _Truth, ahead: bool) -> int:
        """The number of the set after a character of class `c`.

        In a look-ahead, a match with open obligations goes on with them.
        """
        if ahead and threads == _TRUE:
            return _TRUE
        members = self._sets[threads]
        self._spend(len(members))
        after: set[_Thread] = set()
        for thread in members:
            node = self._nodes[thread[0]]
            if node.mask >> c & 1 if isinstance(node, _Char) else ahead:
                after |= self._after(thread, c, truth)
        return self._intern(frozenset(after), ahead)

    def _find_after(self, thread: _Thread, c: int, truth: _Truth) -> frozenset[_Thread]:
        node, kept = self._nodes[thread[0]], self._step_obligations(thread[1], c, truth)
        if kept is None:
            return frozenset()
        if isinstance(node, _Char):
            return frozenset(self._closure(node.following, kept, truth))
        return frozenset([(_MATCH, kept)])

    def _step_obligations(
        self, obligations: tuple[_Obligation, ...], c: int, truth: _Truth
    ) -> tuple[_Obligation, ...] | None:
        self._spend(len(obligations))
        kept: tuple[_Obligation, ...] = ()
        for source, negated, threads in obligations:
            joined = self._oblige(kept, (source, negated, self._step(threads, c, truth, ahead=True)))
            if joined is None:
                return None
            kept = joined
        return kept

    def _look_back(self, behinds: tuple[int, ...], c: int | None) -> tuple[tuple[int, ...], _Truth]:
        """The look-behinds after class `c`, None at the lexeme's start, and which of them hold."""
        after: list[int] = []
        truth: _Truth = ()
        for start, threads in zip(self._behinds, behinds, strict=True):
            stepped = _FALSE if c is None else self._step(threads, c, truth, ahead=False)
            both = self._sets[stepped] | self._sets[self._start_set(start, truth, ahead=False)]
            truth = (*truth, _ACCEPTED in both)
            after.append(self._intern(both - {_ACCEPTED}, ahead=False))
        return tuple(after), truth

    def _spend(self, steps: int) -> None:
        """Count steps; raises LimitError when they are used up."""
        self._steps_left -= steps
        if self._steps_left < 0:
            raise LimitError(f"its automaton takes more than {STEPS_PER_STATE * self._max_states:,} steps to build")

    # Acceptance.

    def _accepts(self, threads: int, behinds: tuple[int, ...], n_classes: int, state: int) -> bool:
        """Whether the lexeme may end here: some text after it fulfils a match's obligations."""
        members = self._sets[threads]
        if _ACCEPTED in members:
            return True
        matched = frozenset(thread for thread in members if thread[0] == _MATCH)
        if not matched:
            return False
        start = self._intern(matched, ahead=True), behinds
        if not self._is_satisfiable(start, n_classes):
            return False
        self.open[state] = start
        numbers = {number for _, obligations in matched for number, _, _ in obligations}
        self.beyond.update(source for number in numbers if (source := self._sources[number]) is not None)
        return True

    def refused_before(self, state: int, n_classes: int) -> frozenset[int]:
        """`ClassRows.refused` of a state, after `run`."""
        start, behinds = self.open.get(state, (_TRUE, ()))
        found = [] if self._holds_at_end(start) else [n_classes]
        for c in range(n_classes if start != _TRUE else 0):
            after, truth = self._look_back(behinds, c)
            if not self._is_satisfiable((self._step(start, c, truth, ahead=True), after), n_classes):
                found.append(c)
        return frozenset(found)

    def _is_satisfiable(self, start: tuple[int, tuple[int, ...]], n_classes: int) -> bool:
        """Whether some text makes a look-ahead's set match, beside those of look-behinds."""
        states = [start]
        seen = {start}
        for state, behinds in states:  # grows while it is read
            look()
            known = self._satisfiable.get((state, behinds))
            if known or state == _TRUE or self._holds_at_end(state):
                self._satisfiable[start] = True
                return True
            if known is None:
                self._spend(n_classes)
                for c in range(n_classes):
                    behinds_after, truth = self._look_back(behinds, c)
                    key = (self._step(state, c, truth, ahead=True), behinds_after)
                    if key[0] != _FALSE and key not in seen:
                        seen.add(key)
                        states.append(key)
        self._satisfiable.update(dict.fromkeys(seen, False))
        return False

    def _holds_at_end(self, threads: int) -> bool:
        """Whether a look-ahead's set of threads has matched if the text ends here."""
        return any(
            at == _MATCH and all(self._holds_at_end(inner) != negated for _, negated, inner in obligations)
            for at, obligations in self._sets[threads]
        )
