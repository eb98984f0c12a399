"""From a text to token ids: a tokenizer's own encoder, and ids that spell the text exactly."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import MissingExtraError, VocabularyError
from maskwright.analysis.kept import cached_property
from maskwright.maskstore.vocabulary.sorted_texts import fewest_tokens
from maskwright.maskstore.vocabulary.tokenizer_files import content_of, file_bytes, found_file
from maskwright.maskstore.vocabulary.tokenizer_values import package_errors, packages_of
from maskwright.maskstore.vocabulary.vocabulary import BUILT_IN, Vocabulary, load_vocabulary

MOST_CHARACTERS = 200_000
"""Most characters that an encoder gets at once.

tiktoken's regular expressions overflow their stack on a million blanks.
"""

RANK_FILE_PATTERN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
"""How cl100k_base cuts words.

A tiktoken rank file does not say how it cuts words. Another pattern gives other tokens of the same
text.
"""

_RESYNC_TOKENS = 64
_RESYNC_BYTES = 1024
_SURE_BYTES = 12
"""Bytes that must agree after a difference, before text and tokens count as in step again."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """A text in tokens.

    tokens : ids whose bytes, joined, are the text.
    respelled : bytes of the text that are spelled with other tokens than the encoder's own.
    """

    tokens: list[int]
    respelled: int


@dataclass(frozen=True)
class Encoder:
    """A tokenizer's own encoder with its vocabulary. It can be pickled.

    vocabulary : the tokenizer's tokens as bytes.
    tokenize : a function from a text to its ids, without special tokens before and after.
    """

    vocabulary: Vocabulary
    tokenize: Callable[[str], list[int]] = field(repr=False)

    def encode(self, text: str) -> list[int]:
        """The tokenizer's ids of a text.

        Their bytes may differ from the text's: a blank before the first word, normal forms, unknown
        characters. A text of more than `MOST_CHARACTERS` characters is encoded in parts. Each part
        ends after the last line feed in its second half, if there is one.

        Raises: VocabularyError if the encoder's package fails.
        """
        return [token for part in _parts(text) for token in self._tokenize(part)]

    def _tokenize(self, part: str) -> list[int]:
        with package_errors(self.vocabulary.name, f"the tokenizer's own encoder fails on the text {clip(part)}"):
            return self.tokenize(part)

    def exact_tokens(self, text: str) -> Spelling:
        """Ids whose bytes are exactly the text's UTF-8.

        These are the encoder's own ids. Where their bytes differ from the text, the longest tokens
        that spell it take their place.

        Raises: VocabularyError if no tokens spell the text (the vocabulary lacks bytes), the text
        holds half a surrogate pair, or the encoder's package fails.
        Cost: the encoder's, and some 50 ns a token.
        """
        tokens: list[int] = []
        respelled = 0
        for part in _parts(text):
            try:
                data = part.encode()
            except UnicodeEncodeError as error:
                raise VocabularyError(
                    f"the text holds half a surrogate pair at character {error.start}, which UTF-8 cannot write"
                ) from None
            found = self._tokenize(part)
            if b"".join(map(self.vocabulary.tokens.__getitem__, found)) != data:
                found, changed = self._respell(found, data)
                respelled += changed
            tokens += found
        return Spelling(tokens, respelled)

    def longest_tokens(self, data: bytes) -> list[int]:
        """Ids that spell the given bytes: at each offset, from the left, the longest fitting token.

        If that reaches an offset at which no token fits, the ids are instead a spelling with the
        fewest tokens.

        Raises: VocabularyError if no tokens spell the bytes.
        Cost: O(len(data) x number of distinct token lengths) look-ups.
        """
        ids, lengths = self.vocabulary.id_of_text, self._lengths
        found = []
        at = 0
        while at < len(data):
            length = next((n for n in lengths if at + n <= len(data) and data[at : at + n] in ids), 0)
            if not length:
                return self._fewest_tokens(data)
            found.append(ids[data[at : at + length]])
            at += length
        return found

    def _fewest_tokens(self, data: bytes) -> list[int]:
        """A spelling with the fewest tokens. Raises: as `longest_tokens`."""
        ids = self.vocabulary.id_of_text
        found = fewest_tokens(data, ids, lambda *_: self._lengths)
        if found is None:
            lacking = bytes(sorted(set(data) - set(b"".join(ids))))
            why = f"none contains the bytes {lacking[:20]!r}" if lacking else "none fits between the others"
            raise VocabularyError(
                f"no tokens of vocabulary {self.vocabulary.name} spell {data[:40]!r}: {why}; use a vocabulary with all bytes"
            )
        return found

    @cached_property
    def _lengths(self) -> list[int]:
        """The distinct lengths of tokens, longest first."""
        return sorted(set(map(len, self.vocabulary.id_of_text)), reverse=True)

    def _respell(self, tokens: list[int], data: bytes) -> tuple[list[int], int]:
        """The ids with the stretches that differ from the text respelled, and the bytes respelled.

        Tokens whose bytes are those of the text at the current offset are kept. The longest tokens
        spell the stretches between them.
        """
        pieces = [self.vocabulary.tokens[token] for token in tokens]
        found: list[int] = []
        respelled = at = index = 0
        while index < len(pieces):
            piece = pieces[index]
            if piece and data.startswith(piece, at):
                found.append(tokens[index])
                at += len(piece)
                index += 1
                continue
            end, index = _resynchronise(pieces, index, data, at)
            found += self.longest_tokens(data[at:end])
            respelled += end - at
            at = end
        if at < len(data):
            found += self.longest_tokens(data[at:])
            respelled += len(data) - at
        return found, respelled

    def __getstate__(self) -> dict[str, Any]:
        return {"vocabulary": self.vocabulary, "tokenize": self.tokenize}


def _resynchronise(pieces: list[bytes], index: int, data: bytes, at: int) -> tuple[int, int]:
    """The nearest (byte offset, token index) after a difference, from which text and tokens agree.

    The ends of both if there is no such point near.
    """
    piece = pieces[index]
    if piece[:1] == b" " and data.startswith(piece[1:], at):  # SentencePiece's dummy prefix
        return at + len(piece) - 1, index + 1
    window = pieces[index : index + _RESYNC_TOKENS + _SURE_BYTES]
    ahead = b"".join(window)
    begin = 0
    best, least = (len(data), len(pieces)), len(data)
    for i, piece in enumerate(window[:_RESYNC_TOKENS]):
        sure = ahead[begin : begin + _SURE_BYTES]
        begin += len(piece)
        if len(sure) == _SURE_BYTES:
            end = data.find(sure, at, at + _RESYNC_BYTES)
        else:  # the last tokens must be the end of the text
            end = len(data) - len(sure) if sure and data.endswith(sure) else -1
        if piece and at <= end and end - at + i < least:
            best, least = (end, index + i), end - at + i
    return best


def _parts(text: str) -> Iterator[str]:
    """The text in parts of at most `MOST_CHARACTERS` characters."""
    begin = 0
    while len(text) - begin > MOST_CHARACTERS:
        end = text.rfind("\n", begin, begin + MOST_CHARACTERS) + 1
        if end <= begin + MOST_CHARACTERS // 2:
            end = begin + MOST_CHARACTERS
        yield text[begin:end]
        begin = end
    yield text[begin:] if begin else text


def load_encoder(source: str | os.PathLike[str] | object) -> Encoder:
    """The encoder of a tokenizer.

    source : a built-in name, a file, a folder or an object, as for `load_vocabulary`.

    Raises: as `load_vocabulary`; MissingExtraError if the package that encodes is not installed;
    VocabularyError if no encoder can be made of the tokenizer.
    Cost: the tokenizer is read twice. Mistral 7B v0.1 takes some 100 ms, tekken a second.
    """
    vocabulary = load_vocabulary(source)
    if not isinstance(source, str | os.PathLike):
        return Encoder(vocabulary, _of_object(source))
    path = found_file(source)
    with package_errors(str(path), "no encoder can be made from the tokenizer"):
        return Encoder(vocabulary, _of_file(vocabulary, path))


def _of_file(vocabulary: Vocabulary, path: Path) -> Callable[[str], list[int]]:
    data = file_bytes(path)
    match content_of(data, str(path)):
        case "tokenizer.json", _:
            return _of_json(data.decode(), str(path))
        case "tekken", content:
            return _of_ranks(vocabulary, content["config"]["pattern"], str(path))
        case "ranks", _:
            return _of_ranks(vocabulary, RANK_FILE_PATTERN, str(path))
    return _package("sentencepiece", str(path)).SentencePieceProcessor(model_proto=data).encode  # type: ignore[no-any-return]


def check_belongs(encoder: Encoder, vocabulary: Vocabulary) -> None:
    """Check that every id has the same bytes in the encoder's vocabulary and in a store's.

    Either may have more ids at its end, if these stand for no text (padding).

    Raises: VocabularyError if an id differs; it names the first.
    """
    first = encoder.vocabulary.first_difference(vocabulary)
    if first is not None:
        own, wanted = (v.tokens[first] if first < v.size else b"" for v in (encoder.vocabulary, vocabulary))
        raise VocabularyError(
            f"tokenizer {encoder.vocabulary.name} is not the one that the store was built for ({vocabulary.name}): id {first} stands for "
            f"{own!r}, but for {wanted!r} in the store; name the store's tokenizer (--tokenizer)"
        )


def encoder_of(vocabulary: Vocabulary, source: str | os.PathLike[str] | object | None = None) -> Encoder:
    """The encoder of the texts of a store.

    vocabulary : the store's.
    source : an `Encoder`, or as for `load_encoder`; None for the built-in tokenizer of the
        vocabulary's name.

    Raises: VocabularyError if the name is not that of a built-in tokenizer, or as `check_belongs`;
    and as `load_encoder`.
    """
    if source is None:
        if vocabulary.name not in BUILT_IN:
            raise VocabularyError(
                f"the store's vocabulary {vocabulary.name} is not a built-in tokenizer: name the tokenizer that encodes the texts "
                "(--tokenizer)"
            )
        source = vocabulary.name
    encoder = source if isinstance(source, Encoder) else load_encoder(source)
    check_belongs(encoder, vocabulary)
    return encoder


def _of_json(text: str, where: str) -> Callable[[str], list[int]]:
    tokenizer = _package("tokenizers", where).Tokenizer.from_str(text)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return partial(_ids, tokenizer)


def _ids(tokenizer: Any, text: str) -> list[int]:
    # PERF: `encode_batch_fast` leaves out the offsets that `encode` computes
    return tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids  # type: ignore[no-any-return]


def _of_ranks(vocabulary: Vocabulary, pattern: str, where: str) -> Callable[[str], list[int]]:
    ranks = {data: token for token, data in enumerate(vocabulary.tokens) if data}
    tiktoken = _package("tiktoken", where)
    encoding = tiktoken.Encoding(vocabulary.name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return encoding.encode_ordinary  # type: ignore[no-any-return]


def _of_object(source: Any) -> Callable[[str], list[int]]:
    """The encoder inside an object that `read_object` accepts."""
    packages = packages_of(source)
    if "mistral_common" in packages:
        for inner in ("instruct_tokenizer", "tokenizer"):
            source = getattr(source, inner, source)
        return partial(source.encode, bos=False, eos=False)
    if "sentencepiece" in packages:
        return source.encode  # type: ignore[no-any-return]
    if "tiktoken" in packages:
        return source.encode_ordinary  # type: ignore[no-any-return]
    if "tokenizers" in packages:
        return _of_json(source.to_str(), f"{type(source).__name__} object")
    if getattr(source, "backend_tokenizer", None) is not None:
        return _of_json(source.backend_tokenizer.to_str(), f"{type(source).__name__} object")
    return partial(source.encode, add_special_tokens=False)


def _package(name: str, where: str) -> Any:
    try:
        return __import__(name)
    except ImportError:
        raise MissingExtraError(
            f"{where}: encoding a text needs the package {name}, which is not installed: pip install 'maskwright[tokenizers]'"
        ) from None
