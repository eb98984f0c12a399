"""What the files of a model's folder say of its tokens."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from maskwright.analysis.errors import MaskwrightError, UnknownNameError
from maskwright.analysis.files import read_file_bytes
from maskwright.maskstore.vocabulary import Vocabulary, load_vocabulary

LARGEST = 1 << 26
"""The most bytes of a configuration that is read."""
_NAMING_ENDS = ("generation_config.json", "config.json")
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")


class ModelFolder(NamedTuple):
    """A model's files.

    path : the folder, or a GGUF file.
    n_logits : how many logits the model gives, as its configuration says; None if it does not.
    ends : the ids that end texts, by the file that says so.
    has_weights : whether there is a model that transformers can load.
    """

    path: Path
    n_logits: int | None
    ends: Mapping[str, tuple[int, ...]]
    has_weights: bool

    @property
    def is_gguf(self) -> bool:
        """Whether it is a GGUF file."""
        return self.path.is_file()

    def vocabulary(self) -> Vocabulary:
        """The tokens. Raises: as `load_vocabulary` and `load_vocabulary_from_gguf`."""
        if self.is_gguf:
            from maskwright.serving.llama_cpp import load_vocabulary_from_gguf

            return load_vocabulary_from_gguf(self.path)
        return load_vocabulary(self.path)

    def vocabulary_without_ends(self) -> Vocabulary:
        """The tokens, whatever the model's configurations say of ends.

        Raises: as `load_vocabulary`.
        """
        with tempfile.TemporaryDirectory() as folder:
            for file in self.path.iterdir():
                if file.is_file() and file.name not in _NAMING_ENDS and file.suffix in (".json", ".model", ".tiktoken"):
                    shutil.copy(file, folder)
            return load_vocabulary(folder, name=self.path.name)


def read_folder(source: str | Path) -> ModelFolder:
    """What a model's files say.

    source : a folder as `save_pretrained` writes it, a GGUF file, or a folder with nothing else.

    Raises: UnknownNameError if there is no such folder; MaskwrightError for a file that is no JSON.
    """
    path = Path(source).expanduser()
    if path.is_dir() and not (path / "config.json").exists() and len(files := sorted(path.glob("*.gguf"))) == 1:
        path = files[0]
    if path.is_file() and path.suffix.lower() == ".gguf":
        return ModelFolder(path, None, {}, False)
    if not path.is_dir():
        raise UnknownNameError(f"there is no model folder {path}; expected a folder with a tokenizer, or a .gguf file")
    config, generation = (_object(path / name) for name in ("config.json", "generation_config.json"))
    text = config.get("text_config")
    inner = {**config, **text} if isinstance(text, dict) else config
    size = inner.get("vocab_size")
    ends = {
        name: found
        for name, values in (("generation_config.json", generation), ("config.json", inner))
        if (found := _ids(values.get("eos_token_id")))
    }
    has_weights = bool(config) and any(any(path.glob(pattern)) for pattern in _WEIGHTS)
    return ModelFolder(path, size if isinstance(size, int) and size > 0 else None, ends, has_weights)


def _object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; empty if there is no such file."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(read_file_bytes(path, LARGEST, "a configuration"))
    except (ValueError, RecursionError) as error:
        raise MaskwrightError(f"{path} is no JSON: {error}; download the model again") from None
    return found if isinstance(found, dict) else {}


def _ids(value: Any) -> tuple[int, ...]:
    several = value if isinstance(value, list) else [value]
    return tuple(sorted({each for each in several if isinstance(each, int) and not isinstance(each, bool)}))


__all__ = ["ModelFolder", "read_folder"]
