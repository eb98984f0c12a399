"""The processor of mlx-lm, over MLX's arrays on the CPU where it is installed, else over a stand-in."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from huggingface_cases import EOS, N_ROWS, PAIRS_TEXT, store

from maskwright.analysis.errors import IllegalTokenError, MissingExtraError
from maskwright.serving.mlx import MlxMasks


@pytest.fixture(params=["mlx", "stand-in"])
def mx(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    if request.param == "mlx":
        return pytest.importorskip("mlx.core", reason="MLX is not installed: pip install mlx")
    package, core = ModuleType("mlx"), ModuleType("mlx.core")
    core.array = lambda values, dtype=None: np.array(values, dtype)  # type: ignore[attr-defined]
    core.where, core.float32 = np.where, np.float32  # type: ignore[attr-defined]
    package.core = core  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mlx", package)
    monkeypatch.setitem(sys.modules, "mlx.core", core)
    return core


@pytest.mark.parametrize("shape", [(1, N_ROWS), (N_ROWS,)])
def test_a_generation_is_masked_and_padding_too(mx: Any, shape: tuple[int, ...]) -> None:
    masks = MlxMasks(store(PAIRS_TEXT))
    logits = mx.array(np.zeros(shape, np.float32))
    for text, wanted in ((b"", b"a"), (b"aa", b"ab"), (b"aab", b"b")):
        found = masks(mx.array([5, 6, *text]), logits)
        assert tuple(found.shape) == shape and found.dtype == logits.dtype
        assert [token for token in np.flatnonzero(np.array(found) == 0).tolist() if token < 256] == list(wanted)
    found = masks(mx.array([5, 6, *b"aabb", EOS]), logits)
    assert np.flatnonzero(np.array(found) == 0).tolist() == [EOS]


def test_drafts_may_be_illegal_only_where_they_are_announced(mx: Any) -> None:
    logits = mx.array(np.zeros((1, N_ROWS), np.float32))
    for drafts in (False, True):
        masks = MlxMasks(store(PAIRS_TEXT), drafts=drafts)
        masks(mx.array([5, 6]), logits)
        if drafts:
            masks(mx.array([5, 6, ord("x")]), logits)
            found = masks(mx.array([5, 6, ord("a")]), logits)
            assert np.array(found).reshape(-1)[ord("b")] == 0
        else:
            with pytest.raises(IllegalTokenError):
                masks(mx.array([5, 6, ord("x")]), logits)


def test_without_mlx_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlx.core", None)
    monkeypatch.setitem(sys.modules, "mlx", None)
    with pytest.raises(MissingExtraError, match="pip install mlx-lm"):
        MlxMasks(store(PAIRS_TEXT))
