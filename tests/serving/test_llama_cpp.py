"""The processor as llama-cpp-python calls it, and vocabularies of GGUF files that the package gguf wrote."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from huggingface_cases import EOS, N_ROWS, PAIRS_TEXT, store

from maskwright.analysis.errors import IllegalTokenError, MaskwrightError, MissingExtraError, VocabularyError
from maskwright.serving.llama_cpp import LlamaCppMasks, load_vocabulary_from_gguf


def test_what_is_no_store_is_named() -> None:
    for wrong in (None, 5):
        with pytest.raises(MaskwrightError, match=f"^the store is {wrong}, .*; expected a store, as mw.build_store"):
            LlamaCppMasks(wrong)  # type: ignore[arg-type]


def test_a_generation_is_masked_and_padding_too() -> None:
    masks = LlamaCppMasks(store(PAIRS_TEXT))
    prompt = [5, 6, 7]
    for text, wanted in ((b"", b"a"), (b"aa", b"ab"), (b"aab", b"b")):
        scores = np.zeros(N_ROWS, np.single)
        found = masks(np.array([*prompt, *text], np.intc), scores)
        assert (scores == 0).all(), "a copy is returned"
        single = [token for token in np.flatnonzero(found == 0).tolist() if token < 256]
        assert single == list(wanted)
    found = masks(np.array([*prompt, *b"aabb", EOS], np.intc), np.zeros(N_ROWS, np.single))
    assert np.flatnonzero(found == 0).tolist() == [EOS]
    masks.reset()
    masks(np.array(prompt, np.intc), np.zeros(N_ROWS, np.single))
    with pytest.raises(IllegalTokenError, match="not legal here"):
        masks(np.array([*prompt, ord("x")], np.intc), np.zeros(N_ROWS, np.single))
    with pytest.raises(VocabularyError, match="gives 100 logits"):
        LlamaCppMasks(store(PAIRS_TEXT))(np.array(prompt, np.intc), np.zeros(100, np.single))


def write(path: Path, model: str, tokens: list[str], types: list[int], eos: int = 0) -> Path:
    gguf = pytest.importorskip("gguf", reason="the package gguf is not installed: pip install gguf")
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(model)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_eos_token_id(eos)
    writer.add_eot_token_id(eos + 1)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("as_llama", [False, True])
def test_a_file_with_sentencepiece_tokens(tmp_path: Path, as_llama: bool) -> None:
    path = write(
        tmp_path / "a.gguf",
        "llama",
        ["</s>", "<eot>", "<unk>", "\u2581a", "<0x0A>", "<tool>", "é"],
        [3, 3, 2, 1, 6, 4, 1],
    )
    source: Any = SimpleNamespace(model_path=str(path)) if as_llama else path
    found = load_vocabulary_from_gguf(source)
    assert found.tokens == (b"", b"", b"", b" a", b"\n", b"<tool>", "é".encode())
    assert found.eos == (0, 1) and list(found.special) == [0, 1, 2] and found.byte_pieces == {4}
    assert load_vocabulary_from_gguf(path, eos=[1]).eos == (1,)


def test_a_file_with_byte_level_tokens(tmp_path: Path) -> None:
    path = write(tmp_path / "a.gguf", "gpt2", ["<end>", "<turn>", "Ġa", "Ċ", "Ã©"], [3, 3, 1, 1, 1])
    assert load_vocabulary_from_gguf(path).tokens == (b"", b"", b" a", b"\n", "é".encode())
    wrong = write(tmp_path / "b.gguf", "gpt2", ["<end>", "<turn>", "\u2581a"], [3, 3, 1])
    with pytest.raises(VocabularyError, match="token 2 is"):
        load_vocabulary_from_gguf(wrong)


def test_what_cannot_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.gguf", "bert", ["a", "b"], [1, 1])
    with pytest.raises(VocabularyError, match=r"'bert'.*tokenizer.json"):
        load_vocabulary_from_gguf(path)
    short = write(tmp_path / "b.gguf", "llama", ["a", "b"], [1])
    with pytest.raises(VocabularyError, match="lacks its tokens"):
        load_vocabulary_from_gguf(short)
    other = tmp_path / "c.gguf"
    other.write_bytes(b"no such format")
    with pytest.raises(VocabularyError, match="cannot be read as a GGUF file"):
        load_vocabulary_from_gguf(other)
    with pytest.raises(VocabularyError, match="cannot be read"):
        load_vocabulary_from_gguf(tmp_path / "missing.gguf")
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(MissingExtraError, match="pip install gguf"):
        load_vocabulary_from_gguf(path)
