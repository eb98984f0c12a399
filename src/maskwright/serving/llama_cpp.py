"""Masks in llama-cpp-python, and the vocabulary of a GGUF file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from maskwright.analysis.errors import MissingExtraError, VocabularyError
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.tokenizer_json import byte_level_alphabet, byte_of_piece
from maskwright.serving.prefix_masks import PrefixMasks

if TYPE_CHECKING:
    from maskwright.decoding.engines import AnyTable

_ENDS = ("eos", "eot", "eom")
_UNKNOWN, _CONTROL, _USER, _UNUSED, _BYTE = 2, 3, 4, 5, 6
"""Types of tokens in a GGUF file; 1 is a normal one."""


class LlamaCppMasks(PrefixMasks):
    """A logits processor of llama-cpp-python.

        llama(prompt, logits_processor=LogitsProcessorList([masks]))

    store : a store for the model's vocabulary, see `load_vocabulary_from_gguf`.
    prefix : text before the constrained tokens, which the prompt ends with.

    It serves one generation after the other; call `reset` before one whose prompt continues the
    last text.
    """

    def __init__(self, store: AnyTable, prefix: str | bytes = b"") -> None:
        super().__init__(store, prefix)

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """The scores, with -inf for what is refused; a copy.

        input_ids : (L,) integers, prompt included.
        scores : (N,) float32.

        Raises: as `PrefixMasks.words`.
        """
        return self.masked("numpy", np.asarray(input_ids)[None, :], scores)


def load_vocabulary_from_gguf(source: str | os.PathLike[str] | Any, *, eos: Iterable[int] | None = None) -> Vocabulary:
    """The vocabulary of a model's GGUF file.

    source : the file's path, or a `Llama` of llama-cpp-python, whose file is read.
    eos : the ids that end a text; None for those of the file: end of text, of turn, of message.

    Normal tokens, byte tokens and added ones stand for text; control, unknown and unused ones do
    not.

    Raises: MissingExtraError without the package gguf; VocabularyError if the file cannot be read,
    or has a tokenizer of another kind than `llama` and `gpt2`.
    """
    path = Path(source if isinstance(source, str | os.PathLike) else source.model_path)
    try:
        from gguf import GGUFReader
    except ImportError as error:
        raise MissingExtraError(
            "the package gguf, which reads GGUF files, is not installed: pip install gguf"
        ) from error
    try:
        fields = GGUFReader(path, "r").fields
        values = {name: field.contents() for name, field in fields.items() if name.startswith("tokenizer.ggml.")}
    except (OSError, ValueError, IndexError, KeyError, UnicodeDecodeError) as error:
        raise VocabularyError(f"{path} cannot be read as a GGUF file: {error}") from error
    kind = values.get("tokenizer.ggml.model")
    if kind not in ("llama", "gpt2"):
        raise VocabularyError(
            f"{path} has a tokenizer of kind {kind!r}; expected 'llama' or 'gpt2': load the vocabulary from the model's tokenizer.json"
        )
    written, types = values.get("tokenizer.ggml.tokens"), values.get("tokenizer.ggml.token_type")
    if not isinstance(written, list) or not isinstance(types, list) or len(written) != len(types):
        raise VocabularyError(f"{path} lacks its tokens, or their types; convert the model again")
    ends = list(eos) if eos is not None else _ends(values)
    special = {
        token: text
        for token, (text, each) in enumerate(zip(written, types, strict=True))
        if each in (_UNKNOWN, _CONTROL, _UNUSED) or token in ends
    }
    tokens = tuple(
        b"" if token in special else _text(text, each, kind, f"{path}: token {token}")
        for token, (text, each) in enumerate(zip(written, types, strict=True))
    )
    pieces = frozenset(token for token, each in enumerate(types) if each == _BYTE and token not in special)
    return Vocabulary(path.name, tokens, special, tuple(ends), pieces)


def _ends(values: dict[str, Any]) -> list[int]:
    """The ids that end a text, as a file names them."""
    found = (values.get(f"tokenizer.ggml.{name}_token_id") for name in _ENDS)
    return sorted({int(token) for token in found if token is not None})


def _text(written: str, kind: int, model: str, where: str) -> bytes:
    """The bytes that a token adds to a text.

    Raises: VocabularyError if they cannot be told.
    """
    if kind == _USER:
        return written.encode()
    if kind == _BYTE:
        if (found := byte_of_piece(written)) is None:
            raise VocabularyError(f"{where} is a byte, but written {written!r}; expected <0x..>")
        return found
    if model == "llama":
        return written.replace("\u2581", " ").encode()
    alphabet = byte_level_alphabet()
    wrong = [character for character in written if character not in alphabet]
    if wrong:
        raise VocabularyError(
            f"{where} is {written!r}, but {wrong[0]!r} stands for no byte in a tokenizer of kind gpt2"
        )
    return bytes(alphabet[character] for character in written)
