"""What generation under masks costs and saves with the bundled model: masks, model calls, tokens a second, and whether texts stay the same.

python reports/bench/generation.py [--prompts N] [--tokens N]

Prompts are beginnings of Python files of the evaluation data, cut behind a line. Each is completed under the library's `python` within
--tokens tokens, greedily and at temperature 0.8: as usual, with the model's own choice asked about first (`opportunistic`), with forced
tokens not asked for (`fast_forward`), and without masks. `same` counts the greedy texts that are those of the usual way; `legal` those that
are whole texts of the grammar within the budget. Prompts are not healed, so that each new token counts.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from typing import Any

from common import shared_records, write_record
from rich.console import Console
from rich.progress import track
from rich.table import Table

import maskwright as mw
from maskwright.analysis.errors import MaskwrightError

LONGEST = 1500
"""Characters of a prompt at most."""

WAYS: dict[str, dict[str, Any]] = {
    "usual": {},
    "own choice first": {"opportunistic": True},
    "forced tokens": {"fast_forward": True},
    "without masks": {"constrained": False},
}


def prompts(n: int) -> list[str]:
    """Beginnings of real files."""
    rng = random.Random(1)
    found: list[str] = []
    for record in shared_records("source/python"):
        text = max((value for value in record.values() if isinstance(value, str)), key=len)[:LONGEST]
        ends = [at + 1 for at, character in enumerate(text) if character == "\n"]
        found += [text[:end] for end in rng.sample(ends, min(len(ends), 3))]
        if len(found) >= 2 * n:
            break
    rng.shuffle(found)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--prompts", type=int, default=1000)
    parser.add_argument("--tokens", type=int, default=24)
    options = parser.parse_args()
    store, model = mw.cached_store("python", "python-tiny"), mw.load_model()
    texts: list[str] = []
    for text in prompts(options.prompts):
        try:
            mw.complete(store, text, model, max_tokens=options.tokens, heal=False)
        except MaskwrightError:  # no legal beginning, or more is open than the budget closes
            continue
        texts.append(text)
        if len(texts) == options.prompts:
            break
    facts: dict[str, Any] = {"prompts": len(texts), "max_tokens": options.tokens}
    table = Table("", "tokens", "model calls", "masks", "masks saved", "tokens a second", "same", "legal")
    for temperature in (0.0, 0.8):
        usual: list[bytes] = []
        for name, more in WAYS.items():
            begin = time.process_time()
            rows = []
            for seed, text in enumerate(track(texts, name, transient=True)):
                generation = mw.completion.start_completion(
                    store,
                    text,
                    model,
                    max_tokens=options.tokens,
                    temperature=temperature,
                    seed=seed,
                    heal=False,
                    **more,
                )
                rows.append(generation.run())
            seconds = time.process_time() - begin
            usual = usual or [row.data for row in rows]
            n_tokens, n_calls, n_masks = (
                sum(getattr(row, key) if key != "tokens" else len(row.tokens) for row in rows)
                for key in ("tokens", "model_calls", "masks")
            )
            one = {
                "tokens": n_tokens,
                "model_calls": n_calls,
                "masks": n_masks,
                "masks_saved": round(1 - n_masks / n_calls, 3) if "constrained" not in more else None,
                "tokens_a_cpu_second": round(n_tokens / seconds, 1),
                "same": sum(row.data == data for row, data in zip(rows, usual, strict=True))
                if not temperature
                else None,
                "legal": sum(bool(row.is_complete) and len(row.tokens) <= options.tokens for row in rows),
            }
            facts[f"{name}, temperature {temperature:g}"] = one
            table.add_row(f"{name}, {temperature:g}", *map(str, one.values()))
    Console().print(table)
    write_record("generation", " ".join(["python", "reports/bench/generation.py", *sys.argv[1:]]), facts)


if __name__ == "__main__":
    main()
