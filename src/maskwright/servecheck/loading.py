"""How transformers and the packages of tokenizers load a model's folder, if they do.

Servers load models by transformers. Nothing is loaded by running code that comes with a folder, and
nobody is asked whether it should run. Decoders are there to hold a vocabulary against.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from maskwright.analysis.arguments import printable
from maskwright.completion import needs_own_code
from maskwright.maskstore.vocabulary.tokenizer_values import is_of_package
from maskwright.servecheck.folder import ModelFolder
from maskwright.servecheck.report import Problem


def config_problem(folder: ModelFolder) -> Problem | None:
    """What transformers says against a folder's configuration; None for nothing.

    It is None too where transformers is not installed. A configuration with an error that has been
    found already is not tried.
    """
    if folder.is_gguf or folder.has_error or not (folder.path / "config.json").exists():
        return None
    if importlib.util.find_spec("transformers") is None:
        return None
    from transformers import AutoConfig

    try:
        AutoConfig.from_pretrained(str(folder.path), trust_remote_code=False)
    except BaseException as error:
        if not is_of_package(error):
            raise
        if needs_own_code(error):
            return own_code("the configuration", "config.json")
        return Problem(
            "error",
            "config-not-loaded",
            f"transformers {version('transformers')} cannot load config.json: {said(error)}",
            "update transformers if the model is newer, or download config.json again: pip install -U transformers",
        )
    return None


def tokenizer_refused(folder: ModelFolder, error: BaseException) -> Problem | None:
    """The problem of a tokenizer that transformers does not load.

    None where a package is missing, a server has another way to read the tokenizer, or an error of
    the folder's files that has been found already may be the cause.
    """
    if needs_own_code(error):
        return own_code("the tokenizer", "tokenizer_config.json")
    if isinstance(error, ImportError) or package_lacking(folder) or folder.has_error:
        return None
    if any(folder.path.glob("tekken*.json")):
        return None
    return Problem(
        "error",
        "tokenizer-not-loaded",
        f"transformers {version('transformers')} cannot load the tokenizer: {said(error)}",
        "servers load it so: give the folder all of its tokenizer's files, as the model's authors published them",
    )


def package_lacking(folder: ModelFolder) -> str:
    """The package without which transformers cannot read a SentencePiece model; "" for none."""
    if (folder.path / "tokenizer.json").exists() or not (folder.path / "tokenizer.model").exists():
        return ""
    for package, module in (("sentencepiece", "sentencepiece"), ("protobuf", "google.protobuf")):
        try:
            is_there = importlib.util.find_spec(module) is not None
        except ModuleNotFoundError:  # there is no package google at all
            is_there = False
        if not is_there:
            return package
    return ""


def own_code(what: str, file: str) -> Problem:
    """The problem of what needs code that comes with the folder. file : that names the code."""
    return Problem(
        "error",
        "custom-code",
        f"{what} can only be loaded by running code that comes with the folder (auto_map in {file}), which is not done here",
        "use a model that transformers has classes for; servers run such code if told to (--trust-remote-code): read it first",
    )


def said(error: BaseException) -> str:
    """An error in one line.

    >>> said(ValueError("not so\\nbut so"))
    'ValueError: not so'
    """
    first = printable(str(error).strip().partition("\n")[0])
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


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
            found = make(path)
        except BaseException as error:
            if not is_of_package(error):
                raise
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
