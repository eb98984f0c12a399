"""Times on a device: CUDA graphs between events, the L2 cache flushed before each, candidates by turns. In: functions. Out: us.

On the CPU the same functions run under the host's clock, so that the benchmark can be tried without a GPU.
"""

from __future__ import annotations

import subprocess
import time
import traceback
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import torch

Run = Callable[[], Any]

WARM_UP = 3
NOT_MEASURED = "not measured yet"
BROKEN = "broken"


def attempt(run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What it found, or why there is nothing. Time on a device is short: what has been measured is kept, and the next has its turn."""
    try:
        return run()
    except ImportError as error:
        return {"status": NOT_MEASURED, "reason": str(error)}
    except Exception as error:
        traceback.print_exc()
        return {"status": BROKEN, "reason": f"{type(error).__name__}: {error}"[:1000]}


def broken(facts: Any) -> list[str]:
    """The reasons of all that `attempt` caught."""
    if isinstance(facts, dict):
        own = [facts["reason"]] if facts.get("status") == BROKEN else []
        return own + [reason for value in facts.values() for reason in broken(value)]
    return [reason for value in facts for reason in broken(value)] if isinstance(facts, list) else []


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def facts(device: torch.device) -> dict[str, Any]:
    """What figures depend on: the device, its driver, and the versions of what runs on it."""
    found: dict[str, Any] = {"name": "CPU" if device.type == "cpu" else torch.cuda.get_device_name(device)}
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        found |= {
            "driver": _driver(),
            "cuda": torch.version.cuda,
            "capability": f"{properties.major}.{properties.minor}",
            "multiprocessors": properties.multi_processor_count,
            "l2_bytes": properties.L2_cache_size,
            "memory_bytes": properties.total_memory,
        }
    for package in ("torch", "triton", "transformers", "numba", "numba-cuda", "xgrammar", "llguidance"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def _driver() -> str | None:
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.split("\n")[0].strip()


LEAD = 100_000
"""Cycles, some 55 us, that the device is kept busy while the host queues what is timed: no launch is waited for between two events."""


def lead(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda._sleep(LEAD)


class Flush:
    """Calling it fills the L2 cache with what nobody reads. On the CPU it does nothing."""

    def __init__(self, device: torch.device) -> None:
        self.buffer: torch.Tensor | None = None
        if device.type == "cuda":
            size = 4 * torch.cuda.get_device_properties(device).L2_cache_size
            self.buffer = torch.empty(size, dtype=torch.int8, device=device)

    def __call__(self) -> None:
        if self.buffer is not None:
            self.buffer.zero_()


def captured(run: Run, device: torch.device, restore: Run | None = None) -> Run:
    """The function as a CUDA graph's replay, after warming up; the function itself on the CPU.

    restore : called (and waited for) before the capture and after it, where warming up changes a state. Capturing itself runs nothing.
    """
    if device.type != "cuda":
        run()
        if restore:
            restore()
        return run
    stream = torch.cuda.Stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP):
            run()
            if restore:
                restore()
    torch.cuda.current_stream(device).wait_stream(stream)
    torch.cuda.synchronize(device)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    torch.cuda.synchronize(device)
    return graph.replay


def by_turns(
    candidates: Mapping[str, Run],
    repeats: int,
    device: torch.device,
    before: Run,
    seconds: float = 60.0,
) -> dict[str, list[float]]:
    """us of each candidate, one after the other, `repeats` times; fewer (at least three) when `seconds` are over.

    before : runs before each, untimed.
    """
    times: dict[str, list[float]] = {name: [] for name in candidates}
    end = time.monotonic() + seconds
    for repeat in range(repeats):
        if repeat >= 3 and time.monotonic() > end:
            break
        pairs = []
        for name, run in candidates.items():
            before()
            lead(device)
            if device.type == "cuda":
                pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
                pair[0].record()
                run()
                pair[1].record()
                pairs.append((name, pair))
            else:
                begin = time.perf_counter_ns()
                run()
                times[name].append((time.perf_counter_ns() - begin) / 1e3)
        synchronize(device)
        for name, (first, last) in pairs:
            times[name].append(first.elapsed_time(last) * 1e3)
    return times


def spread(values: list[float]) -> dict[str, float]:
    """Median and spread of times in us (or of ratios)."""
    if not values:
        return {}
    low, median, high = np.percentile(values, (10, 50, 90))
    named = {"median": median, "p10": low, "p90": high, "least": min(values)}
    return {"n": len(values), **{name: float(f"{value:.4g}") for name, value in named.items()}}
