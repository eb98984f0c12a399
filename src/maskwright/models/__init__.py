"""Language models that are bundled with maskwright. In: a name. Out: a folder.

Each folder has the Hugging Face layout. `python-tiny` was trained on the Python standard library,
except for the files that `is_held_out` names. Those files are for testing the model.
scripts/train_model.py makes the model. Its README.md describes the data, the training and how well
it predicts.
"""

from __future__ import annotations

import hashlib
from importlib.resources import files
from pathlib import Path, PurePosixPath

from maskwright.analysis.errors import UnknownNameError

BUNDLED = "python-tiny"
"""Name of the model that is used by default."""


def model_folder(name: str = BUNDLED) -> Path:
    """The folder of a bundled model, as `from_pretrained` and `load_vocabulary` take it.

    name : the model's name.

    Raises: UnknownNameError if no model of this name is bundled.

    >>> (model_folder("python-tiny") / "model.safetensors").is_file()
    True
    """
    here = Path(str(files("maskwright.models")))
    names = sorted(path.parent.name for path in here.glob("*/config.json"))
    if name not in names:
        there = ", ".join(names) if names else "none: this installation of maskwright is not complete"
        raise UnknownNameError(f"there is no bundled model {name!r}; bundled are: {there}")
    return here / name


def is_held_out(relative_path: str | PurePosixPath) -> bool:
    """Whether the bundled model was not trained on a file of the standard library.

    A file is held out if the first byte of the SHA-256 of its path is divisible by 16. The decision
    does not depend on the version of Python: a file is held out of all versions or of none.

    relative_path : path from the standard library's folder to the file, with forward slashes.

    >>> [name for name in ("ast.py", "heapq.py", "json/decoder.py") if is_held_out(name)]
    []
    """
    name = PurePosixPath(relative_path).as_posix()
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).digest()[0] % 16 == 0
