"""Arrays whose items must differ as values: the plain interpreter beside the engine.

The engine reads a text as if items that are objects, arrays or numbers could be equal. What it
allows, the plain interpreter then reads, which knows the items: but only tokens by which an item
can end or become equal to one before it; and all where the engine may still follow a reading with
equal items (`has_dropped`).

In: the engine's memory and masks. Out: the same, without what makes two items equal. The methods
have the names and arguments of the engine's entry points, so that texts call the one or the other.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from maskwright.analysis.kept import kept_with
from maskwright.analysis.locks import new_lock
from maskwright.decoding.reference.json_places import ArrayFrame, Quoted, Readings, is_free, takes_more
from maskwright.decoding.reference.json_texts import JsonInterpreter, tokens_allowed
from maskwright.decoding.schema import constants
from maskwright.decoding.schema.entries import entries
from maskwright.decoding.schema.workspace import Workspace
from maskwright.maskstore.schema.compiled import SchemaTables
from maskwright.maskstore.vocabulary.vocabulary import Vocabulary

Array = npt.NDArray[np.int32]

_COMMA = re.compile(rb",")
_BRACKET = re.compile(rb"[\]\[}]|[ \t\n\r]\Z")
"""Behind a blank only a bracket may come, in some styles."""
_BRACKET_AND_COMMA = re.compile(rb"[\]\[}].*,", re.DOTALL)


@kept_with
def _interpreter_of(store: SchemaTables) -> tuple[JsonInterpreter, threading.Lock]:
    """The interpreter of all texts of a schema, and whose turn it is."""
    return JsonInterpreter(store.texts), new_lock()  # type: ignore[arg-type]


class ComparedEntries:
    """The engine's entry points for one text of a schema that compares items.

    store : the schema's tables.
    workspace : where the engine works.

    The interpreter of a schema is one for all its texts, which wait for one another.

    The engine still follows readings that the interpreter has dropped since two items were equal.
    Such a reading may allow what no other one does.
    """

    def __init__(self, store: SchemaTables, workspace: Workspace) -> None:
        self._store, self._workspace = store, workspace
        self._interpreter, self._lock = _interpreter_of(store)
        self._readings: list[tuple[int, Readings, bool]] = []
        """The text's length in tokens and its readings then, and whether the engine may have more
        of them; for the history, the newest last."""

    def copy(self, workspace: Workspace) -> Self:
        """Those of a second text in the same state. workspace : where its engine works."""
        other = type(self)(self._store, workspace)
        other._readings = self._readings.copy()
        return other

    def begin(self, table: Array, memory: Array, work: Array, max_history: int) -> None:
        """As the engine's `begin`."""
        self._workspace.call(entries.begin, table, memory, work, max_history)

    def rollback(self, memory: Array, n: int) -> None:
        """As the engine's `rollback`."""
        entries.rollback(memory, n)

    def can_end(self, table: Array, automata: Array, memory: Array) -> int:
        """As the engine's `can_end`."""
        code = int(entries.can_end(table, automata, memory))
        if code == constants.OK and not memory[constants.FINISHED]:
            with self._lock:
                if not self._interpreter.is_complete(self._newest(memory)):
                    return constants.ILLEGAL
        return code

    def _newest(self, memory: Array) -> Readings:
        """The readings of the text.

        INVARIANT: the engine's memory says how long the text is, whoever interrupts. What is here
        of a longer one was taken back, or was not added.
        """
        n = int(memory[constants.N_SAID])
        while self._readings and self._readings[-1][0] > n:
            self._readings.pop()
        if not self._readings:
            self._readings.append((0, self._interpreter.start(), False))
        return self._readings[-1][1]

    def has_dropped(self, memory: Array) -> bool:
        """Whether the engine may have more readings of the text than the interpreter."""
        self._newest(memory)
        return self._readings[-1][2] and not _has_one_reading(memory)

    def _behind(self, memory: Array, data: bytes) -> tuple[Readings, bool]:
        """The readings behind some bytes, and whether the engine may have more of them."""
        has_dropped = self.has_dropped(memory)
        with self._lock:
            n_equal = self._interpreter.n_equal
            readings = self._interpreter.read_bytes(self._newest(memory), data)
            return readings, has_dropped or self._interpreter.n_equal > n_equal

    def read_token(
        self, voc: Array, table: Array, automata: Array, memory: Array, work: Array, token: int, commit: bool
    ) -> int:
        """As the engine's `read_token`."""
        return self._read(commit, entries.read_token, voc, table, automata, memory, work, token)

    def read_bytes(self, table: Array, automata: Array, memory: Array, work: Array, data: Array, commit: bool) -> int:
        """As the engine's `read_bytes`."""
        return self._read(commit, entries.read_bytes, table, automata, memory, work, data)

    def _read(self, commit: bool, *call: Any) -> int:
        """What a call of the engine's returns, if the interpreter can read that as well."""
        code = int(self._workspace.call(*call, False))
        if code != constants.OK:
            return code
        (table, automata, memory, _, what), vocabulary = call[-5:], self._store.vocabulary
        if isinstance(what, np.ndarray):
            behind = self._behind(memory, bytes(what.astype(np.uint8)))
        elif what not in vocabulary.eos:
            behind = self._behind(memory, vocabulary.tokens[what])
        elif self.can_end(table, automata, memory) == constants.OK:
            behind = self._newest(memory), False
        else:
            return constants.NOT_COMPLETE
        if not behind[0]:
            return constants.ILLEGAL
        if commit:
            self._newest(memory)  # what is here of a longer text is forgotten
            self._readings.append((int(memory[constants.N_SAID]) + 1, *behind))
            code = int(self._workspace.call(*call, True))
            if code == constants.OK:
                del self._readings[: -1 - int(memory[constants.N_HISTORY])]
        return code

    def fill(self, voc: Array, table: Array, automata: Array, memory: Array, work: Array, words: Array) -> int:
        """As the engine's `fill`."""
        code = int(self._workspace.call(entries.fill, voc, table, automata, memory, work, words))
        if code != constants.OK or memory[constants.FINISHED]:
            return code
        vocabulary = self._store.vocabulary
        bits = words.view(np.uint32)
        refused = list(vocabulary.eos)
        if refused and self.can_end(table, automata, memory) == constants.OK:
            refused = []
        readings, completions = self._newest(memory), self._interpreter.completions
        with self._lock:
            may_be_equal = any(map(completions.may_be_equal, readings))
            rests = [completions.alike_rests(reading) for reading in readings] if may_be_equal else []
        asked = _doubtful(vocabulary, readings, may_be_equal, rests)
        if self.has_dropped(memory):
            asked = np.union1d(asked, _doubtful_beside(vocabulary, memory, readings))
        asked = asked[(bits[asked >> 5] >> (asked & 31).astype(np.uint32)) & 1 != 0]
        if len(asked):
            tokens = [vocabulary.tokens[token] for token in asked.tolist()]
            with self._lock:
                found = tokens_allowed(self._interpreter, readings, tokens)
            refused += asked[~np.array(found)].tolist()
        for token in refused:
            bits[token >> 5] &= ~np.uint32(1 << (token & 31))
        return constants.OK if words.any() else constants.DEAD_END


def _doubtful(
    vocabulary: Vocabulary, readings: Readings, may_be_equal: bool, rests: Sequence[set[bytes] | None]
) -> Array:
    """The tokens that the interpreter has to read, ascending.

    may_be_equal : whether an item under way may become equal to one before it. Where none can, only
        tokens that hold a comma are doubtful: an array without an item makes nothing equal, and its
        second item begins behind a comma. Within an object, or another array, a bracket comes
        before that comma: of the end of an item, or the beginning of an array. Where an object
        takes ever more members, or an array items, each item under way can become new until a
        bracket ends it, or a blank before one.
    rests : of each reading, what `alike_rests` returns. PERF: within strings only tokens are
        doubtful that end them, that spell characters by escapes, and with which a known string goes
        on; all others make the item new.
    """
    sets = _token_sets(vocabulary)
    in_string = all(map(is_free, readings))
    if not may_be_equal:
        is_within = not any(isinstance(frame, ArrayFrame) and frame.shape.shape.is_unique for frame, _ in readings)
        return sets.with_comma[is_within][in_string]
    if all(map(takes_more, readings)):
        return sets.with_bracket[in_string]
    if in_string:
        return sets.with_quote
    known = [rest for some in rests if some is not None for rest in some]
    if None in rests:
        return sets.every
    going_on = {number for rest in known for n in range(len(rest)) for number in sets.ids.get(rest[: n + 1], ())}
    return np.array(sorted({*sets.ending_or_escaping, *going_on}), np.int32)


def _doubtful_beside(vocabulary: Vocabulary, memory: Array, readings: Readings) -> Array:
    """What else is doubtful where the engine may follow a reading that the interpreter dropped."""
    sets = _token_sets(vocabulary)
    inside = [one.place.shape.shape for one in readings if isinstance(one.place, Quoted)]
    # the engine has a thread for each string and key in which its readings stand
    is_alike = len(inside) == len(readings) and int(memory[memory[constants.STATE]]) <= len({*map(id, inside)})
    return sets.with_quote if is_alike else sets.every


def _has_one_reading(memory: Array) -> bool:
    """Whether the engine follows one reading: there is one thread, and no fork around it."""
    read = memory.item  # PERF: of one integer it takes less time than an index
    state = read(constants.STATE)
    link = read(state + 1 + constants.LINK)
    while link != constants.ROOT_FRAME and read(link + constants.SHAPE) != constants.FORK_SHAPE:
        link = read(link + constants.PARENT)
    return read(state) == 1 and link == constants.ROOT_FRAME


class _TokenSets(NamedTuple):
    """Tokens of a vocabulary with text, by what they hold: (n,) int32, ascending.

    with_comma : those with a comma, and those with a bracket before one; of each all, and those
        with a quotation mark.
    with_bracket : those with a bracket of an object's end or of an array, or with a blank at the
        end, behind which one may stand; all, and those with a quotation mark.
    ids : text -> the tokens that have it.
    ending_or_escaping : those with a quotation mark or a backslash.
    """

    with_quote: Array
    with_comma: tuple[tuple[Array, Array], tuple[Array, Array]]
    with_bracket: tuple[Array, Array]
    every: Array
    ids: dict[bytes, list[int]]
    ending_or_escaping: list[int]


@lru_cache(maxsize=8)
def _token_sets(vocabulary: Vocabulary) -> _TokenSets:
    tokens = vocabulary.tokens
    found = [number for number, token in enumerate(tokens) if token]
    quoted = [number for number in found if b'"' in tokens[number]]

    def with_pattern(pattern: re.Pattern[bytes]) -> tuple[Array, Array]:
        return tuple(
            np.array([number for number in some if pattern.search(tokens[number])], np.int32)
            for some in (found, quoted)
        )  # type: ignore[return-value]

    ids: dict[bytes, list[int]] = {}
    for number in found:
        ids.setdefault(tokens[number], []).append(number)
    with_quote, every = np.array(quoted, np.int32), np.array(found, np.int32)
    ending_or_escaping = [number for number in found if b'"' in tokens[number] or b"\\" in tokens[number]]
    with_comma = with_pattern(_COMMA), with_pattern(_BRACKET_AND_COMMA)
    return _TokenSets(with_quote, with_comma, with_pattern(_BRACKET), every, ids, ending_or_escaping)
