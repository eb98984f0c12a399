"""The tokenizers' own encoders, for every process of a benchmark: of this package and of its peers.

An engine that encodes the bytes which its grammar forces, as llguidance does, must be given the encoder of the model's tokenizer: with
another one it forces tokens that the model would not write. This file imports the tokenizer's package (mistral-common, with sentencepiece
or tiktoken) and nothing of the product, so that the peers' Python can run it too.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

NAMES = ("mistral-7b-v0.1", "tekken")
BYTES = "bytes"
"""The vocabulary of the 256 bytes, for runs where no tokenizer is at hand."""

_GUARD = "\x02"
"""A character that is a byte of its own to SentencePiece, and joins no token."""


def model_file() -> Path:
    """Mistral-7B v0.1's SentencePiece model, which mistral-common ships."""
    spec = find_spec("mistral_common")
    assert spec is not None and spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / "data" / "tokenizer.model.v1"


def encoder(name: str) -> Callable[[str], list[int]]:
    """From a whole text to token ids. name : one of NAMES."""
    if name == "tekken":
        from mistral_common.tokens.tokenizers.mistral import MistralTokenizer
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer

        tekken: Tekkenizer = MistralTokenizer.v3(is_tekken=True).instruct_tokenizer.tokenizer  # type: ignore[assignment]
        return lambda text: tekken.encode(text, bos=False, eos=False)
    assert name == "mistral-7b-v0.1", f"expected one of {', '.join(NAMES)}, found {name}"
    import sentencepiece

    return sentencepiece.SentencePieceProcessor(model_file=str(model_file())).encode


def inner_encoder(name: str) -> Callable[[str | bytes], list[int]]:
    """From a piece inside a text to token ids, which spell it exactly: SentencePiece puts a space before the first word of a text only.

    name : one of NAMES, or BYTES. Bytes must be UTF-8.
    """
    if name == BYTES:
        return lambda piece: list(piece.encode() if isinstance(piece, str) else piece)
    encode = encoder(name)
    guard = _GUARD if name == "mistral-7b-v0.1" else ""
    before = encode(guard)

    def inner(piece: str | bytes) -> list[int]:
        found = encode(guard + (piece.decode() if isinstance(piece, bytes) else piece))
        assert found[: len(before)] == before
        return found[len(before) :]

    return inner
