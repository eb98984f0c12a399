"""From a text to the ids of a tokenizer: its own encoder, and the ids whose bytes are exactly the text's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import MissingExtraError, VocabularyError
from maskwright.maskstore.vocabulary.tokenizer_files import _RANK_LINE, _file_in, file_bytes
from maskwright.maskstore.vocabulary.tokenizer_values import package_errors, parse_json
from maskwright.maskstore.vocabulary.vocabulary import Vocabulary, _locate, load_vocabulary

LONGEST_PART = 200_000
"""Characters that an encoder gets at once. tiktoken's regular expressions overflow their stack on a million blanks."""

RANK_FILE_PATTERN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
"""cl100k_base's. How a tiktoken rank file cuts words is not in the file; another cut gives other tokens of the same text."""

_RESYNC_TOKENS = 64
_RESYNC_BYTES = 1024
_SURE_BYTES = 12
"""So many equal bytes behind a stretch that differs end it."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """tokens : ids whose bytes, one after the other, are the text. respelled : bytes of the text whose tokens are not the encoder's own."""

    tokens: list[int]
    respelled: int


@dataclass(frozen=True)
class Encoder:
    """A tokenizer's own encoder with its vocabulary. It can be pickled.

    cut : a text to ids, without special tokens before and after it.
    """

    vocabulary: Vocabulary
    cut: Callable[[str], list[int]] = field(repr=False)

    def encode(self, text: str) -> list[int]:
        """The tokenizer's ids of a text. Its bytes may differ from the text's: a blank before the first word, normal forms, unknowns.

        Texts past `LONGEST_PART` characters are cut, behind a line feed if there is one, and encoded part by part.
        """
        return [token for part in _parts(text) for token in self._cut(part)]

    def _cut(self, part: str) -> list[int]:
        with package_errors(self.vocabulary.name, f"the tokenizer's own encoder fails on the text {clip(part)}"):
            return self.cut(part)

    def exact_tokens(self, text: str) -> Spelling:
        """Ids whose bytes are exactly the text's UTF-8: the encoder's own, and where these do not spell the text the longest that do.

        Raises VocabularyError if no tokens spell the text (a vocabulary that lacks bytes), or if it holds half a surrogate pair.
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
            found = self._cut(part)
            if b"".join(map(self.vocabulary.tokens.__getitem__, found)) != data:
                found, changed = self._respell(found, data)
                respelled += changed
            tokens += found
        return Spelling(tokens, respelled)

    def longest_tokens(self, data: bytes) -> list[int]:
        """Ids that spell some bytes, each the longest that goes on from the left; where that leads nowhere, the fewest.

        Raises VocabularyError if no tokens spell them.
        """
        ids, lengths = self._longest
        found = []
        at = 0
        while at < len(data):
            for length in lengths:
                token = ids.get(data[at : at + length])
                if token is not None and at + length <= len(data):
                    break
            else:
                return self._fewest_tokens(data)
            found.append(token)
            at += length
        return found

    def _fewest_tokens(self, data: bytes) -> list[int]:
        ids, lengths = self._longest
        counts = [0, *[len(data) + 1] * len(data)]
        last = [0] * (len(data) + 1)
        for end in range(1, len(data) + 1):
            for length in lengths:
                if length <= end and counts[end - length] + 1 < counts[end] and data[end - length : end] in ids:
                    counts[end], last[end] = counts[end - length] + 1, length
        if counts[-1] > len(data):
            lacking = bytes(sorted(set(data) - set(b"".join(ids))))
            why = f"none contains the bytes {lacking[:20]!r}" if lacking else "none fits between the others"
            raise VocabularyError(
                f"no tokens of vocabulary {self.vocabulary.name} spell {data[:40]!r}: {why}; use a vocabulary with all bytes"
            )
        found: list[int] = []
        end = len(data)
        while end:
            found.append(ids[data[end - last[end] : end]])
            end -= last[end]
        return found[::-1]

    @cached_property
    def _longest(self) -> tuple[Mapping[bytes, int], list[int]]:
        """Bytes -> id, the least of several; the lengths that there are, longest first."""
        ids: dict[bytes, int] = {}
        for token, data in enumerate(self.vocabulary.tokens):
            ids.setdefault(data, token)
        ids.pop(b"", None)
        return ids, sorted(set(map(len, ids)), reverse=True)

    def _respell(self, tokens: list[int], data: bytes) -> tuple[list[int], int]:
        """Keep the tokens whose bytes follow the text, and spell the stretches between with the longest ones."""
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
        return {"vocabulary": self.vocabulary, "cut": self.cut}


def _resynchronise(pieces: list[bytes], index: int, data: bytes, at: int) -> tuple[int, int]:
    """Where text and tokens go on alike behind a difference: (byte, token), the nearest; the ends of both if there is none near."""
    piece = pieces[index]
    if piece[:1] == b" " and data.startswith(piece[1:], at):  # the blank that SentencePiece puts before a text
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
    begin = 0
    while len(text) - begin > LONGEST_PART:
        end = text.rfind("\n", begin, begin + LONGEST_PART) + 1
        if end <= begin + LONGEST_PART // 2:
            end = begin + LONGEST_PART
        yield text[begin:end]
        begin = end
    yield text[begin:] if begin else text


def load_encoder(source: str | os.PathLike[str] | object) -> Encoder:
    """The encoder of a tokenizer, given as `load_vocabulary` takes it: a built-in name, a file, a folder, or an object.

    Raises as `load_vocabulary`, and MissingExtraError if the package that encodes is not installed.
    Cost: the tokenizer is read twice; Mistral 7B v0.1 some 100 ms, tekken a second.
    """
    vocabulary = load_vocabulary(source)
    if not isinstance(source, str | os.PathLike):
        return Encoder(vocabulary, _of_object(source))
    path, _ = _locate(source)
    if path.is_dir():
        path = _file_in(path)
    with package_errors(str(path), "no encoder can be made of the tokenizer"):
        return Encoder(vocabulary, _of_file(vocabulary, path))


def _of_file(vocabulary: Vocabulary, path: Path) -> Callable[[str], list[int]]:
    data = file_bytes(path)
    if data.lstrip()[:1] == b"{":
        content = parse_json(data, str(path))
        if isinstance(content.get("model"), dict):
            return _of_json(data.decode(), str(path))
        return _of_ranks(vocabulary, content["config"]["pattern"], str(path))
    if _RANK_LINE.match(data.lstrip()):
        return _of_ranks(vocabulary, RANK_FILE_PATTERN, str(path))
    return _SentencePiece(_package("sentencepiece", str(path)).SentencePieceProcessor(model_proto=data))


def check_belongs(encoder: Encoder, vocabulary: Vocabulary) -> None:
    """See that every id of the encoder has the same bytes in a store's vocabulary, which may be longer (padding).

    Raises VocabularyError naming the first id that differs.
    """
    own, wanted = encoder.vocabulary.tokens, vocabulary.tokens
    size = min(len(own), len(wanted))
    if own[:size] != wanted[:size] or any(own[size:]) or any(wanted[size:]):
        longer = own + (b"",) * (len(wanted) - len(own)), wanted + (b"",) * (len(own) - len(wanted))
        first = next(i for i, (a, b) in enumerate(zip(*longer, strict=True)) if a != b)
        raise VocabularyError(
            f"tokenizer {encoder.vocabulary.name} is not the one that the store was built for ({vocabulary.name}): id {first} stands for "
            f"{longer[0][first]!r}, in the store for {longer[1][first]!r}; name the store's tokenizer (--tokenizer)"
        )


@dataclass(frozen=True)
class _SentencePiece:
    processor: Any

    def __call__(self, text: str) -> list[int]:
        return self.processor.encode(text)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class _Tokenizers:
    tokenizer: Any

    def __call__(self, text: str) -> list[int]:
        # PERF: without the offsets that `encode` keeps
        return self.tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids  # type: ignore[no-any-return]


@dataclass(frozen=True)
class _Tiktoken:
    encoding: Any

    def __call__(self, text: str) -> list[int]:
        return self.encoding.encode_ordinary(text)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class _Tekken:
    tokenizer: Any

    def __call__(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, bos=False, eos=False)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class _Transformers:
    tokenizer: Any

    def __call__(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, add_special_tokens=False))


def _of_json(text: str, where: str) -> _Tokenizers:
    tokenizer = _package("tokenizers", where).Tokenizer.from_str(text)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return _Tokenizers(tokenizer)


def _of_ranks(vocabulary: Vocabulary, pattern: str, where: str) -> _Tiktoken:
    ranks = {data: token for token, data in enumerate(vocabulary.tokens) if data}
    tiktoken = _package("tiktoken", where)
    return _Tiktoken(tiktoken.Encoding(vocabulary.name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={}))


def _of_object(source: Any) -> Callable[[str], list[int]]:
    """The encoder inside an object that `read_object` has read."""
    packages = [base.__module__.partition(".")[0] for base in type(source).__mro__]
    if "mistral_common" in packages:
        for inner in ("instruct_tokenizer", "tokenizer"):
            source = getattr(source, inner, source)
        return _Tekken(source)
    if "sentencepiece" in packages:
        return _SentencePiece(source)
    if "tiktoken" in packages:
        return _Tiktoken(source)
    if "tokenizers" in packages:
        return _of_json(source.to_str(), f"{type(source).__name__} object")
    if getattr(source, "backend_tokenizer", None) is not None:
        return _of_json(source.backend_tokenizer.to_str(), f"{type(source).__name__} object")
    return _Transformers(source)


def _package(name: str, where: str) -> Any:
    try:
        return __import__(name)
    except ImportError:
        raise MissingExtraError(
            f"{where}: encoding a text needs the package {name}, which is not installed: pip install 'maskwright[tokenizers]'"
        ) from None
