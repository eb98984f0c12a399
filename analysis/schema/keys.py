"""Which class each key of an object has, by the patterns that are found in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from maskwright.analysis.deadline import look
from maskwright.analysis.errors import LimitError
from maskwright.analysis.kept import Kept
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.regex.minimise import column_classes, in_order, minimise_labelled
from maskwright.analysis.regex.spell import valid_utf8
from maskwright.analysis.schema.shapes import KeyAutomaton, Objects

MOST_SETS = 1_024
"""BOUND: sets of patterns that keys of one object match, which their automaton tells apart."""
MOST_STATES = 20_000
"""BOUND: states of an automaton of keys, also on the way to it."""
MOST_ALIVE = 131_072
"""BOUND: the sum, over these states, of the patterns that have not failed there."""
MOST_NAMED = 255
"""BOUND: keys of a finite set of keys that become named keys."""
_ADVICE = "write patterns of which no key matches two, or join some into one"
Labelled = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]


def key_automaton(patterns: Sequence[Dfa], class_of: Mapping[int, int], but: Iterable[bytes]) -> KeyAutomaton | None:
    """The class of each key, by the set of the patterns that match it.

    patterns : automata over valid UTF-8.
    class_of : set of patterns, as the sum of 1 << i over its patterns i -> the class of the keys
        that match just these; a set that is not there has no keys that may be.
    but : UTF-8 of keys that are not ended.

    Returns None if no key is left.
    Raises: LimitError past `MOST_SETS`, `MOST_STATES` or `MOST_ALIVE`.
    """
    return _key_automaton(tuple(patterns), tuple(sorted(class_of.items())), tuple(sorted(set(but))))


@Kept
def _key_automaton(
    patterns: tuple[Dfa, ...], class_of: tuple[tuple[int, int], ...], but: tuple[bytes, ...]
) -> KeyAutomaton | None:
    (table, labels), sets = _sets(patterns)
    classes = dict(class_of)
    there = [classes.get(one, -1) for one in sets]
    ends = np.array([*there, -1], np.int32)[labels]  # the last one for label -1
    if -1 in there or len(set(there)) < len(there):  # else no two states have become equivalent
        table, ends = minimise_labelled(table, ends)
    table, ends = _without(table, ends, but)
    if not (ends >= 0).any():
        return None
    table.flags.writeable = ends.flags.writeable = False
    return KeyAutomaton(table, ends)


@Kept
def _sets(patterns: tuple[Dfa, ...]) -> tuple[Labelled, list[int]]:
    """All strings, minimal, labelled by the set of the patterns that match them; and the sets.

    A label is the number of a set, which is the sum of 1 << i over its patterns i.
    """
    every = valid_utf8()
    table, states = _together([every.next_state, *(pattern.next_state for pattern in patterns)])
    accepts = [0] * every.n_states
    for number, pattern in enumerate(patterns):
        accepts += (pattern.is_accepting.astype(object) << number).tolist()
    found = [sum([accepts[one] for one in state]) if every.is_accepting[state[0]] else -1 for state in states]
    sets = sorted({*found} - {-1})
    if len(sets) > MOST_SETS:
        raise LimitError(
            f"{len(patterns)} patterns of an object's keys match in more than {MOST_SETS:,} ways; {_ADVICE}"
        )
    label = {one: number for number, one in enumerate(sets)}
    return minimise_labelled(table, np.array([label.get(one, -1) for one in found], np.int32)), sets


@Kept
def _counts(patterns: tuple[Dfa, ...]) -> dict[int, int | None]:
    """The number of strings that just these patterns match, by set; None for infinitely many."""
    (table, labels), sets = _sets(patterns)
    classes, columns = column_classes(table)
    rows, widths = table[:, columns].tolist(), np.bincount(classes).tolist()
    waiting = Counter([target for row in rows for target in {*row}])
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
    return dict(sorted((sets[label], count) for label, count in found.items()))


def key_sets(patterns: Sequence[Dfa], but: Iterable[bytes]) -> tuple[int, ...]:
    """The sets of patterns that some key matches, as sums of 1 << i, in order.

    patterns, but : as for `key_automaton`. A set counts if just its patterns match some key that is
        not in `but`.

    Raises: LimitError as `key_automaton`.
    """
    return tuple([number for number, n in _left(tuple(patterns), tuple(sorted(set(but)))).items() if n != 0])


@Kept
def _left(patterns: tuple[Dfa, ...], but: tuple[bytes, ...]) -> dict[int, int | None]:
    """As `_counts`, without the keys in `but`."""
    left = dict(_counts(patterns))
    if {*left.values()} != {None}:
        for key in but:
            number = sum([1 << i for i, pattern in enumerate(patterns) if pattern.matches(key)])
            n = left[number]
            left[number] = None if n is None else n - 1
    return left


def n_keys(patterns: Sequence[Dfa], sets: Sequence[int], but: Iterable[bytes]) -> int | None:
    """The number of keys that match just the patterns of one of some sets; None for endlessly many.

    patterns, but : as for `key_automaton`. Keys in `but` are not counted.
    sets : of those that `key_sets` gives, each once.

    Raises: LimitError as `key_automaton`.
    """
    left = _left(tuple(patterns), tuple(sorted(set(but))))
    found = [n for number in sets if (n := left.get(number)) is not None]
    return sum(found) if len(found) == len(sets) else None


def few_keys(patterns: Sequence[Dfa], sets: Sequence[int], but: Sequence[bytes]) -> list[str]:
    """The keys that `n_keys` counts, if they are at most `MOST_NAMED`; else none."""
    n = n_keys(patterns, sets, but)
    automaton = key_automaton(patterns, dict.fromkeys(sets, 0), but) if n is not None and n <= MOST_NAMED else None
    if automaton is None:
        return []
    return sorted([key.decode() for key, _ in accepted(automaton.next_state, automaton.ends >= 0)])


def accepted(next_state: npt.NDArray[np.int32], is_end: npt.NDArray[np.bool_]) -> Iterator[tuple[bytes, int]]:
    """The texts that end in an automaton, which are finitely many, each with its last state."""
    stack = [(0, b"")]
    while stack:
        state, text = stack.pop()
        if is_end[state]:
            yield text, state
        row = next_state[state]
        stack += [(int(row[byte]), text + bytes([byte])) for byte in np.flatnonzero(row >= 0).tolist()]


def with_classes(objects: Objects, automata: Sequence[Dfa], nodes: Mapping[int, tuple[int, ...]]) -> Objects:
    """Objects with an automaton of their other keys; few keys become named ones.

    objects, automata, nodes : as `objects`, `automata` and `classes` of a `Patterned`.

    Raises: LimitError as `key_automaton`.
    """
    if not nodes:
        return objects
    rows = [*dict.fromkeys(nodes.values())]
    others, *wanted = zip(*rows, strict=True)
    found = objects._replace(others=others, wanted=tuple(wanted))
    if len(rows) == 1 and set(key_sets(automata, objects.keys)) == nodes.keys():
        return found
    automaton = key_automaton(automata, {which: rows.index(row) for which, row in nodes.items()}, objects.keys)
    if automaton is None:
        return objects
    n = n_keys(automata, tuple(nodes), objects.keys)
    if n is None or n > MOST_NAMED:
        return found._replace(key_automaton=automaton)
    order = tuple(range(len(objects.keys))) if objects.ranks is None else objects.ranks
    known = [*zip(objects.keys, objects.values, objects.required, order, strict=True)]
    for key, state in sorted(accepted(automaton.next_state, automaton.ends >= 0)):
        known.append((key, others[automaton.ends[state]], False, len(known)))
    keys, values, required, ranks = zip(*sorted(known), strict=True)
    return objects._replace(keys=keys, values=values, required=required, ranks=None if objects.ranks is None else ranks)


def keys_within(keys: KeyAutomaton, some: Dfa) -> KeyAutomaton:
    """The keys that are in a set, too, of the classes that they have."""
    table, states = _together([keys.next_state, some.next_state])
    n = len(keys.ends)
    is_inside = [len(state) > 1 and bool(some.is_accepting[state[1] - n]) for state in states]
    ends = np.where(is_inside, keys.ends[[state[0] for state in states]], -1)
    return KeyAutomaton(*minimise_labelled(table, ends.astype(np.int32)))


def _together(tables: Sequence[npt.NDArray[np.int32]]) -> tuple[npt.NDArray[np.int32], list[tuple[int, ...]]]:
    """The automaton that reads what the first one reads, and of the others what they read with it.

    Returns its table, and for each of its states those of the automata, as numbers of the rows of
    all tables: the first one's, and those of the others that have not failed.

    Raises: LimitError past `MOST_STATES` or `MOST_ALIVE`.
    """
    bounds = f"{MOST_STATES:,} states, or {MOST_ALIVE:,} states of their own at once"
    too_many = LimitError(f"patterns of keys have together more than {bounds}; {_ADVICE}")
    *offsets, n_rows = np.cumsum([0, *map(len, tables)]).tolist()
    if n_rows > MOST_ALIVE:
        raise too_many
    joined = np.vstack([np.where(table >= 0, table + n, -1) for table, n in zip(tables, offsets, strict=True)])
    classes, columns = column_classes(joined)
    narrow = joined[:, columns]
    number = {tuple(offsets): 0}
    states, rows, n_left = [*number], [], MOST_ALIVE
    for state in states:  # grows while it is read
        look()
        row = []
        for targets in narrow[list(state)].T.tolist():
            target = tuple([one for one in targets if one >= 0]) if targets[0] >= 0 else ()
            row.append(number.setdefault(target, len(states)) if target else -1)
            if row[-1] == len(states):
                states.append(target)
        rows.append(row)
        n_left -= len(state)
        if len(states) > MOST_STATES or n_left < 0:
            raise too_many
    return np.array(rows, np.int32)[:, classes], states


def _without(table: npt.NDArray[np.int32], ends: npt.NDArray[np.int32], but: tuple[bytes, ...]) -> Labelled:
    """The automaton that ends none of some keys: their beginnings have states of their own.

    table, ends : each state can reach one that ends a key, or there is only one state.

    State 0 stays the initial one; all that remain are reached and live.
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
    reached, order = in_order(found, column_classes(found)[1])
    return reached, labels[order]
