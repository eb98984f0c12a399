"""A mask and an advance as a text grows longer, and as it is nested deeper: JSON, this engine and its peers, on one core.

    python reports/bench/scaling.py --peers-python VENV/bin/python [--tokenizers mistral-7b-v0.1,tekken]

The peers' Python is that of masks.py, and so are the processes: the least time of a step of three counts. One text is a flat list of
objects; what is measured are the WINDOW tokens before a length. The other text goes down to a depth, stays there for WINDOW numbers, and
goes on down. An engine that refuses a token, or is too slow, has no figures from there on.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import add_peers, write_record
from masks import run_engine
from peers import summary, work
from peers.tokenizers import NAMES, inner_encoder

import maskwright as mw

LENGTHS = (100, 1_000, 10_000, 100_000)
DEPTHS = (1, 10, 100, 1_000, 10_000)
WINDOW = 100
ENGINES = ("ours", "llguidance", "xgrammar", "kbnf", "outlines")
WHAT = {
    "length": "A flat list of objects in JSON, on one core: the median of a mask and an advance over the 100 tokens before a length.",
    "nesting": "Lists of JSON inside one another, on one core: the median of a mask and an advance over numbers at a depth.",
}


def long_text(tokens: int, encode: Callable[[str], list[int]]) -> str:
    """A list of objects, of so many tokens at least."""
    parts: list[str] = []
    a_part = len(encode('{"id": 1000, "name": "part 1000", "price": 17.5, "is_new": true}, '))
    while len(parts) * a_part < 1.2 * tokens + 10 * a_part:
        number = 1_000 + len(parts) % 9_000
        parts.append(f'{{"id": {number}, "name": "part {number}", "price": {number % 97}.5, "is_new": true}}')
    return "[" + ", ".join(parts) + "]"


def deep_tokens(vocabulary: mw.Vocabulary) -> tuple[list[int], list[int]]:
    """A text that goes down, as tokens of one character each; and the position of the last token at each depth."""
    ids = {token: number for number, token in enumerate(vocabulary.tokens) if token}
    tokens: list[int] = []
    ends: list[int] = []
    for before, depth in zip((0, *DEPTHS), DEPTHS, strict=False):
        tokens += [ids[b"["]] * (depth - before)
        tokens += [ids[b"7"], ids[b","]] * (WINDOW // 2)
        ends.append(len(tokens))
    return [*tokens, ids[b"7"], *[ids[b"]"]] * DEPTHS[-1]], ends


def points(steps: Any, key: str, values: tuple[int, ...], ends: list[int]) -> list[dict[str, Any]]:
    """Times before each end that was reached. steps : document, position, mask and advance in ns."""
    found = []
    for value, end in zip(values, ends, strict=True):
        window = steps[(steps[:, 1] >= end - WINDOW) & (steps[:, 1] < end)]
        if len(window) == WINDOW:
            found.append({key: value, "both_us": summary.spread(window[:, 2] + window[:, 3])})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_peers(parser, default=sys.executable)
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--tokenizers", default=",".join(NAMES))
    parser.add_argument("--seconds", type=float, default=20, help="after which a replay stops early")
    parser.add_argument("--repeats", type=int, default=3, help="processes whose least times count")
    options = parser.parse_args()
    settings = argparse.Namespace(
        documents=10**9, seconds=options.seconds, batches="", batch_steps=0, batch_seconds=0, repeats=options.repeats
    )
    before = [round(value, 2) for value in os.getloadavg()]
    cells = []
    for tokenizer in options.tokenizers.split(","):
        vocabulary, encode = mw.load_vocabulary(tokenizer), inner_encoder(tokenizer)
        long = work.exact_tokens(long_text(LENGTHS[-1], encode), encode, vocabulary)
        assert long is not None and len(long) >= LENGTHS[-1]
        deep, ends = deep_tokens(vocabulary)
        cell: dict[str, Any] = {"tokenizer": tokenizer, "length": {}, "nesting": {}, "versions": {}, "stopped": {}}
        for key, tokens, values, at in (
            ("length", long, LENGTHS, list(LENGTHS)),
            ("nesting", deep, DEPTHS, ends),
        ):
            for engine in options.engines.split(","):
                with tempfile.TemporaryDirectory() as folder:
                    work.write_documents(Path(folder), "json", tokenizer, [(key, tokens)])
                    python = sys.executable if engine == "ours" else options.peers_python
                    facts = run_engine(engine, Path(folder), python, settings)
                steps = facts.pop("steps", np.zeros((0, 4), np.int64))
                cell[key][engine] = points(steps, key, values, at)
                cell["versions"][engine] = facts.get("version")
                refused = facts.get("replay", {}).get("refused") or [{"why": facts.get("reason", "")}]
                if len(cell[key][engine]) < len(values):
                    cell["stopped"][f"{key}, {engine}"] = refused[0]["why"] or "too slow"
                print(
                    tokenizer, key, engine, [(p[key], p["both_us"]["p50"]) for p in cell[key][engine]], file=sys.stderr
                )
        cells.append(cell)
    load = {"before": before, "after": [round(value, 2) for value in os.getloadavg()]}
    command = f"python reports/bench/scaling.py --peers-python PYTHON --tokenizers {options.tokenizers} --repeats {options.repeats}"
    write_record("scaling", command, {"what": WHAT, "load_average": load, "cells": cells})


if __name__ == "__main__":
    main()
