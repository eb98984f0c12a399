"""Packages that only some need, found when they are first used."""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import Any

from maskwright.analysis.errors import MissingExtraError


def need_torch() -> Any:
    """The module torch. Raises MissingExtraError if it is not installed."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError(
            "PyTorch is not installed, which language models are run with: pip install 'maskwright[hf]'"
        ) from error
    return torch


@cache
def has_triton() -> bool:
    """Whether kernels for CUDA can be compiled: on a GPU plain PyTorch operations take their place if not."""
    return importlib.util.find_spec("triton") is not None
