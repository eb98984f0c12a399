"""What restrictions of the python grammar cost or save: sizes of the store, and time for a mask on texts that obey, with them and without.

    python reports/bench/restrictions.py [--tokenizer T] [--files N]

Texts: of the first N files of the evaluation data's Python (up to 20 kB each) those that the restricted grammar takes; both grammars' masks
are filled at the same places, in turn, and the least of three times counts. `docstrings` and the like leave few files of their own; their
texts are those few. Bundled tokenizer by default, so that it runs in minutes.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from common import add_data, python_files, write_record
from rich.console import Console
from rich.table import Table

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.loading import load_grammar
from maskwright.maskstore.vocabulary import Vocabulary, load_vocabulary
from maskwright.maskstore.vocabulary.encoders import load_encoder
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

NAMES = (
    "function_name=[a-z_][a-z0-9_]*",
    "class_name=_?[A-Z][A-Za-z0-9]*",
    "variable_name=[a-z_][a-z0-9_]*|[A-Z_][A-Z0-9_]*",
)
MODULES = "imports=os,sys,re,json,math,time,typing,logging,datetime,collections.*,."
RESTRICTIONS: dict[str, tuple[str, ...]] = {
    "none": (),
    "function_name": NAMES[:1],
    "class_name": NAMES[1:2],
    "variable_name": NAMES[2:],
    "all names": NAMES,
    "imports": (MODULES,),
    "docstrings": ("docstrings",),
    "module_docstring": ("module_docstring",),
    "no_comments": ("no_comments",),
    "whitespace": ("whitespace",),
    "all": (*NAMES, MODULES, "docstrings", "no_comments", "whitespace"),
}
MAX_BYTES = 20_000
REPEATS = 3


def build(restrictions: tuple[str, ...], vocabulary: Vocabulary) -> tuple[Store, float]:
    begin = time.process_time()
    store = compile_store(load_grammar("python", restrict=restrictions), vocabulary)
    return store, time.process_time() - begin


def takes(store: Store, tokens: list[int]) -> bool:
    """Whether the store's grammar takes the text of these tokens as a whole."""
    matcher = store.matcher()
    try:
        return bool(matcher.replay(tokens) == len(tokens) and matcher.is_accepting())
    except MaskwrightError:
        return False


def fill_times(store: Store, texts: list[list[int]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Nanoseconds of each mask."""
    matcher, mask = store.matcher(), np.zeros(store.n_words, np.uint32)
    found = []
    for tokens in texts:
        matcher.reset()
        for token in tokens:
            begin = time.perf_counter_ns()
            matcher.fill(mask)
            found.append(time.perf_counter_ns() - begin)
            matcher.advance(token)
    return np.array(found)


def measure(store: Store, plain: Store, texts: list[list[int]]) -> dict[str, Any]:
    """Both in turn on the same texts, so that the machine's moods meet both."""
    times: dict[str, Any] = {}
    for _ in range(REPEATS):
        for name, one in (("restricted", store), ("unrestricted", plain)):
            found = fill_times(one, texts)
            times[name] = np.minimum(times.get(name, found), found)
    return {
        name: {"mean_us": round(float(ns.mean()) / 1e3, 2), "median_us": round(float(np.median(ns)) / 1e3, 2)}
        for name, ns in times.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokenizer", default="python-tiny")
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--tokens", type=int, default=20_000, help="places on which masks are timed, at most")
    add_data(parser)
    options = parser.parse_args()
    vocabulary = load_vocabulary(options.tokenizer)
    encoder = load_encoder(options.tokenizer)
    files = [text for text in (r["text"] for r in python_files()) if len(text) <= MAX_BYTES][: options.files]
    encoded = [encoder.exact_tokens(text).tokens for text in files]
    plain, seconds = build((), vocabulary)
    table = Table("restriction", "nodes", "edges", "masks", "MB", "build CPU-s", "texts", "mask us", "without, us")
    rows = []
    for name, restrictions in RESTRICTIONS.items():
        if restrictions:
            store, seconds = build(restrictions, vocabulary)
        else:
            store = plain
        obeying = [tokens for tokens in encoded if takes(store, tokens)]
        some: list[list[int]] = []
        for tokens in obeying:
            if sum(map(len, some)) + len(tokens) <= options.tokens:
                some.append(tokens)
        sizes = {key: store.counts.get(key, 0) for key in ("nodes", "edges", "masks")}
        row: dict[str, Any] = {"name": name, "restrictions": list(restrictions), **sizes, "bytes": store.table.nbytes}
        row |= {"build_cpu_seconds": round(seconds, 2), "files": len(files), "files_that_obey": len(obeying)}
        row |= {"positions": sum(map(len, some)), **(measure(store, plain, some) if some else {})}
        rows.append(row)
        table.add_row(
            name,
            *(f"{size:,}" for size in sizes.values()),
            f"{row['bytes'] / 1e6:.1f}",
            f"{seconds:.1f}",
            f"{len(obeying)} of {len(files)}",
            *(str(row.get(key, {}).get("mean_us", "-")) for key in ("restricted", "unrestricted")),
        )
    Console().print(table)
    facts = {"tokenizer": vocabulary.name, "rows": rows}
    write_record(
        f"restrictions-{vocabulary.name}",
        f"python reports/bench/restrictions.py --tokenizer {options.tokenizer}",
        facts,
    )


if __name__ == "__main__":
    main()
