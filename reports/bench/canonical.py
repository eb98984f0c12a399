"""Canonical tokens: real sources replayed without a refusal, what they cost, and the model calls that forced tokens save.

python reports/bench/canonical.py

For each tokenizer the sources' own tokens are replayed, at most LONGEST characters a source and about TOKENS tokens a language. A token
that is refused would be a false refusal. `narrow` is the least of ROUNDS times along one text under kept rows. Then the bundled model
writes texts of a grammar four ways: all tokens or canonical ones, with fast-forward and without.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from common import add_data, data_files, has_records, shared_records, write_record
from rich.console import Console
from rich.table import Table

import maskwright as mw
from maskwright.maskstore.vocabulary.encoders import load_encoder

VOCABULARIES = ("python-tiny", "mistral-7b-v0.1", "tekken")
LANGUAGES = ("c", "go", "java", "javascript", "json", "python", "sql_statements", "toml", "typescript", "xml", "yaml")
TOKENS = 10_000
LONGEST = 20_000
ROUNDS = 20
TEXTS = 40
GRAMMAR = r"""
start: "{" pair ("," pair)* "}"
pair: "\"name\":" STRING | "\"value\":" NUMBER | "\"description\":" STRING | "\"enabled\":" ("true" | "false")
STRING: /"[a-z ]{0,12}"/
NUMBER: /[0-9]{1,6}(\.[0-9]+)?/
"""


def text_of(record: dict[str, Any]) -> str:
    """The source in a record of the evaluation data: its longest text."""
    return max((value for value in record.values() if isinstance(value, str)), key=len)


def replay(tokens: mw.CanonicalTokens, tokenize: Any, languages: list[str]) -> dict[str, Any]:
    """How many tokens of the sources were read, and refused."""
    found: dict[str, Any] = {}
    for language in languages:
        n = refused = 0
        for record in shared_records(f"source/{language}"):
            state = tokens.start()
            for token in tokenize(text_of(record)[:LONGEST]):
                n += 1
                if not state.is_canonical(token):
                    refused += 1
                    break
                state.advance(token)
            else:
                refused += not state.can_end()
            if n >= TOKENS:
                break
        found[language] = {"tokens": n, "refused": refused}
    return found


def narrow_cost(tokens: mw.CanonicalTokens, ids: list[int]) -> dict[str, float]:
    """Microseconds of CPU time a token, under kept rows."""
    words = np.full((tokens.vocabulary.size + 31) // 32, -1, np.int32)
    best = {"narrow": float("inf"), "advance": float("inf")}
    for _ in range(ROUNDS):
        state = tokens.start()
        spent = {"narrow": 0.0, "advance": 0.0}
        for token in ids:
            begin = time.process_time()
            state.narrow(words)
            middle = time.process_time()
            state.advance(token)
            spent["narrow"] += middle - begin
            spent["advance"] += time.process_time() - middle
        best = {key: min(best[key], 1e6 * spent[key] / len(ids)) for key in best}
    return {key: round(value, 2) for key, value in best.items()}


def calls() -> dict[str, Any]:
    """Model calls and tokens of the bundled model's texts, sampled at temperature 1."""
    store = mw.build_store(mw.parse_grammar(GRAMMAR), "python-tiny")
    tokens = mw.load_canonical("python-tiny")
    model = mw.load_model(device="cpu")
    found: dict[str, Any] = {}
    for name, options in {
        "all tokens": {},
        "all tokens, fast-forward": {"fast_forward": True},
        "canonical": {"canonical": tokens},
        "canonical, fast-forward": {"canonical": tokens, "fast_forward": True},
    }.items():
        rows = [
            mw.complete(store, "{", model, max_tokens=120, temperature=1.0, seed=seed, close=False, **options)
            for seed in range(TEXTS)
        ]
        found[name] = {
            "texts": len(rows),
            "complete": sum(row.reason == "end" for row in rows),
            "tokens": sum(len(row.tokens) for row in rows),
            "model_calls": sum(row.model_calls for row in rows),
            "forced": sum(row.forced for row in rows),
            "relaxed": sum(row.relaxed for row in rows),
        }
    return found


def main() -> None:
    """Measure, show a table, and write the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_data(parser)
    parser.parse_args()
    languages = [language for language in LANGUAGES if has_records(f"source/{language}")] or list(LANGUAGES)
    data_files(f"source/{languages[0]}")
    facts: dict[str, Any] = {"tokenizers": {}}
    table = Table("tokenizer", "load, CPU s", "tokens", "refused", "narrow, us", "advance, us")
    for name in VOCABULARIES:
        begin = time.process_time()
        tokens = mw.load_canonical(name)
        load = time.process_time() - begin
        tokenize = load_encoder(name).tokenize
        sources = replay(tokens, tokenize, languages)
        cost = narrow_cost(tokens, tokenize("def mean(values):\n    return sum(values) / len(values)\n" * 8))
        facts["tokenizers"][name] = {"load_cpu_s": round(load, 2), "sources": sources, "us": cost}
        n, refused = (sum(source[key] for source in sources.values()) for key in ("tokens", "refused"))
        table.add_row(name, f"{load:.1f}", f"{n:,}", str(refused), str(cost["narrow"]), str(cost["advance"]))
    facts["calls"] = calls()
    console = Console()
    console.print(table)
    console.print(facts["calls"])
    write_record("canonical", "python reports/bench/canonical.py", facts)


if __name__ == "__main__":
    main()
