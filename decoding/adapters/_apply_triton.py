"""`apply_mask` on CUDA: one Triton kernel that reads the mask and writes only what is masked. Imported where Triton is installed.

With TRITON_INTERPRET=1 in the environment before the first import it runs on the CPU, which is how it is tested without a GPU.
"""

from __future__ import annotations

from typing import Any

import triton  # type: ignore[import-not-found,import-untyped,unused-ignore]
import triton.language as tl  # type: ignore[import-not-found,import-untyped,unused-ignore]

from maskwright.analysis.errors import MaskwrightError

BLOCK = 4096


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _mask_block(logits, words, n_columns, n_words, logits_stride, words_stride, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Columns BLOCK * y .. of row x; strides are in elements."""
    # BOUND: rows times columns may pass 2^31
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    word = tl.load(words + row * words_stride + (at >> 5), mask=(at >> 5) < n_words, other=0)
    refused = ((word >> (at & 31)) & 1) == 0
    tl.store(logits + row * logits_stride + at, -float("inf"), mask=refused & (at < n_columns))


def apply_mask_triton(logits: Any, words: Any) -> None:
    """logits[r, i] = -inf wherever bit i of words[r] is 0, in place; both tensors are on one device.

    logits : (B, N) or (N,), floating point, the last dimension contiguous. words : (B, W) or (W,) int32, contiguous.
    Cost: the mask is read once, and only masked logits are written.
    """
    if logits.shape[:-1] != words.shape[:-1]:
        raise MaskwrightError(
            f"the words have shape {tuple(words.shape)} for logits of shape {tuple(logits.shape)}; expected a row for each"
        )
    if logits.stride(-1) != 1:
        whole = logits.contiguous()
        apply_mask_triton(whole, words)
        logits.copy_(whole)
        return
    rows, columns = (1, *logits.shape)[-2:]
    if rows and columns:
        _mask_block[(rows, triton.cdiv(columns, BLOCK))](
            logits,
            words,
            columns,
            words.shape[-1],
            logits.stride(0) if logits.ndim == 2 else 0,
            words.stride(0) if words.ndim == 2 else 0,
            BLOCK=BLOCK,
        )
