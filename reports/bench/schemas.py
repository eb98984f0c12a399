"""JSON Schema beside llguidance: compiling, masks and tokens, on the schemas and instances of the evaluation data, on one core.

    python reports/bench/schemas.py [--peers-python VENV/bin/python] [--tokenizer NAME] [--most N] [--counts]

Each schema of SchemaStore is read and compiled, and its valid instances are replayed as json.dumps writes them, in the tokens that the
tokenizer itself makes of them, their members in the schema's order, which llguidance asks for (schema_orders.py counts what is refused in
either order). All is done in three passes, each of which begins with nothing kept; a position's time is the least of the three, since
this machine may have other things to do. "Second" is the same instance again, "third" once more, with a token and the mask behind it in
one call. Masks that lack the instance's token are counted. The masks of schemas that compare items as values (`uniqueItems` of objects
and the like) are shown apart, measured once. Schemas that are read leniently are compiled only.

With --counts nothing is timed: which schemas get a store, and which of all documents their stores take. Documents that the collection and
the package jsonschema judge differently are left out: these differ by formats and remote references.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from common import add_data, add_peers, command_said, shared_records, write_record
from member_order import MemberOrder
from peers import work
from peers.schema_times import measure
from peers.tokenizers import NAMES, inner_encoder

import maskwright as mw
from maskwright.analysis.schema import load
from maskwright.decoding.schema import constants
from maskwright.decoding.schema.workspace import shared_workspace
from maskwright.stores.schema_store import build_schema_store

LONGEST = 4000
"""Instances of more tokens than this are left out."""


def gather(tokenizer: str, most: int) -> list[dict[str, Any]]:
    """The schemas with their valid instances as the tokenizer's own tokens, members in the schema's order."""
    vocabulary, encode = mw.load_vocabulary(tokenizer), inner_encoder(tokenizer)
    found = []
    for record in islice(shared_records("jsonschema/schemastore"), most):
        order = MemberOrder(record["schema"])
        values = [order.ordered(test["data"]) for test in record["tests"] if test["valid"]]
        texts = [json.dumps(value, ensure_ascii=False) for value in values]
        documents = [work.exact_tokens(text, encode, vocabulary) for text in texts if len(text) < 4 * LONGEST]
        found.append(
            {"schema": record["schema"], "documents": [ids for ids in documents if ids and len(ids) <= LONGEST]}
        )
    return found


def ours(vocabulary: mw.Vocabulary, schemas: list[dict[str, Any]], lenient: bool) -> dict[str, Any]:
    words = np.zeros(-(-vocabulary.size // 32), np.uint32)

    class Bound:
        def __init__(self, store: Any) -> None:
            matcher = store.matcher()
            self.words = words
            self.advance = matcher.advance
            self.fill = partial(matcher.fill, words)
            self.step = partial(matcher.step, bitmask=words)

    def compiled(schema: Any) -> Any:
        load.GRAPHS.forget()  # what was read before is not looked up
        store = build_schema_store(mw.load_schema(schema, lenient=lenient), vocabulary)
        make = partial(Bound, store)
        make.compares_items = store.compares_items  # type: ignore[attr-defined]
        return make

    return measure(schemas, compiled, shared_workspace(vocabulary).forget)


def counts(vocabulary: mw.Vocabulary, most: int) -> dict[str, Any]:
    """Which schemas get a store, and what becomes of their documents."""
    refused: dict[str, str] = {}
    compared, given_up = [], []
    wrong: dict[str, list[str]] = {"instances refused": [], "others taken": []}
    judged = {"instances": 0, "others": 0}
    records = list(shared_records("jsonschema/schemastore"))[:most]
    for record in records:
        try:
            store = build_schema_store(mw.load_schema(record["schema"]), vocabulary)
        except mw.MaskwrightError as error:
            refused[record["id"]] = str(error)
            continue
        compared += [record["id"]] * store.compares_items
        for test in record["tests"]:
            is_instance = test["valid"]
            if test.get("py_jsonschema") not in (None, is_instance):
                continue
            matcher = store.matcher(0)
            try:
                is_taken = matcher.try_bytes(json.dumps(test["data"]).encode()) and matcher.is_accepting()
            except mw.LimitError:
                given_up.append(record["id"])
                continue
            judged["instances" if is_instance else "others"] += 1
            if is_taken != is_instance:
                wrong["instances refused" if is_instance else "others taken"].append(record["id"])
    return {
        "schemas": len(records),
        "stores": len(records) - len(refused),
        "refused": refused,
        "refused for documents that are not given": sum("pass other documents" in why for why in refused.values()),
        "with items that the plain interpreter compares": compared,
        "documents": judged,
        **wrong,
        "given up": given_up,
    }


def many(vocabulary: mw.Vocabulary, schemas: list[dict[str, Any]]) -> dict[str, Any]:
    """128 texts of as many different schemas, each a few tokens on: one mask of each, in microseconds.

    Measured of the schemas that compare no items, and of all.
    """
    words = np.zeros(-(-vocabulary.size // 32), np.uint32)
    stores = []
    for each in schemas:
        try:
            stores.append((build_schema_store(mw.load_schema(each["schema"]), vocabulary), each["documents"]))
        except mw.MaskwrightError:
            continue
    plain = [(store, documents) for store, documents in stores if not store.compares_items]
    texts = _begun(plain)
    space = shared_workspace(vocabulary)
    return {
        "different schemas": min(len(plain), 128),
        "128 masks, us": _fastest(texts, words),
        "128 masks, with those of schemas that compare items, us": _fastest(_begun(stores), words),
        "kB of a text, median": sorted(matcher.n_bytes for matcher in texts)[64] / 1e3,
        "kB of a schema's tables, median": sorted(s.table.nbytes + s.automata.nbytes for s, _ in stores)[
            len(stores) // 2
        ]
        / 1e3,
        "MB of the vocabulary's tables": space.voc.nbytes / 1e6,
        "MB of kept masks": 4 * (int(space.work[constants.DATA_TOP]) - int(space.work[constants.DATA])) / 1e6,
    }


def _begun(stores: list[tuple[Any, list[list[int]]]]) -> list[Any]:
    """128 texts."""
    texts = []
    for k in range(128):
        store, documents = stores[k % len(stores)]
        matcher = store.matcher()
        for token in documents[0][: 5 + k % 40] if documents else ():
            if not matcher.is_allowed(token):
                break  # a few files of the collection do not fit their own schemas
            matcher.advance(token)
        texts.append(matcher)
    return texts


def _fastest(texts: list[Any], words: Any) -> float:
    """Microseconds for a mask of each."""
    times = []
    for _ in range(50):
        begin = time.perf_counter_ns()
        for matcher in texts:
            matcher.fill(words)
        times.append(time.perf_counter_ns() - begin)
    return min(times) / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_peers(parser)
    parser.add_argument("--engines", default="llguidance", help="peers; xgrammar and glrmask can too")
    parser.add_argument("--tokenizer", default="mistral-7b-v0.1")
    parser.add_argument("--most", type=int, default=1000, help="schemas that are measured")
    parser.add_argument("--counts", action="store_true", help="count stores and documents; time nothing")
    add_data(parser)
    options = parser.parse_args()
    if not options.counts and options.tokenizer not in NAMES:
        parser.error(f"times are of {' and '.join(NAMES)}")
    vocabulary = mw.load_vocabulary(options.tokenizer)
    if options.counts:
        found = counts(vocabulary, options.most)
        print(json.dumps(found, indent=1))
        write_record("schemas-counts", " ".join(["python", "reports/bench/schemas.py", *sys.argv[1:]]), found)
        return
    schemas = gather(options.tokenizer, options.most)
    begin = time.process_time()
    shared_workspace(vocabulary)
    prepared = time.process_time() - begin
    facts: dict[str, Any] = {"tokenizer": options.tokenizer, "encoder": "the tokenizer's own", "order": "the schema's"}
    facts["vocabulary's tables, CPU s"] = prepared
    facts["load_average"] = {"before": list(os.getloadavg())}
    facts["ours"] = ours(vocabulary, schemas, False)
    facts["ours, lenient"] = ours(vocabulary, [{**each, "documents": []} for each in schemas], True)
    facts["many"] = many(vocabulary, schemas)
    if options.peers_python:
        with tempfile.TemporaryDirectory() as folder:
            work.write_documents(Path(folder), "schemas", options.tokenizer, [])
            (Path(folder) / "schemas.json").write_text(json.dumps(schemas), encoding="utf-8")
            for name in options.engines.split(","):
                command = [options.peers_python, "-m", "peers.schema_times", name, folder]
                environment = {**os.environ, **dict.fromkeys(("RAYON_NUM_THREADS", "OMP_NUM_THREADS"), "1")}
                here = Path(__file__).parent
                done = subprocess.run(command, cwd=here, env=environment, stdout=subprocess.PIPE, check=True, text=True)
                facts[name] = json.loads(done.stdout)
    facts["load_average"]["after"] = list(os.getloadavg())
    print(json.dumps(facts, indent=1))
    write_record(f"schemas-{options.tokenizer}", command_said(), facts)


if __name__ == "__main__":
    main()
