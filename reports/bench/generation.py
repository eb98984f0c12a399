"""What generation under masks costs and saves with the bundled model: masks, passes of the model, tokens a second, and whether texts stay
the same.

python reports/bench/generation.py [--prompts N] [--tokens N]

Python: prompts are beginnings of files of the evaluation data, cut behind a line. Each is completed under the library's `python` within
--tokens tokens, greedily: as usual, with the model's own choice asked about first (`opportunistic`), and with forced tokens not asked for
(`fast_forward`); and a fifth of them at temperature 0.8. `same` counts the texts that are those of the usual way; `legal` those that are
whole texts of the grammar within the budget. Prompts are not healed, so that each new token counts.

A JSON schema: the counts of LEARNED random instances (`TokenCounts`), then PROMPTED prompts, beside the same without counts and without
masks, at both temperatures.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from typing import Any

from common import add_data, data_files, shared_records, write_record
from rich.console import Console
from rich.progress import track
from rich.table import Table

import maskwright as mw
from maskwright.analysis.errors import MaskwrightError
from maskwright.completion import start_completion

LONGEST = 1500
"""Characters of a prompt at most."""
LEARNED, PROMPTED = 50, 100
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 16},
        "size": {"type": "integer"},
        "enabled": {"type": "boolean"},
        "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 4},
    },
    "required": ["name", "size", "enabled", "tags"],
    "additionalProperties": False,
}
WAYS: dict[str, dict[str, Any]] = {
    "usual": {},
    "own choice first": {"opportunistic": True},
    "forced tokens": {"fast_forward": True},
}


def beginnings() -> list[str]:
    """Beginnings of real files, in a random order."""
    rng = random.Random(1)
    found: list[str] = []
    for record in shared_records("source/python"):
        text = max((value for value in record.values() if isinstance(value, str)), key=len)[:LONGEST]
        ends = [at + 1 for at, character in enumerate(text) if character == "\n"]
        found += [text[:end] for end in rng.sample(ends, min(len(ends), 4))]
    rng.shuffle(found)
    return found


def instance(rng: random.Random) -> str:
    """A random instance of SCHEMA."""
    name = "".join(rng.choices("abcdefgh ", k=rng.randint(2, 9)))
    tags = rng.choices(("red", "green", "blue"), k=rng.randint(0, 3))
    value = {"name": name, "size": rng.randint(0, 9999), "enabled": rng.random() < 0.5, "tags": tags}
    return json.dumps(value, separators=(",", ":"))


def counted(rows: list[mw.Completion], seconds: float) -> dict[str, Any]:
    """What some completions took in all. seconds : CPU seconds of the completions alone."""
    n_tokens, n_calls, n_masks = (
        sum(len(row.tokens) for row in rows),
        *(sum(getattr(row, key) for row in rows) for key in ("model_calls", "masks")),
    )
    return {
        "texts": len(rows),
        "tokens": n_tokens,
        "model_calls": n_calls,
        "calls_a_token": round(n_calls / n_tokens, 3),
        "masks": n_masks,
        "masks_a_call": round(n_masks / n_calls, 3),
        "tokens_a_cpu_second": round(n_tokens / seconds, 1),
        "ending_us_a_token": round(1e6 * sum(row.ending_seconds for row in rows) / n_tokens, 1),
        "model_us_a_token": round(1e6 * sum(row.model_seconds for row in rows) / n_tokens, 1),
    }


def of_python(model: Any, n: int, max_tokens: int) -> dict[str, Any]:
    store = mw.cached_store("python", "python-tiny")
    found: dict[str, Any] = {}
    texts: list[str] = []

    def written(text: str, seed: int, **more: Any) -> mw.Completion:
        return start_completion(store, text, model, max_tokens=max_tokens, seed=seed, heal=False, **more).run()

    for text in track(beginnings(), "prompts", transient=True):
        try:
            written(text, 0)
        except MaskwrightError:  # no legal beginning, or more is open than the budget closes
            continue
        texts.append(text)
        if len(texts) == n:
            break
    for temperature in (0.0, 0.8):
        usual: list[bytes] = []
        some = texts if temperature == 0 else texts[: n // 5]
        for name, more in WAYS.items():
            begin = time.process_time()
            rows = [
                written(text, seed, temperature=temperature, **more)
                for seed, text in enumerate(track(some, name, transient=True))
            ]
            one = counted(rows, time.process_time() - begin)
            usual = usual or [row.data for row in rows]
            one["same"] = sum(row.data == data for row, data in zip(rows, usual, strict=True))
            one["legal"] = sum(bool(row.is_complete) and len(row.tokens) <= max_tokens for row in rows)
            found[f"{name}, temperature {temperature:g}"] = one
    return found


def of_schema(model: Any) -> dict[str, Any]:
    schema = mw.load_schema(SCHEMA, whitespace="compact", key_order="schema")
    store = mw.build_store(schema, "python-tiny")
    rng = random.Random(2)

    def learned() -> mw.TokenCounts:
        counts = mw.TokenCounts(store.vocabulary)
        for text in texts:
            ids = model.tokens_of(text)
            counts.learn(store.matcher(), ids if store.matcher().is_allowed(ids[0]) else ids[1:])
        return counts

    texts = [instance(rng) for _ in range(LEARNED)]
    prompts = [instance(rng)[: 9 + rng.randint(1, 3)] for _ in range(PROMPTED)]
    found: dict[str, Any] = {}
    for temperature in (0.0, 1.0):
        usual: list[bytes] = []
        for name in ("usual", "counts", "without masks"):
            more: dict[str, Any] = {"counts": learned()} if name == "counts" else {"constrained": name == "usual"}
            begin = time.process_time()
            rows = [
                start_completion(
                    store, text, model, max_tokens=60, temperature=temperature, seed=seed, heal=False, **more
                ).run()
                for seed, text in enumerate(track(prompts, name, transient=True))
            ]
            one = counted(rows, time.process_time() - begin)
            usual = usual or [row.data for row in rows]
            one["same"] = sum(row.data == data for row, data in zip(rows, usual, strict=True))
            found[f"{name}, temperature {temperature:g}"] = one
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--prompts", type=int, default=1000)
    parser.add_argument("--tokens", type=int, default=24)
    add_data(parser)
    options = parser.parse_args()
    data_files("source/python")  # so that what is missing is said at once
    model = mw.load_model(device="cpu")
    facts: dict[str, Any] = {
        "max_tokens": options.tokens,
        "learned": LEARNED,
        "schema": of_schema(model),
        "python": of_python(model, options.prompts, options.tokens),
    }
    console = Console()
    for what in ("python", "schema"):
        table = Table("", *next(iter(facts[what].values())), title=what)
        for name, one in facts[what].items():
            table.add_row(name, *map(str, one.values()))
        console.print(table)
    write_record("generation", " ".join(["python", "reports/bench/generation.py", *sys.argv[1:]]), facts)


if __name__ == "__main__":
    main()
