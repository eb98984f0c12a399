"""Regular expressions beside peers: compiling and masks, on 100 common patterns, in CPU time.

    python reports/bench/regexes.py --peers-python VENV/bin/python [--tokenizer NAME] [--engines ours,outlines] [--counts]

For the venv: `pip install torch==2.13.0 xgrammar==0.2.9 llguidance==1.9.1 outlines-core==0.2.14 mistral-common[sentencepiece]`.

The patterns, each with a text that it matches, are in corpora/regexes.tsv. They name their characters (`[0-9]`, not `\\d`), so that all
engines read the same language. Each engine has a process of its own. A pattern is compiled three times (fewer if that takes more than
half a CPU second), with nothing kept from before, and the least counts: alone, and with the first mask, since engines differ in what they
put off until a mask is asked for ("index" is `mw.build_index`, which puts off nothing but writing the masks). Then its text is replayed
in the tokenizer's own tokens: at each position one mask ("first"), and the mean of 20 more ("again"). Masks are compared with ours
without special tokens, whose meaning differs. An engine that refuses the pattern, or a token of the text, or that takes more than 6
seconds for it, is counted so, and not measured on it. Each pattern has a process of its own, so that nothing is kept from pattern to
pattern.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from common import add_peers, command_said, write_record
from peers import work as peer_work
from peers.tokenizers import inner_encoder

HERE = Path(__file__).resolve().parent
ENGINES = ("ours", "index", "outlines", "llguidance", "xgrammar")


def patterns() -> list[dict[str, str]]:
    """The rows of corpora/regexes.tsv: name, pattern, example."""
    lines = (HERE / "corpora" / "regexes.tsv").read_text(encoding="utf-8").splitlines()
    heads = lines[0].split("\t")
    return [dict(zip(heads, line.split("\t"), strict=True)) for line in lines[1:]]


def shown(values: list[int]) -> dict[str, float]:
    """CPU nanoseconds as microseconds."""
    if not values:
        return {}
    found = {f"p{p}": round(float(np.percentile(values, p)) / 1e3, 2) for p in (50, 90, 99)}
    return {"n": len(values), "mean": round(float(np.mean(values)) / 1e3, 2), **found}


def summary(facts: dict[str, Any], ours: list[dict[str, Any]], both: list[int], names: list[str]) -> dict[str, Any]:
    """An engine's figures on the patterns that all engines take, and its masks beside ours."""
    found = facts["patterns"]
    taken = [k for k, each in enumerate(found) if "masks" in each]
    pairs = [
        (names[k], mine[2] == other[2], other[3] == 1 < mine[3])
        for k in taken
        if "masks" in ours[k]
        for mine, other in zip(ours[k]["masks"], found[k]["masks"], strict=True)
    ]
    return {
        "version": facts["version"],
        "vocabulary, CPU s": round(facts["vocabulary, CPU ns"] / 1e9, 3),
        "refused": {names[k]: each["refused"] for k, each in enumerate(found) if "refused" in each},
        "compile, us": shown([found[k]["compile"] for k in both]),
        "compile and first mask, us": shown([found[k]["compile and mask"] for k in both]),
        "mask, first, us": shown([mask[0] for k in both for mask in found[k]["masks"]]),
        "mask, again, us": shown([mask[1] for k in both for mask in found[k]["masks"]]),
        "masks compared": len(pairs),
        "masks that differ from ours": sum(not equal for _, equal, _ in pairs),
        "of them of one token": sum(single for _, _, single in pairs),
        "patterns whose masks differ": sorted({name for name, equal, _ in pairs if not equal}),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_peers(parser, required=True)
    parser.add_argument("--tokenizer", default="mistral-7b-v0.1")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument(
        "--counts", action="store_true", help="record what is refused and which masks differ, and no times"
    )
    options = parser.parse_args()
    chosen = options.engines.split(",")
    if unknown := set(chosen) - set(ENGINES):
        parser.error(f"no engine {', '.join(sorted(unknown))}; there are {', '.join(ENGINES)}")
    if chosen[0] != "ours":
        parser.error("masks are compared with ours, so ours must be the first engine")
    encode = inner_encoder(options.tokenizer)
    rows = patterns()
    texts = [{"pattern": row["pattern"], "ids": encode(row["example"])} for row in rows]
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        peer_work.write_documents(Path(folder), "regexes", options.tokenizer, [])
        (Path(folder) / "patterns.json").write_text(json.dumps(texts), encoding="utf-8")
        for name in chosen:
            python = sys.executable if name in ("ours", "index") else options.peers_python
            command = [python, "-m", "peers.regexes", name, folder]
            done = subprocess.run(command, cwd=HERE, stdout=subprocess.PIPE, check=True, text=True)
            found[name] = json.loads(done.stdout)
    names = [row["name"] for row in rows]
    both = [k for k in range(len(rows)) if all("masks" in found[name]["patterns"][k] for name in chosen)]
    ours = found["ours"]["patterns"]
    facts = {
        "tokenizer": options.tokenizer,
        "encoder": "the tokenizer's own",
        "patterns": len(rows),
        "patterns that all engines take": len(both),
        "engines": {name: summary(found[name], ours, both, names) for name in chosen},
    }
    if options.counts:  # a machine with other work has these too
        for one in facts["engines"].values():
            for timed in [key for key in one if key.endswith((", us", "CPU s"))]:
                del one[timed]
    print(json.dumps(facts, indent=1))
    kind = "regexes_counts" if options.counts else "regexes"
    write_record(f"{kind}-{options.tokenizer}", command_said(), facts)


if __name__ == "__main__":
    main()
