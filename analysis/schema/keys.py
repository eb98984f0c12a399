"""Which class each key of an object has, by the patterns that are found in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import LimitError
from maskwright.analysis.kept import Kept
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.regex.minimise import column_classes, minimise_labelled
from maskwright.analysis.regex.spell import valid_utf8
from maskwright.analysis.schema.shapes import KeyAutomaton, Objects

MOST_PATTERNS = 8
"""BOUND: patterns of one object; their automaton distinguishes all sets of them."""

MOST_STATES = 20_000
"""BOUND: states of an automaton of keys, also on the way to it."""

MOST_NAMED = 255
"""BOUND: keys of a finite set of keys that become named keys."""

Labelled = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]


def key_automaton(patterns: Sequence[Dfa], class_of: Sequence[int], but: Iterable[bytes]) -> KeyAutomaton | None:
    """The class of each key, by the set of the patterns that match it.

    patterns : automata over valid UTF-8.
    class_of : for each set of patterns, as the sum of 1 << i over its patterns i, the class of the
        keys that match just these, or -1 for keys that may not be; 2 ** len(patterns) of them.
    but : UTF-8 of keys that are not ended.

    Returns None if no key is left.
    Raises: LimitError if there are more than `MOST_PATTERNS` patterns or `MOST_STATES` states.
    """
    _check(patterns)
    return _key_automaton(tuple(patterns), tuple(class_of), tuple(sorted(set(but))))


def _check(patterns: Sequence[Dfa]) -> None:
    if len(patterns) > MOST_PATTERNS:
        raise LimitError(
            f"an object has {len(patterns)} patterns of keys that say different things, more than {MOST_PATTERNS}; "
            "join some of them into one pattern"
        )


@Kept
def _key_automaton(patterns: tuple[Dfa, ...], class_of: tuple[int, ...], but: tuple[bytes, ...]) -> KeyAutomaton | None:
    table, ends = _classified(patterns, class_of)
    table, ends = _without(table, ends, but)
    if not (ends >= 0).any():
        return None
    table.flags.writeable = ends.flags.writeable = False
    return KeyAutomaton(table, ends)


@Kept
def _sets(patterns: tuple[Dfa, ...]) -> Labelled:
    """All strings, labelled by the set of the patterns that match them; minimal."""
    every = valid_utf8()
    labelled: Labelled = every.next_state, every.is_accepting.astype(np.int32) - 1
    for number, pattern in enumerate(patterns):
        labelled = _with_pattern(labelled, pattern, 1 << number)
    return labelled


@Kept
def _classified(patterns: tuple[Dfa, ...], class_of: tuple[int, ...]) -> Labelled:
    """All keys that may be, labelled by their classes; minimal."""
    table, labels = _sets(patterns)
    there = [class_of[number] for number in np.unique(labels).tolist() if number >= 0]
    ends = np.append(np.array(class_of, np.int32), np.int32(-1))[labels]  # the last one for label -1
    if -1 in there or len(set(there)) < len(there):  # else no two states have become equivalent
        return minimise_labelled(table, ends)
    return table, ends


@Kept
def _counts(patterns: tuple[Dfa, ...]) -> dict[int, int | None]:
    """The number of strings that just these patterns match, by set; None for infinitely many."""
    table, labels = _sets(patterns)
    classes, columns = column_classes(table)
    rows, widths = table[:, columns].tolist(), np.bincount(classes).tolist()
    waiting = [0] * len(rows)
    for row in rows:
        for target in {*row} - {-1}:
            waiting[target] += 1
    ways = [0] * len(rows)
    ways[0] = 1
    order = [0] if not waiting[0] else []
    for state in order:  # grows while it is read; states behind a cycle never come
        for target in {*rows[state]} - {-1}:
            waiting[target] -= 1
            if not waiting[target]:
                order.append(target)
        for target, width in zip(rows[state], widths, strict=True):
            if target >= 0:
                ways[target] += ways[state] * width
    known = set(order)
    found: dict[int, int | None] = {}
    for state, label in enumerate(labels.tolist()):
        if label >= 0:
            before = found.get(label, 0)
            found[label] = None if before is None or state not in known else before + ways[state]
    return dict(sorted(found.items()))


def key_sets(patterns: Sequence[Dfa], but: Iterable[bytes]) -> tuple[int, ...]:
    """The sets of patterns that some key matches, as sums of 1 << i, in order.

    patterns, but : as for `key_automaton`. A set counts if just its patterns match some key that is
        not in `but`.

    Raises: LimitError as `key_automaton`.
    """
    _check(patterns)
    counts = _counts(tuple(patterns))
    if None in counts.values() and all(count is None for count in counts.values()):
        return tuple(counts)
    named = _named(tuple(patterns), tuple(sorted(set(but))))
    return tuple(number for number, count in counts.items() if count is None or count > named.get(number, 0))


@Kept
def _named(patterns: tuple[Dfa, ...], but: tuple[bytes, ...]) -> dict[int, int]:
    """How many of some keys just these patterns match, by set."""
    found: dict[int, int] = {}
    for key in but:
        number = sum([1 << i for i, pattern in enumerate(patterns) if pattern.matches(key)])
        found[number] = found.get(number, 0) + 1
    return found


def n_keys(patterns: Sequence[Dfa], sets: Sequence[int], but: Iterable[bytes]) -> int | None:
    """The number of keys that match just the patterns of one of some sets; None for endlessly many.

    patterns, but : as for `key_automaton`. Keys in `but` are not counted.
    sets : of those that `key_sets` gives, each once.

    Raises: LimitError as `key_automaton`.
    """
    counts = _counts(tuple(patterns))
    found = [counts.get(number) for number in sets]
    if None in found:
        return None
    named = _named(tuple(patterns), tuple(sorted(set(but))))
    return sum([count for count in found if count is not None]) - sum([named.get(number, 0) for number in sets])


def accepted(next_state: npt.NDArray[np.int32], is_end: npt.NDArray[np.bool_]) -> Iterator[tuple[bytes, int]]:
    """The texts that end in an automaton, which are finitely many, each with its last state."""
    stack = [(0, b"")]
    while stack:
        state, text = stack.pop()
        if is_end[state]:
            yield text, state
        row = next_state[state]
        stack += [(int(row[byte]), text + bytes([byte])) for byte in np.flatnonzero(row >= 0).tolist()]


def with_classes(objects: Objects, automata: Sequence[Dfa], nodes: Mapping[int, int]) -> Objects:
    """Objects with an automaton of their other keys; few keys become named ones.

    objects : with no others.
    automata : of the patterns.
    nodes : set of patterns, as a sum of 1 << i -> the node of the keys that just these match. A set
        that is not there has no key beside the named ones.

    Raises: LimitError as `key_automaton`.
    """
    if not nodes:
        return objects
    others = tuple(dict.fromkeys(nodes.values()))
    if len(others) == 1 and set(key_sets(automata, objects.keys)) == nodes.keys():
        return objects._replace(others=others)
    classes = tuple(others.index(nodes[which]) if which in nodes else -1 for which in range(1 << len(automata)))
    automaton = key_automaton(automata, classes, objects.keys)
    if automaton is None:
        return objects
    n = n_keys(automata, tuple(nodes), objects.keys)
    if n is None or n > MOST_NAMED:
        return objects._replace(others=others, key_automaton=automaton)
    order = tuple(range(len(objects.keys))) if objects.ranks is None else objects.ranks
    known = [*zip(objects.keys, objects.values, objects.required, order, strict=True)]
    for key, state in sorted(accepted(automaton.next_state, automaton.ends >= 0)):
        known.append((key, others[automaton.ends[state]], False, len(known)))
    keys, values, required, ranks = zip(*sorted(known), strict=True)
    return objects._replace(keys=keys, values=values, required=required, ranks=None if objects.ranks is None else ranks)


def keys_within(keys: KeyAutomaton, some: Dfa) -> KeyAutomaton:
    """The keys that are in a set, too, of the classes that they have."""
    bit = 1 << 30  # more than all classes
    table, labels = _with_pattern((keys.next_state, keys.ends), some, bit)
    return KeyAutomaton(*minimise_labelled(table, np.where(labels >= bit, labels - bit, -1).astype(np.int32)))


def _with_pattern(labelled: Labelled, pattern: Dfa, bit: int) -> Labelled:
    """The automaton whose labels have `bit` for the strings of a pattern.

    labelled : a table and the labels of its states, over all strings.
    """
    table, labels = labelled
    n = pattern.n_states + 1  # the last one is left by no way
    other = np.vstack([pattern.next_state, np.full((1, 256), -1, np.int32)])
    other[other < 0] = n - 1
    classes, representatives = column_classes(np.vstack([table, other]))
    first, second = table[:, representatives].astype(np.int64), other[:, representatives].astype(np.int64)
    number = {0: 0}
    states = [0]
    rows: list[npt.NDArray[np.int64]] = []
    for state in states:  # grows while it is read
        left, right = divmod(state, n)
        row = np.where(first[left] >= 0, first[left] * n + second[right], -1)
        rows.append(row)
        for target in row.tolist():
            if target >= 0 and target not in number:
                number[target] = len(states)
                states.append(target)
        if len(states) > MOST_STATES:
            raise LimitError(f"the patterns of an object's keys have together more than {MOST_STATES:,} states")
    number[-1] = -1
    known, inverse = np.unique(np.array(rows), return_inverse=True)
    joined = np.array([number[code] for code in known.tolist()], np.int32)[inverse].reshape(len(rows), -1)
    at = np.array(states)
    accepts = np.append(pattern.is_accepting, False)[at % n]
    found = labels[at // n]
    return minimise_labelled(joined[:, classes], np.where((found >= 0) & accepts, found | bit, found))


def _without(table: npt.NDArray[np.int32], ends: npt.NDArray[np.int32], but: tuple[bytes, ...]) -> Labelled:
    """The automaton that ends none of some keys: their beginnings have states of their own.

    table, ends : each state can reach one that ends a key, or there is only one state.

    State 0 stays the initial one, the others follow; all that remain are reached and live.
    """
    if not but:
        return table, ends
    rows_of: dict[int, list[int]] = {}
    copies = [0]  # of each copy, the state that it is one of
    refused: set[int] = set()
    inside: list[dict[int, int]] = [{}]  # of each copy, the next copy by byte
    for key in but:
        at = 0
        for byte in key:
            target = inside[at].get(byte, -1)
            if target < 0:
                row = rows_of.get(copies[at])
                if row is None:
                    row = rows_of[copies[at]] = table[copies[at]].tolist()
                if row[byte] < 0:
                    break
                target = inside[at][byte] = len(copies)
                copies.append(row[byte])
                inside.append({})
                if target >= MOST_STATES:
                    raise LimitError(f"the keys of an object have more than {MOST_STATES:,} different beginnings")
            at = target
        else:
            refused.add(at)
    n = len(copies)
    found = np.vstack([table[copies], table])
    found[found >= 0] += n
    labels = np.concatenate([ends[copies], ends])
    labels[sorted(refused)] = -1
    n_ways = (table >= 0).sum(axis=1)[copies].tolist()
    dead = set()
    for at in range(n - 1, -1, -1):  # copies stand behind those that lead to them
        for byte, target in inside[at].items():
            found[at, byte] = -1 if target in dead else target
            n_ways[at] -= target in dead
        if labels[at] < 0 and not n_ways[at]:
            dead.add(at)
    return _reached(found, labels)


def _reached(table: npt.NDArray[np.int32], ends: npt.NDArray[np.int32]) -> Labelled:
    """The automaton without the states that are not reached."""
    is_reached = np.zeros(len(table), np.bool_)
    is_reached[0] = True
    front = np.zeros(1, np.int64)
    while len(front):
        following = np.zeros(len(table) + 1, np.bool_)  # the last one for no state
        following[table[front].ravel()] = True
        following[:-1] &= ~is_reached
        following[-1] = False
        front = np.flatnonzero(following)
        is_reached[front] = True
    if is_reached.all():
        return table, ends
    number = np.append(np.cumsum(is_reached, dtype=np.int32) - 1, np.int32(-1))
    return number[table[is_reached]].astype(np.int32), ends[is_reached]
