"""Hugging Face `tokenizer.json`: the bytes of each id, as the decoder in the file states them.

How much longer its steps can make a text is told before any of them runs. A step that writes two
characters for one is harmless; thirty of them write a gigabyte for one character. Steps of one kind
stand in a Sequence, and Sequences inside one another.
"""

from __future__ import annotations

import base64
import binascii
import importlib
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import MissingExtraError, VocabularyError
from maskwright.maskstore.vocabulary.tokenizer_table import Reference, TokenTable
from maskwright.maskstore.vocabulary.tokenizer_values import as_list, as_object, check_id, encode_text, package_errors

MOST_GROWTH = 4096
"""How many times longer a text may become before it is cut into pieces.

Files in use stay below 600: one normal form of Unicode, one table of characters, one `▁` for a
space.
"""

MOST_PIECE_GROWTH = 16
"""How many times longer a piece may become when it is decoded. In files in use it does not grow."""

MOST_DEPTH = 32
"""Sequences inside one another. Files in use have two."""

_PARTS = {"normalizer": "normalizers", "pre_tokenizer": "pretokenizers", "decoder": "decoders"}
"""Member of the file -> the member of its Sequences that holds their steps."""

_GROWTHS = {"NFC": 4, "NFD": 4, "NFKC": 18, "NFKD": 18, "BertNormalizer": 12, "ByteLevel": 4}
"""Step -> the most characters that one becomes: the longest normal forms of Unicode, spaces around
Chinese characters, the bytes of a character.

A decoder's ByteLevel only makes texts shorter.
"""


def check_growth(content: Mapping[str, Any], where: str) -> None:
    """Check that no text or piece can become too long.

    content : the parsed `tokenizer.json`.
    where : the file, for messages.

    Raises: VocabularyError if one can, or Sequences stand too deep inside one another.
    Cost: O(steps and their contents).
    """
    for members, bound in ((("normalizer", "pre_tokenizer"), MOST_GROWTH), (("decoder",), MOST_PIECE_GROWTH)):
        growth = 1
        for member in members:
            for step in steps_of(content, member, where):
                growth *= 1 if member == "decoder" and step.get("type") == "ByteLevel" else _growth(step)
                if growth > bound:
                    raise VocabularyError(
                        f"{where}: the steps of {' and '.join(members)} can make a text more than {bound:,} times "
                        "longer, which no tokenizer in use does; the file is damaged, or made to exhaust memory"
                    )


def steps_of(content: Mapping[str, Any], member: str, where: str) -> Iterator[Mapping[str, Any]]:
    """The steps of a member in order, those inside Sequences too. What is no object is left out.

    content : the parsed `tokenizer.json`.
    member : "normalizer", "pre_tokenizer" or "decoder".
    where : the file, for messages.

    Raises: VocabularyError if the parts of a Sequence are no list, or Sequences stand too deep
    inside one another.
    """
    waiting = [(content.get(member), 0)]
    while waiting:
        step, depth = waiting.pop()
        if not isinstance(step, dict):
            continue
        if step.get("type") != "Sequence":
            yield step
            continue
        if depth == MOST_DEPTH:
            raise VocabularyError(
                f"{where}: {member} has more than {MOST_DEPTH} Sequences inside one another; the file is damaged"
            )
        parts = as_list(step.get(_PARTS[member]), f"{where}: {member}.{_PARTS[member]}")
        waiting += [(part, depth + 1) for part in reversed(parts)]


def _growth(step: Mapping[str, Any]) -> int:
    """The most characters that a step makes of one, at least 1."""
    match step:
        case {"type": "Replace", "pattern": {"String": str(pattern)}, "content": str(by)} if pattern:
            return max(1, -(-len(by) // len(pattern)))
        case {"type": "Replace", "pattern": {"Regex": str(pattern)}, "content": str(by)}:
            return max(1, len(by)) if _least_width(pattern) else 1 + len(by)
        case {"type": "Replace", "content": str(by)}:
            return 1 + len(by)
        case {"type": "Precompiled", "precompiled_charsmap": str(packed)}:
            return _longest_entry(packed)
        case {"type": str(kind)}:
            return _GROWTHS.get(kind, 1)
    return 1


def _least_width(pattern: str) -> int:
    """A lower bound of the characters of a match."""
    if len(pattern) > 1000:
        return 0  # reading it would take long
    try:
        with warnings.catch_warnings(action="ignore"):  # of sets that may once be read otherwise
            return int(importlib.import_module("re._parser").parse(pattern).getwidth()[0])
    except Exception:  # the syntax of another engine, or nested too deep
        return 0


def _longest_entry(packed: str) -> int:
    """The bytes of the longest text in the table of a step Precompiled, at least 1.

    Source: SentencePiece, normalizer.cc: four bytes with the size of a trie, the trie, and texts
    that end with a zero.
    """
    try:
        table = base64.b64decode(packed)
    except (binascii.Error, ValueError):
        return 1  # the package refuses it
    return max(1, *map(len, table[4 + int.from_bytes(table[:4], "little") :].split(b"\0")))


#: One step of a decoder, on one piece. It gives text for the next step, or bytes, which are final.
Step = Callable[[str], str | bytes]

_FORMS = {"NFC", "NFD", "NFKC", "NFKD"}
"""Normalisers that leave ASCII as it is."""

_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def byte_level_alphabet() -> dict[str, int]:
    """Character -> byte of the byte-level alphabet, 256 of them.

    A byte that is printable in Latin-1 is written as that character. The other 68 bytes are written
    as U+0100 and the following characters.

    Source: OpenAI, gpt-2, encoder.py, bytes_to_unicode; tokenizers, pre_tokenizers/byte_level.rs,
    bytes_char.

    >>> alphabet = byte_level_alphabet()
    >>> len(alphabet), alphabet["a"], alphabet["Ġ"], alphabet["Ċ"]
    (256, 97, 32, 10)
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + i): byte for i, byte in enumerate(others)}


_ALPHABET = byte_level_alphabet()


def read_tokenizer_json(content: Mapping[str, Any], text: str, where: str) -> TokenTable:
    """The table of a parsed `tokenizer.json`.

    content : the parsed JSON.
    text : the file itself, for the encoder of the package tokenizers.
    where : the file or object, for messages.

    The decoder's steps turn each piece of the model into bytes. Special added tokens and the
    model's unknown token are special. An added token that is not special stands for what the
    package's decoder gives for it in the middle of a text, which may be another text than the
    token's name: the package normalises the name, and decodes it as it does a piece. Without the
    package the decoder's steps turn the name into bytes, if no normaliser can change it.

    Raises: VocabularyError if a field is missing or of another type, two pieces have one id, a
    piece is empty, the decoder does not give every piece and added token a text of its own
    (BPEDecoder, CTC, Replace by regular expression), the steps can make a text too long
    (`check_growth`), or the package tokenizers refuses the file or numbers its added tokens
    otherwise; MissingExtraError if only the package, which is not installed, knows the text of an
    added token.
    Cost: O(file). If tokenizers is installed, it reads the file a second time, which takes most of
    the time.
    """
    check_growth(content, where)
    model = as_object(content.get("model"), f"{where}: model")
    pieces = _pieces(model, where)
    kinds = list(_flat(_decoder(content, where), where))
    read = _piece_reader([_step(part, where) for part in kinds], where)
    added = _added_tokens(content, where)
    unknown = _unknown(model, pieces, added, where)
    special = {**unknown, **{token: name for token, (name, is_special) in added.items() if is_special}}
    plain = {token: name for token, (name, _) in added.items() if token not in special}
    texts = {token: read(piece) for token, piece in (pieces | plain).items()}
    table = TokenTable.from_ids(where, texts, special)
    tokenizer = _package_tokenizer(text, added, kinds, where)
    if tokenizer is None:
        _check_names(content, plain, where)
    elif plain:
        taken = unknown.keys() | added.keys()
        others = {token: texts[token] for token, piece in pieces.items() if byte_of_piece(piece) is None}
        anchor = _anchor({token: text for token, text in others.items() if token not in taken})
        for token in plain:
            table.tokens[token] = _by_decoder(tokenizer, token, anchor, read, where)
    if any(part["type"] == "ByteFallback" for part in kinds):
        table.byte_pieces = {
            token for token, piece in pieces.items() if byte_of_piece(piece) and len(table.tokens[token]) == 1
        }
    table.names = {piece: token for token, piece in (pieces | plain).items()}
    table.guess_eos()
    table.reference = None if tokenizer is None else _reference(tokenizer, frozenset(unknown))
    return table


def _pieces(model: Mapping[str, Any], where: str) -> dict[int, str]:
    """Id -> piece of the model.

    The model holds piece -> id (BPE, WordPiece, WordLevel) or a list of [piece, score] (Unigram).
    """
    vocab = model.get("vocab")
    if isinstance(vocab, dict):
        pairs = list(vocab.items())
    elif isinstance(vocab, list):
        pairs = [(entry[0] if isinstance(entry, list) and entry else entry, i) for i, entry in enumerate(vocab)]
    else:
        raise VocabularyError(f"{where}: model.vocab is {clip(vocab)}, expected pieces with their ids, or a list")
    pieces: dict[int, str] = {}
    for piece, token in pairs:
        if not isinstance(piece, str):
            raise VocabularyError(f"{where}: model.vocab[{token}] is {clip(piece)}, expected [piece, score]")
        if not piece:
            raise VocabularyError(f"{where}: model.vocab has an empty piece (id {token}); it could never be generated")
        check_id(token, f"{where}: model.vocab, piece {clip(piece)}")
        if token in pieces:
            raise VocabularyError(f"{where}: model.vocab gives id {token} to {pieces[token]!r} and to {piece!r}")
        pieces[token] = piece
    if isinstance(vocab, list) and len(set(pieces.values())) != len(pieces):
        first, _ = Counter(pieces.values()).most_common(1)[0]
        raise VocabularyError(f"{where}: model.vocab has the piece {first!r} twice")
    return pieces


def _added_tokens(content: Mapping[str, Any], where: str) -> dict[int, tuple[str, bool]]:
    """Id -> (text, is special) of `added_tokens`."""
    added: dict[int, tuple[str, bool]] = {}
    for i, entry in enumerate(as_list(content.get("added_tokens") or [], f"{where}: added_tokens")):
        fields = as_object(entry, f"{where}: added_tokens[{i}]")
        name, token = fields.get("content"), check_id(fields.get("id"), f"{where}: added_tokens[{i}]")
        if not isinstance(name, str) or not name:
            raise VocabularyError(
                f"{where}: added_tokens[{i}] has the content {clip(name)}, expected a non-empty string"
            )
        if token in added:
            raise VocabularyError(f"{where}: added_tokens gives id {token} to {added[token][0]!r} and to {name!r}")
        added[token] = (name, fields.get("special") is True)
    return added


def _unknown(
    model: Mapping[str, Any], pieces: Mapping[int, str], added: Mapping[int, tuple[str, bool]], where: str
) -> dict[int, str]:
    """Id -> name of the unknown token, at most one: by `unk_id` (Unigram) or by `unk_token`."""
    if (token := model.get("unk_id")) is not None:
        if check_id(token, f"{where}: model.unk_id") not in pieces:
            raise VocabularyError(f"{where}: model.unk_id is {token}, which is not a piece of model.vocab")
        return {token: pieces[token]}
    name = model.get("unk_token")
    if not isinstance(name, str):
        return {}
    found = [token for token, piece in pieces.items() if piece == name]
    return {token: name for token in found or [token for token, entry in added.items() if entry[0] == name]}


def _decoder(content: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """The decoder; if the file states none, its byte-level or Metaspace pre-tokenizer, inverted."""
    decoder = content.get("decoder")
    if decoder is not None:
        return as_object(decoder, f"{where}: decoder")
    cut = content.get("pre_tokenizer")
    parts = [cut, *as_list(cut.get("pretokenizers", []), f"{where}: pretokenizers")] if isinstance(cut, dict) else []
    for part in parts:
        if isinstance(part, dict) and part.get("type") in ("ByteLevel", "Metaspace"):
            return part
    raise VocabularyError(
        f"{where}: has no decoder and no byte-level or Metaspace pre-tokenizer, so what a piece adds to a text is unknown; "
        "save the tokenizer with a decoder"
    )


def _flat(decoder: Mapping[str, Any], where: str) -> Iterator[Mapping[str, Any]]:
    """The steps of a decoder in order, up to Fuse.

    What follows Fuse works on whole texts, for example Strip on the dummy prefix.
    """
    parts = decoder.get("decoders") if decoder.get("type") == "Sequence" else [decoder]
    for part in as_list(parts, f"{where}: decoder.decoders"):
        step = as_object(part, f"{where}: decoder")
        if step.get("type") == "Fuse":
            return
        if step.get("type") == "Sequence":
            yield from _flat(step, where)
        else:
            yield step


def _step(part: Mapping[str, Any], where: str) -> Step:
    """The function of one decoder step."""
    match part:
        case {"type": "ByteLevel"}:
            return byte_level
        case {"type": "ByteFallback"}:
            return lambda piece: byte_of_piece(piece) or piece
        case {"type": "Metaspace", "replacement": str(mark)}:
            return lambda piece: piece.replace(mark, " ")
        case {"type": "Replace", "pattern": {"String": str(pattern)}, "content": str(by)}:
            return lambda piece: piece.replace(pattern, by)
        case {"type": "WordPiece", "prefix": str(prefix)}:
            return lambda piece: piece.removeprefix(prefix) if piece.startswith(prefix) else " " + piece
    raise VocabularyError(
        f"{where}: decoder step {clip(dict(part))} does not give each piece a text of its own; those that do are "
        "ByteLevel, ByteFallback, Metaspace, Replace of a string, WordPiece, and Fuse with what follows it"
    )


def byte_level(piece: str) -> str | bytes:
    """The bytes of a piece of the byte-level alphabet; the piece itself if it is none."""
    # As in the package tokenizers, a piece with a character outside the alphabet stays as it is.
    try:
        return bytes([_ALPHABET[character] for character in piece])
    except KeyError:
        return piece


def byte_of_piece(piece: str) -> bytes | None:
    """The byte that a piece such as `<0x0A>` stands for; None for another piece."""
    found = _BYTE_PIECE.fullmatch(piece)
    return bytes((int(found[1], 16),)) if found else None


def _piece_reader(steps: list[Step], where: str) -> Callable[[str], bytes]:
    """The function from a piece to its bytes: all steps in order, until one gives bytes."""

    def read(piece: str) -> bytes:
        text: str | bytes = piece
        for step in steps:
            if isinstance(text, bytes):
                break
            text = step(text)
        return text if isinstance(text, bytes) else encode_text(text, where)

    return read


def _check_names(content: Mapping[str, Any], names: Mapping[int, str], where: str) -> None:
    """Check that no normaliser can change the names of added tokens that are not special.

    names : id -> name.

    Raises: MissingExtraError if one may: only the package knows the token's text then.
    """
    kinds = {step.get("type") for step in steps_of(content, "normalizer", where)}
    for entry in content.get("added_tokens") or []:
        name = names.get(entry["id"])
        if name is not None and entry.get("normalized") is not False and kinds - (_FORMS if name.isascii() else set()):
            raise MissingExtraError(
                f"{where}: the normalizer applies to the added token {clip(name)}, so only the package tokenizers knows "
                "its text: pip install 'maskwright[tokenizers]'"
            )


def _anchor(texts: Mapping[int, bytes]) -> int | None:
    """A token of ASCII letters, to stand around another in a text; None if there is none.

    texts : id -> bytes of the model's pieces.
    """
    found = (token for token, text in texts.items() if text.isascii() and text.strip(b" ").isalpha())
    return min(found, key=lambda token: len(texts[token]), default=None)


def _by_decoder(tokenizer: Any, token: int, anchor: int | None, read: Callable[[str], bytes], where: str) -> bytes:
    """The bytes of an added token: what the package's decoder gives for it in the middle of a text.

    anchor : the token before and after it; None if nothing can stand there.

    Raises: VocabularyError if its text depends on what stands around it, or has no bytes.
    """
    piece = tokenizer.id_to_token(token)
    literal = read(piece)
    if anchor is None:
        return literal
    with package_errors(where, f"the package's decoder fails on the added token {clip(piece)}"):
        alone, twice, around = (
            tokenizer.decode(ids, skip_special_tokens=False)
            for ids in ([anchor], [anchor, anchor], [anchor, token, anchor])
        )
    before, after = len(alone), len(twice) - len(alone)
    text = around[before : len(around) - after]
    if around != twice[:before] + text + twice[before:]:
        raise VocabularyError(
            f"{where}: the decoder gives the added token {clip(piece)} another text beside other tokens ({clip(around)} "
            f"between two tokens that are {clip(twice)} without it), so it has no text of its own"
        )
    if literal.decode(errors="replace") == text:
        return literal
    if "\ufffd" in text:
        raise VocabularyError(f"{where}: the decoder gives the added token {clip(piece)} no whole text: {clip(text)}")
    return encode_text(text, where)


def _package_tokenizer(
    text: str, added: Mapping[int, tuple[str, bool]], kinds: list[Mapping[str, Any]], where: str
) -> Any:
    """The file as a Tokenizer of the package tokenizers; None if that is not installed."""
    try:
        import tokenizers
    except ImportError:
        return None
    version = tokenizers.__version__
    with package_errors(
        where, f"refused by the package tokenizers {version}", "; the file is damaged, or needs a newer version"
    ):
        tokenizer = tokenizers.Tokenizer.from_str(text)
    numbered = {token: entry.content for token, entry in tokenizer.get_added_tokens_decoder().items()}
    for token, (name, _) in added.items():
        if numbered.get(token) != name:
            raise VocabularyError(
                f"{where}: added token {name!r} has id {token} in the file, but the package tokenizers gives this id "
                f"to {clip(numbered.get(token))}: it numbers added tokens after the model's last id; correct the ids"
            )
    tokenizer.no_truncation()
    tokenizer.no_padding()
    decoders = tokenizers.decoders
    for part in kinds:
        if part["type"] == "WordPiece":  # its clean-up would move spaces in the whole text
            tokenizer.decoder = decoders.WordPiece(prefix=part["prefix"], cleanup=False)
    if tokenizer.decoder is None:  # the pre-tokenizer's, as in _decoder
        mark = kinds[0].get("replacement")
        tokenizer.decoder = decoders.ByteLevel() if mark is None else decoders.Metaspace(mark)
    return tokenizer


def _reference(tokenizer: Any, unknown: frozenset[int]) -> Reference:
    """The encoder and decoder of the package's Tokenizer."""
    normalizer = tokenizer.normalizer

    def encode(sample: str) -> list[int] | None:
        try:
            return list(tokenizer.encode(sample, add_special_tokens=False).ids)
        except Exception:  # the package raises Exception itself if it has not even an unknown token
            return None

    return Reference(
        encode=encode,
        expected=lambda sample: (normalizer.normalize_str(sample) if normalizer else sample).replace("▁", " "),
        decode=lambda ids: tokenizer.decode(ids, skip_special_tokens=False),
        unknown=unknown,
    )
