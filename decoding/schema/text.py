"""The state of one text of a schema or a pattern: its memory, and what is done to it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import LimitError
from maskwright.analysis.regex.dfa import Dfa
from maskwright.decoding.engine import constants as results
from maskwright.decoding.engine.quick import NOTHING_QUICK, quick_calls
from maskwright.decoding.engine.state import TextState
from maskwright.decoding.schema import constants
from maskwright.decoding.schema.compared import ComparedEntries
from maskwright.decoding.schema.entries import entries
from maskwright.decoding.schema.workspace import Workspace, shared_workspace
from maskwright.maskstore.schema import layout
from maskwright.maskstore.schema.compiled import SchemaTables

if TYPE_CHECKING:
    # PERF: what few decoders ask for is imported when they do
    from maskwright.decoding.endings.states import States
    from maskwright.decoding.explain.explanation import Explanation

Array = npt.NDArray[np.int32]

FIRST_ARENA = 12_000
"""The integers of a new text's arena; with the header and the history 49 KB."""
SPARE = 2_000
"""The integers of a copy's arena that are free."""
MOST_INTEGERS = 1 << 30
"""BOUND: the integers of a text's memory, so that all offsets are int32."""
MOST_CELLS = 64
"""BOUND: the remembered keys and items that a text's key has; past it, the key is what was said."""
MOST_EXPLAINED = 4_096
"""BOUND: the bytes of a text that an error reads again, at some 10 us a byte."""

_QUICK = quick_calls(entries)


class SchemaText(TextState):
    """One text under a schema's tables.

    workspace : what makes the masks; None for the one that all texts of the vocabulary share. Texts
        of one workspace wait for each other.

    Raises: LimitError if so much history takes too much memory.
    """

    said: list[int | bytes]
    looks_further = True
    instead_of_names = (
        "write the names into the schema (enum, propertyNames) or the pattern, which compiles in a moment"
    )

    def __init__(self, store: SchemaTables, max_rollback: int, workspace: Workspace | None = None) -> None:
        super().__init__(store, max_rollback)
        self.under = store.name
        if workspace is None:
            workspace = shared_workspace(store.vocabulary, store.escapes, store.era)
        self._workspace, self._voc, self._work = workspace, workspace.voc, workspace.work
        self._table, self._automata = store.table, store.automata
        self._entries: Any = entries
        self._call: Callable[..., Any] = workspace.call
        quick = _QUICK
        if store.compares_items:  # the others need not wait for its interpreter
            self.if_slow = "ask for uniqueItems of strings alone, or not at all"
            self._entries, self._call, quick = ComparedEntries(store, workspace), operator.call, NOTHING_QUICK
        self.quick_fill, self.quick_read, self.quick_step = quick.quick_fill, quick.quick_read, quick.quick_step
        self.said = []
        room = max(FIRST_ARENA, 10 * int(self._table[layout.MOST_WORDS]))
        if max_rollback + room > MOST_INTEGERS // 2:
            raise LimitError(
                f"a text that remembers {clip(max_rollback)} tokens takes more memory than can be numbered; give a smaller max_rollback"
            )
        self.bound = self._bound_to(_memory(constants.HISTORY + max_rollback + room), np.zeros(0, np.int32))
        self.reset()

    def ignored_at_start(self) -> bytes:
        return b"" if isinstance(self.store.texts, Dfa) else b" \t\n\r"

    def _bound_to(self, memory: Array, words: Array) -> tuple[npt.NDArray[np.int64], Array, Array]:
        """What `bound` is with some memory, and words for masks.

        INVARIANT: addresses and what keeps their arrays alive are replaced together, whoever
        interrupts: by one assignment.
        """
        addresses = np.zeros(constants.N_ADDRESSES, np.int64)
        if self.quick_fill is not NOTHING_QUICK.quick_fill:
            entries.note_addresses(self._voc, self._table, self._automata, memory, self._work, words, addresses)
        return addresses, memory, words

    def bind(self, words: Array) -> bool:
        self.bound = self._bound_to(self._memory, words)
        return True

    @property
    def _memory(self) -> Array:
        found: Array = self.bound[1]
        return found

    def _give_room(self, tries: int) -> None:
        """Move the text to memory with twice the room for what is in use."""
        if tries > 40 or 2 * len(self._memory) > MOST_INTEGERS:
            raise LimitError(
                f"{self.under}: the text takes more than {MOST_INTEGERS:,} integers of memory; it is too long, nested too deeply, or has "
                "too many readings"
            )
        size = len(self._memory) << (tries > 0)
        larger = self._moved(size)
        if 2 * int(larger[constants.TOP]) > size:
            larger = self._moved(2 * size)
        self.bound = self._bound_to(larger, self.bound[2])

    def _moved(self, size: int) -> Array:
        """The text in new memory; its own is left as it is, for whoever interrupts."""
        found = _memory(size)
        entries.move(self._table, self._memory.copy(), found)
        return found

    def read_token(self, token: int, commit: bool) -> int:
        return self._read(commit, token, self._entries.read_token, (self._voc, self._table, self._automata), token)

    def read(self, data: bytes, commit: bool) -> int:
        array = np.frombuffer(data, np.uint8).astype(np.int32)
        return self._read(commit, data, self._entries.read_bytes, (self._table, self._automata), array)

    def _read(self, commit: bool, added: int | bytes, entry: Any, tables: tuple[Array, ...], what: Any) -> int:
        """The result of reading something."""
        try:
            code: int = self._call(entry, *tables, self.bound[1], self._work, what, commit)
            if code == constants.NO_ROOM:
                code = self._with_room(entry, tables, what, commit)
            if commit and code == constants.OK:
                self.said.append(added)
        except BaseException:
            self.settle(added)
            raise
        return -code

    def _with_room(self, entry: Any, tables: tuple[Array, ...], *what: Any) -> int:
        """What an entry point returns that found no room, with more of it as often as it needs."""
        tries, code = 0, constants.NO_ROOM
        while code == constants.NO_ROOM:
            self._give_room(tries)
            code = self._call(entry, *tables, self.bound[1], self._work, *what)
            tries += 1
        return code

    def settle(self, added: int | bytes) -> None:
        """As `TextState.settle`: what compiled code has read counts as said."""
        if int(self._memory[constants.N_SAID]) == len(self.said) + 1:
            self.said.append(added)

    def bytes_and_tokens(self) -> list[int | bytes]:
        """What was said, as far as it counts: an interrupted `undo` may have left more."""
        return self.said[: int(self._memory[constants.N_SAID])]

    def dump(self) -> Any:
        return self.bytes_and_tokens(), self.remembered()

    def bytes_said(self) -> bytes:
        del self.said[int(self._memory[constants.N_SAID]) :]
        return super().bytes_said()

    def fill(self, words: Array) -> int:
        entry, tables = self._entries.fill, (self._voc, self._table, self._automata)
        code = self._call(entry, *tables, self.bound[1], self._work, words)
        if code == constants.NO_ROOM:
            code = self._with_room(entry, tables, words)
        return results.AFTER_END if code == constants.OK and self.is_finished() else -code

    def can_end(self) -> bool:
        return bool(self._entries.can_end(self._table, self._automata, self._memory) == constants.OK)

    def is_finished(self) -> bool:
        return bool(self._memory[constants.FINISHED])

    def remembered(self) -> int:
        return int(self._memory[constants.N_HISTORY])

    def forget(self, remembered: int) -> None:
        self._memory[constants.N_HISTORY] = remembered

    def undo(self, n: int) -> None:
        self._entries.rollback(self._memory, n)
        del self.said[int(self._memory[constants.N_SAID]) :]

    def reset(self) -> None:
        self._call(self._entries.begin, self._table, self._memory, self._work, self.max_rollback)
        self.said.clear()

    def become(self, other: Any) -> TextState:
        """As `TextState.become`. It keeps its workspace."""
        engine = other._entries.copy(self._workspace) if self.store.compares_items else self._entries
        used = int(other._memory[constants.TOP])
        memory = _memory(used + SPARE)
        memory[:used] = other._memory[:used]
        bound, said = self._bound_to(memory, self.bound[2]), other.bytes_and_tokens()
        self.max_rollback, self.bound, self._entries = other.max_rollback, bound, engine
        self.said[:] = said  # the same list, to which a matcher adds what quick calls read
        return self

    def copy(self) -> TextState:
        """As `TextState.copy`. Cost: O(the memory of the text that is in use)."""
        other = object.__new__(type(self))
        vars(other).update(vars(self), said=[])
        return other.become(self)

    @property
    def n_bytes(self) -> int:
        """The bytes of memory that the text's state takes now."""
        return int(self._memory.nbytes)

    def key(self) -> object:
        """As `TextState.key`: threads and frames without their places, or all that was said.

        Cost: O(the threads and the frames around them, with what these remember).
        """
        try:
            return self.bytes_said() if self.store.compares_items else _key_of(self._table, self._memory)
        except _TooMuchError:
            return self.bytes_said()

    # -- in words

    def limit(self, code: int) -> LimitError:
        """As `TextState.limit`: there is one."""
        return LimitError(
            f"{self.under} has more than {constants.MOST_READINGS} readings of the text, or of a token behind it: make its alternatives "
            "(anyOf, oneOf) differ earlier, as by a required property with a constant"
        )

    def _stuck(self, fact: str, allowed: bytes) -> str:
        if allowed:
            return super()._stuck(fact, allowed)
        return (
            f"this text is a dead end under {self.under}: another member or item must follow, but all names or values that could stand "
            "here have been used; allow longer names (maxLength, pattern), or ask for fewer members"
        )

    def reason(self, refused: bytes, before: bytes = b"") -> str:
        from maskwright.decoding.explain.explain import explain_schema

        text = self.bytes_said() + before
        if len(text) > MOST_EXPLAINED:
            return ""
        try:
            attempts = explain_schema(self.store.texts, self.store.name, text, refused).attempts
        except LimitError:
            return ""
        return ": " + ", or ".join(self._with_keywords(dict.fromkeys(one.why for one in attempts))) if attempts else ""

    def _with_keywords(self, reasons: Iterable[str]) -> Iterator[str]:
        """Reasons, which begin with a JSON path, and what keywords ask of a scalar there."""
        from maskwright.analysis.schema.preferred import preferred_of

        known = preferred_of(self.store.constraint)
        for reason in reasons:
            asked = "" if known is None else known.asked(reason)
            yield f"{reason} ({asked})" if asked else reason

    def explain(self, token: int) -> Explanation | None:
        """As `TextState.explain`. Cost: the text is read again, at some 10 us a byte."""
        return None if self.is_finished() else self.explain_bytes(token)

    def explain_bytes(self, data: int | bytes) -> Explanation:
        from maskwright.decoding.explain.explain import explain_schema

        return explain_schema(self.store.texts, self.store.name, self.bytes_said(), data, self.store.vocabulary)

    # -- endings

    def ending_states(self) -> Callable[[], States]:
        """What makes the states in which endings of the store's texts are searched for."""
        from maskwright.analysis.schema.preferred import preferred_of
        from maskwright.decoding.schema.ending_states import JsonStates, PatternStates

        under, texts, constraint = self.under, self.store.texts, self.store.constraint
        if isinstance(texts, Dfa):
            return partial(PatternStates, under, texts)
        return lambda: JsonStates(under, texts, preferred_of(constraint))


class _TooMuchError(Exception):
    """A key would take too long."""


def _key_of(table: Array, memory: Array) -> object:
    """The key of the text in some memory: its threads, and what the links say that they hold."""
    begin, links = int(memory[constants.STATE]), _Links(table, memory)
    threads = memory[begin + 1 : begin + 1 + constants.THREAD * int(memory[begin])].reshape(-1, constants.THREAD)
    said = tuple([(links.number(link), *rest) for link, *rest in threads.tolist()])
    return bool(memory[constants.FINISHED]), said, tuple(links.frames)


class _Links:
    """The numbers of links in a text's memory (`schema.constants`): equal frames have one.

    frames : what each numbered link is, with the numbers of those around it.

    BOUND: frames deeper than `MOST_DEPTH` and more than `MOST_CELLS` cells are not asked for:
    `_TooMuchError`.
    """

    def __init__(self, table: Array, memory: Array) -> None:
        self._table, self._memory, self._n_cells = table, memory, MOST_CELLS
        self._numbers = {constants.ROOT_FRAME: -1}
        self.frames: dict[object, int] = {}

    def number(self, link: int) -> int:
        """The number of a link."""
        found = self._numbers.get(link)
        if found is None:
            found = self._numbers[link] = self.frames.setdefault(self._frame(link), len(self.frames))
        return found

    def _frame(self, link: int) -> object:
        memory = self._memory
        if memory[link + constants.SHAPE] == constants.FORK_SHAPE:
            frames = memory[link + constants.FORK : link + constants.FORK + int(memory[link])].tolist()
            return tuple([self.number(frame) for frame in frames])
        if memory[link + constants.LEVEL] > constants.MOST_DEPTH:
            raise _TooMuchError
        at, table = int(memory[link + constants.SHAPE]), self._table
        is_object = table[at + layout.KIND] == layout.OBJECTS
        n_bits = int(table[at + layout.N_WORDS] if is_object else (table[at + layout.N_UNIQUE] + 31) >> 5)
        size = constants.FRAME + n_bits
        parent, shape, count, missing, newest, *rest = memory[link : link + size].tolist()
        cells = []
        while newest >= 0:
            self._n_cells -= 1
            if self._n_cells < 0:
                raise _TooMuchError
            cell = memory[newest : newest + constants.CELL].tolist()
            cells.append((cell[2], cell[3], cell[4]))
            newest = cell[0]
        del rest[constants.OPENED - constants.HOLDS : constants.CHANGED + 1 - constants.HOLDS]
        return self.number(parent), shape, count, missing, tuple(cells), *rest


def _memory(n: int) -> Array:
    try:
        return np.zeros(n, np.int32)
    except MemoryError:
        raise LimitError(f"the text takes {4 * n / 1e9:.1f} GB, which is more memory than there is") from None
