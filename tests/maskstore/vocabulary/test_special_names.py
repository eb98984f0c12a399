"""Tokens that files beside a tokenizer, or the caller, name as special or as the end of a text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_tokenizers import byte_level, content_of, token_id

from maskwright.analysis.errors import VocabularyError
from maskwright.maskstore.vocabulary import load_vocabulary
from maskwright.maskstore.vocabulary.tokenizer_table import Reference, TokenTable, check_round_trip

tokenizers = pytest.importorskip("tokenizers")

NAMES = ("<pad>", "<a>", "<b>", "<c>")


def folder(tmp_path: Path, **files: Any) -> Path:
    tokenizer = byte_level()
    tokenizer.add_tokens([tokenizers.AddedToken(name, normalized=False) for name in NAMES])
    (tmp_path / "tokenizer.json").write_text(json.dumps(content_of(tokenizer)))
    for name, content in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    return tmp_path


def special_names(path: Path) -> set[str]:
    return set(NAMES) & set(load_vocabulary(path).special.values())


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"pad_token": "<pad>"}, {"<pad>"}),
        ({"image_token": {"content": "<a>"}}, {"<a>"}),
        ({"additional_special_tokens": ["<a>", {"content": "<b>"}]}, {"<a>", "<b>"}),
        ({"extra_special_tokens": {"image_token": "<c>", "other": {"content": "<a>"}}}, {"<a>", "<c>"}),
        ({"extra_special_tokens": ["<c>"], "pad_token": None}, {"<c>"}),
        ({"pad_token": "<none>", "additional_special_tokens": ["<none>", "", 7, None, {}]}, set()),
        ({"add_bos_token": True, "sep_token": "", "tokens": ["<a>"], "extra_special_tokens": "<a>"}, set()),
    ],
)
@pytest.mark.parametrize("file", ["tokenizer_config", "special_tokens_map"])
def test_named_tokens_are_special(tmp_path: Path, file: str, content: dict[str, Any], expected: set[str]) -> None:
    path = folder(tmp_path, **{file: content})
    assert special_names(path) == expected
    assert special_names(path / "tokenizer.json") == expected


def test_the_map_counts_only_without_a_decoder_of_added_tokens(tmp_path: Path) -> None:
    """So it is in transformers."""
    named = {"pad_token": "<pad>"}
    assert special_names(folder(tmp_path, special_tokens_map=named, tokenizer_config={})) == {"<pad>"}
    decoder = {"tokenizer_config": {"added_tokens_decoder": {}}}
    assert special_names(folder(tmp_path, special_tokens_map=named, **decoder)) == set()


def test_a_folder_and_its_object_of_transformers_agree(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": "<pad>",
        "eos_token": "<|im_end|>",
        "unk_token": "!",
        "additional_special_tokens": ["<a>"],
        "image_token": "<b>",
    }
    path = folder(tmp_path, tokenizer_config=config)
    found = load_vocabulary(path)
    assert set(found.special.values()) == {"<|endoftext|>", "<|im_end|>", "<pad>", "!", "<a>", "<b>"}
    assert found == load_vocabulary(transformers.AutoTokenizer.from_pretrained(str(path)))


def test_a_name_is_found_as_the_source_spells_it(tmp_path: Path) -> None:
    """A byte piece, and an added token whose bytes are not its name."""
    tokenizer = byte_level()
    tokenizer.add_tokens(["\u0120name"])
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(content_of(tokenizer)))
    end = token_id(tokenizer, "\u0120name")
    assert load_vocabulary(path).tokens[end] == b" name"
    assert load_vocabulary(path, eos=["\u0120name"]).eos == (end,)
    assert load_vocabulary(path, eos=[" name"]).eos == (end,)


@pytest.mark.parametrize("file", ["tokenizer_config", "special_tokens_map"])
@pytest.mark.parametrize("end", ["", {"content": ""}, {}, None])
def test_an_empty_name_ends_no_text(tmp_path: Path, file: str, end: Any) -> None:
    path = folder(tmp_path, **{file: {"eos_token": end}})
    assert load_vocabulary(path).eos == load_vocabulary(byte_level()).eos
    with pytest.raises(VocabularyError, match="eos '' is not a token of this vocabulary"):
        load_vocabulary(path, eos=[""])


@pytest.mark.parametrize("end", ["\n", "a", "ï"])
def test_a_token_with_text_may_end_a_text(end: str) -> None:
    """The encoder gives it for that text all the same, which is no contradiction."""
    tokenizer = byte_level()
    token = tokenizer.encode(end).ids[0]
    for options in ({"eos": [token]}, {"special": {"stop": token}}, {"eos": [token], "special": {"stop": token}}):
        vocabulary = load_vocabulary(tokenizer, **options)  # type: ignore[arg-type]
        assert vocabulary.checked
        assert vocabulary.tokens[token] == b"" and token in vocabulary.special
        assert (token in vocabulary.eos) == ("eos" in options)


def test_a_wrong_token_is_found_beside_one_that_became_special() -> None:
    table = TokenTable(
        "here", [bytes((byte,)) for byte in range(256)], {}, reference=Reference(lambda t: [*t.encode()])
    )
    table.name_special({ord("a"): "<a>"})
    table.name_special({ord("a"): "<again>"})
    assert check_round_trip(table)
    table.tokens[ord("(")] = b"["
    with pytest.raises(VocabularyError, match="do not spell the text that they encode"):
        check_round_trip(table)
