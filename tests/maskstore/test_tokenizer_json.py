"""tokenizer.json of every common kind and tokenizer objects: bytes by the decoder, specials, contradictions found."""

from __future__ import annotations

import base64
import copy
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from maskwright.analysis.errors import VocabularyError
from maskwright.maskstore.vocabulary import Vocabulary, load_vocabulary
from maskwright.maskstore.vocabulary.encoders import load_encoder
from maskwright.maskstore.vocabulary.tokenizer_json import byte_level_alphabet

tokenizers = pytest.importorskip("tokenizers")

CORPUS = ["def f(x): return x", "if a and b: print('c')", "for i in range(10):  total += i\n", "naïve 日本"] * 5
END = "<|endoftext|>"


def byte_level() -> Any:
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=300, special_tokens=[END], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_tokens(["  ", "<tool>"])
    tokenizer.add_special_tokens(["<|im_end|>"])
    return tokenizer


def byte_fallback() -> Any:
    """Llama's kind: `▁` by the normaliser, bytes and the dummy prefix by the decoder."""
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "d", "e", "f", "de", "def"]
    vocab = {piece: token for token, piece in enumerate([*pieces, "▁def", "▁▁"])}
    merges = [("d", "e"), ("de", "f"), ("▁", "def"), ("▁", "▁")]
    model = tokenizers.models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    tokenizer = tokenizers.Tokenizer(model)
    normalizers, decoders = tokenizers.normalizers, tokenizers.decoders
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    return tokenizer


def unigram() -> Any:
    """T5's kind: white space is cut at and lost, then `▁` by the pre-tokenizer; no bytes."""
    characters = sorted(set("".join(CORPUS)) - {" ", "\n"})
    vocab = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0), ("▁return", -3.0)]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram([*vocab, *((c, -4.0) for c in characters)], unk_id=2))
    cut = tokenizers.pre_tokenizers
    tokenizer.pre_tokenizer = cut.Sequence([cut.WhitespaceSplit(), cut.Metaspace()])
    tokenizer.decoder = tokenizers.decoders.Metaspace()
    tokenizer.add_special_tokens(["<pad>", "</s>"])
    return tokenizer


def word_piece() -> Any:
    printable = [chr(code) for code in range(0x21, 0x7F)]
    pieces = ["[PAD]", "[UNK]", "[SEP]", *printable, *("##" + c for c in printable), "return", "##in"]
    vocab = {piece: token for token, piece in enumerate(pieces)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocab=vocab, unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = tokenizers.decoders.WordPiece()
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[SEP]"])
    return tokenizer


def loaded(tmp_path: Path, content: Any) -> Vocabulary:
    path = tmp_path / "some.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return load_vocabulary(path)


def content_of(tokenizer: Any) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(tokenizer.to_str())
    return content


def token_id(tokenizer: Any, piece: str) -> int:
    token: int = tokenizer.token_to_id(piece)
    return token


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
    tokenizer.add_tokens(["日本 語", "é!"])
    vocabulary = load_vocabulary(tokenizer)
    assert vocabulary.tokens[token_id(tokenizer, "日本 語")] == "日本 語".encode()
    assert vocabulary.tokens[token_id(tokenizer, "é!")] == "é!".encode()


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


def test_mistral_common_objects() -> None:
    module = pytest.importorskip("mistral_common.tokens.tokenizers.mistral")
    tokenizer = module.MistralTokenizer.v1()
    expected = load_vocabulary("mistral-7b-v0.1")
    for source in (tokenizer, tokenizer.instruct_tokenizer, tokenizer.instruct_tokenizer.tokenizer):
        assert load_vocabulary(source) == expected
    with pytest.raises(VocabularyError, match=r"holds no Tekkenizer or SentencePieceTokenizer; give the MistralTok"):
        load_vocabulary(tokenizer._chat_completion_request_validator)


def test_tekkenizer_object() -> None:
    module = pytest.importorskip("mistral_common.tokens.tokenizers.mistral")
    vocabulary = load_vocabulary(module.MistralTokenizer.v3(is_tekken=True))
    assert vocabulary.checked
    assert vocabulary == load_vocabulary("tekken")


def test_tiktoken_object() -> None:
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes((byte,)): byte for byte in range(256)} | {b"ab": 256, b"abc": 258}
    encoding = tiktoken.Encoding(
        "e", pat_str=r"\s+|\S+", mergeable_ranks=ranks, special_tokens={"<mid>": 257, END: 263}
    )
    vocabulary = load_vocabulary(encoding, name="mine")
    assert vocabulary.name == "mine"
    assert vocabulary.checked
    assert vocabulary.tokens[256:] == (b"ab", b"", b"abc", b"", b"", b"", b"", b"")
    assert dict(vocabulary.special) == {257: "<mid>", 263: END}
    assert vocabulary.eos == (263,)


def test_tokenizers_object_written_in_python() -> None:
    class Cut:
        def pre_tokenize(self, pretokenized: Any) -> None:
            """Cut nowhere."""

    tokenizer = byte_level()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.PreTokenizer.custom(Cut())
    with pytest.raises(VocabularyError, match=r"Tokenizer object: cannot be written as tokenizer.json: "):
        load_vocabulary(tokenizer)


def test_other_objects() -> None:
    with pytest.raises(VocabularyError, match=r"from an object of type builtins.int; expected a path, a built-in name"):
        load_vocabulary(7)


def from_transformers(**fields: Any) -> Any:
    """An object as the package transformers makes them, as far as it is looked at."""
    made = type("SomeTokenizer", (SimpleNamespace,), {"__module__": "transformers.models.some"})
    return made(
        **({"all_special_ids": [], "all_special_tokens": [], "eos_token_id": None, "unk_token_id": None} | fields)
    )


def test_transformers_fast_object() -> None:
    tokenizer = byte_level()
    tool = token_id(tokenizer, "<tool>")
    source = from_transformers(
        backend_tokenizer=tokenizer, all_special_ids=[tool], all_special_tokens=["<tool>"], eos_token_id=tool
    )
    vocabulary = load_vocabulary(source)
    assert vocabulary.name == "SomeTokenizer"
    assert vocabulary.checked
    assert vocabulary.special[tool] == "<tool>"
    assert vocabulary.eos == (tool,)
    assert vocabulary.tokens[:tool] == load_vocabulary(tokenizer).tokens[:tool]


def test_transformers_object_over_mistral_common_and_tiktoken() -> None:
    module = pytest.importorskip("mistral_common.tokens.tokenizers.mistral")
    assert load_vocabulary(from_transformers(tokenizer=module.MistralTokenizer.v1())).size == 32000
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes((byte,)): byte for byte in range(256)}
    encoding = tiktoken.Encoding("e", pat_str=r"\s+|\S+", mergeable_ranks=ranks, special_tokens={END: 256})
    assert load_vocabulary(from_transformers(tokenizer=encoding)).eos == (256,)


def test_transformers_slow_object_over_sentencepiece() -> None:
    module = pytest.importorskip("mistral_common.tokens.tokenizers.mistral")
    processor = module.MistralTokenizer.v1().instruct_tokenizer.tokenizer._model
    source = from_transformers(
        sp_model=processor,
        get_vocab=lambda: {processor.id_to_piece(token): token for token in range(32000)} | {"<tool>": 32000},
        added_tokens_decoder={
            2: SimpleNamespace(content="</s>", special=True),
            32000: SimpleNamespace(content="<tool>", special=False),
        },
        encode=lambda text, add_special_tokens: processor.encode(text),
        decode=lambda ids, clean_up_tokenization_spaces: processor.decode(ids),
        eos_token_id=2,
        unk_token_id=0,
    )
    vocabulary = load_vocabulary(source)
    plain = load_vocabulary("mistral-7b-v0.1")
    assert vocabulary.checked
    assert vocabulary.tokens == (*plain.tokens, b"<tool>")
    assert (vocabulary.special, vocabulary.eos, vocabulary.byte_pieces) == (plain.special, plain.eos, plain.byte_pieces)


def test_transformers_slow_object_over_bytes() -> None:
    alphabet = byte_level_alphabet()
    vocab = {character: byte for character, byte in alphabet.items()} | {"Ġ(": 256}
    source = from_transformers(
        byte_decoder=alphabet,
        get_vocab=lambda: vocab | {END: 257},
        added_tokens_decoder={257: SimpleNamespace(content=END, special=True)},
        encode=lambda text, add_special_tokens: list(text.encode()),
        decode=lambda ids, clean_up_tokenization_spaces: bytes(ids).decode(),
    )
    vocabulary = load_vocabulary(source)
    assert vocabulary.tokens[ord("a")] == b"a"
    assert vocabulary.tokens[256:] == (b" (", b"")
    assert vocabulary.eos == (257,)


def test_transformers_object_of_unknown_make() -> None:
    with pytest.raises(VocabularyError, match=r"is written in Python and holds no .*; load it as a fast tokenizer"):
        load_vocabulary(from_transformers())


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
