"""What the files of a model's folder say of its tokens, and what is wrong with them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import MaskwrightError, UnknownNameError
from maskwright.analysis.files import read_file_bytes
from maskwright.analysis.nesting import read_json
from maskwright.maskstore.vocabulary import Vocabulary, load_vocabulary
from maskwright.servecheck.report import Problem

CONFIG, GENERATION = "config.json", "generation_config.json"
_NAMING_ENDS = (GENERATION, CONFIG)
_NAMING_TEXTS = ("tokenizer_config.json", "special_tokens_map.json")
_REMEDIES = {
    CONFIG: "download config.json again, as the model's authors published it: no server starts without it",
    GENERATION: "download generation_config.json again, or delete it: config.json says then what ends a text",
}
_SERVED = ("*.safetensors", "*.bin", "*.pt", "*.pth", "*.gguf")
"""What some server loads."""
_LOADED = ("model*.safetensors", "pytorch_model*.bin")
"""What transformers loads."""
_OF_TRAINING = ("training_args.bin", "optimizer.bin", "optimizer.pt", "scheduler.bin", "scheduler.pt")
_WHOLE = ("model.safetensors", "pytorch_model.bin")
LARGEST = 1 << 26
"""The most bytes of a configuration that is read."""


class UnreadableError(MaskwrightError):
    """A configuration is there, but is not a JSON object."""


class ModelFolder(NamedTuple):
    """A model's files.

    path : the folder, or a GGUF file.
    n_logits : how many logits the model gives, as its configuration says; None if it does not.
    ends : the ids that end texts, by the file that says so.
    has_weights : whether there is a model that transformers can load.
    end_texts : the texts of tokens that end texts, by the tokenizer's file that says so.
    broken : the configurations that cannot be read.
    left_out : those, and the ones that say something else than ids to end texts.
    problems : what is wrong with the files, whatever the tokens are.
    """

    path: Path
    n_logits: int | None
    ends: Mapping[str, tuple[int, ...]]
    has_weights: bool
    end_texts: Mapping[str, str] = {}
    broken: frozenset[str] = frozenset()
    left_out: frozenset[str] = frozenset()
    problems: tuple[Problem, ...] = ()

    @property
    def is_gguf(self) -> bool:
        """Whether it is a GGUF file."""
        return self.path.is_file()

    @property
    def has_error(self) -> bool:
        """Whether a file is at fault, so that nothing can be loaded as a server would."""
        return any(problem.severity == "error" for problem in self.problems)

    def vocabulary(self) -> Vocabulary:
        """The tokens, without the configurations that are `left_out`.

        Raises: as `load_vocabulary` and `load_vocabulary_from_gguf`.
        """
        if self.is_gguf:
            from maskwright.serving.llama_cpp import load_vocabulary_from_gguf

            return load_vocabulary_from_gguf(self.path)
        return self._vocabulary_without(self.left_out) if self.left_out else load_vocabulary(self.path)

    def vocabulary_without_ends(self) -> Vocabulary:
        """The tokens, whatever the model's configurations say of ends.

        Raises: as `load_vocabulary`.
        """
        return self._vocabulary_without(_NAMING_ENDS)

    def _vocabulary_without(self, names: Container[str]) -> Vocabulary:
        with tempfile.TemporaryDirectory() as folder:
            for file in self.path.iterdir():
                is_tokenizer = file.suffix in (".json", ".model", ".tiktoken") or ".model.v" in file.name
                if is_tokenizer and file.name not in names and file.is_file():
                    shutil.copy(file, folder)
            return load_vocabulary(folder, name=self.path.name)


def read_folder(source: str | Path) -> ModelFolder:
    """What a model's files say.

    source : a folder as `save_pretrained` writes it, a GGUF file, or a folder with nothing else.

    Raises: UnknownNameError if there is no such folder. Files that cannot be read are problems.
    """
    path = Path(os.path.expanduser(source))
    several = sorted(path.glob("*.gguf")) if os.path.isdir(path) else []
    if len(several) == 1 and not (path / CONFIG).exists():
        path = several[0]
    if os.path.isfile(path) and path.suffix.lower() == ".gguf":
        return ModelFolder(path, None, {}, False)
    if not os.path.isdir(path):
        raise UnknownNameError(f"there is no model folder {path}; expected a folder with a tokenizer, or a .gguf file")
    problems: list[Problem] = []
    broken: set[str] = set()
    found: dict[str, dict[str, Any] | None] = {}
    for name in (CONFIG, GENERATION):
        try:
            found[name] = read_object(path / name)
        except UnreadableError as error:
            broken.add(name)
            problems.append(Problem("error", "config-unreadable", str(error), _REMEDIES[name]))
    if CONFIG not in broken:
        problems += _config_problems(path, found[CONFIG], len(several))
    config = found.get(CONFIG) or _object(path / "params.json")
    text = config.get("text_config")
    said = {name: value for name, value in text.items() if value is not None} if isinstance(text, dict) else {}
    inner = {**config, **said}
    ends: dict[str, tuple[int, ...]] = {}
    left_out = set(broken)
    for name, values in ((GENERATION, found.get(GENERATION) or {}), (CONFIG, inner)):
        if wrong := _end_problems(name, values):
            problems += wrong
            left_out.add(name)
        elif ids := _ids(values.get("eos_token_id")):
            ends[name] = ids
    if (problem := _weights_problem(path)) is not None:
        problems.append(problem)
    size = inner.get("vocab_size")
    return ModelFolder(
        path,
        size if isinstance(size, int) and not isinstance(size, bool) and size > 0 else None,
        ends,
        bool(found.get(CONFIG)) and any(_files(path, _LOADED)),
        {name: end for name in _NAMING_TEXTS if (end := _end_text(_object(path / name)))},
        frozenset(broken),
        frozenset(left_out),
        tuple(problems),
    )


def _config_problems(path: Path, config: dict[str, Any] | None, n_gguf: int) -> list[Problem]:
    """What is wrong with a config.json that can be read, or is not there."""
    if config is None and n_gguf:
        remedy = "name one of them: maskwright serve-check MODEL.gguf"
        return [Problem("error", "no-config", f"{path} has no config.json, but {n_gguf} GGUF files", remedy)]
    if config is None and (path / "params.json").is_file():
        return [
            Problem(
                "note",
                "no-config",
                f"{path} has no config.json, but params.json, which transformers does not read",
                "vLLM serves it with --config-format mistral; add config.json for the others",
            )
        ]
    if config is None:
        return [Problem("error", "no-config", f"{path} has no config.json", _REMEDIES[CONFIG])]
    kind = config.get("model_type")
    if isinstance(kind, str) and kind:
        return []
    what = "names no model_type" if kind is None else f"has the model_type {clip(kind)}, which is no name"
    return [
        Problem("error", "no-model-type", f"{path / CONFIG} {what}, so no server knows the model", _REMEDIES[CONFIG])
    ]


def _end_problems(name: str, values: Mapping[str, Any]) -> list[Problem]:
    """What is said to end texts, and is no token's id. To say null, or nothing, is no problem."""
    value = values.get("eos_token_id")
    several = value if isinstance(value, list) else [value]
    if value is None or (several and len(several) == sum(map(_is_id, several))):
        return []
    message = f"{name} says that eos_token_id is {clip(value)}; expected the id of a token, or a list of ids"
    return [Problem("error", "end-no-id", message, f"correct eos_token_id in {name}")]


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _ids(value: Any) -> tuple[int, ...]:
    several = value if isinstance(value, list) else [value]
    return tuple(sorted({each for each in several if _is_id(each)}))


def _end_text(values: Mapping[str, Any]) -> str:
    """The text of the token that a tokenizer's file says to end texts; "" if it says none."""
    end = values.get("eos_token")
    text = end.get("content") if isinstance(end, dict) else end
    return text if isinstance(text, str) else ""


def read_object(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file; None if there is no such file.

    Raises: UnreadableError if it is no regular file, too large, no JSON, or other JSON than an
    object. Opening a named pipe does not block.
    """
    if not os.path.lexists(path):
        return None
    try:
        data = read_file_bytes(path, LARGEST, "a configuration", UnreadableError)
        found = read_json(data)
    except OSError as error:
        raise UnreadableError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UnreadableError(f"{path} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise UnreadableError(f"{path} holds {clip(found)}; expected a JSON object")
    return found


def _object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; empty if there is none."""
    try:
        return read_object(path) or {}
    except UnreadableError:
        return {}


def _weights_problem(folder: Path) -> Problem | None:
    """What is wrong with the weights of a folder; None for nothing.

    No weights are a note, since masks need the tokenizer alone. Some of the files that an index
    names are an error.
    """
    if not any(_files(folder, _SERVED)):
        return Problem(
            "note",
            "no-weights",
            f"{folder} has no weights (model.safetensors, its shards, *.bin or *.gguf), so the model could not be tried",
            "masks need the tokenizer alone; put the weights into the folder before you serve it",
        )
    if any((folder / name).is_file() for name in _WHOLE):
        return None
    problems: list[Problem] = []
    for whole in _WHOLE:
        index = folder / f"{whole}.index.json"
        remedy = f"download the model again: {index.name} says which files belong to it"
        try:
            named = (read_object(index) or {}).get("weight_map", {})
        except UnreadableError as error:
            problems.append(Problem("error", "lost-weights", str(error), remedy))
            continue
        files = sorted({str(name) for name in named.values()}) if isinstance(named, dict) else []
        lost = [name for name in files if not os.path.isfile(folder / name)]
        if lost:
            message = f"{len(lost)} of {len(files)} files of weights are not in {folder}, such as {clip(lost[0])}"
            problems.append(Problem("error", "lost-weights", message, remedy))
        elif files:
            return None  # one form is whole; of another one an index may be left over
    return problems[0] if problems else None


def _files(folder: Path, patterns: tuple[str, ...]) -> Iterator[Path]:
    for pattern in patterns:
        yield from (file for file in folder.glob(pattern) if file.is_file() and file.name not in _OF_TRAINING)
