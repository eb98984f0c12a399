"""tokenizer.json of every common kind and tokenizer objects: bytes by the decoder, specials, contradictions found."""

from __future__ import annotations

import base64
import copy
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from small_tokenizers import CORPUS, END, byte_fallback, byte_level, content_of, token_id, unigram, word_piece

from maskwright.analysis.errors import VocabularyError
from maskwright.maskstore.vocabulary import Vocabulary, load_vocabulary
from maskwright.maskstore.vocabulary.encoders import load_encoder
from maskwright.maskstore.vocabulary.tokenizer_json import byte_level_alphabet

tokenizers = pytest.importorskip("tokenizers")


def loaded(tmp_path: Path, content: Any) -> Vocabulary:
    path = tmp_path / "some.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return load_vocabulary(path)


# Each kind


def test_alphabet_is_that_of_tokenizers() -> None:
    alphabet = byte_level_alphabet()
    assert set(alphabet) == set(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    assert sorted(alphabet.values()) == list(range(256))


def test_byte_level() -> None:
    tokenizer = byte_level()
    vocabulary = load_vocabulary(tokenizer)
    assert vocabulary.name == "Tokenizer"
    assert vocabulary.checked
    assert vocabulary.is_byte_complete
    assert vocabulary.byte_pieces == frozenset()
    assert vocabulary.eos == (0, token_id(tokenizer, "<|im_end|>"))
    assert vocabulary.tokens[token_id(tokenizer, "<tool>")] == b"<tool>"
    assert vocabulary.tokens[token_id(tokenizer, "  ")] == b"  "
    spaced = [piece for piece in tokenizer.get_vocab() if piece.startswith("Ġ")]
    words = {piece: vocabulary.tokens[token_id(tokenizer, piece)] for piece in spaced if piece[1:].isascii()}
    assert len(words) > 3
    assert all(text == b" " + piece[1:].encode() for piece, text in words.items())
    for text in CORPUS:
        assert b"".join(vocabulary.tokens[token] for token in tokenizer.encode(text).ids) == text.encode()


def test_byte_fallback(tmp_path: Path) -> None:
    tokenizer = byte_fallback()
    vocabulary = loaded(tmp_path, content_of(tokenizer))
    assert vocabulary.checked
    assert vocabulary.is_byte_complete
    assert vocabulary.byte_pieces == frozenset(range(3, 259))
    assert dict(vocabulary.special) == {0: "<unk>", 1: "<s>", 2: "</s>"}
    assert vocabulary.eos == (2,)
    assert vocabulary.tokens[13] == b"\n"
    assert vocabulary.tokens[259:] == (b" ", b"d", b"e", b"f", b"de", b"def", b" def", b"  ")


def test_byte_fallback_is_the_same_tokenizer_as_its_sentencepiece_model(tmp_path: Path) -> None:
    # One model in two formats has one digest.
    sentencepiece = pytest.importorskip("sentencepiece")
    stream = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS),
        model_writer=stream,
        vocab_size=320,
        model_type="unigram",
        byte_fallback=True,
        hard_vocab_limit=False,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        minloglevel=2,
    )
    (tmp_path / "some.model").write_bytes(stream.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=stream.getvalue())
    vocab = [(processor.id_to_piece(token), processor.get_score(token)) for token in range(processor.vocab_size())]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram(vocab, unk_id=0, byte_fallback=True))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    tokenizer.decoder = tokenizers.decoders.Sequence(
        [tokenizers.decoders.ByteFallback(), tokenizers.decoders.Metaspace()]
    )
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    assert load_vocabulary(tokenizer).digest == load_vocabulary(tmp_path / "some.model").digest


def test_unigram_that_loses_white_space() -> None:
    vocabulary = load_vocabulary(unigram())
    assert vocabulary.checked
    assert dict(vocabulary.special) == {0: "<pad>", 1: "</s>", 2: "<unk>"}
    assert vocabulary.eos == (1,)
    assert vocabulary.tokens[3:5] == (b" ", b" return")


def test_word_piece() -> None:
    tokenizer = word_piece()
    vocabulary = load_vocabulary(tokenizer)
    assert vocabulary.checked
    assert vocabulary.tokens[token_id(tokenizer, "return")] == b" return"
    assert vocabulary.tokens[token_id(tokenizer, "##in")] == b"in"
    assert dict(vocabulary.special) == {0: "[PAD]", 1: "[UNK]", 2: "[SEP]"}
    assert vocabulary.eos == ()


def test_no_decoder_means_the_pre_tokenizer_undone(tmp_path: Path) -> None:
    for tokenizer in (byte_level(), unigram()):
        content = content_of(tokenizer)
        content["decoder"] = None
        assert loaded(tmp_path, content) == load_vocabulary(tokenizer)


def test_nested_decoders(tmp_path: Path) -> None:
    content = content_of(byte_fallback())
    content["decoder"]["decoders"][:2] = [{"type": "Sequence", "decoders": content["decoder"]["decoders"][:2]}]
    assert loaded(tmp_path, content) == load_vocabulary(byte_fallback())


def test_added_tokens_with_the_space_mark_are_read_by_the_decoder() -> None:
    # Gemma's kind: runs of spaces as added tokens that are not special, in the model too.
    tokenizer = byte_fallback()
    tokenizer.add_tokens([tokenizers.AddedToken(text, normalized=False) for text in ("▁▁", "▁▁▁▁", "<html>")])
    vocabulary = load_vocabulary(tokenizer)
    assert vocabulary.tokens[token_id(tokenizer, "▁▁")] == b"  "
    assert vocabulary.tokens[token_id(tokenizer, "▁▁▁▁")] == b"    "
    assert vocabulary.tokens[token_id(tokenizer, "<html>")] == b"<html>"


def test_byte_level_pieces_outside_the_alphabet_are_literal() -> None:
    tokenizer = byte_level()
    tokenizer.add_tokens(["日本 語", "é!", "é 語"])
    vocabulary = load_vocabulary(tokenizer)
    assert vocabulary.tokens[token_id(tokenizer, "日本 語")] == "日本 語".encode()
    assert vocabulary.tokens[token_id(tokenizer, "é 語")] == "é 語".encode()
    assert vocabulary.tokens[token_id(tokenizer, "é!")] == b"\xe9!"  # all of it is in the alphabet


def test_room_below_added_tokens_is_no_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The package would number it 302; files for other readers do leave room.
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    content = content_of(byte_level())
    content["added_tokens"] = [{"id": 0, "content": END, "special": True}]
    size = len(content["model"]["vocab"])
    content["added_tokens"].append({"id": size + 5, "content": "<|im_end|>", "special": True})
    vocabulary = loaded(tmp_path, content)
    assert vocabulary.size == size + 6
    assert vocabulary.tokens[size:] == (b"",) * 6
    assert vocabulary.eos == (0, size + 5)
    assert not vocabulary.checked


def test_truncation_and_padding_of_the_file_do_not_matter() -> None:
    tokenizer = byte_level()
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=100)
    assert load_vocabulary(tokenizer) == load_vocabulary(byte_level())
    assert tokenizer.truncation["max_length"] == 4  # the object is left as it was


# Damaged and contradicting files


def changed(tokenizer: Any, path: str, value: Any) -> dict[str, Any]:
    content = content_of(tokenizer)
    *outer, last = path.split(".")
    place: Any = content
    for key in outer:
        place = place[int(key) if isinstance(place, list) else key]
    place[last] = value
    return content


@pytest.mark.parametrize(
    ("make", "path", "value", "expected"),
    [
        (byte_level, "model.vocab", None, r"model.vocab is None, expected pieces with their ids, or a list"),
        (byte_level, "model.vocab.x", 1, r"model.vocab gives id 1 to '!' and to 'x'"),
        (byte_level, "model.vocab.x", "1", r"piece 'x': id '1' is out of range"),
        (byte_level, "model.vocab.x", 1 << 40, r"piece 'x': id 1099511627776 is out of range"),
        (byte_level, "model.vocab.x", 310, r"\d+ of the ids 0 to 310 have no token"),
        (byte_level, "model.vocab.", 303, r"model.vocab has an empty piece \(id 303\)"),
        (unigram, "model.vocab", [["a", 0], ["b", 0], ["a", 0]], r"model.vocab has the piece 'a' twice"),
        (unigram, "model.vocab", [["a", 0], [3, 0]], r"model.vocab\[1\] is 3, expected \[piece, score\]"),
        (unigram, "model.unk_id", 999, r"model.unk_id is 999, which is not a piece of model.vocab"),
        (byte_level, "model.vocab.\ud800", 303, r"'\\ud800' holds half a surrogate pair"),
        (byte_level, "added_tokens", 3, r"added_tokens is 3, expected a list"),
        (byte_level, "added_tokens", [3], r"added_tokens\[0\] is 3, expected an object"),
        (
            byte_level,
            "added_tokens",
            [{"id": 0}],
            r"added_tokens\[0\] has the content None, expected a non-empty string",
        ),
        (byte_level, "added_tokens", [{"content": "x"}], r"added_tokens\[0\]: id None is out of range"),
        (byte_level, "added_tokens", [{"id": 0, "content": c} for c in "ab"], r"gives id 0 to 'a' and to 'b'"),
        (
            byte_level,
            "added_tokens.3.id",
            900,
            r"'<\|im_end\|>' has id 900 in the file, but the package .* correct the ids",
        ),
        (byte_level, "added_tokens.0.content", "\ud800", r"special token 0: '\\ud800' holds half a surrogate pair"),
        (word_piece, "decoder.prefix", None, r"decoder step .*'prefix': None.* does not give each piece a text of its"),
        (unigram, "decoder.replacement", 7, r"decoder step .*'replacement': 7.* does not give each piece a text"),
        (byte_level, "decoder", "ByteLevel", r"decoder is 'ByteLevel', expected an object"),
        (byte_level, "decoder", {"type": "Sequence"}, r"decoder.decoders is None, expected a list"),
        (
            byte_level,
            "decoder",
            {"type": "CTC"},
            r"decoder step \{'type': 'CTC'\} does not give each piece a text of its",
        ),
        (byte_fallback, "decoder.decoders.0.pattern", {"Regex": "▁"}, r"decoder step .*Replace of a string"),
        (
            byte_level,
            "decoder",
            {"type": "WordPiece", "prefix": "##", "cleanup": True},
            r"do not spell the text that they encode",
        ),
        (byte_level, "decoder", {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"}, r"do not spell"),
        (
            byte_level,
            "model.merges",
            [["no", "such"]],
            r"refused by the package tokenizers .*; the file is damaged, or",
        ),
    ],
)
def test_damaged(tmp_path: Path, make: Any, path: str, value: Any, expected: str) -> None:
    with pytest.raises(VocabularyError, match=expected):
        loaded(tmp_path, changed(make(), path, copy.deepcopy(value)))


def test_no_decoder_and_no_hint(tmp_path: Path) -> None:
    content = content_of(word_piece())
    content["decoder"] = None
    with pytest.raises(
        VocabularyError,
        match=r"has no decoder and no byte-level or Metaspace pre-tokenizer, .*save the tokenizer with a decod",
    ):
        loaded(tmp_path, content)


# Objects


# Any file at all: read, or refused by one of our errors


def places(value: Any) -> list[tuple[Any, Any]]:
    """(container, key) of everything inside a JSON value; of long ones the first few only."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    return [place for key in keys[:6] for place in [(value, key), *places(value[key])]]


@pytest.mark.parametrize("make", [byte_level, byte_fallback, unigram, word_piece])
def test_any_value_anywhere_is_read_or_refused(tmp_path: Path, make: Any) -> None:
    content = content_of(make())
    outcomes = {"read": 0, "refused": 0}
    for container, key in places(content):
        kept = container[key]
        for value in (None, -1, 1.5, "", "\ud800", [1], {"a": 1}):
            container[key] = value
            try:
                loaded(tmp_path, content)
                outcomes["read"] += 1
            except VocabularyError as error:
                assert "some.json" in str(error)
                outcomes["refused"] += 1
        container[key] = kept
    assert loaded(tmp_path, content) == load_vocabulary(make())
    assert outcomes["refused"] > 100 and outcomes["read"] > 0


PRE = base64.b64encode(b"\0\0\0\0").decode()
PANICS = {
    "construction": {"model": {"continuing_subword_prefix": "ééé", "merges": ["a b"]}},
    "normaliser": {"normalizer": {"type": "Precompiled", "precompiled_charsmap": ""}},
    "encoding": {"normalizer": {"type": "Precompiled", "precompiled_charsmap": PRE}},
}


@pytest.mark.parametrize("kind", PANICS)
def test_a_panic_of_the_package_is_an_error_of_the_file(kind: str, tmp_path: Path) -> None:
    """A panic is no Exception: only `except BaseException` sees it."""
    pytest.importorskip("tokenizers")
    changes: dict[str, Any] = dict(PANICS[kind])
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [], **changes.pop("model", {})}
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"model": model, "decoder": {"type": "Fuse"}, **changes}))
    with pytest.raises(
        VocabularyError, match=r"refused by the package tokenizers|the tokenizer's own encoder fails on the text"
    ):
        load_vocabulary(path)
    with pytest.raises(VocabularyError):
        load_encoder(path)


def test_an_encoder_that_has_no_token_for_a_text(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    path = tmp_path / "tokenizer.json"
    model = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "none"}
    path.write_text(json.dumps({"model": model, "decoder": {"type": "Fuse"}}))
    encoder = load_encoder(path)
    for way in (encoder.encode, encoder.exact_tokens):
        with pytest.raises(
            VocabularyError, match="the tokenizer's own encoder fails on the text 'xyz': 'WordLevel error"
        ):
            way("xyz")


def test_a_unigram_piece_twice(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    model = {"type": "Unigram", "vocab": [["a", 0.0], ["a", -1.0]], "unk_id": 0}
    path.write_text(json.dumps({"model": model, "decoder": {"type": "Fuse"}}))
    with pytest.raises(VocabularyError, match=r"model\.vocab has the piece 'a' twice"):
        load_vocabulary(path)


@pytest.mark.parametrize("key", ["²", "٣", "9" * 5000, "-1", "1_0", ""])
def test_ids_of_added_tokens_are_digits(key: str, tmp_path: Path) -> None:
    alphabet = {chr(97 + i): i for i in range(26)}
    model = {"type": "BPE", "vocab": alphabet, "merges": []}
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": model, "decoder": {"type": "Fuse"}}))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": {key: {"content": "x"}}}))
    with pytest.raises(
        VocabularyError, match=r"added_tokens_decoder\['.{0,130}'?\] is .*; expected an id and an object"
    ) as error:
        load_vocabulary(tmp_path)
    assert len(str(error.value)) < 500
