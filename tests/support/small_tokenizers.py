"""Small tokenizers of every common kind, of the package tokenizers."""

from __future__ import annotations

import json
from typing import Any

import pytest

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


def content_of(tokenizer: Any) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(tokenizer.to_str())
    return content


def token_id(tokenizer: Any, piece: str) -> int:
    token: int = tokenizer.token_to_id(piece)
    return token
