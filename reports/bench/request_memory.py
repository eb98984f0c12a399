"""How far does a server's memory grow under requests that are all different? It prints its resident size along the way.

    python reports/bench/request_memory.py [--tokenizer python-tiny] [--n 60000] [--kinds json,regex,choice,grammar]

No request comes twice, and eight stores are kept, so that what grows is what is kept of texts that were read. It writes no record.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

import maskwright as mw
from maskwright.analysis.kept import SHARED
from maskwright.serving.requests import RequestCompiler


def text_of(kind: str, number: int) -> str:
    """The text of a request that no other number has."""
    word = f"w{number}"
    if kind == "json":
        members = {
            word: {"type": "string", "pattern": f"^{word}[a-z]+$"},
            "n": {"type": "integer", "minimum": number},
            "e": {"enum": [word, f"{word}x"]},
        }
        return json.dumps({"properties": members, "additionalProperties": False})
    texts = {
        "regex": f"{word}[a-z]{{2,5}}(a|b{word})+",
        "choice": json.dumps([word, f"{word}{word}", f"a{word}"]),
        "grammar": f'start: "{word}" (A | "b")*\nA: /{word}[0-9]+/\n',
    }
    return texts[kind]


def resident() -> int:
    """The resident size of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokenizer", default="python-tiny")
    parser.add_argument("--n", type=int, default=60_000)
    parser.add_argument("--kinds", default="json,regex,choice,grammar")
    args = parser.parse_args()
    kinds = args.kinds.split(",")
    vocabulary = mw.load_vocabulary(args.tokenizer)
    compiler = RequestCompiler(vocabulary, on_disk=False, cache_entries=8)
    row = np.zeros(-(-vocabulary.size // 32), np.uint32)
    for number in range(args.n):
        kind = kinds[number % len(kinds)]
        text = text_of(kind, number)
        compiler.check(kind, text)
        compiler.compile(kind, text).matcher().fill(row)
        if number % max(1, args.n // 20) == 0:
            print(
                f"{number:8,} requests {resident() >> 20:5} MB, kept {SHARED.held >> 20:4} MB, {time.process_time():6.1f} CPU-s"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
