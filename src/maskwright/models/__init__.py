"""Language models that come with maskwright: folders in the Hugging Face layout, found by name. In: a name. Out: a folder.

`python-tiny` has seen the Python standard library but for the files that `is_held_out` names, which are there to try it on.
It is made by scripts/train_model.py; its README.md says from what, how, and how well it predicts.
"""

from __future__ import annotations

import hashlib
from importlib.resources import files
from pathlib import Path, PurePosixPath

from maskwright.analysis.errors import UnknownNameError

BUNDLED = "python-tiny"


def model_folder(name: str = BUNDLED) -> Path:
    """The folder of the bundled model `name`, for `from_pretrained` and `load_vocabulary`.

    Raises UnknownNameError if there is no such model.

    >>> sorted(path.suffix for path in model_folder("python-tiny").iterdir() if path.stem == "model")
    ['.safetensors']
    """
    here = Path(str(files("maskwright.models")))
    names = sorted(path.parent.name for path in here.glob("*/config.json"))
    if name not in names:
        there = ", ".join(names) if names else "none: this installation of maskwright is not complete"
        raise UnknownNameError(f"there is no bundled model {name!r}; bundled are: {there}")
    return here / name


def is_held_out(relative_path: str | PurePosixPath) -> bool:
    """SHA-256 of a file's path within its library has a first byte divisible by 16: the model was not trained on that file.

    relative_path : relative to the standard library's folder, with forward slashes; the same in all versions of Python,
    so a file is held out of all or of none.

    >>> [name for name in ("ast.py", "heapq.py", "json/decoder.py") if is_held_out(name)]
    []
    """
    name = PurePosixPath(relative_path).as_posix()
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).digest()[0] % 16 == 0
