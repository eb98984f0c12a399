"""Tokenizer objects of other packages: their bytes, and contradictions found."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from small_tokenizers import END, byte_level, token_id

from maskwright.analysis.errors import VocabularyError
from maskwright.maskstore.vocabulary import load_vocabulary
from maskwright.maskstore.vocabulary.tokenizer_json import byte_level_alphabet

tokenizers = pytest.importorskip("tokenizers")


def test_mistral_common_objects() -> None:
    module = pytest.importorskip("mistral_common.tokens.tokenizers.mistral")
    tokenizer = module.MistralTokenizer.v1()
    expected = load_vocabulary("mistral-7b-v0.1")
    for source in (tokenizer, tokenizer.instruct_tokenizer, tokenizer.instruct_tokenizer.tokenizer):
        assert load_vocabulary(source) == expected
    with pytest.raises(VocabularyError, match=r"holds no Tekkenizer or SentencePieceTokenizer; give the MistralTok"):
        load_vocabulary(tokenizer._chat_completion_request_validator)


@pytest.mark.slow
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
