"""JSON Schema beside peers, counted and not timed: which schemas are read, which of their instances are refused, and why.

    python reports/bench/schema_orders.py [--peers-python VENV/bin/python] [--tokenizer NAME] [--engines ours,llguidance]

Engines are called as their documentation says: llguidance with the model's tokenizer, for the bytes that it forces, and its limit of items
a step raised; xgrammar with strict_mode=False, since by its default no members may come but those that a schema names; glrmask as it is;
outlines-core by `build_regex_from_schema` and `Index`. Each schema of SchemaStore has a process of its own and LIMIT CPU seconds
(peers/schema_counts.py). Its valid instances are texts as json.dumps writes them, in the tokens that the tokenizer itself makes of them,
twice: with their members as they stand, and in the order of the schema (`member_order`), which llguidance documents that it asks for, and
xgrammar's `any_order=False` and glrmask too. An instance is refused if a mask lacks one of its tokens, or the end behind them.

Why it is refused is found by trying: if the engine takes the text byte by byte, the masks lack a token of it, perhaps since the engine
forces another one for the same bytes; if it takes the text in the schema's order, it is the order; else the reason is the first of the
schema's keywords without which the engine takes it. What a schema is refused for is what the engine says.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from common import add_data, add_peers, command_said, shared_records, write_record
from member_order import MemberOrder
from peers import work as peer_work
from peers.schema_counts import LIMIT
from peers.tokenizers import NAMES, inner_encoder

import maskwright as mw

HERE = Path(__file__).resolve().parent
ENGINES = ("ours", "llguidance", "xgrammar", "glrmask", "outlines")
LONGEST = 4000
"""Instances of more tokens than this are left out."""
ORDERS = {
    "as it stands": lambda schema, value: value,
    "schema": lambda schema, value: MemberOrder(schema).ordered(value),
}


def instances(schema: Any, tests: list[dict[str, Any]], encode: Any, vocabulary: mw.Vocabulary) -> list[dict[str, Any]]:
    """The valid instances that are not too long: of both orders the text and its tokens."""
    found = []
    for test in tests:
        if test["valid"] and len(json.dumps(test["data"])) < 4 * LONGEST:
            texts = {order: json.dumps(f(schema, test["data"]), ensure_ascii=False) for order, f in ORDERS.items()}
            tokens = {order: peer_work.exact_tokens(text, encode, vocabulary) for order, text in texts.items()}
            if all(one and len(one) <= LONGEST for one in tokens.values()):
                found.append({order: (texts[order], tokens[order]) for order in ORDERS})
    return found


def summary(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """An engine's counts. answers : of peers/schema_counts.py, one a schema."""
    read = [each["instances"] for each in answers if "instances" in each]
    refused = [each for each in answers if "refused" in each]
    tried = [verdicts for each in read for verdicts in each]
    reasons = {order: Counter(one[order] for one in tried if one[order] is not None) for order in ORDERS}
    return {
        "schemas read": len(read),
        "schemas read leniently": len(read) + sum("lenient" in each for each in refused),
        "schemas refused": dict(Counter(shown(each["refused"]) for each in refused).most_common()),
        "instances": len(tried),
        "refused": {order: sum(counts.values()) for order, counts in reasons.items()},
        "why": {order: dict(counts.most_common()) for order, counts in reasons.items()},
    }


def shown(why: str) -> str:
    """What an engine says, without what differs from schema to schema."""
    line = why.strip().splitlines()[0]
    line = re.sub(r"^\[[\d:]+\] \S+: ", "", line)  # xgrammar's time and place
    line = re.sub(r"https?://[^\s'\"]+|(?<=[#/])[\w$/.-]+", "...", line)
    return re.sub(r"(?<=Unknown format: ).*|(?<=got )\".*|(?<=reference )'[^']*'|(?<=pattern )\".*|\d+", "...", line)[
        :120
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_peers(parser, default=sys.executable)
    parser.add_argument("--tokenizer", default="mistral-7b-v0.1", choices=NAMES)
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--most", type=int, default=1000, help="schemas that are tried")
    add_data(parser)
    options = parser.parse_args()
    vocabulary, encode = mw.load_vocabulary(options.tokenizer), inner_encoder(options.tokenizer)
    records = list(shared_records("jsonschema/schemastore"))[: options.most]
    schemas = [
        {
            "schema": json.dumps(record["schema"]),
            "instances": instances(record["schema"], record["tests"], encode, vocabulary),
        }
        for record in records
    ]
    given = [each for schema in schemas for each in schema["instances"]]
    facts: dict[str, Any] = {
        "tokenizer": options.tokenizer,
        "schemas": len(schemas),
        "instances": len(given),
        "instances in another order than the schema's": sum(a != b for a, b in (one.values() for one in given)),
        "CPU seconds for a schema": LIMIT,
        "engines": {},
    }
    with tempfile.TemporaryDirectory() as folder:
        peer_work.write_documents(Path(folder), "schemas", options.tokenizer, [])
        (Path(folder) / "schemas.json").write_text(json.dumps(schemas), encoding="utf-8")
        for name in options.engines.split(","):
            python = sys.executable if name == "ours" else options.peers_python
            command = [python, "-m", "peers.schema_counts", name, folder]
            environment = {**os.environ, "RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
            done = subprocess.run(
                command,
                cwd=HERE,
                env=environment,
                capture_output=True,
                check=False,
                text=True,
            )
            if done.returncode:
                why = (done.stderr.strip() or "it said nothing").splitlines()[-1]
                sys.exit(
                    f"{name} failed in {python}: {why}\nname a Python that has it (--peers-python), or others (--engines ours)"
                )
            answers = json.loads(done.stdout)
            facts["engines"][name] = {"version": answers["version"], **summary(answers["schemas"])}
            print(name, json.dumps(facts["engines"][name], indent=1), file=sys.stderr)
    if options.most == parser.get_default("most"):
        write_record(f"schema_orders-{options.tokenizer}", command_said(), facts)


if __name__ == "__main__":
    main()
