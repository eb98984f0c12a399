"""What it costs not to let a token cross lexemes: Domino's lookahead k, measured on real files with the bundled model.

python reports/bench/lookahead.py [--files N] [--tokens N] [--grammar G]

Under lookahead k a legal token may come only if at most k lexemes begin inside it, behind its first byte (ignored ones count). So
with k = 0 a token lies in one lexeme; with k = infinity all legal tokens may come, as in maskwright's masks. Domino calls tokens that
cross a border bridge tokens, and measures with k how invasive it is to do without them.

Texts begin at a function or class of the standard library's files that the model was not trained on, in the middle of each file, and have
--tokens tokens at most, as far as the grammar takes them. At each position the model has read the true tokens before.

- greedy: of the model's likeliest tokens that are legal, how many lookahead k refuses. true: the same of the tokens of the text.
- mass: the probability of the legal tokens that lookahead k refuses, on average.
- tokens, perplexity, bits_a_byte: the text spelled in tokens that lookahead k takes. Each true token that it refuses is cut where
  lexemes begin, as rarely as possible, and each piece is spelled with the fewest tokens. Perplexity is that of the text so spelled,
  for the model as it is (`free`) and for the model under the masks (`masked`), for each of the tokens that the tokenizer makes of
  the text, so that spellings compare.

Source: Beurer-Kellner, Fischer and Vechev, Guiding LLMs The Right Way (Domino, arXiv 2403.06988), section 3 and table 4, where texts
are generated and their tasks scored; and appendix B on retokenisation.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from bundled_model import Floats, held_out_files, log_probabilities
from common import write_record
from rich.console import Console
from rich.progress import track
from rich.table import Table

import maskwright as mw
from maskwright.decoding.endings.ending_spelling import spelling_of
from maskwright.decoding.generation.lookahead import Borders, Place

LOOKAHEADS = (0, 1, 2, None)
"""None is infinity."""


def cut(begins: list[int], data: bytes, k: int | None) -> list[bytes]:
    """A token's bytes in as few pieces as lookahead k takes.

    >>> cut([1, 2, 3], b"():x", 1)
    [b'()', b':x']
    """
    edges = [0, *([] if k is None else begins[k :: k + 1]), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


@dataclass
class Sums:
    """What was added up under one lookahead, in natural logarithms."""

    greedy_refused: int = 0
    true_refused: int = 0
    mass: float = 0.0
    tokens: int = 0
    free: float = 0.0
    masked: float = 0.0


@dataclass
class Facts:
    """What was added up over all texts."""

    texts: int = 0
    tokens: int = 0
    n_bytes: int = 0
    greedy_legal: int = 0
    by_k: dict[int | None, Sums] = field(default_factory=lambda: {k: Sums() for k in LOOKAHEADS})


def positions(
    store: Any, borders: Borders, ids: list[int], logs: Floats
) -> Iterator[tuple[int, Floats, npt.NDArray[Any], Place]]:
    """For each token of a text: the token, the log probabilities there, the legal tokens, and the lexeme under way."""
    matcher = store.matcher()
    words = np.zeros(-(-store.vocabulary.size // 32), np.uint32)
    for token, row in zip(ids[1:], logs, strict=True):
        matcher.fill(words)
        legal = np.unpackbits(words.view(np.uint8), bitorder="little")[: store.vocabulary.size].astype(bool)
        yield token, row[: store.vocabulary.size], legal, borders.place(matcher)
        matcher.advance(token)


def measure(store: Any, borders: Borders, model: Any, ids: list[int], facts: Facts) -> None:
    """Add a text. ids : its tokens behind begin-of-text."""
    tokens = store.vocabulary.tokens
    facts.texts += 1
    facts.tokens += len(ids) - 1
    facts.n_bytes += sum(len(tokens[token]) for token in ids[1:])
    spelling = spelling_of(store.vocabulary)
    spelled: dict[int | None, list[int]] = {k: ids[:1] for k in LOOKAHEADS}
    logs = log_probabilities(model, ids)
    for token, row, legal, place in positions(store, borders, ids, logs):
        best = int(row.argmax())
        facts.greedy_legal += int(legal[best])
        begins, counts = borders.begins(place, tokens[token]), borders.counts(place)
        assert begins is not None, "bytes that the lexer refuses"
        for k, sums in facts.by_k.items():
            if k is not None:
                sums.greedy_refused += int(legal[best] and counts[best] > k)
                sums.true_refused += int(counts[token] > k)
                sums.mass += float(np.exp(row[legal & (counts > k)]).sum())
            if k is None or len(begins) <= k:
                spelled[k].append(token)
            else:
                for piece in cut(begins, tokens[token], k):
                    spelled[k] += spelling.fewest_tokens(piece) or ()
    for k, sums in facts.by_k.items():
        sums.tokens += len(spelled[k]) - 1
        logs = log_probabilities(model, spelled[k])
        for token, row, legal, place in positions(store, borders, spelled[k], logs):
            kept = legal if k is None else legal & (borders.counts(place) <= k)
            assert kept[token], "a spelling that lookahead k refuses"
            sums.free -= float(row[token])
            sums.masked -= float(row[token]) - math.log(np.exp(row[kept]).sum())


def texts_of(store: Any, model: Any, n_files: int, n_tokens: int) -> Iterator[list[int]]:
    """The tokens of parts of files that the model has not seen, as far as the grammar takes them."""
    found = 0
    for path in held_out_files():
        if found == n_files:
            return
        text = path.read_text("utf-8", "replace")
        begins = [one.start() for one in re.finditer(r"^(?:def|class) ", text, re.MULTILINE)]
        if not begins:
            continue
        begin = begins[len(begins) // 2]
        ids = [0, *(token for token in model.tokens_of(text[begin : begin + 8 * n_tokens]) if token)][: n_tokens + 1]
        n = store.matcher().replay(np.array(ids[1:]))
        if n >= n_tokens // 2:
            found += 1
            yield ids[: n + 1]


def as_record(facts: Facts) -> dict[str, Any]:
    """The facts as shares, in per cent, and perplexities."""
    by_k = {}
    for k, sums in facts.by_k.items():
        by_k["infinity" if k is None else str(k)] = {
            "greedy_refused_percent": round(100 * sums.greedy_refused / facts.greedy_legal, 2),
            "true_refused_percent": round(100 * sums.true_refused / facts.tokens, 2),
            "mass_refused_percent": round(100 * sums.mass / facts.tokens, 2),
            "tokens": sums.tokens,
            **{
                f"{name}_{what}": round(value, 3)
                for name, total in (("free", sums.free), ("masked", sums.masked))
                for what, value in (
                    ("perplexity", math.exp(total / facts.tokens)),
                    ("bits_a_byte", total / math.log(2) / facts.n_bytes),
                )
            },
        }
    return {
        "texts": facts.texts,
        "tokens": facts.tokens,
        "bytes": facts.n_bytes,
        "greedy_legal": facts.greedy_legal,
        "lookahead": by_k,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--files", type=int, default=60)
    parser.add_argument("--tokens", type=int, default=250)
    parser.add_argument("--grammar", default="lark:python")
    options = parser.parse_args()
    model = mw.load_model(device="cpu")
    store = mw.cached_store(options.grammar, "python-tiny")
    borders, facts = Borders(store), Facts()
    for ids in track(
        texts_of(store, model, options.files, options.tokens), "texts", total=options.files, transient=True
    ):
        measure(store, borders, model, ids, facts)
    found = as_record(facts)
    table = Table(
        "lookahead", *next(iter(found["lookahead"].values())), title=f"{facts.texts} texts, {facts.tokens:,} tokens"
    )
    for k, one in found["lookahead"].items():
        table.add_row(k, *map(str, one.values()))
    Console().print(table)
    write_record(
        "lookahead",
        " ".join(["python", "reports/bench/lookahead.py", *sys.argv[1:]]),
        {"model": "python-tiny", "grammar": options.grammar, **found},
    )


if __name__ == "__main__":
    main()
