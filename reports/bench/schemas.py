"""JSON Schema beside llguidance: compiling, masks and tokens, on the schemas and instances of the evaluation data, on one core.

    python reports/bench/schemas.py [--peers-python VENV/bin/python] [--tokenizer NAME] [--most N] [--counts]

Each schema of SchemaStore is read and compiled, and its valid instances are replayed as json.dumps writes them, tokenised by the longest
token. All is done in three passes, each of which begins with nothing kept; a position's time is the least of the three, since this machine
may have other things to do. "Second" is the same instance again, "third" once more, with a token and the mask behind it in one call. Masks
that lack the instance's token are counted. The masks of schemas that compare items as values (`uniqueItems` of objects and the like) are
shown apart, measured once. Schemas that are read leniently are compiled only.

With --counts nothing is timed: which schemas get a store, and which of all documents their stores take. Documents that the collection and
the package jsonschema judge differently are left out: these differ by formats and remote references.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import shared_records, write_record

import maskwright as mw
from maskwright.decoding.schema import constants
from maskwright.decoding.schema.workspace import shared_workspace
from maskwright.stores.schema_store import build_schema_store

PASSES = 3
LONGEST = 4000
"""Instances of more tokens than this are left out."""


def tokenized(data: bytes, number: dict[bytes, int], longest: int) -> list[int]:
    """The tokens of a text, by the longest token each time."""
    found, at = [], 0
    while at < len(data):
        width = next(n for n in range(min(longest, len(data) - at), 0, -1) if data[at : at + n] in number)
        found.append(number[data[at : at + width]])
        at += width
    return found


def gather(vocabulary: mw.Vocabulary, most: int) -> list[dict[str, Any]]:
    """The schemas with their valid instances as tokens."""
    number = {token: i for i, token in reversed(list(enumerate(vocabulary.tokens))) if token}
    longest = max(map(len, number))
    found = []
    for record in shared_records("jsonschema/schemastore"):
        texts = [json.dumps(test["data"], ensure_ascii=False).encode() for test in record["tests"] if test["valid"]]
        documents = [tokenized(text, number, longest) for text in texts if len(text) < 4 * LONGEST]
        found.append({"schema": record["schema"], "documents": [ids for ids in documents if 0 < len(ids) <= LONGEST]})
    return found[:most]


def replay(
    matcher: Any, document: list[int], key: tuple[int, int, int], masks: dict[Any, int], tokens: dict[Any, int]
) -> int:
    """Time each mask and each token of an instance: the least of what was measured for `key`.

    Returns 1 if a mask lacks the instance's token, where it ends, else 0.
    """
    clock = time.perf_counter_ns
    for position, token in enumerate(document):
        start = clock()
        matcher.fill()
        filled = clock()
        if not matcher.words[token >> 5] >> (token & 31) & 1:
            return 1
        middle = clock()
        matcher.advance(token)
        end = clock()
        at = (*key, position)
        masks[at] = min(filled - start, masks.get(at, 1 << 60))
        tokens[at] = min(end - middle, tokens.get(at, 1 << 60))
    return 0


def replay_in_steps(matcher: Any, document: list[int], key: tuple[int, int], steps: dict[Any, int]) -> None:
    """Time a token and the mask behind it in one call, `step`: the least of what was measured for `key`.

    It ends where a mask lacks the instance's token.
    """
    clock = time.perf_counter_ns
    matcher.fill()
    for position, token in enumerate(document):
        if not matcher.words[token >> 5] >> (token & 31) & 1:
            return
        begin = clock()
        try:
            matcher.step(token)
        except mw.DeadEndError:
            return
        end = clock()
        at = (*key, position)
        steps[at] = min(end - begin, steps.get(at, 1 << 60))


def measure(
    work: list[dict[str, Any]], n_words: int, compiled: Callable[[Any], Any], forget: Callable[[], None]
) -> dict[str, Any]:
    """Times of an engine, in microseconds, and what it got wrong.

    compiled : from a schema to a function that makes matchers, with `fill()`, `advance(token)`, perhaps `step(token)`, and
        `words`; raises ValueError for a schema that it refuses. If its `compares_items` is true, the masks of the schema are shown
        apart, measured once.
    forget : forgets all that was kept.
    """
    clock = time.perf_counter_ns
    given_up: set[int] = set()
    compile_times: dict[int, int] = {}
    masks: dict[tuple[int, int, int, int], int] = {}
    tokens: dict[tuple[int, int, int, int], int] = {}
    steps: dict[tuple[int, int, int], int] = {}
    compared: dict[Any, int] = {}
    compare: set[int] = set()
    refused: dict[int, str] = {}
    wrong = 0
    for number in range(PASSES):
        forget()
        for k, each in enumerate(work):
            begin = clock()
            try:
                make = compiled(each["schema"])
                matcher = make()
                matcher.fill()
            except ValueError as error:
                refused[k] = str(error)[:200]
                continue
            compile_times[k] = min(clock() - begin, compile_times.get(k, 1 << 60))
            if getattr(make, "compares_items", False):
                compare.add(k)
                if number == 0:
                    for d, document in enumerate(each["documents"]):
                        wrong += 2 * replay(make(), document, (k, d, 0), compared, {})
                continue
            for d, document in enumerate(each["documents"]):
                for again in (0, 1):
                    matcher = make()
                    try:
                        wrong += replay(matcher, document, (k, d, again), masks, tokens) * (number == 0)
                    except ValueError:
                        given_up.add(k)
                if hasattr(matcher, "step"):
                    replay_in_steps(make(), document, (k, d), steps)

    def shown(values: list[int]) -> dict[str, float]:
        if not values:
            return {}
        found = {f"p{p:g}": round(float(np.percentile(values, p)) / 1e3, 2) for p in (50, 90, 99, 99.9)}
        return {"n": len(values), "mean": round(float(np.mean(values)) / 1e3, 2), **found}

    small = [k for k in compile_times if len(json.dumps(work[k]["schema"])) < 1000]
    return {
        "schemas": len(work),
        "refused": len(refused),
        "reasons": dict(list(refused.items())[:40]),
        "valid tokens refused": wrong,
        "schemas with an instance that was given up": len(given_up),
        "compile and first mask": shown(list(compile_times.values())),
        "compile and first mask, under 1 kB": shown([compile_times[k] for k in small]),
        "mask, first": shown([t for key, t in masks.items() if key[2] == 0]),
        "mask, second": shown([t for key, t in masks.items() if key[2] == 1]),
        "mask and advance, second": shown([t + tokens[key] for key, t in masks.items() if key[2] == 1]),
        "step, third": shown(list(steps.values())),
        "schemas that compare items": len(compare),
        "mask where items are compared": shown(list(compared.values())),
    }


def ours(vocabulary: mw.Vocabulary, work: list[dict[str, Any]], lenient: bool) -> dict[str, Any]:
    n_words = -(-vocabulary.size // 32)
    words = np.zeros(n_words, np.uint32)

    class Bound:
        def __init__(self, store: Any) -> None:
            matcher = store.matcher()
            self.words = words
            self.advance = matcher.advance
            self.fill = partial(matcher.fill, words)
            self.step = partial(matcher.step, bitmask=words)

    def compiled(schema: Any) -> Any:
        mw.load_schema.__globals__["_graph"].forget()  # what was read before is not looked up
        store = build_schema_store(mw.load_schema(schema, lenient=lenient), vocabulary)
        make = partial(Bound, store)
        make.compares_items = store.compares_items  # type: ignore[attr-defined]
        return make

    return measure(work, n_words, compiled, shared_workspace(vocabulary).forget)


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
            if test["py_jsonschema"] not in (None, is_instance):
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


def many(vocabulary: mw.Vocabulary, work: list[dict[str, Any]]) -> dict[str, Any]:
    """128 texts of as many different schemas, each a few tokens on: one mask of each, in microseconds.

    Measured of the schemas that compare no items, and of all.
    """
    words = np.zeros(-(-vocabulary.size // 32), np.uint32)
    stores = []
    for each in work:
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
    parser.add_argument("--peers-python", help="a Python that has llguidance")
    parser.add_argument("--tokenizer", default="mistral-7b-v0.1")
    parser.add_argument("--most", type=int, default=1000, help="schemas that are measured")
    parser.add_argument("--counts", action="store_true", help="count stores and documents; time nothing")
    options = parser.parse_args()
    vocabulary = mw.load_vocabulary(options.tokenizer)
    if options.counts:
        found = counts(vocabulary, options.most)
        print(json.dumps(found, indent=1))
        write_record("schemas-counts", " ".join(["python", "reports/bench/schemas.py", *sys.argv[1:]]), found)
        return
    work = gather(vocabulary, options.most)
    begin = time.process_time()
    shared_workspace(vocabulary)
    facts: dict[str, Any] = {"tokenizer": options.tokenizer, "vocabulary's tables, CPU s": time.process_time() - begin}
    facts["ours"] = ours(vocabulary, work, False)
    facts["ours, lenient"] = ours(vocabulary, [{**each, "documents": []} for each in work], True)
    facts["many"] = many(vocabulary, work)
    if options.peers_python:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "work.json"
            tokens = [token.hex() for token in vocabulary.tokens]
            content = {"tokens": tokens, "special": vocabulary.special, "eos": vocabulary.eos, "work": work}
            path.write_text(json.dumps({**content, "special": dict(vocabulary.special)}))
            command = [options.peers_python, str(Path(__file__).parent / "peers" / "schema_llguidance.py"), str(path)]
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
            facts["llguidance"] = json.loads(done.stdout)
    print(json.dumps(facts, indent=1))
    shown = ["PYTHON" if argument == options.peers_python else argument for argument in sys.argv[1:]]
    write_record(f"schemas-{options.tokenizer}", " ".join(["python", "reports/bench/schemas.py", *shown]), facts)


if __name__ == "__main__":
    main()
