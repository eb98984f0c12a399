"""(a) Masks applied to logits: this package's kernels beside one bare pass over the same logits and beside the peers' kernels.

Three kinds of rows: `real` ones of a store (repeated to the width where the vocabulary is narrower than the logits), `single` (one token
allowed in each row: all of the logits are written) and `dense` (one in 64 masked). Each candidate's logits are compared with the
definition, bit by bit, before it is timed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpu_clock as clock
import numpy as np
import torch
from gpu_work import GpuWork

N_ROWS = 256
KINDS = ("real", "single", "dense")

Candidate = Callable[[Any, Any, Any, Any], Callable[[], Any]]
"""(logits, words (B, W), row_ids (B,), rows (n_rows, W)) -> what masks the logits in place."""


def bare_pass(logits: Any, words: Any, row_ids: Any, rows: Any) -> Callable[[], Any]:
    return lambda: logits.mul_(1)


def ours_rows(logits: Any, words: Any, row_ids: Any, rows: Any) -> Callable[[], Any]:
    from maskwright.decoding.logits import apply_rows

    return lambda: apply_rows(logits, row_ids, rows)


def ours_words(logits: Any, words: Any, row_ids: Any, rows: Any) -> Callable[[], Any]:
    from maskwright.decoding.logits import apply_words

    return lambda: apply_words(logits, words)


def _xgrammar(backend: str) -> Candidate:
    def candidate(logits: Any, words: Any, row_ids: Any, rows: Any) -> Callable[[], Any]:
        import xgrammar

        if backend == "cuda":  # compiled by nvcc when it is imported: a failure is this candidate's, and is said
            import xgrammar.kernels.apply_token_bitmask_inplace_cuda

        size = logits.shape[-1]
        return lambda: xgrammar.apply_token_bitmask_inplace(logits, words, vocab_size=size, backend=backend)

    return candidate


def llguidance(logits: Any, words: Any, row_ids: Any, rows: Any) -> Callable[[], Any]:
    import llguidance.torch

    return lambda: llguidance.torch.apply_token_bitmask_inplace(logits, words)


CUDA: dict[str, Candidate] = {
    "pass": bare_pass,
    "ours rows": ours_rows,
    "ours words": ours_words,
    "xgrammar triton": _xgrammar("triton"),
    "xgrammar cuda": _xgrammar("cuda"),
    "llguidance": llguidance,
}
CPU: dict[str, Candidate] = {
    "pass": bare_pass,
    "ours rows": ours_rows,
    "ours words": ours_words,
    "xgrammar cpu": _xgrammar("cpu"),
}


def real_rows(work: GpuWork, n: int) -> np.ndarray:
    """(at most n, W) int32: different masks of the work's documents, in the order in which they are met."""
    store = work.store
    found: dict[bytes, None] = {}
    words = np.zeros(store.n_words, np.int32)
    matcher = store.matcher()
    for document in work.documents:
        matcher.reset()
        for token in document.tokens[:500]:
            matcher.fill(words)
            found[words.tobytes()] = None
            matcher.advance(token)
        if len(found) >= n:
            break
    return np.array([np.frombuffer(row, np.int32) for row in list(found)[:n]])


def rows_of(kind: str, columns: int, real: np.ndarray, seed: int = 0) -> np.ndarray:
    """(n, ceil(columns / 32)) int32; bits past the columns are 0."""
    rng = np.random.default_rng(seed)
    width = -(-columns // 32)
    if kind == "real":
        rows = np.array([np.resize(row, width) for row in real])
    else:
        bits = np.zeros((N_ROWS, 32 * width), bool)
        if kind == "single":
            bits[np.arange(N_ROWS), rng.integers(0, columns, N_ROWS)] = True
        else:
            bits[:] = rng.random(bits.shape) < 63 / 64
        rows = np.packbits(bits, axis=1, bitorder="little").view(np.int32)
    if columns % 32:
        rows[:, -1] &= np.int32((1 << columns % 32) - 1)
    return rows


def expected(logits: Any, words: Any) -> Any:
    """The definition, some rows at a time."""
    found = logits.clone()
    for begin in range(0, logits.shape[0], 64):
        part = words[begin : begin + 64]
        bits = (part[:, :, None] >> torch.arange(32, device=logits.device, dtype=torch.int32)) & 1
        found[begin : begin + 64].masked_fill_(bits.flatten(1)[:, : logits.shape[1]] == 0, -torch.inf)
    return found


def same_bits(a: Any, b: Any) -> bool:
    integers = {2: torch.int16, 4: torch.int32}[a.element_size()]
    return torch.equal(a.view(integers), b.view(integers))


def measure_shape(
    batch: int,
    columns: int,
    dtype: torch.dtype,
    kind: str,
    rows: np.ndarray,
    device: torch.device,
    repeats: int,
    flush: Any,
) -> dict[str, Any]:
    """Times of all candidates on one shape; a candidate that is not installed or fails has a reason instead."""
    generator = torch.Generator(device).manual_seed(batch)
    logits = torch.empty((batch, columns), dtype=dtype, device=device).normal_(generator=generator)
    table = torch.from_numpy(rows).to(device)
    row_ids = torch.arange(batch, device=device, dtype=torch.int32) % len(rows)
    words = table[row_ids.long()]
    wanted, original = expected(logits, words), logits.clone()
    results: dict[str, dict[str, Any]] = {}
    runs = {}
    for name, candidate in (CUDA if device.type == "cuda" else CPU).items():
        logits.copy_(original)
        try:
            run = candidate(logits, words, row_ids, table)
            run()
            if not same_bits(logits, original if name == "pass" else wanted):
                results[name] = {"status": "wrong", "reason": "the logits are not what the definition says"}
                continue
            runs[name] = clock.captured(run, device)
            results[name] = {"status": "measured"}
        except ImportError as error:
            results[name] = {"status": "not installed", "reason": str(error)}
        except Exception as error:  # a peer's kernel may fail in any way: it is left out, and the reason is recorded
            clock.synchronize(device)
            results[name] = {"status": "failed", "reason": f"{type(error).__name__}: {error}"[:300]}
    for name, times in clock.by_turns(runs, repeats, device, flush).items():
        results[name] |= {"us": clock.spread(times)}
    base = results["pass"]["us"]["median"]
    for result in results.values():
        if "us" in result:
            result["of_pass"] = round(result["us"]["median"] / base, 3)
    return {
        "batch": batch,
        "columns": columns,
        "dtype": str(dtype).removeprefix("torch."),
        "rows": kind,
        "allowed": round(float(np.unpackbits(rows.view(np.uint8)).mean()) * 32 * rows.shape[1] / columns, 4),
        "pass_gb_per_s": round(2 * logits.numel() * logits.element_size() / base / 1e3, 1),
        "candidates": results,
    }


def measure(work: GpuWork, options: Any, device: torch.device) -> dict[str, Any]:
    """All shapes. work : where real rows come from."""
    real = real_rows(work, N_ROWS)
    flush = clock.Flush(device)
    nothing = torch.zeros(1, device=device)
    floor = clock.by_turns({"one element": clock.captured(lambda: nothing.add_(1), device)}, 20, device, flush)
    shapes = []
    for columns in options.columns:
        for kind in KINDS:
            rows = rows_of(kind, columns, real)
            for dtype in (torch.bfloat16, torch.float32):
                for batch in options.apply_batches:
                    shapes.append(measure_shape(batch, columns, dtype, kind, rows, device, options.repeats, flush))
    return {
        "rows_from": work.title,
        "real_rows": len(real),
        "floor_us": clock.spread(floor["one element"]),
        "shapes": shapes,
        "worst_of_pass": worst(shapes, "ours rows", "pass"),
        "worst_of_xgrammar": worst(shapes, "ours rows", "xgrammar triton", "xgrammar cuda", "xgrammar cpu"),
    }


def worst(shapes: list[dict[str, Any]], name: str, *others: str) -> dict[str, Any] | None:
    """The shape on which a candidate's median is largest beside the fastest of the others."""
    found = None
    for shape in shapes:
        times = {n: c["us"]["median"] for n, c in shape["candidates"].items() if "us" in c}
        rivals = [times[other] for other in others if other in times]
        if name in times and rivals:
            ratio = round(times[name] / min(rivals), 3)
            if found is None or ratio > found["ratio"]:
                found = {"ratio": ratio} | {key: shape[key] for key in ("batch", "columns", "dtype", "rows")}
    return found
