"""The Triton kernels compiled for sm_90 without a device: that they compile, and that what they move is moved 16 bytes at a time."""

from __future__ import annotations

import collections
import re
import warnings
from typing import Any

import pytest

pytest.importorskip("torch")
triton = pytest.importorskip("triton")

from maskwright.decoding.logits import apply_triton  # noqa: E402
from maskwright.decoding.logits.bits import EXPONENT, MINUS_INFINITY, SIZES  # noqa: E402

pytestmark = pytest.mark.slow
INTEGERS = {2: "*i16", 4: "*i32", 8: "*i64"}


def ptx(kernel: Any, types: dict[str, str], constants: dict[str, Any], aligned: tuple[str, ...]) -> str:
    """A kernel's assembly. types : of the arguments that are not constant. aligned : those that 16 divides."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    names = kernel.arg_names
    assert {*types, *constants} == {*names}
    source = ASTSource(
        kernel,
        {name: types.get(name, "constexpr") for name in names},
        {(names.index(name),): value for name, value in constants.items()},
        {(names.index(name),): [["tt.divisibility", 16]] for name in aligned},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own settings
        made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": apply_triton.N_WARPS})
    assert made.asm["cubin"]
    return str(made.asm["ptx"])


def moves(text: str) -> dict[str, int]:
    """How often the assembly has each instruction that moves global memory."""
    return dict(collections.Counter(re.findall(r"\b((?:ld|st)\.global\.\S+)", text)))


def mask_rows_of(dtype: str, has_ids: bool = True, is_eager: bool = False, is_aligned: bool = True) -> dict[str, int]:
    size = SIZES[dtype]
    lane = apply_triton.VECTOR // size if is_aligned else 1
    block = (4 if is_aligned else 1) * 32 * apply_triton.N_WARPS * apply_triton.VECTOR // size
    names = ("columns", "n_words", "n_rows", "n_blocks", "stride", "rows_stride")
    types = {"logits": INTEGERS[size], "row_ids": "*i32", "rows": "*i32"} | dict.fromkeys(names, "i32")
    constants = {
        "LANE": lane, "BLOCK": block, "HAS_IDS": has_ids, "IS_EAGER": is_eager, "HAS_TAIL": False,
        "MINUS_INFINITY": MINUS_INFINITY[dtype],
    }  # fmt: skip
    aligned = ("logits", "row_ids", "rows", *(("columns", "stride", "rows_stride") if is_aligned else ()))
    return moves(ptx(apply_triton.mask_rows, types, constants, aligned))


@pytest.mark.parametrize("dtype", SIZES)
@pytest.mark.parametrize("has_ids", [True, False])
@pytest.mark.parametrize("is_eager", [True, False])
def test_logits_are_moved_in_vectors(dtype: str, has_ids: bool, is_eager: bool) -> None:
    """Four vectors a thread, in and out; words come one by one."""
    found = mask_rows_of(dtype, has_ids, is_eager)
    vector = "v2.b64" if dtype == "float64" else "v4.b32"
    assert found.pop(f"st.global.{vector}") == 4
    assert found.pop(f"ld.global.{vector}") == 4
    assert set(found) == {"ld.global.b32"}


def test_rows_at_odd_places_are_not_loaded() -> None:
    found = mask_rows_of("bfloat16", is_aligned=False)
    assert set(found) == {"st.global.b16", "ld.global.b32"}


@pytest.mark.parametrize("dtype", SIZES)
@pytest.mark.parametrize("index", ["*i32", "*i64"])
def test_mending_compiles(dtype: str, index: str) -> None:
    size = SIZES[dtype]
    types = {"logits": INTEGERS[size], "row_ids": index, "rows": "*i32", "is_dead": "*u8"} | dict.fromkeys(
        ("columns", "n_words", "n_rows", "stride", "rows_stride"), "i32"
    )
    constants = {"BLOCK": 4096, "EXPONENT": EXPONENT[dtype]}
    assert moves(ptx(apply_triton.mend_row, types, constants, ("logits", "rows", "stride", "rows_stride")))
