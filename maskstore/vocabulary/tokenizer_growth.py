"""How much longer the steps of a `tokenizer.json` can make a text, told before any of them runs.

A step that writes two characters for one is harmless; thirty of them write a gigabyte for one
character. Steps of one kind stand in a Sequence, and Sequences inside one another.
"""

from __future__ import annotations

import base64
import binascii
import importlib
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from maskwright.analysis.errors import VocabularyError
from maskwright.maskstore.vocabulary.tokenizer_values import as_list

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
