"""Forecasts of costs beside measured costs, over many grammars: how well do they rank them, and how near are they?

python reports/bench/forecast.py [--tokenizers mistral-7b-v0.1,tekken] [--seeds N] [--without NAMES]

Grammars: those of the library, Lark's own, JSON, and random ones of the tests. Rank correlation is Spearman's. Stack reads are measured on
texts drawn under the masks: cells that the automaton's runs read for a mask, and microseconds of a mask beside them.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from common import write_record

import maskwright as mw
from maskwright.analysis.errors import DeadEndError, LimitError, MaskwrightError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.loading.names import known_grammars
from maskwright.maskstore.automaton.stack_automaton import StackAutomaton, build_automaton
from maskwright.maskstore.table.write import engine_table
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.report.forecast import SIZES, forecast

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "naive"))

TEXTS, TOKENS = 24, 60


def spearman(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Pearson's correlation of the ranks, ties having their mean rank."""

    def ranks(values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        _, inverse, counts = np.unique(np.asarray(values, np.float64), return_inverse=True, return_counts=True)
        ends = np.cumsum(counts)
        return ((ends - counts + ends - 1) / 2)[inverse]

    found = np.corrcoef(ranks(a), ranks(b))[0, 1]
    return round(float(found), 3)


def grammars(n_seeds: int) -> dict[str, Grammar]:
    from engine_cases import JSON, longest, random_layout_grammar, random_longest_grammar

    found: dict[str, Grammar] = {"tests:json": longest(JSON, "json")}
    for name in known_grammars():
        try:
            found[name] = mw.load_grammar(name)
        except MaskwrightError as error:
            print(f"{name}: left out, {str(error)[:100]}", file=sys.stderr)
    for seed in range(n_seeds):
        found[f"random:{seed}"] = random_longest_grammar(seed)
        found[f"layout:{seed}"] = random_layout_grammar(seed)
    return found


def measure(grammar: Grammar, vocabulary: Vocabulary) -> dict[str, float]:
    """Costs of a grammar with a tokenizer."""
    automaton = build_automaton(grammar, vocabulary)
    table = engine_table(grammar, vocabulary, automaton)
    store = mw.Store(grammar, vocabulary, table, automaton.counts)
    per_state = [sum(len(depth_case.group) for depth_case in state.depth_cases) for state in automaton.required.states]
    resting = [count for count in per_state if count]
    counts = automaton.counts
    return {
        "entries": counts["entries"],
        "mean_entries": float(np.mean(resting)),
        "worst_entries": max(resting),
        "undecided": counts["suspended"],
        "nodes": counts["nodes"],
        "edges": counts["edges"],
        "bytes": table.nbytes,
        **on_texts(store, automaton),
    }


def on_texts(store: Any, automaton: StackAutomaton) -> dict[str, float]:
    """Stack cells that a mask reads, and its time, over texts drawn uniformly from the masks."""
    closure, n_cells = automaton.closure, automaton.tables.n_states
    edge = dict(zip(closure.edge_key.tolist(), closure.edge_node.tolist(), strict=True))
    rng = random.Random(0)
    reads: list[int] = []
    times: list[int] = []
    words = np.zeros(store.n_words, np.uint32)
    clock = time.perf_counter_ns
    matcher = store.matcher()
    for _ in range(TEXTS):
        matcher.reset()
        for _ in range(TOKENS):
            try:
                begin = clock()
                matcher.fill(words)
                times.append(clock() - begin)
                reads.append(cells_read(matcher, automaton, edge, n_cells))
                allowed = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
                matcher.advance(int(allowed[rng.randrange(len(allowed))]))
            except (DeadEndError, LimitError):
                break
            if matcher.is_finished():
                break
    return {"stack_reads": float(np.mean(reads)), "mask_us": float(np.median(times)) / 1000}


def cells_read(matcher: Any, automaton: StackAutomaton, edge: dict[int, int], n_cells: int) -> int:
    """Cells that the runs of a mask read, newlines' look-ups left out."""
    depth_cases = automaton.depth_cases[int(matcher.text.texts._memory[0])]
    depth = int(matcher.text.texts._memory[2])
    total = 0
    for one in depth_cases[min(depth, len(depth_cases) - 1)] if depth_cases else ():
        if one.line_breaks or one.root <= 0:
            continue
        for stack in matcher.text.stacks():
            node = one.root
            for cell in reversed(stack):
                total += 1
                node = edge.get(node * n_cells + cell, 0)
                if node == 0:
                    break
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokenizers", default="mistral-7b-v0.1,tekken")
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--without", default="", help="names of grammars to leave out, with commas")
    arguments = parser.parse_args()
    sizes = {"mistral-7b-v0.1": SIZES[0], "tekken": SIZES[1]}
    rows: dict[str, Any] = {}
    forecasts: dict[str, dict[str, Any]] = {}
    left_out = arguments.without.split(",")
    loaded = {name: grammar for name, grammar in grammars(arguments.seeds).items() if name not in left_out}
    for name, grammar in loaded.items():
        begin = time.process_time()
        found = forecast(grammar)
        found["cpu_seconds"] = round(time.process_time() - begin, 2)
        if "unavailable" in found or found["is_open"]:
            print(f"{name}: left out, {found.get('unavailable', 'open')[:100]}", file=sys.stderr)
            continue
        forecasts[name] = found
    for tokenizer in arguments.tokenizers.split(","):
        vocabulary, size = mw.load_vocabulary(tokenizer), str(sizes[tokenizer])
        for name, found in forecasts.items():
            truth = measure(loaded[name], vocabulary)
            entries = found["entries"][size]
            guess = {
                "entries": entries["all"],
                "mean_entries": entries["mean"],
                "worst_entries": entries["worst"],
                "undecided": found["undecided"],
                "nodes": found["nodes"],
                "edges": found["edges"],
                "bytes": found["bytes"][size],
                "stack_reads": found["stack_reads"]["mean"],
                "mask_us": found["stack_reads"]["mean"],
            }
            rows.setdefault(tokenizer, {})[name] = {"forecast": guess, "measured": truth}
            print(tokenizer, name, found["cpu_seconds"], guess, truth, flush=True)
    summary: dict[str, Any] = {}
    for tokenizer, by_name in rows.items():
        for key in next(iter(by_name.values()))["forecast"]:
            guess = [row["forecast"][key] for row in by_name.values()]
            truth = [row["measured"][key] for row in by_name.values()]
            ratios = np.sort([g / t for g, t in zip(guess, truth, strict=True) if g and t])
            summary.setdefault(tokenizer, {})[key] = {
                "spearman": spearman(guess, truth),
                "ratio_p10_p50_p90": [round(float(np.percentile(ratios, q)), 2) for q in (10, 50, 90)],
            }
    for tokenizer, found in summary.items():
        print(tokenizer, len(rows[tokenizer]), "grammars")
        for key, figures in found.items():
            print(f"  {key:14} {figures}")
    seconds = {name: found["cpu_seconds"] for name, found in forecasts.items()}
    command = " ".join(["python reports/bench/forecast.py", *sys.argv[1:]])
    write_record("forecast", command, {"summary": summary, "forecast_cpu_seconds": seconds, "grammars": rows})


if __name__ == "__main__":
    main()
