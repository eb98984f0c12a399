"""What the library's grammars reach: corpora that must be accepted, texts that must be refused, and what their stores cost.

    python reports/bench/reach.py NAME... [--limit N] [--grammar FILE] [--stores [--beside GRAMMAR]] [--tokenizers mistral-7b-v0.1,tekken]
        [--record]

SOURCES says which module of corpora/ has the corpora of NAME: `positive()` yields name and text that the reference parser accepts,
`negative()` name, text it refuses, and the interval of the first byte that cannot come; `KNOWN`, if there, says by a text's name why its
outcome is another. Each text is put to the exact engine over single bytes. --stores builds the stores of
real vocabularies and replays the accepted texts, mask and advance at each token; --beside does so with another grammar's too, on the texts
that both accept, turn by turn. Exit code 1 if an outcome is wrong and not known.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import add_data, write_record

import maskwright as mw
from maskwright.analysis.errors import MaskwrightError
from maskwright.maskstore.table import schema
from maskwright.maskstore.vocabulary.encoders import load_encoder

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "naive"))
from byte_parser import ByteParser, Reach, TextResult, judge_negative, judge_positive

SOURCES: dict[str, tuple[str, ...]] = {
    **{name: (name,) for name in ("c", "go", "java", "json", "lark", "python", "sql", "toml")},
    "json.compact": ("json_compact",),
    "json.indent2": ("json_indent2",),
    "domino.c": ("domino_c",),
    **{f"domino.{task}": ("domino_tasks", task) for task in ("conll", "json_gsm8k", "rpg_template", "xml_person")},
}
"""Grammar of the library -> module of corpora/, and what its functions take."""
TOKENIZERS = "mistral-7b-v0.1,tekken"
SHOWN = 40


@dataclass(frozen=True)
class Corpora:
    """What a grammar is held against. reference : which corpora and which parser."""

    reference: str
    positive: Callable[[], Iterator[tuple[str, bytes]]]
    negative: Callable[[], Iterator[tuple[str, bytes, int, int]]]
    known: dict[str, str]


def corpora_of(name: str) -> Corpora:
    if name not in SOURCES:
        sys.exit(f"no corpora for grammar {name}; there are some for {', '.join(sorted(SOURCES))}")
    module_name, *arguments = SOURCES[name]
    module = importlib.import_module(f"corpora.{module_name}")
    positive, negative = (partial(getattr(module, kind), *arguments) for kind in ("positive", "negative"))
    return Corpora((module.__doc__ or "").strip(), positive, negative, getattr(module, "KNOWN", {}))


def show(kind: str, reach: Reach) -> None:
    print(f"  {kind}: " + ", ".join(f"{n:,} {what}" for what, n in reach.counts.items()))
    for outcome in reach.unexplained[:SHOWN]:
        expected = f", expected in {outcome.expected}" if outcome.expected else ""
        print(f"    {outcome.name}: {outcome.verdict} at {outcome.at}{expected}  {outcome.why}{outcome.shown}")
    if len(reach.unexplained) > SHOWN:
        print(f"    ... and {len(reach.unexplained) - SHOWN:,} more")
    for name in reach.stale[:SHOWN]:
        print(f"    {name}: listed as an exception, but came out right")


def facts_of(reach: Reach) -> dict[str, Any]:
    def fact(outcome: TextResult) -> dict[str, Any]:
        return {
            "name": outcome.name,
            "verdict": outcome.verdict,
            "at": outcome.at,
            "expected": outcome.expected,
            "cause": reach.known.get(outcome.name, outcome.why or None),
        }

    return {**reach.counts, "exceptions": [fact(outcome) for outcome in reach.wrong]}


def store_facts(
    grammars: Sequence[mw.Grammar], tokenizer: str, texts: Iterable[bytes], n_tokens: int
) -> list[dict[str, Any]]:
    """Size and build time of each grammar's store, and what a mask and an advance cost on true next tokens: all in this process's CPU time.

    held : entries that the table holds: cells of roots that do not refuse, the defaults of other nodes, and exceptions from these.
    step_us : a call of `fill` and one of `advance` from Python. engine_us : the same and a look-up in the mask, in one compiled loop.
    The least of three passes over each text counts. refused_texts : texts whose own tokens are masked somewhere; no store is timed on them.
    """
    encoder = load_encoder(tokenizer)
    facts: list[dict[str, Any]] = []
    matchers: list[Any] = []
    for grammar in grammars:
        begin = time.process_time()
        store: Any = mw.build_store(grammar, encoder.vocabulary)
        build = time.process_time() - begin
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "store"
            store.save(path)
            file_bytes = path.stat().st_size
        counts = {name: store.counts[name] for name in ("entries", "nodes", "edges", "masks", "open")}
        facts.append(
            {
                "vocabulary": encoder.vocabulary.size,
                **counts,
                "held": held_entries(store.table),
                "table_bytes": store.table.nbytes,
                "file_bytes": file_bytes,
                "build_cpu_s": round(build, 2),
            }
        )
        matchers.append(store.matcher())
    words = np.zeros(matchers[0].store.n_words, np.uint32)
    read, refused = 0, [0] * len(grammars)
    times = np.zeros((2, len(grammars)))
    for data in texts:
        tokens = encoder.exact_tokens(data.decode()).tokens
        if not tokens:
            continue
        taken = []
        for matcher in matchers:
            matcher.reset()
            taken.append(matcher.replay(tokens) == len(tokens) and matcher.is_accepting())
        refused = [n + (not is_taken) for n, is_taken in zip(refused, taken, strict=True)]
        if not all(taken):
            continue
        read += len(tokens)
        for row, use in enumerate((step, replay)):
            passes = [
                [seconds(matcher, partial(use, matcher, tokens, words)) for matcher in matchers] for _ in range(3)
            ]
            times[row] += np.min(passes, axis=0)
        if read > n_tokens:
            break
    for found, n, stepped, replayed in zip(facts, refused, *times.tolist(), strict=True):
        found |= {
            "tokens": read,
            "refused_texts": n,
            "step_us": round(stepped / max(1, read) * 1e6, 3),
            "engine_us": round(replayed / max(1, read) * 1e6, 3),
        }
    return facts


def held_entries(table: Any) -> int:
    def part(begin: int, end: int) -> Any:
        return table[table[begin] : table[end]]

    roots, nodes = part(schema.ROOTS, schema.NODES), part(schema.NODES, schema.EDGES)
    edges = part(schema.EDGES, schema.MASKS)
    return int((roots > 0).sum() + len(nodes) // 2 + (edges[::2] >= 0).sum())


def seconds(matcher: Any, work: Any) -> float:
    matcher.reset()
    begin = time.process_time()
    work()
    return time.process_time() - begin


def step(matcher: Any, tokens: Sequence[int], words: Any) -> None:
    fill, advance = matcher.fill, matcher.advance
    for token in tokens:
        fill(words)
        advance(token)


def replay(matcher: Any, tokens: Sequence[int], words: Any) -> None:
    matcher.replay(tokens)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="+", metavar="NAME", help="grammars of the library")
    parser.add_argument("--grammar", type=Path, help="another grammar than the library's, for the same corpora")
    parser.add_argument("--limit", type=int, default=None, help="texts of each kind")
    parser.add_argument("--stores", action="store_true", help="build the stores, and measure them")
    parser.add_argument("--beside", help="another grammar whose stores are measured with --stores, by name or file")
    parser.add_argument("--tokenizers", default=TOKENIZERS, help=f"for --stores; {TOKENIZERS} by default")
    parser.add_argument("--tokens", type=int, default=200_000, help="tokens to replay on each store")
    parser.add_argument("--record", action="store_true", help="write reports/record/DATE-reach-NAME.json")
    add_data(parser)
    options = parser.parse_args()
    if options.grammar and (len(options.names) > 1 or options.record):
        parser.error("--grammar goes with one NAME and without --record")
    unexplained = 0
    for name in options.names:
        corpora = corpora_of(name)
        try:
            grammar = mw.load_grammar(options.grammar or name)
            begin = time.process_time()
            byte_parser = ByteParser(grammar)
        except MaskwrightError as error:
            sys.exit(f"{name}: {error}")
        print(f"{name}: {grammar}, built in {time.process_time() - begin:.1f} CPU-s")
        facts: dict[str, Any] = {
            "grammar": name,
            "grammar_sha256": grammar.digest,
            "reference": corpora.reference,
            "byte_store": dict(byte_parser.store.counts),
        }
        for kind, cases, judge in (
            ("positive", corpora.positive, judge_positive),
            ("negative", corpora.negative, judge_negative),
        ):
            reach = Reach(tuple(judge(byte_parser, itertools.islice(cases(), options.limit))), corpora.known)
            show(kind, reach)
            facts[kind] = facts_of(reach)
            unexplained += len(reach.unexplained)
        if options.stores:
            grammars = [grammar, *([mw.load_grammar(options.beside)] if options.beside else [])]
            kinds = ("stores", f"stores of {options.beside}")
            for tokenizer in options.tokenizers.split(","):
                texts = (data for _, data in itertools.islice(corpora.positive(), options.limit) if is_utf8(data))
                for kind, found in zip(kinds, store_facts(grammars, tokenizer, texts, options.tokens), strict=False):
                    facts.setdefault(kind, {})[tokenizer] = found
                    print(f"  {kind}, {tokenizer}: " + ", ".join(f"{key} {value:,}" for key, value in found.items()))
        if options.record and options.limit is None:
            write_record(f"reach-{name}", "python reports/bench/reach.py " + " ".join(sys.argv[1:]), facts)
    sys.exit(1 if unexplained else 0)


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


if __name__ == "__main__":
    main()
