"""The tokens that keep a sequence canonical, token by token."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import as_integer, refuse_argument
from maskwright.analysis.errors import MaskwrightError, VocabularyError
from maskwright.analysis.kept import cached_property
from maskwright.analysis.locks import new_lock
from maskwright.maskstore.canonical.cuts import Course, Cuts
from maskwright.maskstore.canonical.spines import Merges, Neighbours, Words, as_words
from maskwright.maskstore.vocabulary import Vocabulary

KEPT_ROWS = 1_024
"""Rows that are remembered: 16 kB each at V = 131,072."""

MOST_PADDING = 1 << 12
"""Words by which a mask may be longer or shorter: those of ids that stand for no text."""

KEPT_SPOTS = 65_536
"""Steps from spot to spot that are remembered."""

KEPT_GUESSES = 512
"""Guesses whose rows are remembered: 32 kB each at V = 131,072."""

_NUMBERING = new_lock()
"""Held while guesses get a number, since threads share a `CanonicalTokens`."""

FREE = -1
"""Instead of the last token: any made token may stand beside it."""

Spot: TypeAlias = tuple[int, int]
"""Where a sequence stands: the number of its guesses together, and the last token or `FREE`."""


@dataclass(frozen=True, slots=True)
class Guess:
    """Where a sequence of tokens may stand in its text.

    course : where the pre-tokenizer cut the text, as far as is known.
    pending : the bytes of a character under way.
    is_cut : whether a piece begins with that character.
    must_cut : whether a piece must begin with the next token.
    """

    course: Course
    pending: bytes = b""
    is_cut: bool = False
    must_cut: bool = False


@dataclass(frozen=True, slots=True)
class _Spelling:
    """A token as characters: their classes, and the bytes of one more character that it begins."""

    kinds: tuple[int, ...]
    tail: bytes


class CanonicalTokens:
    """Says which tokens keep a sequence what the tokenizer makes of a text. Shared and unchanging.

    A sequence is *canonical* if it is a prefix of what the tokenizer makes of some text. After
    `{"` a token `na` is canonical if some text, such as `{"nab`, is cut so; it need not be the text
    that a grammar asks for.

    vocabulary : the tokenizer's tokens.
    merges : of its BPE.
    cuts : of its pre-tokenizer.
    byte_pieces : byte -> id, for a BPE of characters that spells unknown ones as bytes.
    free : ids that the tokenizer finds in a text before it cuts it (added tokens). The vocabulary's
        special tokens are such too. They may come where a text may end, and a text of its own
        begins behind them.
    whole : whether a piece that is a token is that token, whatever the merges are.

    What is not modelled: a text that spells an added token with other tokens, normal forms (a
    tokenizer that normalises never makes tokens of what is not normal, and this class may take
    them), and characters whose category Python's Unicode version knows otherwise.

    Cost: some 25 us a token to build. Rows come when they are asked for.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        merges: Merges,
        cuts: Cuts,
        *,
        byte_pieces: Mapping[int, int] | None = None,
        free: Iterable[int] = (),
        whole: bool = False,
    ) -> None:
        self.vocabulary = vocabulary
        self._cuts = cuts
        self._neighbours = Neighbours(merges, vocabulary.size)
        self._byte_pieces = dict(byte_pieces or {})
        self._byte_of = {token: byte for byte, token in self._byte_pieces.items()}
        self._ids = merges.ids
        self._free = (vocabulary.special.keys() | set(free)) - set(vocabulary.eos)
        self._whole = whole
        bits = np.zeros(vocabulary.size, np.bool_)
        bits[list(vocabulary.eos)] = True
        self._eos = as_words(bits)
        bits[:] = False
        bits[list(self._free)] = True
        self._free_words = as_words(bits)
        self._made = as_words(self._neighbours.made)
        self._spell_tokens()
        self._guess_rows: OrderedDict[Guess, tuple[Words, Words]] = OrderedDict()
        self._rows: OrderedDict[tuple[int, int], Words] = OrderedDict()
        self._numbers: dict[tuple[Guess, ...], int] = {}
        self._guesses: list[tuple[Guess, ...]] = []
        self._after: OrderedDict[tuple[int, int, int], Spot] = OrderedDict()
        self._moves: dict[tuple[Course, tuple[int, ...], bool], Course | None] = {}

    def __repr__(self) -> str:
        return f"<CanonicalTokens of {self.vocabulary.name}>"

    @cached_property
    def id_of_text(self) -> Mapping[bytes, tuple[int, ...]]:
        """The ids of each token's bytes; byte pieces and added tokens too."""
        found: dict[bytes, tuple[int, ...]] = {}
        ids = [*self._ids.values(), *self._byte_pieces.values(), *self._free]
        for token in sorted(set(ids)):
            if data := self.vocabulary.tokens[token]:
                found[data] = (*found.get(data, ()), token)
        return found

    @cached_property
    def longest(self) -> int:
        """The most bytes of a token."""
        return max(map(len, self.id_of_text), default=0)

    def start(self) -> CanonicalState:
        """The state at the beginning of a text."""
        return CanonicalState(self, self._start)

    def check_belongs(self, vocabulary: Vocabulary) -> None:
        """Check that every id has the same bytes in a model's or a store's vocabulary.

        Either may have more ids at its end, if these stand for no text.

        Raises: VocabularyError if an id differs.
        """
        own, wanted = self.vocabulary.tokens, vocabulary.tokens
        size = min(len(own), len(wanted))
        if own[:size] != wanted[:size] or any(own[size:]) or any(wanted[size:]):
            raise VocabularyError(
                f"the canonical tokens are of tokenizer {self.vocabulary.name}, and the masks of {vocabulary.name}, whose tokens are others"
            )

    @cached_property
    def _start(self) -> Spot:
        return self._number((Guess(self._cuts.start()),)), FREE

    def _number(self, guesses: tuple[Guess, ...]) -> int:
        number = self._numbers.get(guesses)
        if number is None:
            with _NUMBERING:
                number = self._numbers.get(guesses, len(self._guesses))
                if number == len(self._guesses):
                    self._guesses.append(guesses)
                    self._numbers[guesses] = number  # INVARIANT: who finds a number finds its guesses
        return number

    def _spell_tokens(self) -> None:
        """Spell each token in classes; equal spellings share a number, and prefixes a node."""
        numbers: dict[_Spelling, int] = {}
        self._spelling_of = np.full(self.vocabulary.size, -1, np.int32)
        self._continuing: list[int] = []
        """Tokens that may go on with a character under way."""
        usable = self._neighbours.made.copy()
        if self._whole:
            usable[list(self._ids.values())] = True
        for token in np.flatnonzero(usable).tolist():
            data = self.vocabulary.tokens[token]
            spelling = self._spell(data)
            if spelling is not None:
                self._spelling_of[token] = numbers.setdefault(spelling, len(numbers))
            if 0x80 <= data[0] < 0xC0:
                self._continuing.append(token)
        self._spellings = list(numbers)
        self._usable = usable

    def _spell(self, data: bytes) -> _Spelling | None:
        """The characters of bytes, the last maybe unfinished; None if it is no text."""
        try:
            text, tail = data.decode(), b""
        except UnicodeDecodeError as error:
            if error.end != len(data) or error.reason != "unexpected end of data":
                return None
            text, tail = data[: error.start].decode(), data[error.start :]
        return _Spelling(
            tuple(self._cuts.classes[[ord(character) for character in text]].tolist()) if text else (), tail
        )

    def row(self, spot: Spot) -> Words:
        """(ceil(V / 32),) uint32, read-only: the tokens that keep a sequence canonical."""
        row = self._rows.get(spot)
        if row is None:
            row = self._make_row(self._guesses[spot[0]], spot[1])
            row.setflags(write=False)
            self._rows[spot] = row
            if len(self._rows) > KEPT_ROWS:
                self._rows.popitem(last=False)
        return row

    def narrow(self, spot: Spot, words: npt.NDArray[np.int32] | npt.NDArray[np.uint32]) -> None:
        """Take out of a mask, which may have fewer or more words than a row, what the row lacks."""
        row = self.row(spot)
        own = words.view(np.uint32)
        if len(own) != len(row):
            own[len(row) :] = 0
            own, row = own[: len(row)], row[: len(own)]
        np.bitwise_and(own, row, out=own)

    def can_end(self, spot: Spot) -> bool:
        """Whether a sequence is all that the tokenizer makes of its text."""
        return any(not guess.pending and self._cuts.can_end(guess.course) for guess in self._guesses[spot[0]])

    def _make_row(self, guesses: tuple[Guess, ...], last: int) -> Words:
        row = np.zeros_like(self._made)
        beside = self._made if last == FREE else self._neighbours.after(last)
        for guess in guesses:
            cut, uncut = self._of_guess(guess)
            row |= cut
            row |= uncut & beside
            if self._byte_pieces:
                row |= self._bytes_after(guess.pending)
            if not guess.pending and self._cuts.can_end(guess.course):
                row |= self._eos
                row |= self._free_words
        return row

    def _of_guess(self, guess: Guess) -> tuple[Words, Words]:
        """The tokens with which a piece begins, and those that go on with one."""
        found = self._guess_rows.get(guess)
        if found is None:
            size = self.vocabulary.size
            bits = np.zeros((2, size), np.bool_)
            if guess.pending:
                for token in self._continuing if not self._byte_pieces else ():
                    bits[1, token] = bool(self._moved(guess, token, self.vocabulary.tokens[token], False))
            else:
                for cut in (True, False):
                    if not (guess.must_cut and not cut):
                        bits[1 - cut] = self._all_fit(guess.course, cut)[self._spelling_of]
                if self._whole:
                    bits[1] &= self._neighbours.made
            found = self._guess_rows[guess] = as_words(bits[0]), as_words(bits[1])
            if len(self._guess_rows) > KEPT_GUESSES:
                self._guess_rows.popitem(last=False)
        return found

    def _bytes_after(self, pending: bytes) -> Words:
        """The byte pieces that may come behind the bytes of a character under way."""
        bits = np.zeros(self.vocabulary.size, np.bool_)
        for byte, token in self._byte_pieces.items():
            bits[token] = self._may_begin_unknown(pending + bytes((byte,)))
        return as_words(bits)

    def _may_begin_unknown(self, data: bytes) -> bool:
        """Whether a character that is no token begins with these bytes, or is these bytes."""
        spelling = self._spell(data)
        if spelling is None:
            return False
        if not spelling.tail:
            return len(spelling.kinds) == 1 and data not in self._ids
        return not spelling.kinds and any(chr(code).encode() not in self._ids for code in _completions(data))

    def _all_fit(self, course: Course, cut: bool) -> npt.NDArray[np.bool_]:
        """(spellings + 1,) bool: `_fits` of every spelling, and False.

        All spellings are followed at once, a character at a time: they are at few courses.
        """
        known: list[Course] = [course]
        numbers = {course: 0}
        n_kinds = self._cuts.n_classes
        at = np.zeros(len(self._spellings) + 1, np.int64)
        at[-1] = -1
        for column, (rows, kinds) in enumerate(self._columns):
            alive = at[rows] >= 0
            rows, kinds = rows[alive], kinds[alive]
            keys, where = np.unique(at[rows] * n_kinds + kinds, return_inverse=True)
            then = np.empty(len(keys), np.int64)
            for i, key in enumerate(keys.tolist()):
                found = self._follow(known[key // n_kinds], (key % n_kinds,), cut and column == 0)
                then[i] = -1 if found is None else numbers.setdefault(found, len(known))
                if then[i] == len(known):
                    assert found is not None
                    known.append(found)
            at[rows] = then[where.reshape(-1)]
        fits: dict[tuple[int, bytes, bool], bool] = {}
        for number, tail, is_first in self._tails:
            if at[number] >= 0:
                key_of_tail = int(at[number]), tail, cut and is_first
                if key_of_tail not in fits:
                    fits[key_of_tail] = self._may_go_on(known[key_of_tail[0]], tail, key_of_tail[2])
                if not fits[key_of_tail]:
                    at[number] = -1
        return at >= 0

    @cached_property
    def _columns(self) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """For each index in a token: the spellings that are so long, and their characters there."""
        columns: list[tuple[list[int], list[int]]] = []
        for number, spelling in enumerate(self._spellings):
            for column, kind in enumerate(spelling.kinds):
                if column == len(columns):
                    columns.append(([], []))
                columns[column][0].append(number)
                columns[column][1].append(kind)
        return [(np.array(rows), np.array(kinds)) for rows, kinds in columns]

    @cached_property
    def _tails(self) -> list[tuple[int, bytes, bool]]:
        """The spellings that end within a character: number, its bytes, whether it is the first."""
        return [(number, found.tail, not found.kinds) for number, found in enumerate(self._spellings) if found.tail]

    def _fits(self, course: Course, spelling: _Spelling, cut: bool) -> bool:
        if not spelling.kinds:
            return self._may_go_on(course, spelling.tail, cut)
        then = self._follow(course, spelling.kinds, cut)
        return then is not None and (not spelling.tail or self._may_go_on(then, spelling.tail, False))

    def _follow(self, course: Course, kinds: tuple[int, ...], cut: bool) -> Course | None:
        """The course after characters, of which a piece may begin with the first only."""
        key = course, kinds, cut
        if key in self._moves:
            return self._moves[key]
        if len(kinds) > 1:
            before = self._follow(course, kinds[:-1], cut)
            then = None if before is None else self._follow(before, kinds[-1:], False)
        else:
            then = self._cuts.step(course, kinds[0], cut)
            if then is not None and not self._cuts.is_possible(then):
                then = None
        self._moves[key] = then
        return then

    def _may_go_on(self, course: Course, tail: bytes, cut: bool) -> bool:
        """Whether some character that begins with the bytes may come."""
        codes = _completions(tail)
        kinds = np.unique(self._cuts.classes[codes.start : codes.stop]).tolist()
        return any(self._follow(course, (kind,), cut) is not None for kind in kinds)

    def _moved(self, guess: Guess, token: int, data: bytes, cut: bool) -> Guess | None:
        """The guess after a token, if a piece begins with it, or none does."""
        if guess.pending:
            cut = guess.is_cut
        elif guess.must_cut and not cut:
            return None
        spelling = self._spell(guess.pending + data)
        if spelling is None or not self._fits(guess.course, spelling, cut):
            return None
        is_whole = self._whole and not self._neighbours.made[token]
        if is_whole and (not cut or spelling.tail):
            return None
        course, is_cut = guess.course, cut
        if spelling.kinds:
            then = self._follow(course, spelling.kinds, cut)
            assert then is not None
            course, is_cut = then, False
        return Guess(course, spelling.tail, is_cut and bool(spelling.tail), is_whole)

    def after(self, spot: Spot, token: int) -> Spot:
        """Where a sequence stands after a token of its `row`."""
        key = (*spot, token)
        found = self._after.get(key)
        if found is None:
            found = self._after[key] = self._step(self._guesses[spot[0]], spot[1], token)
            if len(self._after) > KEPT_SPOTS:
                self._after.popitem(last=False)
        return found

    def _step(self, guesses: tuple[Guess, ...], last: int, token: int) -> Spot:
        if token in self._free or token in self.vocabulary.eos:
            return self._start
        if token in self._byte_of:
            return self._number((self._after_byte(guesses[0], self._byte_of[token]),)), FREE
        beside = last == FREE or bool(self._neighbours.after(last)[token >> 5] >> (token & 31) & 1)
        found = [
            self._moved(guess, token, self.vocabulary.tokens[token], cut)
            for guess in guesses
            for cut in ((False,) if guess.pending else (True, False))
            if cut or beside
        ]
        return self._number(tuple(dict.fromkeys(guess for guess in found if guess is not None))), token

    def _after_byte(self, guess: Guess, byte: int) -> Guess:
        """The guess after a byte piece; characters that are spelled so stand in one piece only."""
        spelling = self._spell(guess.pending + bytes((byte,)))
        assert spelling is not None
        if spelling.tail:
            return Guess(guess.course, spelling.tail)
        then = self._cuts.step(guess.course, spelling.kinds[0], guess.course == self._cuts.start())
        assert then is not None
        return Guess(then)


def _completions(data: bytes) -> range:
    """The code points of the characters whose UTF-8 begins with these bytes; they are in a row."""
    missing = (2 if data[0] < 0xE0 else 3 if data[0] < 0xF0 else 4) - len(data)
    low = data[0] & (0x1F if data[0] < 0xE0 else 0x0F if data[0] < 0xF0 else 0x07)
    for byte in data[1:]:
        low = low << 6 | byte & 0x3F
    first, last = low << 6 * missing, (low + 1) << 6 * missing
    least = 0x80 if data[0] < 0xE0 else 0x800 if data[0] < 0xF0 else 0x10000
    return range(max(first, least), min(last, 0x110000))


class CanonicalState:
    """Where one sequence of tokens stands. `CanonicalTokens.start` makes one.

    >>> from maskwright.maskstore.canonical import load_canonical
    >>> state = load_canonical("python-tiny").start()
    >>> ids = state.tokens.vocabulary.id_of_text
    >>> state.advance(ids[b"d"])
    >>> state.is_canonical(ids[b"e"]), state.is_canonical(ids[b"z"])
    (False, True)
    """

    def __init__(self, tokens: CanonicalTokens, spot: Spot) -> None:
        self.tokens = tokens
        self._history = [spot]

    @property
    def spot(self) -> Spot:
        """Where the sequence stands."""
        return self._history[-1]

    def narrow(self, words: npt.NDArray[np.int32] | npt.NDArray[np.uint32]) -> None:
        """Take the tokens out of a mask that do not keep the sequence canonical.

        words : (ceil(V / 32),) int32 or uint32, as a matcher fills it; changed in place. It may be
            shorter or longer by ids that stand for no text, which it then lacks.

        Raises: MaskwrightError if it is no such array, or read-only.
        """
        size = (self.tokens.vocabulary.size + 31) // 32
        if not isinstance(words, np.ndarray):
            refuse_argument("the mask", words, f"an array, ({size},) int32")
        if words.dtype.char not in "iIlL" or words.itemsize != 4 or words.ndim != 1:
            raise MaskwrightError(
                f"the mask has the shape {words.shape} and type {words.dtype}; expected ({size},) int32"
            )
        if abs(len(words) - size) > MOST_PADDING or not words.flags.writeable:
            raise MaskwrightError(
                f"the mask has {len(words)} words, or is read-only; expected {size} that can be written"
            )
        self.tokens.narrow(self._history[-1], words)

    def is_canonical(self, token: int) -> bool:
        """Whether the sequence stays canonical with this token behind it."""
        token = as_integer("token", token)
        if not 0 <= token < self.tokens.vocabulary.size:
            return False
        return bool(self.tokens.row(self._history[-1])[token >> 5] >> (token & 31) & 1)

    def can_end(self) -> bool:
        """Whether the sequence is all that the tokenizer makes of its text."""
        return self.tokens.can_end(self._history[-1])

    def advance(self, token: int) -> None:
        """Read one token. Behind a special token, end of text too, a text of its own begins.

        Raises: MaskwrightError if it does not keep the sequence canonical. Nothing has changed.
        """
        if not self.is_canonical(token):
            raise MaskwrightError(f"token {token} is not canonical here: the tokenizer cuts no text so")
        self._history.append(self.tokens.after(self._history[-1], token))

    def restart(self) -> None:
        """Read a token that is not canonical: what follows is canonical as a text of its own."""
        self._history.append(self.tokens.start().spot)

    def rollback(self, n: int = 1) -> None:
        """Take back the last n tokens.

        Raises: MaskwrightError if there are fewer.
        """
        n = as_integer("n", n)
        if not 0 <= n < len(self._history):
            raise MaskwrightError(f"cannot take back {n} tokens of {len(self._history) - 1}")
        del self._history[len(self._history) - n :]

    def fork(self) -> CanonicalState:
        """An independent copy."""
        copy = CanonicalState(self.tokens, self._history[-1])
        copy._history = self._history.copy()
        return copy
