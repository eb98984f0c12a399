"""What compiling the engine ahead of time saves: the CPU seconds to a finished store's first masks, and the CPU time of a step.

python reports/bench/ahead.py

Each figure is of processes of their own, both ways in turn; the least of ROUNDS counts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from common import write_record

import maskwright as mw
from maskwright.decoding.engine.entries import entries

ROUNDS = 3
FIRST = (Path(__file__).parents[2] / "scripts" / "first_masks.py").read_text("utf-8")
STEP = """
import json, sys, time
import maskwright as mw, numpy as np
store = mw.load_store(sys.argv[1])
text = open(sys.argv[2], "rb").read()
known = {token: number for number, token in enumerate(store.vocabulary.tokens) if token}
tokens, at = [], 0
while at < len(text):
    length = next(n for n in range(16, 0, -1) if text[at : at + n] in known)
    tokens.append(known[text[at : at + length]])
    at += length
words, least = np.zeros(store.n_words, np.uint32), 1e9
for _ in range(7):
    matcher = store.matcher()
    begin = time.process_time()
    for token in tokens:
        matcher.fill(words)
        matcher.advance(token)
    least = min(least, (time.process_time() - begin) / len(tokens))
print(least * 1e9)
"""


def measured(code: str, *arguments: str, **environment: str) -> float:
    # byte code is kept, as `pip install` does it: the first round of a checkout compiles it
    run = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": ""} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(run.stdout)


def main() -> None:
    if not entries.is_compiled_ahead:
        sys.exit("the engine is not compiled ahead of time here; run: python scripts/compile_kernels.py")
    vocabulary = mw.load_vocabulary("mistral-7b-v0.1")
    with tempfile.TemporaryDirectory() as folder:
        texts = {"json": Path(folder) / "text.json", "lark:python": Path(os.__file__)}
        rows = [f'{{"a": {i}, "b": ["xxx", 1.5, null], "c": {{"d": "e"}}}}' for i in range(400)]
        texts["json"].write_text("[" + ",\n".join(rows) + "]")
        stores = {}
        for name in texts:
            stores[name] = str(Path(folder) / f"{name.replace(':', '-')}.safetensors")
            mw.build_store(mw.load_grammar(name), vocabulary).save(stores[name])
        first: dict[str, list[float]] = {"ahead": [], "numba, kept": [], "numba, nothing kept": []}
        steps: dict[str, dict[str, list[float]]] = {name: {"ahead": [], "numba": []} for name in texts}
        for i in range(ROUNDS):
            first["ahead"].append(measured(FIRST, stores["json"]))
            empty = str(Path(folder) / f"empty{i}")
            os.mkdir(empty)
            first["numba, nothing kept"].append(
                measured(FIRST, stores["json"], MASKWRIGHT_JIT="1", NUMBA_CACHE_DIR=empty)
            )
            first["numba, kept"].append(measured(FIRST, stores["json"], MASKWRIGHT_JIT="1", NUMBA_CACHE_DIR=empty))
            for name, path in texts.items():
                steps[name]["ahead"].append(measured(STEP, stores[name], str(path)))
                steps[name]["numba"].append(measured(STEP, stores[name], str(path), MASKWRIGHT_JIT="1"))
    facts = {
        "cpu_seconds_to_the_first_masks": {way: round(min(found), 2) for way, found in first.items()},
        "nanoseconds_of_fill_and_advance": {
            name: {way: round(min(found)) for way, found in ways.items()} for name, ways in steps.items()
        },
    }
    print(facts)
    write_record("ahead", "python reports/bench/ahead.py", facts)


if __name__ == "__main__":
    main()
