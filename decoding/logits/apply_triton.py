"""Masks on logits on CUDA: one launch, no synchronisation, no allocation.

A CUDA graph can therefore hold a call.

A thread looks at 16 bytes of logits. If the mask allows them all, it does nothing. If the mask
allows none, it stores -inf and loads nothing. Only otherwise does it load them. So traffic is at
most that of one pass over the logits, and for the masks of a grammar mostly half of it or less. A
predicate for each logit would turn one store of 16 bytes into eight of two bytes. So a predicate
covers 16 bytes, which requires rows that begin at multiples of 16 bytes. Other rows are stored to
logit by logit, and never loaded.

Arguments are those of the functions of `apply.py`, which checks them. A row number that is out of
range allows nothing, and nothing is read for it. With TRITON_INTERPRET=1 in the environment before
the first import, all this runs on the CPU. That is how it is tested without a GPU.

The kernels have these arguments too:

logits : integers of the logits' size.
columns, stride : logits of a row, and the distance between rows, in elements.
n_words, n_rows, rows_stride : words of a mask, the number of masks, and the distance between them.
n_blocks : blocks of a row.
LANE, BLOCK, IS_EAGER : see `Plan`.
HAS_TAIL : whether `columns` is no multiple of LANE.
MINUS_INFINITY, EXPONENT : see `bits.py`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from maskwright.analysis.errors import MissingExtraError
from maskwright.decoding.logits.bits import EXPONENT, MINUS_INFINITY, bits_of
from maskwright.decoding.logits.optional import need_torch

try:
    import triton  # type: ignore[import-not-found,import-untyped,unused-ignore]
    import triton.language as tl  # type: ignore[import-not-found,import-untyped,unused-ignore]
except ImportError as missing:
    raise MissingExtraError("Triton is not installed, but the CUDA kernels need it: pip install triton") from missing

N_WARPS = 4
"""Warps of a program."""
VECTOR = 16
"""Bytes that a thread loads or stores at once."""

FEW_PROGRAMS = 1024
"""Half of what an H100 holds at once in warps of 4.

If there were fewer programs than this, we make each a fourth as large, and thus four times as many.
"""

SMALL = 1 << 21
"""Bytes of logits up to which latency decides the time.

All logits are then loaded before it is known which of them are needed.
"""


class Plan(NamedTuple):
    """How a kernel divides the logits.

    lane : logits of a vector.
    block : logits of a program.
    is_eager : whether logits are loaded before the mask is there.
    """

    lane: int
    block: int
    is_eager: bool


def plan_for(logits: Any) -> Plan:
    """The plan for logits of this shape and alignment."""
    rows, columns = logits.shape
    size = logits.element_size()
    is_aligned = logits.data_ptr() % VECTOR == 0 and logits.stride(0) * size % VECTOR == 0
    block = 4 * 32 * N_WARPS * VECTOR // size
    if rows * triton.cdiv(columns, block) < FEW_PROGRAMS:
        block //= 4
    return Plan(VECTOR // size if is_aligned else 1, block, rows * columns * size <= SMALL)


@triton.jit(do_not_specialize=["n_words", "n_rows", "n_blocks"])  # type: ignore[untyped-decorator,unused-ignore]
def mask_rows(  # type: ignore[no-untyped-def]
    logits, row_ids, rows, columns, n_words, n_rows, n_blocks, stride, rows_stride,
    LANE: tl.constexpr, BLOCK: tl.constexpr, HAS_IDS: tl.constexpr, IS_EAGER: tl.constexpr, HAS_TAIL: tl.constexpr,
    MINUS_INFINITY: tl.constexpr,
):  # fmt: skip
    """Mask a block of columns of one row; a program of `apply`.

    HAS_IDS : whether row r gets mask row_ids[r], rather than mask r.
    """
    program = tl.program_id(0)
    row = program // n_blocks
    first = (program - row * n_blocks) * BLOCK
    # BOUND: rows times stride may pass 2^31
    here = logits + row.to(tl.int64) * stride
    number = row.to(tl.int64)
    if HAS_IDS:
        number = tl.load(row_ids + row).to(tl.int64)
        if number == -1:
            return
    n_there = tl.where((number >= 0) & (number < n_rows), n_words, 0)
    words = rows + number * rows_stride
    begin = first + LANE * tl.arange(0, BLOCK // LANE)
    lane = tl.arange(0, LANE)
    at = begin[:, None] + lane[None, :]
    is_whole = begin + LANE <= columns
    if IS_EAGER and LANE > 1:
        kept = tl.load(here + at, mask=is_whole[:, None], other=0)
    word = tl.load(words + (begin >> 5), mask=(begin >> 5) < n_there, other=0)
    bits = (word >> (begin & 31)) & ((1 << LANE) - 1)
    is_changed = is_whole & (bits != (1 << LANE) - 1)
    minus_infinity = tl.full([BLOCK // LANE, LANE], MINUS_INFINITY, logits.dtype.element_ty)
    if LANE == 1:
        new = minus_infinity
    else:
        if not IS_EAGER:
            kept = tl.load(here + at, mask=(is_changed & (bits != 0))[:, None], other=0)
        new = tl.where(((bits[:, None] >> lane[None, :]) & 1) != 0, kept, minus_infinity)
    tl.store(here + at, new, mask=is_changed[:, None])
    if HAS_TAIL:  # noqa: SIM102
        # the columns after the last whole vector
        if first + BLOCK >= columns:
            last = columns - columns % LANE + lane
            word = tl.load(words + (last >> 5), mask=(last < columns) & ((last >> 5) < n_there), other=0)
            is_refused = ((word >> (last & 31)) & 1) == 0
            tl.store(
                here + last,
                tl.full([LANE], MINUS_INFINITY, logits.dtype.element_ty),
                mask=is_refused & (last < columns),
            )


@triton.jit(do_not_specialize=["n_words", "n_rows"])  # type: ignore[untyped-decorator,unused-ignore]
def mend_row(  # type: ignore[no-untyped-def]
    logits, row_ids, rows, is_dead, columns, n_words, n_rows, stride, rows_stride, BLOCK: tl.constexpr, EXPONENT: tl.constexpr
):  # fmt: skip
    """`mend` for one row.

    It reads up to the first finite logit that is allowed. If there is none, it reads the masks
    again and writes 0 where they allow something.

    BLOCK : how many columns are looked at at once.
    """
    row = tl.program_id(0)
    here = logits + row.to(tl.int64) * stride
    number = tl.load(row_ids + row).to(tl.int64)
    is_known = (number >= 0) & (number < n_rows)
    words = rows + number * rows_stride
    exponent = tl.full([BLOCK], EXPONENT, logits.dtype.element_ty)
    end = tl.where(is_known, tl.minimum(columns, 32 * n_words), 0)
    n_allowed = 0
    n_alive = 0
    first = 0
    while (first < end) & (n_alive == 0):
        at = first + tl.arange(0, BLOCK)
        word = tl.load(words + (at >> 5), mask=at < end, other=0)
        is_allowed = ((word >> (at & 31)) & 1) != 0
        is_allowed = is_allowed & (at < end)
        value = tl.load(here + at, mask=is_allowed, other=EXPONENT)
        n_allowed += tl.sum(is_allowed.to(tl.int32))
        n_alive += tl.sum((is_allowed & ((value & exponent) != exponent)).to(tl.int32))
        first += BLOCK
    tl.store(is_dead + row, ((n_allowed > 0) & (n_alive == 0)).to(tl.uint8))  # type: ignore[attr-defined]
    if (n_allowed > 0) & (n_alive == 0):
        for again in range(0, end, BLOCK):
            at = again + tl.arange(0, BLOCK)
            word = tl.load(words + (at >> 5), mask=at < end, other=0)
            is_allowed = ((word >> (at & 31)) & 1) != 0
            tl.store(here + at, tl.zeros([BLOCK], logits.dtype.element_ty), mask=is_allowed & (at < end))


def apply(logits: Any, row_ids: Any, rows: Any) -> None:
    """Write -inf where the bit of rows[row_ids[r]] is 0, or there is no bit; -1 leaves a row alone.

    logits : (B, N), with stride(1) = 1.
    row_ids : (B,) int32 or int64; other ids that are no rows allow nothing. None: 0, 1, ...
    rows : (R, W) int32, with stride(1) = 1.
    """
    plan = plan_for(logits)
    columns = logits.shape[1]
    n_blocks = triton.cdiv(columns, plan.block)
    with _device_of(logits):
        mask_rows[(len(logits) * n_blocks,)](
            bits_of(logits), rows if row_ids is None else row_ids, rows, columns, rows.shape[1], len(rows), n_blocks,
            logits.stride(0), rows.stride(0),
            LANE=plan.lane, BLOCK=plan.block, HAS_IDS=row_ids is not None, IS_EAGER=plan.is_eager,
            HAS_TAIL=columns % plan.lane != 0, MINUS_INFINITY=MINUS_INFINITY[_name(logits)], num_warps=N_WARPS,
        )  # fmt: skip


def mend(logits: Any, row_ids: Any, rows: Any, is_dead: Any) -> None:
    """Set the allowed logits of a row to 0, and is_dead[r] to 1, if none of them is finite.

    Rows that allow nothing, and idle ones, are left as they are.

    logits : (B, N), with stride(1) = 1.
    row_ids : (B,) int32 or int64.
    rows : (R, W) int32, with stride(1) = 1.
    is_dead : (B,) uint8; written, 0 or 1 for each row.
    """
    name = _name(logits)
    with _device_of(logits):
        mend_row[(len(logits),)](
            bits_of(logits), row_ids, rows, is_dead, logits.shape[1], rows.shape[1], len(rows), logits.stride(0),
            rows.stride(0), BLOCK=4096, EXPONENT=EXPONENT[name], num_warps=N_WARPS,
        )  # fmt: skip


def _name(logits: Any) -> str:
    return str(logits.dtype).removeprefix("torch.")


def _device_of(logits: Any) -> AbstractContextManager[Any]:
    """A context in which the logits' device is the current one, on which Triton launches."""
    return need_torch().cuda.device(logits.device) if logits.device.type == "cuda" else nullcontext()
