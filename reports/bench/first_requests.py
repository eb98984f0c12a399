"""How long does the first mask of a schema take that a server has not seen? Compiling in a pool of threads, as vLLM's manager does it.

    python reports/bench/first_requests.py [--tokenizers tekken,mistral-7b-v0.1] [--n 1000]

A request is a text: it is given to the backend of `maskwright.serving.vllm_backend` in a thread of a pool as large as that of vLLM's
`StructuredOutputManager`, (cores + 1) // 2, and then its row of the bitmask is filled, as `grammar_bitmask` does. vLLM itself is not
needed. Schemas are drawn from a seed, some 70 nodes each, no two alike; and those of SchemaStore from the evaluation data, largest first
in the list of the slowest. Nothing is compiled before; only what a server makes as it starts is there. First one request at a time: CPU
time of the process, which other work on the machine does not change, and time on the clock. Then waves of 16 at once: time on the clock
from the wave's beginning to the request's mask. What `check` takes in the process that takes requests is given by itself. Each of the
three is done in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import numpy as np
from common import add_data, shared_records, write_record

import maskwright as mw
from maskwright.analysis.errors import MaskwrightError
from maskwright.serving.reading import RequestReader
from maskwright.serving.requests import RequestChecker
from maskwright.serving.vllm_backend import MaskwrightBackend

WAVE = 16
NODES = 70
WORDS = [
    "id", "name", "title", "kind", "status", "owner", "price", "count", "tags", "items", "address", "street", "city", "zip",
    "email", "phone", "created", "updated", "author", "version", "license", "source", "target", "width", "height", "color", "label",
    "comment", "rating", "score", "level", "group", "parent", "children", "options", "value", "unit", "currency", "quantity", "weight",
]  # fmt: skip


class Drawn:
    """Schemas as programs write them for tool calls and records.

    rng : the source of choices.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.n = 0
        self.may_refer = False

    def whole(self) -> dict[str, Any]:
        """A schema of some `NODES` nodes, with definitions that it refers to."""
        self.n, self.may_refer = 1, False  # a part that holds itself might have no instance
        found: dict[str, Any] = {"type": "object", "properties": {}, "$defs": {"part": self._object(2)}}
        self.may_refer = True
        while self.n < NODES - 6:
            found["properties"][self._name(found["properties"])] = self._node(3)
        found["required"] = self.rng.sample(sorted(found["properties"]), len(found["properties"]) // 2)
        found["additionalProperties"] = False
        return found

    def _name(self, taken: Any) -> str:
        word = self.rng.choice(WORDS)
        return word if word not in taken else f"{word}_{self.rng.randrange(10_000)}"

    def _node(self, depth: int) -> dict[str, Any]:
        kinds = [self._string, self._string, self._number, self._enum, self._boolean]
        if depth:
            kinds += [self._object, self._array, self._array, self._either]
        return self.rng.choice(kinds)(depth)

    def _object(self, depth: int) -> dict[str, Any]:
        self.n += 1
        properties: dict[str, Any] = {}
        for _ in range(self.rng.randint(2, 6)):
            properties[self._name(properties)] = self._node(depth - 1) if depth else self._string(0)
        required = self.rng.sample(sorted(properties), self.rng.randint(0, len(properties)))
        return {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": self.rng.random() < 0.3,
        }

    def _array(self, depth: int) -> dict[str, Any]:
        self.n += 1
        items = {"$ref": "#/$defs/part"} if self.may_refer and self.rng.random() < 0.2 else self._node(depth - 1)
        return {
            "type": "array",
            "items": items,
            "minItems": self.rng.randint(0, 2),
            "maxItems": self.rng.choice([3, 10, 100]),
        }

    def _either(self, depth: int) -> dict[str, Any]:
        self.n += 1
        return {"anyOf": [self._node(depth - 1), {"type": "null"}]}

    def _string(self, depth: int) -> dict[str, Any]:
        self.n += 1
        more: list[dict[str, Any]] = [
            {},
            {"minLength": 1, "maxLength": self.rng.choice([20, 64, 255])},
            {"format": self.rng.choice(["date", "date-time", "email", "uuid", "uri"])},
            {"pattern": self.rng.choice(["^[a-z][a-z0-9_]*$", r"^\d{3}-\d{4}$", "^[A-Z]{2,3}$", r"^v\d+\.\d+\.\d+$"])},
        ]
        return {"type": "string", **self.rng.choice(more)}

    def _number(self, depth: int) -> dict[str, Any]:
        self.n += 1
        kind = self.rng.choice(["integer", "number"])
        if self.rng.random() < 0.5:
            return {"type": kind}
        least = self.rng.randint(0, 10)
        return {"type": kind, "minimum": least, "maximum": least + self.rng.randint(1, 10_000)}

    def _enum(self, depth: int) -> dict[str, Any]:
        self.n += 1
        return {"enum": self.rng.sample(WORDS, self.rng.randint(2, 8))}

    def _boolean(self, depth: int) -> dict[str, Any]:
        self.n += 1
        return {"type": "boolean"}


def drawn(n: int) -> list[str]:
    """The texts of n schemas, no two alike."""
    maker = Drawn(random.Random(2026))
    found: dict[str, None] = {}
    while len(found) < n:
        found[json.dumps(maker.whole())] = None
    return list(found)


def nodes_of(schema: Any) -> int:
    """The subschemas of a schema, roughly: the objects and lists of its JSON below `properties` and the like."""
    if isinstance(schema, dict):
        return ("type" in schema or "enum" in schema or "$ref" in schema or "anyOf" in schema) + sum(
            map(nodes_of, schema.values())
        )
    return sum(map(nodes_of, schema)) if isinstance(schema, list) else 0


class Manager:
    """A backend, its pool and its bitmask, as vLLM's manager has them."""

    def __init__(self, tokenizer: mw.Vocabulary) -> None:
        outputs = SimpleNamespace(disable_any_whitespace=False, disable_additional_properties=False)
        config = SimpleNamespace(
            structured_outputs_config=outputs, num_speculative_tokens=0, additional_config={}, model_config=None
        )
        self.backend = MaskwrightBackend(config, tokenizer, tokenizer.size)
        self.pool = ThreadPoolExecutor(max_workers=max(1, ((os.cpu_count() or 1) + 1) // 2))
        self.bitmask = self.backend.allocate_token_bitmask(WAVE)

    def compile(self, text: str) -> Any:
        """What the pool is given. Returns an error of maskwright, as vLLM keeps it for the request."""
        try:
            return self.backend.compile_grammar(SimpleNamespace(name="JSON"), text)
        except MaskwrightError as error:
            return error

    def one(self, text: str) -> tuple[float, float] | None:
        """CPU seconds and seconds to the first mask of one request; None if it is refused."""
        begin, cpu = time.perf_counter(), time.process_time()
        grammar = self.pool.submit(self.compile, text).result()
        if isinstance(grammar, MaskwrightError):
            return None
        grammar.fill_bitmask(self.bitmask, 0)
        return time.process_time() - cpu, time.perf_counter() - begin

    def wave(self, texts: list[str]) -> list[float]:
        """Seconds to the first mask of each of some requests that come at once."""
        begin = time.perf_counter()
        futures = [self.pool.submit(self.compile, text) for text in texts]
        found = []
        for row, future in enumerate(futures):
            grammar = future.result()
            if not isinstance(grammar, MaskwrightError):
                grammar.fill_bitmask(self.bitmask, row)
                found.append(time.perf_counter() - begin)
        return found


def summary(seconds: list[float]) -> dict[str, Any]:
    """Milliseconds of some requests."""
    array = np.array(seconds) * 1e3
    quantiles = {f"p{q}": round(float(np.percentile(array, q)), 2) for q in (50, 90, 99)}
    return {"n": len(seconds), **quantiles, "most": round(float(array.max()), 2)}


def alone(name: str, texts: list[str]) -> dict[str, Any]:
    """The times of requests that come one after the other."""
    manager = Manager(mw.load_vocabulary(name))
    found = [(times, text) for text in texts if (times := manager.one(text)) is not None]
    slowest = sorted(((cpu, len(text), nodes_of(json.loads(text))) for (cpu, _), text in found), reverse=True)[:5]
    return {
        "refused": len(texts) - len(found),
        "median_nodes": float(np.median([nodes_of(json.loads(text)) for _, text in found])),
        "median_bytes": float(np.median([len(text) for _, text in found])),
        "very_first": {"cpu_ms": round(1e3 * found[0][0][0], 2), "clock_ms": round(1e3 * found[0][0][1], 2)},
        "cpu_ms": summary([cpu for (cpu, _), _ in found]),
        "clock_ms": summary([clock for (_, clock), _ in found]),
        "slowest": [{"cpu_ms": round(1e3 * cpu, 1), "bytes": size, "nodes": nodes} for cpu, size, nodes in slowest],
    }


def at_once(name: str, texts: list[str]) -> dict[str, Any]:
    """The times of requests that come in waves."""
    manager = Manager(mw.load_vocabulary(name))
    found = [seconds for at in range(0, len(texts), WAVE) for seconds in manager.wave(texts[at : at + WAVE])]
    return {"clock_ms": summary(found)}


def checked(name: str, texts: list[str]) -> dict[str, Any]:
    """What it takes to check requests, in the process that takes them."""
    checker, reader, found = RequestChecker(RequestReader()), RequestReader(), []
    for text in texts:
        begin = time.process_time()
        with suppress(MaskwrightError):
            checker.check(reader.request("json", text))
            found.append(time.process_time() - begin)
    return {"cpu_ms": summary(found)}


def fresh(work: Callable[[str, list[str]], dict[str, Any]], name: str, texts: list[str]) -> dict[str, Any]:
    """What some work finds in a process of its own, in which nothing is kept yet."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as one:
        return one.submit(work, name, texts).result()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokenizers", default="tekken,mistral-7b-v0.1")
    parser.add_argument("--n", type=int, default=1000)
    add_data(parser)
    args = parser.parse_args()
    stored = [json.dumps(record["schema"]) for record in shared_records("jsonschema/schemastore")]
    found: dict[str, Any] = {}
    for name in args.tokenizers.split(","):
        found[name] = {
            what: {
                "one_at_a_time": fresh(alone, name, texts),
                f"waves_of_{WAVE}": fresh(at_once, name, texts),
                "check": fresh(checked, name, texts),
            }
            for what, texts in (("drawn", drawn(args.n)), ("schemastore", stored))
        }
        print(name, json.dumps(found[name], indent=1), file=sys.stderr)
    threads = max(1, ((os.cpu_count() or 1) + 1) // 2)
    command = "python reports/bench/first_requests.py" + (f" --n {args.n}" if args.n != 1000 else "")
    write_record("first_requests", command, {"threads": threads, "wave": WAVE, "first_masks": found})
    return 0


if __name__ == "__main__":
    sys.exit(main())
