"""The state of one text under a schema's tables: its memory, and what is done to it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import as_integer, clip, refuse_argument
from maskwright.analysis.errors import DeadEndError, IllegalTokenError, LimitError, MaskwrightError
from maskwright.decoding.engine.alone import Shared
from maskwright.decoding.engine.arguments import plain_bytes
from maskwright.decoding.engine.quick import NOTHING_QUICK, quick_calls
from maskwright.decoding.schema import constants
from maskwright.decoding.schema.compared import ComparedEntries
from maskwright.decoding.schema.entries import entries
from maskwright.decoding.schema.workspace import Workspace, shared_workspace
from maskwright.maskstore.schema import layout
from maskwright.maskstore.schema.compiled import SchemaTables

Array = npt.NDArray[np.int32]

FIRST_ARENA = 12_000
"""The integers of a new text's arena; with the header and the history 49 KB."""

MOST_INTEGERS = 1 << 30
"""BOUND: the integers of a text's memory, so that all offsets are int32."""

MOST_EXPLAINED = 4_096
"""BOUND: the bytes of a text that an error reads again, at some 10 us a byte."""


def _plainly(entry: Callable[..., Any], *arguments: Any) -> Any:
    return entry(*arguments)


_QUICK = quick_calls(entries)


class SchemaText(Shared):
    """One text under a schema's tables, for one thread at a time.

    store : the tables.
    max_rollback : how many tokens can be taken back.
    workspace : what makes the masks; None for the one that all texts of the vocabulary share.

    Raises: MaskwrightError if the store is none of this kind or max_rollback is no integer or
    negative; LimitError if so much history takes too much memory.
    """

    _what = "this matcher"
    _remedy = "store.matcher() or fork()"

    def __init__(self, store: SchemaTables, max_rollback: int, workspace: Workspace | None = None) -> None:
        if not isinstance(store, SchemaTables):
            refuse_argument("the store", store, "a store of a JSON schema or a pattern, as mw.build_store returns it")
        max_rollback = as_integer("max_rollback", max_rollback)
        if max_rollback < 0:
            raise MaskwrightError(f"max_rollback is {clip(max_rollback)}; expected at least 0")
        self.store = store
        self.max_rollback = max_rollback
        if workspace is None:
            workspace = shared_workspace(store.vocabulary, store.escapes, store.era)
        self._workspace = workspace
        self._voc, self._work = self._workspace.voc, self._workspace.work
        self._table, self._automata = store.table, store.automata
        self._entries: Any = entries
        self._call: Callable[..., Any] = workspace.call
        self._quick = _QUICK
        if store.compares_items:  # the others need not wait for its interpreter
            self._entries, self._call, self._quick = ComparedEntries(store, workspace), _plainly, NOTHING_QUICK
        self._said: list[int | bytes] = []  # the tokens and bytes of the text, in order
        room = max(FIRST_ARENA, 10 * int(self._table[layout.MOST_WORDS]))
        if max_rollback + room > MOST_INTEGERS // 2:
            raise LimitError(
                f"a text that remembers {clip(max_rollback)} tokens takes more memory than can be numbered; give a smaller max_rollback"
            )
        self._bound = self._bound_to(_memory(constants.HISTORY + max_rollback + room), np.zeros(0, np.int32))
        self._call(self._entries.begin, self._table, self._memory, self._work, max_rollback)

    def _bound_to(self, memory: Array, words: Array) -> tuple[npt.NDArray[np.int64], Array, Array]:
        """What `_bound` is with some memory, and words for masks.

        INVARIANT: addresses and what keeps their arrays alive are replaced together, whoever
        interrupts: by one assignment.
        """
        addresses = np.zeros(constants.N_ADDRESSES, np.int64)
        if self._quick is entries:
            entries.note_addresses(self._voc, self._table, self._automata, memory, self._work, words, addresses)
        return addresses, memory, words

    @property
    def _memory(self) -> Array:
        return self._bound[1]

    @property
    def _words(self) -> Array:
        """Where masks are written."""
        return self._bound[2]

    def _give_room(self, tries: int) -> None:
        """Move the text to memory with twice the room for what is in use."""
        if tries > 40 or 2 * len(self._memory) > MOST_INTEGERS:
            raise LimitError(
                f"{self.store.name}: the text takes more than {MOST_INTEGERS:,} integers of memory; it is too long, nested too deeply, or "
                "has too many readings"
            )
        size = len(self._memory) << (tries > 0)
        larger = self._moved(size)
        if 2 * int(larger[constants.TOP]) > size:
            larger = self._moved(2 * size)
        self._bound = self._bound_to(larger, self._words)

    def _moved(self, size: int) -> Array:
        """The text in new memory; its own is left as it is, for whoever interrupts."""
        found = _memory(size)
        entries.move(self._table, self._memory.copy(), found)
        return found

    def _read_token(self, token: int, commit: bool) -> int:
        for tries in itertools.count():
            code = self._call(
                self._entries.read_token,
                self._voc,
                self._table,
                self._automata,
                self._memory,
                self._work,
                token,
                commit,
            )
            if code != constants.NO_ROOM:
                return int(code)
            self._give_room(tries)
        raise AssertionError

    def _read_bytes(self, data: bytes, commit: bool) -> int:
        array = np.frombuffer(data, np.uint8).astype(np.int32)
        for tries in itertools.count():
            code = self._call(
                self._entries.read_bytes, self._table, self._automata, self._memory, self._work, array, commit
            )
            if code != constants.NO_ROOM:
                return int(code)
            self._give_room(tries)
        raise AssertionError

    def _fill(self, words: Array) -> None:
        code = self._fill_code(words)
        if code != constants.OK:
            self._refuse_fill(code)

    def _fill_code(self, words: Array) -> int:
        for tries in itertools.count():
            code = self._call(
                self._entries.fill, self._voc, self._table, self._automata, self._memory, self._work, words
            )
            if code != constants.NO_ROOM:
                return int(code)
            self._give_room(tries)
        raise AssertionError

    def _refuse_fill(self, code: int) -> NoReturn:
        """Raise the error that a result of `fill` means."""
        if code == constants.TOO_MANY:
            self._refuse_readings()
        vocabulary = self.store.vocabulary.name
        if self._can_end():
            raise DeadEndError(
                f"the text is complete under {self.store.name} and no token can come behind it, but vocabulary {vocabulary} has no "
                "end-of-text token to say so: ask is_accepting before fill, or give the vocabulary one"
            )
        allowed = self._next_bytes(b"")
        if not allowed:
            raise DeadEndError(
                f"this text is a dead end under {self.store.name}: another member or item must follow, but all names or values that "
                "could stand here have been used; allow longer names (maxLength, pattern), or ask for fewer members"
            )
        raise DeadEndError(
            f"no token of vocabulary {vocabulary} can come next, and the text is not complete under {self.store.name}. The bytes "
            f"{allowed[:20]!r} may come next, but no token that begins with one of them is legal: use a vocabulary that has them"
        )

    def _can_end(self) -> bool:
        return bool(self._entries.can_end(self._table, self._automata, self._memory) == constants.OK)

    def _refuse_readings(self) -> NoReturn:
        raise LimitError(
            f"{self.store.name} has more than {constants.MOST_READINGS} readings of the text, or of a token behind it: make its "
            "alternatives (anyOf, oneOf) differ earlier, as by a required property with a constant"
        )

    def _refuse(self, token: int | None, code: int, data: bytes = b"") -> NoReturn:
        """Raise the error that a result of compiled code means."""
        vocabulary = self.store.vocabulary
        if code == constants.TOO_MANY:
            self._refuse_readings()
        what = f"bytes {data[:40]!r}" if token is None else f"token {clip(token)}"
        if token is not None and 0 <= token < vocabulary.size:
            data = vocabulary.tokens[token]
            what += f" ({data!r})"
        if code == constants.OUT_OF_RANGE:
            raise IllegalTokenError(f"{what} is out of range: the vocabulary has the ids 0 to {vocabulary.size - 1}")
        if code == constants.AFTER_END:
            raise IllegalTokenError(f"{what} comes after the end of the text: reset() begins a new one")
        if code == constants.NOT_COMPLETE:
            raise IllegalTokenError(f"{what} ends the text, which is not complete here")
        if code == constants.NO_TEXT:
            raise IllegalTokenError(f"{what} stands for no text, so it is never allowed")
        good = self._legal_length(data)
        allowed = self._next_bytes(data[:good])
        shown = ", ".join(repr(allowed[i : i + 1])[1:] for i in range(min(12, len(allowed))))
        more = f" and {len(allowed) - 12} more" if len(allowed) > 12 else ""
        raise IllegalTokenError(
            f"{what} is not legal here under {self.store.name}; the state is unchanged. Byte {good} of it, {data[good : good + 1]!r}, "
            f"cannot come here{self.reason(data[good : good + 1], data[:good])}; allowed: {shown or 'nothing'}{more}"
        )

    def reason(self, refused: bytes, behind: bytes = b"") -> str:
        """Why a byte is refused, such as a missing member, for a message; "" where nobody says.

        behind : legal bytes before it, which were not read.
        """
        from maskwright.decoding.explain.schema_explain import explain_schema_token

        text = self.said() + behind
        if len(text) > MOST_EXPLAINED:
            return ""
        try:
            attempts = explain_schema_token(self.store.texts, self.store.name, text, refused).attempts
        except LimitError:
            return ""
        return ": " + ", or ".join(dict.fromkeys(one.why for one in attempts)) if attempts else ""

    def _legal_length(self, data: bytes) -> int:
        """The greatest number of bytes of some illegal ones that are legal."""
        low, high = 0, len(data) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self._read_bytes(data[:middle], False) == constants.OK:
                low = middle
            else:
                high = middle - 1
        return low

    def _next_bytes(self, data: bytes) -> bytes:
        """The bytes that may come behind some legal ones."""
        return bytes(byte for byte in range(256) if self._read_bytes(data + bytes([byte]), False) == constants.OK)

    def _allows_bytes(self, slot: int, data: bytes) -> bool:
        """Whether some bytes may come next. slot : 0, as for a text of a grammar."""
        return not data or self._read_bytes(data, False) == constants.OK

    def _need_free(self) -> None:
        if self._is_busy:
            self._refuse_sharing()

    def _advance_bytes(self, data: bytes) -> None:
        data = plain_bytes("the text", data)
        if not data:
            return
        try:
            code = self._read_bytes(data, True)
            if code != constants.OK:
                self._refuse(None, code, data)
            self._said.append(data)
        except BaseException:
            self._note_said(data)
            raise

    def _rollback(self, n: int) -> None:
        known = int(self._memory[constants.N_HISTORY])
        n = as_integer("the number of tokens to roll back", n)
        if not 0 <= n <= known:
            raise MaskwrightError(
                f"cannot roll back {clip(n)} tokens: {known} are remembered (max_rollback is {self.max_rollback})"
            )
        if n:
            self._entries.rollback(self._memory, n)
            del self._said[int(self._memory[constants.N_SAID]) :]

    def _note_said(self, added: int | bytes) -> None:
        """After an error or an interruption: what compiled code has read counts as said."""
        n = int(self._memory[constants.N_SAID])
        if n == len(self._said) + 1:
            self._said.append(added)

    def said(self) -> bytes:
        """The bytes of the text so far."""
        tokens = self.store.vocabulary.tokens
        return b"".join(each if isinstance(each, bytes) else tokens[each] for each in self._said)

    @property
    def n_bytes(self) -> int:
        """The bytes of memory that the text's state takes now."""
        return int(self._memory.nbytes)


def _memory(n: int) -> Array:
    try:
        return np.zeros(n, np.int32)
    except MemoryError:
        raise LimitError(f"the text takes {4 * n / 1e9:.1f} GB, which is more memory than there is") from None
