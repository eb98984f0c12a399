"""Are a vocabulary's bytes those that the tokenizer decodes to?

Each id is decoded behind a letter, since many decoders treat the first token of a text differently.
Bytes that are no whole character are compared as the character U+FFFD, and in pairs and by all
bytes of characters as what they make together.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from functools import partial

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import MaskwrightError
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.tokenizer_values import is_of_package
from maskwright.servecheck.loading import Decoder, said
from maskwright.servecheck.report import Problem

PAIRS = 3_000
"""Random pairs of tokens that are decoded."""
MOST_SHOWN = 3
"""Tokens that a message shows."""
_BROKEN = re.compile("\ufffd+")


class DecodingError(MaskwrightError):
    """A decoder raises for ids that it has."""


def compare(vocabulary: Vocabulary, decoder: Decoder) -> Iterator[Problem]:
    """The problems of a vocabulary, as a decoder sees it.

    Raises: DecodingError, behind the problems that were found before.
    Cost: some seconds for 131,072 tokens.
    """
    decoder = decoder._replace(decode=partial(_decode, decoder.decode))
    texts = [token for token in vocabulary.text_ids().tolist() if token < decoder.size]
    beyond = [token for token in vocabulary.text_ids().tolist() if token >= decoder.size]
    if beyond:
        yield Problem(
            "error",
            "token-bytes",
            f"{len(beyond)} tokens have ids past the {decoder.size:,} of {decoder.name}, such as {beyond[0]} "
            f"({vocabulary.tokens[beyond[0]]!r})",
            "the folder's files are of two tokenizers: download the model again",
        )
    named = sorted(decoder.special & set(texts))
    if named:
        shown = ", ".join(f"{token} ({vocabulary.tokens[token]!r})" for token in named[:MOST_SHOWN])
        yield Problem(
            "error",
            "special-text",
            f"{decoder.name} calls {len(named)} tokens special that stand for text in masks: {shown}",
            "mark them as special in the tokenizer's file (added_tokens, special: true), or not in its configuration",
        )
    anchor = _anchor(vocabulary, decoder, texts)
    if anchor is None:
        yield Problem(
            "note", "no-letter", f"no token decodes to a letter with {decoder.name}", "check the tokenizer's files"
        )
        return
    usable = [token for token in texts if token not in decoder.special]
    pairs = _pairs(vocabulary, usable)
    for what, groups in (
        ("tokens", [[token] for token in usable]),
        ("pairs of tokens", pairs),
        ("characters spelled by tokens of one byte", _characters(vocabulary, decoder)),
    ):
        wrong = [ids for ids in groups if not _agrees(vocabulary, decoder, [anchor, *ids])]
        if groups is pairs:  # of those that are wrong alone it has been said
            wrong = [pair for pair in wrong if all(_agrees(vocabulary, decoder, [anchor, each]) for each in pair)]
        if wrong:
            yield _disagreement(vocabulary, decoder, f"{len(wrong):,} of {len(groups):,} {what}", anchor, wrong)
    shown_ids = [
        token
        for token in range(min(vocabulary.size, decoder.size))
        if not vocabulary.tokens[token] and token not in decoder.special and token not in vocabulary.special
    ]
    silent = [token for token in shown_ids if decoder.decode([anchor, token]) != decoder.decode([anchor])]
    if silent:
        yield Problem(
            "note",
            "no-text",
            f"{len(silent)} ids stand for no text in masks, but {decoder.name} shows them, such as {silent[0]} "
            f"({clip(decoder.decode([silent[0]]))})",
            "masks never allow them; if they are meant as text, add them to the tokenizer as ordinary tokens",
        )


def _decode(decode: Callable[[list[int]], str], ids: list[int]) -> str:
    try:
        return decode(ids)
    except BaseException as error:
        if not is_of_package(error):
            raise
        raise DecodingError(said(error)) from error


def _anchor(vocabulary: Vocabulary, decoder: Decoder, texts: list[int]) -> int | None:
    """A token that decodes to a letter wherever it stands, and is no byte piece.

    Some decoders show a run of byte pieces that is no whole text as U+FFFD for each of them, the
    letters among them too.
    """
    for token in texts:
        data = vocabulary.tokens[token]
        if (
            token not in vocabulary.byte_pieces
            and len(data) == 1
            and data.isalpha()
            and decoder.decode([token]) == data.decode()
        ):
            return token
    return None


def _pairs(vocabulary: Vocabulary, texts: list[int]) -> list[list[int]]:
    """Random pairs of tokens that all decoders have to show alike."""
    rng = random.Random(0)
    pairs = [[rng.choice(texts), rng.choice(texts)] for _ in range(PAIRS if texts else 0)]
    return [pair for pair in pairs if _is_comparable(vocabulary, pair)]


def _characters(vocabulary: Vocabulary, decoder: Decoder) -> list[list[int]]:
    """Characters outside ASCII that are spelled by tokens of one byte each."""
    byte_ids: dict[bytes, int] = {}
    for token, data in enumerate(vocabulary.tokens):
        if len(data) == 1 and token < decoder.size and (data not in byte_ids or token in vocabulary.byte_pieces):
            byte_ids[data] = token
    codes = [*range(0x80, 0xC0), *(lead << 6 for lead in range(2, 32)), 0x800, *range(0x1000, 0xE000, 0x1000)]
    codes += [0xE000, 0xF000, *(plane << 16 for plane in (1, 4, 8, 12, 16))]
    spelled = [[bytes([byte]) for byte in chr(code).encode()] for code in codes]
    return [[byte_ids[byte] for byte in each] for each in spelled if all(byte in byte_ids for byte in each)]


def _is_comparable(vocabulary: Vocabulary, ids: list[int]) -> bool:
    """Whether all decoders have to show some tokens alike: but not byte pieces that are no text."""
    if vocabulary.byte_pieces.isdisjoint(ids):
        return True
    try:
        b"".join(vocabulary.tokens[token] for token in ids).decode()
    except UnicodeDecodeError:
        return False
    return True


def _agrees(vocabulary: Vocabulary, decoder: Decoder, ids: list[int]) -> bool:
    expected = b"".join(vocabulary.tokens[token] for token in ids).decode(errors="replace")
    return _BROKEN.sub("\ufffd", decoder.decode(ids)) == _BROKEN.sub("\ufffd", expected)


def _disagreement(vocabulary: Vocabulary, decoder: Decoder, what: str, anchor: int, wrong: list[list[int]]) -> Problem:
    shown = "; ".join(
        f"{' '.join(map(str, ids))} is {b''.join(vocabulary.tokens[t] for t in ids)!r} in masks and "
        f"{clip(decoder.decode([anchor, *ids])[1:])} there"
        for ids in wrong[:MOST_SHOWN]
    )
    return Problem(
        "error",
        "token-bytes",
        f"{what} decode otherwise with {decoder.name}: {shown}",
        "masks would be wrong for these: do not serve this tokenizer; report it with its tokenizer files",
    )
