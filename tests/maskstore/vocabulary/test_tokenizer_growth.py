"""Steps of a tokenizer.json that multiply a text are refused before any of them runs."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from small_tokenizers import byte_fallback, byte_level, content_of, unigram, word_piece

from maskwright.analysis.errors import VocabularyError
from maskwright.maskstore.vocabulary import load_vocabulary
from maskwright.maskstore.vocabulary.tokenizer_json import MOST_DEPTH, check_growth


def replace(pattern: dict[str, str], by: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": by}


def nested(member: str, steps: list[Any], depth: int) -> Any:
    found: Any = {"type": "Sequence", member: steps}
    for _ in range(depth - 1):
        found = {"type": "Sequence", member: [found]}
    return found


DOUBLE = replace({"String": "e"}, "ee")
CHARS = base64.b64encode((4).to_bytes(4, "little") + bytes(4) + b"abcde" * 30 + b"\0a\0").decode()


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize(
    ("member", "parts", "steps"),
    [
        ("normalizer", "normalizers", [DOUBLE] * 40),
        ("normalizer", "normalizers", [replace({"String": "e"}, "e" * 5000)]),
        ("normalizer", "normalizers", [replace({"String": ""}, "e")] * 13),
        ("normalizer", "normalizers", [replace({"Regex": "x*"}, "e")] * 13),
        ("normalizer", "normalizers", [replace({"Regex": "(?<x>.)"}, "ee")] * 13),
        ("normalizer", "normalizers", [replace({"Regex": "."}, "ee")] * 13),
        ("normalizer", "normalizers", [replace({"Regex": "x|" * 10**5 + "x"}, "e")] * 13),
        ("normalizer", "normalizers", [replace({"String": " "}, "\ufdfa"), {"type": "NFKC"}] * 3),
        ("normalizer", "normalizers", [{"type": "ByteLevel"}] * 7),
        ("normalizer", "normalizers", [{"type": "Precompiled", "precompiled_charsmap": CHARS}] * 2),
        ("pre_tokenizer", "pretokenizers", [{"type": "ByteLevel", "add_prefix_space": False}] * 7),
        ("decoder", "decoders", [DOUBLE] * 40),
        ("decoder", "decoders", [DOUBLE] * 5),
    ],
)
def test_what_multiplies_is_refused(
    tmp_path: Path, member: str, parts: str, steps: list[dict[str, Any]], depth: int
) -> None:
    content = {**content_of(byte_level()), member: nested(parts, steps, depth)}
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(content))
    with pytest.raises(VocabularyError, match=r"can make a text more than [\d,]+ times longer"):
        load_vocabulary(path)


@pytest.mark.parametrize(
    ("member", "parts"), [("normalizer", "normalizers"), ("pre_tokenizer", "pretokenizers"), ("decoder", "decoders")]
)
@pytest.mark.parametrize("depth", [MOST_DEPTH + 1, 120])
def test_deep_sequences_are_refused(tmp_path: Path, member: str, parts: str, depth: int) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({**content_of(byte_level()), member: nested(parts, [], depth)}))
    with pytest.raises(VocabularyError, match="more than 32 Sequences inside one another"):
        load_vocabulary(path)


@pytest.mark.filterwarnings("error")
def test_what_tokenizers_in_use_have_is_read() -> None:
    for make in (byte_level, byte_fallback, unigram, word_piece):
        check_growth(content_of(make()), "file")
    # a normal form, a table of characters, blanks, marks; and lists of replacements that do not grow
    chars = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(bytes(8) + b"x" * 33 + b"\0").decode()}
    blanks = replace({"Regex": " {2,}"}, "\u2581")
    steps = [
        {"type": "NFKC"},
        chars,
        *[blanks, replace({"Regex": "[[:space:]]{2,}"}, " ")] * 50,  # Python's re warns of the second
        replace({"String": "``"}, '"'),
        replace({"String": " "}, "\u2581"),
    ]
    check_growth({"normalizer": nested("normalizers", steps, MOST_DEPTH)}, "file")
    check_growth({"normalizer": None, "pre_tokenizer": {"type": "ByteLevel"}, "decoder": DOUBLE}, "file")
