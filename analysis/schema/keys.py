"""Which class each key of an object has, by the patterns that are found in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import LimitError
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.regex.minimise import column_classes, distances, minimise_labelled
from maskwright.analysis.regex.spell import valid_utf8
from maskwright.analysis.schema.shapes import KeyAutomaton

MOST_PATTERNS = 8
"""BOUND: patterns of one object; their automaton distinguishes all sets of them."""

MOST_STATES = 20_000
"""BOUND: states of an automaton of keys, also on the way to it."""

Labelled = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]


def key_automaton(patterns: Sequence[Dfa], class_of: Sequence[int], but: Iterable[bytes]) -> KeyAutomaton | None:
    """The class of each key, by the set of the patterns that match it.

    patterns : automata over valid UTF-8.
    class_of : for each set of patterns, as the sum of 1 << i over its patterns i, the class of the
        keys that match just these, or -1 for keys that may not be; 2 ** len(patterns) of them.
    but : UTF-8 of keys that are not ended.

    Returns None if no key is left.
    Raises: LimitError if there are more than `MOST_PATTERNS` patterns or `MOST_STATES` states;
    ValueError if `class_of` has another length.
    """
    if len(patterns) > MOST_PATTERNS:
        raise LimitError(
            f"an object has {len(patterns)} patterns of keys that say different things, more than {MOST_PATTERNS}; "
            "join some of them into one pattern"
        )
    if len(class_of) != 1 << len(patterns):
        raise ValueError(f"{len(class_of)} classes for the sets of {len(patterns)} patterns")
    return _key_automaton(tuple(patterns), tuple(class_of), tuple(sorted(set(but))))


@lru_cache(maxsize=256)
def _key_automaton(patterns: tuple[Dfa, ...], class_of: tuple[int, ...], but: tuple[bytes, ...]) -> KeyAutomaton | None:
    every = valid_utf8()
    labelled: Labelled = every.next_state, every.is_accepting.astype(np.int32) - 1
    for number, pattern in enumerate(patterns):
        labelled = _with_pattern(labelled, pattern, 1 << number)
    table, labels = labelled
    ends = np.append(np.array(class_of, np.int32), np.int32(-1))[labels]  # the last one for label -1
    table, ends = _trimmed(*_without(*minimise_labelled(table, ends), but))
    if not (ends >= 0).any():
        return None
    table.flags.writeable = ends.flags.writeable = False
    return KeyAutomaton(table, ends)


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

    These come first, the copy of state 0 before all others, so that it is initial.
    """
    copies = [0]  # of each copy, the state that it is one of
    refused: set[int] = set()
    inside: dict[tuple[int, int], int] = {}  # a copy and a byte -> the next copy
    for key in but:
        at = 0
        for byte in key:
            old = int(table[copies[at], byte])
            if old < 0:
                break
            target = inside.setdefault((at, byte), len(copies))
            if target == len(copies):
                copies.append(old)
                if target >= MOST_STATES:
                    raise LimitError(f"the keys of an object have more than {MOST_STATES:,} different beginnings")
            at = target
        else:
            refused.add(at)
    found = np.vstack([table[copies], table])
    found[found >= 0] += len(copies)
    labels = np.concatenate([ends[copies], ends])
    labels[sorted(refused)] = -1
    for (at, byte), target in inside.items():
        found[at, byte] = target
    return found, labels


def _trimmed(table: npt.NDArray[np.int32], ends: npt.NDArray[np.int32]) -> Labelled:
    """Only the states that are reached and can reach one that ends a key."""
    classes, representatives = column_classes(table)
    small = table[:, representatives]
    live = np.append(distances(small, ends >= 0) >= 0, False)
    rows = np.where(live[small], small, -1).tolist()
    number = {0: 0, -1: -1}
    order = [0]
    for state in order:  # grows while it is read
        for target in rows[state]:
            if target not in number:
                number[target] = len(order)
                order.append(target)
    found = [[number[target] for target in rows[state]] for state in order]
    return np.array(found, np.int32).reshape(len(order), -1)[:, classes], ends[order]
