"""Whether transformers, by which servers load models, takes a folder's configuration and tokenizer.

Nothing is loaded by running code that comes with a folder, and nobody is asked whether it should
run.
"""

from __future__ import annotations

import importlib.util
from importlib.metadata import version

from maskwright.analysis.arguments import printable
from maskwright.completion import needs_own_code
from maskwright.servecheck.folder import ModelFolder
from maskwright.servecheck.package_errors import PackageError, package_errors
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
        with package_errors():
            AutoConfig.from_pretrained(str(folder.path), trust_remote_code=False)
    except PackageError as raised:
        error = raised.error
        if needs_own_code(error):
            return own_code("the configuration", "config.json")
        return Problem(
            "error",
            "config-not-loaded",
            f"transformers {version('transformers')} cannot load config.json: {said(error)}",
            "update transformers if the model is newer, or download config.json again: pip install -U transformers",
        )
    return None


def tokenizer_refused(folder: ModelFolder, error: Exception) -> Problem | None:
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


__all__ = ["config_problem", "own_code", "package_lacking", "said", "tokenizer_refused"]
