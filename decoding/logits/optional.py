"""Optional packages, imported when they are first used."""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import Any

from maskwright.analysis.arguments import refuse_argument
from maskwright.analysis.errors import MaskwrightError, MissingExtraError


def need_torch() -> Any:
    """The module torch.

    Raises: MissingExtraError if it is not installed.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError(
            "PyTorch is not installed, but language models need it: pip install 'maskwright[hf]'"
        ) from error
    return torch


def need_dense(what: str, value: Any) -> Any:
    """The tensor without its gradient.

    what : how a message begins.
    value : the tensor.

    Raises: MaskwrightError unless it is a dense torch tensor that has memory; so not if it is
    sparse, nested, or on device meta. MissingExtraError if torch is not installed.
    """
    torch = need_torch()
    if not isinstance(value, torch.Tensor):
        refuse_argument(what, value, "a tensor of torch")
    if value.layout is not torch.strided or value.is_nested:
        kind = "is nested" if value.is_nested else f"has the layout {value.layout}"
        raise MaskwrightError(f"{what}: the tensor {kind}; expected a dense one: tensor.to_dense()")
    if value.is_meta:
        raise MaskwrightError(
            f"{what}: the tensor is on device meta, which holds no numbers; expected one that has memory"
        )
    return value.detach()


@cache
def has_triton() -> bool:
    """Whether Triton is installed. If not, PyTorch operations are used on GPUs."""
    return importlib.util.find_spec("triton") is not None
