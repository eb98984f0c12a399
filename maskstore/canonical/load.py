"""From a tokenizer to its `CanonicalTokens`: the merges, the pattern that cuts, added tokens."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import VocabularyError
from maskwright.maskstore.canonical.cuts import Cuts
from maskwright.maskstore.canonical.spines import Merges
from maskwright.maskstore.canonical.tokens import CanonicalTokens
from maskwright.maskstore.vocabulary import Vocabulary, load_vocabulary
from maskwright.maskstore.vocabulary.encoders import RANK_FILE_PATTERN, load_encoder
from maskwright.maskstore.vocabulary.tokenizer_files import content_of, file_bytes, found_file
from maskwright.maskstore.vocabulary.tokenizer_json import steps_of
from maskwright.maskstore.vocabulary.tokenizer_table import SAMPLES
from maskwright.maskstore.vocabulary.tokenizer_values import packages_of, parse_json

_ONE_PIECE = r"(?s:.)+"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""How a ByteLevel step with use_regex cuts. Source: tokenizers, pre_tokenizers/byte_level.rs."""
_NORMAL, _USER_DEFINED = 1, 4
"""Types of the pieces of a SentencePiece model."""
_SPLIT_SPACES = r" [^ ]*|[^ ]+"
"""How a Metaspace step with split cuts, once its mark is a space again."""


@dataclass
class _Parts:
    """What a `CanonicalTokens` is made of."""

    merges: Merges
    pattern: str
    byte_pieces: dict[int, int] = field(default_factory=dict)
    free: set[int] = field(default_factory=set)
    whole: bool = False


def load_canonical(source: str | os.PathLike[str] | object) -> CanonicalTokens:
    """The canonical tokens of a tokenizer of the kind BPE.

    source : a built-in name, a file, a folder or an object, as for `load_vocabulary`; objects of
        mistral-common are given by their file. A tiktoken rank file does not say how it cuts texts:
        cl100k_base's way is taken. For another one give the object of tiktoken.

    The encoder's own tokens of some sample texts must be canonical.

    Raises: as `load_vocabulary`; VocabularyError if the tokenizer is of another kind (Unigram,
    WordPiece), normalises or cuts texts in a way that is not supported, or its own tokens are not
    found canonical; MissingExtraError if the encoder's package is not installed.
    Cost: 1 s for Mistral 7B v0.1, 6 s for tekken.

    >>> tokens = load_canonical("python-tiny")
    >>> tokens
    <CanonicalTokens of python-tiny>
    """
    vocabulary = load_vocabulary(source)
    where = vocabulary.name
    parts = _read(source, vocabulary)
    tokens = CanonicalTokens(
        vocabulary,
        parts.merges,
        Cuts(parts.pattern, where),
        byte_pieces=parts.byte_pieces,
        free=parts.free,
        whole=parts.whole,
    )
    _check(tokens, load_encoder(source).tokenize)
    return tokens


def _read(source: Any, vocabulary: Vocabulary) -> _Parts:
    if isinstance(source, str | os.PathLike):
        return _of_file(found_file(source), vocabulary)
    if getattr(source, "backend_tokenizer", None) is not None:
        source = source.backend_tokenizer
    packages = packages_of(source)
    if "tokenizers" in packages:
        return _of_json(parse_json(source.to_str().encode(), vocabulary.name), vocabulary)
    if "tiktoken" in packages:
        return _of_ranks(vocabulary, source._pat_str)
    if "sentencepiece" in packages:
        return _of_sentencepiece(source, vocabulary)
    raise VocabularyError(
        f"the merges of a {type(source).__name__} object cannot be read; give its file, or an object of tokenizers, transformers "
        "(a fast tokenizer), tiktoken or sentencepiece"
    )


def _of_file(path: Path, vocabulary: Vocabulary) -> _Parts:
    data = file_bytes(path)
    match content_of(data, str(path)):
        case "tokenizer.json", content:
            return _of_json(content, vocabulary)
        case "tekken", content:
            return _of_ranks(vocabulary, content["config"]["pattern"])
        case "ranks", _:
            return _of_ranks(vocabulary, RANK_FILE_PATTERN)
    import sentencepiece

    return _of_sentencepiece(sentencepiece.SentencePieceProcessor(model_proto=data), vocabulary)


def _of_ranks(vocabulary: Vocabulary, pattern: str) -> _Parts:
    ranks = {data: token for token, data in enumerate(vocabulary.tokens) if data}
    return _Parts(Merges(ranks, ranks=ranks), pattern, whole=True)  # tiktoken looks a piece up before it merges


def _of_sentencepiece(processor: Any, vocabulary: Vocabulary) -> _Parts:
    ids: dict[bytes, int] = {}
    scores: dict[bytes, float] = {}
    kinds = list(_kinds_of_pieces(processor.serialized_model_proto()))
    free = {token for token, data in enumerate(vocabulary.tokens) if data and token >= len(kinds)}
    for token, kind in enumerate(kinds):
        if kind == _USER_DEFINED:
            free.add(token)
        elif kind == _NORMAL and vocabulary.tokens[token]:
            ids[vocabulary.tokens[token]] = token
            scores[vocabulary.tokens[token]] = processor.GetScore(token)
    order = {score: rank for rank, score in enumerate(sorted(set(scores.values()), reverse=True))}
    ranks = {data: order[score] for data, score in scores.items()}
    return _Parts(Merges(ids, ranks=ranks, characters=True), _ONE_PIECE, _byte_pieces(vocabulary), free)


def _kinds_of_pieces(model: bytes) -> Iterator[int]:
    """The type of each piece of a SentencePiece model.

    The package tells all types apart but user-defined pieces, which the encoder finds in a text
    before it merges.

    Source: sentencepiece_model.proto; a model is a list of pieces (field 1), a piece has a type
    (field 3), which is normal if it is left out.
    """
    for field_number, piece in _fields(model):
        if field_number == 1 and isinstance(piece, bytes):
            yield next((int(kind) for number, kind in _fields(piece) if number == 3), _NORMAL)


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message of Protocol Buffers, that of numbers as numbers."""
    at = 0

    def number() -> int:
        nonlocal at
        found = shift = 0
        while True:
            byte = message[at]
            at += 1
            found |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return found

    while at < len(message):
        key = number()
        if key & 7 == 0:
            yield key >> 3, number()
            continue
        size = {1: 8, 2: 0, 5: 4}[key & 7] or number()
        yield key >> 3, message[at : at + size]
        at += size


def _byte_pieces(vocabulary: Vocabulary) -> dict[int, int]:
    return {vocabulary.tokens[token][0]: token for token in sorted(vocabulary.byte_pieces)}


def _of_json(content: Mapping[str, Any], vocabulary: Vocabulary) -> _Parts:
    where = vocabulary.name
    model = content["model"]
    if model.get("type", "BPE") != "BPE" or "merges" not in model:
        raise VocabularyError(
            f"{where}: the tokenizer is of the kind {model.get('type')}; canonical masks support BPE only"
        )
    for key in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(key):
            raise VocabularyError(
                f"{where}: the tokenizer's {key} is {clip(model[key])}; canonical masks do not support that"
            )
    _check_normalizer(content, where)
    cuts = list(steps_of(content, "pre_tokenizer", where))
    patterns = list(_patterns(cuts, where))
    if len(patterns) > 1:
        raise VocabularyError(
            f"{where}: the tokenizer cuts a text {len(patterns)} times over; canonical masks support one cut"
        )
    added = {entry["id"] for entry in content.get("added_tokens") or []}
    own = set(model["vocab"].values()) - added  # the files beside it may add tokens too
    free = {token for token, data in enumerate(vocabulary.tokens) if data and token not in own}
    texts = {
        piece: vocabulary.tokens[token]
        for piece, token in model["vocab"].items()
        if vocabulary.tokens[token] and token not in vocabulary.byte_pieces and token not in free
    }
    pairs: dict[tuple[bytes, bytes], int] = {}
    for rank, entry in enumerate(model["merges"]):
        left, right = entry.split(" ") if isinstance(entry, str) else entry
        if left in texts and right in texts:
            pairs[texts[left], texts[right]] = rank
    is_of_bytes = any(part.get("type") == "ByteLevel" for part in cuts)
    merges = Merges(
        {data: model["vocab"][piece] for piece, data in texts.items()}, pairs=pairs, characters=not is_of_bytes
    )
    byte_pieces = _byte_pieces(vocabulary) if model.get("byte_fallback") else {}
    return _Parts(merges, patterns[0] if patterns else _ONE_PIECE, byte_pieces, free, bool(model.get("ignore_merges")))


def _check_normalizer(content: Mapping[str, Any], where: str) -> None:
    """Refuse what changes texts; a mark for spaces and normal forms are fine."""
    for part in steps_of(content, "normalizer", where):
        is_mark = part["type"] == "Replace" and part.get("pattern") == {"String": " "}
        if part["type"] not in ("NFC", "Prepend") and not is_mark:
            raise VocabularyError(
                f"{where}: the tokenizer changes texts by a step {part['type']} before it cuts them; canonical masks support NFC and "
                "marks for spaces only"
            )


def _patterns(cuts: Iterable[Mapping[str, Any]], where: str) -> Iterator[str]:
    """The patterns by which the steps of a pre-tokenizer cut, one after the other."""
    for part in cuts:
        match part:
            case {"type": "ByteLevel"}:
                if part.get("use_regex", True):
                    yield _GPT2
            case {"type": "Metaspace"}:
                if part.get("split", True):
                    yield _SPLIT_SPACES
            case {"type": "Split", "pattern": {"Regex": str(pattern)}, "behavior": "Isolated", "invert": False}:
                yield pattern
            case _:
                raise VocabularyError(
                    f"{where}: the tokenizer cuts texts by a step {clip(dict(part))}, which canonical masks do not support"
                )


def _check(tokens: CanonicalTokens, tokenize: Callable[[str], list[int]]) -> None:
    """Check that the encoder's own tokens of some texts are canonical.

    Raises: VocabularyError if some are not.
    """
    for sample in SAMPLES:
        state = tokens.start()
        for token in tokenize(sample):
            if token in tokens.vocabulary.special or not state.is_canonical(token):
                raise VocabularyError(
                    f"{tokens.vocabulary.name}: the tokenizer's own token {token} ({tokens.vocabulary.tokens[token]!r}) of the text "
                    f"{clip(sample)} is not found canonical: the tokenizer is of a kind that canonical masks do not support"
                )
            state.advance(token)
        if not state.can_end():
            raise VocabularyError(
                f"{tokens.vocabulary.name}: the tokenizer's own tokens of {clip(sample)} cannot end there"
            )
