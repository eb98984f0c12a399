"""The exact bytes of every token id of a tokenizer; nothing about how a text is cut into tokens."""

from __future__ import annotations

import hashlib
import itertools
import logging
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import a_type, as_integer, clip, need_type, printable
from maskwright.analysis.errors import VocabularyError
from maskwright.analysis.kept import cached_property
from maskwright.maskstore.vocabulary.sorted_texts import SortedTexts, flatten, sorted_texts
from maskwright.maskstore.vocabulary.tokenizer_values import BUILT_IN as BUILT_IN
from maskwright.maskstore.vocabulary.tokenizer_values import encode_text

if TYPE_CHECKING:
    from maskwright.maskstore.vocabulary.tokenizer_table import TokenTable

LONGEST_TOKEN = 1 << 14
"""The most bytes that a token may have. The longest of real tokenizers have some hundreds."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, repr=False)
class Vocabulary:
    """A tokenizer's tokens: id i adds the bytes tokens[i] to a text, or nothing if they are b"".

    name : str; what it was loaded as. Not part of the digest, and not compared by ==.
    tokens : tuple of V byte strings, by token id. b"" for ids that stand for no text (special,
        control, unused, padding).
    special : id -> name of the special and control tokens; read-only, ids ascending.
    eos : the ids that end a text, ascending. All of them are special.
    byte_pieces : ids of byte-fallback pieces such as `<0x0A>`; empty for byte-level tokenizers.
    checked : True if the tokenizer's own encoder was available at loading, and these bytes gave
        back the sample texts that it encoded. False if there was no encoder: its package is not
        installed (also logged at level DEBUG), or the vocabulary was made of bytes, of arrays, or
        of another vocabulary. Not part of the digest, and not compared by ==.

    Two ids may have equal bytes (a byte piece and a normal piece). That is common and legal.

    Unit: a token is bytes, not characters. It may hold a part of a UTF-8 sequence. A SentencePiece
    `▁` is the byte 0x20, wherever it stands. Most SentencePiece tokenizers put such a space before
    the first word of a text (the dummy prefix), and remove it when they decode. That is a habit at
    the start of a text, not a property of the token, so it is not applied here. The first token
    generated may therefore be b" def" where the text shows "def".

    Raises: VocabularyError if an argument has the wrong type, an id of `special`, `eos` or
    `byte_pieces` is out of range, a special id has bytes, an eos id is not special, a byte piece is
    not one byte, a name holds half a surrogate pair, or a token has more than 16,384 bytes.
    Cost: O(total bytes) to build.

    >>> vocabulary = Vocabulary("ab", (b"", b"a", b"b", b"ab"), {0: "</s>"}, (0,))
    >>> vocabulary
    <Vocabulary ab: 4 ids, 1 special, eos 0>
    >>> vocabulary.text_ids()
    array([1, 2, 3], dtype=int32)
    """

    name: str = field(compare=False)
    tokens: tuple[bytes, ...]
    special: Mapping[int, str]
    eos: tuple[int, ...]
    byte_pieces: frozenset[int] = frozenset()
    checked: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        need_type("a vocabulary's name", self.name, str, "a str", VocabularyError)
        encode_text(self.name, "a vocabulary's name")
        need_type(f"{self.name}: tokens", self.tokens, Sequence, "a tuple of bytes", VocabularyError)
        need_type(f"{self.name}: special", self.special, Mapping, "names of tokens by their ids", VocabularyError)
        for what, group in (("eos", self.eos), ("byte_pieces", self.byte_pieces)):
            need_type(f"{self.name}: {what}", group, Collection, "tokens' ids", VocabularyError)
        for what, ids in (("special", self.special), ("eos", self.eos), ("byte_pieces", self.byte_pieces)):
            for token in ids:
                if not 0 <= as_integer(f"{self.name}: an id of {what}", token, VocabularyError) < self.size:
                    raise VocabularyError(f"{self.name}: {what} has id {token}, expected 0 to {self.size - 1}")
        for token, special_name in self.special.items():
            need_type(f"{self.name}: the name of special token {token}", special_name, str, "a str", VocabularyError)
            encode_text(special_name, f"{self.name}: the name of special token {token}")
            if self.tokens[token]:
                raise VocabularyError(
                    f"{self.name}: token {token} is special ({special_name!r}) but has the bytes "
                    f"{self.tokens[token]!r}; a special token stands for no text: give it b''"
                )
        for token in self.eos:
            if token not in self.special:
                raise VocabularyError(
                    f"{self.name}: eos token {token} stands for the text {self.tokens[token]!r}; "
                    "a token that ends a text must be special"
                )
        for token in self.byte_pieces:
            if len(self.tokens[token]) != 1:
                raise VocabularyError(
                    f"{self.name}: byte piece {token} has the bytes {self.tokens[token]!r}, expected one byte"
                )
        is_good = {*map(type, self.tokens)} <= {bytes} and max(map(len, self.tokens), default=0) <= LONGEST_TOKEN
        for number, text in enumerate(() if is_good else self.tokens):
            need_type(f"{self.name}: token {number}", text, bytes, "bytes", VocabularyError)
            if len(text) > LONGEST_TOKEN:
                raise VocabularyError(
                    f"{self.name}: token {number} has {len(text):,} bytes ({text[:12]!r}...), and a token can have at most "
                    f"{LONGEST_TOKEN:,}: a store follows each token byte by byte; leave it out (b'' stands for no text), or check "
                    "that the tokens were not joined"
                )
        object.__setattr__(self, "special", MappingProxyType(dict(sorted(self.special.items()))))
        object.__setattr__(self, "tokens", tuple(self.tokens))
        object.__setattr__(self, "eos", tuple(sorted(set(self.eos))))
        object.__setattr__(self, "byte_pieces", frozenset(self.byte_pieces))

    def __repr__(self) -> str:
        eos = " ".join(map(str, self.eos)) or "none"
        return f"<Vocabulary {printable(self.name)}: {self.size} ids, {len(self.special)} special, eos {eos}>"

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple[Any, ...]:
        # A read-only mapping cannot be pickled or copied. Engines send vocabularies to worker
        # processes, so we give a plain dict instead.
        return type(self), (self.name, self.tokens, dict(self.special), self.eos, self.byte_pieces, self.checked)

    @classmethod
    def from_tokens(
        cls,
        tokens: Sequence[bytes],
        *,
        eos: Iterable[str | int] = (),
        special: Mapping[str, int] | None = None,
        name: str = "<tokens>",
    ) -> Vocabulary:
        """The vocabulary whose id i stands for tokens[i]; b"" for an id that stands for no text.

        tokens : the bytes of each token, by id.
        eos : ids or names of the tokens that end a text. They become special, and stand for no
            text. Without eos no mask ever allows an end.
        special : name -> id of other special tokens.
        name : what to call the vocabulary.

        Raises: VocabularyError if a token is not bytes, no token has text, or `special` or `eos`
        does not fit.

        >>> Vocabulary.from_tokens([b"<eos>", b"a", b"b", b"ab"], eos=[0])
        <Vocabulary <tokens>: 4 ids, 1 special, eos 0>
        """
        return load_vocabulary(tokens, eos=eos, special=special, name=name)

    @property
    def size(self) -> int:
        """V, the number of ids, padding included."""
        return len(self.tokens)

    @property
    def is_byte_complete(self) -> bool:
        """True if every single byte is a token, so that tokens can spell every byte string."""
        return {bytes((byte,)) for byte in range(256)} <= set(self.tokens)

    @cached_property
    def digest(self) -> str:
        """SHA-256, in hex, of all arrays of `to_arrays`.

        Equal digests mean equal ids, bytes, special and eos tokens. The digest does not depend on
        the name, the source, or the hash seed.

        Cost: O(total bytes), once.
        """
        state = hashlib.sha256(b"maskwright vocabulary 1\n")
        for key, array in sorted(self.to_arrays().items()):
            state.update(f"{key} {array.dtype.str} {len(array)}\n".encode())
            state.update(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
        return state.hexdigest()

    def first_difference(self, other: Vocabulary) -> int | None:
        """The first id with other bytes in another vocabulary, if any. Ids that lack have none."""
        both = itertools.zip_longest(self.tokens, other.tokens, fillvalue=b"")
        return next((token for token, (own, theirs) in enumerate(both) if own != theirs), None)

    def text_ids(self) -> npt.NDArray[np.int32]:
        """The ids whose bytes are not empty: (n,) int32, ascending.

        Beside the eos tokens, these are the only ids that a mask can allow.
        """
        return self._text_ids

    @cached_property
    def _text_ids(self) -> npt.NDArray[np.int32]:
        ids = np.flatnonzero(np.diff(self.flat[0])).astype(np.int32)
        ids.setflags(write=False)
        return ids

    @cached_property
    def flat(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
        """Where each token begins, (V + 1,) int64; and the bytes of all tokens, by id, uint8.

        Both are read-only.
        """
        offsets, data = flatten(self.tokens)
        offsets.setflags(write=False)
        return offsets, data

    @cached_property
    def flat_words(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """`flat` as a table has it: both int32, and the bytes padded with zeros to whole words.

        BOUND: the bytes are fewer than 2 GiB.
        """
        offsets, data = self.flat
        words = np.pad(data, (0, -len(data) % 4)).view("<i4").astype(np.int32, copy=False)
        found = offsets.astype(np.int32), words
        for array in found:
            array.setflags(write=False)
        return found

    @cached_property
    def sorted_texts(self) -> SortedTexts:
        """The tokens that stand for text, sorted by their bytes.

        Cost: O(total bytes) and a sort, once: 0.1 s at V = 131,072.
        """
        ids = self.text_ids()
        return sorted_texts([self.tokens[i] for i in ids.tolist()], ids)

    @cached_property
    def id_of_text(self) -> Mapping[bytes, int]:
        """The first id of each token's bytes, of those that are not empty."""
        texts = self.sorted_texts
        ids = texts.ids.tolist()
        return MappingProxyType(dict(zip(reversed(texts.texts), reversed(ids), strict=True)))

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The vocabulary as flat arrays, for a safetensors file. `from_arrays` is the inverse.

        The name and `checked` are not kept. The arrays:

        token_offsets : (V + 1,) int64; token i is token_bytes[token_offsets[i] : token_offsets[i +
            1]].
        token_bytes : (total,) uint8; the bytes of all tokens, by id.
        special_ids : (n_special,) int32, ascending.
        special_offsets : (n_special + 1,) int64; where each name begins in `special_bytes`.
        special_bytes : (total,) uint8; the names in UTF-8.
        eos, byte_pieces : (n,) int32, ascending.
        """
        token_offsets, token_bytes = self.flat
        special_offsets, special_bytes = flatten([name.encode() for name in self.special.values()])
        return {
            "token_offsets": token_offsets,
            "token_bytes": token_bytes,
            "special_ids": np.array(list(self.special), dtype=np.int32),
            "special_offsets": special_offsets,
            "special_bytes": special_bytes,
            "eos": np.array(self.eos, dtype=np.int32),
            "byte_pieces": np.array(sorted(self.byte_pieces), dtype=np.int32),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], *, name: str) -> Self:
        """The vocabulary that `to_arrays` wrote, checked: the arrays may come from a hostile file.

        arrays : as `to_arrays` names them.
        name : what to call the vocabulary; messages begin with it.

        Raises: VocabularyError if an array is missing, has another dtype or shape, or indexes out
        of range; and as `Vocabulary`.
        """
        tokens = _unflatten(arrays, "token_offsets", "token_bytes", name)
        names = _unflatten(arrays, "special_offsets", "special_bytes", name)
        ids = _array(arrays, "special_ids", np.int32, name).tolist()
        if len(ids) != len(names) or len(set(ids)) != len(ids):
            raise VocabularyError(
                f"{name}: special_ids has {len(set(ids))} different ids for {len(names)} names; the file is damaged"
            )
        try:
            special = {token: special.decode() for token, special in zip(ids, names, strict=True)}
        except UnicodeDecodeError as error:
            raise VocabularyError(f"{name}: special_bytes is not UTF-8 ({error}); the file is damaged") from None
        eos = _array(arrays, "eos", np.int32, name).tolist()
        byte_pieces = _array(arrays, "byte_pieces", np.int32, name).tolist()
        return cls(name, tuple(tokens), special, tuple(eos), frozenset(byte_pieces))


VocabularySource: TypeAlias = Vocabulary | str | os.PathLike[str] | Sequence[bytes] | object
"""A vocabulary, or anything that `load_vocabulary` takes."""


def load_vocabulary(
    source: str | os.PathLike[str] | object,
    *,
    size: int | None = None,
    name: str | None = None,
    special: Mapping[str, int] | None = None,
    eos: Iterable[str | int] | None = None,
) -> Vocabulary:
    """The vocabulary of a tokenizer, given by name, file, folder or object, or by its tokens.

    source : one of
        a built-in name: `python-tiny`, which the bundled model reads, or `mistral-7b-v0.1`,
            `mistral-7b-v0.3`, `tekken` (files of the package mistral-common);
        a file, recognised by its content: a SentencePiece model, tekken json, tiktoken ranks, or a
            Hugging Face `tokenizer.json`;
        a folder with one of these; `tokenizer_config.json`, `special_tokens_map.json`,
            `added_tokens.json` and `generation_config.json` beside it give added, special and eos
            tokens;
        an object of transformers, tokenizers, sentencepiece, tiktoken or mistral-common;
        a list of bytes, token by token (see `Vocabulary.from_tokens`);
        a Vocabulary, or what has one: a store, or the model that `load_model` returns.
    size : V, in tokens, if the model's embedding has more rows than the tokenizer has ids. The
        additional ids stand for b"".
    name : what to call it. Default: the built-in name, the name of the file or folder, the type of
        the object, "<tokens>" for a list, or the name of the given Vocabulary.
    special : name -> id of special tokens, added to those of the source (a tiktoken rank file names
        none).
    eos : ids or names of the tokens that end a text. They replace those of the source, and become
        special.

    A token's bytes are what the tokenizer's decoder makes of it in the middle of a text. If the
    tokenizer's own encoder is installed, it encodes sample texts, and the result must agree with
    these bytes (see `Vocabulary.checked`).

    Raises: UnknownNameError if the source is neither a built-in name nor a path; MissingExtraError
    if the package that reads it is not installed; VocabularyError if the source cannot be read
    exactly, or `size`, `special` or `eos` does not fit it.
    Cost: O(file). Mistral 7B v0.1 takes some 50 ms, tekken some 400 ms.
    """
    # PERF: a store has its vocabulary, so who loads one need not wait for what reads tokenizers
    from maskwright.maskstore.vocabulary.tokenizer_files import locate, read_path
    from maskwright.maskstore.vocabulary.tokenizer_objects import read_object
    from maskwright.maskstore.vocabulary.tokenizer_table import TokenTable, check_round_trip

    need_type("name", name, (str, NoneType), "a str or None", VocabularyError)
    size = None if size is None else as_integer("size", size, VocabularyError)
    named = _special(special)
    source = held if isinstance(held := getattr(source, "vocabulary", None), Vocabulary) else source
    if isinstance(source, str | os.PathLike):
        path, found_name = locate(source)
        table = read_path(path, named)
    elif isinstance(source, Vocabulary):
        if size is None and name is None and special is None and eos is None:
            return source
        found_name = source.name
        table = TokenTable(
            source.name, list(source.tokens), dict(source.special), set(source.eos), set(source.byte_pieces)
        )
        table.name_special({token: name for name, token in named.items()})
    elif isinstance(source, list | tuple):
        found_name = "<tokens>"
        table = _table_of_tokens(source, named)
    else:
        found_name = type(source).__name__
        table = read_object(source)
        table.name_special({token: name for name, token in named.items()})
    if eos is not None:
        table.set_eos(eos)
    checked = check_round_trip(table)
    if not checked:
        _logger.debug("%s: no encoder of this tokenizer is installed; its tokens were not checked", table.where)
    if size is not None:
        table.pad(size)
    found = tuple(table.tokens), table.special, tuple(table.eos), frozenset(table.byte_pieces)
    return Vocabulary(name or found_name, *found, checked)


def _special(special: Mapping[str, int] | None) -> dict[str, int]:
    expected = "names of tokens with their ids, as in {'<pad>': 0}"
    if special is None:
        return {}
    need_type("special", special, Mapping, expected, VocabularyError)
    for name in special:
        need_type("a name in special", name, str, expected, VocabularyError)
    names: dict[int, str] = {}
    for name, token in special.items():
        number = as_integer(f"special: the id of {clip(name)}", token, VocabularyError)
        if number in names:
            raise VocabularyError(
                f"special gives id {number} to {clip(names[number])} and to {clip(name)}; one is enough"
            )
        names[number] = name
    return {name: number for number, name in names.items()}


def post_tokens(vocabulary: Vocabulary) -> list[tuple[int, bytes]]:
    """(id, bytes) of each token as the streamlining post reads it: without leading spaces.

    Special and byte pieces are left out. All leading spaces of a piece go (`▁▁x` becomes `x`), and
    a piece of spaces only is left out. Mistral-7B v0.1: 32,000 ids - 3 special - 256 byte pieces -
    15 pieces of spaces only = 31,726. If only one space were stripped, 14 of the 15 would stay:
    31,740. Decoding does not use this reading. It uses the true bytes of all tokens.

    >>> tokens = (b"", b" a", b"  ", b"a", b"\\n")
    >>> post_tokens(Vocabulary("v", tokens, {0: "</s>"}, (0,), frozenset({4})))
    [(1, b'a'), (3, b'a')]
    """
    stripped = ((i, token.lstrip(b" ")) for i, token in enumerate(vocabulary.tokens) if i not in vocabulary.byte_pieces)
    return [(i, token) for i, token in stripped if token]


def as_vocabulary(source: VocabularySource) -> Vocabulary:
    """The vocabulary itself, or what `load_vocabulary` makes of a name, path, tokenizer or list.

    Raises: as `load_vocabulary`.
    """
    return source if isinstance(source, Vocabulary) else load_vocabulary(source)


def _table_of_tokens(tokens: Sequence[object], special: Mapping[str, int]) -> TokenTable:
    found: dict[int, bytes] = {}
    for token, data in enumerate(tokens):
        if not isinstance(data, bytes | bytearray):
            hint = "; encode it: a token is bytes, and may hold a part of a character" if isinstance(data, str) else ""
            raise VocabularyError(f"<tokens>: token {token} is {a_type(data)}; expected bytes{hint}")
        found[token] = bytes(data)
    from maskwright.maskstore.vocabulary.tokenizer_table import TokenTable

    named = {token: name for name, token in special.items()}
    return TokenTable.from_ids("<tokens>", found, named, "give at least one token of one byte or more")


def _unflatten(arrays: Mapping[str, npt.NDArray[Any]], offsets_key: str, bytes_key: str, name: str) -> list[bytes]:
    offsets = _array(arrays, offsets_key, np.int64, name)
    data = _array(arrays, bytes_key, np.uint8, name).tobytes()
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(data) or np.any(offsets[1:] < offsets[:-1]):
        raise VocabularyError(
            f"{name}: {offsets_key} does not ascend from 0 to {len(data)}, the length of {bytes_key}; "
            "the file is damaged"
        )
    ends = offsets.tolist()
    return [data[start:end] for start, end in itertools.pairwise(ends)]


def _array(arrays: Mapping[str, npt.NDArray[Any]], key: str, dtype: type[np.generic], name: str) -> npt.NDArray[Any]:
    if key not in arrays:
        raise VocabularyError(f"{name}: no array {key!r}; the file is damaged or not a vocabulary")
    array = arrays[key]
    if array.dtype != dtype or array.ndim != 1:
        raise VocabularyError(
            f"{name}: array {key!r} is {array.dtype} with {array.ndim} dimensions, expected {np.dtype(dtype)} with 1"
        )
    return array
