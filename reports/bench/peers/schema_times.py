"""An engine's times on JSON schemas and their instances: python -m peers.schema_times ENGINE FOLDER, for reports/bench/schemas.py.

FOLDER has what `process.load_work` reads, and schemas.json: of each schema itself, and its instances as tokens. Prints JSON.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from peers.engine import Engine, UnsupportedError
from peers.process import load_work

PASSES = 3


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
        except ValueError:  # a dead end
            return
        end = clock()
        at = (*key, position)
        steps[at] = min(end - begin, steps.get(at, 1 << 60))


def measure(work: list[dict[str, Any]], compiled: Callable[[Any], Any], forget: Callable[[], None]) -> dict[str, Any]:
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

    texts = {k: work[k]["schema"] for k in compile_times}
    small = [k for k, text in texts.items() if len(text if isinstance(text, str) else json.dumps(text)) < 1000]
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


def main() -> None:
    name, folder = sys.argv[1], Path(sys.argv[2])
    work = load_work(folder)
    engine: Engine = importlib.import_module(f"peers.{name}").Engine()
    begin = time.process_time()
    engine.load_vocabulary(work)
    prepared = time.process_time() - begin

    def compiled(schema: Any) -> Callable[[], Any]:
        try:
            engine.compile_schema(schema)
        except UnsupportedError as error:
            raise ValueError(str(error)) from None
        return engine.matcher

    schemas = json.loads((folder / "schemas.json").read_text(encoding="utf-8"))
    for each in schemas:
        each["schema"] = json.dumps(each["schema"])
    facts = measure(schemas, compiled, lambda: None)
    print(json.dumps({"version": version(engine.package), "tokenizer, CPU s": prepared, **facts}))


if __name__ == "__main__":
    main()
