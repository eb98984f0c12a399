"""The bytes that every token id of a tokenizer stands for, exactly; nothing about how a text is cut into tokens."""

from __future__ import annotations

import difflib
import hashlib
import importlib.util
import itertools
import logging
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType, NoneType
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import clip, integer, need_type
from maskwright.analysis.errors import MissingExtraError, UnknownNameError, VocabularyError
from maskwright.maskstore.vocabulary.tokenizer_files import read_path
from maskwright.maskstore.vocabulary.tokenizer_objects import read_object
from maskwright.maskstore.vocabulary.tokenizer_table import TokenTable, check_round_trip

LONGEST_TOKEN = 1 << 14
"""Bytes of the longest token of a vocabulary. Real tokenizers' longest have some hundreds."""

_logger = logging.getLogger(__name__)

#: Built-in name -> (package, file or folder inside it). Those of Mistral come with mistral-common (Apache-2.0).
BUILT_IN: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "mistral-7b-v0.1": ("mistral_common", "data/tokenizer.model.v1"),
        "mistral-7b-v0.3": ("mistral_common", "data/mistral_instruct_tokenizer_240323.model.v3"),
        "tekken": ("mistral_common", "data/tekken_240911.json"),
        "python-tiny": ("maskwright.models", "python-tiny"),
    }
)


@dataclass(frozen=True, repr=False)
class Vocabulary:
    """tokens[id] is the byte string that id adds to a text; b"" where it adds none.

    name : what it was loaded as; not part of the digest and not of equality
    tokens : index = token id; b"" for ids that stand for no text (special, control, unused, padding)
    special : id -> name of the special and control tokens, read-only, ids ascending
    eos : the ids that end a text, ascending; all of them are special
    byte_pieces : ids of byte-fallback pieces such as `<0x0A>`; empty for byte-level tokenizers
    checked : True if the tokenizer's own encoder was at hand when it was loaded and gave the sample texts back through
        these bytes; False if it was not installed (also logged at level DEBUG). Not part of the digest or of equality.

    Two ids may have equal bytes (a byte piece and a normal piece); that is common and legal.

    Units: a token is bytes, not characters: it may hold a part of a UTF-8 sequence. A SentencePiece `▁` is the byte
    0x20, wherever it stands. That most SentencePiece tokenizers put such a space before the first word of a text (the
    dummy prefix) and take it away again when they decode is a habit of theirs at the start of a text, not a property
    of the token, and is not applied here: the first token generated may be b" def" where the text shows "def".

    Raises: VocabularyError if an id of `special`, `eos` or `byte_pieces` is out of range, a special id has bytes, an
    eos id is not special, a byte piece is not one byte, or a token has more than 16,384 bytes.
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
        need_type(f"{self.name}: tokens", self.tokens, Sequence, "a tuple of bytes", VocabularyError)
        need_type(f"{self.name}: special", self.special, Mapping, "names of tokens by their ids", VocabularyError)
        for what, group in (("eos", self.eos), ("byte_pieces", self.byte_pieces)):
            need_type(f"{self.name}: {what}", group, Collection, "tokens' ids", VocabularyError)
        size = len(self.tokens)
        for what, ids in (("special", self.special), ("eos", self.eos), ("byte_pieces", self.byte_pieces)):
            for token in ids:
                if not 0 <= integer(f"{self.name}: an id of {what}", token, VocabularyError) < size:
                    raise VocabularyError(f"{self.name}: {what} has id {token}, expected 0 to {size - 1}")
        for token, special_name in self.special.items():
            need_type(f"{self.name}: the name of special token {token}", special_name, str, "a str", VocabularyError)
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
        for number, text in enumerate(self.tokens):
            need_type(f"{self.name}: token {number}", text, bytes, "bytes", VocabularyError)
            if len(text) > LONGEST_TOKEN:
                raise VocabularyError(
                    f"{self.name}: token {number} has {len(text):,} bytes ({text[:12]!r}...), and a token can have at most "
                    f"{LONGEST_TOKEN:,}: a store follows each token byte by byte; leave it out (b'' stands for no text), or check "
                    "that the tokens were not joined"
                )
        object.__setattr__(self, "special", MappingProxyType(dict(sorted(self.special.items()))))
        object.__setattr__(self, "eos", tuple(sorted(set(self.eos))))

    def __repr__(self) -> str:
        eos = " ".join(map(str, self.eos)) or "none"
        return f"<Vocabulary {self.name}: {self.size} ids, {len(self.special)} special, eos {eos}>"

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple[Any, ...]:
        # A read-only mapping cannot be pickled or copied as it is; engines do send vocabularies to worker processes.
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

        eos : the ids, or names, of the tokens that end a text; they become special, and stand for no text. special : other special tokens,
        by name. Without eos no mask ever allows an end.

        Raises: VocabularyError for a token that is not bytes, or if `special` or `eos` does not fit.

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
        """Every one-byte string is a token, so that every byte string can be written in tokens."""
        return {bytes((byte,)) for byte in range(256)} <= set(self.tokens)

    @cached_property
    def digest(self) -> str:
        """SHA-256, in hex, of all that `to_arrays` gives. Equal digests: equal ids, bytes, special and eos tokens.

        Independent of the name, of where it was loaded from, and of the hash seed. Cost: O(total bytes), once.
        """
        state = hashlib.sha256(b"maskwright vocabulary 1\n")
        for key, array in sorted(self.to_arrays().items()):
            state.update(f"{key} {array.dtype.str} {len(array)}\n".encode())
            state.update(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
        return state.hexdigest()

    def text_ids(self) -> npt.NDArray[np.int32]:
        """(n,) int32, ascending: the ids whose bytes are not empty, the only ones a mask can allow beside eos."""
        return np.fromiter((i for i, token in enumerate(self.tokens) if token), np.int32)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The vocabulary as flat arrays (for a safetensors file); `from_arrays` is the inverse. Names are not kept.

        token_offsets : (V + 1,) int64, token_bytes : (total,) uint8; token i is token_bytes[offsets[i]:offsets[i + 1]]
        special_ids : (n,) int32 ascending, special_offsets : (n + 1,) int64, special_bytes : uint8, names in UTF-8
        eos, byte_pieces : int32 ascending
        """
        token_offsets, token_bytes = _flatten(self.tokens)
        special_offsets, special_bytes = _flatten([name.encode() for name in self.special.values()])
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
        """The vocabulary that `to_arrays` wrote. The arrays may come from a damaged or hostile file.

        Raises: VocabularyError if an array is missing, has another dtype or shape, or indexes out of range.
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
"""A vocabulary, or what `load_vocabulary` takes."""


def load_vocabulary(
    source: str | os.PathLike[str] | object,
    *,
    size: int | None = None,
    name: str | None = None,
    special: Mapping[str, int] | None = None,
    eos: Iterable[str | int] | None = None,
) -> Vocabulary:
    """The vocabulary of a tokenizer, given by built-in name, file, folder, object, or by its tokens themselves.

    source : one of
        a built-in name: `python-tiny`, which the bundled model reads, or `mistral-7b-v0.1`, `mistral-7b-v0.3`, `tekken` (files of the
        package mistral-common);
        a file, known by its content: SentencePiece model, tekken json, tiktoken ranks, Hugging Face `tokenizer.json`;
        a folder with one of these; `tokenizer_config.json`, `special_tokens_map.json` and `generation_config.json`
        beside it are read for added, special and eos tokens;
        an object of transformers, tokenizers, sentencepiece, tiktoken or mistral-common;
        a list of bytes, token by token (see `Vocabulary.from_tokens`); or a Vocabulary.
    size : V, if the model's embedding has more rows than the tokenizer has ids; the rest is b""
    name : what to call it; by default the built-in name or the file's or folder's
    special : special tokens by name, added to what the source says (a tiktoken rank file says nothing about them)
    eos : ids or names of the tokens that end a text; replaces what the source says. They become special.

    A token's bytes are what the tokenizer's decoder makes of it in the middle of a text. The tokenizer's own encoder,
    if installed, is run on sample texts and must agree (see `Vocabulary.checked`).

    Raises: UnknownNameError for a source that is neither a built-in name nor a path; MissingExtraError if the package
    that reads it is not installed; VocabularyError if the source cannot be read exactly, or `size`, `special` or `eos`
    does not fit it.
    Cost: O(file). Mistral 7B v0.1 some 50 ms, tekken some 400 ms.
    """
    need_type("name", name, (str, NoneType), "a str or None", VocabularyError)
    size = None if size is None else integer("size", size, VocabularyError)
    named = _special(special)
    if isinstance(source, str | os.PathLike):
        path, found_name = _locate(source)
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
    return _vocabulary(table, name or found_name, checked)


def _special(special: Mapping[str, int] | None) -> dict[str, int]:
    expected = "names of tokens with their ids, as in {'<pad>': 0}"
    if special is None:
        return {}
    need_type("special", special, Mapping, expected, VocabularyError)
    for name in special:
        need_type("a name in special", name, str, expected, VocabularyError)
    return {
        name: integer(f"special: the id of {clip(name)}", token, VocabularyError) for name, token in special.items()
    }


def post_tokens(vocabulary: Vocabulary) -> list[tuple[int, bytes]]:
    """(id, bytes) in the streamlining post's reading: leading spaces stripped, special and byte pieces left out.

    All leading spaces of a piece go (`▁▁x` would become `x`), and a piece that is nothing but spaces goes with them.
    Mistral-7B v0.1: 32,000 ids - 3 special - 256 byte pieces - 15 pieces of spaces only = 31,726. Stripping one space
    only would keep 14 of the 15, 31,740. Not what decoding uses: that is the true bytes of all tokens.

    >>> post_tokens(Vocabulary("v", (b"", b" a", b"  ", b"a", b"\\n"), {0: "</s>"}, (0,), frozenset({4})))
    [(1, b'a'), (3, b'a')]
    """
    stripped = ((i, token.lstrip(b" ")) for i, token in enumerate(vocabulary.tokens) if i not in vocabulary.byte_pieces)
    return [(i, token) for i, token in stripped if token]


def _locate(source: str | os.PathLike[str]) -> tuple[Path, str]:
    if source in BUILT_IN:
        package, inside = BUILT_IN[str(source)]
        spec = importlib.util.find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise MissingExtraError(
                f"the built-in vocabulary {source} is a file of the package {package}, which is not installed: "
                "pip install 'maskwright[tokenizers]'"
            )
        path = Path(spec.submodule_search_locations[0], inside)
        if not path.exists():
            raise VocabularyError(
                f"the installed package {package} has no {inside}, the file of the built-in vocabulary {source}; "
                "install a version that has it (mistral-common 1.13 does), or give the file's path"
            )
        return path, str(source)
    path = Path(source)
    if not path.exists():
        near = difflib.get_close_matches(str(source), BUILT_IN, n=2, cutoff=0.4)
        meant = f"; did you mean {' or '.join(near)}?" if near else ""
        raise UnknownNameError(
            f"no vocabulary {str(source)!r}: neither a built-in name nor a file or folder{meant} "
            f"(built in: {', '.join(BUILT_IN)})"
        )
    return path, path.resolve().name


def as_vocabulary(source: VocabularySource) -> Vocabulary:
    """The vocabulary itself, or the one that `load_vocabulary` makes of a name, a path, a tokenizer or a list of bytes."""
    return source if isinstance(source, Vocabulary) else load_vocabulary(source)


def _table_of_tokens(tokens: Sequence[object], special: Mapping[str, int]) -> TokenTable:
    found: dict[int, bytes] = {}
    for token, data in enumerate(tokens):
        if not isinstance(data, bytes | bytearray):
            hint = "; encode it: a token is bytes, and may hold a part of a character" if isinstance(data, str) else ""
            raise VocabularyError(f"<tokens>: token {token} is a {type(data).__name__}; expected bytes{hint}")
        found[token] = bytes(data)
    named = {token: name for name, token in special.items()}
    return TokenTable.from_ids("<tokens>", found, named, "give at least one token of one byte or more")


def _vocabulary(table: TokenTable, name: str, checked: bool) -> Vocabulary:
    return Vocabulary(name, tuple(table.tokens), table.special, tuple(table.eos), frozenset(table.byte_pieces), checked)


def _flatten(strings: Iterable[bytes]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    strings = list(strings)
    offsets = np.zeros(len(strings) + 1, dtype=np.int64)
    np.cumsum([len(string) for string in strings], out=offsets[1:])
    return offsets, np.frombuffer(b"".join(strings), dtype=np.uint8)


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
