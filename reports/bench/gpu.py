"""The GPU decoding engine measured: apply kernels, a loop of 8B shape, the step of `GpuBatch`, and rows equal to the CPU engine's.

    python reports/bench/gpu.py [--parts apply,step,decode,check] [--peers-path SITE_PACKAGES]
    python reports/bench/gpu.py --prepare FOLDER [--peers-path SITE_PACKAGES]   # on any machine; then, with a GPU: --work FOLDER
    python reports/bench/gpu.py --parts check --device cpu                      # rows equal, without a GPU
    python reports/bench/gpu.py --device cpu --tiny                             # tries the script, measures nothing worth keeping
    python reports/bench/gpu.py --record A.json B.json ...                      # one record from parts that --json wrote

Without a GPU it says so and exits 0; nothing is recorded. A prepared folder holds stores and tokens, so that the machine with the GPU
needs neither tokenizers (but for llguidance, which encodes) nor the evaluation data. Peers (xgrammar, llguidance) run in this process,
from this Python's packages or from the folder that --peers-path names; those that are missing are reported so. Where a GPU is at hand for
minutes only, run the parts one by one with --json, and --minutes for the decoding loop, and put them together with --record.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import tempfile
import time
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from common import machine, write_record
from measured import hashes

HERE = Path(__file__).resolve().parent
COMMAND = "python reports/bench/gpu.py"
PARTS = ("apply", "step", "decode", "check")
PEERS = ("xgrammar", "llguidance")
TINY: dict[str, Any] = {
    "works": "json",
    "tokenizers": "bytes",
    "corpus": "stdlib",
    "tokens": 12_000,
    "columns": [1000],
    "apply_batches": [1, 3],
    "step_batches": [1, 2],
    "batches": [1, 2],
    "steps": 6,
    "prefix": 40,
    "repeats": 3,
    "turns": 2,
    "seconds": 5.0,
    "layers": 2,
    "hidden": 32,
    "intermediate": 64,
    "heads": 4,
    "kv_heads": 2,
    "check_tokens": 3_000,
    "check_batch": 8,
}


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true", help="shapes that any CPU runs in seconds; no record")
    parser.add_argument("--prepare", type=Path, metavar="FOLDER", help="write stores and tokens there, and stop")
    parser.add_argument("--work", type=Path, metavar="FOLDER", help="what --prepare wrote")
    parser.add_argument(
        "--record", type=Path, nargs="+", metavar="FILE", help="write record and pictures from these, and stop"
    )
    parser.add_argument(
        "--peers-path", type=Path, default=None, help="a folder of packages with xgrammar and llguidance"
    )
    parser.add_argument("--engines", default="xgrammar,llguidance", help="peers of the decoding loop")
    parser.add_argument("--works", default="python,json")
    parser.add_argument("--tokenizers", default="tekken,mistral-7b-v0.1")
    parser.add_argument("--corpus", choices=["both", "stdlib"], default="both", help="stdlib: what every Python has")
    parser.add_argument(
        "--tokens", type=int, default=200_000, help="tokens of documents to prepare, each piece of work"
    )
    parser.add_argument(
        "--columns", type=numbers, default=[32_000, 131_072, 151_936], help="widths of the apply kernels"
    )
    parser.add_argument("--apply-batches", type=numbers, default=[1, 4, 16, 64, 256, 1024, 4096])
    parser.add_argument("--step-batches", type=numbers, default=[1, 64, 256])
    parser.add_argument("--batches", type=numbers, default=[1, 16, 64, 256], help="of the decoding loop")
    parser.add_argument("--steps", type=int, default=256)
    parser.add_argument(
        "--prefix", type=int, default=512, help="tokens that a text has read at most when a loop begins"
    )
    parser.add_argument("--repeats", type=int, default=30, help="of an apply kernel")
    parser.add_argument("--turns", type=int, default=4, help="of a decoding loop")
    parser.add_argument("--seconds", type=float, default=8.0, help="for one turn of a slow peer")
    parser.add_argument(
        "--minutes", type=float, default=30.0, help="of the decoding loops: no batch size is begun later"
    )
    for name, value in (("layers", 32), ("hidden", 4096), ("intermediate", 14336), ("heads", 32), ("kv-heads", 8)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--check-tokens", type=int, default=1_000_000)
    parser.add_argument("--check-batch", type=int, default=64)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--json", type=Path, default=None, help="write the facts there too, after each part")
    return parser


def prepare(options: argparse.Namespace, folder: Path) -> None:
    """Every piece of work, with what the peers take of each document, where they are installed."""
    import gpu_engines
    import gpu_model
    import gpu_work
    import torch

    cpu = torch.device("cpu")
    for tokenizer in options.tokenizers:
        for name in options.works:
            work = gpu_work.build(name, tokenizer, options.tokens, options.corpus)
            for peer in options.engines:
                try:
                    engine = gpu_engines.PEERS[peer](work, cpu, gpu_model.padded(work.store.vocabulary.size))
                except ImportError as error:
                    say(f"{work.title}: {peer} is not installed, so nobody knows which documents it takes ({error})")
                    continue
                needed = options.prefix + options.steps + 1
                for document in work.documents:
                    document.taken[peer] = engine.taken(document.tokens[:needed])
                    if document.taken[peer] == min(needed, len(document.tokens)):
                        document.taken[peer] = len(document.tokens)  # places beyond are not used
            gpu_work.save(work, folder)
            n_tokens = sum(len(document.tokens) for document in work.documents)
            say(f"{work.title}: {len(work.documents)} documents, {n_tokens:,} tokens")


def measure(options: argparse.Namespace, folder: Path, device: Any) -> dict[str, Any]:
    """part -> what it found, or {"status", "reason"}."""
    import gpu_apply
    import gpu_check
    import gpu_clock
    import gpu_decode
    import gpu_step
    import gpu_work

    works = [gpu_work.load(folder, name, tokenizer) for tokenizer in options.tokenizers for name in options.works]
    makers = {
        "apply": lambda: gpu_apply.measure(works[0], options, device),
        "step": lambda: gpu_step.measure(works, options, device),
        "decode": lambda: gpu_decode.measure(works, options, device),
        "check": lambda: {
            "cells": [gpu_clock.attempt(partial(gpu_check.check, work, options, device)) for work in works]
        },
    }
    chosen = {key: value for key, value in vars(options).items() if isinstance(value, int | float | str | list | None)}
    facts: dict[str, Any] = {
        "code": hashes(COMMAND),
        "device": gpu_clock.facts(device),
        "host": machine(),
        "options": chosen,
        "parts": {},
    }
    for part in options.parts:
        say(f"{part} ...")
        begin = time.monotonic()
        found = gpu_clock.attempt(makers[part])
        facts["parts"][part] = found
        facts.setdefault("seconds", {})[part] = round(time.monotonic() - begin, 1)
        if options.json:
            options.json.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return facts


def say(text: str) -> None:
    print(text, flush=True)


def show(facts: dict[str, Any]) -> None:
    """The figures that the bars speak of, a line each."""
    for part, found in facts["parts"].items():
        if "reason" in found:
            say(f"{part}: {found['status']}: {found['reason']}")
            continue
        if part == "apply":
            show_apply(found)
            continue
        for cell in found["cells"]:
            where = f"{part}: {cell.get('work')}, {cell.get('tokenizer')}"
            if part == "check":
                show_check(where, cell)
            for batch in cell.get("batches", []):
                (show_step if part == "step" else show_decode)(f"{where}, batch {batch['batch']}", batch)


def show_apply(found: dict[str, Any]) -> None:
    for key, other in (("worst_of_pass", "a bare pass"), ("worst_of_xgrammar", "xgrammar's faster kernel")):
        if worst := found[key]:
            where = f"batch {worst['batch']}, V = {worst['columns']:,}, {worst['dtype']}, {worst['rows']} rows"
            say(f"apply: at worst {worst['ratio']} of {other} ({where})")
    for name, candidate in found["shapes"][0]["candidates"].items():
        if "reason" in candidate:
            say(f"apply: {name}: {candidate['status']}: {candidate['reason'][:120]}")


def show_step(where: str, batch: dict[str, Any]) -> None:
    if "reason" in batch:
        say(f"{where}: {batch['status']}: {batch['reason']}")
        return
    times = ", ".join(f"{name} {batch[f'{name}_cold_us']['median']:g}" for name in ("step", "advance", "find", "apply"))
    memory, refused = batch["memory"]["tensors_bytes"] / 1e6, batch["forced_refused"]
    say(f"{where}: us with a cold cache: {times}; {memory:.1f} MB; {refused} forced tokens refused")


def show_decode(where: str, batch: dict[str, Any]) -> None:
    if "reason" in batch:
        say(f"{where}: {batch['status']}: {batch['reason']}")
    for name, loop in batch["loops"].items():
        if "step_us" in loop:
            what = (
                f"{loop['step_us']['median'] / 1e3:.3f} ms a step, {loop['tokens_per_s']:,.0f} tokens/s, "
                f"{loop['overhead_percent']['median']:+.2f} %, {loop['forced_refused']} forced tokens refused"
            )
            say(f"{where}, {name}: {what}")
        else:
            say(f"{where}, {name}: {loop['status']}: {loop['reason']}")


def show_check(where: str, cell: dict[str, Any]) -> None:
    if "reason" in cell:
        say(f"{where}: {cell['status']}: {cell['reason']}")
        return
    say(
        f"{where}, batch {cell['batch']}: {cell['wrong']} of {cell['tokens']:,} rows or states differ; {cell['admitted']} texts admitted, "
        f"{cell['flagged']} illegal tokens flagged; {cell['seconds']} s"
    )
    for wrong in cell["first_wrong"]:
        say(f"  {wrong}")


def merged(files: list[Path]) -> dict[str, Any]:
    """One set of facts from several runs on one kind of device.

    `options` has those of each run. `code` is the first one's: where a folder was another in a later run, the record is of older code.
    """
    found = [json.loads(path.read_text(encoding="utf-8")) for path in files]
    facts = found[0] | {"options": [each["options"] for each in found]}
    for path, other in zip(files[1:], found[1:], strict=True):
        if other["device"] != facts["device"]:
            raise SystemExit(
                f"{path.name} is of another device or other versions than {files[0].name}: give them separate records"
            )
        for part, more in other["parts"].items():
            known = facts["parts"].get(part)
            if known and "cells" in known:
                for cell in more["cells"]:
                    add_cell(known["cells"], cell)
            else:
                facts["parts"][part] = more
            facts["seconds"][part] = round(facts["seconds"].get(part, 0) + other["seconds"][part], 1)
    return facts


def add_cell(cells: list[dict[str, Any]], cell: dict[str, Any]) -> None:
    """Add what was measured of a piece of work: the batch sizes that were not measured before."""
    for old in cells:
        if (old.get("work"), old.get("tokenizer")) == (cell.get("work"), cell.get("tokenizer")) and "batches" in cell:
            found = {batch["batch"]: batch for batch in cell["batches"]}
            for i, batch in enumerate(old["batches"]):
                more = found.pop(batch["batch"], batch)
                if "reason" in batch:
                    old["batches"][i] = more
            old["batches"] += found.values()
            return
    cells.append(cell)


def record(facts: dict[str, Any], name: str) -> None:
    """The dated record, and the pictures of what it has."""
    import gpu_chart

    write_record(name, COMMAND, {"machine": facts["host"], **facts})
    device, today = facts["device"], datetime.date.today().isoformat()
    foot = (
        f"{today}, {device['name']}, driver {device.get('driver')}, torch {device['torch']}, triton {device['triton']}"
    )
    for part, panels, what in (
        ("apply", gpu_chart.apply_panels, "Time to apply masks to logits (real rows, median)"),
        ("decode", gpu_chart.decode_panels, "Overhead of masks in a decoding loop"),
    ):
        found = facts["parts"].get(part)
        if found and "reason" not in found:
            picture = gpu_chart.picture(panels(found), what, foot)
            (HERE.parent / f"gpu_{part}.svg").write_text(picture, encoding="utf-8")


def main(given: list[str] | None = None) -> None:
    parser = arguments()
    options = parser.parse_args(given)
    if options.tiny:
        parser.set_defaults(**TINY)
        options = parser.parse_args(given)
    for name in ("parts", "works", "tokenizers", "engines"):
        setattr(options, name, [part for part in getattr(options, name).split(",") if part])
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if unknown := set(options.engines) - set(PEERS):
        parser.error(f"no peer {', '.join(sorted(unknown))}; there are {', '.join(PEERS)}")
    if options.peers_path:
        # behind this Python's own packages, so that those are shared
        sys.path.append(str(options.peers_path.resolve()))
    if options.record:
        record(merged(options.record), "gpu")
        return
    if options.prepare:
        prepare(options, options.prepare)
        return
    if find_spec("torch") is None:
        say("GPU decoding: not measured yet: PyTorch is not installed")
        return
    import gpu_clock
    import torch

    device = torch.device(options.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        say("GPU decoding: not measured yet: there is no CUDA device here. (--device cpu --tiny tries the script.)")
        return
    if device.type == "cpu" and not options.tiny and options.parts != ["check"]:
        parser.error("on the CPU only --parts check is worth its time; everything else wants --tiny")
    if device.type == "cpu":
        torch.set_num_threads(1)  # tiny shapes gain nothing from more, and lose much where cores are shared
    with tempfile.TemporaryDirectory() as temporary, torch.no_grad():
        folder = options.work or Path(temporary)
        if not options.work:
            prepare(options, folder)
        facts = measure(options, folder, device)
    show(facts)
    if reasons := gpu_clock.broken(facts):
        sys.exit(f"no record was written, because of what is printed above: {'; '.join(reasons)}")
    if any(cell.get("wrong") for cell in facts["parts"].get("check", {}).get("cells", [])):
        sys.exit("rows of the GPU engine differ from the CPU engine's: no record was written")
    if not options.tiny:
        record(facts, "gpu" if device.type == "cuda" else "gpu_check-cpu")


if __name__ == "__main__":
    main()
