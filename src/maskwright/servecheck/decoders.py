"""The tokenizer's own decoders, to hold a vocabulary against."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from maskwright.servecheck.folder import ModelFolder
from maskwright.servecheck.loading import package_lacking, said, tokenizer_refused
from maskwright.servecheck.package_errors import PackageError, package_errors
from maskwright.servecheck.report import Problem


class Decoder(NamedTuple):
    """A tokenizer as its own package reads it.

    name : the package, and its file.
    size : how many ids it has.
    decode : the text of some ids, special ones by their names.
    special : ids that the package calls special.
    end : the id that ends texts, if it knows one.
    """

    name: str
    size: int
    decode: Callable[[list[int]], str]
    special: frozenset[int]
    end: int | None


def decoders_of(folder: ModelFolder, skipped: list[str], problems: list[Problem]) -> Iterator[Decoder]:
    """Each decoder that is installed and can read the folder's tokenizer.

    skipped : gets a sentence for each that is not, or cannot.
    problems : gets one where transformers, by which servers load tokenizers, refuses a folder whose
        files are otherwise well.
    """
    if folder.is_gguf:
        skipped.append("the tokens against a decoder: a GGUF file's is in llama.cpp alone")
        return
    path = folder.path
    for package, file, make in (
        ("transformers", None, _transformers),
        ("tokenizers", "tokenizer.json", _tokenizers),
        ("sentencepiece", "tokenizer.model", _sentencepiece),
        ("mistral_common", "tekken.json", _tekken),
    ):
        if file is not None and not (path / file).is_file():
            continue
        if importlib.util.find_spec(package) is None:
            skipped.append(f"the tokens against {package}: it is not installed")
            continue
        if file is None and "config.json" in folder.broken:
            skipped.append(f"the tokens against {package}: it needs config.json, which cannot be read")
            continue
        try:
            with package_errors():
                found = make(path)
        except PackageError as raised:
            error = raised.error
            problem = tokenizer_refused(folder, error) if file is None else None
            if file is None and problem is None and (lacking := package_lacking(folder)):
                skipped.append(f"the tokens against {package}: it needs {lacking} for them: pip install {lacking}")
            elif problem is None:
                skipped.append(f"the tokens against {package}: it cannot read the folder ({said(error)})")
            else:
                skipped.append(f"the tokens against {package}: it does not load the tokenizer")
                problems.append(problem)
        else:
            yield found


def _transformers(path: Path) -> Decoder:
    from transformers import AutoTokenizer

    found = AutoTokenizer.from_pretrained(str(path), trust_remote_code=False)

    def decode(ids: list[int]) -> str:
        return str(found.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False))

    return Decoder("transformers", len(found), decode, frozenset(found.all_special_ids), found.eos_token_id)


def _tokenizers(path: Path) -> Decoder:
    from tokenizers import Tokenizer

    found = Tokenizer.from_file(str(path / "tokenizer.json"))
    special = {token for token, each in found.get_added_tokens_decoder().items() if each.special}

    def decode(ids: list[int]) -> str:
        return str(found.decode(ids, skip_special_tokens=False))

    return Decoder("tokenizers (tokenizer.json)", found.get_vocab_size(), decode, frozenset(special), None)


def _sentencepiece(path: Path) -> Decoder:
    from sentencepiece import SentencePieceProcessor

    found = SentencePieceProcessor(model_file=str(path / "tokenizer.model"))
    size = int(found.get_piece_size())
    special = {token for token in range(size) if found.is_control(token) or found.is_unknown(token)}
    end = int(found.eos_id())
    return Decoder(
        "sentencepiece (tokenizer.model)",
        size,
        lambda ids: str(found.decode(ids)),
        frozenset(special),
        None if end < 0 else end,
    )


def _tekken(path: Path) -> Decoder:
    from mistral_common.tokens.tokenizers.base import SpecialTokenPolicy
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    found = Tekkenizer.from_file(str(path / "tekken.json"))

    def decode(ids: list[int]) -> str:
        return str(found.decode(ids, special_token_policy=SpecialTokenPolicy.KEEP))

    special = range(found.num_special_tokens)
    return Decoder("mistral-common (tekken.json)", found.n_words, decode, frozenset(special), found.eos_id)


__all__ = ["Decoder", "decoders_of"]
