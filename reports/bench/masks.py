"""Masks of this engine and of its peers side by side, on the same tokens of real Python and JSON, on one core.

    python reports/bench/masks.py --peers-python VENV/bin/python [--syncode-python VENV/bin/python] [--quick]

Peers come from venvs outside the repository (SynCode needs an old transformers, so one of its own):
`pip install torch==2.13.0`, then `pip install xgrammar==0.2.9 llguidance==1.9.1 glrmask==0.5.0 outlines-core==0.2.14 kbnf==0.4.2
mistral-common[sentencepiece]`; and
`pip install torch==2.13.0`, then `pip install syncode==0.4.16 "transformers<4.56" sentencepiece protobuf`. What is missing is reported so.
With a choice of engines, work or tokenizers no record and no picture are written: `--json FILE` keeps what is found.
Each engine runs in a process of its own, as often as any other, over the same documents; the least time of a step counts.
Grammars: see grammars/flatten.py.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from common import add_data, add_peers, machine, program, write_record
from peers import chart, summary, work
from peers.tokenizers import NAMES, inner_encoder
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
CHART = HERE.parent / "masks.svg"
ENGINES = ("ours", "llguidance", "xgrammar", "glrmask", "outlines", "kbnf", "syncode")
STRIDE = {("xgrammar", "python"): 200, ("kbnf", "python"): 50, ("syncode", "python"): 50, ("syncode", "json"): 10}
"""Where a mask takes a tenth of a second and more, those of every so many windows of 16 tokens are filled, in all the documents."""
QUICK = {
    "documents": 2,
    "seconds": 2.0,
    "batch_seconds": 2.0,
    "repeats": 1,
    "batches": "4",
    "batch_steps": 4,
    "tokenizers": "mistral-7b-v0.1",
}


def run_engine(engine: str, folder: Path, python: str, options: argparse.Namespace) -> dict[str, Any]:
    """The facts of an engine on a piece of work, merged over its processes; the arrays stay under "steps"."""
    environment = {
        **os.environ,
        **dict.fromkeys(("OMP_NUM_THREADS", "RAYON_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"),
        "SYNCODE_CACHE": f"{folder}/syncode/",
        "HF_HUB_OFFLINE": "1",
    }
    stride = STRIDE.get((engine, json.loads((folder / "work.json").read_text(encoding="utf-8"))["name"]), 1)
    facts: dict[str, Any] = {}
    tables: list[Any] = []
    for repeat in range(options.repeats):
        out = folder / f"{engine}-{repeat}"
        command = [python, "-m", "peers.process", engine, str(folder), str(out), "--stride", str(stride)]
        for name in ("documents", "seconds", "batches", "batch_steps", "batch_seconds"):
            command += [f"--{name.replace('_', '-')}", str(getattr(options, name))]
        done = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = done.stderr.strip().splitlines()
            return {"status": "failed", "reason": lines[-1] if lines else f"exit code {done.returncode}"}
        found = json.loads(Path(f"{out}.json").read_text(encoding="utf-8"))
        facts = facts or found  # the first process is the cold one: its compile time counts
        if found["status"] != "measured":
            return facts
        with np.load(f"{out}.npz") as arrays:
            tables.append({name: arrays[name] for name in arrays.files})
    steps = summary.best_of([table["steps"] for table in tables], keys=2)
    facts |= summary.replay_summary(steps, tables[0]["other_advances"])
    for n, batch in facts["batches"].items():
        if f"batch_{n}" in tables[0]:
            batch |= summary.batch_summary(tables[0][f"batch_{n}"])
    return {**facts, "steps": steps}


def shown(microseconds: float | None) -> str:
    """A time to read: three digits and a unit, us without one."""
    if microseconds is None:
        return ""
    for unit, factor in ((" s", 1e6), (" ms", 1e3)):
        if microseconds >= factor:
            return f"{microseconds / factor:.3g}{unit}"
    return f"{microseconds:.3g}"


def show(console: Console, cell: dict[str, Any]) -> None:
    table = Table(
        title=f"{cell['work']}, V = {cell['vocabulary']:,}: us a step; percentiles of the mask, means of advance and of both"
    )
    for column in (
        "engine",
        "compile CPU-s",
        "RSS MB",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "max",
        "mean",
        "advance",
        "both",
        "/ ours",
    ):
        table.add_column(column, justify="left" if column == "engine" else "right")
    for n in cell["batches"]:
        table.add_column(f"batch {n} p50")
    table.add_column("refused", no_wrap=True)
    for name, engine in cell["engines"].items():
        if engine["status"] != "measured":
            console.print(f"{name}, {cell['work']}: {engine['status']}: {engine.get('reason', '')}", markup=False)
            continue
        mask, replay = engine["mask_us"], engine["replay"]
        times = [shown(mask.get(key)) for key in ("p50", "p90", "p99", "p99.9", "max", "mean")]
        batches = [shown(batch.get("both_us", {}).get("p50")) for batch in engine["batches"].values()]
        table.add_row(
            name,
            f"{engine['compile_cpu_s']:.3f}",
            f"{engine['compile_rss_bytes'] / 1e6:,.0f}",
            *times,
            shown(engine["advance_us"].get("mean")),
            shown(engine["both_us"].get("mean")),
            f"{engine.get('ratio', {}).get('of_means', '')}",
            *batches,
            f"{replay['documents_refused']} of {replay['documents_begun']}" + ", cut" * (not replay["is_whole"]),
        )
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_peers(parser, default=sys.executable)
    parser.add_argument("--syncode-python", type=program, help="a Python that has SynCode; by default the peers' one")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--work", default=",".join(work.NAMES))
    parser.add_argument("--tokenizers", default=",".join(NAMES))
    parser.add_argument(
        "--corpus", choices=["both", "shared", "stdlib"], default="both", help="where Python files come from"
    )
    parser.add_argument("--documents", type=int, default=32, help="to replay, for each engine and piece of work")
    parser.add_argument("--seconds", type=float, default=300, help="after which a replay stops early")
    parser.add_argument("--repeats", type=int, default=2, help="processes whose least times count")
    parser.add_argument("--batches", default="16,128")
    parser.add_argument("--batch-steps", type=int, default=128)
    parser.add_argument("--batch-seconds", type=float, default=20, help="after which a batch stops early")
    parser.add_argument("--json", type=Path, default=None, help="write the facts there too")
    parser.add_argument(
        "--quick", action="store_true", help="a minute's smoke run without SynCode; writes no record and no picture"
    )
    add_data(parser)
    options = parser.parse_args()
    if options.quick:
        vars(options).update(QUICK)
        # SynCode builds its store of Python for minutes
        options.engines = ",".join(name for name in options.engines.split(",") if name != "syncode")
    if unknown := set(options.engines.split(",")) - set(ENGINES):
        parser.error(f"no engine {', '.join(sorted(unknown))}; there are {', '.join(ENGINES)}")
    pythons = dict.fromkeys(ENGINES, options.peers_python)
    pythons |= {"ours": sys.executable, "syncode": options.syncode_python or options.peers_python}
    console = Console()
    if not console.is_terminal:
        console = Console(width=160)
    cells: list[dict[str, Any]] = []
    load_before = [round(value, 2) for value in os.getloadavg()]
    with tempfile.TemporaryDirectory() as temporary:
        for name in options.work.split(","):
            for tokenizer in options.tokenizers.split(","):
                folder = Path(temporary) / f"{name}-{tokenizer}"
                encode = inner_encoder(tokenizer)
                with console.status(f"{name}, {tokenizer}: tokens"):
                    counts = work.write_work(folder, name, tokenizer, encode, options.corpus)
                vocabulary = len(json.loads((folder / "work.json").read_text(encoding="utf-8"))["tokens"])
                engines: dict[str, dict[str, Any]] = {}
                for engine in options.engines.split(","):
                    with console.status(f"{name}, {tokenizer}: {engine}"):
                        engines[engine] = run_engine(engine, folder, pythons[engine], options)
                steps = {engine: facts.pop("steps", None) for engine, facts in engines.items()}
                for engine, facts in engines.items():
                    if engine != "ours" and steps[engine] is not None and steps.get("ours") is not None:
                        facts["ratio"] = summary.ratio(steps["ours"], steps[engine])
                cells.append(
                    {
                        "work": name,
                        "tokenizer": tokenizer,
                        "vocabulary": vocabulary,
                        "batches": [int(n) for n in options.batches.split(",") if n],
                        **counts,
                        "engines": engines,
                    }
                )
                show(console, cells[-1])
    load = {"before": load_before, "after": [round(value, 2) for value in os.getloadavg()]}
    facts = {"load_average": load, "encoder": "the tokenizer's own", "cells": cells}
    if options.json:
        options.json.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    is_whole = all(getattr(options, name) == parser.get_default(name) for name in ("engines", "work", "tokenizers"))
    if options.quick or not is_whole:
        return
    if not all(cell["engines"].get("ours", {}).get("status") == "measured" for cell in cells):
        sys.exit("this engine was not measured on all the work: no record and no picture were written")
    today = datetime.date.today().isoformat()
    settings = ("documents", "seconds", "repeats", "corpus", "batches", "batch_steps", "batch_seconds")
    command = "python reports/bench/masks.py " + " ".join(
        f"--{setting.replace('_', '-')} {getattr(options, setting)}" for setting in settings
    )
    command += "".join(f" --{who}-python PYTHON" for who in ("peers", "syncode") if getattr(options, f"{who}_python"))
    write_record("masks", command, facts)
    CHART.write_text(chart.picture(cells, today, machine()["cpu"]), encoding="utf-8")


if __name__ == "__main__":
    main()
