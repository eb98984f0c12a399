"""What building a store costs: CPU seconds and memory, beside glrmask on the same text of a grammar where one is given.

python reports/bench/compiling.py [--glrmask PYTHON]

PYTHON is an interpreter that has glrmask installed. Each grammar and vocabulary has a process of its own, in which a tiny grammar is
built for the vocabulary first: so code is loaded, and what the vocabulary alone decides is worked out (`prepare`). Then the least of
ROUNDS counts. Engines take turns.

Of an open store (`build_store(..., lazy=True)`) it counts the CPU seconds to the first mask. Then OPEN_STEPS tokens are drawn from the
masks of a store that is not closed at all, and each mask is timed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import write_record
from rich.console import Console
from rich.progress import track
from rich.table import Table

import maskwright as mw

ROUNDS = 3
VOCABULARIES = ("mistral-7b-v0.1", "tekken")
OPEN_STEPS = 300
TINY = 'start: "a" start "b" | "a" "b"\n'
TEXTS = Path(__file__).parent / "grammars"
GRAMMARS = ("a^n b^n", "json.lark", "json", "lark:python", "python", "c", "java", "sql")
"""Names of maskwright's library; and texts that all engines read: a^n b^n, and files of reports/bench/grammars."""
SHARED = ("a^n b^n", "json.lark")

OURS = """
import json, random, resource, sys, time
import maskwright as mw, numpy as np
from maskwright.analysis.lr import tables
from maskwright.maskstore.table.build import prepare_engine_table
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store
what, is_text, vocabulary, tiny, rounds, steps = sys.argv[1:]
vocabulary = mw.load_vocabulary(vocabulary)
begin = time.process_time()
compile_store(mw.parse_grammar(tiny), vocabulary)
prepare = time.process_time() - begin
def load():
    return mw.parse_grammar(open(what).read(), lexing="longest") if is_text == "1" else mw.load_grammar(what)
found = []
for _ in range(int(rounds)):
    tables.forget()
    begin = time.process_time()
    store = compile_store(load(), vocabulary)
    found.append(time.process_time() - begin)
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
opened = []
for _ in range(int(rounds)):
    tables.forget()
    begin = time.process_time()
    open_store = Store.of(prepare_engine_table(load(), vocabulary)[0])
    matcher, words = open_store.matcher(), np.zeros(store.n_words, np.uint32)
    matcher.fill(words)
    opened.append(time.process_time() - begin)
rng, seconds = random.Random(0), []
for _ in range(int(steps)):
    begin = time.perf_counter()
    matcher.fill(words)
    seconds.append(time.perf_counter() - begin)
    allowed = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist()
    matcher.advance(rng.choice(allowed))
    if matcher.is_finished():
        matcher.reset()
print(json.dumps({
    "cpu_s": min(found), "prepare_cpu_s": prepare, "peak_mb": memory / 1024, "table_mb": store.table.nbytes / 2**20,
    "open_cpu_s": min(opened), "open_mask_us": 1e6 * float(np.median(seconds)),
}))
"""

GLRMASK = """
import glrmask, json, resource, sys, time
what, tokens, tiny, rounds = sys.argv[1:]
tokens = {int(i): bytes.fromhex(token) for i, token in json.load(open(tokens)).items()}
begin = time.process_time()
vocabulary = glrmask.Vocab.from_id_to_bytes(tokens)
glrmask.Grammar.from_lark(tiny).compile(vocabulary)
prepare = time.process_time() - begin
found = []
for _ in range(int(rounds)):
    begin = time.process_time()
    glrmask.Grammar.from_lark(open(what).read()).compile(vocabulary)
    found.append(time.process_time() - begin)
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"cpu_s": min(found), "prepare_cpu_s": prepare, "peak_mb": memory / 1024}))
"""


def measured(command: list[str]) -> dict[str, Any]:
    """What a process prints; or why there is nothing."""
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        return {"failed": (run.stderr.strip().splitlines() or ["?"])[-1][:200]}
    return {name: round(value, 4) for name, value in json.loads(run.stdout).items()}


def main() -> None:
    """Measure, show and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--glrmask", metavar="PYTHON", help="an interpreter that has glrmask")
    parser.add_argument("--grammars", nargs="+", default=GRAMMARS)
    options = parser.parse_args()
    table = Table(
        "grammar",
        "vocabulary",
        "CPU s",
        "MB",
        "open: CPU s",
        "us a mask",
        "glrmask: CPU s",
        "MB",
        title="building a store",
        title_justify="left",
    )
    cells = []
    with tempfile.TemporaryDirectory() as folder:
        files = {"a^n b^n": Path(folder) / "anbn.lark"} | {name: TEXTS / name for name in SHARED[1:]}
        files["a^n b^n"].write_text(TINY)
        for vocabulary in VOCABULARIES:
            tokens = Path(folder) / f"{vocabulary}.json"
            loaded = mw.load_vocabulary(vocabulary)
            tokens.write_text(json.dumps({i: loaded.tokens[i].hex() for i in loaded.text_ids().tolist()}))
            for name in track(options.grammars, vocabulary, console=Console(stderr=True)):
                what, is_text = str(files.get(name, name)), str(int(name in SHARED))
                cell = {"grammar": name, "vocabulary": vocabulary}
                cell["maskwright"] = measured(
                    [sys.executable, "-c", OURS, what, is_text, vocabulary, TINY, str(ROUNDS), str(OPEN_STEPS)]
                )
                if options.glrmask and name in SHARED:
                    cell["glrmask"] = measured([options.glrmask, "-c", GLRMASK, what, str(tokens), TINY, str(ROUNDS)])
                cells.append(cell)
                ours, theirs = cell["maskwright"], cell.get("glrmask", {})
                shown = [(ours, key) for key in ("cpu_s", "peak_mb", "open_cpu_s", "open_mask_us")]
                shown += [(theirs, key) for key in ("cpu_s", "peak_mb")]
                table.add_row(name, vocabulary, *(str(each.get(key, each.get("failed", ""))) for each, key in shown))
    Console().print(table)
    command = "python reports/bench/compiling.py" + " --glrmask PYTHON" * bool(options.glrmask)
    write_record("compiling", command, {"rounds": ROUNDS, "cells": cells})


if __name__ == "__main__":
    main()
