"""Added tokens that are not special: their bytes are what the tokenizer's decoder gives in the middle of a text."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from small_tokenizers import byte_fallback, byte_level, content_of, token_id, unigram, word_piece

import maskwright as mw
from maskwright.analysis.errors import MissingExtraError, VocabularyError
from maskwright.maskstore.vocabulary import load_vocabulary
from maskwright.maskstore.vocabulary.tokenizer_json import read_tokenizer_json

tokenizers = pytest.importorskip("tokenizers")


def lowercase() -> Any:
    content = content_of(byte_level())
    content.update(normalizer={"type": "Lowercase"}, added_tokens=content["added_tokens"][:1])
    return tokenizers.Tokenizer.from_str(json.dumps(content))


@pytest.mark.parametrize(
    ("make", "name", "normalized", "expected"),
    [
        (byte_level, "<a>", True, b"<a>"),
        (byte_level, "\u0120ab", True, b" ab"),
        (byte_level, "\u0120ab", False, b" ab"),
        (byte_level, "\u65e5 \u8a9e", True, "\u65e5 \u8a9e".encode()),
        (byte_level, "\xe9\xe9", True, b"\xe9\xe9"),
        (lowercase, "<A>", True, b"<a>"),
        (lowercase, "<A>", False, b"<A>"),
        (byte_fallback, "<a>", True, b" <a>"),
        (byte_fallback, "<a>", False, b"<a>"),
        (byte_fallback, "\u2581\u2581\u2581", False, b"   "),
        (unigram, "<a>", True, b"<a>"),
        (word_piece, "<a>", True, b" <a>"),
        (word_piece, "##a##", True, b"a##"),
    ],
)
def test_bytes_are_the_decoders(make: Any, name: str, normalized: bool, expected: bytes) -> None:
    tokenizer = make()
    tokenizer.add_tokens([tokenizers.AddedToken(name, normalized=normalized)])
    vocabulary = load_vocabulary(tokenizer)
    token = tokenizer.get_vocab_size() - 1
    assert vocabulary.checked and vocabulary.tokens[token] == expected
    # the decoder itself, between two other tokens
    tokenizer.decoder = tokenizers.decoders.WordPiece(cleanup=False) if make is word_piece else tokenizer.decoder
    around = token_id(tokenizer, "f")
    alone, whole = (tokenizer.decode(ids, skip_special_tokens=False) for ids in ([around], [around, token]))
    assert whole == alone + expected.decode(errors="replace")


def test_an_added_token_that_the_model_has_too() -> None:
    """Its name is normalised although the piece is not."""
    tokenizer = byte_fallback()
    tokenizer.add_tokens(["def"])
    assert load_vocabulary(tokenizer).tokens[token_id(tokenizer, "def")] == b" def"
    tokenizer = byte_level()
    tokenizer.add_tokens(["\u0120"])
    assert load_vocabulary(tokenizer).tokens[token_id(tokenizer, "\u0120")] == b" "


def test_masks_follow_the_decoder() -> None:
    tokenizer = byte_fallback()
    tokenizer.add_tokens(["<a>"])
    vocabulary = load_vocabulary(tokenizer)
    token = tokenizer.get_vocab_size() - 1
    assert not mw.build_store('start: "<a>"', vocabulary).matcher().is_allowed(token)
    assert mw.build_store('start: " <a>"', vocabulary).matcher().is_allowed(token)


def test_what_stands_beside_a_token_must_not_change_its_text() -> None:
    tokenizer, decoders = byte_fallback(), tokenizers.decoders
    tokenizer.add_tokens([tokenizers.AddedToken("<a>", normalized=False)])
    parts = [decoders.Fuse(), decoders.Replace("d<a>d", "?")]
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), *parts])
    with pytest.raises(VocabularyError, match=r"added token '<a>' another text beside other tokens"):
        load_vocabulary(tokenizer)


def test_a_replacement_character_is_no_text() -> None:
    tokenizer, decoders = byte_fallback(), tokenizers.decoders
    tokenizer.add_tokens([tokenizers.AddedToken("<a>", normalized=False)])
    parts = [decoders.ByteFallback(), decoders.Fuse(), decoders.Replace("<a>", "\ufffd")]
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), *parts])
    with pytest.raises(VocabularyError, match=r"decoder gives the added token '<a>' no whole text"):
        load_vocabulary(tokenizer)


def read_without_the_package(monkeypatch: pytest.MonkeyPatch, tokenizer: Any) -> Any:
    content, text = content_of(tokenizer), tokenizer.to_str()
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    return read_tokenizer_json(content, text, "file")


@pytest.mark.parametrize(
    ("make", "name", "normalized", "expected"),
    [
        (byte_level, "\u0120ab", True, b" ab"),
        (lowercase, "<A>", False, b"<A>"),
        (byte_fallback, "\u2581\u2581\u2581", False, b"   "),
        (word_piece, "<a>", False, b" <a>"),
    ],
)
def test_without_the_package_by_the_steps(
    monkeypatch: pytest.MonkeyPatch, make: Any, name: str, normalized: bool, expected: bytes
) -> None:
    tokenizer = make()
    tokenizer.add_tokens([tokenizers.AddedToken(name, normalized=normalized)])
    table = read_without_the_package(monkeypatch, tokenizer)
    assert table.reference is None and table.tokens[-1] == expected


def test_without_the_package_no_normaliser_is_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = lowercase()
    tokenizer.add_tokens(["<A>"])
    with pytest.raises(
        MissingExtraError, match=r"the normalizer applies to the added token '<A>', so only the package"
    ):
        read_without_the_package(monkeypatch, tokenizer)


def test_without_the_package_ascii_has_one_normal_form(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = byte_level()
    tokenizer.normalizer = tokenizers.normalizers.Sequence([tokenizers.normalizers.NFC()])
    tokenizer.add_tokens(["<A>"])
    assert read_without_the_package(monkeypatch, tokenizer).tokens[-1] == b"<A>"
