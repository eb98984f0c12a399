"""(b) A decoding loop with a Llama-8B-shaped model on forced texts: unconstrained, resident rows, `GpuBatch`, peers that mask on the CPU.

All loops run the same forward pass, sampler and texts, by turns, and the overhead is that over the unconstrained loop of the same turn.
Loops with masks from the host launch the forward pass first, and then wait for the tokens that it reads: so the host works while the
GPU does. Of each loop it is counted how many of the texts' own tokens its masks refused.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import gpu_clock as clock
import gpu_engines as engines
import gpu_model
import numpy as np
import torch
from gpu_work import GpuWork, Place, places

BASE, RESIDENT, ON_DEVICE, FORKED = "unconstrained", "resident rows", "GpuBatch", "GpuBatch, forked"


class Unconstrained:
    """The whole step is one graph."""

    def __init__(self, decode: gpu_model.Decode) -> None:
        self.decode = decode
        self.step = decode.captured(lambda: decode.tail(decode.forward()))

    def prepare(self) -> None:
        self.decode.restart()

    def run(self, steps: int, end: float) -> int:
        for _ in range(steps):
            self.step()
        return steps

    def facts(self) -> dict[str, Any]:
        return {}


class OnDevice:
    """advance, find_rows and apply are in the graph; `is_forked` puts the first two beside the forward pass, as docs/gpu.md advises."""

    def __init__(self, decode: gpu_model.Decode, work: GpuWork, texts: Sequence[Place], is_forked: bool) -> None:
        from maskwright.decoding.gpu import GpuBatch

        self.decode = decode
        self.gpu = GpuBatch(work.store, len(texts), device=decode.device)
        self.matchers = matchers_at(work.store, texts)
        self.step = decode.captured(self._forked if is_forked else self._in_line, self._admit)

    def _admit(self) -> None:
        self.gpu.admit(range(len(self.matchers)), self.matchers)

    def _in_line(self) -> None:
        self.gpu.advance(self.decode.tokens)
        self.gpu.find_rows()
        logits = self.decode.forward()
        self.gpu.apply(logits)
        self.decode.tail(logits)

    def _forked(self) -> None:
        self.gpu.prepare(self.decode.tokens)
        logits = self.decode.forward()
        self.gpu.apply(logits)
        self.decode.tail(logits)

    def prepare(self) -> None:
        self.decode.restart()
        self._admit()

    def run(self, steps: int, end: float) -> int:
        for _ in range(steps):
            self.step()
        return steps

    def facts(self) -> dict[str, Any]:
        return {"slots_not_reading": sum(state != "reading" for state in self.gpu.states())}


class FromHost:
    """The engine works on the host while the forward pass runs."""

    def __init__(
        self, decode: gpu_model.Decode, parts: gpu_model.Parts, engine: engines.HostEngine, texts: Sequence[Place]
    ) -> None:
        self.decode, self.parts, self.engine, self.texts = decode, parts, engine, texts
        on_cuda = decode.device.type == "cuda"
        self.tokens = torch.zeros(decode.batch, dtype=torch.int32, pin_memory=on_cuda)
        self.as_array = self.tokens.numpy()
        self.sent = torch.cuda.Event() if on_cuda else None

    def prepare(self) -> None:
        self.decode.restart()
        self.engine.begin(self.texts)
        self._send()
        self.host_ns = self.steps = 0

    def _send(self) -> None:
        self.tokens.copy_(self.decode.tokens, non_blocking=True)
        if self.sent:
            self.sent.record()

    def run(self, steps: int, end: float) -> int:
        for step in range(steps):
            self.parts.forward()
            if self.sent:
                self.sent.synchronize()
            begin = time.perf_counter_ns()
            self.engine.step(self.as_array)
            self.host_ns += time.perf_counter_ns() - begin
            self.engine.apply(self.parts.logits)
            self.parts.tail()
            self._send()
            self.steps = step + 1
            if time.monotonic() > end:
                break
        return self.steps

    def facts(self) -> dict[str, Any]:
        return {"host_us": round(self.host_ns / max(1, self.steps) / 1e3, 1), "texts_lost": self.engine.lost}


def matchers_at(store: Any, texts: Sequence[Place]) -> list[Any]:
    """Matchers of the CPU engine with the texts read; they remember nothing to roll back."""
    found = []
    for tokens, begun in texts:
        matcher = store.matcher(max_rollback=0)
        for token in tokens[:begun]:
            matcher.advance(token)
        found.append(matcher)
    return found


def outside_masks(work: GpuWork, texts: Sequence[Place], samples: Any) -> int:
    """How many sampled tokens the CPU engine's masks refuse. samples : (steps, B)."""
    batch = engines.ours_at(work.store, texts)
    words = np.zeros((len(texts), work.store.n_words), np.uint32)
    slots = np.arange(len(texts))
    wrong = 0
    for step, sampled in enumerate(samples.cpu().numpy()):
        batch.advance(np.array([tokens[begun + step] for tokens, begun in texts]))
        batch.fill(words)
        inside = sampled < work.store.vocabulary.size
        bits = words[slots, np.where(inside, sampled, 0) >> 5] >> (sampled & 31).astype(np.uint32) & 1
        wrong += int((~inside | (bits == 0)).sum())
    return wrong


def loops_of(
    decode: gpu_model.Decode, work: GpuWork, texts: Sequence[Place], hosts: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The loops that can run, and why the others cannot. hosts : engines by name, or why there is none."""
    loops: dict[str, Any] = {}
    missing: dict[str, str] = {}
    parts = gpu_model.Parts(decode)
    makers: dict[str, Callable[[], Any]] = {BASE: lambda: Unconstrained(decode)}
    makers[ON_DEVICE] = lambda: OnDevice(decode, work, texts, is_forked=False)
    makers[FORKED] = lambda: OnDevice(decode, work, texts, is_forked=True)
    for name, host in hosts.items():
        if isinstance(host, str):
            missing[name] = host
        else:
            makers[name] = lambda host=host: FromHost(decode, parts, host, texts)
    for name, maker in makers.items():
        try:
            loops[name] = maker()
        except ImportError as error:
            missing[name] = f"not installed: {error}"
    return loops, missing


def measure_batch(
    model: Any,
    work: GpuWork,
    batch: int,
    options: Any,
    device: torch.device,
    hosts: dict[str, Any],
    too_slow: dict[str, str],
) -> dict[str, Any]:
    """One batch size. too_slow : engines to leave out, and why; grows."""
    texts, may_refuse = places(work, batch, options.steps, options.prefix, seed=batch)
    decode = gpu_model.Decode(model, texts, options.steps, device)
    loops, missing = loops_of(decode, work, texts, hosts | too_slow)
    step_us: dict[str, list[float]] = {name: [] for name in loops}
    results: dict[str, dict[str, Any]] = {
        name: {"status": "not measured", "reason": why} for name, why in missing.items()
    }
    samples: dict[str, Any] = {}
    # the first two turns are not kept: one step, in which everything is compiled, and a few, which show what is too slow
    for turn in range(-2, options.turns):
        for name in list(loops):
            loop = loops[name]
            try:
                loop.prepare()
                clock.synchronize(device)
                begin = time.perf_counter()
                end = time.monotonic() + options.seconds
                steps = loop.run({-2: 1, -1: min(8, options.steps)}.get(turn, options.steps), end)
                clock.synchronize(device)
                taken = time.perf_counter() - begin
            except Exception as error:  # what a peer raises is its result; ours must not raise
                if name in (BASE, RESIDENT, ON_DEVICE, FORKED):
                    raise
                del loops[name]
                results[name] = {"status": "failed", "reason": f"{type(error).__name__}: {error}"[:300]}
                continue
            if turn < 0:
                if turn == -1 and taken > options.seconds:  # even a few steps take longer than all may
                    del loops[name]
                    why = f"too slow: {steps} steps took {taken:.0f} s at batch {batch}"
                    results[name] = {"status": "not measured", "reason": why, "one_step_us": round(taken * 1e6 / steps)}
                    too_slow[name] = why
                continue
            step_us[name].append(taken * 1e6 / steps)
            samples[name] = decode.samples[:steps].clone()
            results[name] = {
                "status": "measured",
                "steps": steps,
                "forced_refused": int(decode.refused),
                **loop.facts(),
            }
    for name in loops:
        result = results[name]
        ratios = [own / base - 1 for own, base in zip(step_us[name], step_us[BASE], strict=True)]
        result["step_us"] = clock.spread(step_us[name])
        result["tokens_per_s"] = round(batch * 1e6 / result["step_us"]["median"], 1)
        result["overhead_percent"] = clock.spread([100 * ratio for ratio in ratios])
        if name in (RESIDENT, ON_DEVICE, FORKED):
            result["sampled_outside_masks"] = outside_masks(work, texts, samples[name])
            result["sampled_unlike_resident"] = int((samples[name] != samples.get(RESIDENT, samples[name])).sum())
    return {"steps": options.steps, "may_refuse": sorted(may_refuse), "loops": results}


def host_engines(work: GpuWork, device: torch.device, columns: int, names: Sequence[str]) -> dict[str, Any]:
    """Engines by name, compiled; or why there is none."""
    found: dict[str, Any] = {}
    makers: dict[str, Callable[[], Any]] = {RESIDENT: lambda: engines.Resident(work, device)}
    for name in names:
        makers[name] = lambda name=name: engines.PEERS[name](work, device, columns)
    for name, maker in makers.items():
        try:
            found[name] = maker()
        except ImportError as error:
            found[name] = f"not installed: {error}"
        except Exception as error:
            if name == RESIDENT:
                raise
            found[name] = f"cannot: {type(error).__name__}: {error}"[:300]
    return found


def measure_work(
    model: Any, work: GpuWork, columns: int, options: Any, device: torch.device, end: float
) -> dict[str, Any]:
    """All batch sizes that are begun before `end`."""
    hosts = host_engines(work, device, columns, options.engines)
    too_slow: dict[str, str] = {}
    batches: list[dict[str, Any]] = []
    for batch in options.batches:
        if time.monotonic() > end:
            found: dict[str, Any] = {"status": clock.NOT_MEASURED, "reason": "the time was over"}
        else:
            found = clock.attempt(partial(measure_batch, model, work, batch, options, device, hosts, too_slow))
        batches.append({"batch": batch, "loops": {}} | found)
        _free(device)
    return {"work": work.name, "tokenizer": work.tokenizer, "columns": columns, "batches": batches}


def measure(works: Sequence[GpuWork], options: Any, device: torch.device) -> dict[str, Any]:
    """All pieces of work; those of one vocabulary, one after the other, share a model."""
    shape = gpu_model.Shape(options.layers, options.hidden, options.intermediate, options.heads, options.kv_heads)
    end = time.monotonic() + 60 * options.minutes
    cells = []
    model: Any = None
    for work in works:
        columns = gpu_model.padded(work.store.vocabulary.size)
        if model is None or model.config.vocab_size != columns:
            model = None
            _free(device)
            model = gpu_model.build_model(shape, columns, options.steps + 64, device, torch.bfloat16)
        cells.append(measure_work(model, work, columns, options, device, end))
    return {"shape": asdict(shape), "dtype": "bfloat16", "prefix": options.prefix, "cells": cells}


def _free(device: torch.device) -> None:
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
