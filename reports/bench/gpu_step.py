"""(b) The step of `GpuBatch` alone, and its device memory: advance, find and apply on the texts' own tokens, one graph a step.

`cold`: the L2 cache is flushed and the logits are written anew before each step, as a model's forward pass leaves it. `warm`: the steps
follow one another. Both include what two events and a graph's launch take on the device (`floor`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gpu_clock as clock
import gpu_model
import torch
from gpu_decode import matchers_at
from gpu_work import GpuWork, places


def memory_of(make: Callable[[], Any], device: torch.device) -> tuple[Any, dict[str, int]]:
    """What is made, and the device memory that it took: as the allocator counts, and as the device has less of."""
    if device.type != "cuda":
        return make(), {}
    clock.synchronize(device)
    torch.cuda.empty_cache()
    free, _ = torch.cuda.mem_get_info(device)
    allocated = torch.cuda.memory_allocated(device)
    made = make()
    clock.synchronize(device)
    left, _ = torch.cuda.mem_get_info(device)
    return made, {"allocated_bytes": torch.cuda.memory_allocated(device) - allocated, "device_bytes": free - left}


def measure_batch(work: GpuWork, batch: int, options: Any, device: torch.device, flush: Any) -> dict[str, Any]:
    from maskwright.decoding.gpu import GpuBatch

    texts, _ = places(work, batch, options.steps, options.prefix, seed=batch)
    begin = time.perf_counter()
    gpu, memory = memory_of(lambda: GpuBatch(work.store, batch, device=device), device)
    made_s = round(time.perf_counter() - begin, 2)  # compiling included, where nothing is kept of an earlier process
    matchers = matchers_at(work.store, texts)
    forced = torch.tensor(
        [list(tokens[begun : begun + options.steps + 1]) for tokens, begun in texts], dtype=torch.int32
    )
    forced = forced.T.contiguous().to(device)
    tokens = torch.zeros(batch, dtype=torch.int32, device=device)
    columns = gpu_model.padded(work.store.vocabulary.size)
    logits = torch.zeros((batch, columns), dtype=torch.bfloat16, device=device)
    fresh = torch.randn((batch, columns), device=device).to(torch.bfloat16)
    refused = 0

    def restore() -> None:
        gpu.admit(range(batch), matchers)
        tokens.copy_(forced[0])

    def step() -> None:
        gpu.advance(tokens)
        gpu.find_rows()
        gpu.apply(logits)

    restore()
    parts = {
        "advance": clock.captured(lambda: gpu.advance(tokens), device, restore),
        "find": clock.captured(gpu.find_rows, device, restore),
        "apply": clock.captured(lambda: gpu.apply(logits), device),
    }
    whole = clock.captured(step, device, restore)

    def walk(runs: dict[str, Callable[[], Any]], is_cold: bool) -> dict[str, list[float]]:
        """us of each of the runs at each step of the texts."""

        def before() -> None:
            if is_cold:
                flush()
                logits.mul_(1)

        nonlocal refused
        restore()
        times: dict[str, list[float]] = {part: [] for part in runs}
        for position in range(options.steps):
            logits.copy_(fresh)
            tokens.copy_(forced[position])
            for part, taken in clock.by_turns(runs, 1, device, before).items():
                times[part].extend(taken)
            following = forced[position + 1].long()
            refused += int(torch.isneginf(logits.gather(1, following[:, None])).sum())
        return times

    found = {
        f"{part}_{'cold' if is_cold else 'warm'}_us": clock.spread(times)
        for runs in ({"step": whole}, parts)
        for is_cold in (True, False)
        for part, times in walk(runs, is_cold).items()
    }
    states = gpu.states()
    return {
        "steps": options.steps,
        "made_s": made_s,
        **found,
        "forced_refused": refused,
        "slots_not_reading": sum(state != "reading" for state in states),
        "memory": {
            **memory,
            "tensors_bytes": gpu.nbytes,
            "slot_bytes": gpu.slot_bytes,
            "table_bytes": int(work.store.table.nbytes),
        },
    }


def resident_memory(work: GpuWork, device: torch.device) -> dict[str, Any]:
    """The device memory of `ResidentRows`, at their default number of rows."""
    from maskwright.decoding.logits import ResidentRows

    resident, memory = memory_of(lambda: ResidentRows(work.store, device), device)
    return {**memory, "rows": resident.capacity, "rows_bytes": resident.words.nbytes}


def measure(works: Sequence[GpuWork], options: Any, device: torch.device) -> dict[str, Any]:
    flush = clock.Flush(device)
    nothing = torch.zeros(1, device=device)
    floor = clock.by_turns({"nothing": clock.captured(lambda: nothing.add_(1), device)}, 50, device, flush)["nothing"]
    cells = []
    for work in works:
        batches = [
            {"batch": n} | clock.attempt(partial(measure_batch, work, n, options, device, flush))
            for n in options.step_batches
        ]
        resident = clock.attempt(partial(resident_memory, work, device))
        cells.append({"work": work.name, "tokenizer": work.tokenizer, "batches": batches, "resident_memory": resident})
    return {"floor_us": clock.spread(floor), "cells": cells}
