"""What benchmarks ask of the bundled model: the files that it has not seen, and what it thinks of a text."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.models import is_held_out

Floats = npt.NDArray[np.float64]


def held_out_files() -> Iterator[Path]:
    """The standard library's files that the model was not trained on, without tests and what is installed."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    for path in sorted(folder.rglob("*.py")):
        relative = path.relative_to(folder)
        if not {"site-packages", "test", "tests"} & set(relative.parts) and is_held_out(relative):
            yield path


def log_probabilities(model: Any, ids: list[int]) -> Floats:
    """(n, vocabulary) of the tokens behind each of the first n of n + 1 tokens."""
    import torch

    torch.set_num_threads(1)
    with torch.no_grad():
        logits = model.model(torch.tensor([ids[:-1]])).logits[0].double()
        found: Floats = torch.log_softmax(logits, -1).numpy()
    return found
