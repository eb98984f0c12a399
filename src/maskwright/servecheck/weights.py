"""Whether a model's folder has weights, and all of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from maskwright.analysis.arguments import clip
from maskwright.servecheck.configurations import UnreadableError, read_object
from maskwright.servecheck.report import Problem

_SERVED = ("*.safetensors", "*.bin", "*.pt", "*.pth", "*.gguf")
"""What some server loads."""
_LOADED = ("model*.safetensors", "pytorch_model*.bin")
"""What transformers loads."""
_OF_TRAINING = ("training_args.bin", "optimizer.bin", "optimizer.pt", "scheduler.bin", "scheduler.pt")
_WHOLE = ("model.safetensors", "pytorch_model.bin")


def can_be_loaded(folder: Path) -> bool:
    """Whether there are weights that transformers can load."""
    return any(_files(folder, _LOADED))


def weights_problem(folder: Path) -> Problem | None:
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


__all__ = ["can_be_loaded", "weights_problem"]
