"""Every true next token allowed: real Python files replayed through the exact engine, mask and advance at each token.

python reports/bench/engine_replay.py [--tokenizer mistral-7b-v0.1] [--files N]

Files are those of the test data and the standard library of the running Python. A file that is refused somewhere is held against the
grammar by an independent parse (tests/naive/oracle.py: Python's `re` for the longest match, Lark's tables, Lark's indentation): if that
takes the whole file, the refusal is false. Files of less than 20,000 characters that masks take are held against it too.
"""

from __future__ import annotations

import argparse
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import add_data, python_files, write_record
from peers.tokenizers import encoder
from rich.progress import track

import maskwright as mw
from maskwright.analysis.errors import IllegalTokenError

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "naive"))


def texts(limit: int) -> list[tuple[str, str]]:
    found = [(record["path"], record["text"]) for record in python_files()]
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")):
        if "site-packages" in path.parts:
            continue
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        found.append((f"stdlib/{path.name}", text))
    return found[:limit]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokenizer", default="mistral-7b-v0.1", choices=["mistral-7b-v0.1", "tekken"])
    parser.add_argument("--files", type=int, default=1 << 30)
    add_data(parser)
    arguments = parser.parse_args()
    from oracle import Oracle

    grammar = mw.load_grammar("lark:python")
    vocabulary = mw.load_vocabulary(arguments.tokenizer)
    store: Any = mw.build_store(grammar, vocabulary)
    encode = encoder(arguments.tokenizer)
    oracle = Oracle(grammar)  # conflicts as the grammar says, which is what masks follow
    matcher = store.matcher()
    bitmask = np.zeros(store.n_words, np.uint32)
    matcher.fill(bitmask)
    counts = dict.fromkeys(["files", "tokens", "refused_files", "false_refusals", "accepted_against_the_parse"], 0)
    false: list[str] = []
    masks: list[int] = []
    advances: list[int] = []
    clock = time.perf_counter_ns
    for path, text in track(texts(arguments.files), description="files"):
        tokens = encode(text)
        if not tokens:
            continue
        matcher.reset()
        first = vocabulary.tokens[tokens[0]]
        try:
            if first.startswith(b" ") and not text.startswith(" "):
                # SentencePiece puts a space before the text's first word; it is not part of the text
                matcher.advance_bytes(first[1:])
                tokens = tokens[1:]
            for token in tokens:
                counts["tokens"] += 1
                begin = clock()
                matcher.fill(bitmask)
                middle = clock()
                if not (bitmask[token >> 5] >> np.uint32(token & 31)) & 1:
                    raise IllegalTokenError(f"token {token} is masked")
                between = clock()
                matcher.advance(token)
                advances.append(clock() - between)
                masks.append(middle - begin)
            accepted = matcher.is_accepting()
        except IllegalTokenError as error:
            accepted = False
            reason = str(error)
        else:
            reason = "not accepted at its end"
        counts["files"] += 1
        if not accepted:
            counts["refused_files"] += 1
            if oracle.is_legal_text(text.encode()):
                counts["false_refusals"] += 1
                false.append(f"{path}: {reason}")
        elif len(text) < 20_000 and not oracle.is_legal_text(text.encode()):
            counts["accepted_against_the_parse"] += 1
            false.append(f"{path}: accepted, but the independent parse refuses it")
    print(*false, sep="\n")
    figures = {
        name: {
            "mean_ns": round(float(np.mean(values))),
            **{f"p{q}_ns": round(float(np.percentile(values, q))) for q in (50, 90, 99, 99.9)},
            "max_ns": int(np.max(values)),
        }
        for name, values in (("mask", masks), ("advance", advances))
    }
    record = {
        **counts,
        "conflicts": grammar.conflicts,
        "false": false,
        "python": sys.version.split()[0],
        **figures,
        "store": dict(store.counts),
    }
    print(record)
    if arguments.files == 1 << 30:
        print(write_record(f"engine_replay-{arguments.tokenizer}", "python " + " ".join(sys.argv), record))


if __name__ == "__main__":
    main()
