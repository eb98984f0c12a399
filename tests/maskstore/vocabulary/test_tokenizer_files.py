"""SentencePiece models, tekken and tiktoken rank files, folders: exact on small made files, loud on damaged ones."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from maskwright.analysis.errors import MissingExtraError, VocabularyError
from maskwright.maskstore.vocabulary import load_vocabulary, tokenizer_files, tokenizer_ranks
from maskwright.maskstore.vocabulary.tokenizer_table import SAMPLES, Reference, TokenTable, check_round_trip
from maskwright.maskstore.vocabulary.tokenizer_values import encode_text

BYTES = [bytes((byte,)) for byte in range(256)]
CORPUS = ["def f(x): return x", "if a and b: print('c')", "for i in range(10): total += i", "class A: pass"] * 5


# SentencePiece


def message(number: int, payload: bytes) -> bytes:
    """Field `number` of a protobuf message, length-delimited."""
    assert len(payload) < 128
    return bytes((number << 3 | 2, len(payload))) + payload


def piece(text: str, kind: int = 1) -> bytes:
    """A ModelProto.SentencePiece: text, score 0, type (1 normal, 2 unknown, 3 control, 4 user, 5 unused, 6 byte)."""
    return message(1, message(1, text.encode()) + b"\x15\0\0\0\0" + bytes((3 << 3, kind)))


SPECIAL_PIECES = piece("<unk>", 2) + piece("<s>", 3) + piece("</s>", 3)


def trained(tmp_path: Path, **options: Any) -> Path:
    sentencepiece = pytest.importorskip("sentencepiece")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_writer=model, vocab_size=300, minloglevel=2, **options
    )
    path = tmp_path / "some.model"
    path.write_bytes(model.getvalue())
    return path


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
def test_sentencepiece_with_bytes(tmp_path: Path, model_type: str) -> None:
    path = trained(
        tmp_path,
        model_type=model_type,
        byte_fallback=True,
        hard_vocab_limit=False,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        user_defined_symbols=["▁▁", "<tool>"],
    )
    vocabulary = load_vocabulary(path)
    assert vocabulary.name == "some.model"
    assert vocabulary.checked
    assert vocabulary.is_byte_complete
    assert dict(vocabulary.special) == {0: "<unk>", 1: "<s>", 2: "</s>"}
    assert vocabulary.eos == (2,)
    assert len(vocabulary.byte_pieces) == 256
    assert vocabulary.tokens[3:5] == (b"  ", b"<tool>")
    assert b" f" in vocabulary.tokens
    assert not any("▁".encode() in token for token in vocabulary.tokens)


def test_sentencepiece_that_normalises_and_has_unknowns(tmp_path: Path) -> None:
    # The default: NFKC, runs of white space become one space, no bytes to fall back to.
    vocabulary = load_vocabulary(trained(tmp_path, hard_vocab_limit=False))
    assert vocabulary.checked
    assert not vocabulary.is_byte_complete
    assert vocabulary.byte_pieces == frozenset()


def test_sentencepiece_unused_pieces_stand_for_nothing(tmp_path: Path) -> None:
    pytest.importorskip("sentencepiece")
    path = tmp_path / "unused"
    path.write_bytes(SPECIAL_PIECES + piece("a") + piece("hole", 5) + piece("▁b▁"))
    assert load_vocabulary(path).tokens == (b"", b"", b"", b"a", b"", b" b ")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", r"not a tokenizer file: .* its 0 bytes as a model: 'the file is empty'; it is damaged"),
        (b"\x0a\x05abc", r"cannot read its 5 bytes"),
        (
            (SPECIAL_PIECES + piece("a"))[:-3],
            r"not a tokenizer file: it is not JSON, does not begin with a tiktoken rank",
        ),
        (SPECIAL_PIECES + piece("a") + piece("a"), r"not a tokenizer file.*a is already defined"),
        (SPECIAL_PIECES + piece("a") + piece(""), r"not a tokenizer file"),
        (SPECIAL_PIECES + piece("a", 5), r"has no token that stands for a text; the file is empty or damaged"),
    ],
)
def test_damaged_sentencepiece(tmp_path: Path, data: bytes, expected: str) -> None:
    pytest.importorskip("sentencepiece")
    path = tmp_path / "tokenizer.model.v1"
    path.write_bytes(data)
    with pytest.raises(VocabularyError, match=expected):
        load_vocabulary(path)


def test_sentencepiece_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    path = tmp_path / "tokenizer.model"
    path.write_bytes(SPECIAL_PIECES)
    with pytest.raises(MissingExtraError, match=r"sentencepiece: pip install 'maskwright\[tokenizers\]'"):
        load_vocabulary(path)


# tekken


def tekken(texts: list[bytes], **changes: Any) -> dict[str, Any]:
    config = {"pattern": r"\s+|\S+", "default_vocab_size": len(texts) + 10, "default_num_special_tokens": 10}
    vocab = [{"rank": i, "token_bytes": base64.b64encode(text).decode()} for i, text in enumerate(texts)]
    return {"config": config | changes.pop("config", {}), "vocab": vocab, **changes}


def written(tmp_path: Path, content: Any, name: str = "tekken.json") -> Path:
    path = tmp_path / name
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_tekken(tmp_path: Path) -> None:
    pytest.importorskip("tiktoken")
    vocabulary = load_vocabulary(written(tmp_path, tekken([*BYTES, b"de", b"def", b" def"])))
    assert vocabulary.checked
    assert vocabulary.tokens == (b"",) * 10 + (*BYTES, b"de", b"def", b" def")
    assert list(vocabulary.special.values()) == list(tokenizer_ranks.TEKKEN_SPECIAL[:10])
    assert vocabulary.eos == (2,)


def test_tekken_that_lists_its_special_tokens_and_is_cut_off_by_config(tmp_path: Path) -> None:
    listed = [{"rank": 1, "token_str": "</s>", "is_control": True}, {"rank": 4, "token_str": "[THINK]"}]
    content = tekken([*BYTES, b"de", b"def"], config={"default_vocab_size": 267}, special_tokens=listed)
    vocabulary = load_vocabulary(written(tmp_path, content))
    assert vocabulary.size == 267
    assert vocabulary.tokens[-1] == b"de"
    assert vocabulary.eos == (1,)
    assert {token: vocabulary.special[token] for token in (0, 1, 4)} == {0: "<SPECIAL_0>", 1: "</s>", 4: "[THINK]"}
    assert len(vocabulary.special) == 10


def test_tekken_special_tokens_are_those_of_mistral_common() -> None:
    module = pytest.importorskip("mistral_common.tokens.tokenizers.tekken")
    deprecated = module.Tekkenizer.DEPRECATED_SPECIAL_TOKENS
    assert [entry["token_str"] for entry in deprecated] == list(tokenizer_ranks.TEKKEN_SPECIAL)
    assert [entry["rank"] for entry in deprecated] == list(range(20))
    assert module.Tekkenizer.SPECIAL_TOKEN_TEMPLATE.format(id=7) == "<SPECIAL_7>"


def swapped(content: dict[str, Any], i: int, entry: Any) -> dict[str, Any]:
    content["vocab"][i] = entry
    return content


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (tekken(BYTES, config={"default_vocab_size": 300}), r"config asks for 290 tokens with text .*vocab has 256"),
        (
            tekken(BYTES, config={"default_vocab_size": "many"}),
            r"config.default_vocab_size is 'many', expected a number",
        ),
        (tekken(BYTES, config={"default_num_special_tokens": -1}), r"config.default_num_special_tokens is -1"),
        (tekken(BYTES, config={"pattern": None}), r"config.pattern is None, expected a regular expression"),
        (tekken(BYTES, config={"pattern": "("}), r"the pattern that cuts words is not a regular expression"),
        (tekken(BYTES, special_tokens=[{"rank": 10, "token_str": "<x>"}]), r"special_tokens\[0\] .* rank from 0 to 9 "),
        (tekken(BYTES, special_tokens=3), r"special_tokens is 3, expected a list"),
        (tekken(BYTES, special_tokens=["<x>"]), r"special_tokens\[0\] is '<x>'; expected token_str"),
        (swapped(tekken(BYTES), 7, {"rank": 8, "token_bytes": "Bw=="}), r"vocab\[7\] .*expected an object with rank 7"),
        (swapped(tekken(BYTES), 7, {"rank": 7, "token_bytes": 7}), r"vocab\[7\] .* and token_bytes in base64"),
        (swapped(tekken(BYTES), 7, None), r"vocab\[7\] is None; expected an object"),
        (swapped(tekken(BYTES), 7, {"rank": 7, "token_bytes": "B!=="}), r"vocab\[7\]: b'B!==' is not base64"),
        (swapped(tekken(BYTES), 7, {"rank": 7, "token_bytes": ""}), r"vocab\[7\]: an empty token"),
        (
            swapped(tekken(BYTES), 7, {"rank": 7, "token_bytes": "Bg=="}),
            r"vocab\[7\]: token b'\\x06' has id 16 already",
        ),
        (tekken([*BYTES[1:], b"ab"]), r"1 of the 256 single bytes have no token \(0x00 is the first\)"),
    ],
)
def test_damaged_tekken(tmp_path: Path, content: Any, expected: str) -> None:
    pytest.importorskip("tiktoken")
    with pytest.raises(VocabularyError, match=expected):
        load_vocabulary(written(tmp_path, content))


# tiktoken


def ranks(texts: Mapping[bytes, int]) -> bytes:
    return b"".join(base64.b64encode(text) + b" %d\n" % rank for text, rank in texts.items())


ALL_BYTES = {text: rank for rank, text in enumerate(BYTES)}


def test_tiktoken(tmp_path: Path) -> None:
    pytest.importorskip("tiktoken")
    path = tmp_path / "my.tiktoken"
    path.write_bytes(ranks({**ALL_BYTES, b"de": 256, b"def": 258}))
    vocabulary = load_vocabulary(path, special={"<mid>": 257, "<|endoftext|>": 300})
    assert vocabulary.checked
    assert vocabulary.tokens == (*BYTES, b"de", b"", b"def") + (b"",) * 42
    assert dict(vocabulary.special) == {257: "<mid>", 300: "<|endoftext|>"}
    assert vocabulary.eos == (300,)
    assert load_vocabulary(path, special={"<mid>": 257}, eos=["<mid>"]).eos == (257,)


def test_known_rank_files_bring_their_special_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = ranks(ALL_BYTES)
    monkeypatch.setattr(
        "maskwright.maskstore.vocabulary.tokenizer_files.KNOWN_RANK_FILES",
        {hashlib.sha256(data).hexdigest(): {"</s>": 256}},
    )
    (tmp_path / "known").write_bytes(data)
    assert load_vocabulary(tmp_path / "known").eos == (256,)


def test_known_rank_files_agree_with_tiktoken() -> None:
    public = pytest.importorskip("tiktoken_ext.openai_public")
    hashes: dict[str, str] = {}

    def note(url: str, expected_hash: str) -> dict[bytes, int]:
        hashes["last"] = expected_hash
        return {}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(public, "load_tiktoken_bpe", note)
        for name in ("r50k_base", "p50k_base", "cl100k_base", "o200k_base"):
            special = getattr(public, name)()["special_tokens"]
            assert tokenizer_ranks.KNOWN_RANK_FILES[hashes["last"]] == special


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (ranks(ALL_BYTES) + b"ZGU=\n", r"x.tiktoken:257: b'ZGU='; expected a token in base64, a space and its rank"),
        (ranks(ALL_BYTES) + b"ZGU= -1\n", r"x.tiktoken:257: b'ZGU= -1'; expected"),
        (ranks(ALL_BYTES) + b"Z 256\n", r"x.tiktoken:257: b'Z' is not base64"),
        (
            ranks(ALL_BYTES) + b"AA== 256\n",
            r"x.tiktoken:257: token b'\\x00' has id 0 already; expected every token once",
        ),
        (ranks(ALL_BYTES) + b"ZGU= 255\n", r"id 255 is given to two tokens, b'\\xff' and b'de'"),
        (ranks(ALL_BYTES) + b"ZGU= 99999999999\n", r"id 99999999999 is out of range"),
        (ranks(ALL_BYTES) + b"ZGU= 300\n", r"44 of the ids 0 to 300 have no token \(256, 257, 258, 259, 260, \.\."),
        (ranks(ALL_BYTES) + b"ZGU= " + b"9" * 5000, r"x.tiktoken:257: b'ZGU= 999.*; expected a token in base64"),
        (ranks({b"ab": 0}), r"256 of the 256 single bytes have no token"),
    ],
)
def test_damaged_tiktoken(tmp_path: Path, data: bytes, expected: str) -> None:
    path = tmp_path / "x.tiktoken"
    path.write_bytes(data)
    with pytest.raises(VocabularyError, match=expected):
        load_vocabulary(path)


def test_special_token_on_a_taken_rank(tmp_path: Path) -> None:
    (tmp_path / "x.tiktoken").write_bytes(ranks(ALL_BYTES))
    with pytest.raises(VocabularyError, match=r"id 65 of the special token '<x>' is taken by the text b'A'"):
        load_vocabulary(tmp_path / "x.tiktoken", special={"<x>": 65})


def test_without_an_encoder_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with caplog.at_level(logging.DEBUG, "maskwright"):
        vocabulary = load_vocabulary(written(tmp_path, tekken(BYTES)))
    assert not vocabulary.checked
    assert "its tokens were not checked" in caplog.text


# Files that are none


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"a": \xff}', r"not UTF-8 at byte 6 .*; JSON files must be UTF-8"),
        (b'{"a": 1,\n "b" 2}', r"file:2:6: not JSON: Expecting ':' delimiter"),
        (
            b'{"def": 1, "x": 2}',
            r"keys \['def', 'x'\], which is not a tokenizer; expected a tokenizer.json .*vocab.json alone",
        ),
        (b'{"a": ' + b"9" * 5000 + b"}", r"file: not JSON that can be read: Exceeds the limit"),
        (b'{"model": {}, "model": {}}', r"the key 'model' occurs twice in one object"),
        (b'{"a": ' * 100_000, r"not JSON that can be read: arrays and objects stand more than 250 deep"),
    ],
)
def test_other_json(tmp_path: Path, data: bytes, expected: str) -> None:
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(VocabularyError, match=expected):
        load_vocabulary(tmp_path / "file")


def test_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> bytes:
        raise PermissionError(13, "Permission denied")

    path = written(tmp_path, tekken(BYTES))
    monkeypatch.setattr(tokenizer_files, "read_file_bytes", refuse)
    with pytest.raises(VocabularyError, match=r"tekken.json: cannot be read: Permission denied"):
        load_vocabulary(path)


def test_a_file_in_a_folder_that_may_not_be_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "stat", refuse)
    with pytest.raises(VocabularyError, match=r"x/tokenizer.json' cannot be read: Permission denied"):
        load_vocabulary("x/tokenizer.json")


# Folders


def folder(tmp_path: Path, **files: Any) -> Path:
    pytest.importorskip("sentencepiece")
    (tmp_path / "tokenizer.model").write_bytes(SPECIAL_PIECES + piece("a") + piece("▁b"))
    for name, content in files.items():
        written(tmp_path, content, name + ".json")
    return tmp_path


def test_folder_alone(tmp_path: Path) -> None:
    vocabulary = load_vocabulary(str(folder(tmp_path)))
    assert vocabulary.name == tmp_path.name
    assert vocabulary.tokens == (b"", b"", b"", b"a", b" b")
    assert vocabulary.eos == (2,)


def test_folder_with_added_tokens_and_eos(tmp_path: Path) -> None:
    config = {
        "eos_token": {"content": "<|im_end|>"},
        "added_tokens_decoder": {
            "2": {"content": "</s>", "special": True},
            "3": {"content": "a", "special": False},
            "5": {"content": "<tool> ", "special": False},
            "6": {"content": "<|im_end|>", "special": True},
        },
    }
    path = folder(
        tmp_path,
        tokenizer_config=config,
        added_tokens={"<old>": 7},
        generation_config={"eos_token_id": [2, 6]},
        config={"eos_token_id": 0},
    )
    for source in (path, path / "tokenizer.model"):
        vocabulary = load_vocabulary(source)
        assert vocabulary.tokens == (b"", b"", b"", b"a", b" b", b"<tool> ", b"", b"<old>")
        assert dict(vocabulary.special) == {0: "<unk>", 1: "<s>", 2: "</s>", 6: "<|im_end|>"}
        assert vocabulary.eos == (2, 6)


@pytest.mark.parametrize(
    ("files", "eos"),
    [
        ({"special_tokens_map": {"eos_token": "a"}}, (3,)),
        ({"config": {"eos_token_id": 1}}, (1,)),
        ({"config": {"eos_token_id": 1}, "generation_config": {}}, (2,)),
        ({"tokenizer_config": {"eos_token": None}, "generation_config": {"eos_token_id": 4}}, (4,)),
    ],
)
def test_folder_says_what_ends_a_text(tmp_path: Path, files: dict[str, Any], eos: tuple[int, ...]) -> None:
    vocabulary = load_vocabulary(folder(tmp_path, **files))
    assert vocabulary.eos == eos
    assert not vocabulary.tokens[eos[0]]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"tokenizer_config": []}, r"tokenizer_config.json is \[\], expected an object"),
        ({"tokenizer_config": {"added_tokens_decoder": 3}}, r"added_tokens_decoder is 3, expected an object"),
        ({"tokenizer_config": {"eos_token": "<end>"}}, r"eos '<end>' is not a token of this vocabulary"),
        (
            {"tokenizer_config": {"added_tokens_decoder": {"x": {}}}},
            r"added_tokens_decoder\['x'\] .*expected an id and",
        ),
        ({"added_tokens": {"<x>": 9}}, r"4 of the ids 0 to 9 have no token \(5, 6, 7, 8\)"),
        ({"added_tokens": {"<x>": "5"}}, r"added_tokens.json: '<x>': id '5' is out of range; expected an integer"),
    ],
)
def test_folders_that_contradict(tmp_path: Path, files: dict[str, Any], expected: str) -> None:
    with pytest.raises(VocabularyError, match=expected):
        load_vocabulary(folder(tmp_path, **files))


def test_folder_without_or_with_several(tmp_path: Path) -> None:
    with pytest.raises(VocabularyError, match=r"no tokenizer file in this folder; looked for tokenizer.json, "):
        load_vocabulary(tmp_path)
    for name in ("a.model", "b.model"):
        (tmp_path / name).write_bytes(SPECIAL_PIECES)
    with pytest.raises(VocabularyError, match=r"several tokenizer files \(a.model, b.model\); give the path of one"):
        load_vocabulary(tmp_path)


# The check itself


def characters(text: str) -> list[int]:
    return list(text.encode())


def test_check_catches_a_wrong_token() -> None:
    table = TokenTable("here", list(BYTES), {}, reference=Reference(encode=characters))
    assert check_round_trip(table)
    table.tokens[ord("(")] = b"["
    with pytest.raises(
        VocabularyError,
        match=r"here: the tokens do not spell the text that they encode\. Text 'def f\(x\).*got b'def f\[",
    ):
        check_round_trip(table)


def test_check_catches_ids_out_of_range_and_lost_spaces() -> None:
    table = TokenTable("here", list(BYTES), {}, reference=Reference(encode=lambda text: [*text.encode(), 256]))
    with pytest.raises(VocabularyError, match=r"do not spell the text that they encode"):
        check_round_trip(table)
    table.reference = Reference(encode=lambda text: [*b"".join(text.encode().split())], decode=lambda ids: "else")
    with pytest.raises(VocabularyError, match=r"do not spell the text that they encode"):
        check_round_trip(table)


def test_check_lets_through_what_is_the_tokenizers_habit() -> None:
    def squashed(text: str) -> list[int]:
        return list("".join(text.split()).encode())

    unknown = Reference(encode=lambda text: [0], unknown=frozenset({0}))
    prefix = Reference(encode=lambda text: characters(" " + text))
    normal = Reference(encode=lambda text: characters(text.upper()), expected=str.upper)
    lossy = Reference(encode=squashed, decode=lambda ids: bytes(ids).decode())
    refuses = Reference(encode=lambda text: None)
    for reference in (unknown, prefix, normal, lossy, refuses):
        assert check_round_trip(TokenTable("here", list(BYTES), {}, reference=reference))
    assert not check_round_trip(TokenTable("here", list(BYTES), {}))


def test_samples_hold_every_byte_of_utf8() -> None:
    never = {0xC0, 0xC1, *range(0xF5, 0x100)}
    assert set("".join(SAMPLES).encode()) == set(range(256)) - never


def test_half_a_surrogate_pair() -> None:
    with pytest.raises(VocabularyError, match=r"here: '\\ud800' holds half a surrogate pair"):
        encode_text("\ud800", "here")
